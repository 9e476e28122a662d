"""`metaharvest daemon`: run again and again, on machines without cron.

Each run is what `metaharvest run` does, with the settings as they are then. If a run fails, that is told, and the next
one comes nevertheless.
"""

from __future__ import annotations

import logging
import math
import signal
import time as clock
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.run import handled, harvest_now
from metaharvest.text import clean

_LONGEST_SLEEP = 30.0
"""Seconds after which the clock is read again: it may have been set, or the machine may have slept."""

log = logging.getLogger(__name__)


def _time(_context: click.Context, _parameter: click.Parameter, value: str | None) -> time | None:
    if value is None:
        return None
    try:
        return datetime.strptime(value.strip(), "%H:%M").time()  # noqa: DTZ007 - a time of day, without a date
    except ValueError:
        raise click.BadParameter(f"'{value}' is not a time of day; write it like 03:00") from None


def _hours(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("'nan' is not a number of hours; write it like 24")
    return value


@click.command("daemon")
@click.option(
    "--every",
    type=click.FloatRange(0.001, 8784),
    callback=_hours,
    default=24,
    show_default=True,
    metavar="HOURS",
    help="The period.",
)
@click.option("--at", callback=_time, metavar="HH:MM", help="Run at this time of day, in the harvester's time zone.")
@click.option(
    "--delay",
    type=click.FloatRange(0, 8784),
    callback=_hours,
    default=0,
    metavar="HOURS",
    help="Wait before the first run.",
)
@click.option("--max-runs", type=click.IntRange(0), default=0, metavar="N", help="End after N runs; 0: never.")
@click.pass_obj
def command(invocation: Invocation, every: float, at: time | None, delay: float, max_runs: int) -> None:
    """Run again and again: at once, then every 24 hours; or at a time of day.

    SIGTERM and Ctrl-C end it: between runs with exit code 0; in the middle of a run with 130, and the next run takes up
    what was left.
    """
    period = timedelta(hours=every)
    if at is not None and period % timedelta(days=1):
        raise click.UsageError("With --at, --every must be whole days: 24, 48, ...")
    zone = invocation.harvester.settings.harvester.zone
    start = datetime.now(UTC) + timedelta(hours=delay)
    first = start if at is None else next_at(start, at, zone)
    with handled(signal.default_int_handler, signal.SIGTERM):
        _run_for_ever(
            invocation, first, lambda began: next_time(began, datetime.now(UTC), period, at, zone), zone, max_runs
        )


def next_at(after: datetime, at: time, zone: ZoneInfo) -> datetime:
    """The first moment not before `after` at which clocks in `zone` show `at`, in UTC.

    A time that a clock change leaves out is moved by the change; one that it repeats comes once.
    """
    day = after.astimezone(zone).date()
    moments = (datetime.combine(day + timedelta(days=days), at, zone).astimezone(UTC) for days in range(3))
    return next(moment for moment in moments if moment >= after)


def next_time(began: datetime, now: datetime, period: timedelta, at: time | None, zone: ZoneInfo) -> datetime:
    """When to run after the run that began at `began`: whole periods later, without those that have passed by now."""
    if at is None:
        return began + period * max(1, -((began - now) // period))
    days = period // timedelta(days=1)
    local = began.astimezone(zone)
    start = datetime.combine(local.date() + timedelta(days=days), time(0), zone)
    return next_at(max(start.astimezone(UTC), now), at, zone)


def _run_for_ever(
    invocation: Invocation, first: datetime, following: Callable[[datetime], datetime], zone: ZoneInfo, max_runs: int
) -> None:
    """Run at `first` and then as `following` says, until `max_runs` are done or a signal comes between two runs."""
    import schedule

    scheduler = schedule.Scheduler()
    job = scheduler.every().day.do(lambda: _run(invocation))
    moment, runs = first, 0
    while True:
        try:
            # The schedule package counts in local time, without a zone.
            job.next_run = moment.astimezone().replace(tzinfo=None)
            click.echo(f"The next run is at {moment.astimezone(zone):%Y-%m-%d %H:%M %Z}.", err=True)
            while (seconds := scheduler.idle_seconds or 0) > 0:
                clock.sleep(min(seconds, _LONGEST_SLEEP))
        except KeyboardInterrupt:
            click.echo("Stopped between two runs.", err=True)
            return
        began = datetime.now(UTC)
        scheduler.run_pending()
        runs += 1
        if runs == max_runs:
            return
        moment = following(began)


def _run(invocation: Invocation) -> None:
    """One run, with the settings as they are now; whatever fails in it is told, not passed on."""
    from metaharvest.errors import MetaharvestError

    try:
        with closing(Invocation(invocation.config, invocation.limits, invocation.engine)) as fresh:
            harvest_now(fresh.harvester)
    except MetaharvestError as error:
        click.echo(clean(f"This run failed: {error}"), err=True)
    except Exception:
        log.exception("This run failed, and the daemon goes on")
