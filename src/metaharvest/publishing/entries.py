"""Makes the entries of a new list from the entries of the last one and the documents that were found.

A docid never changes its content: each change of a document raises its revision. A revision that a person has raised in
the packageId, in the file name or in the list stays; otherwise a change of content raises it by one.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from metaharvest.model import ListedDocument
from metaharvest.model.values import frozen
from metaharvest.publishing import problems
from metaharvest.publishing.documents import (
    EmlDocument,
    NotReplaceable,
    SiteDocument,
    is_docid_of,
    is_other_docid,
    read_again,
)
from metaharvest.publishing.folder import FileFinding
from metaharvest.publishing.list_file import Entry, ListFile, Memory, in_order, memory_of
from metaharvest.sources.harvest_list.values import MAX_LONG


class Content(StrEnum):
    """A document's content, compared with the listed content."""

    SAME = "same"
    CHANGED = "changed"
    UNKNOWN = "unknown"
    """The list does not remember it: a person, or another program, has written the entry."""


class Change(StrEnum):
    """The change of an entry of the list."""

    ADDED = "added"
    RAISED = "raised"
    """Its content has changed: it has the next revision."""
    RAISED_BY_HAND = "raised-by-hand"
    """A person has raised its revision, in the packageId or in the name of the file."""
    MOVED = "moved"
    """Its URL or its type has changed; its revision is the same."""
    UNCHANGED = "unchanged"
    HELD = "held"
    """Its file cannot be listed in its present state: the entry stays as it was."""
    ELSEWHERE = "elsewhere"
    """It is not in this folder: the entry stays as it was."""
    REMOVED = "removed"
    DUPLICATE = "duplicate"
    """A second entry of a docid: only one entry stays."""


def revision_of_new(own: int | None, known: int | None, content: Content) -> int:
    """The revision of a document that the list does not have.

    `own` is the revision in its packageId, or file name, if there is one. `known` is the highest one that the list ever
    had of it, if any; `content` is compared with that.
    """
    if known is None:
        return 1 if own is None else own
    return max(own or 0, known if content is Content.SAME else known + 1)


def revision_of_listed(
    own: int | None, known: int, content: Content, listed: int, remembered: int
) -> tuple[int, Change]:
    """The revision of a document with the listed revision `listed`; `remembered` is the revision of its known content.

    They differ if a person has raised the revision in the list. `own` and `known` are as in `revision_of_new`.
    """
    if own is not None and own > listed:
        # A formerly listed revision may have had other content.
        return (own if own > known else known + 1), Change.RAISED_BY_HAND
    if content is Content.CHANGED and remembered >= listed:
        return max(known, listed) + 1, Change.RAISED
    return listed, Change.UNCHANGED


@frozen
class ListChange:
    """The change of one entry; `was` is its former revision, `file` the path of its file below the folder.

    `document` is the new entry, or the removed one. `writes`: the docid goes into the packageId.
    """

    document: ListedDocument
    change: Change
    was: int | None = None
    file: str = ""
    writes: bool = False


@frozen
class Rewrite:
    """A docid to write into the packageId of a document, in the file at `path`."""

    document: SiteDocument
    path: Path
    docid: str


