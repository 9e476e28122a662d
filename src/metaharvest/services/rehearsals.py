"""Rehearsals of registered sites: the next harvest of one site, in a thread of this process, with its report.

Nothing is written to the database, no mail is sent. A rehearsal is kept in memory until others take its place.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from metaharvest.errors import MetaharvestError, RequestError
from metaharvest.harvest.context import Progress
from metaharvest.harvest.deadlines import stopped_after
from metaharvest.model.requests import LivePhase
from metaharvest.model.values import frozen
from metaharvest.queries.runs import RunFinding, SiteRunRecord, findings_of
from metaharvest.services.harvester import DryRun, Harvester
from metaharvest.services.reports import site_report
from metaharvest.sites.registry import find_site

log = logging.getLogger(__name__)

SECONDS = 600.0
"""After this time a rehearsal begins nothing new: it leaves the other documents out."""

MOST_WAITING = 5
MOST_KEPT = 20
MOST_FINDINGS = 200


@frozen
class RehearsalReport:
    """The result of a rehearsal: the report that the contacts would get, and its first findings, errors first."""

    subject: str
    text: str
    site_run: SiteRunRecord
    findings: tuple[RunFinding, ...]
    number_of_findings: int


@frozen
class Rehearsal:
    """A rehearsal of a site: `phase` is waiting, listing, fetching or ended; `failure` says why there is no report.

    `listed`, `done` and `errors` are numbers of documents.
    """

    number: int
    site_id: int
    site: str
    asked_by: str
    asked_at: datetime
    phase: LivePhase = LivePhase.WAITING
    listed: int = 0
    done: int = 0
    errors: int = 0
    ended_at: datetime | None = None
    report: RehearsalReport | None = None
    failure: str = ""

    @property
    def has_ended(self) -> bool:
        """True if there is a report, or a failure."""
        return self.phase is LivePhase.ENDED


@dataclass(slots=True)
class Rehearsals:
    """The rehearsals of this process: one at a time."""

    _turn: threading.Lock = field(default_factory=threading.Lock)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _all: dict[int, Rehearsal] = field(default_factory=dict)
    _last: int = 0

    def start(self, harvester: Harvester, name: str) -> Rehearsal:
        """Start a rehearsal of this site, or return the one that has not ended.

        Raises ScheduleError if there is no such site, RequestError if too many wait.
        """
        site = harvester.read(find_site, name)
        with self._lock:
            going = [each for each in self._all.values() if not each.has_ended]
            same = [each for each in going if each.site_id == site.site_id]
            if same:
                return same[0]
            if len(going) > MOST_WAITING:
                raise RequestError(f"{len(going)} rehearsals are not done yet. Please try again in a few minutes.")
            self._last += 1
            new = Rehearsal(self._last, site.site_id, site.name, harvester.actor.name, harvester.now())
            self._all[new.number] = new
            too_many = max(0, len(self._all) - MOST_KEPT)
            for old in [each.number for each in self._all.values() if each.has_ended][:too_many]:
                del self._all[old]
        threading.Thread(target=self._rehearse, args=(harvester, new), daemon=True, name="rehearsal").start()
        return new

    def find(self, number: int, site_id: int) -> Rehearsal | None:
        """The rehearsal of this number if it is one of this site; None if it is not, or not kept any more."""
        found = self._all.get(number)
        return found if found is not None and found.site_id == site_id else None

    def newest(self, site_id: int) -> Rehearsal | None:
        """The newest rehearsal of this site that is kept."""
        with self._lock:
            return next((each for each in reversed(self._all.values()) if each.site_id == site_id), None)

    def _change(self, number: int, **values: object) -> None:
        with self._lock:
            self._all[number] = replace(self._all[number], **values)  # type: ignore[arg-type]

    def _rehearse(self, harvester: Harvester, asked: Rehearsal) -> None:
        failure, report = "", None
        with self._turn:
            try:
                numbers = _Numbers(self, asked.number)
                with stopped_after(SECONDS) as stop, harvester.rehearse_site(asked.site, numbers, stop) as done:
                    report = _report(done)
            except MetaharvestError as error:
                failure = " ".join(error.sentences)
            except Exception:
                log.exception("The rehearsal of the site %s ended with an unexpected error", asked.site)
                failure = "An unexpected error ended the rehearsal. The operator finds it in the log of the server."
            ended = {"phase": LivePhase.ENDED, "ended_at": harvester.now()}
            self._change(asked.number, report=report, failure=failure, **ended)


class _Numbers(Progress):
    """Counts the documents of the site."""

    def __init__(self, rehearsals: Rehearsals, number: int) -> None:
        self._rehearsals = rehearsals
        self._number = number
        self._done = self._errors = 0

    def site_began(self, name: str) -> None:
        self._rehearsals._change(self._number, phase=LivePhase.LISTING)

    def documents_listed(self, name: str, listed: int) -> None:
        self._rehearsals._change(self._number, phase=LivePhase.FETCHING, listed=listed)

    def documents_ended(self, name: str, number: int) -> None:
        self._done += number
        self._rehearsals._change(self._number, done=self._done, errors=self._errors)

    def document_failed(self, name: str) -> None:
        self._errors += 1


def _report(done: DryRun) -> RehearsalReport | None:
    site_runs: Sequence[SiteRunRecord] = done.record.sites
    if not site_runs:
        return None
    report = site_report(done.harvester, site_runs[0].site_run_id)
    findings = sorted(done.harvester.read(findings_of, done.record.run_id), key=lambda each: each.level != "error")
    return RehearsalReport(report.subject, report.text, site_runs[0], tuple(findings[:MOST_FINDINGS]), len(findings))
