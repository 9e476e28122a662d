"""Parses a document's bytes into a tree, safely, and explains in plain words why a document is not well-formed XML.

Only XML's own five entities are expanded; no DTD and no other file is read, nothing is fetched. A document with
declarations of its own in a DOCTYPE is refused, since they can change its content (libxml2 expands entities in
attribute values, whatever its options); a DOCTYPE that only names an external DTD is ignored. libxml2's limits, 10 MB
of text in one place and 256 levels, have findings of their own, and so has ours, MAX_NODES: a tree takes up to fifty
times the bytes of its document.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from lxml import etree

from metaharvest.model import Finding, limited
from metaharvest.rules import RULES
from metaharvest.text import binary_kind, compressed_as, one_line
from metaharvest.transform.embedding import HasDeclarations, without_doctype
from metaharvest.validation import html_text, parse_lock, tags
from metaharvest.validation.libxml2_errors import parser_error_in_words

_DECLARED_ENCODING = re.compile(rb"<\?xml(?=\s)[^<>]{0,200}?\sencoding\s*+=\s*+[\"']([A-Za-z0-9._:-]{1,40})[\"']")
"""In an XML declaration, not in `<?xml-stylesheet`, which begins in the same way."""

_DECODED = re.compile(
    r"ascii|utf-(?:8|16|32)(?:-[bl]e)?|iso8859-\d+|cp\d+|koi8-[ru]|mac-\w+|tis-620|big5(?:hkscs)?|gb2312|gbk|gb18030|"
    r"shift_jis\w*|euc_\w+|iso2022_\w+"
)
"""The encodings of texts, as Python names them. It knows others, such as idna and unicode_escape, that no XML parser
does and that take it very long to decode."""
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF8, "UTF-8"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_ELEMENT = re.compile(rb"<[A-Za-z_]")
# bounded: a comment without an end matches to the end of the text, so that nothing is tried again
_COMMENT = re.compile(rb"<!--(?:.*?-->|.*)", re.DOTALL)
"""A comment, or the beginning of one to the end: each beginning must not be looked through to the end."""

_DECLARATION = re.compile(rb"<\?xml\s")
_BEGINNING = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml\s|<[A-Za-z_][^<>]*\sxmlns)")
"""The beginning of a document: a declaration, or an element in a namespace."""

_WINDOW = 120
"""Characters of the line that an excerpt shows on either side of the place."""

MAX_NODES = 1_000_000
"""Elements, attributes, namespaces, comments and processing instructions that a document may have: they make a tree of
up to 250 MB."""

_OF_LIBXML2 = frozenset({"xml.too-deep", "xml.too-large-text"})

_COUNTED_BYTES = 4_000_000
"""The nodes of a document larger than this are counted first; a smaller one has no room for a tree of that size."""

_CHUNK = 65_536

_MAX_LINES = 200_000
"""The number of lines of a document that may be shown in excerpts."""


_TextPlace = tuple[int, int, str]
"""Line, column and excerpt."""


class NotReadable(Exception):
    """The document is not well-formed, or exceeds a limit; `findings` say why."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(findings[0].message)
        self.findings = findings


def new_parser(*, without_blanks: bool = False, keeps_all: bool = False, huge: bool = False) -> etree.XMLParser:
    """A parser that expands no entities, and reads and fetches no other file; for one thread at a time.

    Comments are left out, so that a text is one node: libxml2 takes very long to join a text of very many.
    `without_blanks`: so is white space between tags: trees are smaller, and are made and validated sooner.
    `keeps_all`: comments and processing instructions stay, for a document that is written again. `huge`: without
    libxml2's own limits, but for 2,048 levels.
    """
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        remove_comments=not keeps_all,
        remove_pis=not keeps_all,
        remove_blank_text=without_blanks,
        huge_tree=huge,
    )


