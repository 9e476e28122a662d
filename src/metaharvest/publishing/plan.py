"""What a new list comes to, before anything is written; and the writing of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from metaharvest.publishing import problems
from metaharvest.publishing.entries import ListChange, Rewrite
from metaharvest.publishing.folder import FileFinding
from metaharvest.publishing.list_file import Entry, ListFile, memory_of, written
from metaharvest.publishing.list_store import StoredList, require_untouched, store
from metaharvest.publishing.saving import replace_file
from metaharvest.publishing.site_document import read_again


@dataclass(frozen=True, slots=True)
class ListPlan:
    """What a new list comes to. `findings` are about files; `passed_over` are files that are no documents."""

    stored: StoredList
    list_file: ListFile
    changes: tuple[ListChange, ...]
    rewrites: tuple[Rewrite, ...]
    findings: tuple[FileFinding, ...]
    passed_over: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing could be listed: then nothing is written, as a list names one document at least."""
        return not self.list_file.entries

    @property
    def changes_list(self) -> bool:
        """Whether the list would have other bytes than it has."""
        return bool(self.changes) and written(self.list_file) != self.stored.content


@dataclass(frozen=True, slots=True)
class Built:
    """What was written: the list or not, and how many packageIds; `findings` are about those that could not be."""

    list_written: bool
    documents_written: int
    findings: tuple[FileFinding, ...]


def carry_out(plan: ListPlan) -> Built:
    """Write what has changed, the documents first: if that is cut short, the next build comes to the same list.

    Raises PublishingError.
    """
    if plan.is_empty or not plan.changes:
        return Built(False, 0, ())
    require_untouched(plan.stored)
    not_written: list[Rewrite] = []
    findings: list[FileFinding] = []
    for rewrite in plan.rewrites:
        content = read_again(rewrite.document).with_package_id(rewrite.docid)
        try:
            replace_file(rewrite.path, content)
        except OSError as error:
            not_written.append(rewrite)
            findings.append(problems.not_written(rewrite.document, rewrite.docid, error.strerror or str(error)))
    list_file = replace(plan.list_file, entries=tuple(_as_they_are(plan.list_file.entries, not_written)))
    return Built(store(plan.stored, list_file), len(plan.rewrites) - len(not_written), tuple(findings))


def _as_they_are(entries: tuple[Entry, ...], not_written: list[Rewrite]) -> Iterator[Entry]:
    """The entries, those of documents that could not be written with what these are still."""
    documents = {rewrite.docid: rewrite.document for rewrite in not_written}
    for entry in entries:
        document = documents.get(entry.document.docid)
        memory = memory_of(entry.document, document.sha256, document.package_id) if document else entry.memory
        yield replace(entry, memory=memory)
