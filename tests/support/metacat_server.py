"""A Metacat 2, as far as its old interface goes: one servlet that takes forms, and answers 200 whatever happens.

    with Metacat({"uid=alder": "secret"}) as metacat:
        ... metacat.url ... metacat.files[("knb.1", 2)] ...

It keeps to what Metacat does, its quirks included: documents are read as text, in the encoding of the form, and written
in the one that they declare; a document's revision is looked for by a pattern; what was deleted is still told of, and
erased if it is deleted again; the form of a document that is too large is dropped without a word. `on[action]` may
misbehave: it is called with the connection and with what does the work and gives the answer.
"""

from __future__ import annotations

import contextlib
import random
import re
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

_PROLOG = '<?xml version="1.0"?>\n'
_DECLARED = re.compile(r"<\?xml[^>]*?\bencoding\s*=\s*[\"']([\w.\-]+)[\"']")
_LARGEST_INTEGER = 2**31 - 1

Work = Callable[[], bytes]
Behaviour = Callable[["Connection", Work], None]


class Refused(Exception):
    """Becomes an `<error>` with these words."""


@dataclass(frozen=True)
class Asked:
    """One request: the form's fields, the user of its session, and the charset of the form."""

    action: str
    fields: Mapping[str, str]
    user: str
    charset: str
    method: str

    @property
    def docid(self) -> str:
        return self.fields.get("docid", "")


