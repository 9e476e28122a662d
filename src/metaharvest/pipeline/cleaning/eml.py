"""EML 2.0.0 to 2.2.0: data sets, literature, software, protocols. Elements below the root are in no namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from lxml import etree

from metaharvest.model.outputs import Agent, AgentKind, FileRole
from metaharvest.pipeline.cleaning.draft import MOST, XML_LANG, Draft, Row, date, fill, in_language, relation, value
from metaharvest.pipeline.cleaning.identifiers import find_dois
from metaharvest.pipeline.cleaning.names import Parts, agent
from metaharvest.transform.crosswalks.eml import NAMESPACES
from metaharvest.transform.crosswalks.rows import plain

__all__ = ["NAMESPACES", "read"]

_TYPES = {
    "article": "journal article",
    "book": "book",
    "editedBook": "book",
    "chapter": "book part",
    "thesis": "thesis",
    "conferenceProceedings": "conference paper",
    "manuscript": "preprint",
    "report": "report",
    "map": "map",
    "presentation": "conference presentation",
    "audioVisual": "moving image",
    "personalCommunication": "other",
    "generic": "text",
}
"""The element of a citation that names its type, and the label of COAR for it."""


def _parties(resource: etree._Element, role: str) -> Iterator[tuple[etree._Element, str]]:
    for number, party in enumerate(islice(resource.iterchildren(role), MOST), 1):
        yield party, f"{resource.tag}/{role}[{number}]"


def _agents(party: etree._Element, place: str, role: str | None) -> Iterator[Agent]:
    """The persons of a party; its organisation if there are none, its position if there is neither."""
    identifiers = [plain(each) for each in islice(party.iterchildren("userId"), MOST)]
    persons = list(islice(party.iterchildren("individualName"), MOST))
    for person in persons:
        given = " ".join(plain(each) for each in islice(person.iterchildren("givenName"), MOST))
        family = plain(person.find("surName"))
        name = ", ".join(filter(None, (family, given)))
        own = identifiers if len(persons) == 1 else ()
        said = Parts(AgentKind.PERSON, family, given)
        yield from agent(name, place, said=said, identifiers=own, role=role)
    if not persons:
        organisation = plain(party.find("organizationName"))
        name = organisation or plain(party.find("positionName"))
        kind = AgentKind.ORGANISATION if organisation else AgentKind.UNKNOWN
        yield from agent(name, place, said=Parts(kind), identifiers=identifiers, role=role)


def _named(resource: etree._Element) -> Mapping[str, etree._Element]:
    """The elements that parties refer to, by their ids; read in one pass, and only if there are references."""
    wanted = {
        plain(each)
        for role in ("creator", "associatedParty", "publisher", "contact", "metadataProvider")
        for each in islice(resource.iterfind(f"{role}/references"), MOST)
    }
    if not wanted:
        return {}
    known = resource.getroottree().iter("*")
    return {each.get("id", ""): each for each in known if each.get("id") in wanted}


def _read_parties(draft: Draft, resource: etree._Element) -> None:
    named = _named(resource)

    def party_of(element: etree._Element) -> etree._Element:
        return named.get(plain(element.find("references")), element) if named else element

    for element, place in _parties(resource, "creator"):
        draft.creator(_agents(party_of(element), place, None))
    for element, place in _parties(resource, "associatedParty"):
        role = plain(element.find("role")) or plain(party_of(element).find("role")) or None
        draft.contributor(_agents(party_of(element), place, role))
    for element, place in _parties(resource, "publisher"):
        for publisher in _agents(party_of(element), place, None):
            draft.publisher(publisher.name, place)


def _title(draft: Draft, element: etree._Element, source: str) -> None:
    """A title with its translations, which are its children."""
    children = list(islice(element.iterchildren("value"), MOST))
    own = (element.text or "") + "".join(child.tail or "" for child in children) if children else plain(element)
    draft.title(own, source, element.get(XML_LANG))
    for number, child in enumerate(children, 1):
        draft.title(plain(child), f"{source}/value[{number}]", child.get(XML_LANG))


def _collected(draft: Draft, element: etree._Element, source: str) -> None:
    begin, end = (plain(element.find(f"{each}/calendarDate")) for each in ("beginDate", "endDate"))
    if begin and end:
        draft.date(f"{begin}/{end}", "Collected", source)


def _identifier(draft: Draft, element: etree._Element, source: str) -> None:
    draft.identifier(plain(element), source, element.get("system") or "")


def _cited(draft: Draft, element: etree._Element, source: str) -> None:
    for doi in islice(find_dois(plain(element)), MOST):
        draft.relation("References", doi, source)


def _licence(draft: Draft, element: etree._Element, source: str) -> None:
    name, url = plain(element.find("licenseName")), plain(element.find("url"))
    draft.rights(name, source, url or plain(element.find("identifier")))


def _page(draft: Draft, element: etree._Element, source: str) -> None:
    """The address of the data set as a whole."""
    if element.get("function") == "download":
        draft.file(plain(element), source, FileRole.DATA)
    else:
        draft.page(plain(element), source)


def _data(draft: Draft, element: etree._Element, source: str) -> None:
    if element.get("function") != "information":
        draft.file(plain(element), source, FileRole.DATA)


_ROWS = (
    Row("title", _title),
    Row("abstract", in_language(Draft.abstract)),
    Row("keywordSet/keyword", in_language(Draft.subject)),
    Row("pubDate", date("Issued")),
    Row("coverage/temporalCoverage/rangeOfDates", _collected),
    Row(
        "coverage/temporalCoverage/singleDateTime",
        date("Collected", lambda each: plain(each.find("calendarDate"))),
    ),
    Row("language", value(Draft.language)),
    Row("alternateIdentifier", _identifier),
    Row("referencePublication/DOI", relation("IsDescribedBy")),
    Row("usageCitation/DOI", relation("IsCitedBy")),
    Row("literatureCited", _cited),
    Row("licensed", _licence),
    Row("intellectualRights", value(Draft.rights)),
    Row("distribution/online/url", _page),
    Row("*/physical/distribution/online/url", _data),
)


def read(root: etree._Element, draft: Draft) -> None:
    """Read the document with this root element."""
    resource = next(root.iterchildren("dataset", "citation", "software", "protocol"), None)
    if resource is None:
        return
    fill(draft, _ROWS, resource, {}, f"{resource.tag}/")
    if not draft.titles:
        draft.title(plain(resource.find("shortName")), f"{resource.tag}/shortName[1]")
    _read_parties(draft, resource)
    if resource.tag == "citation":
        kind = next((each for each in resource.iterchildren(*_TYPES)), None)
        draft.type("text" if kind is None else _TYPES[str(kind.tag)], "citation")
    else:
        draft.type(str(resource.tag), str(resource.tag))
    draft.identifier(root.get("packageId") or "", "@packageId")
