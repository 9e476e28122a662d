"""The moment when a run, or a site's part of it, must begin nothing new: after a signal or a deadline.

Work under way is finished, the rest is deferred. Deadlines use the monotonic clock, which no person sets.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf

from metaharvest.model import Finding, Level

STOPPED = Finding(
    "harvest.stopped",
    "The run was stopped before it came to its end.",
    "Nothing is to be done: the next run goes on with it.",
    Level.WARNING,
)


class StopSignal(threading.Event):
    """Set from any thread, or from a signal handler, when a run must begin nothing new."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[Callable[[], object]] = []

    def set(self) -> None:
        """Let the run begin nothing new."""
        super().set()
        for call in list(self._calls):
            call()

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """Call `call` in the present event loop as soon as this is set, even if it is set already."""
        loop = asyncio.get_running_loop()

        def call_soon() -> None:
            loop.call_soon_threadsafe(call)

        self._calls.append(call_soon)
        if self.is_set():
            call_soon()
        try:
            yield
        finally:
            self._calls.remove(call_soon)


@dataclass(eq=False, slots=True)
class Moment:
    """The moment (time.monotonic) when a deadline passes, and the finding about it."""

    at: float
    finding: Finding


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The stop signal and the deadlines: moments after which nothing new begins; `of_site` is the site's own.

    Before each step, callers call stop_reason() or deadline_reason(). `reasons` keeps the results, for cut_short().
    `given_up` returns another reason to give the site up.
    """

    stop: StopSignal
    moments: tuple[Moment, ...] = ()
    of_site: Moment | None = None
    reasons: set[Finding] = field(default_factory=set)
    given_up: Callable[[], Finding | None] = lambda: None

    def after_run(self, seconds: float) -> Deadlines:
        """The deadlines with the one for the whole run, this time from now; 0: none."""
        setting = f"[harvester] run_deadline = {seconds:.10g}, in seconds"
        message = f"The run's deadline ({setting}) passed before all was done."
        remedy = (
            "The next run goes on with it. If this happens every night, the administrator should look which sites "
            "take long, or raise the deadline."
        )
        return self._with(seconds, Finding("harvest.run-deadline", message, remedy, Level.WARNING))

    def after_site(self, seconds: float) -> Deadlines:
        """The deadlines with the one for one site's part, this time from now; 0: none."""
        setting = f"[harvester] site_deadline = {seconds:.10g}, in seconds"
        message = f"The deadline for one site ({setting}) passed before all was done."
        remedy = (
            "The next run goes on with it. If this happens every night, look why the web server is slow, or ask the "
            "harvester's administrator for a later deadline."
        )
        made = self._with(seconds, Finding("harvest.site-deadline", message, remedy, Level.WARNING))
        return replace(made, of_site=made.moments[-1] if seconds else None)

    @contextmanager
    def site_waits(self) -> Iterator[None]:
        """A context in which a site waits for others: the time does not count against the site's deadline."""
        began = time.monotonic()
        try:
            yield
        finally:
            if self.of_site is not None:
                self.of_site.at += time.monotonic() - began

    def stop_reason(self) -> Finding | None:
        """Note and return the reason why nothing new may begin; None: go on."""
        if not self.stop.is_set():
            return self.deadline_reason()
        self.reasons.add(STOPPED)
        return STOPPED

    def deadline_reason(self) -> Finding | None:
        """Note and return the finding about the deadline that has passed, if one has."""
        now = time.monotonic()
        passed = next((each.finding for each in self.moments if now >= each.at), None)
        if passed is not None:
            self.reasons.add(passed)
        return passed or self.given_up()

    def cut_short(self) -> Finding | None:
        """Why documents were deferred or given up: the signal, or one of these deadlines; None: all was done."""
        return next((why for why in (STOPPED, *(each.finding for each in self.moments)) if why in self.reasons), None)

    def left(self) -> float:
        """Seconds until the nearest deadline, infinite if there is none."""
        return min((each.at for each in self.moments), default=inf) - time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for this time, but not beyond the nearest deadline; a signal ends the wait."""
        woken = asyncio.Event()
        with self.stop.calling(woken.set):
            try:
                async with asyncio.timeout(max(0.0, min(seconds, self.left()))):
                    await woken.wait()
            except TimeoutError:
                return

    def _with(self, seconds: float, finding: Finding) -> Deadlines:
        if not seconds:
            return self
        return replace(self, moments=(*self.moments, Moment(time.monotonic() + seconds, finding)))
