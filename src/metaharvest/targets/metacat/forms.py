"""Forms that carry a document to Metacat so that its bytes stay the same. Pure functions.

Metacat reads a form as text, in the encoding that the form's Content-Type names, and stores that text in the encoding
that the document's own XML declaration names. The form therefore has the document's exact bytes and says in which
encoding they are. That works for every encoding in which ASCII is written as ASCII; any other document would change its
bytes, and is not sent.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from urllib.parse import urlencode

_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?\bencoding\s*=\s*[\"']([A-Za-z][A-Za-z0-9._\-]{0,40})[\"']")
_ASCII = bytes(range(128))
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE, b"<\0", b"\0<")


class Untransportable(ValueError):
    """A document that would change on the way; the message is the end of a sentence about it."""


def charset_of(content: bytes) -> str:
    """The encoding to name in the form's Content-Type. Raises Untransportable."""
    if content.startswith(_WIDE):
        raise Untransportable("it is in UTF-16 or UTF-32")
    found = _DECLARED.match(content.removeprefix(codecs.BOM_UTF8))
    declared = "UTF-8" if found is None else found[1].decode("ascii")
    try:
        same = _ASCII.decode(declared) == _ASCII.decode() and content.decode(declared).encode(declared) == content
    except LookupError:
        raise Untransportable(f"its encoding {declared} is not known") from None
    except ValueError:
        same = False
    if not same:
        raise Untransportable(f"it is not text in {declared}{', the encoding that it names' if found else ''}")
    return "UTF-8" if content.isascii() or codecs.lookup(declared) == codecs.lookup("UTF-8") else declared


def form(fields: Sequence[tuple[str, str | bytes]], charset: str = "UTF-8") -> tuple[bytes, dict[str, str]]:
    """The body of a POST with these fields, bytes as they are, and its headers."""
    headers = {"Content-Type": f"application/x-www-form-urlencoded; charset={charset}"}
    return urlencode(fields).encode("ascii"), headers
