"""Decides whether a site run deserves a report, by the site's own wish and by what changed since its last report."""

from __future__ import annotations

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import HarvestDetailLog, HarvestLog, HarvestRun, HarvestSiteRun, ReportOutbox
from metaharvest.model import ERROR_OUTCOMES, Notify, OutcomeKind, Site, SiteRunKind, SiteRunStatus
from metaharvest.reports.named_documents import earlier_site_runs
from metaharvest.reports.words import ATTENTION, counts_of, is_quiet, total
from metaharvest.sites.rows import BrokenSite

_NOT_FINE = [kind.value for kind in (*ERROR_OUTCOMES, *ATTENTION)]
_CHANGES = (OutcomeKind.INSERTED, OutcomeKind.UPDATED)

_Trouble = tuple[str | None, int | None, str | None, str | None]
"""Document id and revision (None: the list itself), outcome, rule."""


def is_wanted(session: Session, site_run: HarvestSiteRun, site: Site | BrokenSite | None, remind_days: int = 0) -> bool:
    """Whether the contacts of the site, as it is registered now, are to get a report of this site run.

    The site's wish is `always`, `never`, `on-error` (a document failed, or the site did) or `on-change` (something was
    inserted or updated, the problems are not those of the last report, or it was `remind_days` ago; 0: no reminder). A
    retry is reported only if a document ended differently than before. A registration that cannot be used counts as
    `always`; a site without one gets nothing.
    """
    notify = site.notify if isinstance(site, Site) else Notify.ALWAYS
    if site is None or notify is Notify.NEVER:
        return False
    if site_run.kind == SiteRunKind.RETRY.value and not _retry_changed(session, site_run):
        return False
    if notify is Notify.ON_ERROR:
        return site_run.status != SiteRunStatus.SUCCEEDED.value or total(counts_of(site_run), ERROR_OUTCOMES) > 0
    if notify is Notify.ON_CHANGE:
        return _changed(session, site_run, remind_days)
    return True


def _changed(session: Session, site_run: HarvestSiteRun, remind_days: int) -> bool:
    """Whether something went in, the problems are not those of the site's last report, or it is time to remind."""
    if total(counts_of(site_run), _CHANGES):
        return True
    before = _last_reported(session, site_run)
    if before is None:
        return site_run.status != SiteRunStatus.SUCCEEDED.value or bool(_troubles(session, site_run))
    troubles = _troubles(session, site_run)
    if before.status != site_run.status or _troubles(session, before) != troubles:
        return True
    is_broken = bool(troubles) or site_run.status != SiteRunStatus.SUCCEEDED.value
    return is_broken and 0 < remind_days <= _days_between(session, before, site_run)


def _days_between(session: Session, before: HarvestSiteRun, site_run: HarvestSiteRun) -> int:
    first, last = (session.get_one(HarvestRun, row.run_id).harvest_date for row in (before, site_run))
    return (last - first).days


def _last_reported(session: Session, site_run: HarvestSiteRun) -> HarvestSiteRun | None:
    """The site's last run before this one that was reported, retries aside."""
    row = HarvestSiteRun
    before = (row.site_schedule_id == site_run.site_schedule_id) & (row.site_run_id < site_run.site_run_id)
    query = (
        select(row)
        .join(ReportOutbox, ReportOutbox.site_run_id == row.site_run_id)
        .where(before, row.kind != SiteRunKind.RETRY.value)
        .order_by(row.site_run_id.desc())
    )
    return session.scalar(query.limit(1))


def _troubles(session: Session, site_run: HarvestSiteRun) -> set[_Trouble]:
    """What is wrong or doubtful in a site run: documents with their outcome and rules, and findings about the list."""
    if is_quiet(site_run):
        return set()
    log, detail = HarvestLog, HarvestDetailLog
    query = (
        select(log.document_id, log.revision, log.outcome, detail.rule)
        .outerjoin(detail, detail.harvest_log_id == log.harvest_log_id)
        .where(log.site_run_id == site_run.site_run_id, or_(log.outcome.in_(_NOT_FINE), detail.rule.is_not(None)))
        .execution_options(yield_per=1000)
    )
    return {(row[0], row[1], row[2], row[3]) for row in session.execute(query)}


def _retry_changed(session: Session, site_run: HarvestSiteRun) -> bool:
    """Whether a document ended differently than when it was tried last; one that is put off again is no news."""
    log, before = HarvestLog, aliased(HarvestLog)
    counts = counts_of(site_run)
    if total(counts, [*_CHANGES, OutcomeKind.UNCHANGED, OutcomeKind.STALE]):
        return True
    last_time = (
        select(func.max(before.harvest_log_id))
        .where(
            before.site_run_id.in_(list(earlier_site_runs(session, site_run))),
            before.document_id == log.document_id,
            before.revision == log.revision,
            before.outcome.is_not(None),
        )
        .correlate(log)
        .scalar_subquery()
    )
    # If a server is down, it does not matter which of its documents were asked for and which were put off.
    still_away = and_(before.outcome == OutcomeKind.DEFERRED.value, log.outcome == OutcomeKind.ACCESS_ERROR.value)
    query = (
        select(log.harvest_log_id)
        .outerjoin(before, before.harvest_log_id == last_time)
        .where(
            log.site_run_id == site_run.site_run_id,
            log.outcome.in_([kind.value for kind in ERROR_OUTCOMES]),
            or_(before.outcome.is_(None), and_(before.outcome != log.outcome, ~still_away)),
        )
        .limit(1)
    )
    return session.scalar(query) is not None
