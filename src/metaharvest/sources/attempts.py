"""As many attempts at a list, or a part of it, as it takes and the settings allow; a signal or a deadline ends them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, NotAsked
from metaharvest.fetch.backoff import Attempts, may_be_waited_for
from metaharvest.sources.base import Patience

Answer = TypeVar("Answer")


async def in_attempts(ask: Callable[[], Awaitable[Answer]], http: HttpSettings, patience: Patience) -> Answer:
    """What `ask` returns. Raises FetchError of the last attempt that failed, which says how many there were."""
    attempts = Attempts()
    failure: FetchError | None = None
    while True:
        try:
            return await ask()
        except NotAsked as error:
            failure = failure or error
            wait = error.retry_after if may_be_waited_for(error, http) else None
        except FetchError as error:
            attempts = attempts.and_one(error)
            wait = attempts.wait(error, http, http.list_deadline)
            failure = FetchError(
                *attempts.findings(error, http),
                transient=error.transient,
                seconds=attempts.seconds,
                retry_after=error.retry_after,
                counted=error.counted,
                status=error.status,
                page=error.page,
            )
        if wait is None:
            raise failure
        await patience.sleep(wait)
        if patience.heed():
            raise failure
