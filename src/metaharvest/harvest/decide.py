"""Listed documents and the content of the target -> intents. Pure.

Each document is compared with the highest revision that the target holds. Every listed revision above it goes in, in
ascending order. If even the highest listed revision is lower, the list is behind (`stale`). The target has the others
already. The same docid listed again is a `duplicate`. A document that another site owns is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from itertools import groupby

from metaharvest.model import Action, Finding, Holding, Intent, Level, ListedDocument
from metaharvest.targets.owners import other_site_owns
from metaharvest.targets.withdrawals import withdrawn


def decide(
    documents: Iterable[ListedDocument],
    holdings: Mapping[str, Holding],
    site_id: int,
    other_sites: Mapping[int, str],
    *,
    are_records: bool = False,
) -> Iterator[Intent]:
    """One intent per listed document, in the order of `documents`.

    `documents` are in ascending order of document id and revision, all revisions of a document together. `other_sites`
    are the registered sites by id, with their names: documents of sites that are no longer registered are free.
    `are_records`: the documents are records of a source repository, which has no list to edit.
    """
    for document_id, listed in groupby(documents, key=lambda document: document.document_id):
        holding = holdings.get(document_id)
        taken = dict(holding.taken_from).get(site_id) if holding else None
        owner = _owner(holding, site_id, other_sites)
        yield from _decide_one(list(listed), holding, owner, taken, are_records)


def _owner(holding: Holding | None, site_id: int, other_sites: Mapping[int, str]) -> str | None:
    if holding is None or holding.site_id is None or holding.site_id == site_id:
        return None
    return other_sites.get(holding.site_id)


def _decide_one(
    listed: list[ListedDocument], holding: Holding | None, owner: str | None, taken: date | None, are_records: bool
) -> Iterator[Intent]:
    """The intents for the revisions of one document.

    `owner` is the other site that the document belongs to; `taken`: the day on which it was taken from this one.
    """
    held = holding.revision if holding else None
    highest = listed[-1].revision
    previous: ListedDocument | None = None
    for document in listed:
        if previous is not None and previous.revision == document.revision:
            yield Intent(document, Action.DUPLICATE, held, (_duplicate(document, previous),))
            continue
        previous = document
        if holding is not None and holding.withdrawn is not None:
            yield Intent(document, Action.LEAVE_OUT, None, (withdrawn(document, holding.withdrawn),))
        elif owner is not None:
            finding = other_site_owns(document, owner, taken, is_record=are_records)
            yield Intent(document, Action.REFUSE, held, (finding,))
        elif held is None:
            yield Intent(document, Action.INSERT if document is listed[0] else Action.UPDATE)
        elif highest < held:
            yield Intent(document, Action.STALE, held, (_stale(document, held),))
        elif document.revision <= held:
            yield Intent(document, Action.UNCHANGED, held)
        else:
            yield Intent(document, Action.UPDATE, held, held_sha256=holding.sha256 if holding else None)


def _duplicate(document: ListedDocument, first: ListedDocument) -> Finding:
    at = f" on line {first.line}" if first.line else ""
    has_other_url = document.url != first.url
    other_url = " with another URL" if has_other_url else ""
    or_raise = ", or give the newer document a higher revision" if has_other_url else ""
    return Finding(
        "list.duplicate",
        f"{document.docid} is listed again{other_url}; its first entry{at} was used.",
        f"Delete one of the two entries{or_raise}.",
        Level.WARNING,
        line=document.line,
        docid=document.docid,
    )


def _stale(document: ListedDocument, held: int) -> Finding:
    message = f"The list names revision {document.revision}, but the repository already has revision {held}."
    remedy = f"If the listed document is newer, raise its revision to {held + 1}; if not, list revision {held}."
    if document.by_itself:
        message = f"The document has revision {document.revision}, but the repository already has revision {held}."
        remedy = f"If it is newer than the repository's, raise its revision to {held + 1}, in its packageId too."
    return Finding(
        "list.stale",
        message,
        remedy,
        Level.WARNING,
        line=document.line,
        docid=document.docid,
    )
