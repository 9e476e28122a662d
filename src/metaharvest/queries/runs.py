"""Runs and their site runs, and their totals."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import reduce
from typing import Any

from sqlalchemy import ColumnElement, Select, case, distinct, func, select
from sqlalchemy.orm import Session

from metaharvest.database.batches import grouped
from metaharvest.database.models import HarvestDetailLog, HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.database.statements import rows_with
from metaharvest.errors import MetaharvestError
from metaharvest.model import ATTENTION_OUTCOMES, ERROR_OUTCOMES, NOT_HARVESTED, OutcomeKind, RunStatus, SiteRunStatus
from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.queries.records import FINDING, StoredFinding, columns, columns_for, failing, row_of
from metaharvest.queries.sites import site_names
from metaharvest.queries.trends import FailedSite, Harvest, failed_site_runs, seconds_between, trends
from metaharvest.text import LARGEST_ID, some_of

_OF_DETAIL = "detail_log_id scope identifier revision document_id document_type fingerprint"


@frozen(kw_only=True)
class SiteRunRecord:
    """A site run: its columns, and how it stands.

    `failed`: since when its site has failed as a whole (only `run_record` reads it). `trend`: the last harvests of its
    site up to this one (only `with_trends` reads it).
    """

    site_run_id: int
    run_id: int
    site_id: int
    site: str
    kind: str
    rehearsal: bool
    status: str
    started_at: datetime
    ended_at: datetime | None
    failure_reason: str | None
    list_url: str | None
    listed: int
    inserted: int
    updated: int
    unchanged: int
    deleted: int
    filtered: int
    stale: int
    duplicate: int
    deferred: int
    access_error: int
    invalid: int
    upload_error: int
    warnings: int
    next_harvest: date | None
    server_seconds: float | None
    waiting_seconds: float | None
    checking_seconds: float | None
    storing_seconds: float | None
    failed: FailedSite | None = None
    trend: tuple[Harvest, ...] = ()

    def number(self, kind: OutcomeKind) -> int:
        """The number of documents with this outcome."""
        return int(getattr(self, kind.column))

    @property
    def failing(self) -> int:
        """The number of documents that were not accepted, or were put off."""
        return int(failing(self))

    @property
    def took_seconds(self) -> float | None:
        """The duration; None if it has not ended."""
        return seconds_between(self.started_at, self.ended_at)

    @property
    def failed_since(self) -> date | None:
        """The day since which its site has failed as a whole."""
        return self.failed.failed_since if self.failed else None

    @property
    def failed_nights(self) -> int:
        """The number of nights since then."""
        return self.failed.failed_nights if self.failed else 0


@frozen
class RunTotals:
    """The numbers of sites, of sites that failed as a whole, of documents, and of documents by outcome."""

    sites: int
    failed: int
    listed: int
    inserted: int
    updated: int
    unchanged: int
    attention: int
    errors: int


_ADDED = (
    ("listed",),
    ("inserted",),
    ("updated",),
    ("unchanged",),
    tuple(kind.column for kind in ATTENTION_OUTCOMES),
    tuple(kind.column for kind in ERROR_OUTCOMES),
)
"""The columns of site runs that make each number of RunTotals, from `listed` on: a number is their sum."""


@frozen(kw_only=True)
class _Run:
    """The times of a run, and its status."""

    run_id: int
    harvest_date: date
    started_at: datetime
    ended_at: datetime | None
    status: str
    heartbeat_at: datetime

    @property
    def took_seconds(self) -> float | None:
        """The duration; None if it has not ended."""
        return seconds_between(self.started_at, self.ended_at)


@frozen(kw_only=True)
class RunRecord(_Run):
    """A run and its site runs in order. `targets_away`: the messages about targets that stopped answering."""

    host: str
    pid: int
    sites: tuple[SiteRunRecord, ...]
    targets_away: tuple[str, ...]

    @property
    def is_rehearsal(self) -> bool:
        """True if no site of the run had a target: nothing was uploaded."""
        return bool(self.sites) and all(site.rehearsal for site in self.sites)

    @property
    def failed_as_a_whole(self) -> bool:
        """True if the run, one of its sites, or a target failed as a whole."""
        a_site = any(site.status in NOT_HARVESTED for site in self.sites)
        return self.status == RunStatus.FAILED or a_site or bool(self.targets_away)

    @property
    def has_document_errors(self) -> bool:
        """True if documents had errors, or were put off."""
        return any(site.status == SiteRunStatus.WITH_ERRORS for site in self.sites)

    @property
    def took(self) -> timedelta | None:
        """The duration of the run; None if it has not ended."""
        return None if self.ended_at is None else self.ended_at - self.started_at

    @property
    def totals(self) -> RunTotals:
        """The totals of its site runs."""
        sites = {site.site_id for site in self.sites}
        failed = {site.site_id for site in self.sites if site.status in NOT_HARVESTED}
        sums = (sum(getattr(site, name) for site in self.sites for name in names) for names in _ADDED)
        return RunTotals(len(sites), len(failed), *sums)


@frozen(kw_only=True)
class RunSummary(_Run):
    """A run with its totals, without its site runs. `is_rehearsal`: no site of the run had a target."""

    totals: RunTotals = RunTotals(0, 0, 0, 0, 0, 0, 0, 0)
    is_rehearsal: bool = False


@frozen(kw_only=True)
class RunFinding(StoredFinding):
    """A finding of a run, with its document as far as it has one. `scope` and `identifier` are parts of EML's ids."""

    detail_log_id: int
    log_id: int
    scope: str | None
    identifier: int | None
    revision: int | None
    document_id: str | None
    url: str | None
    document_type: str | None
    fingerprint: str | None


