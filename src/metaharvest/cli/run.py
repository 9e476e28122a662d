"""`metaharvest run`: one run, for cron; with `--dry-run`, what it would do."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING

import click

from metaharvest.cli.app import App, as_date, print_json

if TYPE_CHECKING:
    from metaharvest.controller import Request


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
    whole, a report could not be handed over, or a signal stopped the run; 2 settings or usage; 75 another run is
    under way.
    """
    from metaharvest.controller import Request

    if force and names:
        raise click.UsageError("--force harvests all enabled sites, --site the named ones: use one of the two.")
    request = Request(day or app.today(), names, force)
    if dry_run:
        return _rehearse(app, request, as_json, strict)
    with _stop_on_signal() as stop:
        return _harvest(app, request, as_json, strict, stop)


def harvest_now(app: App) -> int:
    """One run of the sites that are due, as cron would have it; the exit code.

    Raises KeyboardInterrupt where a signal stopped the run, when what was under way is finished.
    """
    from metaharvest.controller import Request

    with _stop_on_signal() as stop:
        code = _harvest(app, Request(app.today()), as_json=False, strict=False, stop=stop)
    if stop.is_set():
        raise KeyboardInterrupt
    return code


@contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    """Set the event on SIGTERM and SIGINT, once: the second time either does what it always does."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGINT)}

    def ask_to_stop(number: int, _frame: object) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, ask_to_stop)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _harvest(app: App, request: Request, as_json: bool, strict: bool, stop: threading.Event) -> int:
    from metaharvest.cli.progress import shown_progress
    from metaharvest.cli.summary import failed_as_a_whole, has_document_errors, print_run, run_as_json
    from metaharvest.controller import run_once
    from metaharvest.database.engine import readers

    with shown_progress() as progress:
        ended = run_once(app.settings, app.engine, app.target, request, app.now, progress, stop=stop)
    if stop.is_set():
        click.echo("Stopped: what was under way is finished, the rest is left to the next run.", err=True)
    with readers(app.engine)() as session:
        if as_json:
            print_json({**run_as_json(session, ended.run_id), "undelivered": ended.undelivered})
        else:
            print_run(session, ended.run_id)
            if ended.undelivered:
                click.echo(f"{ended.undelivered} reports could not be handed over; `metaharvest reports` tells why.")
        if failed_as_a_whole(session, ended.run_id) or ended.undelivered or stop.is_set():
            return 1
        return 1 if strict and has_document_errors(session, ended.run_id) else 0


def _rehearse(app: App, request: Request, as_json: bool, strict: bool) -> int:
    from metaharvest import reports
    from metaharvest.cli.progress import shown_progress
    from metaharvest.cli.summary import failed_as_a_whole, has_document_errors, run_as_json
    from metaharvest.controller import run_once
    from metaharvest.database.engine import readers
    from metaharvest.rehearsal import stage
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
