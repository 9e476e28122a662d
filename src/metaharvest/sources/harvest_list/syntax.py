"""Says in plain words what is wrong with a harvest list that is not well-formed XML, and shows the place.

It turns the errors of the XML parser (expat) into findings; reading the list is up to parser.py.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace
from typing import BinaryIO
from xml.parsers import expat
from xml.parsers.expat import errors

from metaharvest.model import MAX_EXCERPT, Finding
from metaharvest.sources.harvest_list.elements import LIST_NAMESPACE
from metaharvest.text import one_line, shown_url, without_credentials

_BYTES_BEFORE = 2 * MAX_EXCERPT
_BYTES_AFTER = 4 * MAX_EXCERPT
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


def _code(message: str) -> int:
    return int(errors.codes[message])


_TRUNCATED_CODES = frozenset(
    map(
        _code,
        (
            errors.XML_ERROR_NO_ELEMENTS,
            errors.XML_ERROR_UNCLOSED_TOKEN,
            errors.XML_ERROR_PARTIAL_CHAR,
            errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
        ),
    )
)
_ENCODING_CODES = frozenset(map(_code, (errors.XML_ERROR_UNKNOWN_ENCODING, errors.XML_ERROR_INCORRECT_ENCODING)))


@dataclass(frozen=True, slots=True)
class ListPlace:
    """A place in the list: line and column, which count from 1, and an excerpt of the line."""

    line: int
    column: int
    excerpt: str


class SourceText:
    """Reads the list's text around an offset in bytes, for excerpts. The file's position stays as it was."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        head = self._bytes(0, 4)
        self.encoding = "utf-8"
        self.declared: str | None = None
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
    # Credentials are removed first, since the cut may go through them. The NUL, which XML never has, marks the place.
    whole = without_credentials(f"{before}\0{after}")
    left, _, right = whole.partition("\0")
    room = MAX_EXCERPT // 2
    return list_excerpt((left if len(left) <= room else "…" + left[1 - room :]) + right)


def encoding_finding(source: SourceText) -> Finding:
    """For a list that is not in the encoding that it declares, or in an encoding that cannot be read."""
    declared = one_line(source.declared or "", 40)
    message = "The list is written in UTF-32, which cannot be read."
    if declared:
        message = f"The list says that its encoding is {declared}, but it cannot be read as such."
    return Finding(
        "list.encoding",
        message,
        "Save the list as UTF-8, and say so in its first line, or leave that line out.",
        line=1,
    )


def syntax_finding(error: expat.ExpatError, offset: int, source: SourceText, inside: str, entries: int) -> Finding:
    """The finding for a syntax error at the byte `offset`, `inside` an element ("" for none), after so many entries."""
    code = error.code
    before, after = source.line(max(offset, 0))
    place = ListPlace(error.lineno, error.offset + 1, excerpt_around(before, after))
    if code in _ENCODING_CODES or source.encoding == "utf-32":
        return encoding_finding(source)
    if code in _TRUNCATED_CODES:
        return _truncated(place, entries)
    if code == _code(errors.XML_ERROR_INVALID_TOKEN) and offset <= len(codecs.BOM_UTF8):
        code = _code(errors.XML_ERROR_SYNTAX)
    if code == _code(errors.XML_ERROR_INVALID_TOKEN):
        return _invalid_token(source, offset, before, inside, place)
    if code == _code(errors.XML_ERROR_UNDEFINED_ENTITY):
        return _undefined_entity(after, inside, place)
    if code == _code(errors.XML_ERROR_TAG_MISMATCH):
        return _mismatch(after, inside, place)
    if code == _code(errors.XML_ERROR_UNBOUND_PREFIX):
        return _unbound(after, place)
    message, remedy = _PLAIN.get(
        code,
        (f"The list is not well-formed XML here: {expat.ErrorString(code)}.", "Correct this line."),
    )
    return _not_well_formed(message, remedy, place)


