"""A run that people can watch and stop: it writes live numbers by site, and takes the stops of people.

Both happen every 2 seconds, in one transaction of the journal, in the event loop of the run.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from metaharvest.errors import DatabaseError, NotWritten, RunLost
from metaharvest.harvest.context import Progress
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.journal.journal import Journal
from metaharvest.journal.live import SiteNumbers
from metaharvest.journal.taken_requests import TakenStops
from metaharvest.model.requests import LivePhase
from metaharvest.model.values import frozen

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Site:
    """The live numbers of a site. `under_way`: the number of its documents in each phase."""

    site_id: int
    listed: int = 0
    done: int = 0
    errors: int = 0
    began_at: datetime | None = None
    has_list: bool = False
    closes: bool = False
    has_ended: bool = False
    under_way: Counter[LivePhase] = field(default_factory=Counter)

    @property
    def phase(self) -> LivePhase:
        """The phase of most of its documents."""
        if self.has_ended:
            return LivePhase.ENDED
        if self.began_at is None:
            return LivePhase.WAITING
        if self.closes:
            return LivePhase.CLOSING
        if busiest := +self.under_way:
            return busiest.most_common(1)[0][0]
        return LivePhase.FETCHING if self.has_list and self.done < self.listed else LivePhase.LISTING


class _InPhase:
    """A context in which a document counts in this phase. Many documents may use one context at a time."""

    __slots__ = ("_phase", "_under_way")

    def __init__(self, under_way: Counter[LivePhase], phase: LivePhase) -> None:
        self._under_way = under_way
        self._phase = phase

    def __enter__(self) -> None:
        self._under_way[self._phase] += 1

    def __exit__(self, *_: object) -> None:
        self._under_way[self._phase] -= 1


class LiveProgress(Progress):
    """Counts the documents of each site of a run, and passes everything on to `shown`."""

    def __init__(self, shown: Progress, sites: Mapping[str, int], clock: Callable[[], datetime]) -> None:
        self._shown = shown
        self._clock = clock
        self._sites = {name: _Site(site_id) for name, site_id in sites.items()}
        self._written: dict[str, SiteNumbers] = {}

    def site_began(self, name: str) -> None:
        """A site's harvest began."""
        self._sites[name].began_at = self._clock()
        self._shown.site_began(name)

    def documents_listed(self, name: str, listed: int) -> None:
        """The site's list was read."""
        self._sites[name].listed = listed
        self._sites[name].has_list = True
        self._shown.documents_listed(name, listed)

    def documents_ended(self, name: str, number: int) -> None:
        """`number` more documents have their outcome."""
        self._sites[name].done += number
        self._shown.documents_ended(name, number)

    def document_failed(self, name: str) -> None:
        """A document has an outcome that is an error."""
        self._sites[name].errors += 1
        self._shown.document_failed(name)

    def site_closes(self, name: str) -> None:
        """All documents of the site have their outcomes; its totals and its report are made."""
        self._sites[name].closes = True
        self._shown.site_closes(name)

    def site_ended(self, name: str) -> None:
        """The site's harvest ended."""
        self._sites[name].has_ended = True
        self._shown.site_ended(name)

    def in_phase(self, name: str, phase: LivePhase) -> _InPhase:
        """A context in which a document of the site is in this phase."""
        return _InPhase(self._sites[name].under_way, phase)

    def add(self, sites: Mapping[str, int]) -> None:
        """Count these sites, too, from the beginning."""
        for name, site_id in sites.items():
            self._sites[name] = _Site(site_id)
            self._written.pop(name, None)

    def changed(self) -> list[SiteNumbers]:
        """The numbers of the sites that have changed since they were `written`."""
        found = []
        for name, site in self._sites.items():
            before = self._written.get(name)
            numbers = SiteNumbers(
                site.site_id, name, site.phase, site.listed, site.done, site.errors, site.began_at, before is None
            )
            if before is None or _shown(before) != _shown(numbers):
                found.append(numbers)
        return found

    def written(self, numbers: list[SiteNumbers]) -> None:
        """Note that these numbers are stored."""
        self._written |= {each.site: each for each in numbers}


class SiteStops:
    """The stop signal of each site: a person sets it, or the end of a worker's slice."""

    def __init__(self) -> None:
        self._signals: dict[int, StopSignal] = {}

    def of(self, site_id: int) -> StopSignal:
        """The signal of this site."""
        return self._signals.setdefault(site_id, StopSignal())

    def share(self, site_id: int, signal: StopSignal) -> None:
        """Let this be the signal of the site."""
        self._signals[site_id] = signal


@frozen
class Watch:
    """Writes the live numbers of a run, and sets the stop signals that people ask for."""

    journal: Journal
    progress: LiveProgress
    stop: StopSignal
    site_stops: SiteStops
    seconds: float

    async def keep(self) -> None:
        """Write and look every `seconds`, until the task is cancelled, or the run can write no more."""
        while True:
            await asyncio.sleep(self.seconds)
            numbers = self.progress.changed()
            try:
                await self.journal.beat(numbers, self._set_signals)
            except (DatabaseError, RunLost):
                return  # whatever else the run writes raises it, too
            except NotWritten as error:
                log.warning("The live numbers could not be written: %s", error)
                continue
            self.progress.written(numbers)

    def _set_signals(self, stops: TakenStops) -> None:
        """Set the signals of these stops. To be called in any thread."""
        for site_id in stops.sites:
            self.site_stops.of(site_id).set()
        if stops.whole_run:
            self.stop.set()


def _shown(numbers: SiteNumbers) -> tuple[object, ...]:
    return numbers.phase, numbers.listed, numbers.done, numbers.errors
