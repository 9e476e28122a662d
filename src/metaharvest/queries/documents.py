"""The state of documents, over all sites: the rows of the ledger, with the findings of their last harvest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, func, or_, select, true
from sqlalchemy.orm import Session, aliased

from metaharvest.database.batches import batches, grouped
from metaharvest.database.models import (
    IS_HARVEST,
    IS_REAL,
    HarvestDetailLog,
    HarvestDocument,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
    SiteProblem,
)
from metaharvest.database.statements import place_of
from metaharvest.ledger.entries import nights
from metaharvest.ledger.records import MISSING_SINCE
from metaharvest.model import DocumentState, OutcomeKind, SiteRunStatus
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen
from metaharvest.problems.attention import MANY_DELETIONS, MISSING
from metaharvest.problems.follow import GONE, OPEN
from metaharvest.queries.log import require_rule
from metaharvest.queries.records import (
    FAILING,
    FINDING,
    StoredFinding,
    columns,
    docid,
    is_after,
    shown_revision,
)
from metaharvest.queries.runs import site_number
from metaharvest.queries.sites import last_names
from metaharvest.sites.registry import read_sites
from metaharvest.text import shown_url

_ledger = HarvestDocument

Key = tuple[int, str, int]
"""The number of a site, a document id and a revision."""

_SHARED = aliased(HarvestLog)

DOCUMENTS_AT_ONCE = 500
GOOD = (OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value, OutcomeKind.UNCHANGED.value)

_COLUMNS = (
    "harvest_document_id site_schedule_id document_id revision document_url document_type target_revision outcome "
    "failing_since attempts next_attempt datestamp title"
)
LedgerRow = Row[*tuple[Any, ...]]
LEDGER_ROWS = select(*columns(_ledger, _COLUMNS), MISSING_SINCE)
"""Rows of the ledger with the columns that `document_row` needs."""

_IS_FAILING = _ledger.failing_since.is_not(None)
_IS_MISSING = and_(_ledger.state == DocumentState.MISSING.value, _ledger.missing_since.is_not(None))


@frozen
class DocumentFilter:
    """The selection of documents; None: any.

    `nights`: failing for this number of nights or more, the first one counted. Without a site: documents of all
    registered sites; failing ones, as in the reports, only of enabled sites. `missing`: a full list of their source
    repository no longer names them. `site_ids`: only of these sites.
    """

    site: str | None = None
    failing: bool = False
    nights: int | None = None
    rule: str | None = None
    outcome: OutcomeKind | None = None
    missing: bool = False
    site_ids: Collection[int] | None = None


def as_of(session: Session, today: date) -> date:
    """The day up to which nights are counted: today, or the day of the newest harvest if it is later (`run --date`)."""
    newest = select(HarvestRun.harvest_date).where(IS_HARVEST).order_by(HarvestRun.run_id.desc()).limit(1)
    return max(today, session.scalar(newest) or today)


@frozen
class DocumentCursor:
    """The place of a document in the list of all: the next page begins after it."""

    site: str
    site_id: int
    document_id: str
    revision: int


@frozen(kw_only=True)
class DocumentRow:
    """A document with its state, and with its last `findings`, errors first. Without a site, only the target knows it.

    `revision` is None for a record that was left out. `nights` is the number of nights for which it has been failing;
    `run_id` and `harvest_date` are from the last outcome, if the log has it.
    """

    site: str | None = None
    site_id: int | None = None
    docid: str | None
    document_id: str
    revision: int | None
    outcome: str | None
    repository_revision: int | None
    url: str = ""
    document_type: str = ""
    failing_since: date | None = None
    nights: int | None = None
    attempts: int = 0
    next_attempt: date | None = None
    missing_since: date | None = None
    title: str | None
    run_id: int | None = None
    harvest_date: date | None = None
    findings: tuple[StoredFinding, ...] = ()
    cursor: DocumentCursor | None = None


MOST_COUNTED = 10_000
"""The most rows that are counted for a page."""


@frozen
class RowCount:
    """The number of documents in a list; there may be more if `is_all` is false."""

    number: int
    is_all: bool = True


def count_rows(session: Session, query: Select[*tuple[Any, ...]]) -> RowCount:
    """The number of rows of this query, up to MOST_COUNTED."""
    number = session.scalar(select(func.count()).select_from(query.limit(MOST_COUNTED + 1).subquery())) or 0
    return RowCount(min(number, MOST_COUNTED), number <= MOST_COUNTED)


def document_count(session: Session, wanted: DocumentFilter, today: date) -> RowCount:
    """The number of documents in the list without a rule. Raises MetaharvestError for an unknown site."""
    conditions = conditions_of(wanted, as_of(session, today))
    of_sites = _ledger.site_schedule_id.in_(_sites(session, wanted))
    return count_rows(session, select(_ledger.site_schedule_id).where(of_sites, *conditions))


def document_rows(
    session: Session,
    wanted: DocumentFilter,
    today: date,
    *,
    limit: int | None = None,
    after: DocumentCursor | None = None,
) -> Iterator[DocumentRow]:
    """The documents, site by site in the order of the names, each by scope, number and revision.

    With a limit or a cursor, they have the order of an index: it stays the same while documents come and go. With a
    rule, each has only the findings of it. The next page begins `after` the last document of this one. Raises
    MetaharvestError for an unknown site or rule.
    """
    if wanted.rule == MISSING:  # the log has no row of a missing record: its list does not name it
        wanted = replace(wanted, rule=None, missing=True)
    return islice(_rows(session, wanted, today, after, limit), limit)


def document_page(
    session: Session, wanted: DocumentFilter, today: date, limit: int, after: DocumentCursor | None
) -> tuple[list[DocumentRow], DocumentCursor | None]:
    """A page of the documents, and the cursor for the next one; None if there is none. Raises as `document_rows` does.

    A list of one page is by scope, number and revision, a longer one in the order of an index.
    """
    rows = list(document_rows(session, wanted, today, limit=limit + 1, after=after))
    if len(rows) > limit:
        return rows[:limit], rows[limit - 1].cursor
    if after is None:
        rows.sort(key=_place_of)
    return rows, None


def _place_of(document: DocumentRow) -> tuple[tuple[str, int], tuple[tuple[str, int, str], int]]:
    assert document.cursor is not None
    return _place(document.cursor.site_id, document.cursor.site), in_order(document.cursor)


def _rows(
    session: Session, wanted: DocumentFilter, today: date, after: DocumentCursor | None, limit: int | None
) -> Iterator[DocumentRow]:
    at_once = min(limit or DOCUMENTS_AT_ONCE, DOCUMENTS_AT_ONCE)
    if wanted.rule is not None:
        require_rule(session, wanted.rule)
    sites = sorted(_sites(session, wanted).items(), key=lambda site: _place(*site))
    if after is not None:
        sites = [site for site in sites if _place(*site) >= _place(after.site_id, after.site)]
    today = as_of(session, today)
    conditions = conditions_of(wanted, today)
    if wanted.rule is None and limit is None and after is None:
        pages = _sorted_pages(session, [site for site, _ in sites], conditions, at_once)
    elif wanted.rule is None:
        pages = _pages(session, [site for site, _ in sites], conditions, after, at_once)
    else:
        having = documents_with(session, wanted.rule)
        named = [(site, each) for site, _ in sites for each in sorted(having.get(site, ()), key=place_of)]
        pages = _named(session, named, conditions, after, at_once)
    lasting = _with_open_problem(session, wanted.rule) if wanted.rule else frozenset()
    names = dict(sites)
    for page in pages:
        last = last_outcomes(session, [row.document_id for row in page])
        for row in page:
            document = document_row(row, names, today, last)
            if wanted.rule is None:
                yield document
                continue
            own = tuple(each for each in document.findings if each.rule == wanted.rule)
            # The log of an open problem may be deleted.
            if own or (document.run_id is None and (row.site_schedule_id, row.document_id) in lasting):
                yield replace(document, findings=own)


def _place(site_id: int, name: str) -> tuple[str, int]:
    return name.lower(), site_id


def document_row(row: LedgerRow, names: Mapping[int, str], today: date, last: Mapping[Key, LastOutcome]) -> DocumentRow:
    """The document of a row of the ledger, with the findings of its last outcome."""
    site_id, revision = row.site_schedule_id, shown_revision(row.revision, row.outcome, row.datestamp)
    known = last.get((site_id, row.document_id, row.revision))
    explained = known if known is not None and known.explains(row.outcome) else None
    return record_of(
        DocumentRow,
        row,
        site=names.get(site_id),
        site_id=site_id,
        docid=docid(row.document_id, revision),
        revision=revision,
        repository_revision=row.target_revision,
        url=shown_url(row.document_url),
        nights=row.failing_since and nights(row.failing_since, today),
        run_id=explained.run_id if explained else None,
        harvest_date=explained.harvest_date if explained else None,
        findings=explained.findings if explained else (),
        cursor=DocumentCursor(names.get(site_id, ""), site_id, row.document_id, row.revision),
    )


def _sites(session: Session, wanted: DocumentFilter) -> dict[int, str]:
    numbers = searched_sites(session, wanted)
    if wanted.site is None:
        meant = [site for site in read_sites(session) if site.enabled or not wanted.failing]
        return {site.site_id: site.name for site in meant if numbers is None or site.site_id in numbers}
    names = last_names(session)
    return {number: names.get(number, wanted.site) for number in numbers or ()}


def searched_sites(session: Session, wanted: DocumentFilter) -> Collection[int] | None:
    """The numbers of the sites that the filter names; None: all sites. Raises MetaharvestError for an unknown site."""
    if wanted.site is None:
        return wanted.site_ids
    number = site_number(session, wanted.site)
    return {number} if wanted.site_ids is None else {number}.intersection(wanted.site_ids)


def conditions_of(wanted: DocumentFilter, today: date) -> list[ColumnElement[bool]]:
    """The conditions of a selection on a row of the ledger; its site and its rule are not among them."""
    conditions: list[ColumnElement[bool]] = []
    if wanted.outcome is not None:
        conditions.append(_ledger.outcome == wanted.outcome.value)
    if wanted.nights is not None:
        conditions.append(_ledger.failing_since <= today - timedelta(days=wanted.nights - 1))
    elif wanted.failing or wanted.outcome in FAILING:
        conditions.append(_IS_FAILING)
    if wanted.missing:
        conditions.append(_IS_MISSING)
    return conditions


SORTED = 500
"""Fewer rows of one site are put into the order of documents, in which no index has them."""

_ROWS = LEDGER_ROWS.order_by(_ledger.document_id, _ledger.revision)


def _sorted_pages(
    session: Session, sites: Sequence[int], conditions: Sequence[ColumnElement[bool]], at_once: int
) -> Iterator[Sequence[LedgerRow]]:
    """As `_pages`, but fewer than SORTED rows of a site are in the order of documents."""
    for site_id in sites:
        query = _ROWS.where(_ledger.site_schedule_id == site_id, *conditions)
        rows = session.execute(query.limit(SORTED)).all()
        if len(rows) < SORTED:
            yield from batches(sorted(rows, key=in_order), at_once)
        else:
            yield from _pages(session, [site_id], conditions, None, at_once)


def _pages(
    session: Session,
    sites: Sequence[int],
    conditions: Sequence[ColumnElement[bool]],
    after: DocumentCursor | None,
    at_once: int,
) -> Iterator[Sequence[LedgerRow]]:
    """The rows of these sites in the order of an index, in groups of this number of one site."""
    for site_id in sites:
        begin = after if after is not None and after.site_id == site_id else None
        query = _ROWS.where(_ledger.site_schedule_id == site_id, *conditions)
        page = session.execute(_following(query, begin).limit(at_once)).all()
        while page:
            yield page
            is_last = len(page) < at_once
            page = [] if is_last else session.execute(_following(query, page[-1]).limit(at_once)).all()


def in_order(row: DocumentCursor | LedgerRow) -> tuple[tuple[str, int, str], int]:
    """The place of a document among those of its site: by scope, number and revision."""
    return place_of(row.document_id), row.revision


def _named(
    session: Session,
    named: Sequence[tuple[int, str]],
    conditions: Sequence[ColumnElement[bool]],
    after: DocumentCursor | None,
    at_once: int,
) -> Iterator[Sequence[LedgerRow]]:
    """The rows of these documents, each with its site, in groups: a rule has few documents of each of many sites."""
    if after is not None:
        begin = place_of(after.document_id)
        named = [each for each in named if each[0] != after.site_id or place_of(each[1]) >= begin]
    for batch in batches(named, at_once):
        places = {each: place for place, each in enumerate(batch)}
        query = _ROWS.where(
            _ledger.site_schedule_id.in_({site_id for site_id, _ in batch}),
            _ledger.document_id.in_({document_id for _, document_id in batch}),
            *conditions,
        )
        if after is not None and batch[0] == (after.site_id, after.document_id):
            is_other = or_(_ledger.site_schedule_id != after.site_id, _ledger.document_id != after.document_id)
            query = query.where(or_(is_other, _ledger.revision > after.revision))
        # Two of the sites may have one document, and only one of them the finding.
        rows = [row for row in session.execute(query) if (row.site_schedule_id, row.document_id) in places]
        yield sorted(rows, key=lambda row: (places[row.site_schedule_id, row.document_id], row.revision))


def _following(query: Select[*tuple[Any, ...]], last: DocumentCursor | LedgerRow | None) -> Select[*tuple[Any, ...]]:
    """The rows after this document and revision."""
    if last is None:
        return query
    return query.where(is_after((_ledger.document_id, last.document_id), (_ledger.revision, last.revision)))


# -- the findings of the last harvest: the reasons for the state of documents


@frozen
class LastOutcome:
    """The last outcome of a document in the log, with its run and its findings, errors first."""

    site_run_id: int
    run_id: int
    harvest_date: date
    outcome: str
    findings: tuple[StoredFinding, ...] = ()

    def explains(self, outcome: str | None) -> bool:
        """True if it matches the outcome in the ledger. The log has no row for an unchanged document."""
        return outcome == self.outcome or (outcome in GOOD and self.outcome in GOOD)


def last_outcomes(session: Session, document_ids: Iterable[str]) -> dict[Key, LastOutcome]:
    """The last outcome of each of these documents (at most DOCUMENTS_AT_ONCE) at each site that lists it."""
    log, site = HarvestLog, HarvestSiteRun.site_schedule_id
    with_site_run = HarvestSiteRun.site_run_id == log.site_run_id
    newest = (
        select(func.max(log.harvest_log_id))
        .join(HarvestSiteRun, with_site_run)
        .where(
            log.document_id.in_(list(dict.fromkeys(document_ids))),
            log.outcome.is_not(None),
            log.outcome != OutcomeKind.DUPLICATE.value,
            IS_REAL,
        )
        .group_by(site, log.document_id, log.revision)
    )
    numbers = list(session.scalars(newest))
    rows = select(site, *columns(log, "document_id revision site_run_id run_id harvest_date outcome"))
    rows = rows.join(HarvestSiteRun, with_site_run)
    chosen = session.execute(rows.where(log.harvest_log_id.in_(numbers))).all() if numbers else []
    last = {(row[0], row[1], row[2]): LastOutcome(*row[3:]) for row in chosen}
    found = _findings(session, last)
    return {key: replace(each, findings=tuple(found.get(key, ()))) for key, each in last.items()}


def is_open_problem(rule: str | None, its: type[SiteProblem] = SiteProblem) -> list[ColumnElement[bool]]:
    """The conditions of an open problem of this rule with a document."""
    return [its.state == OPEN, its.rule == rule, its.document_id.is_not(None)]


def _with_open_problem(session: Session, rule: str) -> frozenset[tuple[int, str]]:
    """The documents with an open problem of this rule: site and document id."""
    columns = (SiteProblem.site_schedule_id, SiteProblem.document_id)
    rows = session.execute(select(*columns).where(*is_open_problem(rule)))
    return frozenset((int(row[0]), str(row[1])) for row in rows)


def documents_with(session: Session, rule: str) -> dict[int, list[str]]:
    """The documents whose last findings may be of this rule, by site: all that have such a finding, and some others.

    Most findings are problems. The log is read only for the others: findings that no night repeats, the common reason
    of documents that were put off, which counts for each of them, and findings of site runs that are not closed yet.
    """
    log, detail, shared, problem = HarvestLog, HarvestDetailLog, _SHARED, SiteProblem
    # A problem that ended without a repair may still be the last finding, for instance of an old revision.
    problems = select(problem.site_schedule_id, problem.document_id).where(
        problem.state.in_((OPEN, GONE)), problem.rule == rule, problem.document_id.is_not(None)
    )
    # Few site runs have these states, and an index has the states.
    newest_not_closed = (
        select(func.max(HarvestSiteRun.site_run_id))
        .where(HarvestSiteRun.status.in_([SiteRunStatus.RUNNING.value, SiteRunStatus.INTERRUPTED.value]))
        .group_by(HarvestSiteRun.site_schedule_id, HarvestSiteRun.status)
    )
    not_closed = session.scalars(newest_not_closed).all()
    own = (
        select(log.site_schedule_id, log.document_id)
        .join(detail, detail.harvest_log_id == log.harvest_log_id)
        .where(
            detail.rule == rule,
            log.document_id.is_not(None),
            log.site_run_id.is_not(None),
        )
    )
    put_off = (
        select(log.site_schedule_id, log.document_id)
        .join(shared, shared.site_run_id == log.site_run_id)
        .join(detail, detail.harvest_log_id == shared.harvest_log_id)
        .where(
            detail.rule == rule,
            true() if rule == MANY_DELETIONS else detail.fingerprint.is_(None),
            shared.document_id.is_(None),
            shared.harvest_operation_code == "DocDeferred",
            log.outcome == OutcomeKind.DEFERRED.value,
        )
    )
    without_problem = select(detail.detail_log_id).where(detail.rule == rule, detail.fingerprint.is_(None)).limit(1)
    has_others = session.scalar(without_problem) is not None
    queries: list[Select[*tuple[Any, ...]]] = [problems]
    if has_others:
        queries.append(own.where(detail.fingerprint.is_(None)))
    if not_closed:
        queries.append(own.where(log.site_run_id.in_(not_closed)))
    if has_others or rule == MANY_DELETIONS:
        queries.append(put_off)
    found: dict[int, set[str]] = {}
    for query in queries:
        for site_id, document_id in session.execute(query.distinct()):
            if site_id is not None and document_id is not None:
                found.setdefault(site_id, set()).add(document_id)
    return {site_id: sorted(documents) for site_id, documents in found.items()}


def _findings(session: Session, last: Mapping[Key, LastOutcome]) -> dict[Key, list[StoredFinding]]:
    """The findings of these outcomes, errors first; for documents that were put off, the common reason."""
    if not last:
        return {}
    log, detail = HarvestLog, HarvestDetailLog
    query = (
        select(HarvestSiteRun.site_schedule_id, *columns(log, "document_id revision site_run_id"), *FINDING)
        .join(HarvestSiteRun, HarvestSiteRun.site_run_id == log.site_run_id)
        .join(detail, detail.harvest_log_id == log.harvest_log_id)
        .where(
            log.site_run_id.in_({each.site_run_id for each in last.values()}),
            log.document_id.in_({document_id for _, document_id, _ in last}),
            or_(log.outcome != OutcomeKind.DUPLICATE.value, log.outcome.is_(None)),
        )
        .order_by(detail.detail_log_id)
    )
    found: dict[Key, list[StoredFinding]] = {}
    for site_id, document_id, revision, site_run_id, *finding in session.execute(query):
        key = (site_id, document_id, revision)
        if (each := last.get(key)) and each.site_run_id == site_run_id:
            found.setdefault(key, []).append(StoredFinding(*finding))
    put_off = {
        key: each.site_run_id
        for key, each in last.items()
        if each.outcome == OutcomeKind.DEFERRED.value and key not in found
    }
    reasons = reasons_put_off(session, set(put_off.values()))
    found |= {key: reasons.get(site_run_id, []) for key, site_run_id in put_off.items()}
    return {key: sorted(records, key=lambda record: record.level != "error") for key, records in found.items()}


def reasons_put_off(session: Session, site_run_ids: Collection[int]) -> dict[int, list[StoredFinding]]:
    """The common reasons why documents of these site runs were put off."""
    if not site_run_ids:
        return {}
    log, detail = HarvestLog, HarvestDetailLog
    query: Select[*tuple[Any, ...]] = (
        select(log.site_run_id, *FINDING)
        .join(detail, detail.harvest_log_id == log.harvest_log_id)
        .where(
            log.site_run_id.in_(site_run_ids),
            log.document_id.is_(None),
            log.harvest_operation_code == "DocDeferred",
        )
        .order_by(detail.detail_log_id)
    )
    rows = session.execute(query)
    return grouped((site_run_id or 0, StoredFinding(*finding)) for site_run_id, *finding in rows)