def has_markup_only(content: bytes) -> bool:
    """True without a DOCTYPE, comment, CDATA section or processing instruction, except at the beginning.

    Then white space that a parser may leave out is between elements, never part of a value. False if in doubt.
    """
    start = content.find(b">") if b"<?xml" in content[:8] else 0
    # One byte is searched for several times as fast as two.
    return b"\0" not in content and not any(
        content.find(sign, start) >= 0 and content.find(b"<" + sign, start) >= 0 for sign in (b"!", b"?")
    )


def root_of(content: bytes) -> etree._Element:
    """The root element of `content`, parsed while no schema is compiled. Raises NotReadable, and MemoryError."""
    with parse_lock.parsing():
        return parse(content, new_parser())


def parse(content: bytes, parser: etree.XMLParser) -> etree._Element:
    """The root element of `content`.

    Raises NotReadable, with findings, if it cannot be parsed, and MemoryError.
    """
    if not content.strip(b" \t\r\n\0"):
        raise NotReadable(Finding("xml.empty", "The document is empty.", RULES["xml.empty"].remedy))
    try:
        source = without_doctype(content)
    except HasDeclarations as error:
        line = content.count(b"\n", 0, error.start) + 1
        excerpt = content[error.start : error.start + 300].decode("utf-8", "replace")
        raise NotReadable(_dtd_finding(line, one_line(excerpt))) from None
    if len(source) > _COUNTED_BYTES and _has_too_many_nodes(source):
        message = f"The document has more than {MAX_NODES:,} elements and attributes."
        remedy = "Divide it into several documents, or put data into a file of its own and name its URL."
        raise NotReadable(Finding("xml.too-many-elements", message, remedy))
    try:
        root = etree.fromstring(source, parser)
    except etree.XMLSyntaxError as error:
        if any(entry.type == etree.ErrorTypes.ERR_NO_MEMORY for entry in parser.error_log):
            raise MemoryError from None
        raise NotReadable(*limited(_syntax_findings(error, parser.error_log, content))) from None
    except (LookupError, ValueError) as error:
        raise NotReadable(_unknown_syntax_finding(str(error), _clamped(1, 1, lines_of(content)))) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise NotReadable(_dtd_finding(1, ""))
    return root


def parse_record(content: bytes, parser: etree.XMLParser, *, keeps_all: bool = False) -> etree._Element:
    """The root element of a record's content, whose list was read without libxml2's limits. Raises NotReadable."""
    try:
        return parse(content, parser)
    except NotReadable as error:
        if not {finding.rule for finding in error.findings} <= _OF_LIBXML2:
            raise
        return parse(content, new_parser(keeps_all=keeps_all, huge=True))


class _NodeCounter:
    """Counts the future nodes of a tree: a parser's target, and at the same time its source.

    The source ends when there are too many nodes. The parser reads from it, since libxml2 does not limit the length of
    tags that are fed to a parser.
    """

    def __init__(self, source: bytes) -> None:
        self._source = io.BytesIO(source)
        self.nodes = 0

    def read(self, _size: int = -1) -> bytes:
        """The next piece of the source, for the parser."""
        return b"" if self.nodes > MAX_NODES else self._source.read(_CHUNK)

    def start(self, _tag: str, attributes: Mapping[str, str], namespaces: Mapping[str | None, str]) -> None:
        """An element."""
        self.nodes += 1 + len(attributes) + len(namespaces)

    def comment(self, _text: str) -> None:
        """A comment."""
        self.nodes += 1

    def pi(self, _target: str, _data: str | None = None) -> None:
        """A processing instruction."""
        self.nodes += 1

    def close(self) -> None:
        """The end of the document."""


def _has_too_many_nodes(source: bytes) -> bool:
    """Counts without building a tree, up to the first syntax error: a tree would end there too."""
    counter = _NodeCounter(source)
    target = etree.XMLParser(target=cast(Any, counter), resolve_entities=False, no_network=True, load_dtd=False)
    with suppress(etree.XMLSyntaxError, LookupError, ValueError):
        etree.parse(cast(Any, counter), target)
    return counter.nodes > MAX_NODES


