"""Decodes plain text whose charset is declared, marked, or only to be guessed."""

from __future__ import annotations

import codecs
import re

_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decoded(content: bytes, media_type: str = "") -> str:
    """The text: by its byte order mark, as UTF-8, by the charset of the media type, else as Windows-1252.

    Text that is valid UTF-8 and not ASCII is hardly ever anything else, whatever a server declares.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    declared = _CHARSET.search(media_type)
    for encoding in ("utf-8", declared[1] if declared else "", "cp1252"):
        try:
            return content.decode(encoding)
        except (LookupError, UnicodeError):
            continue
    return content.decode("latin-1")
