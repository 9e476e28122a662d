"""Lists of base URLs: one per line, or XML with elements or attributes named baseURL, as registries have them."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from lxml import etree

from metaharvest.errors import CannotBeChecked
from metaharvest.fetch.url import BadUrl, parse_url
from metaharvest.sources.oai_pmh.responses import local_name, own_text


def base_urls_in(content: bytes) -> list[str]:
    """The base URLs in the text or XML `content`, in its order. Comments (#) in a text are skipped.

    Raises CannotBeChecked, with a sentence, for XML that is not well-formed.
    """
    is_utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if is_utf_16 else "utf-8-sig", "replace").lstrip()
    if not text.startswith("<"):
        return list(_in_text(text))
    return list(_in_xml(content if is_utf_16 else content.removeprefix(codecs.BOM_UTF8).lstrip()))


def _in_text(text: str) -> Iterator[str]:
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words:
            yield words[0]


def _in_xml(content: bytes) -> Iterator[str]:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise CannotBeChecked(f"The list of repositories is no well-formed XML: {error.msg}.") from None
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        if local_name(element).lower() == "baseurl" and (text := own_text(element)):
            yield text
        for name, value in element.attrib.items():
            if str(name).lower() == "baseurl":
                yield str(value).strip()


def is_url(text: str) -> bool:
    """True if this may be a base URL, and is text."""
    if "\ufffd" in text:
        return False
    try:
        parse_url(text)
    except BadUrl:
        return False
    return True