def _dtd_finding(line: int, excerpt: str) -> Finding:
    message = "The document has declarations of its own in a DOCTYPE; for safety they are not read."
    remedy = "Remove the DOCTYPE, and write the characters themselves where it defines entities."
    return Finding("xml.dtd", message, remedy, line=line, excerpt=excerpt)


def _syntax_findings(error: etree.XMLSyntaxError, log: Any, content: bytes) -> Iterable[Finding]:
    """The parser's findings; about tags, only the causes, without their consequences."""
    found = list(_parser_findings(error, log, content))
    if not any(finding.rule in _OF_TAGS for finding in found):
        return found
    lines = lines_of(content)
    text = "\n".join(lines)
    causes = list(tags.places_of(text, tags.tag_faults(text)))
    findings = [
        _finding_at(_clamped(line, column, lines), fault.rule, fault.message, fault.remedy)
        for fault, line, column, _ in causes
    ]
    first_of_tags = next((each for each in found if _is_of_tags(each) or each.rule in _OF_ONE_TAG), None)
    for finding in found:
        if _is_of_tags(finding):
            # Without a cause, the first finding is one, or a mistake in a tag before it; the others follow from it.
            if causes or finding is not first_of_tags:
                continue
        elif any(_explains(fault, first, last, finding) for fault, first, _, last in causes):
            continue
        findings.append(finding)
    return sorted(findings, key=lambda finding: (finding.line or 0, finding.column or 0))


_OF_TAGS = frozenset(
    {
        "xml.mismatched-tag",
        "xml.unclosed",
        "xml.bad-tag",
        "xml.less-than",
        "xml.not-well-formed",
        "xml.undefined-entity",
        "xml.undeclared-prefix",
    }
)
"""Rules whose cause may be tags or HTML: the tags are then read for the cause."""

_OF_ONE_TAG = frozenset({"xml.bad-tag", "xml.less-than", "xml.not-well-formed"})


def _is_of_tags(finding: Finding) -> bool:
    begins = ("The document ends too early", "A comment, a CDATA")
    return finding.rule == "xml.mismatched-tag" or finding.message.startswith(begins)


def _explains(fault: tags.TagFault, first: int, last: int, finding: Finding) -> bool:
    """True if the parser's finding between these lines follows from this fault."""
    line = finding.line or 0
    if fault.rule == html_text.RULE:
        return first <= line <= last and finding.rule in _OF_TAGS | {"xml.duplicate-attribute", "xml.ampersand"}
    return fault.rule in _OF_ONE_TAG and finding.rule in _OF_ONE_TAG and first <= line <= last + 1


