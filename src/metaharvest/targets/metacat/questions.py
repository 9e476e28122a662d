"""The read-only requests to Metacat's old interface."""

from __future__ import annotations

from collections.abc import Mapping

from requests.cookies import RequestsCookieJar

from metaharvest.errors import TargetError
from metaharvest.model import Finding
from metaharvest.model.values import frozen
from metaharvest.targets.http import ANSWER_BYTES, HttpAnswer, HttpClient
from metaharvest.targets.metacat import replies
from metaharvest.text import whole_number

HIGHEST_REVISION = 2**31 - 1
"""A revision has 32 bits there."""

LISTING_BYTES = 4_194_304
"""Bytes of a listing of a scope: 100,000 revisions with some 40 bytes each."""

_WILDCARDS = frozenset("_%\\")
LATER = (
    "Nothing is lost: it is tried again in the next run. If it lasts, the administrator should ask the people who "
    "run the Metacat."
)


def is_known_name(document_id: str) -> bool:
    """True if this can be a document's name there: `scope.identifier`, with one point and no blank."""
    scope, _, identifier = document_id.partition(".")
    printable = document_id.isascii() and document_id.isprintable() and " " not in document_id
    return bool(scope and identifier) and "." not in identifier and printable


def is_pattern(document_id: str) -> bool:
    """True if Metacat reads this name as a pattern, and may reply with another document."""
    return not _WILDCARDS.isdisjoint(document_id)


def scope_of(document_id: str) -> str:
    """The part of a name before the point."""
    return document_id.partition(".")[0]


@frozen
class Questions:
    """Sends requests with the cookies of a session, or without a login. Safe for threads; raises TargetError.

    A request is retried if the connection breaks; a reply without the answer is a transient error.
    """

    client: HttpClient
    cookies: RequestsCookieJar

    def version(self) -> str:
        """The version of Metacat; empty if it does not know the request. Raises TargetError if it is no Metacat."""
        doing = "the question for its version"
        answer = self._answered(doing, {"action": "getversion"})
        text = replies.text_of(answer)
        version = replies.version_of(text)
        if not version and replies.error_of(text) is None:
            raise replies.refusal(answer, doing)
        return version

    def username(self) -> str:
        """Our user name there; empty if it does not say."""
        return replies.username_of(self._asked("who we are", {"action": "getloggedinuserinfo"}))

    def highest(self, document_id: str) -> int | None:
        """The highest revision that it has, or had, of a document; None if it never had one."""
        if not is_known_name(document_id):
            return None
        if is_pattern(document_id):
            return next(iter(self.revisions(document_id)), None)
        doing = f"the question for {document_id}"
        text = self._asked(doing, {"action": "getrevisionanddoctype", "docid": document_id})
        if (revision := replies.revision_of(text)) is not None:
            return revision
        words = replies.error_of(text)
        if words is not None and replies.NO_RECORD.search(words):
            return None
        raise self._cannot_say(doing, words)

    def revisions(self, document_id: str) -> list[int]:
        """All revisions that it has, or had, of a document, the highest first."""
        return self.listed(scope_of(document_id)).get(document_id, []) if is_known_name(document_id) else []

    def listed(self, scope: str) -> dict[str, list[int]]:
        """All revisions that it has, or had, of the documents of a scope, and maybe of others; the highest first."""
        doing = f"the question for the documents of {scope}"
        answer = self._answered(doing, {"action": "getalldocids", "scope": scope}, LISTING_BYTES)
        if b"<idList>" not in answer.body:
            raise self._cannot_say(doing, replies.error_of(replies.text_of(answer)))
        found: dict[str, set[int]] = {}
        for document_id, _, tail in (docid.rpartition(".") for docid in replies.docids_of(answer.body)):
            if (revision := whole_number(tail, HIGHEST_REVISION)) is not None:
                found.setdefault(document_id, set()).add(revision)
        return {document_id: sorted(revisions, reverse=True) for document_id, revisions in found.items()}

    def content(self, document_id: str, revision: int) -> bytes | None:
        """The exact bytes of one revision; None if it is not there."""
        if not is_known_name(document_id) or revision > HIGHEST_REVISION:
            return None
        docid = f"{document_id}.{revision}"
        most = self.client.document_bytes
        answer = self.client.ask("GET", params=_reading(docid), cookies=self.cookies, most_bytes=most)
        if not answer.ok:
            raise replies.refusal(answer, f"the question for {docid}")
        if not replies.is_error(answer.body):
            return answer.body or None
        words = replies.error_of(replies.text_of(answer)) or ""
        if replies.not_there(words):
            return None
        raise replies.refusal(answer, f"to give us {docid}")

    def is_deleted(self, document_id: str, highest: int) -> bool:
        """True if a document that it had was deleted.

        Metacat shows that only by its words when it refuses a revision that never existed.
        """
        docid = f"{document_id}.{highest + 1}"
        text = self._asked(f"the question for {docid}", _reading(docid))
        words = replies.error_of(text)
        if words is None or not replies.not_there(words):
            raise self._cannot_say(f"whether {document_id} was deleted", words)
        return replies.TOO_HIGH.search(words) is None

    def _asked(self, doing: str, form: Mapping[str, str]) -> str:
        return replies.text_of(self._answered(doing, form))

    def _answered(self, doing: str, form: Mapping[str, str], most_bytes: int = ANSWER_BYTES) -> HttpAnswer:
        answer = self.client.ask("GET", params=form, cookies=self.cookies, most_bytes=most_bytes)
        if not answer.ok or replies.is_gone(replies.text_of(answer)):
            raise replies.refusal(answer, doing)
        return answer

    def _cannot_say(self, doing: str, words: str | None) -> TargetError:
        said = f": {words.rstrip('.')}" if words else ", but with neither an answer nor an error"
        message = f"Metacat did not answer {doing}{said}."
        return TargetError(Finding("target.away", message, LATER), transient=True)


def _reading(docid: str) -> Mapping[str, str]:
    return {"action": "read", "qformat": "xml", "docid": docid}
