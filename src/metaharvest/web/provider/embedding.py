"""A stored document as part of an answer, without a change of its meaning; and its Dublin Core. Pure.

Exclusive canonical XML of the embedded element equals that of the stored one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from threading import local
from xml.sax.saxutils import escape

from lxml import etree

from metaharvest.text import only_xml
from metaharvest.transform.crosswalks import dublin_core
from metaharvest.web.provider.formats import DUBLIN_CORE, OAI_DC

DC = "http://purl.org/dc/elements/1.1/"
_NAME = re.compile(rb"<[^\s/>]+")
_MOST_BYTES = 10_000_000
_MOST_TAGS = 500_000
"""The size of a document that is read for its Dublin Core and its page: 500,000 tags take some 100 MB of memory."""


class _Parsers(local):
    """The parser of each thread: one takes as long to make as a short document to read."""

    def __init__(self) -> None:
        self.own = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=True,
            strip_cdata=False,
            remove_comments=False,
        )


_parsers = _Parsers()


class NotEmbeddable(Exception):
    """A document that cannot stand inside of another one; the text is the reason."""


def root_of(content: bytes) -> etree._Element:
    """The root element of a stored document. Raises NotEmbeddable if it has a DTD, or is not well-formed."""
    try:
        root = etree.fromstring(content, _parsers.own)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise NotEmbeddable(f"it is not well-formed: {error}") from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise NotEmbeddable("it has a DTD")
    return root


def described_root(content: bytes) -> etree._Element | None:
    """The root element of a document that is described; None if it is very large, has a DTD, or is not well-formed."""
    if len(content) > _MOST_BYTES or content.count(b"<") > _MOST_TAGS:
        return None
    try:
        return root_of(content)
    except NotEmbeddable:
        return None


def embedded(root: etree._Element) -> bytes:
    """The element as bytes of an answer in UTF-8, for a place where another default namespace is declared."""
    content = etree.tostring(root, encoding="UTF-8", xml_declaration=False, with_tail=False)
    if None in root.nsmap:
        return content
    # The default namespace of the answer ends here.
    name = _NAME.match(content)
    assert name is not None
    return content[: name.end()] + b' xmlns=""' + content[name.end() :]


def dublin_core_of(
    root: etree._Element | None, document_type: str, title: str, identifier: str, page_url: str
) -> bytes:
    """The Dublin Core of a document: by a crosswalk, or else its title and its identifier.

    If no identifier in it is a URL, that of its landing page is added.
    """
    pairs = list(() if root is None else dublin_core(root, document_type) or ())
    if not pairs:
        pairs = [*([("title", title)] if title else []), ("identifier", identifier)]
    if not any(name == "identifier" and text.startswith(("http://", "https://")) for name, text in pairs):
        pairs.append(("identifier", page_url))
    return _written(pairs)


def _written(pairs: Sequence[tuple[str, str]]) -> bytes:
    elements = "".join(f"<dc:{name}>{escape(only_xml(text))}</dc:{name}>" for name, text in pairs)
    return (
        f'<oai_dc:dc xmlns:oai_dc="{OAI_DC}" xmlns:dc="{DC}" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{OAI_DC} {DUBLIN_CORE.schema}">{elements}</oai_dc:dc>'
    ).encode()
