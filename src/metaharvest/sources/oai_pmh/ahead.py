"""The next token of a list, from the end of an answer that has not been read yet.

So the repository has the next question while this answer is read, and what it brought is stored. What is found is a
guess: it counts if the token that is read turns out to be this one. Where there may be more to it than its characters
say, none is made.
"""

from __future__ import annotations

import re
from os import SEEK_END
from typing import BinaryIO
from xml.sax.saxutils import unescape

_TAIL = 4096
_END = re.compile(
    rb"<(?P<name>(?:[A-Za-z][\w.-]*:)?resumptionToken)(?:\s[^<>]*)?>"
    rb"(?P<token>(?:[ \t\r\n!-%'-;=?-~]|&(?:amp|lt|gt|quot|apos);)+)</(?P=name)\s*>"
    rb"\s*(?:</(?:[A-Za-z][\w.-]*:)?(?:ListRecords|OAI-PMH)\s*>\s*){1,2}\Z"
)
_QUOTES = {"&quot;": '"', "&apos;": "'"}


def next_token(file: BinaryIO) -> str:
    """The token with which the answer in `file` seems to end; empty if it does not. The file is at its start then."""
    size = file.seek(0, SEEK_END)
    file.seek(max(0, size - _TAIL))
    found = _END.search(file.read())
    file.seek(0)
    return unescape(found["token"].decode("ascii"), _QUOTES).strip() if found else ""
