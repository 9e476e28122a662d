"""The title of a document: its first element named title, as in EML, Dublin Core, DataCite, MODS and ISO."""

from __future__ import annotations

from collections.abc import Callable

from lxml import etree

from metaharvest.text import one_line, without_marks

LONGEST = 300
"""Characters of a title that are kept."""

_ISO_ROOTS = ("}MD_Metadata", "}MI_Metadata")
_RESOURCE = "{http://www.isotc211.org/2005/gmd}identificationInfo"

_FIRST_TEXT: Callable[[etree._Element], list[str]] = etree.XPath("(.//text()[normalize-space()])[1]")  # type: ignore[assignment]

_MOST_READ = 10_000
"""Characters of an element that are read for a title."""


def title_of(root: etree._Element) -> str:
    """The title on one line, at most LONGEST characters; empty if the document has none.

    A title may have translations as children (EML), or its text in a child (ISO); the first text counts.
    """
    first = root[0] if len(root) else None  # mostly it is the title, and to search takes three times as long
    tag = None if first is None else first.tag
    is_title = isinstance(tag, str) and tag.endswith("}title")
    element = first if is_title else next(_resource(root).iter("{*}title"), None)
    if element is None:
        return ""
    if not len(element):
        return _line((element.text or "")[:_MOST_READ])
    texts = _FIRST_TEXT(element)
    return _line(str(texts[0])[:_MOST_READ]) if texts else ""


def _line(text: str) -> str:
    return one_line(without_marks(text).strip(), LONGEST)


def _resource(root: etree._Element) -> etree._Element:
    """The element that describes the resource: in ISO 19139, titles of reference systems and others come before it."""
    if isinstance(root.tag, str) and root.tag.endswith(_ISO_ROOTS):
        found = root.find(_RESOURCE)
        return root if found is None else found
    return root
