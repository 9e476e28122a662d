"""The documents that a site report only names: repaired, new, updated and unchanged ones.

Each kind is a number and the first few documents, so that a site with a million of them costs no more than a small one.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, bindparam, case, func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestDocument, HarvestLog, HarvestSiteRun, SiteCheckpoint
from metaharvest.database.statements import by_document
from metaharvest.model import ERROR_OUTCOMES, OutcomeKind, SiteRunKind
from metaharvest.model.values import frozen
from metaharvest.reports.findings import ITS_ENTRY, MAX_TITLE
from metaharvest.reports.phrasing import docid_of
from metaharvest.text import one_line, shown_url

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_UNCHANGED = (
    select(_LEDGER.c.document_id, _LEDGER.c.revision, _LEDGER.c.document_url, _LEDGER.c.target_revision)
    .where(_LEDGER.c.site_schedule_id == bindparam("site"), _LEDGER.c.outcome == OutcomeKind.UNCHANGED.value)
    .order_by(
        case((_LEDGER.c.target_revision > _LEDGER.c.revision, 0), else_=1),
        *by_document(_LEDGER.c.document_id),
        _LEDGER.c.revision,
    )
    .limit(bindparam("limit"))
)


_IN_LIST = _LEDGER.c.listing == (
    select(SiteCheckpoint.listing).where(SiteCheckpoint.site_schedule_id == bindparam("site")).scalar_subquery()
)
"""True if the newest list of a source repository has named the document: most lists name only the changes."""


@frozen
class NamedDocument:
    """One document that is only named: its docid, its URL, a note about it, and its title if it is known."""

    docid: str
    url: str
    note: str = ""
    title: str = ""


@frozen
class NamedDocuments:
    """Documents that are only named: their number, and the first of them."""

    count: int
    rows: tuple[NamedDocument, ...] = ()

    @property
    def more(self) -> int:
        """The number of documents that are not named."""
        return max(self.count - len(self.rows), 0)

    @property
    def has_notes(self) -> bool:
        """True if one of the named documents has a note."""
        return any(row.note for row in self.rows)

    @property
    def docids(self) -> list[str]:
        """The docids of the named documents."""
        return [row.docid for row in self.rows]


def ended_as(session: Session, site_run: HarvestSiteRun, kind: OutcomeKind, limit: int) -> NamedDocuments:
    """The documents of the site run with this outcome."""
    count = getattr(site_run, kind.column)
    if not count:
        return NamedDocuments(0)
    here = (HarvestLog.site_run_id == site_run.site_run_id) & (HarvestLog.outcome == kind.value)
    rows = _logged(session, here, limit)
    return NamedDocuments(max(count, len(rows)), rows)


def repaired(session: Session, site_run: HarvestSiteRun, limit: int) -> NamedDocuments:
    """Documents that went in now and had failed since (and in) the last harvest of the whole list."""
    if not site_run.inserted and not site_run.updated:
        return NamedDocuments(0)
    earlier = list(earlier_site_runs(session, site_run))
    if not earlier:
        return NamedDocuments(0)
    log, before = HarvestLog, HarvestLog.__table__.alias("before")
    failed_before = (
        select(before.c.harvest_log_id)
        .where(
            before.c.site_run_id.in_(earlier),
            before.c.document_id == log.document_id,
            before.c.outcome.in_([kind.value for kind in ERROR_OUTCOMES]),
        )
        .exists()
    )
    went_in = log.outcome.in_([OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value])
    here: ColumnElement[bool] = (log.site_run_id == site_run.site_run_id) & went_in & failed_before
    count = session.scalar(select(func.count()).select_from(log).where(here)) or 0
    return NamedDocuments(count, _logged(session, here, limit) if count else ())


def unchanged(session: Session, site_run: HarvestSiteRun, limit: int) -> NamedDocuments:
    """The unchanged documents; first those with a higher revision in the target than in the list.

    None for a retry: the site's requested documents are stored only if they have another outcome. Of the unchanged
    records of a source repository, deleted ones are left out.
    """
    if not site_run.unchanged or site_run.kind == SiteRunKind.RETRY.value:
        return NamedDocuments(0)
    session.flush()
    which = {"site": site_run.site_schedule_id, "limit": min(limit, site_run.unchanged)}
    count, statement = site_run.unchanged, _UNCHANGED
    if session.get(SiteCheckpoint, site_run.site_schedule_id):
        statement = _UNCHANGED.where(_IN_LIST)
        number = select(func.count()).select_from(statement.limit(None).order_by(None).subquery())
        # A list that was resumed has named others in the harvest before.
        count = min(count, session.connection().execute(number, which).scalar_one())
    named = []
    for document_id, revision, url, held in session.connection().execute(statement, which):
        note = f"the repository has revision {held}" if held is not None and held > revision else ""
        named.append(NamedDocument(one_line(f"{document_id}.{revision}"), shown_url(url), note))
    return NamedDocuments(count, tuple(named))


def earlier_site_runs(session: Session, site_run: HarvestSiteRun) -> Iterator[int]:
    """The site's runs before this one, back to the last one that read the whole list."""
    of_site, number = HarvestSiteRun.site_schedule_id == site_run.site_schedule_id, HarvestSiteRun.site_run_id
    same = HarvestSiteRun.rehearsal == site_run.rehearsal
    query = select(HarvestSiteRun).where(of_site, same, number < site_run.site_run_id).order_by(number.desc()).limit(30)
    for earlier in session.scalars(query):
        yield earlier.site_run_id
        if earlier.kind != SiteRunKind.RETRY.value and earlier.listed:
            return


def _logged(session: Session, here: ColumnElement[bool], limit: int) -> tuple[NamedDocument, ...]:
    query = select(HarvestLog, HarvestDocument.title).outerjoin(HarvestDocument, ITS_ENTRY).where(here)
    rows = session.execute(query.order_by(*by_document(HarvestLog.document_id), HarvestLog.revision).limit(limit))
    return tuple(_from_log(row, title or "") for row, title in rows)


def _from_log(row: HarvestLog, title: str) -> NamedDocument:
    was = row.target_revision
    is_higher = was is not None and row.revision is not None and was < row.revision
    docid = one_line(docid_of(row.document_id, row.revision))
    note = f"was revision {was}" if is_higher else ""
    return NamedDocument(docid, shown_url(row.document_url or ""), note, one_line(title, MAX_TITLE))
