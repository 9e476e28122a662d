"""`metaharvest daemon`: run again and again, on machines without cron.

Between two runs it looks for requests of people every few seconds, and harvests requested sites at once.

Each run is the same as `metaharvest run`, with the present settings in the file of the start. It is reported in one
line; `metaharvest runs show RUN_ID` has its table. A failed run does not prevent the next one. After SIGHUP
the settings are read at once: the time zone follows them, and a mistake in them is logged.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import Invocation, parsed
from metaharvest.cli.json_lines import print_failure, print_note
from metaharvest.cli.run import harvest_now
from metaharvest.cli.signals import handled
from metaharvest.errors import MetaharvestError
from metaharvest.text import clean

_LONGEST_SLEEP = 5.0
"""The seconds between two looks for requests of people. The clock is read again, too: it may have been set."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

_PAUSE_AFTER_REQUESTS = timedelta(seconds=10)
"""The time from one run of requested sites to the next: a run that fails is not repeated at once."""

_NOTED_EVERY = timedelta(seconds=30)
"""The time after which the daemon notes again that it is there."""

log = logging.getLogger(__name__)


def _times(values: Sequence[str]) -> tuple[time, ...]:
    try:
        # A time of day, without a date.
        return tuple(sorted({datetime.strptime(value.strip(), "%H:%M").time() for value in values}))  # noqa: DTZ007
    except ValueError:
        named = ", ".join(f"'{value}'" for value in values)
        raise ValueError(f"{named} is not a time of day; write it like 03:00") from None


def _hours(value: float) -> float:
    if math.isnan(value):
        raise ValueError("'nan' is not a number of hours; write it like 24")
    return value


@click.command("daemon")
@click.option(
    "--every",
    type=click.FloatRange(0.001, 8784),
    callback=parsed(_hours),
    default=24,
    show_default=True,
    metavar="HOURS",
    help="The period.",
)
@click.option(
    "--at",
    multiple=True,
    callback=parsed(_times),
    metavar="HH:MM",
    help="Run at this time of day, in the harvester's time zone; may be repeated.",
)
@click.option(
    "--delay",
    type=click.FloatRange(0, 8784),
    callback=parsed(_hours),
    default=0,
    metavar="HOURS",
    help="Wait before the first run.",
)
@click.option("--max-runs", type=click.IntRange(0), default=0, metavar="N", help="End after N runs; 0: never.")
def command(invocation: Invocation, every: float, at: tuple[time, ...], delay: float, max_runs: int) -> None:
    """Run again and again: at once, then every 24 hours; or at times of day.

    Between two runs, sites that people ask for (`sites harvest`) are harvested within seconds.

    SIGTERM and Ctrl-C end it: between runs with exit code 0; in the middle of a run with 130, and the next run
    continues its work. SIGHUP: the settings are read again.

    Example: metaharvest daemon --at 03:00 --at 15:00
    """
    period = timedelta(hours=every)
    if at and period % timedelta(days=1):
        raise click.UsageError("With --at, --every must be whole days: 24, 48, ...")
    if len(at) > 1 and period != timedelta(days=1):
        raise click.UsageError("With several --at, --every is 24.")
    settings = invocation.harvester.settings
    # A file that is missing for a moment must not be replaced by another one, or by none.
    same = invocation.again(settings.file and settings.file.absolute())
    plan = _Plan(same, period, at, settings.harvester.zone)
    with handled(signal.default_int_handler, signal.SIGTERM), handled(plan.ask_to_read_again, signal.SIGHUP):
        try:
            plan.run_for_ever(datetime.now(UTC) + timedelta(hours=delay), max_runs)
        finally:
            plan.forget()


