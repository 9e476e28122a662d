"""Reads full text in XML: JATS and its forerunner NLM, and TEI. It runs in the reader process, without the network.

JATS: https://jats.nlm.nih.gov/archiving/tag-library/1.3/; TEI as GROBID writes it: https://grobid.readthedocs.io/
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from metaharvest.pipeline.letters import word_set

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_ROOTS = word_set("article book book-part book-part-wrapper TEI teiCorpus pmc-articleset")
_BLOCKS = word_set(
    "p title article-title head td th list-item item caption abstract label sec div body front back article-meta text "
    "fig table-wrap row tr ack"
)
_SKIPPED = word_set(
    "ref-list listBibl tex-math object-id journal-meta permissions fileDesc encodingDesc pub-date history article-id "
    "contrib-group aff author-notes custom-meta-group related-article"
)
_MOST_REFERENCES = 5_000


def root_of(content: bytes) -> etree._Element | None:
    """The root element; None if this is not well-formed. Entities are not resolved, and no DTD is loaded."""
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=True)
    try:
        return etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError):
        return None


def read(content: bytes) -> dict[str, Any]:
    """The text, the language and the marked references of a full text, or `error`."""
    root = root_of(content)
    if root is None:
        return {"error": "damaged", "message": "it is not well-formed XML"}
    if _name(root) not in _ROOTS:
        return {"error": "unknown-xml", "message": f"<{_name(root)}>"}
    text = "\n\n".join(_paragraphs(root))
    if not text:
        return {"error": "no-text"}
    return {"text": text, "language": _language(root), "references": references(root)}


def references(root: etree._Element) -> list[dict[str, Any]]:
    """The references that are marked as such: <ref> of JATS, <biblStruct> of TEI."""
    found = []
    for element in root.iter("{*}ref", "{*}biblStruct"):
        if _name(element) == "ref" and _name(element.getparent()) != "ref-list":
            continue
        if _name(element) == "biblStruct" and _name(element.getparent()) == "sourceDesc":
            continue
        reference = _of_jats(element) if _name(element) == "ref" else _of_tei(element)
        if reference["raw"]:
            found.append(reference)
        if len(found) == _MOST_REFERENCES:
            break
    return found


def _name(element: etree._Element | None) -> str:
    if element is None or not isinstance(element.tag, str):
        return ""
    return element.tag.rpartition("}")[2]


def _language(root: etree._Element) -> str | None:
    element = root
    if _name(root) in ("TEI", "teiCorpus"):
        element = next(iter(root.iter("{*}text")), root)
    declared = element.get(_LANGUAGE) or root.get(_LANGUAGE) or ""
    return declared[:3].partition("-")[0].lower() or None


def _paragraphs(root: etree._Element) -> Iterator[str]:
    """The text of each block that has no block in it, in the order of the document."""
    words: list[str] = []
    # Elements and texts that are still to be read, the next one at the end. None is the boundary of a block.
    pending: list[Any] = [None, root]
    while pending:
        part = pending.pop()
        if part is None:
            if paragraph := " ".join("".join(words).split()):
                yield paragraph
            words.clear()
        elif isinstance(part, str):
            words.append(part)
        elif isinstance(part.tag, str) and (name := _name(part)) not in _SKIPPED:
            boundary = [None] if name in _BLOCKS else []
            children = (each for child in reversed(part) for each in (child.tail, child) if each is not None)
            pending += [*boundary, *children, part.text or "", *boundary]


def _text(element: etree._Element | None) -> str:
    return "" if element is None else " ".join("".join(map(str, element.itertext(with_tail=False))).split())


def _spaced(element: etree._Element) -> str:
    """The text of a citation; parts that only markup keeps apart get a space between them."""
    parts: list[str] = []
    for each in element.iter():
        if isinstance(each.tag, str):
            parts.append((" " if _name(each) in _FIELDS else "") + (each.text or ""))
        if each is not element and each.tail:
            parts.append(each.tail)
    return _BEFORE_MARK.sub(r"\1", " ".join("".join(parts).split()))


_FIELDS = frozenset(
    ("name", "string-name", "surname", "given-names", "year", "article-title", "source", "pub-id", "fpage")
)
_BEFORE_MARK = re.compile(r"\s([.,;:)])")


def _first(element: etree._Element, *names: str) -> str:
    """The text of the first descendant of one of these names; the first name comes first."""
    return next((text for name in names for each in element.iter("{*}" + name) if (text := _text(each))), "")


def _of_jats(element: etree._Element) -> dict[str, Any]:
    citation = next(
        iter(element.iter("{*}mixed-citation", "{*}element-citation", "{*}citation", "{*}nlm-citation")), element
    )
    doi = next((_text(each) for each in citation.iter("{*}pub-id") if each.get("pub-id-type") == "doi"), "")
    surnames = [_text(each) for each in citation.iter("{*}surname", "{*}collab")]
    title = _first(citation, "article-title", "chapter-title", "data-title", "source")
    year = _first(citation, "year")
    raw = _spaced(citation)
    if _name(citation) in ("element-citation", "nlm-citation"):
        parts = (", ".join(surnames), year, title, _first(citation, "source"), _first(citation, "volume"), doi)
        raw = ". ".join(dict.fromkeys(part for part in parts if part))
    return _reference(raw, doi, title, year, surnames)


def _of_tei(element: etree._Element) -> dict[str, Any]:
    doi = next((_text(each) for each in element.iter("{*}idno") if (each.get("type") or "").lower() == "doi"), "")
    surnames = [_text(each) for each in element.iter("{*}surname")]
    titles = [each for each in element.iter("{*}title") if _text(each)]
    levels = {each.get("level"): _text(each) for each in reversed(titles)}
    title = levels.get("a") or levels.get("m") or next(iter(levels.values()), "")
    when = next((each.get("when") or _text(each) for each in element.iter("{*}date")), "")
    raw = next((_text(each) for each in element.iter("{*}note") if each.get("type") == "raw_reference"), "")
    if not raw:
        raw = ". ".join(part for part in (", ".join(surnames), when[:4], *dict.fromkeys(levels.values()), doi) if part)
    return _reference(raw, doi, title, when, surnames)


def _reference(raw: str, doi: str, title: str, year: str, surnames: list[str]) -> dict[str, Any]:
    digits = year.strip()[:4]
    is_year = len(digits) == 4 and digits.isascii() and digits.isdigit()
    return {
        "raw": raw,
        "doi": doi or None,
        "title": title or None,
        "year": int(digits) if is_year else None,
        "surnames": [name for name in surnames if name],
    }
