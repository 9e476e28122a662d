"""A repository that is reached by HTTP alone, and a run that harvests into it as a process of its own.

    with Repository() as repository:
        ... python -m support.remote_target SETTINGS-FILE repository.url 2026-11-20 ...

The repository takes its time before it stores a document and before it says so: who sends one may be gone by then. It
may stop answering, and refuse logins. `installed` makes it a kind of target that settings can name.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import logging
import random
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote, urlsplit

from metaharvest.config.settings import load
from metaharvest.errors import LockHeld, TargetError
from metaharvest.harvest.run import RunRequest
from metaharvest.model import Action, Finding, Holding, Site
from metaharvest.services.harvester import Harvester
from metaharvest.targets.base import HeldRevision, Standing, Upload
from support.distributions import install

_SLOWEST = 0.03

CONFLICT = 409
REFUSED = 400
FORBIDDEN = 403


class Repository:
    """Keeps documents by docid; `received` has the docid of every document that arrived whole, in order.

    `most_at_once` documents were received side by side; `clashes` are docids of which another revision was under way.
    `asked` counts the requests. `patience`: after so many requests it answers none any more. `refused` are login names
    that it does not let in, `logins` those that it was asked for. `refused_documents` are docids that it does not take,
    `hidden` those that it has without saying so where it is asked about many. Not every repository `lists_all`, nor
    `deletes`; document ids that it was told to delete, in order, are `told_deleted`.
    """

    def __init__(self, slowest: float = _SLOWEST) -> None:
        """It takes up to `slowest` seconds before it stores a document, and before it answers."""
        self.slowest = slowest
        self.documents: dict[str, bytes] = {}
        self.received: list[str] = []
        self.asked = 0
        self.patience = inf
        self.refused: set[str] = set()
        self.refused_documents: set[str] = set()
        self.hidden: set[str] = set()
        self.lists_all = True
        self.deletes = True
        self.told_deleted: list[str] = []
        self.deleted: set[str] = set()
        self.logins: list[str] = []
        self.most_at_once = 0
        self.clashes: list[str] = []
        self._under_way: list[str] = []
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)

    def __enter__(self) -> Repository:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def highest(self, *, deleted: bool = False) -> dict[str, int]:
        """The highest revisions of the documents that it has, or of those that were deleted."""
        with self._lock:
            found: dict[str, int] = {}
            for docid in self.documents.keys() - self.hidden:
                document_id, _, revision = docid.rpartition(".")
                if (document_id in self.deleted) == deleted:
                    found[document_id] = max(int(revision), found.get(document_id, 0))
            return found

    def delete(self, document_id: str) -> bool:
        """Keep from now on that this document was deleted; False if it has none."""
        is_held = document_id in self.highest()
        with self._lock:
            self.told_deleted.append(document_id)
            self.deleted.add(document_id)
        return is_held

    def receive(self, docid: str, content: bytes) -> bool:
        """Keep a document; False if it is there already."""
        document_id = docid.rpartition(".")[0]
        with self._lock:
            self.received.append(docid)
            if docid in self.documents:
                return False
            if document_id in self._under_way:
                self.clashes.append(docid)
            self._under_way.append(document_id)
            self.most_at_once = max(self.most_at_once, len(self._under_way))
        time.sleep(random.uniform(0, self.slowest))
        with self._lock:
            self.documents[docid] = content
            self.deleted.discard(document_id)
            self._under_way.remove(document_id)
        time.sleep(random.uniform(0, self.slowest))
        return True


class _Asking(BaseHTTPRequestHandler):
    server: _Server

    def parse_request(self) -> bool:
        """Nothing is answered once the repository has lost its patience."""
        repository = self.server.repository
        repository.asked += 1
        repository.patience -= 1
        if repository.patience < 0:
            self.close_connection = True
            return False
        return super().parse_request()

    def do_PUT(self) -> None:
        length = int(self.headers["Content-Length"])
        content = self.rfile.read(length)
        if len(content) == length:
            docid = unquote(self.path[1:])
            if docid in self.server.repository.refused_documents:
                return self._answer(b"", REFUSED)
            is_new = self.server.repository.receive(docid, content)
            self._answer(b"", 200 if is_new else CONFLICT)
        return None

    def do_GET(self) -> None:
        if self.path == "/":
            if not self.server.repository.lists_all:
                return self._answer(b"", FORBIDDEN)
            repository = self.server.repository
            held = [docid for docid in repository.documents if docid.rpartition(".")[0] not in repository.deleted]
            return self._answer(json.dumps(held).encode())
        if self.path.startswith("/login/"):
            name = unquote(self.path.removeprefix("/login/"))
            self.server.repository.logins.append(name)
            return self._answer(b"", FORBIDDEN if name in self.server.repository.refused else 200)
        content = self.server.repository.documents.get(unquote(self.path[1:]))
        return self._answer(b"" if content is None else content, 404 if content is None else 200)

    def do_DELETE(self) -> None:
        if not self.server.repository.deletes:
            return self._answer(b"", 501)
        is_held = self.server.repository.delete(unquote(self.path[1:]))
        return self._answer(b"", 200 if is_held else 404)

    def do_POST(self) -> None:
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        highest = self.server.repository.highest(deleted=self.path == "/deleted")
        self._answer(json.dumps({each: highest[each] for each in wanted if each in highest}).encode())

    def _answer(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = True
    request_queue_size = 128

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        super().__init__(("127.0.0.1", 0), _Asking)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that were killed are nothing to print."""


