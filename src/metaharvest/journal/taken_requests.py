"""The requests of people in a run: taken at its beginning, stops while it is under way, all ended with it.

The room requests/ writes the rows; this module calls it in the transactions of the journal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestRequest, HarvestSiteRun
from metaharvest.journal.log_rows import LogRow, Stamp, Whose, write_log
from metaharvest.ledger.rows import try_failing_again
from metaharvest.model import SiteRunStatus
from metaharvest.model.requests import HarvestScope, RequestKind, RequestState
from metaharvest.model.values import frozen
from metaharvest.requests import taking
from metaharvest.text import one_line


@frozen
class TakenRequests:
    """The requests that a run takes: the scope and the priority of each site to harvest, and the sites to leave out."""

    harvests: Mapping[int, HarvestScope] = field(default_factory=dict)
    left_out: frozenset[int] = frozenset()
    priorities: Mapping[int, int] = field(default_factory=dict)

    @property
    def everything(self) -> frozenset[int]:
        """The sites whose whole list is harvested again."""
        return frozenset(site_id for site_id, scope in self.harvests.items() if scope is HarvestScope.EVERYTHING)


NO_REQUESTS = TakenRequests()


@frozen
class TakenStops:
    """The stops that a run takes while it is under way: of the whole run, or of sites by number."""

    whole_run: bool = False
    sites: frozenset[int] = frozenset()


def take(
    session: Session, stamp: Stamp, enabled: Mapping[int, str], named: Collection[int] | None, *, leaves_out: bool
) -> TakenRequests:
    """Take the requests of the `named` sites, or all; `leaves_out`: also the requests to leave a site out.

    `enabled` are the names of the sites that can be harvested. A request for another site is refused.
    """
    asked = _require_enabled(
        session, taking.take(session, RequestKind.HARVEST, stamp.run_id, stamp.now, named), enabled, stamp
    )
    asked = _with_failing_documents(session, asked, stamp)
    harvests = taking.scopes(asked)
    skips = taking.take(session, RequestKind.SKIP, stamp.run_id, stamp.now) if leaves_out else ()
    skips = [each for each in skips if each.site_schedule_id in enabled and each.site_schedule_id not in harvests]
    rows = [(f"{_person(each)} asked for a harvest of {each.site_name}.", each) for each in asked]
    rows += [(f"{each.site_name} is left out of this run: {_person(each)} asked for it.", each) for each in skips]
    _log(session, rows, stamp)
    left_out = frozenset(each.site_schedule_id for each in skips if each.site_schedule_id)
    # The highest priority comes first: a site keeps it.
    priorities = {each.site_schedule_id: each.priority for each in reversed(asked) if each.site_schedule_id}
    return TakenRequests(harvests, left_out, priorities)


def take_stops(session: Session, stamp: Stamp) -> TakenStops:
    """Take the stops that people have asked for since the last time."""
    taken = taking.take(session, RequestKind.STOP, stamp.run_id, stamp.now)
    _log(session, [(f"{_person(each)} stopped {each.site_name or 'the run'}.", each) for each in taken], stamp)
    sites = frozenset(each.site_schedule_id for each in taken if each.site_schedule_id is not None)
    return TakenStops(any(each.site_schedule_id is None for each in taken), sites)


def taken_stops(session: Session, run_id: int) -> TakenStops:
    """All stops that were taken for this run. Its workers read them, whichever of them took a stop."""
    taken = taking.taken_stops(session, run_id)
    return TakenStops(None in taken, frozenset(each for each in taken if each is not None))


def give_back(session: Session, dead_runs: Collection[int], stamp: Stamp) -> None:
    """Let the requests of dead runs wait again; the log names each refused request."""
    refused = taking.give_back(session, dead_runs, stamp.now)
    _log(session, [(_refusal(each, each.sentence or ""), each) for each in refused], stamp)


def end(session: Session, stamp: Stamp, *, is_stopped: bool, is_whole: bool) -> None:
    """End all requests that this run has taken, as it ends.

    `is_stopped`: a person stopped the whole run. `is_whole`: it was not cut short.
    """
    its = select(HarvestSiteRun).where(HarvestSiteRun.run_id == stamp.run_id).order_by(HarvestSiteRun.site_run_id)
    not_ended = (SiteRunStatus.RUNNING.value, SiteRunStatus.INTERRUPTED.value, SiteRunStatus.STOPPED.value)
    ended = {
        each.site_schedule_id: (each.status, each.ended_at)
        for each in session.scalars(its)
        if each.status not in not_ended and each.ended_at is not None
    }
    taking.end_of_run(session, stamp.run_id, ended, stamp.now, is_stopped=is_stopped, is_whole=is_whole)


def _require_enabled(
    session: Session, asked: Collection[HarvestRequest], enabled: Mapping[int, str], stamp: Stamp
) -> list[HarvestRequest]:
    """The requests for sites that can be harvested; the others are refused."""
    refused = [each for each in asked if each.site_schedule_id not in enabled]
    if refused:
        why = "The site is switched off, or no longer registered."
        taking.end(session, [each.request_id for each in refused], RequestState.REFUSED, why, stamp.now)
        _log(session, [(_refusal(each, why), each) for each in refused], stamp)
    return [each for each in asked if each.site_schedule_id in enabled]


def _with_failing_documents(session: Session, asked: Collection[HarvestRequest], stamp: Stamp) -> list[HarvestRequest]:
    """The requests that have something to harvest; failing documents that people asked for are tried again."""
    failing = [each for each in asked if each.scope == HarvestScope.FAILING.value]
    if not failing:
        return list(asked)
    with_some = try_failing_again(session, [each.site_schedule_id or 0 for each in failing], stamp.today)
    done = {each.request_id for each in failing if each.site_schedule_id not in with_some}
    taking.end(session, done, RequestState.DONE, "No document of the site fails.", stamp.now)
    return [each for each in asked if each.request_id not in done]


def _log(session: Session, rows: Collection[tuple[str, HarvestRequest]], stamp: Stamp) -> None:
    if rows:
        taken = [(LogRow("RequestTaken", message), Whose(each.site_schedule_id, None)) for message, each in rows]
        write_log(session, taken, stamp)


def _refusal(request: HarvestRequest, why: str) -> str:
    return f"{_person(request)} asked for a harvest of {request.site_name}. This is refused: {why}"


def _person(request: HarvestRequest) -> str:
    return one_line(request.asked_by) or "A person"
