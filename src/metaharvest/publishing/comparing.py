"""The differences between two harvest lists, as a harvest sees them. Pure.

A harvest goes by the highest revision of each document. It does not fetch a known revision again, even if its URL or
its type has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from metaharvest.model import ListedDocument
from metaharvest.model.values import frozen
from metaharvest.publishing.list_file import place_of


class Difference(StrEnum):
    """A difference of a document between two lists."""

    ADDED = "added"
    REMOVED = "removed"
    RAISED = "raised"
    LOWERED = "lowered"
    URL_CHANGED = "url-changed"
    TYPE_CHANGED = "type-changed"
    REVISION_ADDED = "revision-added"
    REVISION_REMOVED = "revision-removed"


@frozen
class ListDifference:
    """One difference: the entry in the old list and in the new one; None if a list has none."""

    kind: Difference
    old: ListedDocument | None
    new: ListedDocument | None

    @property
    def document_id(self) -> str:
        """The document that differs."""
        return _entry(self).document_id


_Revisions = dict[int, ListedDocument]


def differences(old: Iterable[ListedDocument], new: Iterable[ListedDocument]) -> list[ListDifference]:
    """All differences, by document id and revision. If a list names a docid twice, the first entry counts."""
    before, now = _by_id(old), _by_id(new)
    found = [
        difference
        for document_id in {**before, **now}
        for difference in _of_document(before.get(document_id, {}), now.get(document_id, {}))
    ]
    return sorted(found, key=lambda difference: place_of(_entry(difference)))


def _by_id(documents: Iterable[ListedDocument]) -> dict[str, _Revisions]:
    by_id: dict[str, _Revisions] = {}
    for document in documents:
        by_id.setdefault(document.document_id, {}).setdefault(document.revision, document)
    return by_id


def _of_document(old: _Revisions, new: _Revisions) -> Iterator[ListDifference]:
    highest_old, highest_new = max(old, default=None), max(new, default=None)
    if highest_old is None or highest_new is None:
        kind = Difference.ADDED if highest_old is None else Difference.REMOVED
        yield from (ListDifference(kind, old.get(revision), new.get(revision)) for revision in {**old, **new})
        return
    if highest_old != highest_new:
        kind = Difference.RAISED if highest_new > highest_old else Difference.LOWERED
        yield ListDifference(kind, old[highest_old], new[highest_new])
    for revision in sorted({*old, *new}):
        before, now = old.get(revision), new.get(revision)
        if before and now:
            if before.url != now.url:
                yield ListDifference(Difference.URL_CHANGED, before, now)
            if before.document_type != now.document_type:
                yield ListDifference(Difference.TYPE_CHANGED, before, now)
        elif now and revision != highest_new:
            # A revision above the old highest one is accepted, too: the harvest takes each in order.
            kind = Difference.RAISED if revision > highest_old else Difference.REVISION_ADDED
            yield ListDifference(kind, old[highest_old] if kind is Difference.RAISED else None, now)
        elif before and revision != highest_old:
            yield ListDifference(Difference.REVISION_REMOVED, before, None)


def _entry(difference: ListDifference) -> ListedDocument:
    entry = difference.new or difference.old
    assert entry is not None
    return entry
