"""The history of one document: the sites that list it, its owner, its revisions, and its events in each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from metaharvest.database.models import (
    DocumentOwner,
    DocumentRevision,
    DocumentTransfer,
    HarvestDetailLog,
    HarvestDocument,
    HarvestLog,
    HarvestSiteRun,
)
from metaharvest.errors import MetaharvestError, UnknownDocument
from metaharvest.ledger.records import MISSING_SINCE
from metaharvest.model import OutcomeKind
from metaharvest.queries.documents import as_of, nights_failing
from metaharvest.queries.last_findings import reasons_put_off
from metaharvest.queries.records import (
    Record,
    columns,
    docid,
    parts_of_docid,
    records_under,
    revision_of,
    with_one_name,
    would_be,
)
from metaharvest.queries.sites import last_names, site_names
from metaharvest.queries.suggestions import did_you_mean
from metaharvest.text import one_line, shown_url

_EVENT = (
    "harvest_log_id logged_at harvest_date run_id site_run_id site_schedule_id document_id revision outcome "
    "target_revision document_url size seconds message"
)
_FINDING = "level rule error_message remedy line_number column_number xpath excerpt"
_LISTED = (
    "site_schedule_id revision outcome target_revision document_url document_type failing_since attempts datestamp "
    "title"
)
_HELD = "revision size sha256 inserted_at source_url site_schedule_id"
_TRANSFER = "from_site from_site_id to_site to_site_id transferred_on transferred_at transferred_by run_id message"
_NAMES = {
    "harvest_log_id": "log_id",
    "site_schedule_id": "site_id",
    "site_name": "site",
    "target_revision": "repository_revision",
    "document_url": "url",
    "size": "bytes",
}
_CAME_IN = (OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value)


def document_history(session: Session, name: str, today: date) -> Record:
    """The history of the document that `name` means: a docid, or a document id.

    `owners` are the sites that it belongs to, in the embedded target and in any other; `listed` the sites that list it,
    with its state; `revisions` its uploads, with time and source (without rehearsals); `transfers` and `history` the
    events, in the order of time, as far as the log goes back. Raises MetaharvestError for an unknown document.
    """
    document_id, revision = _meant(session, name)
    names, registered, today = last_names(session), site_names(session), as_of(session, today)
    events = _events(session, document_id, revision, names)
    return {
        "document_id": document_id,
        "revision": revision,
        "owners": list(_owners(session, document_id, names, registered)),
        "listed": list(_listed(session, document_id, revision, names, registered, today, events)),
        "revisions": _revisions(session, document_id, revision, names, events),
        "transfers": [
            {"document_id": document_id, **row} for row in _rows(session, DocumentTransfer, document_id, _TRANSFER)
        ],
        "history": events,
    }


def _meant(session: Session, name: str) -> tuple[str, int | None]:
    """The document, and the revision if one is named: read as a docid first, then as a document id."""
    parts = parts_of_docid(name)
    if parts and _is_known(session, *parts):
        return parts
    if _is_known(session, name):
        return name, None
    if parts and _is_known(session, parts[0]):
        raise MetaharvestError(
            f"No revision {parts[1]} of {parts[0]} is known: `metaharvest documents show {parts[0]}`."
        )
    raise UnknownDocument(
        f"No document '{one_line(name)}' is known: no site lists it, the log does not name it, and the repository "
        f"does not have it.{did_you_mean(session, name)} `metaharvest documents` lists the documents of all sites."
    )


def _is_known(session: Session, document_id: str, revision: int | None = None) -> bool:
    tables: list[Any] = [HarvestDocument, HarvestLog, DocumentRevision]
    if revision is None:
        tables += [DocumentOwner, DocumentTransfer]
    for table in tables:
        query = select(table.document_id).where(*_about(table, document_id, revision)).limit(1)
        # Compared here too: MariaDB ignores spaces at the end.
        if session.scalar(query) == document_id:
            return True
    return False


def _about(table: Any, document_id: str, revision: int | None) -> list[ColumnElement[bool]]:
    """Rows about this document, in a form for which each table has an index."""
    conditions: list[ColumnElement[bool]] = [table.document_id == document_id]
    if revision is not None:
        conditions.append(table.revision == revision)
    if table is HarvestLog:
        # Transfers, which have no revision, and the rows that were imported from another harvester belong to no site
        # run.
        taken_over = and_(HarvestLog.site_run_id.is_(None), HarvestLog.revision.is_not(None))
        conditions.append(or_(HarvestLog.site_run_id.in_(select(HarvestSiteRun.site_run_id)), taken_over))
    if table is HarvestDocument:
        conditions.append(HarvestDocument.site_schedule_id.in_(select(HarvestSiteRun.site_schedule_id)))
    return conditions


def _rows(
    session: Session,
    table: Any,
    document_id: str,
    names: str,
    revision: int | None = None,
    also: Sequence[ColumnElement[Any]] = (),
) -> list[Record]:
    [key] = table.__table__.primary_key
    query = select(*columns(table, names), *also).where(*_about(table, document_id, revision)).order_by(key)
    return [dict(row) for row in session.execute(query).mappings()]


def _owners(
    session: Session, document_id: str, names: Mapping[int, str], registered: Mapping[int, str]
) -> Iterator[Record]:
    highest: InstrumentedAttribute[int] = DocumentRevision.revision
    embedded = select(DocumentRevision.site_schedule_id).where(DocumentRevision.document_id == document_id)
    of_highest = session.execute(embedded.order_by(highest.desc()).limit(1)).first()
    other = session.execute(
        select(DocumentOwner.site_schedule_id).where(DocumentOwner.document_id == document_id)
    ).first()
    for repository, found in (("embedded", of_highest), ("other", other)):
        if found is not None:
            number = found[0]
            site = None if number is None else names.get(number)
            yield {"repository": repository, "site": site, "site_id": number, "registered": number in registered}


def _listed(
    session: Session,
    document_id: str,
    revision: int | None,
    names: Mapping[int, str],
    registered: Mapping[int, str],
    today: date,
    events: Sequence[Record],
) -> Iterator[Record]:
    last = {(event["site_id"], event["revision"]): event for event in events if event["outcome"]}
    for row in _rows(session, HarvestDocument, document_id, _LISTED, revision, (MISSING_SINCE,)):
        number = row["site_schedule_id"]
        listed = revision_of(row)
        event = last.get((number, listed))
        was_taken = event is None or not would_be(event["outcome"], event["message"])
        yield {
            "site": names.get(number),
            "site_id": number,
            "registered": number in registered,
            "docid": docid(document_id, listed),
            "revision": listed,
            "outcome": row["outcome"],
            "repository_revision": row["target_revision"] if was_taken else None,
            "url": shown_url(row["document_url"]),
            "document_type": row["document_type"],
            "failing_since": row["failing_since"],
            "nights": nights_failing(row["failing_since"], today) if number in registered else None,
            "attempts": row["attempts"],
            "missing_since": row["missing_since"],
            "title": row["title"],
        }


def _events(session: Session, document_id: str, revision: int | None, names: Mapping[int, str]) -> list[Record]:
    """The outcome of the document in each run that processed it, with the findings of that run.

    Rows that were imported from another harvester have no outcome, and are events all the same.
    """
    query = (
        select(*columns(HarvestLog, _EVENT), HarvestSiteRun.site_name)
        .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == HarvestLog.site_run_id)
        .where(*_about(HarvestLog, document_id, revision))
        .order_by(HarvestLog.harvest_log_id)
    )
    rows = [dict(row) for row in session.execute(query).mappings()]
    listed = _rows(session, HarvestDocument, document_id, "site_schedule_id datestamp")
    stamps = {row["site_schedule_id"]: row["datestamp"] for row in listed}
    found = records_under(session, HarvestDetailLog.harvest_log_id, [row["harvest_log_id"] for row in rows], _FINDING)
    warnings: dict[tuple[int, int], list[Record]] = {}
    put_off = {row["site_run_id"] for row in rows if row["outcome"] == OutcomeKind.DEFERRED.value}
    reasons = reasons_put_off(session, put_off)
    events: list[Record] = []
    for row in rows:
        own = [with_one_name(finding) for finding in found[row["harvest_log_id"]]]
        which = (row["site_run_id"], row["revision"])
        if row["outcome"] is None and row["site_run_id"] is not None:
            # Warnings about a document that passed stay with the row of the check, before the row of the outcome.
            warnings.setdefault(which, []).extend(own)
        else:
            row["revision"] = revision_of({**row, "datestamp": stamps.get(row["site_schedule_id"])})
            event = {_NAMES.get(name, name): value for name, value in row.items()}
            if would_be(event["outcome"], event["message"]):
                event["repository_revision"] = None
            event["site"] = event["site"] or names.get(event["site_id"] or 0)
            of_all = reasons.get(row["site_run_id"], ()) if row["outcome"] == OutcomeKind.DEFERRED.value else ()
            findings = [*own, *warnings.pop(which, ())] or [*of_all]
            events.append({**event, "docid": docid(document_id, row["revision"]), "findings": findings})
    return events


def _revisions(
    session: Session, document_id: str, revision: int | None, names: Mapping[int, str], events: Sequence[Record]
) -> list[Record]:
    """The uploads to a target: the revisions in the embedded one, and the log about others; the highest first."""
    taken = (event for event in events if not would_be(event["outcome"], event["message"]))
    came_in = {event["revision"]: event for event in taken if event["outcome"] in _CAME_IN}
    found: dict[int, Record] = {}
    for row in _rows(session, DocumentRevision, document_id, _HELD, revision):
        event = came_in.pop(row["revision"], {})
        found[row["revision"]] = {
            "repository": "embedded",
            "docid": docid(document_id, row["revision"]),
            "revision": row["revision"],
            "bytes": row["size"],
            "sha256": row["sha256"],
            "inserted_at": row["inserted_at"],
            "url": row["source_url"],
            "site": names.get(row["site_schedule_id"] or 0),
            "site_id": row["site_schedule_id"],
            "run_id": event.get("run_id"),
            "harvest_date": event.get("harvest_date"),
        }
    for number, event in came_in.items():
        known = {name: event[name] for name in ("docid", "revision", "bytes", "url", "site", "site_id")}
        when = {"inserted_at": event["logged_at"], "run_id": event["run_id"], "harvest_date": event["harvest_date"]}
        found[number] = {"repository": "other", "sha256": None, **known, **when}
    return [found[number] for number in sorted(found, reverse=True)]
