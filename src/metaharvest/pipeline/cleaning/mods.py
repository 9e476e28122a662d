"""MODS 3, also in a METS document with the addresses of its files: https://www.loc.gov/standards/mods/, .../mets/."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lxml import etree

from metaharvest.model.outputs import Agent, AgentKind
from metaharvest.pipeline.cleaning import dublin_core
from metaharvest.pipeline.cleaning.draft import MOST, XML_LANG, Draft, Row, fill, one_line, value
from metaharvest.pipeline.cleaning.names import Parts, agent
from metaharvest.transform.crosswalks.mods import NAMESPACE
from metaharvest.transform.crosswalks.rows import namespace_of, plain

__all__ = ["METS", "NAMESPACE", "read", "read_mets"]

METS = "http://www.loc.gov/METS/"
_HREF = "{http://www.w3.org/1999/xlink}href"
_CREATORS = frozenset(("aut", "author", "cre", "creator", "dissertant", "dis", "cmp", "art", "pht", "verfasser"))
_KINDS = {
    "personal": AgentKind.PERSON,
    "corporate": AgentKind.ORGANISATION,
    "conference": AgentKind.ORGANISATION,
    "family": AgentKind.UNKNOWN,
}
_DATES = {"Issued": "dateIssued", "Created": "dateCreated", "Copyrighted": "copyrightDate", "Other": "dateOther"}
_RELATIONS = {
    "host": "IsPartOf",
    "series": "IsPartOf",
    "constituent": "HasPart",
    "preceding": "Continues",
    "succeeding": "IsContinuedBy",
    "original": "IsVariantFormOf",
    "otherVersion": "IsVersionOf",
    "otherFormat": "IsVariantFormOf",
    "isReferencedBy": "IsReferencedBy",
    "references": "References",
    "reviewOf": "Reviews",
}
"""The types of related items, and the relation types of DataCite."""

_USED = frozenset(("", "content", "original", "download", "master", "default", "archive", "fulltext", "pdf"))
"""The uses of file groups that have the output itself; others have images of pages, licences and the like."""


def _main_title(draft: Draft, element: etree._Element, source: str) -> None:
    """The main title has no type."""
    if not element.get("type"):
        _title(draft, element, source)


def _other_title(draft: Draft, element: etree._Element, source: str) -> None:
    """An abbreviated, translated, alternative or uniform title: it may precede the main title."""
    if element.get("type"):
        _title(draft, element, source)


def _title(draft: Draft, element: etree._Element, source: str) -> None:
    main = " ".join(filter(None, (plain(element.find(f"{{*}}{part}")) for part in ("nonSort", "title"))))
    # 245 of MARC ends its parts with the punctuation of catalogues.
    titles = (main.rstrip(" :/"), plain(element.find("{*}subTitle")).rstrip(" /"))
    language = element.get(XML_LANG) or element.get("lang")
    draft.title(": ".join(filter(None, titles)), source, language)


def _agents(element: etree._Element, source: str, role: str | None) -> Iterator[Agent]:
    parts: dict[str, list[str]] = {}
    for part in islice(element.iterchildren("{*}namePart"), MOST):
        parts.setdefault(part.get("type", ""), []).append(plain(part))
    family, given, whole = (" ".join(filter(None, parts.get(kind, ()))) for kind in ("family", "given", ""))
    shown = whole or ", ".join(filter(None, (family, given))) or plain(element.find("{*}displayForm"))
    identifiers = [plain(each) for each in islice(element.iterchildren("{*}nameIdentifier"), MOST)]
    identifiers += [element.get(_HREF, ""), element.get("valueURI", "")]
    kind = _KINDS.get(element.get("type", ""), AgentKind.UNKNOWN)
    yield from agent(shown, source, said=Parts(kind, family, given), identifiers=identifiers, role=role)


def _name(draft: Draft, element: etree._Element, source: str) -> None:
    roles = [plain(role) for role in islice(element.iterfind("{*}role/{*}roleTerm"), MOST)]
    is_creator = not roles or not _CREATORS.isdisjoint(each.lower() for each in roles)
    if is_creator:
        draft.creator(_agents(element, source, None))
    else:
        draft.contributor(_agents(element, source, roles[0]))


def _abstract(draft: Draft, element: etree._Element, source: str) -> None:
    draft.abstract(plain(element), source, element.get(XML_LANG) or element.get("lang"))


def _subject(draft: Draft, element: etree._Element, source: str) -> None:
    draft.subject(plain(element), source, element.get(XML_LANG) or element.getparent().get("lang"))  # type: ignore[union-attr]


def _date_of(kind: str) -> Row:
    def read(draft: Draft, element: etree._Element, source: str) -> None:
        if element.get("point") == "end":
            return
        end = next((each for each in element.itersiblings(element.tag) if each.get("point") == "end"), None)
        if element.get("point") == "start" and end is not None:
            draft.date(f"{plain(element)}/{plain(end)}", kind, source)
        else:
            draft.date(plain(element), kind, source)

    return Row(f"m:originInfo/m:{_DATES[kind]}", read)


def _identifier(draft: Draft, element: etree._Element, source: str) -> None:
    if element.get("invalid") != "yes":
        draft.identifier(plain(element), source, element.get("type") or "")


def _location(draft: Draft, element: etree._Element, source: str) -> None:
    """The address of the output, of a page about it, or of a file."""
    if element.get("access") == "raw object":
        draft.file(plain(element), source)
    elif element.get("access") != "preview":
        draft.identifier(plain(element), source)


def _related(draft: Draft, element: etree._Element, source: str) -> None:
    kind = _RELATIONS.get(element.get("type", ""), "relation")
    identifiers = list(islice(element.iterchildren("{*}identifier"), MOST))
    for each in identifiers:
        draft.relation(kind, plain(each), source, each.get("type") or "")
    if href := element.get(_HREF):
        draft.relation(kind, href, source)
    elif not identifiers:
        draft.relation(kind, plain(element.find("{*}titleInfo/{*}title")), source)


def _rights(draft: Draft, element: etree._Element, source: str) -> None:
    draft.rights(plain(element), source, element.get(_HREF, ""))


_TYPE = value(Draft.type, lambda each: plain(each) or each.get("valueURI") or "")
_ROWS = (
    Row("m:titleInfo", _main_title),
    Row("m:titleInfo", _other_title),
    Row("m:name", _name),
    Row("m:originInfo/m:publisher", value(Draft.publisher, lambda each: plain(each).rstrip(" ,:;"))),
    Row("m:abstract", _abstract),
    Row("m:subject/m:topic", _subject),
    Row("m:genre", _TYPE),
    Row("m:typeOfResource", _TYPE),
    *map(_date_of, _DATES),
    Row("m:language/m:languageTerm", value(Draft.language)),
    Row("m:identifier", _identifier),
    Row("m:location/m:url", _location),
    Row("m:relatedItem", _related),
    Row("m:accessCondition", _rights),
)


def read(root: etree._Element, draft: Draft) -> None:
    """Read a record, or the first one of a collection."""
    record = next(root.iterchildren("{*}mods"), root)
    fill(draft, _ROWS, record, namespace_of(record), "mods/")


def read_mets(root: etree._Element, draft: Draft) -> None:
    """Read the first description of a METS document, MODS or Dublin Core, and the addresses of its files."""
    for data in islice(root.iterfind("{*}dmdSec/{*}mdWrap/{*}xmlData"), MOST):
        record = next(data.iter(f"{{{NAMESPACE}}}mods"), None)
        if record is not None:
            read(record, draft)
        else:
            dublin_core.read(next(data.iterchildren("*"), data), draft)
        if draft.titles:
            break
    _read_files(root, draft)


def _read_files(root: etree._Element, draft: Draft) -> None:
    number = 0
    for file in islice(root.iterfind("{*}fileSec//{*}file"), MOST):
        group = file.getparent()
        use = (file.get("USE") or ("" if group is None else group.get("USE")) or "").lower()
        for place in file.iterchildren("{*}FLocat"):
            number += 1
            if use in _USED:
                url, media_type = one_line(place.get(_HREF, "")), file.get("MIMETYPE") or ""
                draft.file(url, f"fileSec/fileGrp/file/FLocat[{number}]", media_type=media_type)
