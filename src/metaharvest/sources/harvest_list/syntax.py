"""Explains in plain words why a harvest list is not well-formed XML, and shows the place.

It turns the errors of the XML parser (expat) into findings; parser.py reads the list.
"""

from __future__ import annotations

import codecs
import re
from typing import BinaryIO
from xml.parsers import expat
from xml.parsers.expat import errors

from metaharvest.model import MAX_EXCERPT, Finding
from metaharvest.sources.harvest_list.elements import LIST_NAMESPACE, VALUES, Mistake
from metaharvest.text import HEAD_BYTES, binary_kind, compressed_as, counted, one_line, shown_url, without_credentials

_BYTES_BEFORE = 2 * MAX_EXCERPT
_BYTES_AFTER = 4 * MAX_EXCERPT
_MARKS_AND_SPACE = codecs.BOM_UTF8 + codecs.BOM_UTF16_LE + b"\0 \t\r\n"
_BARE_AMPERSAND = re.compile(r"&[^\s<>&;'\"]*$")
_ENTITY = re.compile(r"&[^\s;&<]*;?")
_PREFIX = re.compile(r"</?([^\s:<>/]+):")
_TAG = re.compile(r"[^\s<>/]+")
_LINE_BREAK = re.compile(r"[\r\n]")
_AMPERSAND_REMEDY = "Write `&amp;` wherever the list has `&` (programs that write XML do this by themselves)."
_ENCODING_REMEDY = (
    "Save the list as UTF-8, or name its real encoding in its first line, as in "
    '<?xml version="1.0" encoding="ISO-8859-1"?>.'
)


class SourceText:
    """Reads the list's text around an offset in bytes, for excerpts. The file's position stays as it was."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        head = self._bytes(0, HEAD_BYTES)
        self.encoding = "utf-8"
        self.declared: str | None = None
        self.compressed = compressed_as(head)
        self.binary_kind = binary_kind(head)
        self.has_two_marks = head.startswith(2 * codecs.BOM_UTF8)
        self.begins_with_tag = head.lstrip(_MARKS_AND_SPACE).startswith(b"<")
        if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, b"<\0\0\0", b"\0\0\0<")):
            self.encoding = "utf-32"
        elif head.startswith((codecs.BOM_UTF16_LE, b"<\0")):
            self.encoding = "utf-16-le"
        elif head.startswith((codecs.BOM_UTF16_BE, b"\0<")):
            self.encoding = "utf-16-be"

    def declare(self, encoding: str | None) -> None:
        """Set the encoding that the XML declaration names; None if it names none."""
        self.declared = encoding
        if encoding is None or self.encoding != "utf-8":
            return
        try:
            self.encoding = codecs.lookup(encoding).name
        except LookupError:
            self.encoding = "iso8859-1"

    def byte(self, offset: int) -> int | None:
        """The byte at `offset`; None at the end of the list, and in UTF-16 and UTF-32."""
        found = self._bytes(offset, 1)
        return found[0] if found and not self.encoding.startswith(("utf-16", "utf-32")) else None

    def line(self, offset: int) -> tuple[str, str]:
        """The line's text before and after `offset`, only as much as an excerpt needs."""
        start = max(0, offset - _BYTES_BEFORE)
        before = self._decoded(self._bytes(start, offset - start))
        after = self._decoded(self._bytes(offset, _BYTES_AFTER))
        return _LINE_BREAK.split(before)[-1], _LINE_BREAK.split(after)[0]

    def entry(self, start: int, end: int) -> str:
        """The text between two offsets as an excerpt."""
        return list_excerpt(self._decoded(self._bytes(start, min(end - start, _BYTES_AFTER))))

    def _bytes(self, start: int, length: int) -> bytes:
        position = self._file.tell()
        self._file.seek(start)
        found = self._file.read(length)
        self._file.seek(position)
        return found

    def _decoded(self, found: bytes) -> str:
        try:
            return found.decode(self.encoding, "replace")
        except (LookupError, ValueError):
            return found.decode("iso8859-1")


def list_excerpt(text: str) -> str:
    """A piece of the list as an excerpt: on one line, cut to its length, without credentials."""
    return one_line(shown_url(text), MAX_EXCERPT)


def excerpt_around(before: str, after: str) -> str:
    """The line as an excerpt, cut so that the place between `before` and `after` is in it."""
    # Remove credentials before the cut, which may divide them. The NUL, which XML never has, marks the place.
    whole = without_credentials(f"{before}\0{after}")
    left, _, right = whole.partition("\0")
    room = MAX_EXCERPT // 2
    return list_excerpt((left if len(left) <= room else "…" + left[1 - room :]) + right)


