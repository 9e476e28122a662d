"""The end of requests under way after a stop of their site, or of the whole run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from typing import Protocol

from metaharvest.errors import RequestEnded
from metaharvest.model import Finding

SECONDS_AFTER_STOP = 4.0
"""The time that requests under way still have after their site, or the run, was stopped."""


class Stops(Protocol):
    """The stop of a site by a person, or of the whole run."""

    def calling(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        """Call `call` in the present event loop at the stop, at once if it has come."""

    def stop_reason(self) -> Finding | None:
        """Why nothing new may begin; None before the stop."""


@asynccontextmanager
async def ending_after(stops: Stops | None, spent: float = 0.0) -> AsyncIterator[None]:
    """A context that ends by RequestEnded a few seconds after the stop, so that most answers under way still come.

    `spent`: seconds that the request has taken before.
    """
    if stops is None:
        yield
        return
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as timeout:

            def end() -> None:
                with suppress(RuntimeError):  # the request has ended in this very moment
                    timeout.reschedule(loop.time() + SECONDS_AFTER_STOP)

            with stops.calling(end):
                yield
    except TimeoutError as error:
        if (why := stops.stop_reason()) is None:
            raise
        raise RequestEnded(why, "", seconds=spent) from error
