"""A run takes requests, and ends them. Requests that a dead run had taken wait again.

The functions about requests are called in a transaction of the run's journal. The daemon notes that it is there, and
when it runs next, for people who wait for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from metaharvest.database.models import DaemonState, HarvestRequest, HarvestSiteRun
from metaharvest.model.requests import OPEN, HarvestScope, RequestKind, RequestState

MOST_ATTEMPTS = 3
"""A request that this number of runs died with is refused: it may be the cause."""

_REFUSED = (
    f"{MOST_ATTEMPTS} runs were killed while they harvested this site, so it is not harvested on request again. "
    "Read the log, then ask again."
)


def is_open(session: Session) -> bool:
    """True if a harvest waits, or was taken by a run."""
    its = (HarvestRequest.state.in_(OPEN), HarvestRequest.kind == RequestKind.HARVEST.value)
    return session.scalar(select(HarvestRequest.request_id).where(*its).limit(1)) is not None


def is_waiting(session: Session, site_ids: Collection[int] | None = None) -> bool:
    """True if no run has taken a requested harvest yet. `site_ids`: only requests for these sites."""
    its = [HarvestRequest.state == RequestState.WAITING.value, HarvestRequest.kind == RequestKind.HARVEST.value]
    if site_ids is not None:
        its.append(HarvestRequest.site_schedule_id.in_(site_ids))
    return session.scalar(select(HarvestRequest.request_id).where(*its).limit(1)) is not None


def take(
    session: Session, kind: RequestKind, run_id: int, now: datetime, site_ids: Collection[int] | None = None
) -> Sequence[HarvestRequest]:
    """Take the waiting requests of this kind, of these sites if they are given; a stop only if it is for this run."""
    its = [HarvestRequest.kind == kind.value, HarvestRequest.state == RequestState.WAITING.value]
    if kind is RequestKind.STOP:
        its.append(HarvestRequest.run_id == run_id)
    if site_ids is not None:
        its.append(HarvestRequest.site_schedule_id.in_(site_ids))
    waiting = session.scalars(select(HarvestRequest.request_id).where(*its)).all()
    if not waiting:
        return ()
    # Another process may take one of them at this moment: the lock waits for it, and shows the rows that still wait.
    still = (HarvestRequest.request_id.in_(waiting), HarvestRequest.state == RequestState.WAITING.value)
    by_priority = (HarvestRequest.priority.desc(), HarvestRequest.request_id)
    locked = select(HarvestRequest).where(*still).order_by(*by_priority).with_for_update()
    taken = session.scalars(locked.execution_options(populate_existing=True)).all()
    for request in taken:
        request.state, request.run_id, request.taken_at = RequestState.TAKEN.value, run_id, now
        request.attempts += 1
    session.flush()
    return taken


def scopes(requests: Sequence[HarvestRequest]) -> dict[int, HarvestScope]:
    """The scope of each requested site; of several requests for one site the widest."""
    found: dict[int, HarvestScope] = {}
    for request in requests:
        site_id, scope = request.site_schedule_id, HarvestScope(request.scope or HarvestScope.DUE)
        if site_id is not None and (site_id not in found or _WIDTH[scope] > _WIDTH[found[site_id]]):
            found[site_id] = scope
    return found


_WIDTH = {HarvestScope.FAILING: 0, HarvestScope.DUE: 1, HarvestScope.EVERYTHING: 2}


def end(session: Session, request_ids: Collection[int], state: RequestState, sentence: str, now: datetime) -> None:
    """End these requests."""
    values = {"state": state.value, "sentence": sentence, "ended_at": now, "open_key": None}
    its = (HarvestRequest.request_id.in_(request_ids), HarvestRequest.state.in_(OPEN))
    session.execute(update(HarvestRequest).where(*its).values(**values).execution_options(synchronize_session=False))


def end_of_run(
    session: Session,
    run_id: int,
    ended: Mapping[int, tuple[str, datetime]],
    now: datetime,
    *,
    is_stopped: bool,
    is_whole: bool,
) -> None:
    """End all requests that a run has taken; `ended` has the last result of each site, in words, and its time.

    A result from before the request was taken does not count. A harvest that the run had no time for waits again,
    unless a person stopped the site, or the whole run (`is_stopped`). A run that was not cut short (`is_whole`) had
    time: without a result, the next run would have none either.
    """
    taken = _taken_by(session, [run_id])
    stopped = {each.site_schedule_id for each in taken if each.kind == RequestKind.STOP.value}
    for request in taken:
        if request.kind == RequestKind.HARVEST.value:
            result, at = ended.get(request.site_schedule_id or 0, ("", now))
            if result and (request.taken_at is None or at >= request.taken_at):
                _end(request, RequestState.DONE, f"Run {run_id} harvested it: {result}.", now)
            elif is_stopped or request.site_schedule_id in stopped:
                _end(request, RequestState.CANCELLED, f"A person stopped it in run {run_id}.", now)
            elif is_whole:
                sentence = f"Run {run_id} ended without a result for this site. Read its log, then ask again."
                _end(request, RequestState.REFUSED, sentence, now)
            else:
                _wait_again(request)
                request.attempts = 0  # this run was not killed
        elif request.kind == RequestKind.SKIP.value:
            was_harvested = request.site_schedule_id in ended
            left_out = f"Run {run_id} left it out."
            harvested = f"Run {run_id} harvested it: a person asked for that."
            _end(request, RequestState.DONE, harvested if was_harvested else left_out, now)
        elif request.site_name is not None:
            result, at = ended.get(request.site_schedule_id or 0, ("", now))
            if result and request.taken_at is not None and at < request.taken_at:
                sentence = f"Run {run_id} had already harvested {request.site_name}: {result}."
            elif _has_begun(session, run_id, request.site_schedule_id):
                sentence = f"Run {run_id} stopped the harvest of {request.site_name}."
            else:
                sentence = f"Run {run_id} did not harvest {request.site_name}."
            _end(request, RequestState.DONE, sentence, now)
        else:
            _end(request, RequestState.DONE, f"Run {run_id} stopped.", now)
    _end_late_stops(session, [run_id], now)


def give_back(session: Session, dead_runs: Collection[int], now: datetime) -> list[HarvestRequest]:
    """Let the requests of dead runs wait again, before a run begins; return the refused ones.

    All waiting stops are too late.
    """
    refused = []
    for request in _taken_by(session, dead_runs):
        if request.kind == RequestKind.STOP.value:
            _end(request, RequestState.DONE, f"Run {request.run_id} had ended.", now)
        elif request.kind == RequestKind.HARVEST.value and request.attempts >= MOST_ATTEMPTS:
            _end(request, RequestState.REFUSED, _REFUSED, now)
            refused.append(request)
        else:
            _wait_again(request)
    _end_late_stops(session, None, now)
    return refused


def taken_stops(session: Session, run_id: int) -> set[int | None]:
    """The numbers of the sites whose stop was taken for this run; None: of the whole run."""
    its = (
        HarvestRequest.run_id == run_id,
        HarvestRequest.kind == RequestKind.STOP.value,
        HarvestRequest.state == RequestState.TAKEN.value,
    )
    return set(session.scalars(select(HarvestRequest.site_schedule_id).where(*its)))


def purge(session: Session, before: date) -> None:
    """Delete requests that ended before this day."""
    limit = datetime.combine(before, time(), UTC)
    session.execute(delete(HarvestRequest).where(HarvestRequest.open_key.is_(None), HarvestRequest.ended_at < limit))


def _taken_by(session: Session, runs: Collection[int]) -> Sequence[HarvestRequest]:
    its = (HarvestRequest.run_id.in_(runs), HarvestRequest.state == RequestState.TAKEN.value)
    return session.scalars(select(HarvestRequest).where(*its).execution_options(populate_existing=True)).all()


def _has_begun(session: Session, run_id: int, site_id: int | None) -> bool:
    its = (HarvestSiteRun.run_id == run_id, HarvestSiteRun.site_schedule_id == site_id)
    return session.scalar(select(HarvestSiteRun.site_run_id).where(*its).limit(1)) is not None


def _end_late_stops(session: Session, runs: Collection[int] | None, now: datetime) -> None:
    """End the stops of these runs, or of all, that came when the runs had nothing left to stop."""
    its = (HarvestRequest.kind == RequestKind.STOP.value, HarvestRequest.state == RequestState.WAITING.value)
    late = select(HarvestRequest).where(*its)
    for request in session.scalars(late if runs is None else late.where(HarvestRequest.run_id.in_(runs))).all():
        _end(request, RequestState.DONE, f"Run {request.run_id} had ended.", now)


def _end(request: HarvestRequest, state: RequestState, sentence: str, now: datetime) -> None:
    request.state, request.sentence, request.ended_at, request.open_key = state.value, sentence, now, None


def _wait_again(request: HarvestRequest) -> None:
    request.state, request.run_id, request.taken_at = RequestState.WAITING.value, None, None


def note_daemon(session: Session, host: str, pid: int, next_run: datetime | None, zone: str, now: datetime) -> None:
    """Note the daemon of this process as the one that was seen last."""
    session.merge(DaemonState(daemon_id=1, host=host[:255], pid=pid, next_run_at=next_run, zone=zone[:64], seen_at=now))


def forget_daemon(session: Session, host: str, pid: int) -> None:
    """Delete the note of this daemon, as it ends."""
    session.execute(delete(DaemonState).where(DaemonState.host == host[:255], DaemonState.pid == pid))
