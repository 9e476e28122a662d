"""Changes single entries of a harvest list: adds a document, removes one, raises a revision."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from metaharvest.errors import PublishingError
from metaharvest.publishing import problems
from metaharvest.publishing.entries import ListChange, NewEntries
from metaharvest.publishing.folder import FileFinding
from metaharvest.publishing.list_file import Entry, ListFile, in_order
from metaharvest.publishing.list_store import StoredList
from metaharvest.publishing.plan import ListPlan
from metaharvest.publishing.revisions import Change
from metaharvest.publishing.site_document import SiteDocument
from metaharvest.sources.harvest_list.values import MAX_LONG
from metaharvest.text import one_line


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
        _require_higher(document.docid, document.revision, revision)
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


def _require_higher(docid: str, listed: int, revision: int) -> None:
    if revision <= listed:
        raise PublishingError(f"{docid} has the revision {listed} already; a revision is only ever raised.")
    if revision > MAX_LONG:
        raise PublishingError(f"{docid} cannot be raised: {MAX_LONG} is the largest revision there is.")
