"""Which values libxml2 refuses although the standard's validator, Xerces, accepts them: URLs, and dates with blanks.

A document that the standard accepts may not be lost, so these are no errors.

URLs (xs:anyURI): XML Schema defers to XLink and RFC 2396 with RFC 2732. Xerces percent-encodes what may not stand in a
URI, blanks and letters beyond ASCII among it, and checks the syntax of the rest: the scheme, the characters of each
part, the escapes. The authority may be any registry's name, so that an empty port or one that is no number is right.
libxml2 goes by RFC 3986, which knows numbers only, and `[` nowhere but around an address.

Dates and times: XML Schema ignores white space around them, which libxml2 does within a union of types only.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lxml import etree

_ENCODED = r"\x00-\x20<>\"{}|\\^`\x7f-\U0010ffff"
"""What Xerces percent-encodes before it looks at the rest."""

_PATH = rf"(?:[A-Za-z0-9\-_.!~*'();/:@&=+$,{_ENCODED}]|%[0-9A-Fa-f]{{2}})*+"
_REST = rf"(?:[A-Za-z0-9\-_.!~*'();/?:@&=+$,\[\]{_ENCODED}]|%[0-9A-Fa-f]{{2}})*+"
_OPAQUE = rf"(?:[A-Za-z0-9\-_.!~*'();/:@&=+$,\[\]{_ENCODED}]|%[0-9A-Fa-f]{{2}})*+"
_URI = re.compile(
    rf"(?:[A-Za-z][A-Za-z0-9+.\-]*:(?![#]|\Z)(?:(?=/|\?){_PATH}|(?![/?]){_OPAQUE})|(?![^/?#]*:){_PATH})"
    rf"(?:\?{_REST})?(?:\#{_REST})?"
)
_REFUSED = re.compile(
    r"Element '[^']*'(?:, attribute '[^']*')?: '(.*)' "
    r"is not a valid value of the atomic type 'xs:(anyURI|date|time)'\.",
    re.DOTALL,
)
_WHITE = " \t\r\n"


def is_url(value: str) -> bool:
    """True where `value` is a URL or a relative one by the standard, white space folded."""
    return value.strip(_WHITE) == "" or _URI.fullmatch(" ".join(value.split())) is not None


def url_in(message: str) -> str | None:
    """The URL that libxml2's `message` refuses and the standard accepts; None where the message says something else."""
    refused = _REFUSED.fullmatch(message.strip())
    return refused[1] if refused and refused[2] == "anyURI" and is_url(refused[1]) else None


def is_right_date(message: str) -> bool:
    """True where libxml2's `message` refuses a date or time that is right but for the white space around it."""
    refused = _REFUSED.fullmatch(message.strip())
    if refused is None or refused[2] == "anyURI" or refused[1] == refused[1].strip(_WHITE):
        return False
    element = etree.Element(refused[2])
    element.text = refused[1].strip(_WHITE)
    return bool(_dates().validate(element))


@cache
def _dates() -> Any:
    """A schema of the elements `date` and `time`, for verdicts alone; those may be asked for by several threads."""
    return etree.XMLSchema(
        etree.XML(
            '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="date" type="xs:date"/>'
            '<xs:element name="time" type="xs:time"/></xs:schema>'
        )
    )
