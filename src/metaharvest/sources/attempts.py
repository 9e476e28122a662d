"""Repeated attempts to fetch a document or a list, as often as the settings allow. A signal or a deadline ends them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError
from metaharvest.fetch.backoff import Attempts
from metaharvest.sources.base import TimeBudget

Answer = TypeVar("Answer")


async def in_attempts(
    ask: Callable[[], Awaitable[Answer]],
    http: HttpSettings,
    patience: TimeBudget,
    *,
    attempts: Attempts | None = None,
    pause: Callable[[float], Awaitable[None]] | None = None,
) -> Answer:
    """Return the result of `ask`. Raises FetchError of the last failed attempt, with the number of attempts.

    Without `attempts`, each attempt may take as long as a list. `pause` waits before the next attempt.
    """
    attempts = attempts or Attempts(http, http.list_deadline)
    while True:
        try:
            return await ask()
        except FetchError as error:
            failure, wait = attempts.after(error)
        if wait is None:
            raise failure
        await (pause or patience.sleep)(wait)
        if patience.stop_reason():
            raise failure
