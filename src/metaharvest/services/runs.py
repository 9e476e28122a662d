"""A run with all that belongs to it: its request, its result, its exit code, the metrics file, the monitor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import date, timedelta

from metaharvest.accounts.audit import Decision
from metaharvest.database.engine import run_lock
from metaharvest.errors import LockHeld, MetaharvestError, RequestError, ScheduleError
from metaharvest.harvest.context import Progress
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.harvest.run import RunRequest, RunResult
from metaharvest.journal import removal
from metaharvest.journal.removal import RemovedRun
from metaharvest.journal.runs import number_of_reports_not_made
from metaharvest.model import RunStatus
from metaharvest.model.values import frozen
from metaharvest.queries.runs import RunRecord, run_record
from metaharvest.services import public_flags
from metaharvest.services.exit_codes import ExitCode, exit_code_of
from metaharvest.services.harvester import DryRun, Harvester

__all__ = ["Progress", "RunRequest", "RunResult", "StopSignal"]

log = logging.getLogger(__name__)

_NEAR = timedelta(days=7)
"""The largest distance of a run's day from the clock: enough for a few missed nights."""


@frozen
class FinishedRun:
    """A finished run: its result, its record, and the exit code of its command."""

    result: RunResult
    record: RunRecord
    exit_code: ExitCode


def request(
    harvester: Harvester,
    names: Sequence[str] = (),
    *,
    force: bool = False,
    full: bool = False,
    day: date | None = None,
    any_day: bool = False,
    requested: bool = False,
) -> RunRequest:
    """The request for a run: the named sites, all enabled ones (`force`), or the sites that are due on this day.

    `requested`: only the sites that people asked for.

    Raises RequestError; also for a day too far from the clock, which is probably a mistake, unless `any_day`.
    """
    if force and names:
        raise RequestError("--force harvests all enabled sites, --site the named ones: use one of the two.")
    if requested and (force or names or full):
        raise RequestError("--requested harvests the sites that people asked for: leave out --site, --force, --full.")
    today = harvester.today()
    if day is not None and not any_day and abs(day - today) > _NEAR:
        raise RequestError(
            f"--date {day} is {abs((day - today).days):,} days from today, which is {today} by the harvester's "
            "clock. All sites that are harvested would get this date. If that is meant, add --force-date."
        )
    return RunRequest(day or today, tuple(names), force, full, requested)


def why_it_stays(harvester: Harvester, run_id: int) -> str:
    """The sentence that says why a run cannot be deleted; empty if it can. Raises MetaharvestError without the run."""
    with harvester.reading() as session:
        run_record(session, run_id)
        why = removal.why_it_stays(session, run_id)
    return f"Run {run_id} cannot be deleted: {why}." if why else ""


def remove(harvester: Harvester, run_id: int, reason: str = "") -> RemovedRun:
    """Delete a run that has ended, with its site runs, its log and its reports, under the run lock.

    Documents, ledger and problems stay. Raises MetaharvestError if there is no such run, RequestError if it must stay,
    LockHeld.
    """
    with run_lock(harvester.engine), harvester.writing() as session:
        before = run_record(session, run_id)
        done = removal.remove_run(session, run_id)
        totals = {**asdict(before.totals), "harvest_date": before.harvest_date, "status": before.status}
        harvester.audit(session, Decision("runs.remove", "run", str(run_id), before=totals, reason=reason))
        return done


