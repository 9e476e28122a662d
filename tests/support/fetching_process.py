"""Processes that fetch documents, and share their hosts in a database.

with FetchingProcess() as process:
    process.begin(engine.url, urls, seconds=3)
    ... process.answers()
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any, Self

from sqlalchemy import URL, make_url

from metaharvest.config.settings import HttpSettings
from metaharvest.database.engine import open_url
from metaharvest.database.host_leases import HostLeases
from metaharvest.errors import FetchError
from metaharvest.fetch.client import Fetcher

HTTP = HttpSettings(
    allow_networks=(ip_network("127.0.0.0/8"),), connections_per_host=2, connect_timeout=2, retry_wait=0.01
)


class FetchingProcess:
    """A process that does one fetch after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.fetching_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )

    def begin(self, database: URL, urls: Sequence[str], seconds: float) -> None:
        """Fetch these documents, two at a time; the leases last for these seconds."""
        assert self._process.stdin is not None
        request = {"database": database.render_as_string(hide_password=False), "urls": urls, "seconds": seconds}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def answers(self) -> list[str]:
        """The sizes of the documents that were begun, or the rules of the failures."""
        assert self._process.stdout is not None
        found: list[str] = json.loads(self._process.stdout.readline())
        return found

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


async def fetched(request: dict[str, Any]) -> list[str]:
    engine = open_url(make_url(request["database"]))
    async with Fetcher(
        HTTP, name="x", administrator=None, leases=HostLeases(engine, seconds=request["seconds"])
    ) as fetcher:

        async def fetch(url: str) -> str:
            try:
                return str((await fetcher.fetch(url))[0].size)
            except FetchError as error:
                return error.findings[0].rule

        answers = list(await asyncio.gather(*map(fetch, request["urls"])))
    engine.dispose()
    return answers


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(asyncio.run(fetched(json.loads(line)))), flush=True)
