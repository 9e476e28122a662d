"""Serves sample_sites/, a small fictional network, over real HTTP on loopback, for `metaharvest demo` and the tests.

Knows the sites and their registration; sample_sites/README.md describes their content. `nights.py` registers them. The
only error that this server gives is a 404: servers that misbehave are in the tests.
"""

from __future__ import annotations

import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path, PurePosixPath
from socketserver import TCPServer, ThreadingMixIn
from threading import Thread
from urllib.parse import parse_qsl, unquote, urlsplit

from metaharvest.config.paths import data_folder
from metaharvest.model import Unit
from metaharvest.model.values import frozen

LIST_NAME = "harvest-list.xml"
CONTENT_TYPES = {".xml": "application/xml", ".html": "text/html", ".pdf": "application/pdf"}
WRITTEN_BASE_URL = "http://localhost:8000"
"""The base URL in harvest lists and repositories as they are stored; it is served as the server's own base URL."""


@frozen
class SampleSite:
    """One sample site, as it would be registered.

    `next_offset_days` is its next harvest date, in days from the first night; None: no date is given.
    """

    name: str
    contact: str
    frequency: int
    unit: Unit
    next_offset_days: int | None


SAMPLE_SITES = (
    SampleSite("alder-creek", "data@alder-creek.example.org; ines.valdemar@example.org", 1, Unit.DAYS, 0),
    SampleSite("basalt-flats", "data@basalt-flats.example.org", 1, Unit.DAYS, None),
    SampleSite("cedar-marsh", "data@cedar-marsh.example.org", 1, Unit.DAYS, 0),
    SampleSite("dune-lake", "data@dune-lake.example.org", 1, Unit.DAYS, 0),
    SampleSite("elm-ridge", "data@elm-ridge.example.org", 1, Unit.MONTHS, 19),
    SampleSite("fern-gorge", "data@fern-gorge.example.org", 2, Unit.WEEKS, -24),
)
"""The sites of the sample network, in the order in which sample_sites/README.md explains them."""


REPOSITORY = SampleSite("gravel-bar", "archive@gravel-bar.example.org", 1, Unit.DAYS, 0)
"""The site of the sample network that is an OAI-PMH repository, with filters and normalising."""


LIBRARY = SampleSite("heron-library", "library@heron.example.org", 1, Unit.DAYS, 0)
"""The OAI-PMH repository of papers with full texts, for the pipeline. It comes after the nights."""


class SampleNetwork:
    """The sample network on a loopback port of its own, for as long as the context lasts.

    `night` is the number of the night, from 1, and may be set while serving: from night N on, the files in
    sample_sites/night-N/ replace those with the same path in sample_sites/.
    """

    def __init__(self, night: int = 1) -> None:
        self.night = night
        self._folder = data_folder("sample_sites").resolve()
        self._server = _Server(self)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="sample-network")

    @property
    def base_url(self) -> str:
        """The server's address, without a slash at its end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def list_url(self, site_name: str) -> str:
        """The address of a site's harvest list, even if there is no list."""
        return f"{self.base_url}/{site_name}/{LIST_NAME}"

    def oai_url(self, site_name: str) -> str:
        """The base URL of a site that is an OAI-PMH repository."""
        return f"{self.base_url}/{site_name}/oai"

    def records(self, site_name: str, query: str) -> bytes:
        """A source repository's response tonight to the query of an OAI-PMH request. Raises FileNotFoundError."""
        from metaharvest.demo.repository import answer

        static = self._served(self._find(f"{site_name}/repository.xml").read_bytes())
        return answer(static, dict(parse_qsl(query)), self.oai_url(site_name), self.night)

    def file(self, path: str) -> bytes:
        """The content of `path`, such as `alder-creek/rain.xml`, tonight. Raises FileNotFoundError."""
        content = self._find(path).read_bytes()
        if path.rpartition("/")[2] == LIST_NAME:
            return self._served(content)
        return content

    def _served(self, content: bytes) -> bytes:
        return content.replace(WRITTEN_BASE_URL.encode(), self.base_url.encode())

    def __enter__(self) -> SampleNetwork:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _find(self, path: str) -> Path:
        """The file for `path` tonight: the one of the latest night up to now that has one."""
        overlays = (self._folder / f"night-{night}" for night in range(self.night, 1, -1))
        for folder in (*overlays, self._folder):
            candidate = (folder / path.lstrip("/")).resolve()
            if candidate.is_file() and candidate.is_relative_to(self._folder):
                return candidate
        raise FileNotFoundError(f"The sample network has no file {path} on night {self.night}.")


class _Server(ThreadingMixIn, TCPServer):
    """A thread for each request; closing the server waits for all of them."""

    daemon_threads = False
    request_queue_size = 64

    def __init__(self, network: SampleNetwork) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.network = network

    def handle_error(self, request: object, client_address: object) -> None:
        """A client may hang up; anything else is a mistake of this program and is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    """Answers GET with a file of the network, or 404; one request a connection, so that closing does not wait."""

    server: _Server
    timeout = 5

    def do_GET(self) -> None:
        """Send the file that the path names."""
        asked = urlsplit(self.path)
        path, network = unquote(asked.path), self.server.network
        try:
            site_name, _, last = path.strip("/").rpartition("/")
            content = network.records(site_name, asked.query) if last == "oai" else network.file(path)
            status = HTTPStatus.OK
            path = f"{path}.xml" if last == "oai" else path
            content_type = CONTENT_TYPES.get(PurePosixPath(path).suffix, "application/octet-stream")
        except (OSError, ValueError):
            content, status = b"There is no such file here.\n", HTTPStatus.NOT_FOUND
            content_type = "text/plain"
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the terminal belongs to the command that serves the network."""
