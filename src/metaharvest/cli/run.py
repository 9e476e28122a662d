"""`metaharvest run`: one run, for cron; with `--dry-run`, what it would do."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from typing import TYPE_CHECKING, NoReturn

import click

from metaharvest.cli.app import App, as_date, print_json

if TYPE_CHECKING:
    from metaharvest.harvest.run import RunRequest


def _day(_context: click.Context, _parameter: click.Parameter, value: str | None) -> date | None:
    return as_date(value)


@click.command("run")
@click.option("--site", "names", metavar="NAME", multiple=True, help="Only this site, due or not. May be repeated.")
@click.option("--force", is_flag=True, help="All enabled sites, due or not.")
@click.option("--dry-run", is_flag=True, help="Rehearse: fetch and check everything, write nothing anywhere.")
@click.option("--date", "day", metavar="YYYY-MM-DD", callback=_day, help="Take this day for today.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--strict", is_flag=True, help="Exit with 1 for document errors and deferrals too.")
@click.pass_obj
def command(
    app: App, names: tuple[str, ...], force: bool, dry_run: bool, day: date | None, as_json: bool, strict: bool
) -> int:
    """Harvest the sites that are due: one run, for cron.

    Exit codes: 0 done (documents with errors are the sites' affair); 1 done, but a site or the target failed as a
    whole, a report could not be handed over, or a signal or the run's deadline cut it short; 2 settings or usage;
    75 another run is under way.
    """
    from metaharvest.harvest.run import RunRequest

    if force and names:
        raise click.UsageError("--force harvests all enabled sites, --site the named ones: use one of the two.")
    request = RunRequest(day or app.today(), names, force)
    if dry_run:
        return _rehearse(app, request, as_json, strict)
    with _stop_on_signal() as stop:
        return _harvest_and_tell(app, request, as_json, strict, stop)


def harvest_now(app: App) -> int:
    """One run of the sites that are due, as cron would have it; the exit code.

    Raises KeyboardInterrupt where a signal stopped the run, when what was under way is finished.
    """
    from metaharvest.harvest.run import RunRequest

    with _stop_on_signal() as stop:
        code = _harvest_and_tell(app, RunRequest(app.today()), as_json=False, strict=False, stop=stop)
    if stop.is_set():
        raise KeyboardInterrupt
    return code


@contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    """Set the event on SIGTERM and SIGINT, once: the second of them ends the process at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGINT)}

    def ask_to_stop(_number: int, _frame: object) -> None:
        stop.set()
        for number in before:
            signal.signal(number, _end_at_once)

    for number in before:
        signal.signal(number, ask_to_stop)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_at_once(_number: int, _frame: object) -> NoReturn:
    """End the process as a power cut would: an exception would wait for every exchange that is under way."""
    from metaharvest.cli import EXIT_INTERRUPTED, STOPPED

    # The bars of a terminal have hidden its cursor.
    cursor = "\033[?25h\n" if sys.stderr is not None and sys.stderr.isatty() else ""
    with suppress(OSError):
        os.write(2, f"{cursor}{STOPPED}\n".encode())
    os._exit(EXIT_INTERRUPTED)


def _harvest_and_tell(app: App, request: RunRequest, as_json: bool, strict: bool, stop: threading.Event) -> int:
    """A run, and then the ping of the monitor, if there is one; the exit code.

    Where no run came to an end, a monitor that cannot be told how it ended hears nothing: the silence is the alarm.
    Nor does any where another run is under way, which will ping itself, or where a site's name was mistyped.
    """
    from metaharvest.cli import EXIT_FAILED, exit_code_of
    from metaharvest.errors import LockHeld, MetaharvestError, ScheduleError

    try:
        status, code = _harvest(app, request, as_json, strict, stop)
    except (LockHeld, ScheduleError):
        raise
    except Exception as error:
        _ping(app, "failed", exit_code_of(error) if isinstance(error, MetaharvestError) else EXIT_FAILED, ended=False)
        raise
    _ping(app, "interrupted" if stop.is_set() else status, code, ended=True)
    return code


def _ping(app: App, status: str, code: int, *, ended: bool) -> None:
    if "settings" not in vars(app) or not app.settings.monitoring.ping_url:
        return
    from metaharvest.errors import SettingsError
    from metaharvest.monitoring.ping import ping, ping_url, tells_how_it_ended

    try:
        told = ended or tells_how_it_ended(ping_url(app.settings))
        trouble = ping(app.settings, status, code, ended=ended) if told else None
    except SettingsError as error:
        trouble = str(error)
    if trouble:
        click.echo(f"{trouble} The run itself is not affected." if ended else trouble, err=True)


def _harvest(app: App, request: RunRequest, as_json: bool, strict: bool, stop: threading.Event) -> tuple[str, int]:
    """A run, and what is to be said of it on stdout; its status and the exit code."""
    from metaharvest.cli.progress import shown_progress
    from metaharvest.cli.summary import failed_as_a_whole, has_document_errors, print_run, run_as_json
    from metaharvest.database.engine import database_errors, readers
    from metaharvest.harvest.run import run_once
    from metaharvest.reports.words import counted

    with shown_progress() as progress:
        ended = run_once(app.settings, app.engine, app.target, request, app.now, progress, stop=stop)
    if ended.cut_short or stop.is_set():
        click.echo("Stopped: what was under way is finished, the rest is left to the next run.", err=True)
    if ended.cut_short:
        click.echo(ended.cut_short, err=True)
    with database_errors(app.engine), readers(app.engine)() as session:
        ended_badly = ended.undelivered or ended.cut_short or stop.is_set()
        failed = failed_as_a_whole(session, ended.run_id) or ended_badly
        code = 1 if failed or (strict and has_document_errors(session, ended.run_id)) else 0
        if as_json:
            more = {"undelivered": ended.undelivered, "cut_short": ended.cut_short or None}
            print_json({**run_as_json(session, ended.run_id), **more})
        else:
            print_run(session, ended.run_id)
            if ended.undelivered:
                cases = counted(ended.undelivered, "case")
                click.echo(
                    f"Reports could not be handed over in {cases}: `metaharvest reports --undelivered` tells why."
                )
    return ended.status.value, code


def _rehearse(app: App, request: RunRequest, as_json: bool, strict: bool) -> int:
    from metaharvest import reports
    from metaharvest.cli.progress import shown_progress
    from metaharvest.cli.summary import failed_as_a_whole, has_document_errors, run_as_json
    from metaharvest.database.engine import readers
    from metaharvest.harvest.dry_run import stage
    from metaharvest.harvest.run import run_once
    from metaharvest.text import clean

    with stage(app.settings, app.target, app.engine) as play:
        with shown_progress() as progress:
            ended = run_once(play.settings, play.engine, play.target, request, app.now, progress)
        with readers(play.engine)() as session:
            if as_json:
                print_json({**run_as_json(session, ended.run_id), "dry_run": True})
            else:
                report = reports.admin_report(session, ended.run_id, play.settings, play.target.describe(), app.now())
                click.echo(clean(report.text))
                click.echo("This was a rehearsal: nothing was written, no mail was sent.")
            if failed_as_a_whole(session, ended.run_id):
                return 1
            return 1 if strict and has_document_errors(session, ended.run_id) else 0
