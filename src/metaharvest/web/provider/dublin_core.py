"""The Dublin Core of a document, made by a crosswalk. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from lxml import etree

from metaharvest.model.namespaces import OAI_DC, XSI
from metaharvest.text import only_xml
from metaharvest.transform.crosswalks import dublin_core
from metaharvest.transform.embedding import NotEmbeddable, root_of
from metaharvest.web.provider.formats import DUBLIN_CORE

DC = "http://purl.org/dc/elements/1.1/"
_MOST_BYTES = 10_000_000
_MOST_TAGS = 500_000
"""The size of a document that is read for its Dublin Core and its page: 500,000 tags take some 100 MB of memory."""


def described_root(content: bytes) -> etree._Element | None:
    """The root element of a document that is described; None if it is very large, or cannot be embedded."""
    if len(content) > _MOST_BYTES or content.count(b"<") > _MOST_TAGS:
        return None
    try:
        return root_of(content)
    except NotEmbeddable:
        return None


def dublin_core_of(
    root: etree._Element | None, document_type: str, title: str, identifier: str, page_url: str
) -> bytes:
    """The Dublin Core of a document: by a crosswalk, or else its title and its identifier.

    If no identifier in it is a URL, the URL of its landing page is added.
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
        f'xmlns:xsi="{XSI}" xsi:schemaLocation="{OAI_DC} {DUBLIN_CORE.schema}">{elements}</oai_dc:dc>'
    ).encode()
