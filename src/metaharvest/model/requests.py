"""Requests of people to the harvester: who asks, for what, and how it ends."""

from __future__ import annotations

from enum import StrEnum

from metaharvest.model.values import frozen


@frozen
class Actor:
    """The person who decides, and the way of the decision: `command` line, `console`, `api`, or a trusted `proxy`.

    `name` is the user of the system, or an address; empty if it is not known.
    """

    name: str = ""
    via: str = "command"


class RequestKind(StrEnum):
    """The work that a person asks for."""

    HARVEST = "harvest"
    STOP = "stop"
    SKIP = "skip"


class HarvestScope(StrEnum):
    """The documents of a requested harvest: as on a due day, all of them again, or only the failing ones."""

    DUE = "due"
    EVERYTHING = "everything"
    FAILING = "failing"


class RequestState(StrEnum):
    """The state of a request. A request that is waiting or taken is open."""

    WAITING = "waiting"
    TAKEN = "taken"
    DONE = "done"
    REFUSED = "refused"
    CANCELLED = "cancelled"


OPEN = (RequestState.WAITING.value, RequestState.TAKEN.value)
"""The states of open requests."""


class LivePhase(StrEnum):
    """The present work of a run on a site."""

    WAITING = "waiting"
    LISTING = "listing"
    FETCHING = "fetching"
    CHECKING = "checking"
    STORING = "storing"
    CLOSING = "closing"
    ENDED = "ended"