def encoding_finding(source: SourceText) -> Finding:
    """For a list whose encoding differs from the declared one, or is unreadable."""
    declared = one_line(source.declared or "", 40)
    message = "The list is written in UTF-32, which cannot be read."
    if declared:
        message = f"The list says that its encoding is {declared}, but it cannot be read as such."
        if source.encoding.startswith("utf-16"):
            message = f"The list is saved as UTF-16, and its first line says {declared}."
    remedy = "Save the list as UTF-8, and say so in its first line, or leave that line out."
    return Finding("list.encoding", message, remedy, line=1)


def syntax_finding(error: expat.ExpatError, offset: int, source: SourceText, inside: str, entries: int) -> Finding:
    """The finding for a syntax error at byte `offset`, `inside` an element ("" for none), after a number of entries."""
    reason = expat.ErrorString(error.code)
    if reason == errors.XML_ERROR_INVALID_TOKEN and (offset <= len(codecs.BOM_UTF8) or not source.begins_with_tag):
        reason = errors.XML_ERROR_SYNTAX
    if source.binary_kind:
        remedy = "Put the list there as XML."
        return Finding("list.not-well-formed", f"The list is {source.binary_kind}, not XML.", remedy)
    if source.compressed:
        message = f"The list is a compressed file ({source.compressed}), not XML."
        remedy = "Put the list itself there, unpacked; web servers compress it on its way by themselves."
        return Finding("list.not-well-formed", message, remedy)
    before, after = source.line(max(offset, 0))
    column = error.offset + 1
    if reason in _ENCODING_ERRORS or source.encoding == "utf-32":
        return encoding_finding(source)
    if reason in _TRUNCATED_ERRORS:
        mistake = _truncated(entries)
    elif reason == errors.XML_ERROR_INVALID_TOKEN:
        mistake = _invalid_token(source, offset, before, after, inside)
        if mistake.rule == "list.ampersand":
            column -= len(before) - before.rindex("&")
    elif reason == errors.XML_ERROR_UNDEFINED_ENTITY:
        found = _ENTITY.match(after)
        mistake = entity_mistake(one_line(found[0] if found else "", 40), inside)
    elif reason == errors.XML_ERROR_TAG_MISMATCH:
        mistake = _mismatch(after, inside)
    elif reason == errors.XML_ERROR_UNBOUND_PREFIX:
        mistake = _unbound(after)
    else:
        if reason == errors.XML_ERROR_SYNTAX and source.has_two_marks:
            reason = _TWO_MARKS
        elif reason == errors.XML_ERROR_MISPLACED_XML_PI and inside:
            reason = _SECOND_DECLARATION
        is_curly = reason == errors.XML_ERROR_XML_DECL and after.startswith(_CURLY)
        unknown = (f"The list is not well-formed XML here: {reason}.", "Correct this line.")
        mistake = Mistake("list.not-well-formed", *(_QUOTATION_MARKS if is_curly else _PLAIN.get(reason, unknown)))
    return Finding(*mistake, line=error.lineno, column=column, excerpt=excerpt_around(before, after))


_ENCODING_ERRORS = (errors.XML_ERROR_UNKNOWN_ENCODING, errors.XML_ERROR_INCORRECT_ENCODING)
_TRUNCATED_ERRORS = (
    errors.XML_ERROR_NO_ELEMENTS,
    errors.XML_ERROR_UNCLOSED_TOKEN,
    errors.XML_ERROR_PARTIAL_CHAR,
    errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
)
_CURLY = ("“", "”", "„", "‟", "‘", "’")
_QUOTATION_MARKS = (
    'The values of a tag, and of the first line, <?xml …?>, stand in straight quotation marks ("), not in others.',
    'Write <?xml version="1.0" encoding="UTF-8"?>, and so on; word processors put curly marks (“ ”) there, which XML '
    "does not know.",
)
_TWO_MARKS = "two byte order marks"
_SECOND_DECLARATION = "a second declaration"
_PLAIN: dict[str, tuple[str, str]] = {
    _TWO_MARKS: (
        "The list begins with two byte order marks, which editors do not show.",
        "Save it as UTF-8 without a byte order mark; a program that joins texts may leave one in each.",
    ),
    errors.XML_ERROR_XML_DECL: (
        "The first line, <?xml …?>, is not written as XML wants it.",
        'Write <?xml version="1.0" encoding="UTF-8"?>, or leave that line out.',
    ),
    errors.XML_ERROR_SYNTAX: (
        "The list does not begin as XML: other text comes first.",
        "Have the list begin with its XML declaration or with its root element; the text shown may be an error message "
        "of the program that writes the list.",
    ),
    _SECOND_DECLARATION: (
        "A second line <?xml …?> stands in the middle of the list.",
        "Delete this line, or what was put in by mistake with it.",
    ),
    errors.XML_ERROR_MISPLACED_XML_PI: (
        "Something stands before `<?xml`, if only a space or an empty line.",
        "Let `<?xml` be the first characters of the list.",
    ),
    errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT: (
        "Something follows after the end of the list's root element.",
        "Let the list end with the end tag of `harvestList`, and give it only one such element.",
    ),
    errors.XML_ERROR_DUPLICATE_ATTRIBUTE: ("An element has the same attribute twice.", "Take one of them out."),
    errors.XML_ERROR_BAD_CHAR_REF: (
        "A character reference (`&#…;`) names a character that XML does not allow.",
        "Take it out, or write the number of the character that is meant.",
    ),
}
"""Expat's message, or one of ours, and the message and remedy of the finding."""


