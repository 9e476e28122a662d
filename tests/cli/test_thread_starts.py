"""A thread that dies before it begins leaves nobody waiting."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from metaharvest.cli import thread_starts
from metaharvest.harvest.checks import worker_pool
from metaharvest.harvest.limits import CheckLimits
from metaharvest.journal.internal_errors import is_no_memory

_bootstrap = threading.Thread._bootstrap  # type: ignore[attr-defined]


@pytest.fixture
def stillborn(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Words in the names of threads that end at once, as without memory; the test adds them."""
    words: set[str] = set()
    dead: list[threading.Thread] = []  # a thread may begin after its test has taken the words back

    def bootstrap(thread: threading.Thread) -> None:
        if thread not in dead:
            _bootstrap(thread)

    def start(thread: threading.Thread) -> None:
        with monkeypatch.context() as patch:
            if any(word in thread.name for word in words):
                dead.append(thread)
                patch.setattr(thread_starts, "_LOOK_SECONDS", 0.001)
            thread_starts._limited_start(thread)

    monkeypatch.setattr(threading.Thread, "_bootstrap", bootstrap)
    monkeypatch.setattr(threading.Thread, "start", start)
    return words


def test_a_thread_that_does_not_begin_is_an_error_of_memory(stillborn: set[str]) -> None:
    stillborn.add("reading")
    with ThreadPoolExecutor(1, thread_name_prefix="reading") as threads:
        with pytest.raises(RuntimeError) as raised:
            threads.submit(int)
        assert is_no_memory(raised.value)
        assert not [thread for thread in threading.enumerate() if "reading" in thread.name]
        stillborn.clear()
        assert threads.submit(int, "5").result(timeout=60) == 5


def test_a_thread_starts_once(stillborn: set[str]) -> None:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="only be started once"):
        thread.start()


@pytest.mark.slow
def test_worker_processes_end_if_their_pool_cannot_be_started(stillborn: set[str]) -> None:
    stillborn.add("message_manager_loop")
    before = set(multiprocessing.active_children())
    assert worker_pool._started(1, ((), 0.0, 3.0, 0)) is None
    assert set(multiprocessing.active_children()) <= before
    assert not [thread for thread in threading.enumerate() if "task_scheduler_loop" in thread.name]


@pytest.mark.slow
def test_worker_processes_are_started_later_if_there_was_no_memory_for_a_thread(stillborn: set[str]) -> None:
    async def check() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2, thread_name_prefix="reading"))
        pool = worker_pool.WorkerPool(1, (), 0.0, CheckLimits())
        stillborn.add("reading")
        with pytest.raises(worker_pool.NoWorkers):
            await pool.check_all([])
        stillborn.clear()
        assert await pool.check_all([]) == []
        await pool.close()

    asyncio.run(check())