_PLAIN = {
    _code(errors.XML_ERROR_SYNTAX): (
        "The list does not begin as XML: other text comes first.",
        "Have the list begin with its XML declaration or with its root element; the text shown may be an error message "
        "of the program that writes the list.",
    ),
    _code(errors.XML_ERROR_MISPLACED_XML_PI): (
        "Something stands before `<?xml`, if only a space or an empty line.",
        "Let `<?xml` be the first characters of the list.",
    ),
    _code(errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT): (
        "Something follows after the end of the list's root element.",
        "Let the list end with the end tag of `harvestList`, and give it only one such element.",
    ),
    _code(errors.XML_ERROR_DUPLICATE_ATTRIBUTE): (
        "An element has the same attribute twice.",
        "Take one of them out.",
    ),
    _code(errors.XML_ERROR_BAD_CHAR_REF): (
        "A character reference (`&#…;`) names a character that XML does not allow.",
        "Take it out, or write the number of the character that is meant.",
    ),
}


def _not_well_formed(message: str, remedy: str, place: ListPlace) -> Finding:
    return _finding_at("list.not-well-formed", message, remedy, place)


def _finding_at(rule: str, message: str, remedy: str, place: ListPlace) -> Finding:
    return Finding(rule, message, remedy, line=place.line, column=place.column, excerpt=place.excerpt)


def _truncated(place: ListPlace, entries: int) -> Finding:
    return _finding_at(
        "list.truncated",
        f"The list breaks off here, after {entries:,} whole {'entry' if entries == 1 else 'entries'}: "
        "its root element is not closed.",
        "Look whether the program that writes the list stopped half-way, or whether an end tag is missing.",
        place,
    )


def _invalid_token(source: SourceText, offset: int, before: str, inside: str, place: ListPlace) -> Finding:
    byte = source.byte(offset)
    ampersand = _BARE_AMPERSAND.search(before)
    if byte is not None and byte >= 0x80 and source.encoding == "utf-8":
        said = "says that it is UTF-8" if source.declared else "does not name its encoding, so it is read as UTF-8"
        return _finding_at(
            "list.encoding",
            f"The list {said}, but the byte 0x{byte:02X} in this line is not UTF-8 (it may be Latin-1).",
            _ENCODING_REMEDY,
            place,
        )
    if ampersand:
        return _ampersand(inside, replace(place, column=place.column - len(ampersand.group())))
    if byte is not None and byte < 32 and byte not in (9, 10, 13):
        return _not_well_formed(
            f"This line contains the character U+{byte:04X}, which XML does not allow.",
            "Take the character out.",
            place,
        )
    if before.endswith("<"):
        return _not_well_formed("`<` in a text must be written `&lt;`.", "Write `&lt;`.", place)
    return _not_well_formed(
        "The list is not well-formed XML here: this character cannot stand at this place.", "Correct this line.", place
    )


def _ampersand(inside: str, place: ListPlace) -> Finding:
    where = "a URL" if inside == "documentURL" else "a text"
    return _finding_at("list.ampersand", f"`&` in {where} must be written `&amp;`.", _AMPERSAND_REMEDY, place)


def _undefined_entity(after: str, inside: str, place: ListPlace) -> Finding:
    found = _ENTITY.match(after)
    entity = one_line(found.group() if found else "", 40)
    return entity_finding(entity, inside, place)


def entity_finding(entity: str, inside: str, place: ListPlace) -> Finding:
    """For an `entity` that is not one of XML's own five, in the element `inside` ("" for none)."""
    remedy = "XML knows `&amp;`, `&lt;`, `&gt;`, `&quot;` and `&apos;` only; write the character itself."
    if inside == "documentURL":
        remedy = f"If it belongs to the URL, write `&amp;` for its `&`: `&amp;{entity[1:]}`. {remedy}"
    return _finding_at("list.entity", f"`{entity}` means nothing in XML.", remedy, place)


def _mismatch(after: str, inside: str, place: ListPlace) -> Finding:
    found = _TAG.match(after)
    tag = one_line(found.group() if found else "", 60)
    opened = f"`{inside}`, which is still open" if inside else "the element that is still open"
    return _not_well_formed(
        f"The end tag `</{tag}>` does not belong to {opened}.",
        "Close every element with an end tag of exactly its own name, the innermost first.",
        place,
    )


def _unbound(after: str, place: ListPlace) -> Finding:
    found = _PREFIX.match(after)
    prefix = one_line(found.group(1), 40) if found else "hrv"
    return _finding_at(
        "list.namespace",
        f"The prefix `{prefix}` is used here, but nothing says what it stands for.",
        f'If it is the list\'s prefix, begin it with <{prefix}:harvestList xmlns:{prefix}="{LIST_NAMESPACE}">.',
        place,
    )