def run_record(session: Session, run_id: int) -> RunRecord:
    """The run of this number. Raises MetaharvestError if there is none."""
    statement = _RUNS.where(HarvestRun.run_id == run_id)
    found = _with_sites(session, statement) if 0 <= run_id <= LARGEST_ID else []
    if not found:
        raise no_such_run(run_id)
    record = found[0]
    failed = failed_site_runs(
        session, [site.site_run_id for site in record.sites if site.status in NOT_HARVESTED], record.harvest_date
    )
    return replace(record, sites=tuple(replace(site, failed=failed.get(site.site_run_id)) for site in record.sites))


def no_such_run(run_id: int) -> MetaharvestError:
    """The error for a run that is not there."""
    return MetaharvestError(f"There is no run {run_id}. {todo('runs.list')} lists the runs.")


def with_trends(session: Session, record: RunRecord) -> RunRecord:
    """The run, each of its site runs with the `trend` of its site."""
    found = trends(session, [site.site_run_id for site in record.sites])
    return replace(record, sites=tuple(replace(site, trend=found[site.site_run_id]) for site in record.sites))


def newest_runs(session: Session, limit: int) -> list[RunRecord]:
    """The newest runs, up to this number, the newest first."""
    return _with_sites(session, _RUNS.order_by(HarvestRun.run_id.desc()).limit(limit))


def run_summaries(session: Session, limit: int, after: int | None = None) -> list[RunSummary]:
    """The newest runs with their totals, which the database adds up; the next page begins `after` the last run."""
    run, row = HarvestRun, HarvestSiteRun
    query = select(*columns_for(RunSummary, run)).order_by(run.run_id.desc()).limit(limit)
    runs = session.execute(query if after is None else query.where(run.run_id < after))
    found = {each.run_id: RunSummary(**each._mapping) for each in runs}
    of_run = select(row.run_id, func.sum(case((row.rehearsal, 0), else_=1)), *_summed()).group_by(row.run_id)
    for run_id, uploaded, *numbers in rows_with(session, of_run, row.run_id, found):
        totals = RunTotals(*map(int, numbers))
        found[run_id] = replace(found[run_id], totals=totals, is_rehearsal=not uploaded)
    return list(found.values())


def _summed() -> list[ColumnElement[int]]:
    """The values of RunTotals, in its order, over a group of site runs."""
    row = HarvestSiteRun
    failed = func.count(distinct(case((row.status.in_(NOT_HARVESTED), row.site_schedule_id))))
    added = (reduce(operator.add, columns(row, " ".join(names))) for names in _ADDED)
    sums = (func.coalesce(func.sum(each), 0) for each in added)
    return [func.count(distinct(row.site_schedule_id)), failed, *sums]


def is_imported(session: Session, run_id: int | None) -> bool:
    """True if the run of this number holds the log of another harvester: nothing was harvested in it."""
    status = select(HarvestRun.status).where(HarvestRun.run_id == run_id)
    return run_id is not None and session.scalar(status) == RunStatus.IMPORTED


def require_run(session: Session, run_id: int) -> None:
    """Raises MetaharvestError if there is no such run."""
    if row_of(session, HarvestRun, run_id) is None:
        raise no_such_run(run_id)


