"""One site's session with Metacat's old interface: login, uploads, logout.

Metacat reads a form as text, in the encoding that the form's Content-Type names, and stores that text in the encoding
that the document's own XML declaration names. The form therefore has the document's exact bytes and says in which
encoding they are. That works for every encoding in which ASCII is written as ASCII; any other document would change its
bytes, and is not sent.
"""

from __future__ import annotations

import codecs
import hashlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from threading import Lock
from typing import Literal, TypeVar
from urllib.parse import urlencode

from requests.cookies import RequestsCookieJar

from metaharvest.errors import TargetError
from metaharvest.model import Action, Finding, Holding, ListedDocument
from metaharvest.model.actions import Remedy
from metaharvest.model.values import frozen
from metaharvest.targets.base import Upload
from metaharvest.targets.http import HttpAnswer, HttpClient, Unanswered
from metaharvest.targets.interruption import carried, require_time
from metaharvest.targets.metacat import replies
from metaharvest.targets.metacat.questions import (
    HIGHEST_REVISION,
    LATER,
    Questions,
    is_known_name,
    is_pattern,
    scope_of,
)

log = logging.getLogger(__name__)

Answered = TypeVar("Answered")

_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?\bencoding\s*=\s*[\"']([A-Za-z][A-Za-z0-9._\-]{0,40})[\"']")
_ASCII = bytes(range(128))
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE, b"<\0", b"\0<")
_DATAONE = "The DataONE interface of the same Metacat, if it has one, takes it."


@frozen
class Login:
    """A user name; `origin` is the place where a person can change it."""

    username: str
    password: str = field(repr=False)
    origin: str


