"""MARCXML: a bibliographic record of MARC 21, or the first one of a collection: https://www.loc.gov/marc/bibliographic/."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from lxml import etree

from metaharvest.model.outputs import Agent, AgentKind
from metaharvest.pipeline.cleaning.draft import MOST, Draft, Read, people, value
from metaharvest.pipeline.cleaning.names import Parts, agent
from metaharvest.transform.crosswalks.marcxml import NAMESPACE
from metaharvest.transform.crosswalks.rows import plain

__all__ = ["NAMESPACE", "read"]

_PUNCTUATION = " /:;,="
"""The punctuation of library catalogues between the parts of a field."""

_LEADERS = {
    "am": "book",
    "aa": "book part",
    "ab": "journal article",
    "as": "journal",
    "ai": "website",
    "tm": "manuscript",
    "c": "musical notation",
    "e": "map",
    "f": "map",
    "g": "moving image",
    "i": "sound",
    "j": "musical composition",
    "k": "still image",
    "m": "software",
    "a": "text",
    "t": "manuscript",
}
"""Positions 6 and 7, or 6 alone, of the leader, and the label of COAR for them."""

_AUTHORS = frozenset(("aut", "cre", "author", "creator", "dis", "verfasser", "auteur", "autor"))
_NO_FILE = ("cover", "inhaltsverzeichnis", "table of contents", "inhaltstext", "publisher description", "rezension")


def read(root: etree._Element, draft: Draft) -> None:
    """Read the record with this root element."""
    fields = _read_fields(next(root.iterchildren("{*}record"), root))
    for tag, read_field in _TABLE:
        for number, field in enumerate(fields.get(tag, ()), 1):
            read_field(draft, field, f"{tag}[{number}]")
    _read_codes(draft, fields)


def _read_fields(record: etree._Element) -> Mapping[str, Sequence[etree._Element]]:
    """The fields of a record that the table reads, by tag, in one pass; the leader has the tag `leader`."""
    fields: dict[str, list[etree._Element]] = {tag: [] for tag in (*dict(_TABLE), "leader", "008")}
    namespace = etree.QName(record).namespace or ""
    for each in record.iterchildren(*(f"{{{namespace}}}{name}" for name in ("leader", "controlfield", "datafield"))):
        found = fields.get(each.get("tag", "leader"))
        if found is not None and len(found) < MOST:
            found.append(each)
    return fields


def _read_codes(draft: Draft, fields: Mapping[str, Sequence[etree._Element]]) -> None:
    """The coded values of the leader and of field 008, after the values that are written out."""
    leader = next((each.text or "" for each in fields["leader"]), "")
    if kind := _LEADERS.get(leader[6:8]) or _LEADERS.get(leader[6:7]):
        draft.type(kind, "leader")
    codes = next((each.text or "" for each in fields["008"]), "")
    if not draft.dates:
        draft.date(codes[7:11], "Issued", "008")
    if not draft.languages:
        draft.language(codes[35:38], "008")


def _texts(field: etree._Element, codes: str) -> list[str]:
    children = islice(field.iterchildren("{*}subfield"), MOST)
    return [plain(each) for each in children if each.get("code", " ") in codes]


def _joined(field: etree._Element, codes: str, between: str = " ") -> str:
    return between.join(filter(None, _texts(field, codes))).strip(_PUNCTUATION)


def _title(draft: Draft, field: etree._Element, source: str) -> None:
    main, rest = _joined(field, "afgknp"), _joined(field, "b")
    draft.title(": ".join(filter(None, (main, rest))), source)


def _agents(field: etree._Element, source: str, role: str | None = None) -> Iterator[Agent]:
    """The name of an entry: X00 are persons (indicator 1: family name first), X10 organisations, X11 meetings."""
    tag = field.get("tag", "")
    kind = AgentKind.PERSON if tag.endswith("00") else AgentKind.ORGANISATION
    if tag == "720":
        kind = AgentKind.PERSON if field.get("ind1") == "1" else AgentKind.UNKNOWN
    name = _joined(field, "ab")
    if name.endswith(".") and len(name.split()[-1]) > 4:
        name = name[:-1]
    yield from agent(name, source, said=Parts(kind), identifiers=_texts(field, "01u"), role=role)


def _added_entry(draft: Draft, field: etree._Element, source: str) -> None:
    roles = [role.strip(" .,") for role in _texts(field, "e4j")]
    if _AUTHORS.isdisjoint(role.lower().rpartition("/")[2] for role in roles):
        draft.contributor(_agents(field, source, roles[0] if roles else None))
    else:
        draft.creator(_agents(field, source))


def _published(draft: Draft, field: etree._Element, source: str) -> None:
    for name in _texts(field, "b"):
        draft.publisher(name.strip(_PUNCTUATION), source)
    kind = "Copyrighted" if field.get("ind2") == "4" else "Issued"
    for date in _texts(field, "c"):
        draft.date(date, kind, source)


def _thesis(draft: Draft, field: etree._Element, source: str) -> None:
    note = _joined(field, "abcd").lower()
    doctor, master, bachelor = (
        any(each in note for each in words)
        for words in (("doct", "ph.d", "phd", "diss", "tese"), ("master", "m.a", "m.sc", "diplom"), ("bachelor", "b.a"))
    )
    degree = "doctoral " if doctor else "master " if master else "bachelor " if bachelor else ""
    draft.type(f"{degree}thesis", source)


def _language(draft: Draft, field: etree._Element, source: str) -> None:
    for language in _texts(field, "a"):
        # Older records have several codes in one subfield.
        codes = [language[at : at + 3] for at in range(0, len(language), 3)] if len(language) % 3 == 0 else [language]
        for code in codes[:MOST]:
            draft.language(code, source)


def _identifier(draft: Draft, field: etree._Element, source: str) -> None:
    scheme = {"020": "ISBN", "022": "ISSN"}.get(field.get("tag", ""), "")
    for number in _texts(field, "a"):
        draft.identifier(number, source, scheme or next(iter(_texts(field, "2")), ""))


def _location(draft: Draft, field: etree._Element, source: str) -> None:
    """The address of the output (second indicator 0), of a version of it (1), or of something related (2)."""
    note = " ".join(_texts(field, "3yz")).lower()
    for url in _texts(field, "u"):
        if field.get("ind2") == "2" or any(each in note for each in _NO_FILE):
            draft.relation("relation", url, source)
            continue
        draft.identifier(url, source)
        if field.get("ind2") in ("0", "1") or _texts(field, "q"):
            draft.file(url, source, media_type=next(iter(_texts(field, "q")), ""))


def _related(kind: str) -> Read:
    def read_related(draft: Draft, field: etree._Element, source: str) -> None:
        numbers = [*((each, "ISSN") for each in _texts(field, "x")), *((each, "ISBN") for each in _texts(field, "z"))]
        numbers += [(each, "") for each in _texts(field, "o")]
        for number, scheme in numbers or [(_joined(field, "t"), "")]:
            draft.relation(kind, number, source, scheme)

    return read_related


def _rights(draft: Draft, field: etree._Element, source: str) -> None:
    text = " ".join(_texts(field, "af"))
    for url in _texts(field, "u") or [""]:
        draft.rights(text, source, url)


_TABLE: tuple[tuple[str, Read], ...] = (
    ("245", _title),
    ("246", _title),
    *((tag, people(Draft.creator, _agents)) for tag in ("100", "110", "111")),
    *((tag, _added_entry) for tag in ("700", "710", "711", "720")),
    ("520", value(Draft.abstract, lambda field: _joined(field, "ab"))),
    *(
        (tag, value(Draft.subject, lambda field: _joined(field, "abcdqtvxyz", " -- ")))
        for tag in ("600", "610", "611", "630", "650", "651", "653")
    ),
    *((tag, _published) for tag in ("260", "264")),
    ("502", _thesis),
    ("655", value(Draft.type, lambda field: _joined(field, "a").rstrip("."))),
    ("041", _language),
    *((tag, _identifier) for tag in ("024", "020", "022")),
    ("856", _location),
    ("773", _related("IsPartOf")),
    ("776", _related("IsVariantFormOf")),
    ("780", _related("Continues")),
    ("785", _related("IsContinuedBy")),
    ("787", _related("relation")),
    *((tag, _rights) for tag in ("540", "506")),
)
