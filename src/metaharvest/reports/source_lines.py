"""The line of a file that a finding is about, with the place in it, as it is shown under the finding."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from pathlib import Path

from metaharvest.config.files import read_file
from metaharvest.model import Finding
from metaharvest.model.values import frozen
from metaharvest.text import clean, without_credentials
from metaharvest.validation.wellformed import lines_of

_MOST_BYTES = 52_428_800
_FILES = 4


@frozen
class SourceLine:
    """One line, or the part of it around the place; `before` is the width of its text up to the place, in columns."""

    number: int
    text: str
    before: int


def source_line(path: Path | None, finding: Finding, room: int = 120) -> SourceLine | None:
    """The line of the file that a finding is about, cut to `room` characters around the place.

    Without a column, the place of the excerpt is used. None if there is no such place, or the file cannot be read.
    """
    line = finding.line
    if path is None or line is None:
        return None
    try:
        found = path.stat()
        lines = _lines(path, found.st_mtime_ns, found.st_size)
    except OSError:
        return None
    if not 1 <= line <= len(lines):
        return None
    text = lines[line - 1].rstrip("\r")
    column = finding.column or (text.find(finding.excerpt) + 1 if finding.excerpt else 0)
    if not 1 <= column <= len(text) + 1:
        return None
    start = 0 if len(text) <= room else max(0, column - 1 - room // 2)
    end = start + room
    left = ("…" if start else "") + text[start : column - 1]
    right = text[column - 1 : end] + ("…" if end < len(text) else "")
    if "@" in text and without_credentials(text) != text:
        return None
    # As many characters as before: characters without a width, or control characters, become visible ones.
    left, right = (clean(part.replace("\t", " ")) for part in (left, right))
    return SourceLine(line, (left + right).rstrip(), sum(map(_width, left)))


def _width(character: str) -> int:
    """The number of columns of a terminal that a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@lru_cache(maxsize=_FILES)
def _lines(path: Path, _changed: int, _size: int) -> list[str]:
    return lines_of(read_file(path, _MOST_BYTES))
