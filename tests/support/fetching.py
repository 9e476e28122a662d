"""The client of the harvester for tests without an event loop: each call waits for its answer, from any thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, BinaryIO, Self, TypeVar

from metaharvest.config.settings import HttpSettings
from metaharvest.fetch.client import Fetcher, Response

Answer = TypeVar("Answer")


class WaitingFetcher:
    """A Fetcher in an event loop of its own, which runs in a thread."""

    def __init__(self, http: HttpSettings, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self.fetcher = self._result(_made(http, options))
        except BaseException:
            self._end()
            raise
        self.user_agent = self.fetcher.user_agent

    def fetch(self, url: str, **options: Any) -> tuple[Response, bytes]:
        return self._result(self.fetcher.fetch(url, **options))

    def fetch_to(self, url: str, file: BinaryIO, **options: Any) -> Response:
        return self._result(self.fetcher.fetch_to(url, file, **options))

    def close(self) -> None:
        if self._thread.is_alive():
            self._result(self._closed())
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _closed(self) -> None:
        """What nobody waits for any more is ended first."""
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)
        await self.fetcher.close()

    def _result(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _made(http: HttpSettings, options: dict[str, Any]) -> Fetcher:
    return Fetcher(http, **options)