class RemoteTarget:
    """The repository as a target: documents travel to it one by one, outside of the journal's transactions."""

    writes_in_journal: Literal[False] = False
    uploads_at_once = 4

    def __init__(self, url: str) -> None:
        """`url` may have a login."""
        parts = urlsplit(url)
        self._host = parts.netloc.rpartition("@")[2]
        login = base64.b64encode(f"{parts.username}:{parts.password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}"} if parts.username else {}

    def describe(self) -> str:
        return "a remote repository"

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        with self._asked("POST", "/", json.dumps(list(document_ids)).encode()) as (_, body):
            return {each: Holding(each, revision) for each, revision in json.loads(body).items()}

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        with self._asked("POST", "/deleted", json.dumps(list(document_ids)).encode()) as (_, body):
            return dict(json.loads(body))

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        with self._asked("GET", f"/{quote(f'{document_id}.{revision}')}") as (status, body):
            return status == 200 and hashlib.sha256(body).hexdigest() == sha256

    @contextmanager
    def session(self, site: Site | None) -> Iterator[RemoteTarget]:
        if site and site.ldap_name:
            with self._asked("GET", f"/login/{quote(site.ldap_name)}") as (status, _):
                if status == FORBIDDEN:
                    message = f"The remote repository does not let {site.ldap_name} in."
                    raise TargetError(Finding("target.login", message, "Ask the administrator to renew the login."))
        yield self

    def check(self, site: Site | None) -> Iterator[Standing]:
        try:
            with self.session(site), self._asked("GET", "/"):
                name = site.ldap_name if site and site.ldap_name else "nobody"
                yield Standing("ok", f"The remote repository answers, and knows us as {name}.")
        except TargetError as error:
            yield Standing("problem", str(error))

    def held(self) -> Iterator[HeldRevision]:
        with self._asked("GET", "/") as (status, body):
            if status == FORBIDDEN:
                message = "The remote repository does not list what it holds."
                raise TargetError(Finding("target.unsupported", message, "Copy from another one."))
            docids = json.loads(body)
        split = (docid.rpartition(".") for docid in docids)
        for document_id, revision in sorted((document_id, int(revision)) for document_id, _, revision in split):
            yield HeldRevision(document_id, revision, "eml")

    def revisions(self, document_id: str) -> list[HeldRevision]:
        return [each for each in self.held() if each.document_id == document_id][::-1]

    def content(self, document_id: str, revision: int) -> bytes | None:
        with self._asked("GET", f"/{quote(f'{document_id}.{revision}')}") as (status, body):
            return body if status == 200 else None

    def delete(self, document_id: str) -> bool:
        with self._asked("DELETE", f"/{quote(document_id)}") as (status, _):
            if status == 501:
                raise NotImplementedError
            return status == 200

    def upload(self, upload: Upload) -> Action:
        document = upload.fetched.document
        known = self.holdings([document.document_id])
        with self._asked("PUT", f"/{quote(document.docid)}", upload.fetched.content) as (status, _):
            if status == CONFLICT:
                raise TargetError(
                    Finding("target.exists", f"{document.docid} is there already.", "Raise the revision.")
                )
            if status == REFUSED:
                message = f"The remote repository does not want {document.docid}."
                raise TargetError(Finding("target.refused", message, "Ask the people who run it."))
            assert status == 200
        return Action.UPDATE if known else Action.INSERT

    @contextmanager
    def _asked(self, method: str, path: str, body: bytes | None = None) -> Iterator[tuple[int, bytes]]:
        connection = http.client.HTTPConnection(self._host, timeout=30)
        try:
            connection.request(method, path, body, self._headers)
            answer = connection.getresponse()
            yield answer.status, answer.read()
        except OSError as error:
            finding = Finding("target.away", f"The repository does not answer: {error}.", "Wait.")
            raise TargetError(finding, transient=True) from error
        finally:
            connection.close()


def installed(folder: Path) -> Path:
    """A distribution that adds the kind `remote`, of which `url` is the repository: what to put on sys.path."""
    code = "from support.remote_target import RemoteTarget\n\n\ndef remote(settings, engine):\n"
    code += "    return RemoteTarget(settings.target.url)\n"
    return install(folder, "remote_repositories", code, metaharvest_targets="remote = remote")


def main(config: str, url: str, day: str) -> None:
    """One run into the repository at `url`."""
    logging.basicConfig()
    try:
        with Harvester(load(Path(config)), target=RemoteTarget(url)) as harvester:
            harvester.run(RunRequest(date.fromisoformat(day)))
    except LockHeld as error:
        print(error, file=sys.stderr)
        sys.exit(75)


if __name__ == "__main__":
    main(*sys.argv[1:])
