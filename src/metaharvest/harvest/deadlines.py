"""When a run, or a site's part of it, is to begin nothing more: a signal came, or one of its deadlines has passed.

What is under way then is finished, the rest is put off. Deadlines go by the monotonic clock, which nobody sets.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from math import inf

from metaharvest.model import Finding, Level

STOPPED = Finding(
    "harvest.stopped",
    "The run was stopped before it came to its end.",
    "Nothing is to be done: the next run goes on with it.",
    Level.WARNING,
)


class StopSignal(threading.Event):
    """Set, once and from any thread or signal handler, when a run is to begin nothing more."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The signal, and the deadlines: moments (time.monotonic) after which nothing is begun, and what to say then.

    Whoever asks gives up or puts off what it was about to do where it hears that it is to end: `heard` keeps that.
    """

    stop: threading.Event
    deadlines: tuple[tuple[float, Finding], ...] = ()
    heard: set[Finding] = field(default_factory=set)

    def after_run(self, seconds: float) -> Ending:
        """With the deadline for the whole run, from now; 0: none."""
        setting = f"[harvester] run_deadline = {seconds:.10g}, in seconds"
        message = f"The run's deadline ({setting}) passed before all was done."
        remedy = (
            "The next run goes on with it. If this happens every night, the administrator should look which sites "
            "take long, or raise the deadline."
        )
        return self._with(seconds, Finding("harvest.run-deadline", message, remedy, Level.WARNING))

    def after_site(self, seconds: float) -> Ending:
        """With the deadline for one site's part, from now; 0: none."""
        setting = f"[harvester] site_deadline = {seconds:.10g}, in seconds"
        message = f"The deadline for one site ({setting}) passed before all was done."
        remedy = (
            "The next run goes on with it. If this happens every night, look why the web server is slow, or ask the "
            "harvester's administrator for a later deadline."
        )
        return self._with(seconds, Finding("harvest.site-deadline", message, remedy, Level.WARNING))

    def why(self) -> Finding | None:
        """Why nothing more is to be begun; None: go on."""
        if not self.stop.is_set():
            return self.late()
        self.heard.add(STOPPED)
        return STOPPED

    def late(self) -> Finding | None:
        """The deadline that has passed, if one has."""
        now = time.monotonic()
        passed = next((finding for at, finding in self.deadlines if now >= at), None)
        if passed is not None:
            self.heard.add(passed)
        return passed

    def cut_short(self) -> Finding | None:
        """Why something was put off or given up, by the signal or one of these deadlines; None: all was done."""
        return next((why for why in (STOPPED, *(why for _, why in self.deadlines)) if why in self.heard), None)

    def left(self) -> float:
        """Seconds until the nearest deadline, infinite where there is none."""
        return min((at for at, _ in self.deadlines), default=inf) - time.monotonic()

    def wait(self, seconds: float) -> None:
        """Wait so long, but no longer than there is time; a signal ends it."""
        self.stop.wait(max(0.0, min(seconds, self.left(), threading.TIMEOUT_MAX)))

    def _with(self, seconds: float, finding: Finding) -> Ending:
        if not seconds:
            return self
        return Ending(self.stop, (*self.deadlines, (time.monotonic() + seconds, finding)), self.heard)