def harvest(
    harvester: Harvester,
    wanted: RunRequest,
    *,
    progress: AbstractContextManager[Progress] | None = None,
    stop: StopSignal | None = None,
    strict: bool = False,
    note: Callable[[str], None] = lambda sentence: None,
) -> FinishedRun:
    """Make a run, then write the metrics file and ping the monitor, if the settings name them.

    `progress` lasts as long as the harvest. `note` gets sentences for the person who started the run: the work that a
    stop left undone, an unreachable file or monitor. Raises the errors of `run_once`.

    If no run came to an end, a monitor that cannot receive failures is not pinged: the missing ping is its alarm. There
    is no ping either if another run is under way, which pings by itself, or if a site's name was mistyped.
    """
    try:
        with progress or nullcontext(Progress()) as shown:
            public_flags.align(harvester)
            result = harvester.run(wanted, shown, stop)
        if result.cut_short:
            note("Stopped: what was under way is finished, the rest is left to the next run.")
            note(result.cut_short)
        record = harvester.read(run_record, result.run_id)
    except (LockHeld, ScheduleError):
        raise
    except Exception as error:
        code = exit_code_of(error) if isinstance(error, MetaharvestError) else ExitCode.FAILED
        _write_metrics(harvester, code, note)
        _ping(harvester, "failed", code, note, ended=False)
        raise
    code = _exit_code(result, record, strict)
    report_end(harvester, result.status, code, note)
    if harvester.settings.pipeline.enabled and not harvester.settings.workers.broker:
        from metaharvest.services import pipeline  # it takes long, and most runs have none

        pipeline.run_after_harvest(harvester, result.run_id, stop.is_set if stop else lambda: False, note)
        _write_metrics(harvester, code, note)
    return FinishedRun(result, record, code)


def report_end(
    harvester: Harvester, status: RunStatus, code: ExitCode, note: Callable[[str], None] = log.warning
) -> None:
    """Write the metrics file, and notify the monitor of the settings, as a run has ended."""
    _write_metrics(harvester, code, note)
    _ping(harvester, status.value, code, note, ended=True)


def end_of_distributed_run(harvester: Harvester, run_id: int, status: RunStatus, cut_short: str) -> None:
    """The same for a run whose sites workers harvested. Its reports are delivered afterwards."""
    with harvester.reading() as session:
        record, not_made = run_record(session, run_id), number_of_reports_not_made(session, run_id)
    report_end(harvester, status, _exit_code(RunResult(run_id, status, not_made, cut_short), record, strict=False))


def _exit_code(result: RunResult, record: RunRecord, strict: bool) -> ExitCode:
    """The exit code of a finished run. An undelivered report comes first, as then no mail reports the rest."""
    if result.undelivered:
        return ExitCode.NOT_DELIVERED
    if result.status is RunStatus.INTERRUPTED:
        return ExitCode.INTERRUPTED
    if record.failed_as_a_whole or result.cut_short or (strict and record.has_document_errors):
        return ExitCode.SITE_FAILED
    return ExitCode.DONE


def exit_code_of_dry_run(done: DryRun, *, strict: bool) -> ExitCode:
    """The exit code of a command that makes a dry run."""
    failed = done.record.failed_as_a_whole or (strict and done.record.has_document_errors)
    return ExitCode.SITE_FAILED if failed else ExitCode.DONE


def went_nowhere(harvester: Harvester, record: RunRecord) -> str:
    """A sentence about the sites of a run whose documents go into no target; empty if there is none."""
    listed = [site.site for site in record.sites if site.listed]
    return harvester.targets.name_all().went_nowhere(listed)


def _write_metrics(harvester: Harvester, exit_code: int, note: Callable[[str], None]) -> None:
    """Write the file for Prometheus, if metrics_file is set. A failure does not change the result of the run.

    If the database is unreadable, the file says so, with the result of the attempt.
    """
    file = harvester.settings.monitoring.metrics_file
    if file is None:
        return
    from metaharvest.monitoring.metrics import Attempt, metrics, write_metrics

    attempt, stages = Attempt(harvester.now(), exit_code), harvester.settings.pipeline.stage_names()
    try:
        values = harvester.read(metrics, attempt, harvester.today(), stages)
    except MetaharvestError:
        values = metrics(None, attempt, harvester.today(), stages)
    try:
        write_metrics(values, harvester.settings.written_path(file))
    except OSError as error:
        note(f"[monitoring] metrics_file: {file} cannot be written: {error.strerror}.")


def _ping(harvester: Harvester, status: str, exit_code: int, note: Callable[[str], None], *, ended: bool) -> None:
    if not harvester.settings.monitoring.ping_url:
        return
    from metaharvest.monitoring.ping import notify_monitor

    failure = notify_monitor(harvester.settings, status, exit_code, ended=ended)
    if failure:
        note(f"{failure} The run itself is not affected." if ended else failure)
