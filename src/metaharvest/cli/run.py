"""`metaharvest run`: one run, for cron; with `--dry-run`, what it would do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING

import click

from metaharvest.cli.exit_codes import ExitCode, exit_code_of
from metaharvest.cli.invocation import Invocation, day
from metaharvest.cli.json_lines import print_note
from metaharvest.cli.printing import print_json, print_line
from metaharvest.cli.signals import stop_on_signal
from metaharvest.model import OutcomeKind, RunStatus, SiteRunStatus

if TYPE_CHECKING:
    from metaharvest.app import Harvester
    from metaharvest.harvest.deadlines import StopSignal
    from metaharvest.harvest.run import RunRequest, RunResult
    from metaharvest.queries.runs import RunRecord

    _Told = Callable[[Harvester, RunResult, RunRecord, int], None]

_NEAR = timedelta(days=7)
"""How far --date may be from the clock without --force-date: enough for a few missed nights."""


@click.command("run")
@click.option("--site", "names", metavar="NAME", multiple=True, help="Only this site, due or not. May be repeated.")
@click.option("--force", is_flag=True, help="All enabled sites, due or not.")
@click.option("--full", is_flag=True, help="Repositories list all that they have, not only what has changed.")
@click.option("--dry-run", is_flag=True, help="Rehearse: fetch and check everything, write nothing anywhere.")
@click.option("--date", "today", metavar="YYYY-MM-DD", callback=day, help="Take this day for today.")
@click.option("--force-date", is_flag=True, help="Take a --date that is more than 7 days from the clock.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--strict", is_flag=True, help="Exit with 3 for document errors and deferrals too.")
@click.pass_obj
def command(
    invocation: Invocation,
    names: tuple[str, ...],
    force: bool,
    full: bool,
    dry_run: bool,
    today: date | None,
    force_date: bool,
    as_json: bool,
    strict: bool,
) -> int:
    """Harvest the sites that are due: one run, for cron.

    Exit codes: 0 done (documents with errors are the sites' affair); 1 an unexpected failure; 2 settings or usage;
    3 done, but a site or the target failed as a whole, or a deadline cut the run short, and the administrator's mail
    says so; 4 done, but a report could not be handed over to the mail server; 69 the database cannot be used;
    75 another run is under way; 130 stopped by a signal.
    """
    from metaharvest.harvest.run import RunRequest

    if force and names:
        raise click.UsageError("--force harvests all enabled sites, --site the named ones: use one of the two.")
    harvester = invocation.harvester
    if today and not dry_run and not force_date:
        _require_near(today, harvester.today())
    request = RunRequest(today or harvester.today(), names, force, full)
    if dry_run:
        return _rehearse(harvester, request, as_json, strict)
    with stop_on_signal() as stop:
        return _harvest_and_ping(harvester, request, _print_json if as_json else _print_table, strict, stop)


def _require_near(day: date, today: date) -> None:
    """Raises UsageError for a day so far from the clock that it is more likely a mistake than meant."""
    if abs(day - today) > _NEAR:
        raise click.UsageError(
            f"--date {day} is {abs((day - today).days):,} days from today, which is {today} by the clock of this "
            "machine. All sites that are harvested would get this date. If that is meant, add --force-date."
        )


def harvest_now(harvester: Harvester) -> None:
    """One run of the sites that are due, as cron would start it, told in one line on stderr.

    Raises KeyboardInterrupt if a signal stopped the run, after what was under way is finished.
    """
    from metaharvest.harvest.run import RunRequest

    with stop_on_signal() as stop:
        _harvest_and_ping(harvester, RunRequest(harvester.today()), _print_event, strict=False, stop=stop)
    if stop.is_set():
        raise KeyboardInterrupt


def _harvest_and_ping(harvester: Harvester, request: RunRequest, told: _Told, strict: bool, stop: StopSignal) -> int:
    """A run, and then the ping of the monitor, if there is one; the exit code.

    If no run came to an end, a monitor that cannot be told how a run ended is not pinged: its alarm is the silence.
    Nor is any if another run is under way, which will ping by itself, or if a site's name was mistyped.
    """
    from metaharvest.errors import LockHeld, MetaharvestError, ScheduleError

    try:
        result, record, code = _harvest(harvester, request, strict, stop)
    except (LockHeld, ScheduleError):
        raise
    except Exception as error:
        code = exit_code_of(error) if isinstance(error, MetaharvestError) else ExitCode.FAILED
        _write_metrics(harvester, code)
        _ping(harvester, "failed", code, ended=False)
        raise
    _write_metrics(harvester, code)
    _ping(harvester, result.status.value, code, ended=True)
    # Last: a stdout that cannot be written is no failure of the run.
    told(harvester, result, record, code)
    return code


def _write_metrics(harvester: Harvester, code: int) -> None:
    """Write the file for Prometheus, if metrics_file is set. A failure does not change how the run ended."""
    try:
        harvester.write_metrics(code)
    except OSError as error:
        file = harvester.settings.monitoring.metrics_file
        print_note(f"[monitoring] metrics_file: {file} cannot be written: {error.strerror}.")


def _ping(harvester: Harvester, status: str, code: int, *, ended: bool) -> None:
    if not harvester.settings.monitoring.ping_url:
        return
    from metaharvest.monitoring.ping import tell_monitor

    failure = tell_monitor(harvester.settings, status, code, ended=ended)
    if failure:
        print_note(f"{failure} The run itself is not affected." if ended else failure)


def _harvest(
    harvester: Harvester, request: RunRequest, strict: bool, stop: StopSignal
) -> tuple[RunResult, RunRecord, int]:
    """A run, its record and the exit code."""
    from metaharvest.cli.progress import shown_progress
    from metaharvest.queries.runs import run_record

    with shown_progress() as progress:
        result = harvester.run(request, progress, stop)
    if result.cut_short:
        print_note("Stopped: what was under way is finished, the rest is left to the next run.")
        print_note(result.cut_short)
    with harvester.reading() as session:
        record = run_record(session, result.run_id)
    return result, record, _code_of(result, record, strict)


def _code_of(result: RunResult, record: RunRecord, strict: bool) -> ExitCode:
    """The exit code of a finished run. A report that was not delivered comes first, as no mail then says the rest."""
    if result.undelivered:
        return ExitCode.NOT_DELIVERED
    if result.status is RunStatus.INTERRUPTED:
        return ExitCode.INTERRUPTED
    if record.failed_as_a_whole or result.cut_short or (strict and record.has_document_errors):
        return ExitCode.SITE_FAILED
    return ExitCode.DONE


def _print_json(_harvester: Harvester, result: RunResult, record: RunRecord, _code: int) -> None:
    print_json({**record.as_mapping, "undelivered": result.undelivered, "cut_short": result.cut_short or None})


def _print_table(harvester: Harvester, result: RunResult, record: RunRecord, _code: int) -> None:
    from metaharvest.cli.runs import print_run
    from metaharvest.text import clean

    print_run(record)
    for sentence in (_went_nowhere(harvester, record), _undelivered(result)):
        if sentence:
            click.echo(clean(sentence))


def _print_event(harvester: Harvester, result: RunResult, record: RunRecord, code: int) -> None:
    """One line for a run: how its sites ended, and the exit code that `metaharvest run` would have had."""
    from metaharvest.reports.words import counted, run_story

    run, errors = record.run, record.totals["errors"]
    counts = {kind: sum(site[kind.column] for site in record.sites) for kind in OutcomeKind}
    told = [run["status"], run_story([SiteRunStatus(site["status"]) for site in record.sites], counts)]
    told += [counted(errors, "error")] if errors else []
    sentences = (*record.targets_away, _went_nowhere(harvester, record), _undelivered(result))
    more = " ".join(filter(None, sentences))
    with suppress(OSError):
        print_line(
            f"Run {run['run_id']} ({run['harvest_date']}): {'; '.join(told)}; exit code {code}. {more}", err=True
        )


def _went_nowhere(harvester: Harvester, record: RunRecord) -> str:
    return harvester.went_nowhere([site["site_name"] for site in record.sites if site["listed"]])


def _undelivered(result: RunResult) -> str:
    from metaharvest.reports.words import counted

    if not result.undelivered:
        return ""
    cases = counted(result.undelivered, "case")
    return f"Reports could not be handed over in {cases}: `metaharvest reports --undelivered` tells why."


def _rehearse(harvester: Harvester, request: RunRequest, as_json: bool, strict: bool) -> int:
    """A dry run, and what is printed about it; the exit code."""
    from metaharvest.cli.progress import rehearsed
    from metaharvest.text import clean

    with rehearsed(lambda progress: harvester.dry_run(request, progress)) as (scratch, record):
        if as_json:
            print_json({**record.as_mapping, "dry_run": True})
        else:
            click.echo(clean(scratch.admin_report(record.run["run_id"]).text))
            click.echo("This was a rehearsal: nothing was written, no mail was sent.")
    failed = record.failed_as_a_whole or (strict and record.has_document_errors)
    return ExitCode.SITE_FAILED if failed else ExitCode.DONE
