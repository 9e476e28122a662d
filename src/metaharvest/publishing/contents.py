"""Decides which files of a folder are documents, finds their document ids, and chooses between files of one document.

`list build` and `check` both use it, so that they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from pathlib import Path

from metaharvest.model.values import frozen
from metaharvest.publishing import problems
from metaharvest.publishing.documents import (
    EmlDocument,
    HarvestListInstead,
    Identify,
    NotListable,
    SiteDocument,
    docid_in,
    docid_in_name,
    site_document,
)
from metaharvest.publishing.folder import FileFinding, Selection, find_files
from metaharvest.publishing.naming import NamePattern


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

    @property
    def findings(self) -> list[FileFinding]:
        """The findings about the documents that are left out."""
        copies = [problems.copy(document, others, is_other_listed) for document, others, is_other_listed in self.copies]
        return copies + [problems.outdated(document, newest) for document, newest in self.outdated]


def choose(
    documents: Iterable[SiteDocument], revisions: Revisions | None, is_listed: Callable[[SiteDocument], bool]
) -> Choice:
    """The documents to list. `is_listed`: true if the last list names the document in this file.

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


@frozen
class FolderOptions:
    """Options for reading a folder. `names`: the docids come from the file names, not from the packageIds.

    `revisions`: the listed ones of several revisions of a document, each in its own file.
    """

    selection: Selection = field(default_factory=Selection)
    names: NamePattern | None = None
    revisions: Revisions | None = None


@dataclass(slots=True)
class FolderContents:
    """The files of a folder, by their paths below it: `documents`, harvest `lists`, and others.

    `refused` are documents that cannot be listed, and `unreadable` files and folders that are not read, for the
    reasons in `findings`; a folder ends with a slash. `passed_over` are hidden files, copies of editors, and links to
    documents.
    """

    documents: list[SiteDocument] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    findings: list[FileFinding] = field(default_factory=list)


def read_folder(
    folder: Path,
    options: FolderOptions,
    url_of: Callable[[str], str],
    listed_id: Callable[[str], str | None] = lambda file: None,
) -> FolderContents:
    """The contents of the folder. `url_of`: the web address of a file.

    `listed_id`: the document id that a list gives to a file, for a packageId that is no docid. Raises PublishingError
    if the folder cannot be read.
    """
    found = find_files(folder, options.selection)
    contents = FolderContents(unreadable=found.unreadable, passed_over=found.passed_over, findings=found.findings)
    for file in found.files:
        identify = _identify(file, options.names, listed_id(file))
        try:
            contents.documents.append(site_document(folder / file, file, url_of(file), identify))
        except NotListable as error:
            contents.findings += [FileFinding(file, finding) for finding in error.findings]
            contents.refused.append(file)
        except HarvestListInstead:
            contents.lists.append(file)
    return contents


def _identify(file: str, names: NamePattern | None, listed_id: str | None) -> Identify:
    if names is not None:
        return lambda _: docid_in_name(file, names)
    if listed_id is None:
        return docid_in

    def identify(document: EmlDocument) -> tuple[str, int | None]:
        try:
            return docid_in(document)
        except NotListable:
            return listed_id, None

    return identify
