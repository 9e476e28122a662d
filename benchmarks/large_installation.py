"""A large installation for measurements of the read models: its database is made by SQL, in less than three minutes.

`python -m benchmarks.large_installation URL` fills the empty database at this URL: 1,000 sites, half of them OAI-PMH
repositories, with 1,000 documents each; 1,000 nights; log, problems and reports as a year of harvests leaves them.
Every value follows from the numbers of its row, so that two databases have the same content.
"""

from __future__ import annotations

import argparse
import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    case,
    cast,
    delete,
    false,
    insert,
    literal,
    make_url,
    null,
    select,
    text,
    true,
)
from sqlalchemy.orm import Session

from metaharvest.database.engine import open_url, upgrade
from metaharvest.database.models import (
    Base,
    CatalogueCounter,
    CatalogueDocument,
    DocumentRevision,
    HarvestDetailLog,
    HarvestDocument,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
    HarvestSiteSchedule,
    ReportDelivery,
    ReportOutbox,
    SiteCheckpoint,
    SiteProblem,
)
from metaharvest.journal.totals import keep_totals

TODAY = date(2026, 11, 20)
"""The day of the newest run."""

_NUMBERS = Table("large_numbers", MetaData(), Column("n", Integer, primary_key=True))
_MYSQL = ("mysql", "mariadb")
_PLAIN = (str, bytes, int, float, date)
_BODY = b"To: data@example.org\r\nSubject: Your harvest\r\n\r\n" + b"1,000 documents were harvested.\r\n" * 100
_RULES = (
    "eml.reference-unresolved", "schema.element-unexpected", "schema.element-missing", "http.status",
    "eml.unit-undefined", "xml.not-well-formed", "schema.value", "eml.id-duplicate", "http.timeout", "eml.package-id",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the installation: sites, documents of each site, nights; nights that the log goes back."""

    sites: int = 1000
    documents: int = 1000
    nights: int = 1000
    logged: int = 90

    @property
    def numbers(self) -> int:
        """The largest number that a statement needs."""
        return max(self.sites, self.documents, self.nights, 100)


def fill(engine: Engine, size: Size) -> None:
    """Fill the empty database that this engine opens."""
    upgrade(engine)
    with engine.begin() as connection, _without_indices(connection):
        _NUMBERS.create(connection)
        connection.execute(insert(_NUMBERS), [{"n": number} for number in range(1, size.numbers + 1)])
        for step in (_schedule, _runs, _site_runs, _ledger, _catalogue, _log, _findings, _problems, _outbox):
            step(connection, size)
        _NUMBERS.drop(connection)
    with Session(engine) as session, session.begin():
        keep_totals(session, [_day(back) for back in range(size.nights)])
    _count_on(engine)


@contextmanager
def _without_indices(connection: Connection) -> Iterator[None]:
    """Drop the indices of the tables, and make them again at the end: this takes a third of the time."""
    indices = indices_to_drop(connection.dialect.name)
    for index in indices:
        index.drop(connection, checkfirst=True)
    yield
    for index in indices:
        index.create(connection)


def indices_to_drop(dialect: str) -> list[Index]:
    """The indices of the tables; MySQL and MariaDB keep all, as they need the indices of foreign keys."""
    return [] if dialect in _MYSQL else [index for table in Base.metadata.sorted_tables for index in table.indexes]


def _count_on(engine: Engine) -> None:
    """Let the next numbers follow the last ones, and the planner know the tables; SQLite plans without statistics."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in Base.metadata.sorted_tables if engine.dialect.name == "postgresql" else ():
            [key, *others] = table.primary_key
            if not others and isinstance(key.type, Integer) and key.autoincrement is not False:
                largest = f"(SELECT max({key.name}) FROM {table.name})"
                sequence = f"pg_get_serial_sequence('{table.name}', '{key.name}')"
                connection.execute(text(f"SELECT setval({sequence}, {largest}) WHERE {largest} IS NOT NULL"))
        if engine.dialect.name in _MYSQL:
            connection.execute(text(f"ANALYZE TABLE {', '.join(table.name for table in Base.metadata.sorted_tables)}"))
        elif engine.dialect.name == "postgresql":
            connection.execute(text("VACUUM ANALYZE"))


# -- values that follow from numbers

_site, _run, _number = HarvestSiteSchedule, HarvestRun, _NUMBERS.c.n
_IS_LIST = _site.site_schedule_id % 2 == 1


def _words(*parts: Any) -> ColumnElement[str]:
    """These values, one after another, as text."""
    texts = [literal(part) if isinstance(part, str) else cast(part, String(40)) for part in parts]
    return reduce(operator.add, texts)


def _document_id(number: ColumnElement[int]) -> ColumnElement[str]:
    """`net-17.4` for a document of a list, `repo18.oai%3Arepo18.example.org%3A4` for a record."""
    site = _site.site_schedule_id
    record = _words("repo", site, ".oai%3Arepo", site, ".example.org%3A", number)
    return case((_IS_LIST, _words("net-", site, ".", number)), else_=record)


def _url(number: ColumnElement[int]) -> ColumnElement[str]:
    site = _site.site_schedule_id
    return _words("https://site-", site, ".example.org/eml/plot-", number, ".xml")


def _title(number: ColumnElement[int]) -> ColumnElement[str]:
    subjects = (
        "Stream temperature",
        "Litter fall",
        "River birds",
        "Soil moisture",
        "Tree rings",
        "Peat depth",
        "Frogs",
    )
    subject = case(
        *((number % len(subjects) == at, literal(each)) for at, each in enumerate(subjects[1:], 1)), else_=subjects[0]
    )
    return _words(subject, " of plot ", number, " at the station ", _site.site_schedule_id, ", 1998-2024")


def _is_failing(number: ColumnElement[int]) -> ColumnElement[bool]:
    """True for two documents of a hundred."""
    return (number * 7 + _site.site_schedule_id) % 50 == 0


def _day(back: int) -> date:
    return TODAY - timedelta(days=back)


def _time(back: int) -> datetime:
    return datetime(TODAY.year, TODAY.month, TODAY.day, 2, 30, tzinfo=UTC) - timedelta(days=back)


def _fill(
    connection: Connection, table: type[Base], source: FromClause, values: Mapping[str, Any], *where: Any
) -> None:
    """Insert a row of these values for each row of the source, in the order of the source's numbers."""
    columns = [literal(value) if isinstance(value, _PLAIN) else value for value in values.values()]
    query = select(*(column.label(name) for name, column in zip(values, columns, strict=True)))
    query = query.select_from(source).where(*where)
    connection.execute(insert(table).from_select(list(values), query))


_DOCUMENTS = _site.__table__.join(_NUMBERS, true())


# -- the tables


def _schedule(connection: Connection, size: Size) -> None:
    rows: list[dict[str, Any]] = []
    for number in range(1, size.sites + 1):
        is_list = number % 2 == 1
        groups = ["region-" + str(number % 12)]
        oai = {"origin": f"repo{number}", "prefix": "eml"}
        rows.append(
            {
                "site_schedule_id": number,
                "name": f"site-{number}",
                "source_kind": "harvest-list" if is_list else "oai-pmh",
                "documentlisturl": f"https://site-{number}.example.org/" + ("harvestList.xml" if is_list else "oai"),
                "datenextharvest": _day(12) if number % 97 == 0 else _day(-1 - number % 7),
                "datelastharvest": _day(number % 7),
                "updatefrequency": 1,
                "unit": "days",
                "contact_email": f"data@site-{number}.example.org",
                "notify": "on-change",
                "enabled": number % 101 != 0,
                "options": json.dumps({"groups": groups} if is_list else {"groups": groups, "oai": oai}),
            }
        )
    connection.execute(insert(_site), rows)


def _runs(connection: Connection, size: Size) -> None:
    rows = [
        {
            "run_id": number,
            "harvest_date": _day(size.nights - number),
            "started_at": _time(size.nights - number),
            "ended_at": _time(size.nights - number) + timedelta(seconds=900 + number % 300),
            "heartbeat_at": _time(size.nights - number) + timedelta(seconds=900),
            "status": "with-errors",
            "host": "harvest.example.org",
            "pid": 4000 + number,
        }
        for number in range(1, size.nights + 1)
    ]
    connection.execute(insert(_run), rows)


def _site_runs(connection: Connection, size: Size) -> None:
    site, run = _site.site_schedule_id, _run.run_id
    # One site of fifty fails for up to 40 nights up to now; others fail for one night now and then.
    fails = (
        case(((site % 50 == 0) & (run > size.nights - site % 41), 1), ((site * 31 + run * 7) % 97 == 0, 1), else_=0)
        == 1
    )
    read = case((fails, 0), else_=1)
    values = {
        "site_run_id": (run - 1) * size.sites + site,
        "run_id": run,
        "site_schedule_id": site,
        "site_name": _site.name,
        "kind": "scheduled",
        "rehearsal": false(),
        "status": case((fails, "list-failed"), (site % 3 == 0, "succeeded"), else_="with-errors"),
        "started_at": _run.started_at,
        "ended_at": _run.ended_at,
        "failure_reason": case((fails, "The server answered 503 Service Unavailable."), else_=null()),
        "list_url": _site.documentlisturl,
        "listed": read * size.documents,
        "inserted": read * (run % 2),
        "updated": read * 1,
        "unchanged": read * (size.documents - 22 - run % 2),
        "deleted": 0,
        "filtered": 0,
        "stale": 0,
        "duplicate": 0,
        "deferred": 0,
        "access_error": read * 5,
        "invalid": read * (15 - run % 3),
        "upload_error": read * 1,
        "warnings": read * 3,
        "server_seconds": 12.5,
        "checking_seconds": 3.25,
    }
    _fill(connection, HarvestSiteRun, _site.__table__.join(_run.__table__, true()), values)


def _ledger(connection: Connection, size: Size) -> None:
    fails = _is_failing(_number)
    is_missing = ~_IS_LIST & (_number % 200 == 0)
    state = case((fails, "failed"), (is_missing, "missing"), else_="held")
    _fill(
        connection,
        HarvestDocument,
        _DOCUMENTS,
        {
            "site_schedule_id": _site.site_schedule_id,
            "document_id": _document_id(_number),
            "revision": 1 + _number % 3,
            "document_url": _url(_number),
            "document_type": "eml://ecoinformatics.org/eml-2.1.1",
            "target_revision": case((fails, null()), else_=1 + _number % 3),
            "outcome": case((fails, "invalid"), else_="unchanged"),
            "sha256": _words("d1g35t", _site.site_schedule_id, "-", _number),
            "looked_at": _day(3),
            "failing_since": case((fails & (_number % 2 == 0), _day(20)), (fails, _day(2)), else_=null()),
            "attempts": case((fails, 3), else_=0),
            "next_attempt": null(),
            "listing": case((_IS_LIST, null()), else_=size.nights),
            "datestamp": case((_IS_LIST, null()), else_="2026-01-01"),
            "to_delete": false(),
            "missing_since": case((is_missing & ~fails, _day(9)), else_=null()),
            "title": _title(_number),
            "state": state,
        },
        _number <= size.documents,
    )
    waits = {"listing": size.nights, "unchanged": 0, "duplicate": 0, "confirmed": 0, "moved": 0}
    more = {"site_schedule_id": _site.site_schedule_id, "rechecks": false(), "full_wanted": false()}
    _fill(connection, SiteCheckpoint, _site.__table__, {**more, **waits}, ~_IS_LIST)


def _catalogue(connection: Connection, size: Size) -> None:
    number = (_site.site_schedule_id - 1) * size.documents + _number
    same = {
        "document_id": _document_id(_number),
        "revision": 1 + _number % 3,
        "document_type": "eml://ecoinformatics.org/eml-2.1.1",
        "site_schedule_id": _site.site_schedule_id,
        "sha256": _words("d1g35t", number),
    }
    of_catalogue = {
        "catalogue_document_id": number,
        "item_identifier": _document_id(_number),
        "origin": case((_IS_LIST, null()), else_=_words("repo", _site.site_schedule_id)),
        "title": _title(_number),
        "deleted": _number % 500 == 0,
        "changed_at": case(*((_number % 50 == back, _time(back * 7)) for back in range(1, 50)), else_=_time(0)),
        "change_seq": number,
    }
    of_revision = {"size": 2, "source_url": _url(_number), "inserted_at": _time(30), "content": literal(b"<>")}
    is_there = (~_is_failing(_number), _number <= size.documents)
    _fill(connection, CatalogueDocument, _DOCUMENTS, {**same, **of_catalogue}, *is_there)
    _fill(connection, DocumentRevision, _DOCUMENTS, {**same, **of_revision}, *is_there)
    last = {"counter_id": 1, "change_seq": size.sites * size.documents, "changed_at": _time(0)}
    connection.execute(delete(CatalogueCounter))
    connection.execute(insert(CatalogueCounter), [last])


_LOGGED = _site.__table__.join(_run.__table__, true()).join(_NUMBERS, true())
_ROWS = 10
"""Log rows of a site run: its list, two changed documents, and seven that fail or are warned about."""


def _logged_document(size: Size) -> ColumnElement[int]:
    """The number of the document of a log row. Failing documents come every night, others are changed in turn."""
    changed = (_run.run_id * 2 + _number) % size.documents + 1
    return case((_number > 3, _failing_document(size)), else_=changed)


def _failing_document(size: Size) -> ColumnElement[int]:
    """The number of one of the failing documents of a site."""
    failing = _number * 50 + (50 - _site.site_schedule_id * 43 % 50) % 50
    return (failing - 1) % size.documents + 1


def _log(connection: Connection, size: Size) -> None:
    is_list, is_error = _number == 1, _number > 3
    of_document: Callable[[Any], ColumnElement[Any]] = lambda value: case((is_list, null()), else_=value)  # noqa: E731
    document = _logged_document(size)
    site_run = (_run.run_id - 1) * size.sites + _site.site_schedule_id
    values = {
        "harvest_log_id": site_run * _ROWS + _number,
        "harvest_date": _run.harvest_date,
        "logged_at": _run.started_at,
        "status": case((is_error, 1), else_=0),
        "message": case(
            (is_list, "The harvest list was fetched."), (is_error, "The document is not valid."), else_="Updated."
        ),
        "harvest_operation_code": case(
            (is_list, "GetHarvestListSuccess"), (is_error, "ValidateDocError"), else_="UpdateDocSuccess"
        ),
        "site_schedule_id": _site.site_schedule_id,
        "site_run_id": site_run,
        "run_id": _run.run_id,
        "document_id": of_document(_document_id(document)),
        "revision": of_document(1 + document % 3),
        "document_url": of_document(_url(document)),
        "outcome": of_document(case((is_error, "invalid"), else_="updated")),
        "size": of_document(20_000),
        "seconds": of_document(0.25),
    }
    _fill(connection, HarvestLog, _LOGGED, values, _number <= _ROWS, _run.run_id > size.nights - size.logged)


def _rule(number: Any) -> ColumnElement[str]:
    return case(
        *((number % len(_RULES) == at, literal(rule)) for at, rule in enumerate(_RULES[1:], 1)), else_=_RULES[0]
    )


def _findings(connection: Connection, size: Size) -> None:
    log = HarvestLog
    values = {
        "harvest_log_id": log.harvest_log_id,
        "level": "error",
        "document_id": log.document_id,
        "revision": log.revision,
        "document_url": log.document_url,
        "error_message": _words("The element ", log.harvest_log_id % 50, " is not allowed here."),
        "rule": _rule(log.harvest_log_id),
        "line_number": log.harvest_log_id % 400,
        "remedy": "Remove the element.",
        "fingerprint": _words("f", log.harvest_log_id),
    }
    _fill(connection, HarvestDetailLog, log.__table__, values, log.status == 1)


def _problems(connection: Connection, size: Size) -> None:
    is_open = _number <= 20
    run = size.nights - _number
    ended = (run - 1) * size.sites + _site.site_schedule_id
    values = {
        "site_schedule_id": _site.site_schedule_id,
        "fingerprint": _words("p", _site.site_schedule_id, "-", _number),
        "document_id": _document_id(_failing_document(size)),
        "rule": _rule(_number),
        "needs_attention": _number % 5 != 0,
        "detail_log_id": (_site.site_schedule_id - 1) * 7 + 1,
        "state": case((is_open, "open"), (_number % 3 == 0, "gone"), else_="fixed"),
        "first_seen": case((_number % 4 == 0, _day(2)), (_number % 4 == 1, _day(0)), else_=_day(200)),
        "first_site_run": (size.nights - 2 - 1) * size.sites + _site.site_schedule_id,
        "last_seen": case((is_open, _day(0)), else_=_day(3)),
        "last_site_run": (size.nights - 1) * size.sites + _site.site_schedule_id,
        "nights": 1 + _number % 40,
        "ended_on": case((is_open, null()), else_=_day(3)),
        "ended_site_run": case((is_open, null()), else_=ended),
    }
    _fill(connection, SiteProblem, _DOCUMENTS, values, _number <= 100)


def _outbox(connection: Connection, size: Size) -> None:
    site_run = HarvestSiteRun
    # One site of three gets a report each night.
    reported = (site_run.run_id > size.nights - size.logged, site_run.site_schedule_id % 3 == 1)
    values = {
        "report_id": site_run.site_run_id,
        "idempotency_key": _words("site-", site_run.site_run_id),
        "kind": "site",
        "run_id": site_run.run_id,
        "site_run_id": site_run.site_run_id,
        "message_id": _words("<", site_run.site_run_id, "@harvest.example.org>"),
        "subject": _words("Harvest of ", site_run.site_name, ": 21 documents were not accepted"),
        "content": literal(_BODY),
        "created_at": site_run.started_at,
    }
    _fill(connection, ReportOutbox, site_run.__table__, values, *reported)
    is_refused, waits = site_run.site_schedule_id % 301 == 1, site_run.run_id == size.nights
    delivered = {
        "report_id": site_run.site_run_id,
        "recipient": _words("data@", site_run.site_name, ".example.org"),
        "status": case(
            (is_refused, "refused"), (waits & (site_run.site_schedule_id % 10 == 1), "queued"), else_="sent"
        ),
        "attempts": 1,
        "last_error": case((is_refused, "550 There is no such mailbox."), else_=null()),
        "last_attempt_at": site_run.ended_at,
        "first_sent_at": case((is_refused, null()), else_=site_run.ended_at),
        "by_hand": false(),
    }
    _fill(connection, ReportDelivery, site_run.__table__, delivered, *reported)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill the database at the URL of the command line."""
    parser = argparse.ArgumentParser(description="Fill an empty database as a large installation would.")
    parser.add_argument("url")
    for name, value in (("sites", 1000), ("documents", 1000), ("nights", 1000), ("logged", 90)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = vars(parser.parse_args(arguments))
    engine = open_url(make_url(given.pop("url")))
    fill(engine, Size(**given))
    engine.dispose()


if __name__ == "__main__":
    main()
