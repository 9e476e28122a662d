"""Plans a harvest list of the EML documents in a folder.

1. Read the last list, with its memories.
2. Find and read the files of the folder, and identify their documents.
3. Choose between several files of one document.
4. Set the revision of each; keep the entries from outside of this folder.

plan.py writes the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from metaharvest.publishing.contents import FolderOptions, chosen, read_folder
from metaharvest.publishing.entries import NewEntries
from metaharvest.publishing.list_file import place_of
from metaharvest.publishing.list_store import StoredList, open_list
from metaharvest.publishing.naming import BaseUrl
from metaharvest.publishing.plan import ListPlan


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """The list to make: the file `output` with the documents in `folder`, whose web address is `base`.

    `writes`: write revisions into the packageIds, too.
    """

    folder: Path
    base: BaseUrl
    output: Path
    options: FolderOptions = field(default_factory=FolderOptions)
    writes: bool = False
    keep_order: bool = False


def plan_build(request: BuildRequest) -> ListPlan:
    """The plan of the list; nothing is written. Raises PublishingError; ListError for the last list."""
    stored, options, url_of = open_list(request.output), request.options, request.base.url_of
    options = replace(options, selection=replace(options.selection, never=request.output))
    ids = _listed_ids(stored)
    contents = read_folder(request.folder, options, url_of, lambda file: ids.get(url_of(file)))
    entries = NewEntries(stored.list_file, writes=request.writes, from_names=options.names is not None)
    choice, left_out = chosen(contents, options.revisions, entries.is_listed)
    for document in choice.older:
        entries.add_older(document)
    for document in choice.newest:
        entries.add_newest(document)
    unusable = set(map(url_of, contents.refused))
    entries.settle_others(
        lambda entry: entry.document.url in unusable or entry.document.document_id in choice.undecided,
        lambda entry: not entry.document.url.startswith(request.base.text),
    )
    return ListPlan(
        stored,
        entries.list_file(keep_order=request.keep_order),
        tuple(sorted(entries.changes, key=lambda change: place_of(change.document))),
        tuple(entries.rewrites),
        tuple(sorted([*contents.findings, *left_out, *entries.findings], key=lambda found: found.file)),
        tuple(sorted([*contents.passed_over, *contents.lists])),
    )


def _listed_ids(stored: StoredList) -> dict[str, str]:
    """The document id of each URL in the last list."""
    return {entry.document.url: entry.document.document_id for entry in stored.list_file.entries}
