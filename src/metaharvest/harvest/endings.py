"""What is said of documents that were fetched, or are in doubt: outcomes and findings. Pure."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from metaharvest.model import Action, FetchedDocument, Finding, Intent, Level, Outcome, OutcomeKind


def normalized(fetched: FetchedDocument, content: bytes) -> FetchedDocument:
    """The document with what goes into the target; what was received stays with it."""
    return replace(fetched, content=content, sha256=sha256(content).hexdigest(), received=fetched.content)


def held_already(intent: Intent, fetched: FetchedDocument) -> Outcome:
    """The outcome of a record that came with other words around the same bytes: it gets no revision."""
    held = intent.target_revision
    document = replace(fetched.document, revision=fetched.document.revision if held is None else held)
    return Outcome(document, OutcomeKind.UNCHANGED, held, intent.findings, sha256=fetched.sha256)


def left_with_what_stays(filtered: Finding, intent: Intent) -> Finding:
    """What is said of a document that a filter left out: a revision that was taken before stays."""
    if intent.target_revision is None:
        return filtered
    return replace(filtered, message=f"{filtered.message} The repository keeps revision {intent.target_revision}.")


def same_content(intent: Intent, fetched: FetchedDocument) -> tuple[Finding, ...]:
    """What is said of a document whose new revision is the old one, byte for byte."""
    if intent.held_sha256 is None or intent.held_sha256 != fetched.sha256:
        return ()
    message = f"Revision {fetched.document.revision} has exactly the bytes of revision {intent.target_revision}."
    remedy = "Raise the revision only where the document changes; if it was to, look whether the right file is there."
    return (Finding("list.same-content", message, remedy, Level.WARNING),)


def wanted(intent: Intent) -> OutcomeKind:
    """The outcome of a document that goes in as intended."""
    return OutcomeKind.INSERTED if intent.action is Action.INSERT else OutcomeKind.UPDATED


ARRIVED = Finding(
    "target.unconfirmed",
    "An earlier run was interrupted while it sent this document; the repository was asked, and has it.",
    "Nothing is to be done.",
    Level.WARNING,
)
"""How a pending upload ended that the target has."""

WAITS = Finding(
    "target.lower-revision",
    "It is not known whether a lower revision arrived in the repository, so that no higher one was sent.",
    "Nothing is to be done: the next run looks whether it arrived, and goes on.",
    Level.WARNING,
)
"""Why a revision waits for a lower one."""

OTHER_CONTENT = Finding(
    "target.other-content",
    "An earlier run was interrupted while it sent this document; the repository now has this revision, or a higher "
    "one, with other content.",
    "The administrator should compare the two; to replace what the repository has, raise the revision.",
)
"""Why a pending upload is not sent again."""
