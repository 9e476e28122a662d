"""Tasks that are cancelled while a thread works for them."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine, Iterator

import pytest

from metaharvest.errors import DatabaseUnavailable
from metaharvest.harvest.lists.staging import FEW, Staging
from metaharvest.harvest.tasks import in_thread
from metaharvest.model import ListedDocument


async def cancelled(
    task: Coroutine[object, object, None], is_under_way: threading.Event, go_on: threading.Event
) -> None:
    """Cancel a task while its thread is under way, which goes on a moment later."""
    running = asyncio.create_task(task)
    await asyncio.to_thread(is_under_way.wait, 20)
    running.cancel()
    await asyncio.sleep(0.05)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_what_is_staged_is_not_closed_under_the_thread_that_stages_when_the_run_is_cancelled() -> None:
    """The run is lost, or its database is, while another site's list is read into a temporary table."""
    number = FEW + 25_000
    half_read, go_on = threading.Event(), threading.Event()
    staged_to_the_end: list[bool] = []

    def documents() -> Iterator[ListedDocument]:
        for each in range(number):
            if each == number // 2:
                half_read.set()
                go_on.wait(20)
            yield ListedDocument(f"a.{each}", 1, "eml", "http://localhost/")

    async def stage() -> None:
        with Staging() as staged:

            def fill() -> None:
                staged.fill(documents())
                staged_to_the_end.append(staged.count == number)

            await in_thread(fill)

    asyncio.run(cancelled(stage(), half_read, go_on))
    assert staged_to_the_end == [True]


def test_a_thread_that_fails_after_its_caller_was_cancelled_is_no_error_that_nobody_took(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Two sites lose the database at once: one ends the run, and the other's traceback is not for the operator."""
    is_asked, go_on = threading.Event(), threading.Event()

    def ask() -> None:
        is_asked.set()
        go_on.wait(20)
        raise DatabaseUnavailable("The database is away.")

    asyncio.run(cancelled(in_thread(ask), is_asked, go_on))
    gc.collect()
    assert caplog.records == []