def _parser_findings(error: etree.XMLSyntaxError, log: Any, content: bytes) -> Iterable[Finding]:
    if kind := binary_kind(content):
        remedy = "Put the document there as XML. The program that made this file may export it."
        yield Finding("xml.not-xml", f"The document is {kind}, not XML.", remedy)
        return
    if compressed := compressed_as(content):
        message = f"The document is a compressed file ({compressed}), not XML."
        remedy = "Put the document itself there, unpacked; web servers compress it on its way by themselves."
        yield Finding("xml.not-xml", message, remedy)
        return
    lines = lines_of(content)
    entries = [entry for entry in log if entry.level >= etree.ErrorLevels.ERROR]
    seen: set[tuple[int, int]] = set()
    cut = _line_of_cut(content)
    before: bytes | None = None
    declarations = 0
    if not entries:
        place = _clamped(error.lineno or 1, error.offset or 1, lines)
        yield _unknown_syntax_finding(error.msg or "It cannot be parsed.", place)
    for entry in entries:
        if (entry.line, entry.column) in seen:
            continue
        seen.add((entry.line, entry.column))
        if entry.type_name in _ENCODING_ERRORS:
            yield _encoding_finding(content, entry)
            return
        finding = _syntax_finding(entry, lines)
        if finding.rule in _OF_A_TAG and cut is not None and entry.line >= cut:
            message = "The document breaks off here, inside a tag."
            remedy = (
                "The file was cut short: upload it again, or check whether the program that writes it stopped half-way."
            )
            yield replace(finding, rule="xml.unclosed", message=message, remedy=remedy)
            return
        if finding.rule == "xml.declaration-not-first":
            if not declarations:
                before = _document_before(finding, content)
            declarations += 1
            if before is not None and declarations == 1 and _is_whole(before):
                message = "The document ends above, and another one begins here."
                remedy = "Put each document into a file of its own, or delete one of the two."
                finding = replace(finding, rule="xml.content-after-root", message=message, remedy=remedy)
            elif before is not None:
                message = "A second line <?xml …?> stands in the middle of the document."
                remedy = "Delete this line, or what was put in by mistake with it."
                finding = replace(finding, message=message, remedy=remedy)
        elif finding.rule == "xml.content-after-root" and content.lstrip()[:3].lower() == b"<br":
            message = "The document begins with a message of a program, such as an error of PHP."
            remedy = "Correct what the message says in the program that writes the document."
            yield _finding_at(_clamped(finding.line or 1, 1, lines), "xml.not-xml", message, remedy)
            return
        elif finding.rule == "xml.not-xml" and lines[0].startswith("\ufeff"):
            message = "The document begins with two byte order marks, which editors do not show."
            remedy = "Save it as UTF-8 without a byte order mark; a program that joins texts may leave one in each."
            finding = replace(finding, message=message, remedy=remedy)
        yield finding


def _document_before(finding: Finding, content: bytes) -> bytes | None:
    """The document, or a part of one, that stands before a late `<?xml`; None if there is none.

    Text that a web server or a program put there by mistake has neither a declaration nor a namespace.
    """
    line_start = 0
    for _ in range((finding.line or 1) - 1):
        line_start = content.find(b"\n", line_start) + 1
    declaration = _DECLARATION.search(content, max(line_start, 1))
    before = content[: declaration.start()] if declaration else b""
    elements = _COMMENT.sub(b"", before)
    return before if _BEGINNING.match(elements) and _ELEMENT.search(elements) else None


def _is_whole(content: bytes) -> bool:
    try:
        etree.fromstring(content, new_parser())
    except (etree.XMLSyntaxError, LookupError, ValueError):
        return False
    return True


_OF_A_TAG = ("xml.bad-tag", "xml.less-than", "xml.not-well-formed", "xml.unclosed")


def _line_of_cut(content: bytes) -> int | None:
    """The last line of a document that ends in the middle of a tag; None if it does not."""
    if content.rfind(b"<") <= content.rfind(b">"):
        return None
    return content.rstrip().count(b"\n") + 1


def _syntax_finding(entry: Any, lines: list[str]) -> Finding:
    place = _clamped(entry.line, entry.column, lines)
    message = " ".join(str(entry.message).split())
    known = parser_error_in_words(message)
    finding = _finding_at(place, *known) if known else _unknown_syntax_finding(message, place)
    if finding.rule == "xml.undefined-entity":
        code = finding.message.partition(" ")[0]
        character = html_text.character_for(code)
        return replace(finding, remedy=f"Write {character} in place of {code}.") if character else finding
    if finding.message.startswith(("The value of an attribute", "In the first line")):
        return _with_the_marks(finding, lines)
    return finding


def _with_the_marks(finding: Finding, lines: list[str]) -> Finding:
    """The finding about a value without quotation marks; it names curly ones only if the line has some."""
    around = finding.excerpt + lines[min(finding.line or 1, len(lines)) - 1][: _WINDOW * 4]
    if any(mark in around for mark in "“”„‘’«»"):
        return finding
    before, _, _ = finding.remedy.partition(";")
    return replace(finding, remedy=f'{before}, with a quotation mark (") on either side.')


