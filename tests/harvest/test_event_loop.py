"""Calls whose threads die: nobody waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from metaharvest.harvest import event_loop
from metaharvest.harvest.event_loop import RunLoop


class Dying(ThreadPoolExecutor):
    """Threads that die before they begin a call, or before they deliver its result."""

    def __init__(self, *, begins: bool) -> None:
        super().__init__(1)
        self._begins = begins

    def submit(self, fn: Callable[..., Any], /, *args: Any, **values: Any) -> Future[Any]:
        def dies() -> None:
            if self._begins:
                fn(*args, **values)

        thread = threading.Thread(target=dies)
        thread.start()
        thread.join()
        self._threads = {thread}
        return Future()


def in_run_loop(call: Callable[[], Any], pool: ThreadPoolExecutor) -> Any:
    async def called() -> Any:
        return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(pool, call), 60)

    with pool, asyncio.Runner(loop_factory=RunLoop) as runner:
        return runner.run(called())


@pytest.mark.parametrize("begins", [True, False])
def test_a_call_whose_thread_dies_is_an_error_of_memory(begins: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "_LOOK_SECONDS", 0.01)
    with pytest.raises(MemoryError):
        in_run_loop(int, Dying(begins=begins))


def test_a_long_call_is_no_lost_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "_LOOK_SECONDS", 0.001)
    go_on = threading.Event()

    async def called() -> int:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        calls = [asyncio.to_thread(go_on.wait, 60), asyncio.to_thread(int, "5")]
        loop.call_later(0.05, go_on.set)
        return (await asyncio.gather(*calls))[1]

    with asyncio.Runner(loop_factory=RunLoop) as runner:
        assert runner.run(called()) == 5
