"""Decides which revision a document is listed with. Pure.

A docid never changes its content: whoever changes a document raises its revision. What a person has raised by hand, in
the packageId, in the file name or in the list, holds; otherwise a change of content raises it by one.
"""

from __future__ import annotations

from enum import StrEnum


class Content(StrEnum):
    """A document's content beside that which was listed."""

    SAME = "same"
    CHANGED = "changed"
    UNKNOWN = "unknown"
    """The list does not remember it: it was written by hand, or by another program."""


class Change(StrEnum):
    """What happens to an entry of the list."""

    ADDED = "added"
    RAISED = "raised"
    """Its content has changed: it has the next revision."""
    RAISED_BY_HAND = "raised-by-hand"
    """A person has raised its revision, in the packageId or in the name of the file."""
    MOVED = "moved"
    """Its URL or its type is another; its revision is the same."""
    UNCHANGED = "unchanged"
    HELD = "held"
    """Its file cannot be listed as it is now: the entry stays as it was."""
    ELSEWHERE = "elsewhere"
    """It is not of this folder: the entry stays as it was."""
    REMOVED = "removed"
    DUPLICATE = "duplicate"
    """A second entry of a docid: one entry stays."""


def revision_of_new(own: int | None, known: int | None, content: Content) -> int:
    """The revision of a document that the list does not have.

    `own` is that of its packageId, or file name, if that has one; `known` the highest one that the list has had of it,
    if any; `content` is compared with that.
    """
    if known is None:
        return 1 if own is None else own
    return max(own or 0, known if content is Content.SAME else known + 1)


def revision_of_listed(
    own: int | None, known: int, content: Content, listed: int, remembered: int
) -> tuple[int, Change]:
    """The revision of a document whose entry has the revision `listed`; `remembered` is that which its content was.

    They differ where a person has raised it in the list.
    """
    if own is not None and own > listed:
        # What was listed once under a revision that is no longer listed had other content, for all that is known.
        return (own if own > known else known + 1), Change.RAISED_BY_HAND
    if content is Content.CHANGED and remembered >= listed:
        return max(known, listed) + 1, Change.RAISED
    return listed, Change.UNCHANGED
