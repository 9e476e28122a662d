"""MARCXML: a bibliographic record of MARC 21, or the first one of a collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from lxml import etree

from metaharvest.transform.crosswalks.rows import MOST, Row, Values, pairs_found, plain, resolvable

NAMESPACE = "http://www.loc.gov/MARC21/slim"

_TYPES = {
    **dict.fromkeys("acdt", "Text"),
    **dict.fromkeys("efk", "Image"),
    "g": "MovingImage",
    **dict.fromkeys("ij", "Sound"),
    "m": "Software",
    "r": "PhysicalObject",
    **dict.fromkeys("op", "Collection"),
}
"""The type of a record, at position 6 of its leader, by the vocabulary of DCMI."""

_AUTHORS = {"aut", "cre", "author", "creator"}
_PUNCTUATION = " /:;,="
"""The punctuation of library catalogues between the parts of a field."""


def _subfields(codes: str, between: str = " ") -> Values:
    """The subfields with these codes of a field, in their order, as one text."""
    return lambda field: (between.join(_texts(field, codes)).strip(_PUNCTUATION),)


def _identifiers(field: etree._Element) -> Iterator[str]:
    return (resolvable(each) for each in _texts(field, "au"))


def _texts(field: etree._Element, codes: str) -> list[str]:
    children, wanted = islice(field.iterchildren("{*}subfield"), MOST), set(codes)
    return [plain(each) for each in children if each.get("code") in wanted]


def _added_name(wanted: str) -> Values:
    """The name of an added entry, if its role is one of this element of Dublin Core."""

    def name(field: etree._Element) -> Iterator[str]:
        roles = {role.lower().strip(" .,") for role in _texts(field, "e4j")}
        if (wanted == "creator") == (not roles.isdisjoint(_AUTHORS)):
            yield " ".join(_texts(field, "abcdq")).strip(_PUNCTUATION)

    return name


def _type(leader: etree._Element) -> Iterator[str]:
    yield _TYPES.get((leader.text or "")[6:7], "")


def _coded_year(field: etree._Element) -> Iterator[str]:
    year = (field.text or "")[7:11]
    yield year if year.isdigit() else ""


def _coded_language(field: etree._Element) -> Iterator[str]:
    language = (field.text or "")[35:38]
    yield language if language.isalpha() else ""


def _field(tag: str) -> str:
    return f"datafield {tag}"


def _fields(element: str, tags: str, values: Values) -> Iterator[Row]:
    return (Row(element, _field(tag), values) for tag in tags.split())


_ROWS = (
    Row("title", _field("245"), _subfields("abfgknp")),
    *_fields("creator", "100 110 111", _subfields("abcdq")),
    *_fields("creator", "700 710 711 720", _added_name("creator")),
    *_fields("subject", "600 610 611 630 650 653", _subfields("abcdqtvxyz", " -- ")),
    *_fields("description", "520 500 505", _subfields("ab")),
    *_fields("publisher", "260 264", _subfields("b")),
    *_fields("contributor", "700 710 711 720", _added_name("contributor")),
    *_fields("date", "260 264", _subfields("c")),
    Row("date", "controlfield 008", _coded_year, fallback=True),
    Row("type", "leader", _type),
    Row("type", _field("655"), _subfields("a")),
    Row("format", _field("856"), _subfields("q")),
    Row("format", _field("300"), _subfields("abc")),
    *_fields("identifier", "024 856 020 022", _identifiers),
    Row("source", _field("786"), _subfields("ot")),
    Row("language", _field("041"), lambda field: _texts(field, "a")),
    Row("language", "controlfield 008", _coded_language, fallback=True),
    *_fields("relation", "530 773 776 780 785 787", _subfields("tao")),
    *_fields("coverage", "651 752", _subfields("abcdxyz", " -- ")),
    Row("coverage", _field("255"), _subfields("c")),
    *_fields("rights", "540 506", lambda field: [*_texts(field, "u"), " ".join(_texts(field, "a"))]),
)


def pairs(root: etree._Element) -> Iterator[tuple[str, str]]:
    """The values of the document with this root element."""
    fields = _read_fields(next(root.iterchildren("{*}record"), root))
    return pairs_found(_ROWS, lambda path: fields.get(path, ()))


def _read_fields(record: etree._Element) -> Mapping[str, Sequence[etree._Element]]:
    """The fields of a record that the rows read, by their paths there.

    One pass: a search for each row took five seconds of a record with 100,000 fields.
    """
    fields: dict[str, list[etree._Element]] = {row.path: [] for row in _ROWS}
    for name in ("leader", "controlfield", "datafield"):
        for each in record.iterchildren(f"{{{etree.QName(record).namespace or ''}}}{name}"):
            found = fields.get(name if name == "leader" else f"{name} {each.get('tag', '')}")
            if found is not None and len(found) < MOST:
                found.append(each)
    return fields