def require_site_run(session: Session, site_run_id: int) -> None:
    """Raises MetaharvestError if there is no such site run."""
    if row_of(session, HarvestSiteRun, site_run_id) is None:
        raise MetaharvestError(f"There is no site run {site_run_id}. {todo('runs.show')} lists the site runs of a run.")


def newest_site_run_id(session: Session, site_name: str) -> int:
    """The newest site run of a site, whether it is still registered or not. Raises MetaharvestError."""
    newest = newest_site_run_id_if_any(session, site_name)
    if newest is None:
        raise MetaharvestError(f"No run has harvested the site '{site_name}' yet.")
    return newest


def newest_site_run_id_if_any(session: Session, site_name: str) -> int | None:
    """The same; None if no run has harvested the site. Raises MetaharvestError for a site that is not known."""
    its_own = HarvestSiteRun.site_schedule_id == site_number(session, site_name)
    return session.scalar(select(func.max(HarvestSiteRun.site_run_id)).where(its_own))


def site_run_id_of(session: Session, run_id: int, site_name: str) -> int:
    """The site run of a site in a run. Raises MetaharvestError if that run did not harvest it."""
    sites, number = run_record(session, run_id).sites, site_number(session, site_name)
    site_runs = {site.site_id: site.site_run_id for site in sites}
    if number in site_runs:
        return site_runs[number]
    known = some_of(sorted({site.site for site in sites})) or "none"
    raise MetaharvestError(f"The run {run_id} did not harvest the site '{site_name}'. It harvested: {known}.")


def site_number(session: Session, name: str) -> int:
    """The number of the site of this name: the one that is registered under it, else the last one harvested under it.

    A site keeps its number, and with it its past, when it is renamed. Raises MetaharvestError.
    """
    number = next((number for number, registered in site_names(session).items() if registered == name), None)
    if number is None:
        under_it = select(HarvestSiteRun.site_schedule_id).filter_by(site_name=name)
        number = session.scalar(under_it.order_by(HarvestSiteRun.site_run_id.desc()).limit(1))
    if number is not None:
        return number
    known = sorted(set(session.scalars(select(HarvestSiteRun.site_name).distinct())))
    raise MetaharvestError(
        f"No run has harvested a site named '{name}'. Harvested were: {some_of(known) or 'none yet'}."
    )


def findings_of(session: Session, run_id: int) -> list[RunFinding]:
    """Every finding of a run, in the order of the log."""
    detail = HarvestDetailLog
    query = (
        select(
            *FINDING,
            *columns(detail, _OF_DETAIL),
            detail.harvest_log_id.label("log_id"),
            detail.document_url.label("url"),
        )
        .join(HarvestLog)
        .where(HarvestLog.run_id == run_id)
        .order_by(detail.detail_log_id)
    )
    return [RunFinding(**row._mapping) for row in session.execute(query)]


_RUNS = select(*columns_for(RunRecord, HarvestRun))


def _with_sites(session: Session, statement: Select[Any]) -> list[RunRecord]:
    runs = session.execute(statement).all()
    numbers = [run.run_id for run in runs]
    sites, away = _site_runs(session, numbers), _targets_away(session, numbers)
    return [
        RunRecord(**run._mapping, sites=tuple(sites.get(run.run_id, ())), targets_away=tuple(away.get(run.run_id, ())))
        for run in runs
    ]


def _site_runs(session: Session, run_ids: Sequence[int]) -> dict[int, list[SiteRunRecord]]:
    row = HarvestSiteRun
    names = (row.site_schedule_id.label("site_id"), row.site_name.label("site"))
    query = select(*columns_for(SiteRunRecord, row), *names)
    rows = rows_with(session, query.order_by(row.site_run_id), row.run_id, run_ids)
    return grouped((each.run_id, SiteRunRecord(**each._mapping)) for each in rows)


def _targets_away(session: Session, run_ids: Sequence[int]) -> dict[int, list[str]]:
    """By run, the messages about targets that stopped answering."""
    of_the_run = HarvestLog.site_run_id.is_(None), HarvestLog.harvest_operation_code == "TargetError"
    query = select(HarvestLog.run_id, HarvestLog.message).where(*of_the_run).order_by(HarvestLog.harvest_log_id)
    return grouped((row[0], row[1]) for row in rows_with(session, query, HarvestLog.run_id, run_ids))
