"""Finds values that libxml2 refuses although Xerces, the standard's validator, accepts them: some URLs and dates.

A document that the standard accepts must not be refused, so these values are no errors.

URLs (xs:anyURI): XML Schema refers to XLink and to RFC 2396 with RFC 2732. Xerces percent-encodes the characters that a
URI may not contain, such as blanks and non-ASCII letters, and then checks the syntax: the scheme, the characters of
each part, the escapes. RFC 2396 allows names of any registry as authority, so an empty port, or a port that is not a
number, is accepted. libxml2 follows RFC 3986, which allows only numbers as port, and `[` only around an address.

Dates, times and durations: XML Schema ignores white space around them; libxml2 does so only within a union of types.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lxml import etree

_ENCODED = r"\x00-\x20<>\"{}|\\^`\x7f-\U0010ffff"
"""The characters that Xerces percent-encodes before it checks the syntax."""

_PATH = rf"(?:[A-Za-z0-9\-_.!~*'();/:@&=+$,{_ENCODED}]|%[0-9A-Fa-f]{{2}}|(?!))*+"
_REST = rf"(?:[A-Za-z0-9\-_.!~*'();/?:@&=+$,\[\]{_ENCODED}]|%[0-9A-Fa-f]{{2}}|(?!))*+"
_OPAQUE = rf"(?:[A-Za-z0-9\-_.!~*'();/:@&=+$,\[\]{_ENCODED}]|%[0-9A-Fa-f]{{2}}|(?!))*+"
_URI = (
    rf"(?:[A-Za-z][A-Za-z0-9+.\-]*:(?![#]|\Z)(?:(?=/|\?){_PATH}|(?![/?]){_OPAQUE})|(?![^/?#]*:){_PATH})"
    rf"(?:\?{_REST})?(?:\#{_REST})?"
)
_DATES = ("date", "time", "dateTime", "gYear", "gYearMonth", "gMonthDay", "gDay", "gMonth", "duration")
_REFUSED = re.compile(
    r"Element '[^']*'(?:, attribute '[^']*')?: '(.*)' "
    rf"is not a valid value of the atomic type 'xs:(anyURI|{'|'.join(_DATES)})'\.",
    re.DOTALL,
)
_WHITE = " \t\r\n"


def is_url(value: str) -> bool:
    """True if `value`, with white space collapsed, is an absolute or relative URL by the standard."""
    # White space within it need not be collapsed: one blank is encoded like many.
    stripped = value.strip(_WHITE)
    return stripped == "" or _uri().fullmatch(stripped) is not None


def accepted_url(message: str) -> str | None:
    """The URL that libxml2's `message` refuses and the standard accepts; None for any other message."""
    refused = _REFUSED.fullmatch(message.strip())
    return refused[1] if refused and refused[2] == "anyURI" and is_url(refused[1]) else None


def is_accepted_date(message: str) -> bool:
    """True if libxml2's `message` refuses a date or time only because of the white space around it."""
    refused = _REFUSED.fullmatch(message.strip())
    if refused is None or refused[2] == "anyURI" or refused[1] == refused[1].strip(_WHITE):
        return False
    element = etree.Element(refused[2])
    element.text = refused[1].strip(_WHITE)
    return bool(_dates().validate(element))


@cache
def _uri() -> re.Pattern[str]:
    """_URI, compiled when it is first needed, since that takes 15 ms."""
    # bounded: it is only matched with whole values, and its parts give nothing back
    return re.compile(_URI)


@cache
def _dates() -> Any:
    """A schema with an element for each of _DATES. Several threads may use it: its error log is not read."""
    elements = "".join(f'<xs:element name="{name}" type="xs:{name}"/>' for name in _DATES)
    return etree.XMLSchema(etree.XML(f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{elements}</xs:schema>'))
