"""A stored document as a part of another XML document, without a change of its meaning; and its DOCTYPE. Pure.

The embedded and the stored element have the same exclusive canonical XML. Declarations of a DOCTYPE can change the
content of a document: libxml2 expands entities in attribute values, whatever its options.
"""

from __future__ import annotations

import re
from functools import lru_cache
from threading import local

from lxml import etree

_DOCTYPE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|<\?.*?\?>|<!--.*?-->|(?!))*+(<!DOCTYPE)", re.DOTALL)
_EXTERNAL_ONLY = re.compile(
    rb"<!DOCTYPE\s+[^\s\[>\"']+(?:\s+(?:SYSTEM|PUBLIC\s+(?:\"[^\"]*\"|'[^']*'))\s+(?:\"[^\"]*\"|'[^']*'))?\s*>"
)
_PLAIN = re.compile(
    rb"""(?:<\?xml version=["']1\.0["'](?: encoding=["'](?:UTF|utf)-8["'])?\?>\s*+)?"""
    rb"""(?P<start><[A-Za-z_][^\s/>]*+)(?P<attributes>(?:[^"'>]|"[^"]*+"|'[^']*+'|(?!))*+)>"""
)
"""The beginning of a document in UTF-8 that has nothing but a declaration before its root element."""

_USUAL_TAG = 10_000
"""Bytes up to the end of the root element's tag. Longer tags are not cached: their documents are parsed."""

_START = re.compile(rb"<[^\s/>]+")
_NAME = re.compile(rb"""\s([^\s=]++)\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")
"""An attribute with its name."""


class HasDeclarations(Exception):
    """The document has a DOCTYPE with declarations, which begins at this place of its bytes."""

    def __init__(self, start: int) -> None:
        super().__init__("its DOCTYPE has declarations")
        self.start = start


def without_doctype(content: bytes) -> bytes:
    """The document with blanks in place of a DOCTYPE that declares nothing; line breaks stay.

    Raises HasDeclarations for any other DOCTYPE. Only encodings that include ASCII are read.
    """
    if b"<!DOCTYPE" not in content or (found := _DOCTYPE.match(content)) is None:
        return content
    start = found.start(1)
    harmless = _EXTERNAL_ONLY.match(content, start)
    if harmless is None:
        raise HasDeclarations(start)
    return content[:start] + re.sub(rb"[^\r\n]", b" ", harmless[0]) + content[harmless.end() :]


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
    """The root element of a stored document. Raises NotEmbeddable.

    Its DOCTYPE is left out, if that only names a DTD.
    """
    try:
        root = etree.fromstring(without_doctype(content), _parsers.own)
    except HasDeclarations as error:
        raise NotEmbeddable(str(error)) from error
    except (etree.XMLSyntaxError, ValueError) as error:
        raise NotEmbeddable(f"it is not well-formed: {error}") from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise NotEmbeddable("it has a DOCTYPE")
    return root


def why_not_embeddable(content: bytes) -> str:
    """The reason why a document cannot stand inside of another one, as the end of a sentence; empty if it can."""
    try:
        root_of(content)
    except NotEmbeddable as error:
        return str(error)
    return ""


def embedded_document(content: bytes) -> bytes:
    """A stored document that is embeddable, for a place where another default namespace is declared.

    Its own bytes, if there is nothing but a declaration before its root element, and nothing behind it. They are not
    parsed: every document was when it was stored. Raises NotEmbeddable for other documents.
    """
    head = content[: content.find(b">", content.find(b"?>") + 2 if content.startswith(b"<?xml") else 0) + 1]
    tag, end = _root_tag(head) if len(head) <= _USUAL_TAG else None, content.rstrip()
    if tag is None or end.endswith((b"-->", b"?>")):
        return embedded(root_of(content))
    begin, without_default = tag
    return end[begin:] if without_default is None else without_default + end[len(head) :]


@lru_cache(maxsize=1024)
def _root_tag(head: bytes) -> tuple[int, bytes | None] | None:
    """The place of the root element's tag, and the tag without the default namespace of the answer, if it needs that.

    None if something else stands before the tag. `head` is the text to its end. Cached: many documents have the same.
    """
    found = _PLAIN.fullmatch(head)
    if found is None:
        return None
    begin, place = found.start("start"), found.end("start")
    if any(each[1] == b"xmlns" for each in _NAME.finditer(found["attributes"])):
        return begin, None
    return begin, head[begin:place] + b' xmlns=""' + head[place:]


def embedded(root: etree._Element) -> bytes:
    """The element as bytes of an answer in UTF-8, for a place where another default namespace is declared."""
    content = written(root)
    if None in root.nsmap:
        return content
    found = _START.match(content)
    assert found is not None
    return found[0] + b' xmlns=""' + content[found.end() :]


def written(root: etree._Element) -> bytes:
    """The element as bytes in UTF-8, without a declaration."""
    return etree.tostring(root, encoding="UTF-8", xml_declaration=False, with_tail=False)
