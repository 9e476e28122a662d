"""The title of a document: its first element named title, as in EML, Dublin Core, DataCite, MODS and ISO."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lxml import etree

from metaharvest.text import one_line
from metaharvest.validation import parse_lock

LONGEST = 300
"""Characters of a title that are kept."""

_FIRST_TEXT: Callable[[etree._Element], list[str]] = etree.XPath("(.//text()[normalize-space()])[1]")  # type: ignore[assignment]

_FIRST = 8_000
"""Bytes of a record that are parsed for its title, in the event loop: even the worst cost only milliseconds."""

_MOST_READ = 10_000
"""Characters of which a title is made: most of a longer text is never shown."""


def title_of(root: etree._Element) -> str:
    """The title on one line, at most LONGEST characters; empty if the document has none.

    A title may have translations as children (EML), or its text in a child (ISO): then the first text counts.
    """
    element = next(root.iter("{*}title"), None)
    if element is None:
        return ""
    texts = _FIRST_TEXT(element)
    return one_line(str(texts[0])[:_MOST_READ], LONGEST) if texts else ""


def title_in(content: bytes) -> str:
    """The title of a record that nothing else parses; empty if it is not within the first _FIRST bytes."""
    parser = etree.XMLPullParser(("end",), tag="{*}title", resolve_entities=False, no_network=True, load_dtd=False)
    try:
        with parse_lock.parsing():
            parser.feed(content[:_FIRST])
            events: Iterator[tuple[str, etree._Element]] = parser.read_events()  # type: ignore[assignment]
            return next((title_of(element) for _, element in events), "")
    except etree.XMLSyntaxError:
        return ""
