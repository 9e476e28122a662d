"""The trouble of servers, which all processes that harvest share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerTrouble:
    """The state of a server that wants to be left alone, or cannot be reached; times in seconds.

    `server` is the name of its host, with an unusual port. `rest`: the time left of the pause that it asked for.
    `failures`: the number of requests in a row that did not reach it; the last one failed `failed_before` seconds ago,
    and `pause` is left until the next one.
    """

    server: str
    rest: float = 0.0
    failures: int = 0
    failed_before: float = 0.0
    pause: float = 0.0
