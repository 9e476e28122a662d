"""The state of the network as a text file for Prometheus (its node exporter's textfile collector), after each run.

It is written after each run, also one that failed or could not begin. docs/operators.md has a table of all names.
https://prometheus.io/docs/instrumenting/exposition_formats/. All values are gauges: the present state of the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.config.files import replace_file
from metaharvest.database.clock import database_now
from metaharvest.database.models import (
    IS_FULL,
    IS_HARVEST,
    IS_REAL,
    HarvestRun,
    HarvestSiteRun,
    HarvestSiteSchedule,
    ReportDelivery,
    SiteProblem,
)
from metaharvest.ledger.retries import numbers_failing
from metaharvest.model import HARVESTED, OutcomeKind
from metaharvest.model.values import frozen
from metaharvest.queries.jobs import job_numbers, workers
from metaharvest.queries.outbox import outbox_state
from metaharvest.queries.pipeline import failure_at_last_run, pipeline_record
from metaharvest.sites.overdue import overdue_sites
from metaharvest.sites.registry import read_sites


@frozen
class Attempt:
    """The last start of a run: its end, and its exit code; perhaps it did not begin."""

    ended_at: datetime
    exit_code: int


def metrics(session: Session | None, attempt: Attempt, today: date, stages: Sequence[str]) -> CollectorRegistry:
    """The present state of the tables, with these stages of the pipeline, and the end of the last attempt.

    Without a database only the attempt.
    """
    gauges = _Gauges()
    gauges.set("last_attempt_ended_seconds", "When the last attempt of a run ended", attempt.ended_at.timestamp())
    gauges.set("last_attempt_exit_code", "The exit code of the last attempt of a run", attempt.exit_code)
    gauges.set("database_up", "1 if the database could be read after it, else 0", session is not None)
    if session is not None:
        _run(session, gauges)
        _last_success(session, gauges)
        _sites(session, gauges)
        _registered(session, gauges, today)
        _deliveries(session, gauges, attempt.ended_at)
        _jobs(session, gauges)
        _pipeline(session, gauges, stages)
    return gauges.registry


def write_metrics(registry: CollectorRegistry, path: Path) -> None:
    """Write the file, as a whole or not at all. Raises OSError."""
    replace_file(path, generate_latest(registry))


class _Gauges:
    """The gauges of one file, each made when it gets its first value."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._made: dict[str, Gauge] = {}

    def set(self, name: str, meaning: str, value: float, **labels: str) -> None:
        if name not in self._made:
            self._made[name] = Gauge(name, meaning, list(labels), namespace="metaharvest", registry=self.registry)
        gauge = self._made[name]
        (gauge.labels(**labels) if labels else gauge).set(value)


def _run(session: Session, gauges: _Gauges) -> None:
    run = session.scalar(select(HarvestRun).where(IS_HARVEST).order_by(HarvestRun.run_id.desc()).limit(1))
    if run is None:
        return
    gauges.set("last_run_started_seconds", "When the last run began (Unix time)", run.started_at.timestamp())
    gauges.set("last_run_status", "1 for the status of the last run", 1, status=run.status)
    if run.ended_at:
        took = (run.ended_at - run.started_at).total_seconds()
        gauges.set("last_run_duration_seconds", "How long the last run took", took)


def _sites(session: Session, gauges: _Gauges) -> None:
    """For each registered site: its last harvest of the whole list, and its open problems."""
    row = HarvestSiteRun
    newest = select(func.max(row.site_run_id)).where(IS_REAL, IS_FULL).group_by(row.site_schedule_id)
    query = (
        select(HarvestSiteSchedule.name, row)
        .join(HarvestSiteSchedule, HarvestSiteSchedule.site_schedule_id == row.site_schedule_id)
        .where(row.site_run_id.in_(newest))
        .order_by(HarvestSiteSchedule.name)
    )
    for name, site_run in session.execute(query):
        began = site_run.started_at.timestamp()
        gauges.set("site_last_harvest_seconds", "When the last harvest began (Unix time)", began, site=name)
        gauges.set("site_listed", "Documents that the last harvest found listed", site_run.listed, site=name)
        gauges.set("site_status", "1 for the status of the last harvest", 1, site=name, status=site_run.status)
        for kind in OutcomeKind:
            number = getattr(site_run, kind.column) or 0
            gauges.set("site_documents", "Documents of the last harvest", number, site=name, outcome=kind.value)


