"""Crosswalks: the simple Dublin Core (oai_dc) of a document, from its tree.

| format | recognised by the namespace of its root element |
|---|---|
| EML 2.0.0 to 2.2.0 | `eml://ecoinformatics.org/eml-2.1.1` and its like, `https://eml.ecoinformatics.org/eml-2.2.0` |
| DataCite 3 and 4 | `http://datacite.org/schema/kernel-3`, `kernel-4`; in the envelope of DataCite's OAI-PMH as well |
| ISO 19139 | `http://www.isotc211.org/2005/gmd`, `gmi` |
| MODS 3 | `http://www.loc.gov/mods/v3` |
| MARCXML | `http://www.loc.gov/MARC21/slim` |
| oai_dc | `http://www.openarchives.org/OAI/2.0/oai_dc/` |
| qualified Dublin Core, RIOXX, OpenAIRE | any other root with Dublin Core one or two levels below it |

Each format has a module with a table: which paths give which element of Dublin Core, and how. Pure functions. Values
are on one line, and only have characters that XML has. A value is cut after 10,000 characters; an element has at most
200 values and 20,000 characters. The time is linear in the size of the document, and nothing is recursive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from lxml import etree

from metaharvest.model.namespaces import OAI_DC
from metaharvest.text import only_xml
from metaharvest.transform.crosswalks import datacite, eml, iso19139, marcxml, mods, qualified_dc
from metaharvest.transform.crosswalks.rows import ELEMENTS, LONGEST, MOST

_MOST_CHARACTERS = 20_000
"""Characters of all values of one element together."""

_ROOM = 8 * LONGEST
"""Characters of a text that are read for one value: white space is folded."""

_CROSSWALKS: dict[str, Callable[[etree._Element], Iterator[tuple[str, str]]]] = {
    **dict.fromkeys(eml.NAMESPACES, eml.pairs),
    **dict.fromkeys(datacite.NAMESPACES, datacite.pairs),
    **dict.fromkeys(iso19139.NAMESPACES, iso19139.pairs),
    mods.NAMESPACE: mods.pairs,
    marcxml.NAMESPACE: marcxml.pairs,
    OAI_DC: qualified_dc.pairs,
}


def dublin_core(root: etree._Element, document_type: str) -> Sequence[tuple[str, str]] | None:
    """The elements of simple Dublin Core with their texts, in the order of ELEMENTS.

    The namespace of the root element decides the format; if it is unknown or missing, `document_type` does.
    None: there is no crosswalk for the format. Dublin Core gives its own values.
    """
    namespace = etree.QName(root).namespace or ""
    crosswalk = _CROSSWALKS.get(namespace) or _CROSSWALKS.get(document_type)
    if crosswalk is None:
        return _bounded(qualified_dc.pairs(root)) or None
    return _bounded(crosswalk(root))


def _bounded(pairs: Iterable[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The pairs in the order of ELEMENTS, each once, within the bounds."""
    kept: dict[tuple[str, str], None] = {}
    values, characters = Counter[str](), Counter[str]()
    for element, raw in pairs:
        if values[element] == MOST or characters[element] >= _MOST_CHARACTERS:
            continue
        text = _cleaned(raw)
        if text and (element, text) not in kept and characters[element] + len(text) <= _MOST_CHARACTERS:
            kept[element, text] = None
            values[element] += 1
            characters[element] += len(text)
    return sorted(kept, key=lambda pair: ELEMENTS.index(pair[0]))


def _cleaned(text: str) -> str:
    """The text on one line, without characters that XML does not have; a longer one ends with an ellipsis."""
    folded = " ".join(only_xml(text[:_ROOM], "").split())
    return folded if len(folded) <= LONGEST else folded[: LONGEST - 1] + "…"
