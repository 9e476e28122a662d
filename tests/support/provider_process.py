"""`metaharvest serve --public` in a process of its own, and a web server in front of it that watches lists."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from support.fork_server import ForkedPopen
from support.harvester import Harvester
from support.http_server import Asking, HttpServer
from support.ports import free_port

_ENDS_HERE = ("connection", "content-length", "date", "server", "transfer-encoding")


class ProviderProcess:
    """The provider of an installation, always on the same port. `prefix`: words before the command."""

    def __init__(self, harvester: Harvester, prefix: Sequence[str] = ()) -> None:
        self.port = free_port()
        self._harvester = harvester
        self._prefix = prefix
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it serves. AssertionError with its words if it ends."""
        config, port = str(self._harvester.config), str(self.port)
        command = [sys.executable, "-m", "metaharvest", "--config", config, "serve", "--public", "--port", port]
        start = subprocess.Popen if self._prefix else ForkedPopen
        self._process = start(
            [*self._prefix, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise AssertionError(self._process.communicate(timeout=30)[1])

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate(timeout=30)

    def stop(self) -> str:
        """SIGTERM; what it wrote to stderr."""
        assert self._process is not None
        self._process.terminate()
        return self._process.communicate(timeout=60)[1]

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """The status, the headers and the body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()


@contextmanager
def serving(harvester: Harvester, prefix: Sequence[str] = ()) -> Iterator[ProviderProcess]:
    """A running provider, which has to end in order."""
    process = ProviderProcess(harvester, prefix)
    process.start()
    try:
        yield process
    finally:
        process.stop()


class Front:
    """A web server in front of a provider. `before_page` is called before each page but the first one of a list.

    It has the number of the page among all that were asked for. If the provider does not answer, the answer is 502.
    """

    def __init__(self, server: HttpServer, provider: ProviderProcess) -> None:
        self.server = server
        self.server.otherwise = self._pass_on
        self.before_page: Callable[[int], None] = lambda _number: None
        self.pages = 0
        self._provider = provider

    @property
    def base_url(self) -> str:
        return self.server.url("/oai")

    def watch(self, before_page: Callable[[int], None]) -> None:
        """Call this from now on; pages are numbered from 1 again."""
        self.pages, self.before_page = 0, before_page

    def _pass_on(self, asking: Asking) -> None:
        if "resumptionToken=" in urlsplit(asking.path).query:
            self.pages += 1
            self.before_page(self.pages)
        headers = {name: value for name, value in asking.headers.items() if name.lower() not in _ENDS_HERE}
        try:
            status, answered, body = self._provider.get(asking.path, **headers)
        except OSError:
            status, answered, body = 502, {}, b""
        kept = {name: value for name, value in answered.items() if name.lower() not in _ENDS_HERE}
        asking.answer(body, status, kept)
