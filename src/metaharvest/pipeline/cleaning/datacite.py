"""DataCite 3 and 4, also in the envelope of DataCite's OAI-PMH: https://datacite-metadata-schema.readthedocs.io/."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lxml import etree

from metaharvest.model.outputs import Agent, AgentKind
from metaharvest.pipeline.cleaning.draft import MOST, XML_LANG, Draft, Row, date, fill, in_language, people, value
from metaharvest.pipeline.cleaning.names import Parts, agent
from metaharvest.transform.crosswalks.datacite import NAMESPACES, resource_of
from metaharvest.transform.crosswalks.rows import namespace_of, plain

__all__ = ["NAMESPACES", "ROWS", "read"]

_KINDS = {"personal": AgentKind.PERSON, "organizational": AgentKind.ORGANISATION}

_DATES = frozenset(["Accepted", "Available", "Collected", "Copyrighted", "Created", "Issued", "Submitted", "Updated"])


def _main_title(draft: Draft, element: etree._Element, source: str) -> None:
    """The main title has no type."""
    if not element.get("titleType"):
        draft.title(plain(element), source, element.get(XML_LANG))


def _other_title(draft: Draft, element: etree._Element, source: str) -> None:
    """A subtitle, a translation or another title of the output: it may precede the main title."""
    if element.get("titleType"):
        draft.title(plain(element), source, element.get(XML_LANG))


def _agents(element: etree._Element, source: str) -> Iterator[Agent]:
    named = next((each for each in element.iterchildren("{*}creatorName", "{*}contributorName")), None)
    kind = _KINDS.get("" if named is None else named.get("nameType", "").lower(), AgentKind.UNKNOWN)
    yield from agent(
        plain(named),
        source,
        said=Parts(kind, plain(element.find("{*}familyName")), plain(element.find("{*}givenName"))),
        identifiers=[plain(each) for each in islice(element.iterchildren("{*}nameIdentifier"), MOST)],
        role=(element.get("contributorType") or None) if element.tag.endswith("}contributor") else None,
    )


def _abstract(draft: Draft, element: etree._Element, source: str) -> None:
    if element.get("descriptionType", "") in ("Abstract", ""):
        draft.abstract(plain(element), source, element.get(XML_LANG))


def _other_description(draft: Draft, element: etree._Element, source: str) -> None:
    """A description that follows the abstract, whatever the order of the document is."""
    if element.get("descriptionType") in ("Other", "Methods"):
        draft.abstract(plain(element), source, element.get(XML_LANG))


def _date(draft: Draft, element: etree._Element, source: str) -> None:
    kind = element.get("dateType", "").capitalize()
    draft.date(plain(element), kind if kind in _DATES else "Other", source)


def _type(draft: Draft, element: etree._Element, source: str) -> None:
    draft.type(plain(element), source)
    draft.type(element.get("resourceTypeGeneral") or "", f"{source}/@resourceTypeGeneral")


def _identifier(draft: Draft, element: etree._Element, source: str) -> None:
    scheme = element.get("identifierType") or element.get("alternateIdentifierType") or ""
    draft.identifier(plain(element), source, scheme)


def _relation(draft: Draft, element: etree._Element, source: str) -> None:
    kind = element.get("relationType") or "relation"
    draft.relation(kind, plain(element), source, element.get("relatedIdentifierType") or "")


def _rights(draft: Draft, element: etree._Element, source: str) -> None:
    draft.rights(plain(element), source, element.get("rightsURI") or element.get("rightsIdentifier") or "")


ROWS = (
    Row("m:titles/m:title", _main_title),
    Row("m:titles/m:title", _other_title),
    Row("m:creators/m:creator", people(Draft.creator, _agents)),
    Row("m:contributors/m:contributor", people(Draft.contributor, _agents)),
    Row("m:publisher", in_language(Draft.publisher)),
    Row("m:subjects/m:subject", in_language(Draft.subject)),
    Row("m:descriptions/m:description", _abstract),
    Row("m:descriptions/m:description", _other_description),
    Row("m:publicationYear", date("Issued")),
    Row("m:dates/m:date", _date),
    Row("m:date", _date),
    Row("m:resourceType", _type),
    Row("m:language", value(Draft.language)),
    Row("m:identifier", _identifier),
    Row("m:alternateIdentifiers/m:alternateIdentifier", _identifier),
    Row("m:relatedIdentifiers/m:relatedIdentifier", _relation),
    Row("m:rightsList/m:rights", _rights),
    Row("m:rights", _rights),
)
"""The rows of DataCite; OpenAIRE has the same elements in another root."""


def read(root: etree._Element, draft: Draft) -> None:
    """Read the document with this root element; the envelope may have addresses of files."""
    resource = resource_of(root)
    fill(draft, ROWS, resource, namespace_of(resource))
    for number, element in enumerate(islice(root.iter("{*}contentUrl"), MOST), 1):
        draft.file(plain(element), f"contentUrl[{number}]")
