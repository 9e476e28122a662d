"""The end of requests under way after a stop of their site, or of the whole run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext, suppress
from types import TracebackType
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


def ending_after(stops: Stops | None, spent: float = 0.0) -> AbstractAsyncContextManager[None]:
    """A context that ends by RequestEnded a few seconds after the stop, so that most answers under way still come.

    `spent`: seconds that the request has taken before.
    """
    return nullcontext() if stops is None else _Ending(stops, spent)


class _Ending:
    """The context of ending_after(). Each request has one, and two generators would take three times as long."""

    __slots__ = ("_calling", "_spent", "_stops", "_timeout")

    def __init__(self, stops: Stops, spent: float) -> None:
        self._stops = stops
        self._spent = spent
        self._timeout = asyncio.timeout(None)
        self._calling = stops.calling(self._end)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._calling.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._calling.__exit__(kind, error, traceback)
        try:
            await self._timeout.__aexit__(kind, error, traceback)
            if isinstance(error, TimeoutError):  # of the request itself
                raise error
        except TimeoutError as timeout:
            if (why := self._stops.stop_reason()) is None:
                raise
            raise RequestEnded(why, "", seconds=self._spent) from timeout

    def _end(self) -> None:
        with suppress(RuntimeError):  # the request has ended in this very moment
            self._timeout.reschedule(asyncio.get_running_loop().time() + SECONDS_AFTER_STOP)
