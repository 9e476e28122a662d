"""A run with all that belongs to it: its request, its result, its exit code, the metrics file, the monitor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import date, timedelta

from metaharvest.errors import LockHeld, MetaharvestError, RequestError, ScheduleError
from metaharvest.harvest.context import Progress
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.harvest.run import RunRequest, RunResult
from metaharvest.journal.named_targets import named_targets
from metaharvest.model import RunStatus
from metaharvest.queries.runs import RunRecord, run_record
from metaharvest.services.exit_codes import ExitCode, exit_code_of
from metaharvest.services.harvester import DryRun, Harvester

__all__ = ["Progress", "RunRequest", "RunResult", "StopSignal"]

_NEAR = timedelta(days=7)
"""The largest distance of a run's day from the clock: enough for a few missed nights."""


@dataclass(frozen=True, slots=True)
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
) -> RunRequest:
    """The request for a run: the named sites, all enabled ones (`force`), or the sites that are due on this day.

    Raises RequestError; also for a day too far from the clock, which is probably a mistake, unless `any_day`.
    """
    if force and names:
        raise RequestError("--force harvests all enabled sites, --site the named ones: use one of the two.")
    today = harvester.today()
    if day is not None and not any_day and abs(day - today) > _NEAR:
        raise RequestError(
            f"--date {day} is {abs((day - today).days):,} days from today, which is {today} by the clock of this "
            "machine. All sites that are harvested would get this date. If that is meant, add --force-date."
        )
    return RunRequest(day or today, tuple(names), force, full)


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
            result = harvester.run(wanted, shown, stop)
        if result.cut_short:
            note("Stopped: what was under way is finished, the rest is left to the next run.")
            note(result.cut_short)
        with harvester.reading() as session:
            record = run_record(session, result.run_id)
    except (LockHeld, ScheduleError):
        raise
    except Exception as error:
        code = exit_code_of(error) if isinstance(error, MetaharvestError) else ExitCode.FAILED
        _write_metrics(harvester, code, note)
        _ping(harvester, "failed", code, note, ended=False)
        raise
    code = _exit_code(result, record, strict)
    _write_metrics(harvester, code, note)
    _ping(harvester, result.status.value, code, note, ended=True)
    return FinishedRun(result, record, code)


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
    return named_targets(harvester.targets).went_nowhere(listed)


def _write_metrics(harvester: Harvester, exit_code: int, note: Callable[[str], None]) -> None:
    """Write the file for Prometheus, if metrics_file is set. A failure does not change the result of the run.

    If the database is unreadable, the file says so, with the result of the attempt.
    """
    file = harvester.settings.monitoring.metrics_file
    if file is None:
        return
    from metaharvest.monitoring.metrics import Attempt, metrics, write_metrics

    attempt = Attempt(harvester.now(), exit_code)
    try:
        with harvester.reading() as session:
            values = metrics(session, attempt, harvester.today())
    except MetaharvestError:
        values = metrics(None, attempt, harvester.today())
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