class MetacatSession:
    """A RemoteTarget. Its threads share the cookie; if Metacat drops a session, one thread logs in again for all."""

    writes_in_journal: Literal[False] = False

    def __init__(self, client: HttpClient, login: Login, public: bool, at_once: int) -> None:
        self.login = login
        self._client = client
        self._cookies = RequestsCookieJar()
        self.questions = Questions(client, self._cookies)
        self._public = public
        self._at_once = at_once
        self._lock = Lock()
        self._logins = 0
        self._is_away = False

    def log_in(self) -> None:
        """Raises TargetError: transient if the login could not be checked."""
        fields = [("action", "login"), ("username", self.login.username), ("password", self.login.password)]
        answer = self._post(fields)
        text = replies.text_of(answer)
        how, words = replies.login_of(text) if answer.ok and not replies.is_gone(text) else ("", "")
        if how == "in":
            self._logins += 1
            return
        if how == "away":
            message = f"Metacat could not check the login of {self.login.username}: {words.rstrip('.')}."
            raise TargetError(Finding("target.away", message, LATER), transient=True)
        if how == "refused":
            message = f"Metacat does not let {self.login.username} in: {words.rstrip('.') or 'no reason was given'}."
            remedy = Remedy(
                "Nothing is uploaded until that is corrected. The administrator should check {}.", self.login.origin
            )
            raise TargetError(Finding("target.login", message, remedy))
        raise replies.refusal(answer, "the login")

    def close(self) -> None:
        """Log out. A failure has no effect: Metacat drops the session by itself."""
        if self._is_away:
            return
        try:
            self._post([("action", "logout")])
        except TargetError as error:
            log.debug("The logout from Metacat failed: %s", error)

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The highest revision of each, with one request per document, a few of them in parallel."""
        asked = [document_id for document_id in dict.fromkeys(document_ids) if is_known_name(document_id)]
        patterns = [document_id for document_id in asked if is_pattern(document_id)]
        plain = [document_id for document_id in asked if not is_pattern(document_id)]
        highest = dict(zip(plain, self._side_by_side(self.questions.highest, plain), strict=True))
        for listed in self._side_by_side(self.questions.listed, list(dict.fromkeys(map(scope_of, patterns)))):
            highest |= {document_id: listed[document_id][0] for document_id in patterns if document_id in listed}
        return {
            document_id: Holding(document_id, number) for document_id, number in highest.items() if number is not None
        }

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """Empty: Metacat reports deleted documents as held."""
        return {}

    def _side_by_side(self, ask: Callable[[str], Answered], names: Sequence[str]) -> list[Answered]:
        """The replies to a request about each of these names, a few requests in parallel."""

        def ask_in_time(name: str) -> Answered:
            require_time()
            return ask(name)

        with ThreadPoolExecutor(self._at_once) as threads:
            return list(threads.map(carried(ask_in_time), names))

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """True if it returns these bytes for this docid."""
        content = self.questions.content(document_id, revision)
        return content is not None and hashlib.sha256(content).hexdigest() == sha256

    def upload(self, upload: Upload) -> Action:
        """Insert or update, after a check of the present revision; an unclear result is checked afterwards."""
        fetched, document = upload.fetched, upload.fetched.document
        _require_possible(document)
        try:
            charset = charset_of(fetched.content)
        except Untransportable as error:
            message = f"Metacat's old interface would not keep the document as it is: {error}."
            remedy = f"Save the document as UTF-8, and list it with the next revision. {_DATAONE}"
            raise TargetError(Finding("target.encoding", message, remedy)) from None
        held = self.questions.highest(document.document_id)
        if held == document.revision and self._is_there(upload):
            return Action.UPDATE if len(self.questions.revisions(document.document_id)) > 1 else Action.INSERT
        if held is not None and held >= document.revision:
            raise _there_already(document, f"The repository has revision {held} of {document.document_id} by now.")
        action = Action.INSERT if held is None else Action.UPDATE
        public = [("public", "yes")] if self._public else []
        fields = [("action", action.value), ("docid", document.docid), *public, ("doctext", fetched.content)]
        self._change(fields, charset, upload)
        if charset != "UTF-8":
            self._require_same(upload)
        return action

    def delete(self, document_id: str) -> bool:
        """Delete its highest revision, and so the document; False if there is none, or it was deleted before."""
        highest = self.questions.highest(document_id)
        if highest is None or self.questions.is_deleted(document_id, highest):
            return False
        fields = [("action", "delete"), ("docid", f"{document_id}.{highest}")]
        logins = self._logins
        try:
            answer = self._post(fields)
            if answer.ok and replies.knows_nobody(replies.error_of(replies.text_of(answer)) or "", self.login.username):
                self._log_in_again(logins)
                answer = self._post(fields)
        except Unanswered as error:
            if error.sent and self.questions.is_deleted(document_id, highest):
                return True
            raise
        if replies.is_success(replies.text_of(answer)):
            return True
        raise replies.refusal(answer, f"to delete {document_id}.{highest}")

    def _change(self, fields: Sequence[tuple[str, str | bytes]], charset: str, upload: Upload) -> None:
        """Post an insert or update. Raises TargetError if it failed, transient if the result is unknown."""
        for is_last in (False, True):
            logins = self._logins
            try:
                answer = self._post(fields, charset)
            except Unanswered as error:
                if error.sent and self._arrived(upload):
                    return
                raise
            text, document = replies.text_of(answer), upload.fetched.document
            if answer.ok and replies.is_success(text):
                return
            words = (replies.error_of(text) if answer.ok else None) or ""
            if replies.THERE_ALREADY.search(words):
                if self._is_there(upload):
                    return
                raise _there_already(document, f"Metacat refused {document.docid}: {words.rstrip('.')}.")
            if not is_last and words and replies.knows_nobody(words, self.login.username):
                self._log_in_again(logins)
                # The error says that nothing was done; still, it is checked before anything is sent again.
                if not self._arrived(upload):
                    continue
                return
            if not words and answer.status != 301 and self._arrived(upload):
                return
            raise replies.refusal(answer, f"{document.docid}", len(upload.fetched.content))

    def _is_there(self, upload: Upload) -> bool:
        """True if it has exactly these bytes: the upload of a killed run may arrive after the first check."""
        document = upload.fetched.document
        try:
            held = self.holds(document.document_id, document.revision, upload.fetched.sha256)
            return held and not self.questions.is_deleted(document.document_id, document.revision)
        except TargetError as error:
            if error.transient:
                raise
            # We may lack the right to read another person's document.
            return False

    def _arrived(self, upload: Upload) -> bool:
        """True if the document is there now, after a reply that did not confirm it."""
        document = upload.fetched.document
        if self.questions.highest(document.document_id) != document.revision:
            return False
        self._require_same(upload)
        return True

    def _require_same(self, upload: Upload) -> None:
        """Raises TargetError if Metacat returns other bytes than it got."""
        document = upload.fetched.document
        if not self.holds(document.document_id, document.revision, upload.fetched.sha256):
            message = f"Metacat has {document.docid} now, but returns other bytes than it got."
            remedy = "The administrator should compare the two. Save the document as UTF-8, and list it with the next "
            raise TargetError(Finding("target.other-content", message, f"{remedy}revision."))

    def _log_in_again(self, logins: int) -> None:
        """Log in, unless another thread has done so since login number `logins`."""
        with self._lock:
            if self._logins == logins:
                self._cookies.clear()
                self.log_in()

    def _post(self, fields: Sequence[tuple[str, str | bytes]], charset: str = "UTF-8") -> HttpAnswer:
        body, headers = form(fields, charset)
        try:
            answer = self._client.ask("POST", data=body, headers=headers, cookies=self._cookies)
        except Unanswered:
            self._is_away = True
            raise
        self._is_away = False
        return answer


def _require_possible(document: ListedDocument) -> None:
    """Raises TargetError for a name, or a revision, that Metacat cannot store."""
    problem = ""
    if not is_known_name(document.document_id):
        problem = f"takes only names like scope.identifier, with one point, and {document.document_id} is none"
    elif document.revision > HIGHEST_REVISION:
        problem = f"counts revisions up to {HIGHEST_REVISION:,}, and this is {document.revision:,}"
    if problem:
        message = f"Metacat's old interface {problem}."
        raise TargetError(Finding("target.name", message, f"Give the document another docid. {_DATAONE}"))


def _there_already(document: ListedDocument, message: str) -> TargetError:
    remedy = (
        f"If this document is newer, list it with a higher revision than the repository has of {document.document_id}."
    )
    return TargetError(Finding("target.exists", message, remedy))


class Untransportable(ValueError):
    """A document that would change on the way; the message is the end of a sentence about it."""


def charset_of(content: bytes) -> str:
    """The encoding to name in the form's Content-Type. Raises Untransportable."""
    if content.startswith(_WIDE):
        raise Untransportable("it is in UTF-16 or UTF-32")
    found = _DECLARED.match(content.removeprefix(codecs.BOM_UTF8))
    declared = "UTF-8" if found is None else found[1].decode("ascii")
    try:
        same = _ASCII.decode(declared) == _ASCII.decode() and content.decode(declared).encode(declared) == content
    except LookupError:
        raise Untransportable(f"its encoding {declared} is not known") from None
    except ValueError:
        same = False
    if not same:
        raise Untransportable(f"it is not text in {declared}{', the encoding that it names' if found else ''}")
    return "UTF-8" if content.isascii() or codecs.lookup(declared) == codecs.lookup("UTF-8") else declared


def form(fields: Sequence[tuple[str, str | bytes]], charset: str = "UTF-8") -> tuple[bytes, dict[str, str]]:
    """The body of a POST with these fields, bytes as they are, and its headers."""
    headers = {"Content-Type": f"application/x-www-form-urlencoded; charset={charset}"}
    return urlencode(fields).encode("ascii"), headers
