"""Decides which files of a folder are documents, finds their document ids, and checks if a list can name them.

`list build` and `check` both use it, so that they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from metaharvest.publishing import problems
from metaharvest.publishing.choosing import Choice, Revisions, choose
from metaharvest.publishing.documents import EmlDocument, HarvestListInstead, NotListable, docid_in, docid_in_name
from metaharvest.publishing.folder import FileFinding, Selection, find_files
from metaharvest.publishing.naming import NamePattern
from metaharvest.publishing.site_document import Identify, SiteDocument, site_document


@dataclass(frozen=True, slots=True)
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

    `refused` are documents that cannot be listed, for the reasons in `findings`. `passed_over` are hidden files, copies
    of editors, and links to documents.
    """

    documents: list[SiteDocument] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
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
    contents = FolderContents(passed_over=found.passed_over, findings=found.findings)
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


def chosen(
    contents: FolderContents, revisions: Revisions | None, is_listed: Callable[[SiteDocument], bool]
) -> tuple[Choice, list[FileFinding]]:
    """The documents to list, and findings about the others. `is_listed`: true if the last list names a document."""
    choice = choose(contents.documents, revisions, is_listed)
    return choice, list(_left_out(choice))


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


def _left_out(choice: Choice) -> Iterator[FileFinding]:
    for document, others, is_other_listed in choice.copies:
        yield problems.copy(document, others, is_other_listed)
    for document, newest in choice.outdated:
        yield problems.outdated(document, newest)
