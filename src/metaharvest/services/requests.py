"""Requests to the harvester: harvest a site, stop a run or a site, leave a site out of the next run.

A request is a row. A run, or the daemon, takes it: nothing is harvested here. A repeated request is
the same request. Each function takes the person from `Harvester.actor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from metaharvest.accounts.audit import Decision, Values
from metaharvest.database.engine import run_lock
from metaharvest.errors import LockHeld, MetaharvestError, RequestError
from metaharvest.model import Site
from metaharvest.model.actions import todo
from metaharvest.model.requests import HarvestScope, RequestKind, RequestState
from metaharvest.model.values import frozen
from metaharvest.queries.live import running_run_id, upcoming_run, writing_run_id
from metaharvest.queries.requests import RequestFilter, RequestRecord, daemon, request_record
from metaharvest.queries.requests import open_requests as stored_open_requests
from metaharvest.queries.requests import requests as stored_requests
from metaharvest.requests import asking, taking
from metaharvest.requests.asking import NewRequest
from metaharvest.services.harvester import Harvester
from metaharvest.sites.registry import find_site
from metaharvest.sites.rows import BrokenSite
from metaharvest.text import one_line

__all__ = ["HarvestScope", "RequestKind", "RequestState"]

MOST_PRIORITY = 100


@frozen
class Asked:
    """The request, True if it is new, and a sentence: what it waits for."""

    request: RequestRecord
    is_new: bool
    waits_for: str


def ask_harvest(harvester: Harvester, name: str, scope: HarvestScope = HarvestScope.DUE, *, priority: int = 0) -> Asked:
    """Ask for the harvest of a site, due or not. The request with the highest `priority` comes first.

    Raises ScheduleError if there is no such site, RequestError if it is switched off.
    """
    if not 0 <= priority <= MOST_PRIORITY:
        raise RequestError(f"A priority is a number from 0 to {MOST_PRIORITY}.")
    with harvester.writing() as session:
        site = _enabled(session, name)
        new = NewRequest(kind=RequestKind.HARVEST, site_id=site.site_id, site=site.name, scope=scope, priority=priority)
        return _asked(harvester, session, new, "sites.harvest", {"scope": scope.value})


def ask_stop(harvester: Harvester, name: str | None = None) -> Asked:
    """Ask the run under way to stop as a whole, or to stop the harvest of one site.

    Work under way is finished, the rest is left to the next run. Raises RequestError if no run is under way,
    ScheduleError if there is no such site.
    """
    with harvester.writing() as session:
        run_id = running_run_id(session)
        if run_id is None:
            raise RequestError("No run is under way: there is nothing to stop.")
        after = {"run_id": run_id}
        if name is None:
            return _asked(harvester, session, NewRequest(kind=RequestKind.STOP, run_id=run_id), "runs.stop", after)
        site = find_site(session, name)
        new = NewRequest(kind=RequestKind.STOP, site_id=site.site_id, site=site.name, run_id=run_id)
        return _asked(harvester, session, new, "runs.stop_site", after)


def skip_tonight(harvester: Harvester, name: str) -> Asked:
    """Leave a site out of the next run that harvests the due sites. The site stays due.

    Raises ScheduleError if there is no such site, RequestError if it is switched off.
    """
    with harvester.writing() as session:
        site = _enabled(session, name)
        new = NewRequest(kind=RequestKind.SKIP, site_id=site.site_id, site=site.name)
        return _asked(harvester, session, new, "sites.skip")


def harvest_tonight(harvester: Harvester, name: str) -> RequestRecord | None:
    """Take `skip_tonight` back; None if no such request waits. Raises ScheduleError if there is no such site."""
    with harvester.reading() as session:
        site = find_site(session, name)
        waiting = RequestFilter(site.site_id, (RequestKind.SKIP,), (RequestState.WAITING,))
        found = stored_requests(session, waiting)
    return next((cancel(harvester, each.request_id) for each in found), None)


def cancel(harvester: Harvester, request_id: int) -> RequestRecord:
    """Take a request back. Raises MetaharvestError if there is none, RequestError if a run has taken it already."""
    with harvester.writing() as session:
        request = _record(session, request_id)
        by = f" by {one_line(harvester.actor.name)}" if harvester.actor.name else ""
        if not asking.cancel(session, request_id, f"It was taken back{by}.", harvester.now()):
            what = "ended already" if not request.is_open else f"was taken by run {request.run_id} already"
            raise RequestError(f"Request {request_id} cannot be taken back: it {what}.")
        subject, after = request.site or f"run {request.run_id}", {"state": RequestState.CANCELLED.value}
        before = {"kind": request.kind, "scope": request.scope, "state": request.state}
        decision = Decision("requests.cancel", "request", subject, request.site_id, before=before, after=after)
        harvester.audit(session, decision)
        session.expire_all()
        return _record(session, request_id)


def find(harvester: Harvester, request_id: int) -> Asked:
    """The request of this number, and what it waits for. Raises MetaharvestError if there is none."""
    with harvester.reading() as session:
        request = _record(session, request_id)
        return Asked(request, False, waits_for(harvester, session, request))


def is_harvest_waiting(harvester: Harvester) -> bool:
    """True if a person asked for a harvest, and no run is under way.

    A request that a dead run had taken counts: the next run lets it wait again, then takes it.
    """
    with harvester.reading() as session:
        if not taking.is_open(session):
            return False
    try:
        with run_lock(harvester.engine):
            return True
    except LockHeld:
        return False


def waits_for(harvester: Harvester, session: Session, request: RequestRecord) -> str:
    """A sentence: what a request waits for, or how it ended."""
    return _sentence(request, _situation(harvester, session))


def open_requests(harvester: Harvester) -> list[Asked]:
    """The open requests, the newest first, each with what it waits for."""
    with harvester.reading() as session:
        situation = _situation(harvester, session)
        return [Asked(each, False, _sentence(each, situation)) for each in stored_open_requests(session)]


@frozen
class _Situation:
    """The run under way that still writes, and the moment of the next run, in words.

    `has_daemon`: the daemon is there. `has_workers`: workers do the runs of this installation.
    """

    running: int | None
    has_daemon: bool
    has_workers: bool
    next_run: str


def _situation(harvester: Harvester, session: Session) -> _Situation:
    now = harvester.now()
    coming = upcoming_run(session, now, harvester.today())
    has_daemon, has_workers = daemon(session, now) is not None, bool(harvester.settings.workers.broker)
    return _Situation(writing_run_id(session, now), has_daemon, has_workers, coming.when)


def _sentence(request: RequestRecord, situation: _Situation) -> str:
    if not request.is_open:
        return request.sentence or f"It is {request.state}."
    if request.state == RequestState.TAKEN:
        return f"Run {request.run_id} has taken it."
    if request.kind == RequestKind.STOP and situation.running is None and situation.has_workers:
        return "The coordinator takes it within a minute."
    if request.kind == RequestKind.STOP and situation.running is None:
        return f"Run {request.run_id} has not written for 2 minutes: its process may have ended. The next run goes on."
    if request.kind == RequestKind.STOP:
        return f"Run {request.run_id} takes it within seconds."
    if request.kind == RequestKind.SKIP:
        return f"It is left out {situation.next_run}."
    if situation.has_daemon and situation.running is None:
        return "The daemon takes it within seconds."
    if situation.has_daemon:
        return f"The daemon takes it as soon as run {situation.running} has ended."
    if situation.has_workers:
        return "Workers take it within a minute, or at the end of a slice of this site that is under way."
    start = todo("runs.requested")
    if situation.running is not None:
        return f"It waits for the run after run {situation.running}, or for {start}."
    return f"It waits for the next run, or for {start}: the daemon does not run."


def note_daemon(harvester: Harvester, host: str, pid: int, next_run: datetime | None, zone: str) -> None:
    """Note that the daemon of this process is there, and the time of its next run."""
    harvester.write(taking.note_daemon, host, pid, next_run, zone, harvester.now())


def forget_daemon(harvester: Harvester, host: str, pid: int) -> None:
    """Note that the daemon of this process ends."""
    harvester.write(taking.forget_daemon, host, pid)


def _record(session: Session, request_id: int) -> RequestRecord:
    request = request_record(session, request_id)
    if request is None:
        raise MetaharvestError(f"There is no request {request_id}. {todo('requests.list')} lists the requests.")
    return request


def _enabled(session: Session, name: str) -> Site | BrokenSite:
    site = find_site(session, name)
    if not site.enabled:
        enable = todo("sites.enable", name=site.name)
        raise RequestError(f"The site {site.name} is switched off; {enable} switches it on.")
    return site


def _asked(harvester: Harvester, session: Session, new: NewRequest, action: str, after: Values | None = None) -> Asked:
    row, is_new = asking.ask(session, new, harvester.actor, harvester.now())
    if is_new:
        kind, subject = ("site", new.site) if new.site is not None else ("run", str(new.run_id))
        harvester.audit(session, Decision(action, kind, subject, new.site_id, after=after))
    request = _record(session, row.request_id)
    return Asked(request, is_new, waits_for(harvester, session, request))


# -- the times of the daemon's runs: periods, and times of day as clocks show them


def next_at(after: datetime, at: Sequence[time], zone: ZoneInfo) -> datetime:
    """The first moment not before `after` at which clocks in `zone` show one of the times `at`, in UTC.

    A time that a clock change skips is moved by the change; one that it repeats counts once.
    """
    day = after.astimezone(zone).date()
    days = [day + timedelta(days=number) for number in range(3)]
    moments = sorted(datetime.combine(each, one, zone).astimezone(UTC) for each in days for one in at)
    return next(moment for moment in moments if moment >= after)


def next_time(began: datetime, now: datetime, period: timedelta, at: Sequence[time], zone: ZoneInfo) -> datetime:
    """The time of the run after the one that began at `began`: whole periods later, and not in the past.

    With one time of day, days count from the day for which the run was planned: the run may begin after midnight.
    """
    if not at:
        return began + period * max(1, -((began - now) // period))
    if len(at) > 1:
        return next_at(max(began + timedelta(minutes=1), now), at, zone)
    day = began.astimezone(zone).date()
    if began + timedelta(minutes=1) < datetime.combine(day, at[0], zone):
        day -= timedelta(days=1)
    start = datetime.combine(day + period, time(0), zone)
    return next_at(max(start.astimezone(UTC), now), at, zone)
