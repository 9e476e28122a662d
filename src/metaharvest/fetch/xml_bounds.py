"""Limits the cost of an XML text by its bytes alone, before its tree exists.

A tree takes up to sixty times the bytes of its text. Each element, comment and processing instruction has a `<` of its
own, each attribute a `=`, each namespace declaration an `xmlns`. So the numbers of these bytes are upper bounds for the
tree. Counting them takes at most a second for 100 MB. This holds in every encoding in which these characters are the
bytes of ASCII, perhaps with NUL bytes beside them. Other encodings are refused.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from lxml import etree

from metaharvest.model.values import frozen
from metaharvest.text import one_line

HEAD = 65_536
"""Bytes in which the root element of a text must begin."""

_PIECE = 512
_BETWEEN = 4 * (len("xmlns") - 1)
"""Bytes by which pieces overlap, so that each `xmlns` is whole in one of them, also in UTF-32."""
DECLARATION_BYTES = 1_000
"""Bytes in which the XML declaration of a text must end."""

_DECLARED = re.compile(rb"""\sencoding\s{0,40}=\s{0,40}["']([A-Za-z0-9._:-]{1,40})["']""")
_ASCII_COMPATIBLE = re.compile(
    r"(?:us-?)?ascii|ansi_x3\.4-1968|utf-?8|(?:utf-?|ucs-?|iso-10646-ucs-)(?:16|32|2|4)(?:-?[bl]e)?|"
    r"iso[-_]?8859[-_]\d{1,2}|latin-?\d{1,2}|l\d|windows-(?:125\d|874|31j)|"
    r"(?:cp|ibm)(?:125\d|437|737|775|85\d|86\d|866|874|932|936|949|950)|koi8-[rut]|koi8-ru|mac(?:intosh|-?roman)|"
    r"tis-?620|big5(?:-?hkscs)?|gb_?2312(?:-80)?|gbk|gb18030|(?:shift|s)[-_]?jis|euc-(?:jp|kr|cn|tw)|"
    r"iso-2022-(?:jp|kr|cn)(?:-\d)?",
    re.IGNORECASE,
)
_DECLARATIONS = (b"<?xml ", b"<?xml\t", b"<?xml\r", b"<?xml\n")
_MARK = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"<\0", b"\0<", b"\0\0\0<")
"""The first bytes of UTF-16 and UTF-32: a byte order mark, or `<`."""


class XmlRefused(Exception):
    """An XML text that is not read. The message continues a sentence such as "The answer": `has more than ...`."""


@frozen
class XmlLimits:
    """The largest text that becomes a tree: its bytes, its nodes (see nodes_in), its namespace declarations.

    The default is for short answers: its tree takes 35 MB at most. `huge`: 2,048 levels and any length of a text,
    in place of 256 levels and 10 MB.
    """

    size: int = 4_194_304
    nodes: int = 100_000
    namespaces: int = 10_000
    huge: bool = False


SHORT_ANSWER = XmlLimits()


def nodes_in(content: bytes) -> int:
    """An upper bound of the elements, attributes, comments and processing instructions in this text."""
    return content.count(b"<") - content.count(b"</") + content.count(b"=")


def namespaces_in(content: bytes) -> int:
    """An upper bound of the namespace declarations in this text."""
    return (content.replace(b"\0", b"") if b"\0" in content else content).count(b"xmlns")


def tree_of(content: bytes, limits: XmlLimits = SHORT_ANSWER) -> etree._Element:
    """The root element of a text within the limits. Raises XmlRefused for all others, also for one with a DOCTYPE.

    Call it in a thread or process of its own: 30 MB take a second.
    """
    refuse_encoding(content)
    refuse_excess(content, limits)
    refuse_doctype(content)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=limits.huge)
    try:
        return etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, LookupError, ValueError) as error:
        raise XmlRefused(f"is not well-formed XML: {one_line(str(error) or 'it is empty', 200)}") from None


def refuse_excess(content: bytes, limits: XmlLimits) -> None:
    """Raises XmlRefused for a text that exceeds one of the limits."""
    if len(content) > limits.size:
        raise XmlRefused(f"has more than {limits.size:,} bytes")
    nodes = namespaces = 0
    for start in range(0, len(content), HEAD):  # other threads have their turn between two pieces
        nodes += nodes_in(content[start : start + HEAD])
        namespaces += namespaces_in(content[start : start + HEAD + _BETWEEN])
        if nodes > limits.nodes:
            raise XmlRefused(f"has more than {limits.nodes:,} elements and attributes")
        if namespaces > limits.namespaces:
            raise XmlRefused(f"has more than {limits.namespaces:,} namespace declarations")


def refuse_encoding(head: bytes) -> None:
    """Raises XmlRefused if the encoding of a text with this beginning may have other bytes for `<`."""
    if head.startswith(_WIDE):
        return
    head = head[:HEAD].removeprefix(_MARK).lstrip(b" \t\r\n")
    if not head.startswith(b"<"):
        raise XmlRefused("does not begin with <")
    if not head.startswith(_DECLARATIONS):
        return
    declaration, end, _ = head[:DECLARATION_BYTES].partition(b"?>")
    declared = _DECLARED.search(declaration)
    if not end or (declared is None and b"encoding" in declaration):
        shown = one_line(declaration.decode("utf-8", "replace"), 60)
        raise XmlRefused(f"has an XML declaration that cannot be read: {shown}{'?>' if end else ''}")
    if declared is not None and not _ASCII_COMPATIBLE.fullmatch(declared[1].decode("ascii")):
        name = one_line(declared[1].decode("ascii"), 40)
        raise XmlRefused(f"declares the encoding {name}, which is not read; UTF-8 is")


def refuse_doctype(content: bytes) -> None:
    """Raises XmlRefused if a DOCTYPE stands before the root element, or the root element does not begin in HEAD bytes.

    The entities of a DOCTYPE can change a text, and grow without end.
    """
    tag, has_doctype = first_tag(content[:HEAD])
    if tag is None:
        raise XmlRefused("is no XML" if len(content) <= HEAD else f"has no root element in its first {HEAD:,} bytes")
    if has_doctype:
        raise XmlRefused("begins with a DOCTYPE (<!DOCTYPE …>)")


def first_tag(head: bytes) -> tuple[str | None, bool]:
    """The name of the root element, if one begins in `head`, and whether a DOCTYPE stands before it.

    The parser gets small pieces and has its own limits, so that no entity expands.
    """
    parser: Any = etree.XMLPullParser(events=("start",), resolve_entities=False, no_network=True, load_dtd=False)
    for start in range(0, len(head), _PIECE):
        with suppress(etree.XMLSyntaxError):
            parser.feed(head[start : start + _PIECE])
        if begun := _begun(parser):
            return begun
    with suppress(etree.XMLSyntaxError):
        parser.close()
    return _begun(parser) or (None, False)


def root_namespace(head: bytes) -> str:
    """The namespace of the root element, if one begins in `head`; empty if it has none."""
    tag, _ = first_tag(head)
    return (tag or "").rpartition("}")[0].removeprefix("{")


def _begun(parser: Any) -> tuple[str, bool] | None:
    """The name of the root element, and whether a DOCTYPE stands before it; None if it has not begun."""
    for _, element in parser.read_events():
        return str(element.tag), element.getroottree().docinfo.internalDTD is not None
    return None
