"""The plans of a new list, and their execution: `plan_build` from a folder, others for changes of single entries.

A build goes in these steps:

1. Read the last list, with its memories.
2. Find and read the files of the folder, and identify their documents.
3. Choose between several files of one document.
4. Set the revision of each; keep the entries from outside of this folder.

`carry_out` writes the result.
"""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path

from metaharvest.config.files import replace_file
from metaharvest.errors import PublishingError
from metaharvest.model.values import frozen
from metaharvest.publishing import problems
from metaharvest.publishing.contents import FolderOptions, choose, read_folder
from metaharvest.publishing.documents import SiteDocument, read_again
from metaharvest.publishing.entries import Change, ListChange, NewEntries, Rewrite
from metaharvest.publishing.folder import FileFinding
from metaharvest.publishing.list_file import Entry, ListFile, in_order, memory_of, place_of, written
from metaharvest.publishing.list_store import StoredList, open_list, require_untouched, store
from metaharvest.publishing.naming import BaseUrl
from metaharvest.sources.harvest_list.values import MAX_LONG
from metaharvest.text import one_line


@frozen
class ListPlan:
    """The plan of a new list. `findings` are about files; `passed_over` are files that are no documents."""

    stored: StoredList
    list_file: ListFile
    changes: tuple[ListChange, ...]
    rewrites: tuple[Rewrite, ...]
    findings: tuple[FileFinding, ...]
    passed_over: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """True if no document could be listed: then nothing is written, as a list needs at least one document."""
        return not self.list_file.entries

    @property
    def changes_list(self) -> bool:
        """True if the list would change its bytes."""
        return bool(self.changes) and written(self.list_file) != self.stored.content


@frozen
class Built:
    """The result: the list was written or not, the number of written packageIds, and `findings` about failed ones."""

    list_written: bool
    documents_written: int
    findings: tuple[FileFinding, ...]


def carry_out(plan: ListPlan) -> Built:
    """Write the changes, the documents first: after an interruption, the next build makes the same list.

    Raises PublishingError.
    """
    if plan.is_empty or not plan.changes:
        return Built(False, 0, ())
    require_untouched(plan.stored)
    not_written: dict[str, SiteDocument] = {}
    findings: list[FileFinding] = []
    for rewrite in plan.rewrites:
        document, docid = rewrite.document, rewrite.docid
        new = read_again(document).with_package_id(docid)
        try:
            replace_file(Path(os.path.realpath(rewrite.path)), new, keeps_mode=True)
        except OSError as error:
            not_written[docid] = document
            findings.append(problems.not_written(document, docid, error.strerror or str(error)))
    list_file = replace(plan.list_file, entries=tuple(_as_they_are(plan.list_file.entries, not_written)))
    return Built(store(plan.stored, list_file), len(plan.rewrites) - len(not_written), tuple(findings))


def _as_they_are(entries: tuple[Entry, ...], not_written: dict[str, SiteDocument]) -> Iterator[Entry]:
    """The entries; if a document could not be written, its entry keeps the memory of the present file."""
    for entry in entries:
        document = not_written.get(entry.document.docid)
        memory = memory_of(entry.document, document.sha256, document.package_id) if document else entry.memory
        yield replace(entry, memory=memory)


@frozen
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
    ids = {entry.document.url: entry.document.document_id for entry in stored.list_file.entries}
    contents = read_folder(request.folder, options, url_of, lambda file: ids.get(url_of(file)))
    entries = NewEntries(stored.list_file, writes=request.writes, from_names=options.names is not None)
    choice = choose(contents.documents, options.revisions, entries.is_listed)
    for document in choice.older:
        entries.add_older(document)
    for document in choice.newest:
        entries.add_newest(document)
    unusable = {url_of(path) for path in (*contents.refused, *contents.unreadable)}
    folders = tuple(url for url in unusable if url.endswith("/"))
    entries.settle_others(
        lambda entry: (
            entry.document.url in unusable
            or entry.document.url.startswith(folders)
            or entry.document.document_id in choice.undecided
        ),
        lambda entry: not entry.document.url.startswith(request.base.text),
    )
    others = [] if stored.list_file.entries else [problems.other_list(request.folder, file) for file in contents.lists]
    findings = [*contents.findings, *choice.findings, *entries.findings, *others]
    return ListPlan(
        stored,
        entries.list_file(keep_order=request.keep_order),
        tuple(sorted(entries.changes, key=lambda change: place_of(change.document))),
        tuple(entries.rewrites),
        tuple(sorted(findings, key=lambda found: found.file)),
        tuple(sorted([*contents.passed_over, *contents.lists])),
    )


