"""Decides if a site run deserves a report, by the site's own wish and by the changes since its last report."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, case, func, or_, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import (
    HarvestDetailLog,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
    ReportOutbox,
    SiteProblem,
)
from metaharvest.model import (
    ERROR_OUTCOMES,
    HARVESTED,
    Notify,
    OutcomeKind,
    Site,
    SiteRunKind,
    SiteRunStatus,
)
from metaharvest.problems.attention import REPOSITORY_CHANGED, SHRANK, VANISHED
from metaharvest.problems.follow import OPEN
from metaharvest.reports.document_lists import earlier_site_runs
from metaharvest.reports.findings import NOT_FINE
from metaharvest.reports.phrasing import counts_of, is_quiet, total
from metaharvest.reports.problem_history import doubts
from metaharvest.sites.rows import BrokenSite

_CHANGES = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.DELETED)

_ALWAYS_NEWS = {SHRANK, VANISHED, REPOSITORY_CHANGED}
"""Events that differ each time; other events, such as robots.txt, are the same again and again."""

_Trouble = tuple[str | None, int | None, str | None, str | None]
"""A trouble of a site: document id and revision (None: the list itself), outcome, rule."""

_Troubles = frozenset[_Trouble]


def is_wanted(
    session: Session,
    site_run: HarvestSiteRun,
    site: Site | BrokenSite | None,
    remind_days: int = 0,
    *,
    keeps: bool = True,
) -> bool:
    """True if the contacts of the site, as it is registered now, should get a report of this site run.

    The site's wish is `always`, `never`, `on-error` (a document or the site failed, its list lost much, or has nothing)
    or `on-change` (something was inserted or updated, the problems differ from the last reports, or these were
    `remind_days` ago; 0: no reminder). Nothing is inserted if the site's target `keeps` nothing. A retry is reported
    only if a document ended differently than before. A registration that cannot be used counts as `always`; a site
    without one gets nothing.
    """
    notify = site.notify if isinstance(site, Site) else Notify.ALWAYS
    if site is None or notify is Notify.NEVER:
        return False
    if site_run.kind == SiteRunKind.RETRY.value and not _retry_changed(session, site_run):
        return False
    if notify is Notify.ON_ERROR:
        found = doubts(session, site_run)
        return site_run.status != SiteRunStatus.SUCCEEDED.value or found.is_grave
    if notify is Notify.ON_CHANGE:
        return (keeps and total(counts_of(site_run), _CHANGES) > 0) or _changed(session, site_run, remind_days)
    return True


def _changed(session: Session, site_run: HarvestSiteRun, remind_days: int) -> bool:
    """True if the problems differ from the reported ones, or it is time to remind."""
    reported = _reported(session, site_run)
    known: _Troubles = frozenset()
    for row in reported:
        known = _after(session, row, known)
    troubles = _after(session, site_run, known)
    events = _events(session, site_run)
    if _differ(session, troubles, known, reported) or events & _ALWAYS_NEWS or events - _events(session, *reported):
        return True
    failed = _failed(site_run)
    if failed != (_failed(reported[0]) if reported else None):
        return True
    if not (remind_days and reported and (troubles or failed)):
        return False
    first, last = (session.get_one(HarvestRun, row.run_id).harvest_date for row in (reported[-1], site_run))
    return (last - first).days >= remind_days


def _differ(session: Session, troubles: _Troubles, known: _Troubles, reported: Sequence[HarvestSiteRun]) -> bool:
    """True if the troubles differ in more than the choice of the documents that were requested or checked.

    If a server is still down, it does not matter which of its documents were put off. A document that only one of the
    two site runs checked counts as before if its problem is older than the report, and still open.
    """
    deferred = [{each[:2] for each in some if each[2] == OutcomeKind.DEFERRED.value} for some in (troubles, known)]
    put_off = deferred[0] | deferred[1] if all(deferred) else frozenset()

    def simple(trouble: _Trouble) -> _Trouble:
        is_away = trouble[:2] in put_off and trouble[2] in (OutcomeKind.DEFERRED.value, OutcomeKind.ACCESS_ERROR.value)
        return (*trouble[:2], None, None) if is_away else trouble

    changed = set(map(simple, troubles)) ^ set(map(simple, known))
    if not changed or not reported:
        return bool(changed)
    its, last = SiteProblem, reported[-1]
    lasts = (its.site_schedule_id == last.site_schedule_id, its.state == OPEN, its.first_site_run <= last.site_run_id)
    rows = session.execute(select(its.document_id, its.rule).where(*lasts, its.document_id.is_not(None)))
    lasting = {(row[0], rule) for row in rows for rule in (None, row[1])}
    checked_once = {each[0] for each in troubles} ^ {each[0] for each in known}
    return any(each[0] not in checked_once or (each[0], each[3]) not in lasting for each in changed)


def _failed(site_run: HarvestSiteRun) -> str | None:
    """The failure of a site run as a whole; None if only its documents decide."""
    return None if site_run.status in HARVESTED else site_run.status


def _reported(session: Session, site_run: HarvestSiteRun) -> list[HarvestSiteRun]:
    """The site's last harvest before this site run that was reported, and the reported retries since, in order."""
    row, is_retry = HarvestSiteRun, HarvestSiteRun.kind == SiteRunKind.RETRY.value
    reported = (
        select(row)
        .join(ReportOutbox, ReportOutbox.site_run_id == row.site_run_id)
        .where(
            row.site_schedule_id == site_run.site_schedule_id,
            row.site_run_id < site_run.site_run_id,
            row.rehearsal == site_run.rehearsal,
        )
        .order_by(row.site_run_id.desc())
    )
    last = session.scalar(reported.where(~is_retry).limit(1))
    if last is None:
        return []
    retries = session.scalars(reported.where(is_retry, row.site_run_id > last.site_run_id)).all()
    return [last, *reversed(retries)]