class NewEntries:
    """The entries of the new list, and the change of each.

    `writes`: adapt packageIds to the list. `from_names`: the docids come from the names of files.
    """

    def __init__(self, last: ListFile, *, writes: bool, from_names: bool = False) -> None:
        self.changes: list[ListChange] = []
        self.findings: list[FileFinding] = []
        self.rewrites: list[Rewrite] = []
        self._last = last
        self._writes = writes
        self._from_names = from_names
        self._by_id: defaultdict[str, list[int]] = defaultdict(list)
        for number, entry in enumerate(last.entries):
            self._by_id[entry.document.document_id].append(number)
        self._new: dict[int, Entry] = {}
        self._added: list[Entry] = []
        self._docids: set[str] = set()

    def is_listed(self, document: SiteDocument) -> bool:
        """True if the last list names this document in this file."""
        return self._at_its_url(document) is not None

    def known_revision(self, document_id: str) -> int | None:
        """The highest revision that the list ever had of this document; None if it had none."""
        former = self._last.former.get(document_id)
        memories = [entry.memory for entry in self._entries_of(document_id)] + [former]
        listed = [entry.document.revision for entry in self._entries_of(document_id)]
        return max([*listed, *(memory.revision for memory in memories if memory)], default=None)

    def add_older(self, document: SiteDocument) -> None:
        """List an older revision, beside the newest one; it stays the same."""
        listed = _listed(document, document.revision or 0)
        same_id = self._by_id.get(document.document_id, ())
        number = next((each for each in same_id if self._entry(each).document.revision == listed.revision), None)
        memory = self._entry(number).memory if number is not None else None
        change = Change.ADDED
        if number is not None:
            change = _unchanged_or_moved(self._entry(number).document, listed)
        if _content(document, memory, listed.revision) is Content.CHANGED:
            self.findings.append(problems.changed_older(document))
        else:
            memory = memory_of(listed, document.sha256, document.package_id)
        self._put(number, listed, memory, change, document)

    def add_newest(self, document: SiteDocument) -> None:
        """List the newest revision of a document, or the only one; a change of its content raises it."""
        number = self._at_its_url(document)
        if number is None:
            free = [each for each in self._by_id[document.document_id] if each not in self._new]
            number = max(free, key=lambda each: self._entry(each).document.revision, default=None)
        known = self.known_revision(document.document_id)
        if number is None or known is None:
            content = _content(document, self._last.former.get(document.document_id), known)
            revision, change = revision_of_new(document.revision, known, content), Change.ADDED
        else:
            before, memory = self._entry(number).document, self._entry(number).memory
            content = _content(document, memory, before.revision)
            remembered = memory.revision if memory else before.revision
            revision, change = revision_of_listed(document.revision, known, content, before.revision, remembered)
            if change is Change.UNCHANGED:
                change = _unchanged_or_moved(before, _listed(document, revision))
        if revision > MAX_LONG:
            self.findings.append(problems.cannot_be_raised(document))
            if number is not None:
                self._put(number, self._entry(number).document, self._entry(number).memory, Change.HELD)
            return
        listed = _listed(document, revision)
        self._put(number, listed, self._in_line(document, listed), change, document)

    def _in_line(self, document: SiteDocument, listed: ListedDocument) -> Memory:
        """The new memory of a document; its packageId is adapted to the list, or a difference is reported."""
        memory = memory_of(listed, document.sha256, document.package_id)
        if document.package_id == listed.docid:
            return memory
        if not is_docid_of(document.package_id, document.document_id):
            if is_other_docid(document.package_id, document.document_id):
                self.findings.append(problems.of_another(document, listed.docid, from_names=self._from_names))
            return memory
        if self._writes and document.path is not None:
            try:
                content = read_again(document).with_package_id(listed.docid)
            except NotReplaceable as error:
                self.findings.append(problems.not_written(document, listed.docid, str(error)))
            else:
                self.rewrites.append(Rewrite(document, document.path, listed.docid))
                return memory_of(listed, hashlib.sha256(content).hexdigest(), listed.docid)
        self.findings.append(problems.behind(document, listed.docid))
        return memory

    def settle_others(self, is_held: Callable[[Entry], bool], is_elsewhere: Callable[[Entry], bool]) -> None:
        """Decide about the entries of the last list without a document; only one entry of each docid stays."""
        for number, entry in enumerate(self._last.entries):
            if number in self._new:
                continue
            held, elsewhere = is_held(entry), is_elsewhere(entry)
            if entry.document.docid in self._docids:
                self.changes.append(ListChange(entry.document, Change.DUPLICATE, entry.document.revision))
            elif held or elsewhere:
                change = Change.HELD if held else Change.ELSEWHERE
                self._put(number, entry.document, entry.memory, change)
            else:
                self.changes.append(ListChange(entry.document, Change.REMOVED, entry.document.revision))

    def keep_others(self, stays: Callable[[Entry], bool]) -> None:
        """Keep the entries without a document that `stays` accepts, even if several name the same docid."""
        for number, entry in enumerate(self._last.entries):
            if number not in self._new and stays(entry):
                self._new[number] = entry

    def list_file(self, *, keep_order: bool) -> ListFile:
        """The new list: sorted, or the former entries in their order, and the new ones at the end."""
        kept: list[Entry] = []
        orphans: tuple[str, ...] = ()
        for number, entry in enumerate(self._last.entries):
            new = self._new.get(number)
            if new is None:
                # A comment above an entry may be about all the following entries.
                orphans += entry.above
            else:
                kept.append(replace(new, above=orphans + new.above))
                orphans = ()
        added = in_order(self._added)
        entries = (*kept, *added) if keep_order else in_order([*kept, *added])
        return replace(self._last, entries=entries, former=self._former(), ending=orphans + self._last.ending)

    def _former(self) -> dict[str, Memory]:
        """The memories of documents that are no longer listed, or only with a lower revision."""
        highest: dict[str, int] = {}
        for entry in (*self._new.values(), *self._added):
            document = entry.document
            highest[document.document_id] = max(document.revision, highest.get(document.document_id, 0))
        gone = [last_memory(entry) for number, entry in enumerate(self._last.entries) if number not in self._new]
        former: dict[str, Memory] = {}
        for memory in sorted([*self._last.former.values(), *gone], key=lambda memory: memory.revision):
            if memory.revision > highest.get(memory.document_id, -1):
                former[memory.document_id] = memory
        return former

    def _put(
        self,
        number: int | None,
        listed: ListedDocument,
        memory: Memory | None,
        change: Change,
        document: SiteDocument | None = None,
    ) -> None:
        writes = bool(self.rewrites) and self.rewrites[-1].document is document
        was = self._entry(number).document.revision if number is not None else None
        self.changes.append(ListChange(listed, change, was, document.file if document else "", writes))
        self._docids.add(listed.docid)
        if number is None:
            self._added.append(Entry(listed, memory))
        else:
            self._new[number] = replace(self._entry(number), document=listed, memory=memory)

    def _entry(self, number: int) -> Entry:
        return self._last.entries[number]

    def _entries_of(self, document_id: str) -> list[Entry]:
        return [self._entry(number) for number in self._by_id.get(document_id, ())]

    def _at_its_url(self, document: SiteDocument) -> int | None:
        """The highest revision of the document's entries at the URL of its file."""
        there = [
            number
            for number in self._by_id.get(document.document_id, ())
            if number not in self._new and self._entry(number).document.url == document.url
        ]
        return max(there, key=lambda number: self._entry(number).document.revision, default=None)


