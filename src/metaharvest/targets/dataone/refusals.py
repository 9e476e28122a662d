"""A node's refusals, in words for the person who can act on them, with the node's own description.

Nodes send errors as XML, `<error name errorCode detailCode><description>`, and sometimes as an HTML page. GMN and
Metacat give the same refusal different names and codes.
"""

from __future__ import annotations

import re

from metaharvest.errors import TargetError
from metaharvest.model import Finding
from metaharvest.model.actions import Remedy, todo
from metaharvest.model.values import frozen
from metaharvest.targets.dataone.system_metadata import root_of
from metaharvest.targets.http import HttpAnswer
from metaharvest.text import one_line, shown_url

_ASK = "The words are the repository's own: the administrator should show them to the people who run it."
_SHOW = "The administrator should show this to the people who run the repository."
_REMEDIES = (
    (
        r"checksum ?algorithm",
        "The administrator should set checksum_algorithm in the target's settings to one that the repository takes; "
        "SHA-1 and MD5 are accepted everywhere.",
    ),
    (
        r"schema validator|not determinist",
        "The repository cannot check documents of this version of EML, good or bad. Publish the document as EML 2.1.1 "
        "or 2.2.0, or the administrator asks the people who run the repository.",
    ),
    (
        r"not validate|not valid(?! identifier)|validation|\b1181\b",
        "The document passed the harvester's checks, the repository has its own. If the words say what is wrong, "
        "correct the document and raise its revision; otherwise the administrator shows them to the people who run it.",
    ),
    (
        r"already (in use|used|exists?|been made obsolete)|should not exist|not ?unique|different sid",
        "Another document of the repository uses this identifier, or the series has moved on. The administrator should "
        "look at it there, or ask the people who run the repository.",
    ),
    (
        r"archived",
        "The document was archived in the repository, which takes no further revision of it. Give it a new identifier, "
        "or the administrator asks the people who run the repository.",
    ),
    (
        r"system ?metadata",
        "The administrator should check what the target's settings say of documents: format_id, rights_holder, "
        "submitter and the subjects of read, write and change_permission.",
    ),
)
"""A word in a refusal -> the remedy."""


@frozen
class NodeError:
    """An error as the API describes it."""

    name: str
    code: str
    description: str

    def __str__(self) -> str:
        code = f" {self.code}" if self.code not in ("", "0") else ""
        return f"{self.name}{code}: {self.description}" if self.description else f"{self.name}{code}"


def error_in(answer: HttpAnswer) -> NodeError | None:
    """The error that a response describes; None if it describes none, as an HTML page."""
    try:
        root = root_of(answer.body)
    except ValueError:
        return None
    if root.tag.rpartition("}")[2] != "error":
        return None
    described = root.findtext("{*}description", "")
    # The last line of a traceback names the error.
    lines = [line for line in described.splitlines() if line.strip()] or [""]
    text = lines[-1] if lines[0].startswith("Traceback") else described
    code = one_line(root.get("detailCode", ""), 20)
    return NodeError(one_line(root.get("name", "error"), 60), code, one_line(shown_url(text), 300).rstrip("."))


def is_not_found(answer: HttpAnswer) -> bool:
    """True if a node says that it has no such object: a 404 of any other server means a wrong address."""
    error = error_in(answer) if answer.status == 404 else None
    return error is not None and error.name == "NotFound"


def refused_question(answer: HttpAnswer) -> TargetError:
    """The error about a request for information that was refused."""
    return answer.refusal(_words(answer))


def refused_document(answer: HttpAnswer, docid: str) -> TargetError:
    """The error about a refused document: about the target if it may pass or concerns the login, else about it."""
    if answer.status >= 500 or answer.status in (401, 403, 407, 408, 425, 429) or 300 <= answer.status < 400:
        return answer.refusal(_words(answer))
    words = _words(answer) or f"{answer.status} {one_line(answer.reason, 100)}".strip()
    if answer.status == 413:
        remedy = "The document is too large for the repository; the people who run it can say how large it may be."
    else:
        remedy = next((remedy for pattern, remedy in _REMEDIES if re.search(pattern, words, re.IGNORECASE)), _ASK)
    return TargetError(Finding("target.refused", f"The repository refused {docid}: {words}.", remedy))


def not_understood(answer: HttpAnswer, why: str) -> TargetError:
    """The error about a success whose content does not follow the API."""
    remedy = Remedy(
        "The administrator should check url in the target's settings: it ends with /v2, as in "
        "https://repository.example.org/metacat/d1/mn/v2; {} says what is there.",
        todo("targets.check"),
    )
    message = f"{shown_url(answer.url)} did not answer as a DataONE member node does: {why}."
    return TargetError(Finding("target.answer", message, remedy))


def other_bytes(url: str, pid: str, given: int, said: int, algorithm: str) -> TargetError:
    """The error about an object whose bytes differ from its system metadata."""
    message = f"{shown_url(url)} gave {given:,} bytes for {one_line(pid)}, "
    if given != said:
        message += f"but states a size of {said:,}."
    else:
        message += f"but their {one_line(algorithm, 20)} is not the checksum that it states."
    remedy = "Look into that repository: its document may be damaged, or something in between cuts it off."
    return TargetError(Finding("copy.unreadable", message, remedy))


def short_listing(url: str, listed: int, total: int) -> TargetError:
    """A listing that ends too early."""
    message = f"{shown_url(url)} lists {listed:,} of the {total:,} objects that it says it has, and then no more."
    remedy = "The listing must be complete: the administrator should show this to the people who run the "
    return TargetError(Finding("target.answer", message, f"{remedy}repository."))


def endless_listing(url: str, said: str) -> TargetError:
    """The error about a listing without an end; `said`: the reason to stop reading."""
    message = f"The listing of {shown_url(url)} was not read to its end: {said}."
    return TargetError(Finding("target.answer", message, _SHOW))


def endless_chain(url: str, pid: str, number: int) -> TargetError:
    """The error about a chain of superseding objects without an end."""
    message = f"{shown_url(url)} names more than {number:,} objects, each of which supersedes another, since {pid}."
    return TargetError(Finding("target.answer", message, _SHOW))


def restless_listing(url: str, listed: int, total: int) -> TargetError:
    """The error about a listing that was incomplete each time it was read."""
    message = f"The listing of {shown_url(url)} changed while it was read: it named {listed:,} objects, of {total:,}."
    remedy = "Repeat the command, when less is changed there. If it lasts, show this to the people who run the "
    return TargetError(Finding("target.away", message, f"{remedy}repository."), transient=True)


def _words(answer: HttpAnswer) -> str:
    return str(error_in(answer) or "")
