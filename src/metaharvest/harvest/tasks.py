"""Tasks side by side: the first error ends them all, and comes out as itself rather than in a group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from metaharvest.errors import DatabaseError, RunLost


@asynccontextmanager
async def side_by_side() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group. Of several errors, the one that ends the whole run is raised, otherwise the first."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        errors = list(_leaves(group))
        gravest = next((error for error in errors if isinstance(error, DatabaseError | RunLost)), errors[0])
        raise gravest from gravest.__cause__


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
