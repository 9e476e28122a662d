"""The policy of the coordinator: which jobs a run has, in which order, and when it ends. Pure."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from metaharvest.model import SiteRunKind
from metaharvest.model.jobs import Assessment, Priority
from metaharvest.model.values import frozen

MOST_ATTEMPTS = 5
"""Claims of a job that may fail, or whose worker may die, before the job is given up: it may be the reason."""

_MORE_TRIES = 3
"""Further claims that give a job up, if the database is away at the first one: its sites get their finding later."""

LONGER_AFTER_OUTAGE = 12
"""The factor of the pauses after outages that count: five of them take half an hour, and 2.5 minutes without it."""

GIVEN_UP = f"It was begun {MOST_ATTEMPTS} times, and did not come to its end."
"""The sentence of a job that is given up, and whose sites get a finding."""

RUN_ENDED = "Its run has ended."
"""The sentence of a job that is cancelled as its run has ended: the next run has its sites."""


@frozen
class Waiting:
    """What is known of a site that waits to be harvested.

    `asked` is the priority of a request of a person, or None. `due_since` is None for a site that was never due.
    """

    kind: SiteRunKind
    asked: int | None = None
    due_since: date | None = None
    was_harvested: bool = True


def priority_of(waiting: Waiting, today: date) -> int:
    """The priority of a site's job: asked for by a person, then retries, then due the longest, then new sites."""
    if waiting.asked is not None:
        return Priority.ASKED + waiting.asked
    if waiting.kind is SiteRunKind.RETRY:
        return Priority.RETRY
    if not waiting.was_harvested:
        return Priority.NEW
    overdue = (today - waiting.due_since).days if waiting.due_since else 0
    return Priority.DUE + max(0, min(overdue, Priority.MOST_DAYS))


def is_time(now: datetime, last_run_day: date | None, run_at: time, zone: ZoneInfo) -> bool:
    """True if it is time for the run of this day: clocks in `zone` show `run_at` or later, and there was none today."""
    local = now.astimezone(zone)
    return (last_run_day is None or last_run_day < local.date()) and local.time() >= run_at


def assess(*, is_done: bool, error: str, attempts: int, is_outage: bool = False) -> Assessment:
    """What becomes of a job after a worker worked on it. `error` is empty if its slice ended by itself.

    After MOST_ATTEMPTS attempts the next worker gives the job up: then the job is done, and yet it has failed. If this
    meets an outage of the database, the next workers try it, too: the job may be the reason of the outage.
    """
    if not is_done and not error:
        return Assessment.AGAIN
    if attempts > MOST_ATTEMPTS + (_MORE_TRIES if is_outage else 0):
        return Assessment.FAILED
    return Assessment.DONE if is_done else Assessment.AGAIN


def pause_after(attempts: int) -> timedelta:
    """The time before a job is tried again after a failure: 5 seconds, then twice as long each time."""
    return timedelta(seconds=5 * 2 ** max(0, attempts - 1))


def runs_too_long(now: datetime, began_at: datetime, deadline: float) -> bool:
    """True if a run has passed its deadline, in seconds; 0: there is none."""
    return bool(deadline) and now - began_at >= timedelta(seconds=deadline)
