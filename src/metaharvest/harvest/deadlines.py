"""The moment when a run, or a site's part of it, must begin nothing new: after a signal or a deadline.

Work under way is finished, the rest is deferred. Deadlines use the monotonic clock, which no person sets.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from math import inf

from metaharvest.model import Finding, Level
from metaharvest.model.values import frozen

STOPPED = Finding(
    "harvest.stopped",
    "The run was stopped before its end.",
    "No action is needed: the next run continues it.",
    Level.WARNING,
)


SITE_STOPPED = Finding(
    "harvest.site-stopped",
    "A person stopped the harvest of this site before its end.",
    "No action is needed: the next run continues it.",
    Level.WARNING,
)


class StopSignal(threading.Event):
    """Set from any thread, or from a signal handler, when a run must begin nothing new.

    `by_signal`: a signal to the process set it, not a person's request. `calls` are called when it is set.
    """

    def __init__(self) -> None:
        super().__init__()
        self.by_signal = False
        self.calls: dict[_Calling, None] = {}

    def set(self) -> None:
        """Let the run begin nothing new."""
        super().set()
        for call in list(self.calls):
            call.soon()

    def calling(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        """A context in which `call` is called in the event loop as soon as this is set, even if it is set already."""
        return _Calling((self,), call)


class _Calling:
    """Calls `call` in the event loop as soon as one of `stops` is set. One context serves all: each request has one."""

    __slots__ = ("_call", "_loop", "_stops")

    def __init__(self, stops: Sequence[StopSignal], call: Callable[[], object]) -> None:
        self._stops = stops
        self._call = call
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        for stop in self._stops:
            stop.calls[self] = None
            if stop.is_set():
                self.soon()

    def __exit__(self, *_: object) -> None:
        for stop in self._stops:
            stop.calls.pop(self, None)

    def soon(self) -> None:
        """In any thread."""
        self._loop.call_soon_threadsafe(self._call)


@contextmanager
def stopped_after(seconds: float) -> Iterator[StopSignal]:
    """A stop signal that is set after this time, unless the body ends before."""
    stop = StopSignal()
    timer = threading.Timer(seconds, stop.set)
    timer.daemon = True
    timer.start()
    try:
        yield stop
    finally:
        timer.cancel()


@dataclass(eq=False, slots=True)
class Moment:
    """The moment (time.monotonic) when a deadline passes, and the finding about it."""

    at: float
    finding: Finding


@frozen
class Deadlines:
    """The stop signal and the deadlines: moments after which nothing new begins; `of_site` is the site's own.

    Before each step, callers call stop_reason() or deadline_reason(). `reasons` keeps the results, for cut_short().
    `given_up` returns another reason to give the site up. `site_stop`: a person stopped the site.
    """

    stop: StopSignal
    moments: tuple[Moment, ...] = ()
    of_site: Moment | None = None
    reasons: set[Finding] = field(default_factory=set)
    given_up: Callable[[], Finding | None] = lambda: None
    site_stop: StopSignal = field(default_factory=StopSignal)

    def after_run(self, seconds: float) -> Deadlines:
        """The deadlines with the one for the whole run, this time from now; 0: none."""
        setting = f"[harvester] run_deadline = {seconds:.10g}, in seconds"
        message = f"The run's deadline ({setting}) passed before all was done."
        remedy = (
            "The next run goes on with it. If this happens every night, the administrator should look which sites "
            "take long, or raise the deadline."
        )
        return self._with(seconds, Finding("harvest.run-deadline", message, remedy, Level.WARNING))

    def after_site(self, seconds: float, used: float = 0.0) -> Deadlines:
        """The deadlines with the one for one site's part, this time from now; 0: none. `used`: time that has passed."""
        setting = f"[harvester] site_deadline = {seconds:.10g}, in seconds"
        message = f"The deadline for one site ({setting}) passed before all was done."
        remedy = (
            "The next run goes on with it. If this happens every night, find out why the web server is slow, or ask "
            "the harvester's administrator for a later deadline."
        )
        left = max(0.001, seconds - used) if seconds else 0
        made = self._with(left, Finding("harvest.site-deadline", message, remedy, Level.WARNING))
        return replace(made, of_site=made.moments[-1] if seconds else None)

    def used_by_site(self, seconds: float) -> float:
        """The used seconds of the site's deadline, which has this number; waits for other sites are left out."""
        return 0.0 if self.of_site is None else seconds - (self.of_site.at - time.monotonic())

    def after_questions(self, seconds: float) -> Deadlines:
        """The deadlines with the one for a person's questions to a site, this time from now; 0: none."""
        message = f"The server did not answer all questions within {seconds:.10g} seconds."
        remedy = "Ask again later. If this happens again, check if the server is slow, or if its lists have no end."
        return self._with(seconds, Finding("harvest.site-deadline", message, remedy, Level.WARNING))

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
        """Note and return the finding about the deadline that has passed, or about the stop of the site."""
        now = time.monotonic()
        passed = next((each.finding for each in self.moments if now >= each.at), None)
        if passed is not None:
            self.reasons.add(passed)
        return passed or (SITE_STOPPED if self.site_stop.is_set() else self.given_up())

    def cut_short(self) -> Finding | None:
        """Why documents were deferred or given up: the signal, or one of these deadlines; None: all was done."""
        return next((why for why in (STOPPED, *(each.finding for each in self.moments)) if why in self.reasons), None)

    def left(self) -> float:
        """Seconds until the nearest deadline, infinite if there is none."""
        return min((each.at for each in self.moments), default=inf) - time.monotonic()

    def calling(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        """A context in which `call` is called in the event loop as soon as the run or the site is stopped."""
        return _Calling((self.stop, self.site_stop), call)

    async def sleep(self, seconds: float) -> None:
        """Wait for this time, but not beyond the nearest deadline; a signal ends the wait."""
        woken = asyncio.Event()
        with self.calling(woken.set):
            try:
                async with asyncio.timeout(max(0.0, min(seconds, self.left()))):
                    await woken.wait()
            except TimeoutError:
                return

    def _with(self, seconds: float, finding: Finding) -> Deadlines:
        if not seconds:
            return self
        return replace(self, moments=(*self.moments, Moment(time.monotonic() + seconds, finding)))
