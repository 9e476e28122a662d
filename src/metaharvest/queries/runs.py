"""Runs and their site runs: every column by its name, and what adds up from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestDetailLog, HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.errors import MetaharvestError
from metaharvest.model import ATTENTION_OUTCOMES, ERROR_OUTCOMES, OutcomeKind, RunStatus, SiteRunStatus

_FAILED = (SiteRunStatus.LIST_FAILED, SiteRunStatus.FAILED, SiteRunStatus.INCOMPLETE, SiteRunStatus.INTERRUPTED)
_LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run and its site runs in the order in which they were begun: the columns of each by name."""

    run: Mapping[str, Any]
    sites: tuple[Mapping[str, Any], ...]

    @property
    def as_mapping(self) -> dict[str, Any]:
        """The run's columns, and under `sites` those of its site runs."""
        return {**self.run, "sites": list(self.sites)}

    @property
    def failed_as_a_whole(self) -> bool:
        """Whether the run, or one of its sites, failed as a whole."""
        return self.run["status"] == RunStatus.FAILED or any(site["status"] in _FAILED for site in self.sites)

    @property
    def has_document_errors(self) -> bool:
        """Whether documents had errors, or were put off."""
        return any(site["status"] == SiteRunStatus.WITH_ERRORS for site in self.sites)

    @property
    def took(self) -> timedelta | None:
        """How long the run took; None if it has not ended."""
        ended: timedelta | None = self.run["ended_at"] and self.run["ended_at"] - self.run["started_at"]
        return ended

    @property
    def totals(self) -> dict[str, int]:
        """How many sites and documents the run had, and how many documents ended how."""

        def counted(*kinds: OutcomeKind) -> int:
            return sum(site[kind.column] for site in self.sites for kind in kinds)

        return {
            "sites": len(self.sites),
            "listed": sum(site["listed"] for site in self.sites),
            "inserted": counted(OutcomeKind.INSERTED),
            "updated": counted(OutcomeKind.UPDATED),
            "unchanged": counted(OutcomeKind.UNCHANGED),
            "attention": counted(*ATTENTION_OUTCOMES),
            "errors": counted(*ERROR_OUTCOMES),
        }


def newest_run_id(session: Session) -> int | None:
    """The number of the newest run; None if there has been none."""
    return session.scalar(select(func.max(HarvestRun.run_id)))


def run_record(session: Session, run_id: int) -> RunRecord:
    """The run of this number. Raises MetaharvestError if there is none."""
    return _with_sites(session, [require_run(session, run_id)])[0]


def newest_runs(session: Session, limit: int) -> list[RunRecord]:
    """So many runs, the newest first."""
    newest = select(HarvestRun).order_by(HarvestRun.run_id.desc()).limit(limit)
    return _with_sites(session, session.scalars(newest).all())


def require_run(session: Session, run_id: int) -> HarvestRun:
    """The row of this run. Raises MetaharvestError if there is none."""
    run = session.get(HarvestRun, run_id) if 0 <= run_id <= _LARGEST_ID else None
    if run is None:
        raise MetaharvestError(f"There is no run {run_id}. `metaharvest runs` lists those there are.")
    return run


def require_site_run(session: Session, site_run_id: int) -> HarvestSiteRun:
    """The row of this site run. Raises MetaharvestError if there is none."""
    site_run = session.get(HarvestSiteRun, site_run_id) if 0 <= site_run_id <= _LARGEST_ID else None
    if site_run is None:
        raise MetaharvestError(
            f"There is no site run {site_run_id}. `metaharvest runs show RUN_ID` lists those of a run."
        )
    return site_run


def newest_site_run_id(session: Session, site_name: str) -> int:
    """The newest site run of a site, whether it is still registered or not. Raises MetaharvestError."""
    newest = select(func.max(HarvestSiteRun.site_run_id)).where(HarvestSiteRun.site_name == site_name)
    site_run_id = session.scalar(newest)
    if site_run_id is not None:
        return site_run_id
    known = sorted(set(session.scalars(select(HarvestSiteRun.site_name).distinct())))
    raise MetaharvestError(
        f"No run has harvested a site named '{site_name}'. Harvested were: {', '.join(known) or 'none yet'}."
    )


def site_run_id_of(session: Session, run_id: int, site_name: str) -> int:
    """The site run of a site in a run. Raises MetaharvestError if that run did not harvest it."""
    site_runs = {site["site_name"]: site["site_run_id"] for site in run_record(session, run_id).sites}
    if site_name in site_runs:
        return int(site_runs[site_name])
    known = ", ".join(sorted(site_runs)) or "none"
    raise MetaharvestError(f"The run {run_id} did not harvest a site named '{site_name}'. It harvested: {known}.")


def findings_of(session: Session, run_id: int) -> list[dict[str, Any]]:
    """Every finding of a run, every column of its detail row by its name, in the order of the log."""
    statement = (
        select(HarvestDetailLog)
        .join(HarvestLog)
        .where(HarvestLog.run_id == run_id)
        .order_by(HarvestDetailLog.detail_log_id)
    )
    return [_columns(row) for row in session.scalars(statement)]


def _with_sites(session: Session, runs: Sequence[HarvestRun]) -> list[RunRecord]:
    """These runs, of which no other lies between."""
    sites: dict[int, list[dict[str, Any]]] = {run.run_id: [] for run in runs}
    statement = (
        select(HarvestSiteRun)
        .where(HarvestSiteRun.run_id.between(min(sites, default=0), max(sites, default=0)))
        .order_by(HarvestSiteRun.site_run_id)
    )
    for site_run in session.scalars(statement):
        sites.setdefault(site_run.run_id, []).append(_columns(site_run))
    return [RunRecord(_columns(run), tuple(sites[run.run_id])) for run in runs]


def _columns(row: Base) -> dict[str, Any]:
    return {column.name: getattr(row, column.name) for column in row.__table__.columns}
