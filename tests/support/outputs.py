"""Outputs, their documents and their entries in the index, made for tests."""

from __future__ import annotations

from collections.abc import Sequence

from metaharvest.model.outputs import Agent, AgentKind, Identifier, Licence, Output, ResourceType, Text
from metaharvest.pipeline.search.contract import Entry
from metaharvest.pipeline.search.entries import FullText, entry_of
from metaharvest.pipeline.search.index_places import IndexFolder
from metaharvest.pipeline.stage import Document
from support.harvester import Harvester


def output(
    title: str,
    *,
    creators: Sequence[str] = (),
    abstract: str = "",
    subjects: Sequence[str] = (),
    year: int | None = 2020,
    kind: str = "journal article",
    language: str = "en",
    licence: str = "CC-BY-4.0",
    doi: str = "",
) -> Output:
    """An output; creators are `Family, Given`, or organisations."""
    return Output(
        format="urn:test",
        titles=(Text(title, "title"),),
        creators=tuple(_agent(each) for each in creators),
        abstracts=(Text(abstract, "abstract"),) if abstract else (),
        subjects=tuple(Text(each, "subject") for each in subjects),
        types=(ResourceType(kind, "type", label=kind),) if kind else (),
        year=year,
        language=language or None,
        identifiers=(Identifier("doi", doi, "identifier"),) if doi else (),
        licences=(Licence(licence, "rights", spdx=licence),) if licence else (),
    )


def _agent(name: str) -> Agent:
    family, comma, given = name.partition(", ")
    if not comma:
        return Agent(name, "creator", AgentKind.ORGANISATION)
    return Agent(name, "creator", AgentKind.PERSON, family, given)


def document(number: int, *, site: str = "alder", site_id: int = 1, change: int = 0) -> Document:
    """A document of the catalogue, `doc.NUMBER`."""
    return Document(
        number=number,
        document_id=f"doc.{number}",
        item_identifier=f"doc.{number}",
        origin=None,
        document_type="urn:test",
        revision=1,
        revision_id=number,
        change_seq=change or number,
        site_id=site_id,
        site=site,
        is_gone=False,
    )


def entry(number: int, of: Output, *, text: str = "", site: str = "alder", site_id: int = 1, work: int = 0) -> Entry:
    """The entry of an output; its work is its own, if none is named."""
    full_text = FullText(f"{number:064x}", text) if text else None
    return entry_of(document(number, site=site, site_id=site_id), of, work or number, full_text)


def write_index(harvester: Harvester, *entries: Entry) -> None:
    """Make an index with these entries, in the place of the one before."""
    place = IndexFolder(harvester.folder / "pipeline" / "index")
    with place.begin() as writer:
        writer.put(entries)
        writer.commit()
    place.swap()
