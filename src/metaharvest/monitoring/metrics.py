"""The state of the network as a text file for Prometheus (its node exporter's textfile collector), after each run.

https://prometheus.io/docs/instrumenting/exposition_formats/. All values are gauges: they are what the tables say now.
"""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestRun, HarvestSiteRun, HarvestSiteSchedule, ReportDelivery, SiteProblem
from metaharvest.model import OutcomeKind, SiteRunKind


def metrics(session: Session) -> CollectorRegistry:
    """What the tables say now."""
    gauges = _Gauges()
    _run(session, gauges)
    _sites(session, gauges)
    _waiting(session, gauges)
    return gauges.registry


def write_metrics(registry: CollectorRegistry, path: Path) -> None:
    """Write the file, as a whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_to_textfile(str(path), registry)


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
    run = session.scalar(select(HarvestRun).order_by(HarvestRun.run_id.desc()).limit(1))
    if run is None:
        return
    gauges.set("last_run_started_seconds", "When the last run began (Unix time)", run.started_at.timestamp())
    gauges.set("last_run_status", "1 for the status of the last run", 1, status=run.status)
    if run.ended_at:
        took = (run.ended_at - run.started_at).total_seconds()
        gauges.set("last_run_duration_seconds", "How long the last run took", took)


def _sites(session: Session, gauges: _Gauges) -> None:
    """Of each registered site: its last harvest of the whole list, and what is open."""
    row = HarvestSiteRun
    newest = select(func.max(row.site_run_id)).where(row.kind != SiteRunKind.RETRY.value).group_by(row.site_schedule_id)
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
    failing = (
        select(HarvestSiteSchedule.name, func.count(SiteProblem.site_problem_id))
        .join(SiteProblem, SiteProblem.site_schedule_id == HarvestSiteSchedule.site_schedule_id)
        .where(SiteProblem.state == "open", SiteProblem.needs_attention.is_(True))
        .group_by(HarvestSiteSchedule.name)
    )
    for name, number in session.execute(failing):
        gauges.set("site_open_problems", "Findings that need attention, and are open", number, site=name)


def _waiting(session: Session, gauges: _Gauges) -> None:
    waiting = session.scalar(select(func.count()).where(ReportDelivery.status == "queued")) or 0
    gauges.set("reports_waiting", "Reports that wait to be delivered", waiting)
