"""Finds the documents that people name: they write docids and document ids, and the program finds out which."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from metaharvest.database.batches import batches
from metaharvest.errors import MetaharvestError, UnknownDocument
from metaharvest.model import Holding
from metaharvest.model.actions import todo
from metaharvest.targets.base import Target
from metaharvest.text import LARGEST_ID, one_line, some_of, whole_number

_AT_ONCE = 1000
_NAMED = 10
_MOST_NUMBER = 10**100
"""The largest number in a docid: far above all revisions, so that a message can name the existing ones."""


def find_document(target: Target, name: str, elsewhere: Collection[str] = ()) -> tuple[str, int | None]:
    """The document that `name` means, and the revision if it names one: read as a docid first, then as a document id.

    The ids `elsewhere` are known documents as well, with any revision, if the target does not have them. Raises
    MetaharvestError if the document is unknown, TargetError if the target does not answer.
    """
    head, tail = _parts(name)
    held: list[int] = []
    if head:
        held = [each.revision for each in target.revisions(head)]
        if int(tail) in held:
            return head, int(tail)
    if target.revisions(name):
        return name, None
    if not held and (found := among(elsewhere, name)):
        return found
    if held:
        known = ", ".join(map(str, held))
        raise MetaharvestError(f"The target has no revision {tail} of {head}. It has: {known}.")
    raise UnknownDocument(f"The target has no document '{one_line(name)}'. {todo('targets.list')} lists its documents.")


def find_documents(target: Target, names: Sequence[str], elsewhere: Collection[str] = ()) -> dict[str, int | None]:
    """The documents that `names` mean, as `find_document` says, each with the named revision, if there is one.

    Raises MetaharvestError with all names that the target does not know, TargetError if it does not answer.
    """
    if len(names) == 1:
        return dict([find_document(target, names[0], elsewhere)])
    held = _held(target, possible_ids(names))
    found: dict[str, int | None] = {}
    unknown: list[str] = []
    for name in names:
        head, tail = _parts(name)
        if name in held and head not in held:
            found.setdefault(name, None)
        elif name not in held and head not in held:
            if known := among(elsewhere, name):
                found.setdefault(*known)
            else:
                unknown.append(name)
        elif name not in held and held[head].revision == int(tail):
            found.setdefault(head, int(tail))
        else:
            found.setdefault(*find_document(target, name))
    if unknown:
        named = some_of([one_line(name) for name in unknown], _NAMED)
        raise MetaharvestError(
            f"The target does not have {len(unknown):,} of these {len(names):,} documents: {named}. "
            f"Nothing was changed. {todo('targets.list')} lists its documents."
        )
    return found


def possible_ids(names: Sequence[str]) -> list[str]:
    """The document ids that these names may mean."""
    return list(dict.fromkeys(each for name in names for each in (name, _parts(name)[0]) if each))


def among(document_ids: Collection[str], name: str) -> tuple[str, int | None] | None:
    """The document among these that `name` means, with any revision; None if it is none of them."""
    head, tail = _parts(name)
    if head in document_ids and int(tail) <= LARGEST_ID:
        return head, int(tail)
    return (name, None) if name in document_ids else None


def _held(target: Target, document_ids: Sequence[str]) -> Mapping[str, Holding]:
    """The target's holdings of these, by document id."""
    held: dict[str, Holding] = {}
    with target.session(None) as session:
        for batch in batches(document_ids, _AT_ONCE):
            held |= session.holdings(batch)
    return held


def _parts(name: str) -> tuple[str, str]:
    """Document id and revision of a name that may be a docid; both empty if it cannot be one."""
    head, _, tail = name.rpartition(".")
    return (head, tail) if head and whole_number(tail, _MOST_NUMBER) is not None else ("", "")