def _after(session: Session, site_run: HarvestSiteRun, known: _Troubles) -> _Troubles:
    """The errors and doubts of a site after this site run; `known`: those before, as far as a retry leaves them.

    A retry has no log rows of documents that were there already; these were among the deferred documents, all of which
    it tries.
    """
    troubles = _troubles(session, site_run)
    if site_run.kind != SiteRunKind.RETRY.value:
        return troubles
    log = HarvestLog
    query = select(log.document_id, log.revision).where(
        log.site_run_id == site_run.site_run_id, log.outcome.is_not(None)
    )
    tried = {(row[0], row[1]) for row in session.execute(query)}
    over = OutcomeKind.DEFERRED.value if site_run.unchanged else None
    left = (trouble for trouble in known if trouble[:2] not in tried and (over is None or trouble[2] != over))
    return troubles.union(left)


def _troubles(session: Session, site_run: HarvestSiteRun) -> _Troubles:
    """The errors and doubts of a site run: documents with their outcome and rules, and findings about the list.

    Events are not among them: no night repeats them, without a repair.
    """
    if is_quiet(site_run):
        return frozenset()
    log, detail = HarvestLog, HarvestDetailLog
    lasts = detail.fingerprint.is_not(None)
    query = (
        select(log.document_id, log.revision, log.outcome, case((lasts, detail.rule)))
        .outerjoin(detail, detail.harvest_log_id == log.harvest_log_id)
        .where(log.site_run_id == site_run.site_run_id, or_(log.outcome.in_(NOT_FINE), lasts))
        .execution_options(yield_per=1000)
    )
    rows = session.execute(query)
    return frozenset((row[0], row[1], row[2], rule) for row in rows for rule in (None, row[3]))


def _events(session: Session, *site_runs: HarvestSiteRun) -> set[str]:
    """The rules of the events in these site runs."""
    numbers = [row.site_run_id for row in site_runs if not is_quiet(row)]
    query = (
        select(HarvestDetailLog.rule)
        .join(HarvestLog, HarvestLog.harvest_log_id == HarvestDetailLog.harvest_log_id)
        .where(HarvestLog.site_run_id.in_(numbers), HarvestDetailLog.fingerprint.is_(None))
    )
    return set(session.scalars(query.distinct())) if numbers else set()


def _retry_changed(session: Session, site_run: HarvestSiteRun) -> bool:
    """True if a document ended differently than at the last try; one that is put off again is no news."""
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
    # If a server is down, it does not matter which of its documents were requested and which were put off.
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