def _unknown_syntax_finding(message: str, place: _TextPlace) -> Finding:
    sentence = f"The document is not well-formed XML: {one_line(message)}."
    remedy = "Open it in an XML editor, or in a browser, and correct it at this place."
    return _finding_at(place, "xml.not-well-formed", sentence, remedy)


def _finding_at(place: _TextPlace, rule: str, message: str, remedy: str) -> Finding:
    line, column, excerpt = place
    return Finding(rule, message, remedy, line=line, column=column, excerpt=excerpt)


_ENCODING_ERRORS = ("ERR_INVALID_ENCODING", "ERR_UNSUPPORTED_ENCODING", "ERR_UNKNOWN_ENCODING", "I18N_CONV_FAILED")
"""libxml2's names of errors about the encoding."""


def _encoding_finding(content: bytes, entry: Any) -> Finding:
    """The reason why the bytes cannot be read in the declared encoding, and the encoding that would fit."""
    mark = _marked_encoding(content)
    declared = _DECLARED_ENCODING.match(content.removeprefix(codecs.BOM_UTF8))
    stated = declared[1].decode("ascii") if declared else mark or "UTF-8"
    is_known = declared is None or entry.type_name == "ERR_INVALID_ENCODING"
    start = _first_bad_byte(content, stated) if is_known else None
    if start is None:
        place = _clamped(entry.line, entry.column, lines_of(content))
        message = f"The document cannot be read in its encoding, {stated}."
        return _finding_at(place, "xml.encoding", message, "Save it as UTF-8.")
    line_start = content.rfind(b"\n", 0, start) + 1
    column = len(content[line_start:start].decode("utf-8", "replace")) + 1
    place = _clamped(content.count(b"\n", 0, start) + 1, column, lines_of(content))
    how = "declares" if declared else "begins like" if mark else "declares no encoding, so it is read as"
    message = f"The document {how} {stated}, but here its bytes are not {stated} (0x{content[start]:02X})."
    return _finding_at(place, "xml.encoding", message, _better_encoding(content, stated))


def _marked_encoding(content: bytes) -> str | None:
    return next((encoding for mark, encoding in _BYTE_ORDER_MARKS if content.startswith(mark)), None)


def _first_bad_byte(content: bytes, encoding: str) -> int | None:
    try:
        if not _DECODED.fullmatch(codecs.lookup(encoding).name):
            return None
        content.decode(encoding)
    except UnicodeDecodeError as error:
        return min(error.start, len(content) - 1)
    except (LookupError, UnicodeError):
        return None
    return None


def _better_encoding(content: bytes, stated: str) -> str:
    for candidate, otherwise in (("UTF-8", ""), ("windows-1252", ", or save it as UTF-8 and say so")):
        if candidate.lower() != stated.lower() and _first_bad_byte(content, candidate) is None:
            first_line = f'<?xml version="1.0" encoding="{candidate}"?>'
            return f"It seems to be {candidate}: let its first line say {first_line}{otherwise}."
    return "Save the document as UTF-8, and let it declare UTF-8."


def lines_of(content: bytes) -> list[str]:
    """The lines as a person would see them, even if the encoding is wrong; all after _MAX_LINES are one line."""
    encoding = _marked_encoding(content)
    if encoding is None:
        encoding = "utf-8" if _first_bad_byte(content, "utf-8") is None else "windows-1252"
    return content.decode(encoding, "replace").removeprefix("\ufeff").split("\n", _MAX_LINES)


def _clamped(line: int, column: int, lines: list[str]) -> _TextPlace:
    """Line and column, kept within the document, and the line or the part of it around the place."""
    if line > _MAX_LINES:
        return line, max(column, 1), ""
    line = min(max(line, 1), len(lines))
    text = lines[line - 1].rstrip("\r")
    column = min(max(column, 1), len(text) + 1)
    start = max(0, column - 1 - _WINDOW)
    part = text[start : column - 1 + _WINDOW]
    excerpt = ("…" if start else "") + part + ("…" if start + len(part) < len(text) else "")
    return line, column, one_line(excerpt)
