"""The state of documents, over all sites: the rows of the ledger, with the last findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.models import IS_HARVEST, HarvestDocument, HarvestRun
from metaharvest.ledger.entries import nights
from metaharvest.ledger.records import MISSING_SINCE
from metaharvest.model import ERROR_OUTCOMES, OutcomeKind
from metaharvest.problems.attention import MISSING
from metaharvest.queries.last_findings import (
    DOCUMENTS_AT_ONCE,
    GOOD,
    LastOutcome,
    documents_with,
    documents_with_findings,
    last_outcomes,
)
from metaharvest.queries.log import require_rule
from metaharvest.queries.records import StoredFinding, columns, docid, shown_revision
from metaharvest.queries.runs import site_number
from metaharvest.queries.sites import last_names
from metaharvest.sites.registry import read_sites
from metaharvest.text import shown_url

_FAILING = {*ERROR_OUTCOMES, OutcomeKind.DEFERRED}
_COLUMNS = (
    "document_id revision document_url document_type target_revision outcome failing_since attempts next_attempt "
    "datestamp title"
)
_LedgerRow = Row[*tuple[Any, ...]]
_ledger = HarvestDocument
_IS_FAILING = _ledger.failing_since.is_not(None)
_IS_MISSING = MISSING_SINCE.is_not(None)


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    """The selection of documents; None: any.

    `nights`: failing for this number of nights or more, the first one counted. Without a site: those of all registered
    ones; failing ones, as the reports have them, of enabled sites. `missing`: a full list of their source repository no
    longer names them.
    """

    site: str | None = None
    failing: bool = False
    nights: int | None = None
    rule: str | None = None
    outcome: OutcomeKind | None = None
    missing: bool = False


def nights_failing(since: date | None, today: date) -> int | None:
    """The number of nights for which a document has been failing; None if it is not."""
    return None if since is None else nights(since, today)


def as_of(session: Session, today: date) -> date:
    """The day up to which nights are counted: today, or that of the newest harvest if it is later (`run --date`)."""
    newest = select(HarvestRun.harvest_date).where(IS_HARVEST).order_by(HarvestRun.run_id.desc()).limit(1)
    return max(today, session.scalar(newest) or today)


@dataclass(frozen=True, slots=True)
class DocumentCursor:
    """The place of a document in the list of all: the next page begins after it."""

    site: str
    site_id: int
    document_id: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRow:
    """A listed document with its state, and with its last `findings`, errors first.

    `revision` is None for a record that was left out. `nights` is the number of nights for which it has been failing;
    `run_id` and `harvest_date` are those of the last outcome, if the log has it.
    """

    site: str
    site_id: int
    docid: str | None
    document_id: str
    revision: int | None
    outcome: str | None
    repository_revision: int | None
    url: str
    document_type: str
    failing_since: date | None
    nights: int | None
    attempts: int
    next_attempt: date | None
    missing_since: date | None
    title: str | None
    run_id: int | None
    harvest_date: date | None
    findings: tuple[StoredFinding, ...]
    cursor: DocumentCursor


def document_rows(
    session: Session,
    wanted: DocumentFilter,
    today: date,
    *,
    limit: int | None = None,
    after: DocumentCursor | None = None,
) -> Iterator[DocumentRow]:
    """The documents, site by site in the order of the names, each in the order of ids and revisions.

    With a rule, each has only the findings of it. The next page begins `after` the last document of this one. Raises
    MetaharvestError for an unknown site or rule.
    """
    if wanted.rule == MISSING:  # the log has no row of a missing record: its list does not name it
        wanted = replace(wanted, rule=None, missing=True)
    return islice(_rows(session, wanted, today, after), limit)


def _rows(session: Session, wanted: DocumentFilter, today: date, after: DocumentCursor | None) -> Iterator[DocumentRow]:
    if wanted.rule is not None:
        require_rule(session, wanted.rule)
    sites = sorted(_sites(session, wanted).items(), key=lambda site: _place(*site))
    if after is not None:
        sites = [site for site in sites if _place(*site) >= _place(after.site_id, after.site)]
    having = documents_with(session, wanted.rule) if wanted.rule is not None else None
    today = as_of(session, today)
    conditions = _conditions(wanted, today)
    for site_id, name in sites:
        with_findings = None if having is None else set(having.get(site_id, ()))
        named = None if with_findings is None else sorted(with_findings)
        begin = after if after is not None and after.site_id == site_id else None
        for page in _pages(session, site_id, conditions, named, begin):
            if with_findings is None and any(row.outcome in GOOD for row in page):
                with_findings = documents_with_findings(session, site_id)
            about = [
                row.document_id for row in page if row.outcome not in GOOD or row.document_id in (with_findings or ())
            ]
            last = last_outcomes(session, site_id, about) if about else {}
            for row in page:
                known = last.get((row.document_id, row.revision))
                explained = known if known is not None and known.explains(row.outcome) else None
                findings = tuple(each for each in explained.findings if _is_meant(each, wanted)) if explained else ()
                if findings or wanted.rule is None:
                    place = DocumentCursor(name, site_id, row.document_id, row.revision)
                    yield _document(row, place, today, explained, findings)


def _place(site_id: int, name: str) -> tuple[str, int]:
    """The place of a site in the list."""
    return name.lower(), site_id


def _is_meant(finding: StoredFinding, wanted: DocumentFilter) -> bool:
    return wanted.rule in (None, finding.rule)


def _document(
    row: _LedgerRow, place: DocumentCursor, today: date, last: LastOutcome | None, findings: tuple[StoredFinding, ...]
) -> DocumentRow:
    revision = shown_revision(row.revision, row.outcome, row.datestamp)
    return DocumentRow(
        site=place.site,
        site_id=place.site_id,
        docid=docid(row.document_id, revision),
        document_id=row.document_id,
        revision=revision,
        outcome=row.outcome,
        repository_revision=row.target_revision,
        url=shown_url(row.document_url),
        document_type=row.document_type,
        failing_since=row.failing_since,
        nights=nights_failing(row.failing_since, today),
        attempts=row.attempts,
        next_attempt=row.next_attempt,
        missing_since=row.missing_since,
        title=row.title,
        run_id=last.run_id if last else None,
        harvest_date=last.harvest_date if last else None,
        findings=findings,
        cursor=place,
    )


def _sites(session: Session, wanted: DocumentFilter) -> dict[int, str]:
    if wanted.site is None:
        return {site.site_id: site.name for site in read_sites(session) if site.enabled or not wanted.failing}
    number = site_number(session, wanted.site)
    return {number: last_names(session).get(number, wanted.site)}


def _conditions(wanted: DocumentFilter, today: date) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.outcome is not None:
        conditions.append(_ledger.outcome == wanted.outcome.value)
    if wanted.nights is not None:
        conditions.append(_ledger.failing_since <= today - timedelta(days=wanted.nights - 1))
    elif wanted.failing or wanted.outcome in _FAILING:
        conditions.append(_IS_FAILING)
    if wanted.missing:
        conditions.append(_IS_MISSING)
    return conditions


def _pages(
    session: Session,
    site_id: int,
    conditions: Sequence[ColumnElement[bool]],
    named: Sequence[str] | None,
    after: DocumentCursor | None,
) -> Iterator[Sequence[_LedgerRow]]:
    """The rows of a site after this one, in groups of some hundred. `named`: only the rows of these documents."""
    query = (
        select(*columns(_ledger, _COLUMNS), MISSING_SINCE)
        .where(_ledger.site_schedule_id == site_id, *conditions)
        .order_by(_ledger.document_id, _ledger.revision)
    )
    if named is not None:
        for batch in batches(named, DOCUMENTS_AT_ONCE):
            some = _following(query, after).where(_ledger.document_id.in_(batch))
            yield session.execute(some).all()
        return
    page: Sequence[_LedgerRow] = session.execute(_following(query, after).limit(DOCUMENTS_AT_ONCE)).all()
    while page:
        yield page
        is_last = len(page) < DOCUMENTS_AT_ONCE
        following = _following(query, page[-1]).limit(DOCUMENTS_AT_ONCE)
        page = [] if is_last else session.execute(following).all()


def _following(query: Select[*tuple[Any, ...]], last: DocumentCursor | _LedgerRow | None) -> Select[*tuple[Any, ...]]:
    """The rows after this document and revision."""
    if last is None:
        return query
    is_later = or_(
        _ledger.document_id > last.document_id,
        and_(_ledger.document_id == last.document_id, _ledger.revision > last.revision),
    )
    # Repeated, for databases that use an index only for a condition on every row.
    return query.where(_ledger.document_id >= last.document_id, is_later)
