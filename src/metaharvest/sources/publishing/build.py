"""Plans a harvest list of the EML documents in a folder.

1. The last list is read, with what it remembers.
2. The files of the folder are found and read: which documents are they?
3. Of several files of one document, those to be listed are chosen.
4. Each gets its revision; the entries that are not of this folder stay.

What is planned is written by plan.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from metaharvest.sources.publishing import problems
from metaharvest.sources.publishing.choosing import Choice, Revisions, choose
from metaharvest.sources.publishing.documents import HarvestListInstead, NotListable, docid_in, docid_in_name
from metaharvest.sources.publishing.entries import ListChange, NewEntries
from metaharvest.sources.publishing.folder import FileFinding, Selection, find_files
from metaharvest.sources.publishing.list_file import place_of
from metaharvest.sources.publishing.list_store import open_list
from metaharvest.sources.publishing.naming import BaseUrl, NamePattern
from metaharvest.sources.publishing.plan import ListPlan
from metaharvest.sources.publishing.site_document import SiteDocument, site_document


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What is to be made: the list in the file `output`, of the documents in `folder`, which is at `base` on the web.

    `names`: docids are taken from the names of the files. `writes`: revisions also go into the packageIds.
    """

    folder: Path
    base: BaseUrl
    output: Path
    selection: Selection = field(default_factory=Selection)
    names: NamePattern | None = None
    revisions: Revisions | None = None
    writes: bool = False
    keep_order: bool = False


def plan_build(request: BuildRequest) -> ListPlan:
    """What building the list comes to; nothing is written. Raises PublishingError; ListError for the last list."""
    stored = open_list(request.output)
    found = find_files(request.folder, replace(request.selection, never=request.output))
    passed_over, findings, unusable = list(found.passed_over), list(found.findings), set[str]()
    documents: list[SiteDocument] = []
    for file in found.files:
        try:
            documents.append(_read(request, file))
        except NotListable as error:
            findings += [FileFinding(file, finding) for finding in error.findings]
            unusable.add(request.base.url_of(file))
        except HarvestListInstead:
            passed_over.append(file)
    entries = NewEntries(stored.list_file, writes=request.writes, from_names=request.names is not None)
    choice = choose(documents, request.revisions, entries.is_listed)
    findings += _left_out(choice)
    for document in choice.older:
        entries.add_older(document)
    for document in choice.newest:
        entries.add_newest(document)
    entries.settle_others(
        lambda entry: entry.document.url in unusable or entry.document.document_id in choice.undecided,
        lambda entry: not entry.document.url.startswith(request.base.text),
    )
    return ListPlan(
        stored,
        entries.list_file(keep_order=request.keep_order),
        tuple(sorted(entries.changes, key=_place)),
        tuple(entries.rewrites),
        tuple(sorted([*findings, *entries.findings], key=lambda found: found.file)),
        tuple(sorted(passed_over)),
    )


def _read(request: BuildRequest, file: str) -> SiteDocument:
    names = request.names
    identify = docid_in if names is None else lambda _: docid_in_name(file, names)
    return site_document(request.folder / file, file, request.base.url_of(file), identify)


def _left_out(choice: Choice) -> Iterator[FileFinding]:
    for document, others, is_other_listed in choice.copies:
        yield problems.copy(document, others, is_other_listed)
    for document, newest in choice.outdated:
        yield problems.outdated(document, newest)


def _place(change: ListChange) -> tuple[str, int, int]:
    return place_of(change.document)
