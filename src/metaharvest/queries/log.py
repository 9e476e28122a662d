"""The log, row by row, each with the findings that belong to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import date, datetime
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, exists, false, func, or_, select, true
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from metaharvest.database.models import (
    DocumentTransfer,
    HarvestDetailLog,
    HarvestLog,
    HarvestOperation,
    HarvestRun,
    HarvestSiteRun,
)
from metaharvest.database.operations import OPERATIONS
from metaharvest.errors import MetaharvestError
from metaharvest.model import LOG_LEVELS, RunStatus
from metaharvest.model.values import frozen
from metaharvest.queries import runs
from metaharvest.queries.records import FINDING, StoredFinding, columns, docid, is_named, parts_of_docid
from metaharvest.queries.sites import known_names

_ROWS_AT_ONCE = 500
_FEW = 50_000
"""Rows that are sorted quickly."""

_TRANSFER = "UpdateDocSuccess"
_ANY_FINDING = aliased(HarvestDetailLog, name="any_finding")
_ANY_OPERATION = aliased(HarvestOperation, name="any_operation")
"""For conditions: the selected columns beside a row may be fewer."""


@frozen
class LogFilter:
    """The selection of log rows; None: any.

    `level` and graver ones; `rule` of a finding; `since` and `until` are days of harvests, both included; the last
    `limit` rows. `document` is a document id, or a docid. A site means the same site under each of its names. Without a
    selection of runs (a run, a site run, a rule, a day, a document): the newest run, of the site if one is named.
    `after` is the `log_id` of the first row of a page: the next page has the rows before it. It goes with a selection
    of runs, as another run may be the newest one by then.
    """

    run_id: int | None = None
    site_run_id: int | None = None
    site: str | None = None
    document: str | None = None
    level: str | None = "info"
    limit: int | None = None
    rule: str | None = None
    since: date | None = None
    until: date | None = None
    after: int | None = None

    @property
    def is_over_runs(self) -> bool:
        """True if the filter is for rows of all runs."""
        narrowed = (self.document, self.rule, self.since, self.until)
        return self.run_id is None and self.site_run_id is None and any(each is not None for each in narrowed)


@frozen
class LogSelection:
    """The conditions of a filter: for rows of the log, and for their findings.

    `transfers` is the condition for transfers of documents without a row in the log: those before the first run.
    """

    rows: tuple[ColumnElement[bool], ...]
    findings: ColumnElement[bool]
    transfers: tuple[ColumnElement[bool], ...]


@frozen
class LogScope:
    """The run, or the site run, of the rows; neither: rows of all runs, or no rows."""

    run_id: int | None
    site_run_id: int | None


@frozen(kw_only=True)
class LoggedFinding(StoredFinding):
    """A finding of a row of the log. `document_id` is the document that an entry of a list names, if there is one."""

    document_id: str | None


@frozen(kw_only=True)
class LogEntry:
    """A row of the log: `level` is the level of its operation (empty if unknown), `site` its name at that time.

    `log_id` and `run_id` are None for a transfer of a document before the first run.
    """

    log_id: int | None
    logged_at: datetime
    harvest_date: date
    level: str
    status: int
    operation: str
    message: str
    run_id: int | None
    site_run_id: int | None
    site: str | None
    site_id: int | None
    document_id: str | None
    revision: int | None
    url: str | None
    outcome: str | None
    repository_revision: int | None
    seconds: float | None
    bytes: int | None
    findings: tuple[LoggedFinding, ...] = ()

    @property
    def docid(self) -> str | None:
        """Document id and revision as people write them."""
        return docid(self.document_id, self.revision)

    @property
    def own_message(self) -> str:
        """The message without the texts of the findings below it."""
        message = self.message
        for finding in self.findings:
            if len(finding.message) < len(message):
                message = message.removesuffix(finding.message).rstrip()
        return message


_NAMES = tuple(each.name for each in fields(LogEntry) if each.name != "findings")


def of_one_run(session: Session, wanted: LogFilter) -> LogFilter:
    """The filter with the run that it means, as another run may be the newest one when the next page is read.

    Raises MetaharvestError for an unknown run or site.
    """
    scope = log_scope(session, wanted)
    if scope.site_run_id is not None:
        return replace(wanted, run_id=None, site=None, site_run_id=scope.site_run_id)
    if scope.run_id is None and not wanted.is_over_runs and wanted.site is None:
        return replace(wanted, run_id=session.scalar(select(func.max(HarvestRun.run_id))))
    return wanted


def log_scope(session: Session, wanted: LogFilter) -> LogScope:
    """The run, or the site run, that the filter names, if it does. Raises MetaharvestError for unknown ones.

    Neither, if it names a site that no run has harvested yet.
    """
    if wanted.site_run_id is not None:
        runs.require_site_run(session, wanted.site_run_id)
        return LogScope(None, wanted.site_run_id)
    if wanted.run_id is not None:
        runs.require_run(session, wanted.run_id)
    if wanted.site is None or wanted.is_over_runs or runs.is_imported(session, wanted.run_id):
        return LogScope(wanted.run_id, None)
    if wanted.run_id is None:
        return LogScope(None, runs.newest_site_run_id_if_any(session, wanted.site))
    return LogScope(None, runs.site_run_id_of(session, wanted.run_id, wanted.site))


def log_selection(session: Session, wanted: LogFilter) -> LogSelection:
    """The conditions of the filter, for `log_entries` and for a table. Raises MetaharvestError for unknown names."""
    if wanted.rule is not None:
        require_rule(session, wanted.rule)
    wanted = of_one_run(session, wanted)
    rows = _narrowed(session, wanted)
    transfers: list[ColumnElement[bool]] = [false()]
    of_one: ColumnElement[bool] | None = None
    if wanted.site_run_id is not None:
        rows.append(of_one := HarvestLog.site_run_id == wanted.site_run_id)
    elif wanted.run_id is not None:
        rows.append(of_one := HarvestLog.run_id == wanted.run_id)
        if wanted.site is not None:
            rows.append(HarvestLog.site_schedule_id == runs.site_number(session, wanted.site))
    elif wanted.is_over_runs:
        transfers = _transfers(session, wanted)
        if wanted.site is not None:
            rows.append(_of_site(session, runs.site_number(session, wanted.site)))
    elif wanted.site is not None:
        rows = [false()]
    else:
        rows, transfers = [false()], _transfers(session, wanted)
    if wanted.limit is not None:
        rows += _last(session, rows, wanted.limit, of_one)
    meant = true() if wanted.rule is None else HarvestDetailLog.rule == wanted.rule
    return LogSelection(tuple(rows), meant, tuple(transfers))


def log_entries(session: Session, wanted: LogFilter) -> Iterator[LogEntry]:
    """The rows in the order in which they were written; with a limit, the last ones. Raises MetaharvestError.

    Transfers before the first run are few, and older than every row: all of them come with the last page.
    """
    selection = log_selection(session, wanted)
    entries = list(_entries(session, selection)) if wanted.limit is not None else _entries(session, selection)
    if isinstance(entries, list) and len(entries) == wanted.limit:
        return iter(entries)
    return chain(_transfer_entries(session, selection), entries)


def _entries(session: Session, selection: LogSelection) -> Iterator[LogEntry]:
    log, detail = HarvestLog, HarvestDetailLog
    statement = (
        select(
            *columns(log, "harvest_log_id logged_at harvest_date"),
            func.coalesce(HarvestOperation.level, ""),
            *columns(log, "status harvest_operation_code message run_id site_run_id"),
            HarvestSiteRun.site_name,
            *columns(log, "site_schedule_id document_id revision document_url outcome target_revision seconds size"),
            detail.detail_log_id,
            detail.document_id,
            *FINDING,
        )
        .select_from(log)
        .outerjoin(HarvestOperation, HarvestOperation.harvest_operation_code == log.harvest_operation_code)
        .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == log.site_run_id)
        .outerjoin(detail, and_(detail.harvest_log_id == log.harvest_log_id, selection.findings))
        .where(*selection.rows)
        .order_by(log.harvest_log_id, detail.detail_log_id)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    width = len(_NAMES)
    imported = _sites_of_imported(session)
    for _, rows in groupby(session.connection().execute(statement), key=itemgetter(0)):
        first, *more = rows
        findings = tuple(
            LoggedFinding(*row[width + 2 :], document_id=row[width + 1])
            for row in (first, *more)
            if row[width] is not None
        )
        values = dict(zip(_NAMES, first[:width], strict=True))
        values["site"] = values["site"] or imported.get((values["run_id"], values["site_id"]))
        yield LogEntry(**values, findings=findings)


def _sites_of_imported(session: Session) -> dict[tuple[int, int], str]:
    """The names of sites by run and number, for the runs that hold the log of another harvester."""
    imported = session.scalars(select(HarvestRun.run_id).where(HarvestRun.status == RunStatus.IMPORTED.value)).all()
    names = known_names(session) if imported else {}
    return {(run_id, site_id): name for run_id in imported for site_id, name in names.items()}


def _transfer_entries(session: Session, selection: LogSelection) -> Iterator[LogEntry]:
    """Transfers of documents before the first run, as rows of the log."""
    query = select(DocumentTransfer).where(*selection.transfers).order_by(DocumentTransfer.transfer_id)
    for transfer in session.scalars(query).all():
        known: dict[str, Any] = {
            "logged_at": transfer.transferred_at,
            "harvest_date": transfer.transferred_on,
            "level": OPERATIONS[_TRANSFER][0],
            "status": 0,
            "operation": _TRANSFER,
            "message": transfer.message,
            "site_id": transfer.from_site_id,
            "document_id": transfer.document_id,
        }
        yield LogEntry(**{**dict.fromkeys(_NAMES), **known})


def _narrowed(session: Session, wanted: LogFilter) -> list[ColumnElement[bool]]:
    conditions = _of_days(HarvestLog.harvest_date, wanted)
    if wanted.level not in (None, LOG_LEVELS[-1]):
        levels = LOG_LEVELS[: LOG_LEVELS.index(wanted.level) + 1]
        codes = select(_ANY_OPERATION.harvest_operation_code).where(_ANY_OPERATION.level.in_(levels))
        its = _ANY_FINDING.harvest_log_id == HarvestLog.harvest_log_id, _ANY_FINDING.level.in_(levels)
        conditions.append(or_(HarvestLog.harvest_operation_code.in_(codes), exists().where(*its)))
    if wanted.rule is not None:
        of_rule = select(_ANY_FINDING.harvest_log_id).where(_ANY_FINDING.rule == wanted.rule)
        conditions.append(HarvestLog.harvest_log_id.in_(of_rule))
    if wanted.document is not None:
        conditions.append(_is_about(session, wanted.document))
    if wanted.after is not None:
        conditions.append(HarvestLog.harvest_log_id < wanted.after)
    return conditions


def _of_days(day: InstrumentedAttribute[date], wanted: LogFilter) -> list[ColumnElement[bool]]:
    since = [] if wanted.since is None else [day >= wanted.since]
    return since if wanted.until is None else [*since, day <= wanted.until]


def _is_about(session: Session, name: str) -> ColumnElement[bool]:
    """The condition that a row, or a finding without a document, is about this one: a document id, or a docid."""
    log, finding = HarvestLog, _ANY_FINDING
    # Read first: PostgreSQL reads the whole log for a condition with OR and a subquery.
    of_list = select(log.harvest_log_id).join(finding, finding.harvest_log_id == log.harvest_log_id)
    in_lists = session.scalars(of_list.where(log.document_id.is_(None), finding.document_id == name)).all()
    about = is_named(name)
    return or_(about, log.harvest_log_id.in_(_written_out(in_lists))) if in_lists else about


def _written_out(numbers: Sequence[int]) -> BindParameter[Sequence[int]]:
    """Numbers as a part of the statement, as the number of parameters has a limit."""
    return bindparam(None, numbers, expanding=True, literal_execute=True)


def _of_site(session: Session, number: int) -> ColumnElement[bool]:
    """Rows of a site: of all its runs, imported ones, and transfers from it or to it."""
    its_own = HarvestSiteRun.site_schedule_id == number
    its_runs = session.scalars(select(HarvestSiteRun.site_run_id).where(its_own)).all()
    transferred = exists().where(
        DocumentTransfer.document_id == HarvestLog.document_id,
        DocumentTransfer.transferred_at == HarvestLog.logged_at,
        or_(DocumentTransfer.from_site_id == number, DocumentTransfer.to_site_id == number),
    )
    of_no_run = and_(HarvestLog.site_run_id.is_(None), or_(HarvestLog.site_schedule_id == number, transferred))
    return or_(HarvestLog.site_run_id.in_(_written_out(its_runs)), of_no_run)


def _transfers(session: Session, wanted: LogFilter) -> list[ColumnElement[bool]]:
    """The condition for transfers before the first run: they have the level info, and no finding."""
    shown = wanted.level is None or LOG_LEVELS.index(wanted.level) >= LOG_LEVELS.index(OPERATIONS[_TRANSFER][0])
    if not shown or wanted.rule is not None:
        return [false()]
    conditions = [DocumentTransfer.run_id.is_(None), *_of_days(DocumentTransfer.transferred_on, wanted)]
    if wanted.document is not None:
        parts = parts_of_docid(wanted.document)
        conditions.append(DocumentTransfer.document_id.in_([wanted.document, *(parts[:1] if parts else ())]))
    if wanted.site is not None:
        number = runs.site_number(session, wanted.site)
        conditions.append(or_(DocumentTransfer.from_site_id == number, DocumentTransfer.to_site_id == number))
    return conditions


def _last(
    session: Session, rows: Sequence[ColumnElement[bool]], number: int, of_one: ColumnElement[bool] | None
) -> list[ColumnElement[bool]]:
    """The additional conditions for the last `number` rows; `of_one`: the condition for a run or a site run."""
    order: ColumnElement[int] = HarvestLog.harvest_log_id.expression
    if of_one is not None and _has_few(session, of_one):
        # The index of the log's order is hidden: PostgreSQL would read the whole log if few of these rows match.
        order = order + 0
    query = select(HarvestLog.harvest_log_id).where(*rows).order_by(order.desc())
    found = session.scalars(query.limit(number)).all()
    return [HarvestLog.harvest_log_id.between(found[-1], found[0])] if found else [false()]


def _has_few(session: Session, of_one: ColumnElement[bool]) -> bool:
    """True if a run or a site run has few rows in the log, so that these can be sorted."""
    some = select(HarvestLog.harvest_log_id).where(of_one).limit(_FEW + 1).subquery()
    return (session.scalar(select(func.count()).select_from(some)) or 0) <= _FEW


def require_rule(session: Session, rule: str) -> None:
    """Raises MetaharvestError if neither this program nor the log knows this rule."""
    from difflib import get_close_matches

    from metaharvest.rules import RULES

    if rule in RULES or session.scalar(select(HarvestDetailLog.rule).where(HarvestDetailLog.rule == rule).limit(1)):
        return
    close = get_close_matches(rule, RULES, 3)
    meant = f"Did you mean {', '.join(close)}?" if close else "docs/rules.md lists all of them."
    raise MetaharvestError(f"There is no rule '{rule}'. {meant}")
