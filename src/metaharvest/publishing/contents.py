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
from metaharvest.publishing.folder import FileFinding, FolderContents, Selection, find_files
from metaharvest.publishing.naming import NamePattern


class Revisions(StrEnum):
    """The listed revisions, if a folder has several of a document, each in its own file."""

    NEWEST = "newest"
    ALL = "all"


@dataclass(slots=True)
class Choice:
    """The chosen documents of a folder: the newest of each id, and older revisions if they are wanted.

    `findings` are about the documents that are left out. `undecided` are the document ids without a choice.
    """

    newest: list[SiteDocument] = field(default_factory=list)
    older: list[SiteDocument] = field(default_factory=list)
    findings: list[FileFinding] = field(default_factory=list)
    undecided: set[str] = field(default_factory=set)


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
            choice.findings += [problems.outdated(document, newest) for document in older]
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
            copies = (each for each in same if each is not listed[0])
            choice.findings += [problems.copy(each, [listed[0].file], is_other_listed=True) for each in copies]
        else:
            choice.undecided.add(same[0].document_id)
            for each in same:
                others = [document.file for document in same if document is not each]
                choice.findings.append(problems.copy(each, others, is_other_listed=False))


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
    contents = find_files(folder, options.selection)
    for file in contents.files:
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