def plan_addition(stored: StoredList, documents: Iterable[SiteDocument], *, writes: bool, keep_order: bool) -> ListPlan:
    """The list with these documents in their present state; a listed one gets its revision as in a build.

    `writes`: revisions also go into the packageIds.
    """
    entries = NewEntries(stored.list_file, writes=writes)
    for document in documents:
        entries.add_newest(document)
    entries.keep_others(lambda entry: True)
    new = entries.list_file(keep_order=keep_order)
    findings = (*entries.findings, *_listed_again(stored, new))
    return ListPlan(stored, new, tuple(entries.changes), tuple(entries.rewrites), findings, ())


def plan_removal(stored: StoredList, names: Iterable[str], *, keep_order: bool) -> ListPlan:
    """The list without these documents, each a docid or a document id. Raises PublishingError if one is not listed."""
    named = {id(entry) for name in names for entry in named_entries(stored.list_file, name)}
    gone = [entry for entry in stored.list_file.entries if id(entry) in named]
    if len(gone) == len(stored.list_file.entries):
        raise PublishingError(
            "Nothing would be left in the list, and a harvest list names one document at least. "
            "To end the harvest of a site, ask the harvester's administrator to switch it off."
        )
    entries = NewEntries(stored.list_file, writes=False)
    entries.keep_others(lambda entry: id(entry) not in named)
    changes = tuple(ListChange(entry.document, Change.REMOVED, entry.document.revision) for entry in gone)
    list_file = entries.list_file(keep_order=keep_order)
    return ListPlan(stored, list_file, changes, (), _listed_again(stored, list_file), ())


def plan_raise(stored: StoredList, names: Iterable[str], to: int | None, *, keep_order: bool) -> ListPlan:
    """The list with the next revision of these documents, or the revision `to`.

    If a document has several revisions, the highest is raised. Raises PublishingError.
    """
    raised: dict[int, Entry] = {}
    for name in names:
        entry = max(named_entries(stored.list_file, name), key=lambda entry: entry.document.revision)
        document = entry.document
        known = NewEntries(stored.list_file, writes=False).known_revision(document.document_id) or 0
        revision = known + 1 if to is None else to
        if revision <= known:
            raise PublishingError(f"{document.docid} has the revision {known} already; a revision is only ever raised.")
        if revision > MAX_LONG:
            raise PublishingError(f"{document.docid} cannot be raised: {MAX_LONG} is the largest revision there is.")
        raised[id(entry)] = replace(entry, document=replace(document, revision=revision))
    new = [raised.get(id(entry), entry) for entry in stored.list_file.entries]
    changes = tuple(
        ListChange(raised[id(entry)].document, Change.RAISED_BY_HAND, entry.document.revision)
        for entry in stored.list_file.entries
        if id(entry) in raised
    )
    list_file = replace(stored.list_file, entries=tuple(new) if keep_order else in_order(new))
    return ListPlan(stored, list_file, changes, (), _listed_again(stored, list_file), ())


def _listed_again(stored: StoredList, list_file: ListFile) -> tuple[FileFinding, ...]:
    """A warning for each docid that several entries name: they stay as they are."""
    numbers = Counter(entry.document.docid for entry in list_file.entries)
    file = str(stored.path)
    return tuple(problems.listed_again(file, docid, number) for docid, number in numbers.items() if number > 1)


def named_entries(list_file: ListFile, name: str) -> list[Entry]:
    """The entries for a docid, or for a document id: then all its revisions.

    Raises PublishingError if there is none.
    """
    name = name.strip()
    by_docid = [entry for entry in list_file.entries if entry.document.docid == name]
    found = by_docid or [entry for entry in list_file.entries if entry.document.document_id == name]
    if found:
        return found
    others = [entry.document.docid for entry in list_file.entries]
    revisions = [docid for docid in others if docid.rpartition(".")[0] == name.rpartition(".")[0]]
    near = revisions or difflib.get_close_matches(name[:200], others[:_COMPARED], 3)
    hint = f" It names {', '.join(map(one_line, near[:5]))}." if near else ""
    raise PublishingError(f"The list does not name '{one_line(name, 100)}'.{hint}")


_COMPARED = 10_000
"""The docids among which similar ones are looked for."""