def _last_success(session: Session, gauges: _Gauges) -> None:
    ended = select(func.max(HarvestRun.ended_at)).where(HarvestRun.status.in_(HARVESTED), IS_HARVEST)
    if (last := session.scalar(ended)) is not None:
        gauges.set("last_success_seconds", "When the last run ended that harvested at least one site", last.timestamp())


def _registered(session: Session, gauges: _Gauges, today: date) -> None:
    """For each enabled site, also one that was never harvested: 0 if nothing is wrong."""
    overdue = {site.name for site in overdue_sites(session, today)}
    failing, problems = numbers_failing(session), _open_problems(session)
    last = _last_successes(session)
    for site in read_sites(session):
        if not site.enabled:
            continue
        name, number = site.name, site.site_id
        gauges.set("site_overdue", "1 if the site is overdue, else 0", name in overdue, site=name)
        gauges.set("site_open_problems", "Open findings that need attention", problems.get(number, 0), site=name)
        documents = failing.get(number, (0, None))[0]
        gauges.set("site_failing_documents", "Documents that are failing or put off", documents, site=name)
        if number in last:
            when = last[number].timestamp()
            gauges.set("site_last_success_seconds", "When the last harvest of its list ended well", when, site=name)


def _open_problems(session: Session) -> dict[int, int]:
    query = (
        select(SiteProblem.site_schedule_id, func.count())
        .where(SiteProblem.state == "open", SiteProblem.needs_attention.is_(True))
        .group_by(SiteProblem.site_schedule_id)
    )
    return {row[0]: row[1] for row in session.execute(query)}


def _last_successes(session: Session) -> dict[int, datetime]:
    row = HarvestSiteRun
    query = (
        select(row.site_schedule_id, func.max(row.ended_at))
        .where(IS_REAL, row.status.in_(HARVESTED), IS_FULL)
        .group_by(row.site_schedule_id)
    )
    return {site_id: ended for site_id, ended in session.execute(query) if ended is not None}


def _deliveries(session: Session, gauges: _Gauges, now: datetime) -> None:
    waiting = session.scalar(select(func.count()).where(ReportDelivery.status == "queued")) or 0
    gauges.set("reports_waiting", "Deliveries of reports that wait, one for each recipient", waiting)
    refused = outbox_state(session, now).refused
    gauges.set("reports_refused", "Recipients that refused a report in the last seven days", refused)


def _jobs(session: Session, gauges: _Gauges) -> None:
    """The jobs of workers; nothing where there were none."""
    numbers = job_numbers(session)
    for (kind, state), number in sorted(numbers.by_kind.items()):
        gauges.set("jobs", "Jobs of workers by kind and state", number, kind=kind, state=state)
    if numbers.by_kind:
        oldest = numbers.oldest_ready.timestamp() if numbers.oldest_ready else 0
        gauges.set("jobs_oldest_ready_seconds", "Since when the oldest job waits for a worker; 0: none", oldest)
        gauges.set("jobs_lapsed", "Jobs whose worker has lost its lease", numbers.lapsed)
        there = sum(not each.is_silent for each in workers(session))
        gauges.set("workers", "Workers that were seen in the last half minute", there)


def _pipeline(session: Session, gauges: _Gauges, stages: Sequence[str]) -> None:
    """The documents at the stages of the pipeline; nothing where it has never run."""
    record = pipeline_record(session, stages, database_now(session))
    if record.last_ended is None:
        return
    for each in record.stages:
        states = (("waiting", each.waiting_documents), ("failed", each.failed_documents), ("done", each.done_documents))
        for state, number in states:
            gauges.set("pipeline_documents", "Documents at a stage", number, stage=each.stage, state=state)
    oldest = record.oldest_unseen_change.timestamp() if record.oldest_unseen_change else 0
    gauges.set("pipeline_unseen_changes", "Changed documents that no stage has seen yet", record.unseen_changes)
    gauges.set("pipeline_oldest_unseen_change_seconds", "The time of the oldest of them (Unix time); 0: none", oldest)
    ended = record.last_ended.timestamp()
    gauges.set("pipeline_last_ended_seconds", "When a stage last ended with a document (Unix time)", ended)
    gauges.set("pipeline_failed", "1 if it failed after the last run, else 0", failure_at_last_run(session) is not None)