def _content(document: SiteDocument, memory: Memory | None, listed: int | None) -> Content:
    """The state of a document's content, compared with the list's memory; its listed revision is `listed`.

    A packageId that was adapted to the list is no change: the list has it already.
    """
    if memory is None or not memory.sha256:
        return Content.UNKNOWN
    is_adapted = memory.package_id and document.package_id == f"{document.document_id}.{listed}"
    is_same = document.sha256 == memory.sha256 or (is_adapted and was_listed(read_again(document), memory))
    return Content.SAME if is_same else Content.CHANGED


def was_listed(document: EmlDocument, memory: Memory) -> bool:
    """True if the document has the listed content; a packageId that was adapted to the list does not count."""
    if document.sha256 == memory.sha256:
        return True
    if not memory.package_id:
        return False
    try:
        before = document.with_package_id(memory.package_id)
    except NotReplaceable:
        return False
    return hashlib.sha256(before).hexdigest() == memory.sha256


def last_memory(entry: Entry) -> Memory:
    """The memory of a removed entry."""
    document, memory = entry.document, entry.memory
    is_current = memory is not None and memory.revision >= document.revision
    return memory if memory and is_current else Memory(document.document_id, document.revision)


def _listed(document: SiteDocument, revision: int) -> ListedDocument:
    return ListedDocument(document.document_id, revision, document.document_type, document.url)


def _unchanged_or_moved(before: ListedDocument, now: ListedDocument) -> Change:
    is_same = (before.url, before.document_type) == (now.url, now.document_type)
    return Change.UNCHANGED if is_same else Change.MOVED
