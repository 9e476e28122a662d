"""Dublin Core in any root element: oai_dc, dcterms, and the profiles that add to them, RIOXX and OpenAIRE.

RIOXX 2 and 3: https://rioxx.net/profiles/; OpenAIRE 4: https://openaire-guidelines-for-literature-repository-managers.
readthedocs.io/en/v4.0.0/.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from lxml import etree

from metaharvest.model.outputs import Access, Agent, FileRole
from metaharvest.pipeline.cleaning import datacite
from metaharvest.pipeline.cleaning.dates import edtf_of
from metaharvest.pipeline.cleaning.draft import (
    MOST,
    XML_LANG,
    Draft,
    Read,
    fill,
    in_language,
    media_type_of,
    one_line,
    people,
    relation,
    value,
)
from metaharvest.pipeline.cleaning.identifiers import addresses_in
from metaharvest.pipeline.cleaning.licences import access_of
from metaharvest.pipeline.cleaning.names import agents
from metaharvest.transform.crosswalks.datacite import KERNEL_4
from metaharvest.transform.crosswalks.rows import plain

_DC, _DCTERMS = "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"
_OPENAIRE = "http://namespace.openaire.eu/schema/oaire/"
_RIOXX = tuple(
    f"http://{host}.rioxx.net/schema/v{version}/rioxxterms/" for host in ("docs", "www") for version in ("2.0", "3.0")
)
_ALI = ("http://www.niso.org/schemas/ali/1.0/", "http://ali.niso.org/2014/ali/1.0")
_RESOURCE = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}resource"
_TYPE_OF_VALUE = "{http://www.w3.org/2001/XMLSchema-instance}type"

_DATES = {
    "available": "Available",
    "created": "Created",
    "dateAccepted": "Accepted",
    "dateCopyrighted": "Copyrighted",
    "dateSubmitted": "Submitted",
    "issued": "Issued",
    "modified": "Updated",
    "valid": "Other",
}

_RELATIONS = {
    "conformsTo": "References",
    "hasFormat": "IsVariantFormOf",
    "hasPart": "HasPart",
    "hasVersion": "HasVersion",
    "isFormatOf": "IsVariantFormOf",
    "isPartOf": "IsPartOf",
    "isReferencedBy": "IsReferencedBy",
    "isReplacedBy": "IsObsoletedBy",
    "isRequiredBy": "IsRequiredBy",
    "isVersionOf": "IsVersionOf",
    "references": "References",
    "replaces": "Obsoletes",
    "requires": "Requires",
}
"""The terms of DCMI, and the relation types of DataCite for them."""

_START_DATE = ("start_date", *(f"{{{each}}}start_date" for each in _ALI))

_END_OF_EMBARGO = re.compile(r"info:eu-repo/date/embargoEnd/(\d{4}(?:-\d\d){0,2})", re.IGNORECASE)
_OTHER_ENTITY = re.compile(r"info:eu-repo/semantics/(altIdentifier|reference|dataset)/(\w{1,20})/(\S{1,1000})", re.I)
_UNDER_EMBARGO = re.compile(r"under-embargo", re.IGNORECASE)
_GRANT = re.compile(r"info:eu-repo/grantAgreement/", re.IGNORECASE)
_TIME_OF_DAY = re.compile(r"T\d\d:\d\d")


def read(root: etree._Element, draft: Draft) -> None:
    """Read the document with this root element: its own Dublin Core, then the DataCite beside it."""
    numbers = Counter[str]()
    elements = list(_elements(root))
    timeless = any(
        element.tag == f"{{{_DC}}}date" and edtf_of(plain(element)) and not _TIME_OF_DAY.search(element.text or "")
        for element in elements
    )
    for element in elements:
        tag = str(element.tag)
        numbers[tag] += 1
        if numbers[tag] > MOST:
            continue
        namespace, _, name = tag[1:].partition("}")
        source = f"{_PREFIXES.get(namespace, element.prefix or '')}:{name}[{numbers[tag]}]"
        if timeless and name == "date" and _TIME_OF_DAY.search(element.text or ""):
            # DSpace gives the times of its own work as dates, too, beside the date of publication.
            draft.date(plain(element), "Available", source)
        else:
            _READ[tag](draft, element, source)
    if next(root.iterchildren(f"{{{KERNEL_4}}}*"), None) is not None:
        fill(draft, datacite.ROWS, root, {"m": KERNEL_4}, "datacite:")
    if any(root.tag == f"{{http://{host}.rioxx.net/schema/v2.0/rioxx/}}rioxx" for host in ("www", "docs")):
        _file_of_rioxx(draft, root)


def _file_of_rioxx(draft: Draft, root: etree._Element) -> None:
    """dc:identifier of RIOXX 2 is the address of the file, dc:format its media type."""
    format = plain(root.find(f"{{{_DC}}}format"))
    for element in islice(root.iterchildren(f"{{{_DC}}}identifier"), 1):
        draft.file(plain(element), "dc:identifier[1]", media_type=format)


def _elements(root: etree._Element) -> Iterator[etree._Element]:
    """The elements that are read: below the root, or one level below that."""
    for child in islice(root.iterchildren("*"), 100 * MOST):
        if child.tag in _READ:
            yield child
        else:
            yield from (each for each in islice(child.iterchildren("*"), 100 * MOST) if each.tag in _READ)


def _address(element: etree._Element) -> str:
    """The address in the attributes of an element; "" without one."""
    return element.get(_RESOURCE) or element.get("uri") or ""


def _subject(draft: Draft, element: etree._Element, source: str) -> None:
    text = plain(element)
    # Many repositories give all keywords in one element.
    parts = text.split(";") if ";" in text and "&" not in text else (text,)
    for part in parts[:MOST]:
        draft.subject(part, source, element.get(XML_LANG))


def _agents(element: etree._Element, source: str) -> Iterator[Agent]:
    """The names in an element. RIOXX 3 has the name below it, RIOXX 2 an identifier as an attribute."""
    named = element.find("{*}name")
    identifiers = [element.get(name, "") for name in ("id", "uri")]
    identifiers += map(plain, element.iterchildren("{*}id"))
    yield from agents(plain(element if named is None else named), source, identifiers=identifiers)


def _date(draft: Draft, element: etree._Element, source: str) -> None:
    text = plain(element)
    if found := _END_OF_EMBARGO.search(text):
        draft.embargo(found[1])
        draft.allow(draft.access or Access.EMBARGOED)
        return
    draft.date(text, _DATES.get(etree.QName(element).localname, "Issued"), source)


def _type(draft: Draft, element: etree._Element, source: str) -> None:
    draft.type(plain(element), source, _address(element))


def _identifier(draft: Draft, element: etree._Element, source: str) -> None:
    text = plain(element) or _address(element)
    draft.identifier(text, source, element.get("identifierType") or element.get(_TYPE_OF_VALUE) or "")
    for each in addresses_in(one_line(text)):
        if media_type_of(each):
            draft.file(each, source)


def _relation(draft: Draft, element: etree._Element, source: str) -> None:
    text = plain(element) or _address(element)
    if element.get("rel") is not None:
        _rioxx_relation(draft, element, source)
    elif found := _OTHER_ENTITY.fullmatch(text):
        _entity(draft, found, source)
    elif not _GRANT.match(text):
        draft.relation(_RELATIONS.get(etree.QName(element).localname, "relation"), text, source)
        # OJS, EPrints and others give the addresses of their files as relations.
        if media_type_of(text) == "application/pdf" or "/article/view/" in text:
            draft.file(text, source)


def _entity(draft: Draft, found: re.Match[str], source: str) -> None:
    """OpenAIRE 3 has other identifiers of the output, references and data sets in relations, with their schemes."""
    kind, scheme, value = found.groups()
    if kind.lower() != "altidentifier":
        draft.relation("References" if kind.lower() == "reference" else "relation", value, source, scheme)
        return
    draft.identifier(value, source, scheme)
    if media_type_of(value):
        draft.file(value, source)


def _rights(draft: Draft, element: etree._Element, source: str) -> None:
    text = plain(element)
    if found := _END_OF_EMBARGO.search(text):
        draft.embargo(found[1])
        return
    url = element.get("rightsURI") or _address(element)
    draft.rights(text, source, url)


def _access(draft: Draft, element: etree._Element, source: str) -> None:
    url = element.get("rightsURI") or _address(element)
    if access := access_of(url) or access_of(plain(element)):
        draft.allow(access)
    else:
        draft.rights(plain(element), source, url)


def _start_date(element: etree._Element) -> str | None:
    return next(filter(None, map(element.get, _START_DATE)), None)


def _free_to_read(draft: Draft, element: etree._Element, source: str) -> None:
    """ali:free_to_read: open, or open from start_date on."""
    if start := _start_date(element):
        draft.date(start, "Available", source)
        draft.embargo(start)
    draft.allow(Access.EMBARGOED if draft.embargo_until else Access.OPEN)


def _licence_reference(draft: Draft, element: etree._Element, source: str) -> None:
    """ali:license_ref: the licence is a URL; without free_to_read, an embargo ends on its first day."""
    draft.rights(plain(element), source)
    if _UNDER_EMBARGO.search(plain(element)):
        draft.embargo(_start_date(element))


def _openaire_file(draft: Draft, element: etree._Element, source: str) -> None:
    """oaire:file: the address of a file, with its media type."""
    role = FileRole.DATA if (element.get("objectType") or "").lower() == "dataset" else FileRole.UNKNOWN
    draft.file(plain(element), source, role, media_type=element.get("mimeType") or "")


def _rioxx_relation(draft: Draft, element: etree._Element, source: str) -> None:
    """dc:relation and rioxxterms:ext_relation of RIOXX 3: `rel` is item for a file, cite-as for an identifier."""
    text, kind = plain(element) or element.get("uri") or "", (element.get("rel") or "").lower()
    is_own = str(element.tag).startswith(f"{{{_DC}}}")
    coar = (element.get("coar_type") or "").rpartition("/")[2]
    if kind == "item" and is_own:
        licence = element.get("license_ref") or ""
        role = FileRole.DATA if coar == "c_ddb1" else FileRole.UNKNOWN
        draft.file(text, source, role, media_type=element.get("type") or "", licence=licence)
        draft.rights(licence, f"{source}/@license_ref")
        if access := access_of(element.get("access_rights") or ""):
            draft.allow(access)
    elif kind == "cite-as" and is_own:
        draft.identifier(text, source)
    else:
        is_text = coar in ("c_6501", "c_2df8fbb1") and kind == "cite-as"
        draft.relation("IsVersionOf" if is_text else "relation", text, source)


_CREATOR, _CONTRIBUTOR = people(Draft.creator, _agents), people(Draft.contributor, _agents)
_SIMPLE: dict[str, Read] = {
    "title": in_language(Draft.title),
    "creator": _CREATOR,
    "subject": _subject,
    "description": in_language(Draft.abstract),
    "publisher": in_language(Draft.publisher),
    "contributor": _CONTRIBUTOR,
    "date": _date,
    "type": _type,
    "identifier": _identifier,
    "source": _relation,
    "language": value(Draft.language),
    "relation": _relation,
    "rights": _rights,
}
_TERMS: dict[str, Read] = {
    "alternative": in_language(Draft.title),
    "abstract": in_language(Draft.abstract),
    **dict.fromkeys(_DATES, _date),
    "bibliographicCitation": _identifier,
    **dict.fromkeys(_RELATIONS, _relation),
    "accessRights": _access,
    "license": _rights,
    "rightsHolder": _rights,
}

_OF_RIOXX: dict[str, Read] = {
    "author": _CREATOR,
    "creator": _CREATOR,
    "contributor": _CONTRIBUTOR,
    "publication_date": _date,
    "type": _type,
    "version_of_record": relation("IsVersionOf", lambda each: plain(each) or each.get("uri") or ""),
    "ext_relation": _rioxx_relation,
}
_OF_ALI: dict[str, Read] = {"license_ref": _licence_reference, "free_to_read": _free_to_read}
_OF_OPENAIRE: dict[str, Read] = {"resourceType": _type, "licenseCondition": _rights, "file": _openaire_file}

_READ = {
    f"{{{namespace}}}{name}": read
    for namespaces, table in (
        ((_DC, _DCTERMS), _SIMPLE),
        ((_DCTERMS,), _TERMS),
        (_RIOXX, _OF_RIOXX),
        (_ALI, _OF_ALI),
        ((_OPENAIRE,), _OF_OPENAIRE),
    )
    for namespace in namespaces
    for name, read in table.items()
}
"""How each element is read, by its tag."""

_PREFIXES = {
    _DC: "dc",
    _DCTERMS: "dcterms",
    _OPENAIRE: "oaire",
    **dict.fromkeys(_RIOXX, "rioxxterms"),
    **dict.fromkeys(_ALI, "ali"),
}
