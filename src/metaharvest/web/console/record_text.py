"""A stored record as text, and the difference between two revisions. Pure, and bounded in time and space."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import islice

from metaharvest.model.values import frozen
from metaharvest.text import clean

MOST_CHARACTERS = 500_000
"""The characters of a record that a page shows."""

MOST_LINES = 3_000
"""The lines of each revision that are compared: difflib takes the square of them, at the worst."""

_MOST_SHOWN = 2_000
_LONGEST_LINE = 2_000
_FEW_LINES = 5
_ENCODING = re.compile(rb"""<\?xml[^>]{0,100}encoding=["']([A-Za-z0-9._-]{1,40})["']""")
_BETWEEN_TAGS = re.compile(r">\s*<")
_KINDS = {"+": "added", "-": "removed", "@": "place"}


@frozen
class RecordText:
    """The text; `is_whole` is false if the record is longer."""

    text: str
    is_whole: bool


@frozen
class DifferenceLine:
    """A line of a difference; `kind` is added, removed, place (where the next lines are), or same."""

    kind: str
    text: str


@frozen
class Difference:
    """The lines that differ, with some lines around them; `is_whole` is false if only the first part was compared."""

    lines: tuple[DifferenceLine, ...]
    is_whole: bool


def record_text(content: bytes) -> RecordText:
    """The bytes as text in their own encoding; invalid bytes become replacement characters."""
    # A character has at most four bytes.
    text = _decoded(content[: 4 * MOST_CHARACTERS])
    is_whole = len(text) <= MOST_CHARACTERS and len(content) <= 4 * MOST_CHARACTERS
    return RecordText(clean(text[:MOST_CHARACTERS]), is_whole)


def difference(before: bytes, after: bytes) -> Difference:
    """The difference between two revisions, line by line. A record without lines is cut between its elements."""
    old, new = record_text(before), record_text(after)
    old_lines, new_lines = _lines(old.text), _lines(new.text)
    is_whole = old.is_whole and new.is_whole and max(len(old_lines), len(new_lines)) <= MOST_LINES
    found = list(islice(_differing(old_lines[:MOST_LINES], new_lines[:MOST_LINES]), _MOST_SHOWN + 1))
    return Difference(tuple(found[:_MOST_SHOWN]), is_whole and len(found) <= _MOST_SHOWN)


def _differing(old: Sequence[str], new: Sequence[str]) -> Iterator[DifferenceLine]:
    for line in islice(unified_diff(old, new, n=3, lineterm=""), 2, None):
        yield DifferenceLine(_KINDS.get(line[:1], "same"), line)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if len(lines) <= _FEW_LINES:
        lines = _BETWEEN_TAGS.sub(">\n<", text).split("\n")
    return [line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "…" for line in lines]


def _decoded(content: bytes) -> str:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    declared = _ENCODING.match(content)
    try:
        return content.decode(declared[1].decode() if declared else "utf-8", "replace")
    except (LookupError, UnicodeError):
        return content.decode("utf-8", "replace")
