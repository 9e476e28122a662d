"""The plan of a new list before anything is written, and its execution."""

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


@dataclass(frozen=True, slots=True)
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
    """The entries; if a document could not be written, its entry keeps the memory of the present file."""
    documents = {rewrite.docid: rewrite.document for rewrite in not_written}
    for entry in entries:
        document = documents.get(entry.document.docid)
        memory = memory_of(entry.document, document.sha256, document.package_id) if document else entry.memory
        yield replace(entry, memory=memory)
