"""Makes text from outside safe to show: in a log row, a mail, a terminal, a table."""

from __future__ import annotations

import re
import unicodedata

_KEPT = "\n\t\u00ad\u200c\u200d"
_USERINFO = re.compile(r"(?<=://)[^/?#]*@")
_USERINFO_IN_TEXT = re.compile(r"(?<=://)(?!\[)(?:[^/?#\s<>\"']*@|[^/?#@:\s<>\"']*+:(?!\d*[/?#])[^\s<>\"']*+)")
"""The second alternative, up to the last @, is for a password in which a `/`, `?` or `#` is not encoded as it must be.

It matches possessively, with or without an @, so that the time is linear: a server can send a text with many `://`.
"""


def clean(text: str) -> str:
    """`text` without control and formatting characters (each becomes U+FFFD).

    Line breaks and tabs stay, and the joiners and the soft hyphen that some languages are written with.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in _KEPT or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else "\ufffd"
        for c in text.replace("\r\n", "\n")
    )


def one_line(text: str, limit: int = 300) -> str:
    """`text` cleaned, white space folded; a text of more than `limit` characters is cut and ends with an ellipsis."""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text and text == text.strip(" "):
        return text
    folded = " ".join(clean(text).split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"


def shown_url(url: str) -> str:
    """`url` on one line, without user name and password."""
    return one_line(without_credentials(_USERINFO.sub("", url)) if "@" in url else url, 2000)


def without_credentials(text: str) -> str:
    """`text` without the user names and passwords of URLs in it."""
    return _USERINFO_IN_TEXT.sub(lambda found: found[0].rpartition("@")[2], text)