@dataclass
class Metacat:
    """Users with their passwords; `files` has the bytes of every revision by document id and revision.

    `current` has each document's highest revision and owner as long as it is not deleted. `written` has every insert,
    update and delete that was done. `version` 3 answers as Metacat 3 does, `3.0` as its first release did.
    """

    users: Mapping[str, str]
    administrators: tuple[str, ...] = ()
    port: int = 0
    version: str = "2.8.5"
    ldap_is_away: bool = False
    most_form_bytes: int = 20_000_000
    slowest: float = 0.0
    files: dict[tuple[str, int], bytes] = field(default_factory=dict)
    current: dict[str, tuple[int, str]] = field(default_factory=dict)
    public: set[str] = field(default_factory=set)
    written: list[tuple[str, str]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    sessions: dict[str, str] = field(default_factory=dict)
    on: dict[str, Behaviour] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self._server: _Server | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/knb/metacat"

    @property
    def held(self) -> dict[str, bytes]:
        """docid -> bytes."""
        return {f"{document_id}.{revision}": content for (document_id, revision), content in self.files.items()}

    def start(self) -> None:
        """Answer, on the same port as before if it was stopped."""
        self._server = _Server(("127.0.0.1", self.port), self)
        self.port = int(self._server.server_address[1])
        serve = {"poll_interval": 0.005}
        threading.Thread(target=self._server.serve_forever, kwargs=serve, daemon=True).start()

    def stop(self) -> None:
        """Answer nobody, and forget who is logged in, as a servlet does that is started anew."""
        if self._server is not None:
            self._server.shutdown()
            self._server.close_connections()
            self._server.server_close()
            self._server = None
        self.sessions.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def actions(self, *actions: str) -> list[str]:
        """The actions that were asked for, or how often these were."""
        return [each.action for each in self.asked if not actions or each.action in actions]

    # -- what the servlet does

    def do(self, asked: Asked) -> bytes:
        """The answer to a request, without what concerns cookies."""
        handle = getattr(self, f"_do_{asked.action}", None)
        try:
            with self.lock:
                if handle is None:
                    raise Refused("Error: action not registered.  Please report this error.")
                answer: str | bytes = handle(asked)
        except Refused as refused:
            answer = f"{_PROLOG}<error>\n{refused}\n</error>\n"
        return answer if isinstance(answer, bytes) else answer.encode()

    def _do_getversion(self, asked: Asked) -> str:
        return f"{_PROLOG}<metacatVersion>Metacat {self.version}</metacatVersion>"

    def _do_getloggedinuserinfo(self, asked: Asked) -> str:
        return f"{_PROLOG}\n<user>\n\n<username>\n\n{asked.user}\n\n</username>\n\n</user>\n"

    def _do_getrevisionanddoctype(self, asked: Asked) -> str:
        name = _without_revision(asked.docid)
        pattern = _like(name) if name is not None else None
        for document_id, (revision, _) in sorted(self.current.items()):
            if pattern is not None and pattern.fullmatch(document_id):
                return f"{revision};eml://ecoinformatics.org/eml-2.1.1\n"
        deleted = [revision for document_id, revision in self.files if document_id == name]
        if not deleted:
            where = "DBUtil.getCurrentRevisionAndDocTypeForGivenDocument"
            raise Refused(f"{where} - There is no record for given docid: {asked.docid}")
        return f"{max(deleted)};eml://ecoinformatics.org/eml-2.1.1\n"

    def _do_getalldocids(self, asked: Asked) -> str:
        pattern = _like(f"{asked.fields['scope']}.%")
        lines = [f"  <docid>{escape(a)}.{r}</docid>" for a, r in sorted(self.files) if pattern.fullmatch(a)]
        return "\n".join([f"{_PROLOG}<idList>", f"  <scope>{asked.fields['scope']}</scope>", *lines, "</idList>"])

    def _do_read(self, asked: Asked) -> bytes:
        document_id, revision = _split(asked.docid)
        if document_id in self.current and revision > self.current[document_id][0]:
            raise Refused("requested revision cannot be greater than the latest revision number.")
        if not [each for each, _ in self.files if each == document_id]:
            raise Refused(f"the requested docid '{document_id}' does not exist")
        if (document_id, revision) not in self.files:
            raise Refused(f"Document not found: {document_id}")
        owner = self.current.get(document_id, (0, asked.user))[1]
        if asked.docid not in self.public and asked.user not in (owner, *self.administrators):
            raise Refused(
                f"User {asked.user} does not have permission to read the document with the docid {asked.docid}"
            )
        return self.files[document_id, revision]

    def _do_insert(self, asked: Asked) -> str:
        self._require_user(asked)
        document_id, revision = _split(asked.docid)
        if document_id in {each for each, _ in self.files}:
            raise Refused(f"Accession number {document_id} is already in use")
        return self._store(asked, document_id, revision)

    def _do_update(self, asked: Asked) -> str:
        self._require_user(asked)
        document_id, revision = _split(asked.docid)
        if document_id not in {each for each, _ in self.files}:
            raise Refused(f"Document not found for Accession number {document_id}")
        last, owner = self.current.get(document_id, (1, ""))
        if revision <= last:
            raise Refused(f"Next revision number can't be less than or equal to {last}")
        self._require_owner(asked, owner, f"update XML Document #{document_id}.{last}")
        return self._store(asked, document_id, revision)

    def _do_delete(self, asked: Asked) -> str:
        document_id, revision = _split(asked.docid)
        if document_id in self.current:
            last, owner = self.current[document_id]
            if revision != last:
                raise Refused(f"Last revision number is {last}")
            self._require_owner(asked, owner, f"delete XML Document #{asked.docid}")
            del self.current[document_id]
        elif (document_id, revision) in self.files:
            del self.files[document_id, revision]  # It really does.
        else:
            raise Refused(f"the requested docid '{document_id}' does not exist")
        self.written.append(("delete", asked.docid))
        return f"{_PROLOG}<success>\nDocument deleted.\n</success>\n"

    def _store(self, asked: Asked, document_id: str, revision: int) -> str:
        text = asked.fields.get("doctext")
        if text is None:
            raise Refused("Document text not submitted.")
        if not text.lstrip().startswith("<"):
            raise Refused("Content is not allowed in prolog.")
        if (document_id, revision) in self.files:
            raise Refused(
                "The file you are trying to write already exists  in metacat.  Please update your version number."
            )
        declared = _DECLARED.match(text)
        self.files[document_id, revision] = text.encode(declared[1] if declared else "UTF-8", "replace")
        self.current[document_id] = (revision, self.current.get(document_id, (0, asked.user))[1])
        if asked.fields.get("public") == "yes":
            self.public.add(asked.docid)
        self.written.append((asked.action, asked.docid))
        return f"{_PROLOG}<success><docid>{escape(asked.docid)}</docid></success>\n"

    def _require_user(self, asked: Asked) -> None:
        if asked.user == "public":
            raise Refused("User 'public' not allowed to insert and update")
        if " " in asked.docid:
            raise Refused(f"The docid {asked.docid} is not valid since it is null or contians the white space(s).")

    def _require_owner(self, asked: Asked, owner: str, doing: str) -> None:
        if asked.user not in (owner, *self.administrators):
            raise Refused(f"User {asked.user} does not have permission to {doing}")


def _without_revision(docid: str) -> str | None:
    points = docid.count(".")
    return docid if points == 1 else docid.rpartition(".")[0] if points == 2 else None


def _split(docid: str) -> tuple[str, int]:
    document_id, _, revision = docid.rpartition(".")
    if "." not in document_id or not revision.isdecimal() or int(revision) > _LARGEST_INTEGER:
        raise Refused("Revision number is required")
    return document_id, int(revision)


def _like(pattern: str) -> re.Pattern[str]:
    return re.compile("".join({"%": ".*", "_": "."}.get(each, re.escape(each)) for each in pattern), re.DOTALL)


class Connection(BaseHTTPRequestHandler):
    """One connection; what a behaviour is called with."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536
    server: _Server

    def do_POST(self) -> None:
        metacat = self.server.metacat
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = self._asked(metacat, body)
        with metacat.lock:
            metacat.asked.append(asked)
        if metacat.slowest:
            time.sleep(random.uniform(0, metacat.slowest))
        try:
            behaviour = metacat.on.get(asked.action)
            if behaviour is not None:
                behaviour(self, lambda: metacat.do(asked))
            else:
                self._serve(metacat, asked)
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    do_GET = do_POST  # noqa: N815 - the name that http.server looks for

    def _asked(self, metacat: Metacat, body: bytes) -> Asked:
        charset = self.headers.get_content_charset() or "utf-8"
        form = body.decode("ascii") if len(body) <= metacat.most_form_bytes else ""
        query = urlsplit(self.path).query
        fields = dict(parse_qsl(query, True)) | dict(parse_qsl(form, True, encoding=charset, errors="replace"))
        cookie = re.search(r"JSESSIONID=(\w+)", self.headers.get("Cookie", ""))
        user = metacat.sessions.get(cookie[1], "public") if cookie else "public"
        return Asked(fields.get("action", ""), fields, user, charset, self.command)

    def _serve(self, metacat: Metacat, asked: Asked) -> None:
        if not asked.fields:
            self.answer(b"")
        elif metacat.version.startswith("3"):
            words = "The original Metacat API has been replaced, and so this request is no longer supported."
            body = f"{_PROLOG}<error>{words} Equivalent API methods now are available.</error>".encode()
            self.answer(body, 200 if metacat.version == "3.0" else 301)
        elif asked.action == "login":
            self._log_in(metacat, asked)
        elif asked.action == "logout":
            cookie = re.search(r"JSESSIONID=(\w+)", self.headers.get("Cookie", ""))
            metacat.sessions.pop(cookie[1] if cookie else "", None)
            self.answer(f"{_PROLOG}<logout>User logged out</logout>".encode())
        else:
            self.answer(metacat.do(asked))

    def _log_in(self, metacat: Metacat, asked: Asked) -> None:
        user, password = asked.fields.get("username", ""), asked.fields.get("password", "")
        if metacat.ldap_is_away:
            words = "Connection to the authentication service failed in AuthSession.authenticate: refused"
            self.answer(f"{_PROLOG}<error_login>\n  <message>{words}</message>\n</error_login>".encode())
        elif metacat.users.get(user) != password:
            words = f"Authentication failed for user: {escape(user)}"
            self.answer(f"{_PROLOG}<unauth_login>\n  <message>{words}</message>\n</unauth_login>".encode())
        else:
            session = secrets.token_hex(16)
            metacat.sessions[session] = user
            words = f"<message>Authentication successful for user: {escape(user)}</message>"
            body = f"{_PROLOG}<login>\n  {words}\n  <sessionId>{session}</sessionId>\n</login>"
            self.answer(body.encode(), headers={"Set-Cookie": f"JSESSIONID={session}; Path=/knb; HttpOnly"})

    def answer(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "text/xml", "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def reset(self) -> None:
        """Break the connection."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise ConnectionAbortedError("reset on purpose")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], metacat: Metacat) -> None:
        self.metacat = metacat
        self.open: set[socket.socket] = set()
        super().__init__(address, Connection)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.open.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are nothing to print."""

    def close_connections(self) -> None:
        for each in list(self.open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


# -- behaviours


def dropping(connection: Connection, work: Work) -> None:
    """Does the work, and breaks the connection in place of an answer."""
    work()
    connection.reset()


def refusing_connections(connection: Connection, work: Work) -> None:
    """Does nothing, and breaks the connection."""
    connection.reset()


def answering(body: bytes, status: int = 200, *, works: bool = False) -> Behaviour:
    """Answers this in place of what there is to say, after the work or without it."""

    def behaviour(connection: Connection, work: Work) -> None:
        if works:
            work()
        connection.answer(body, status)

    return behaviour


def late(seconds: float) -> Behaviour:
    """Does the work at once, and takes its time to say so."""

    def behaviour(connection: Connection, work: Work) -> None:
        answer = work()
        time.sleep(seconds)
        connection.answer(answer)

    return behaviour


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """The first request meets the first of these, and so on; all that come later meet the last."""
    left, lock = list(behaviours), threading.Lock()

    def behaviour(connection: Connection, work: Work) -> None:
        with lock:
            this = left.pop(0) if len(left) > 1 else left[0]
        this(connection, work)

    return behaviour


def well(connection: Connection, work: Work) -> None:
    """Does the work, and answers."""
    connection.answer(work())
