"""Runs and their site runs: every column by its name, and their totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.errors import MetaharvestError
from metaharvest.model import ATTENTION_OUTCOMES, ERROR_OUTCOMES, OutcomeKind, RunStatus, SiteRunStatus
from metaharvest.queries.failed_sites import FAILED, FailedSite, failed_site_runs
from metaharvest.queries.records import LARGEST_ID, Record, records_under, with_one_name
from metaharvest.queries.sites import site_names
from metaharvest.queries.trends import failing, harvests, seconds_between

_RUNS = HarvestRun.__table__
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run and its site runs in order: the columns of each by name.

    `targets_away` are the messages about targets that stopped answering; `failed` the reasons why site runs failed as a
    whole, and since when, by their numbers (only `run_record` reads it).
    """

    run: Record
    sites: tuple[Record, ...]
    targets_away: tuple[str, ...]
    failed: Mapping[int, FailedSite] = field(default_factory=dict)

    @property
    def as_mapping(self) -> dict[str, Any]:
        """The run's columns, and under `sites` those of its site runs, with their durations in seconds.

        `targets_away`: the messages about targets that stopped answering.
        """
        took = seconds_between(self.run["started_at"], self.run["ended_at"])
        sites = [{**_as_mapping(site), **self._failing_since(site)} for site in self.sites]
        known = {"took_seconds": took, "rehearsal": self.is_rehearsal}
        return {**self.run, **known, "sites": sites, "targets_away": list(self.targets_away)}

    def _failing_since(self, site: Record) -> Record:
        failed = self.failed.get(site["site_run_id"])
        return {"failed_since": failed.since if failed else None, "failed_nights": failed.nights if failed else 0}

    @property
    def is_rehearsal(self) -> bool:
        """True if no site of the run had a target: nothing was uploaded."""
        return bool(self.sites) and all(site["rehearsal"] for site in self.sites)

    @property
    def failed_as_a_whole(self) -> bool:
        """True if the run, one of its sites, or a target failed as a whole."""
        a_site = any(site["status"] in FAILED for site in self.sites)
        return self.run["status"] == RunStatus.FAILED or a_site or bool(self.targets_away)

    @property
    def has_document_errors(self) -> bool:
        """True if documents had errors, or were put off."""
        return any(site["status"] == SiteRunStatus.WITH_ERRORS for site in self.sites)

    @property
    def took(self) -> timedelta | None:
        """The duration of the run; None if it has not ended."""
        ended: timedelta | None = self.run["ended_at"] and self.run["ended_at"] - self.run["started_at"]
        return ended

    @property
    def totals(self) -> dict[str, int]:
        """The numbers of sites, of sites that failed as a whole, of documents, and of documents by outcome."""

        def counted(*kinds: OutcomeKind) -> int:
            return sum(site[kind.column] for site in self.sites for kind in kinds)

        return {
            "sites": len(self.sites),
            "failed": sum(site["status"] in FAILED for site in self.sites),
            "listed": sum(site["listed"] for site in self.sites),
            "inserted": counted(OutcomeKind.INSERTED),
            "updated": counted(OutcomeKind.UPDATED),
            "unchanged": counted(OutcomeKind.UNCHANGED),
            "attention": counted(*ATTENTION_OUTCOMES),
            "errors": counted(*ERROR_OUTCOMES),
        }


def _as_mapping(site_run: Record) -> Record:
    took = seconds_between(site_run["started_at"], site_run["ended_at"])
    return {**with_one_name(site_run), "failing": failing(site_run), "took_seconds": took}


def newest_run_id(session: Session) -> int | None:
    """The number of the newest run; None if there has been none."""
    return session.scalar(select(func.max(HarvestRun.run_id)))


def run_record(session: Session, run_id: int) -> RunRecord:
    """The run of this number. Raises MetaharvestError if there is none."""
    statement = select(_RUNS).where(HarvestRun.run_id == run_id)
    found = _with_sites(session, statement) if 0 <= run_id <= LARGEST_ID else []
    if not found:
        raise MetaharvestError(f"There is no run {run_id}. `metaharvest runs` lists those there are.")
    record = found[0]
    numbers = [site["site_run_id"] for site in record.sites if site["status"] in FAILED]
    return replace(record, failed=failed_site_runs(session, numbers, record.run["harvest_date"]))


def with_trends(session: Session, record: RunRecord) -> dict[str, Any]:
    """The run as a mapping, each of its site runs with the `trend` of its site: the harvests up to that one."""
    known = record.as_mapping
    sites = [{**site, "trend": harvests(session, site["site_id"], upto=site["site_run_id"])} for site in known["sites"]]
    return {**known, "sites": sites}


def newest_runs(session: Session, limit: int) -> list[RunRecord]:
    """The newest runs, up to this number, the newest first."""
    return _with_sites(session, select(_RUNS).order_by(HarvestRun.run_id.desc()).limit(limit))


def is_imported(session: Session, run_id: int | None) -> bool:
    """True if the run of this number holds the log of another harvester: nothing was harvested in it."""
    status = select(HarvestRun.status).where(HarvestRun.run_id == run_id)
    return run_id is not None and session.scalar(status) == RunStatus.IMPORTED


def require_site_run(session: Session, site_run_id: int) -> None:
    """Raises MetaharvestError if there is no such site run."""
    if not 0 <= site_run_id <= LARGEST_ID or session.get(HarvestSiteRun, site_run_id) is None:
        raise MetaharvestError(
            f"There is no site run {site_run_id}. `metaharvest runs show RUN_ID` lists those of a run."
        )


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
    site_runs = {site["site_schedule_id"]: site["site_run_id"] for site in sites}
    if number in site_runs:
        return int(site_runs[number])
    known = ", ".join(sorted({site["site_name"] for site in sites})) or "none"
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
        f"No run has harvested a site named '{name}'. Harvested were: {', '.join(known) or 'none yet'}."
    )


def findings_of(session: Session, run_id: int) -> list[dict[str, Any]]:
    """Every finding of a run, every column of its detail row by its name, in the order of the log."""
    findings = select(HarvestDetailLog.__table__).join(HarvestLog).where(HarvestLog.run_id == run_id)
    rows = session.execute(findings.order_by(HarvestDetailLog.detail_log_id)).mappings()
    return [dict(with_one_name(dict(row))) for row in rows]


def _with_sites(session: Session, statement: Select[Any]) -> list[RunRecord]:
    runs = session.execute(statement).mappings().all()
    numbers = [run["run_id"] for run in runs]
    sites, away = records_under(session, HarvestSiteRun.run_id, numbers), targets_away(session, numbers)
    return [RunRecord(dict(run), tuple(sites[run["run_id"]]), tuple(away.get(run["run_id"], ()))) for run in runs]


def targets_away(session: Session, run_ids: Sequence[int]) -> dict[int, list[str]]:
    """By run, the messages about targets that stopped answering."""
    messages: dict[int, list[str]] = {}
    of_the_run = HarvestLog.site_run_id.is_(None), HarvestLog.harvest_operation_code == "TargetError"
    for start in range(0, len(run_ids), _AT_ONCE):
        chosen = HarvestLog.run_id.in_(run_ids[start : start + _AT_ONCE])
        query = select(HarvestLog.run_id, HarvestLog.message).where(chosen, *of_the_run)
        for run_id, message in session.execute(query.order_by(HarvestLog.harvest_log_id)):
            messages.setdefault(run_id, []).append(message)
    return messages