def _truncated(entries: int) -> Mistake:
    whole = counted(entries, "whole entry", "whole entries")
    message = f"The list breaks off here, after {whole}: its root element is not closed."
    remedy = "Check whether the program that writes the list stopped half-way, or whether an end tag is missing."
    return Mistake("list.truncated", message, remedy)


def _invalid_token(source: SourceText, offset: int, before: str, after: str, inside: str) -> Mistake:
    byte = source.byte(offset)
    if after.startswith(_CURLY) and (before.endswith("=") or inside not in VALUES):
        return Mistake("list.not-well-formed", *_QUOTATION_MARKS)
    if byte is not None and byte >= 0x80 and source.encoding == "utf-8":
        said = "says that it is UTF-8" if source.declared else "does not name its encoding, so it is read as UTF-8"
        message = f"The list {said}, but the byte 0x{byte:02X} in this line is not UTF-8 (it may be Latin-1)."
        return Mistake("list.encoding", message, _ENCODING_REMEDY)
    if _BARE_AMPERSAND.search(before):
        where = "a URL" if inside == "documentURL" else "a text"
        return Mistake("list.ampersand", f"`&` in {where} must be written `&amp;`.", _AMPERSAND_REMEDY)
    message = "The list is not well-formed XML here: this character cannot stand at this place."
    remedy = "Correct this line."
    if byte is not None and byte < 32 and byte not in (9, 10, 13):
        message = f"This line contains the character U+{byte:04X}, which XML does not allow."
        remedy = "Take the character out."
    elif before.lower().endswith("<?xml"):
        message = "The line <?xml …?> has capital letters."
        remedy = 'Write <?xml version="1.0" encoding="UTF-8"?>, in small letters.'
    elif before.endswith("<"):
        message, remedy = "`<` in a text must be written `&lt;`.", "Write `&lt;`."
    elif before.endswith("--"):
        message = "A comment contains two hyphens in a row, or another comment."
        remedy = "Write a single hyphen there, or delete the inner comment."
    return Mistake("list.not-well-formed", message, remedy)


def entity_mistake(entity: str, inside: str) -> Mistake:
    """For an `entity` that is not one of XML's own five, in the element `inside` ("" for none)."""
    remedy = "XML knows `&amp;`, `&lt;`, `&gt;`, `&quot;` and `&apos;` only; write the character itself."
    if inside == "documentURL":
        remedy = f"If it belongs to the URL, write `&amp;` for its `&`: `&amp;{entity[1:]}`. {remedy}"
    return Mistake("list.entity", f"`{entity}` means nothing in XML.", remedy)


def _mismatch(after: str, inside: str) -> Mistake:
    found = _TAG.match(after)
    opened = f"`{inside}`, which is still open" if inside else "the element that is still open"
    message = f"The end tag `</{one_line(found[0] if found else '', 60)}>` does not belong to {opened}."
    remedy = "Close every element with an end tag of exactly its own name, the innermost first."
    return Mistake("list.not-well-formed", message, remedy)


def _unbound(after: str) -> Mistake:
    found = _PREFIX.match(after)
    prefix = one_line(found[1], 40) if found else "hrv"
    message = f"The prefix `{prefix}` is used here, but nothing says what it stands for."
    root = f'<{prefix}:harvestList xmlns:{prefix}="{LIST_NAMESPACE}">'
    return Mistake("list.namespace", message, f"If it is the list's prefix, begin it with {root}.")
