"""Warns of a document that changed after it was listed, without a new revision: harvesters miss the change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from metaharvest.model import FetchedDocument, Finding, Level
from metaharvest.model.actions import Remedy, Todo, todo
from metaharvest.publishing.documents import HarvestListInstead, NotListable, docid_in, read_document
from metaharvest.publishing.entries import was_listed
from metaharvest.publishing.list_file import Memory
from metaharvest.rehearsal.input.arguments import GivenList, GivenUrl
from metaharvest.rehearsal.input.listed_files import base_of_list
from metaharvest.sources.harvest_list.source import read_list

_USUAL_NAME = "harvest-list.xml"


@dataclass(frozen=True, slots=True)
class ListMemory:
    """The memory of a list about its documents, by docid, and the action that raises revisions of changed ones."""

    documents: dict[str, Memory]
    build: Todo

    def findings(self, fetched: FetchedDocument) -> tuple[Finding, ...]:
        """A warning if the document is not the one that was listed under its docid."""
        document = fetched.document
        memory = self.documents.get(document.docid)
        if memory is None or memory.sha256 == fetched.sha256:
            return ()
        if _is_accounted_for(fetched, memory):
            return ()
        message = (
            f"{document.docid} was changed since it was listed, and its revision was not raised: a repository that has "
            "it does not fetch it again."
        )
        remedy = Remedy("Raise its revision, in the list and in the packageId: {} does both.", self.build)
        return (Finding("list.changed-content", message, remedy, Level.WARNING, line=document.line),)


def _is_accounted_for(fetched: FetchedDocument, memory: Memory) -> bool:
    """True if nothing changed, or if the packageId has a higher revision: another finding reports the latter."""
    try:
        eml = read_document(fetched.content)
        if was_listed(eml, memory):
            return True
        document_id, revision = docid_in(eml)
    except (NotListable, HarvestListInstead):
        return False
    return document_id == memory.document_id and revision > memory.revision


def build_of(given: GivenList | GivenUrl) -> Todo:
    """The action that builds this list again and writes raised revisions into the packageIds."""
    if isinstance(given, GivenUrl):
        front, _, name = given.url.rpartition("/")
        return _build(None, f"{front}/", "" if name == _USUAL_NAME else f"FOLDER/{name}")
    file = given.file
    if given.folder and given.base_url:
        inside = Path(given.folder, _USUAL_NAME).absolute() == file.path
        return _build(given.folder, given.base_url, "" if inside else file.shown)
    try:
        with file.path.open("rb") as opened:
            base = base_of_list(file.path, read_list(opened, files_allowed=True, base=file.base))
    except Exception:  # noqa: BLE001 - the list was read before; without it, the action has no values
        base = None
    folder = str(Path(file.shown).parent) if base else None
    return _build(folder, base.text if base else None, "" if base and file.path.name == _USUAL_NAME else file.shown)


def _build(folder: str | None, base: str | None, output: str) -> Todo:
    if output:
        return todo("lists.build_file", folder=folder, url=base, list=output)
    return todo("lists.build", folder=folder, url=base)
