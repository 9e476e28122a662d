"""Chooses the listed files if several files of a folder are the same document. Reads no file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby

from metaharvest.publishing.site_document import SiteDocument


class Revisions(StrEnum):
    """The listed revisions, if a folder has several of a document, each in its own file."""

    NEWEST = "newest"
    ALL = "all"


@dataclass(slots=True)
class Choice:
    """The chosen documents of a folder: the newest of each id, and older revisions if they are wanted.

    `copies` are left out, each with the files of the same docid, of which the first is listed if `True` follows.
    `outdated` are older revisions that are left out, each with the newest one. `undecided` are the document ids without
    a choice.
    """

    newest: list[SiteDocument] = field(default_factory=list)
    older: list[SiteDocument] = field(default_factory=list)
    copies: list[tuple[SiteDocument, list[str], bool]] = field(default_factory=list)
    outdated: list[tuple[SiteDocument, SiteDocument]] = field(default_factory=list)
    undecided: set[str] = field(default_factory=set)


def choose(
    documents: Iterable[SiteDocument], revisions: Revisions | None, is_listed: Callable[[SiteDocument], bool]
) -> Choice:
    """Choose the files. `is_listed`: true if the last list names the document in this file.

    Without `revisions`, the newest is listed, and the others are reported.
    """
    choice = Choice()
    in_order = sorted(documents, key=lambda document: (document.document_id, _number(document), document.file))
    for document_id, of_id in groupby(in_order, key=lambda document: document.document_id):
        single = list(_without_copies(list(of_id), is_listed, choice))
        if document_id in choice.undecided:
            continue
        *older, newest = single
        choice.newest.append(newest)
        if revisions is Revisions.ALL:
            choice.older += [document for document in older if document.revision is not None]
        elif revisions is None:
            choice.outdated += [(document, newest) for document in older]
    return choice


def _without_copies(
    documents: Sequence[SiteDocument], is_listed: Callable[[SiteDocument], bool], choice: Choice
) -> Iterator[SiteDocument]:
    """One file for each revision: of several files, the one that is listed already."""
    for _, group in groupby(documents, key=_number):
        same = list(group)
        listed = [document for document in same if is_listed(document)]
        if len(same) == 1:
            yield same[0]
        elif len(listed) == 1:
            yield listed[0]
            choice.copies += [(copy, [listed[0].file], True) for copy in same if copy is not listed[0]]
        else:
            choice.undecided.add(same[0].document_id)
            files = [document.file for document in same]
            choice.copies += [(copy, [file for file in files if file != copy.file], False) for copy in same]


def _number(document: SiteDocument) -> int:
    return -1 if document.revision is None else document.revision
