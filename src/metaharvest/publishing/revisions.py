"""Decides about the revision of a listed document. Pure.

A docid never changes its content: each change of a document raises its revision. A revision that a person has raised in
the packageId, in the file name or in the list stays; otherwise a change of content raises it by one.
"""

from __future__ import annotations

from enum import StrEnum


class Content(StrEnum):
    """A document's content, compared with the listed content."""

    SAME = "same"
    CHANGED = "changed"
    UNKNOWN = "unknown"
    """The list does not remember it: a person, or another program, has written the entry."""


class Change(StrEnum):
    """The change of an entry of the list."""

    ADDED = "added"
    RAISED = "raised"
    """Its content has changed: it has the next revision."""
    RAISED_BY_HAND = "raised-by-hand"
    """A person has raised its revision, in the packageId or in the name of the file."""
    MOVED = "moved"
    """Its URL or its type has changed; its revision is the same."""
    UNCHANGED = "unchanged"
    HELD = "held"
    """Its file cannot be listed in its present state: the entry stays as it was."""
    ELSEWHERE = "elsewhere"
    """It is not in this folder: the entry stays as it was."""
    REMOVED = "removed"
    DUPLICATE = "duplicate"
    """A second entry of a docid: only one entry stays."""


def revision_of_new(own: int | None, known: int | None, content: Content) -> int:
    """The revision of a document that the list does not have.

    `own` is the revision in its packageId, or file name, if there is one. `known` is the highest one that the list ever
    had of it, if any; `content` is compared with that.
    """
    if known is None:
        return 1 if own is None else own
    return max(own or 0, known if content is Content.SAME else known + 1)


def revision_of_listed(
    own: int | None, known: int, content: Content, listed: int, remembered: int
) -> tuple[int, Change]:
    """The revision of a document with the listed revision `listed`; `remembered` is the revision of its known content.

    They differ if a person has raised the revision in the list.
    """
    if own is not None and own > listed:
        # A formerly listed revision may have had other content.
        return (own if own > known else known + 1), Change.RAISED_BY_HAND
    if content is Content.CHANGED and remembered >= listed:
        return max(known, listed) + 1, Change.RAISED
    return listed, Change.UNCHANGED