class _Plan:
    """The times of the daemon's runs: this period, or these times of day as clocks in `zone` show them."""

    def __init__(self, invocation: Invocation, period: timedelta, at: Sequence[time], zone: ZoneInfo) -> None:
        self._invocation = invocation
        self._period = period
        self._at = at
        self._zone = zone
        self._asked = threading.Event()
        self._ended = _LONG_AGO
        self._noted = (_LONG_AGO, _LONG_AGO)
        self._no_request_before = _LONG_AGO

    def ask_to_read_again(self, _number: int, _frame: object) -> None:
        """The handler of SIGHUP: at once between two runs, otherwise after the run."""
        self._asked.set()

    def run_for_ever(self, start: datetime, max_runs: int) -> None:
        """Run not before `start` and then as planned, until `max_runs` are done or a signal comes between two runs."""
        import schedule

        scheduler = schedule.Scheduler()
        scheduler.every().day.do(lambda: _run(self._invocation))
        began: datetime | None = None
        runs = 0
        while True:
            try:
                is_time = self._wait(start, began)
            except KeyboardInterrupt:
                print_note("Stopped between two runs.")
                return
            if not is_time:
                print_note("A run of the sites that people asked for begins.")
                _run(self._invocation, requested=True)
                self._no_request_before = datetime.now(UTC) + _PAUSE_AFTER_REQUESTS
                self._noted = (_LONG_AGO, _LONG_AGO)
                continue
            began = datetime.now(UTC)
            print_note(f"A run begins at {began.astimezone(self._zone):%Y-%m-%d %H:%M %Z}.")
            scheduler.run_all()
            self._ended = datetime.now(UTC)
            runs += 1
            if runs == max_runs:
                return

    def _wait(self, start: datetime, began: datetime | None) -> bool:
        """Wait for the next moment; after SIGHUP, calculate it again. False: a person asks for a harvest before it."""
        while True:
            if self._asked.is_set():
                self._asked.clear()
                self._read_again()
            moment = self._next(start, began)
            # The library counts a period from the end of a run, takes zones of pytz only, makes up for each time missed
            # in a run, and compares local times, of which clocks show an hour twice: so the moment is calculated here.
            print_note(f"The next run is at {moment.astimezone(self._zone):%Y-%m-%d %H:%M %Z}.")
            while (seconds := (moment - datetime.now(UTC)).total_seconds()) > 0:
                if self._is_requested(moment):
                    return False
                if self._asked.wait(min(seconds, _LONGEST_SLEEP)):
                    break
            else:
                return True

    def _is_requested(self, next_run: datetime) -> bool:
        """True if a person asks for a harvest. Note now and then that the daemon is there, and when it runs next."""
        now = datetime.now(UTC)
        try:
            with closing(self._invocation.again()) as fresh:
                if self._noted[0] != next_run or now - self._noted[1] >= _NOTED_EVERY:
                    services.requests.note_daemon(
                        fresh.harvester, socket.gethostname(), os.getpid(), next_run, str(self._zone)
                    )
                    self._noted = (next_run, now)
                return now >= self._no_request_before and services.requests.is_harvest_waiting(fresh.harvester)
        except MetaharvestError as error:
            log.debug("Requests could not be read: %s", error)  # the next run reports it
            return False

    def forget(self) -> None:
        """Delete the note that the daemon is there."""
        with suppress(MetaharvestError), closing(self._invocation.again()) as fresh:
            services.requests.forget_daemon(fresh.harvester, socket.gethostname(), os.getpid())

    def _next(self, start: datetime, began: datetime | None) -> datetime:
        if began is not None:
            # A planned time that passes during a requested run is not missed: that run leaves due sites alone.
            return services.requests.next_time(began, self._ended, self._period, self._at, self._zone)
        return services.requests.next_at(start, self._at, self._zone) if self._at else start

    def _read_again(self) -> None:
        try:
            with closing(self._invocation.again()) as fresh:
                self._zone = fresh.harvester.settings.harvester.zone
        except MetaharvestError as error:
            print_failure(clean(f"The settings were read again, and cannot be used: {error}"))
        else:
            print_note("The settings were read again.")


def _run(invocation: Invocation, *, requested: bool = False) -> None:
    """One run, with the present settings; a failure is logged, not passed on."""
    try:
        with closing(invocation.again()) as fresh:
            harvest_now(fresh.harvester, requested=requested)
    except MetaharvestError as error:
        print_failure(clean(f"This run failed: {error}"))
    except Exception:
        log.exception("This run failed, and the daemon goes on")
