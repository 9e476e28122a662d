"""The bytes of an answer that is not well-formed, and where in them nothing is a tag; in bounded memory.

An answer that is on a disk is mapped, not read. What was looked at of it is given back now and then: it would count as
memory of the process as long as the system has no other use for it.

Everything is looked for a piece at a time, so that other threads have their turn, and so that no pattern sees more than
a piece: a tag of more than LONGEST_TAG bytes is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import UnsupportedOperation
from mmap import ACCESS_READ, MADV_DONTNEED, PAGESIZE, mmap
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

Data = bytes | mmap

IN_MEMORY = 8_388_608
"""Bytes of an answer; a longer one is on the disk."""

WINDOW = 16_777_216
"""Bytes of a file that are looked at before the memory that they take is given back."""

LONGEST_TAG = 65_536
_PIECE = 262_144

_NO_TAGS = re.compile(
    rb"<!--(?:[^-]|-(?!-)){0,4096}+(?P<comment>-->)?"
    rb"|<!\[CDATA\[(?:[^<\]]|\](?!\]>)|<(?!!\[CDATA\[)){0,4096}+(?P<section>\]\]>)?"
    rb"|<\?(?:[^<?]|\?(?!>)|<(?!\?)){0,4096}+(?P<instruction>\?>)?"
)
"""Comments, CDATA sections and processing instructions; of one that is long, or has no end, the beginning."""

_OPENINGS = (b"<!--", b"<![CDATA[", b"<?")

_MOST_SECTIONS = 1_000_000
"""Comments, CDATA sections and instructions that are looked at, in some five seconds; each tag behind them counts."""


def spool() -> BinaryIO:
    """A file for an answer; up to IN_MEMORY bytes of it are in memory."""
    return cast(BinaryIO, SpooledTemporaryFile(max_size=IN_MEMORY, prefix="metaharvest-"))


def bytes_of(file: BinaryIO) -> Data:
    """All of a file, which is not read into memory if it is on a disk."""
    try:
        number = file.fileno()
    except UnsupportedOperation:
        file.seek(0)
        return file.read()
    file.flush()
    return mmap(number, 0, access=ACCESS_READ)


def give_back(data: Data, upto: int) -> None:
    """Have the system take the memory of what was looked at: that is read from the file anew if it is wanted again."""
    if isinstance(data, mmap):
        data.madvise(MADV_DONTNEED, 0, upto - upto % PAGESIZE)


def search(pattern: re.Pattern[bytes], data: Data, begin: int, end: int) -> re.Match[bytes] | None:
    """What matches the pattern first between there, if it has at most LONGEST_TAG bytes."""
    given_back = begin
    for start in range(begin, end, _PIECE):
        until = min(start + _PIECE, end)
        found = pattern.search(data, start, min(until + LONGEST_TAG, end))
        if found is not None and found.start() < until:
            return found
        if until - given_back > WINDOW:
            give_back(data, until)
            given_back = until
    return None


def find(data: Data, text: bytes, begin: int, end: int) -> int:
    """Where this text is first between there; -1: nowhere."""
    given_back = begin
    for start in range(begin, end, _PIECE):
        until = min(start + _PIECE, end)
        found = data.find(text, start, min(until + len(text) - 1, end))
        if found >= 0:
            return found
        if until - given_back > WINDOW:
            give_back(data, until)
            given_back = until
    return -1


def without_tags(data: Data) -> Iterator[tuple[int, int]]:
    """Where comments, CDATA sections and processing instructions are: what looks like a tag in them is none.

    No comment has two hyphens in it: what would be one with them has lost its end, and would hide the records behind
    it. The same is so of a section or an instruction with the beginning of another one in it.
    """
    at = given_back = sections = 0
    while at < len(data) and sections < _MOST_SECTIONS:
        until = min(at + _PIECE, len(data))
        for found in _NO_TAGS.finditer(data, at, min(until + LONGEST_TAG, len(data))):
            begin = found.start()
            if begin >= until:
                at = max(at, until)
                break
            sections += 1
            end = found.end() if found.lastgroup else _end_of(found[0], begin, data)
            at = begin + 1 if end is None else end
            if end is not None:
                yield begin, end
            if at != found.end():
                break
        else:
            at = max(at, until)
        if at - given_back > WINDOW:
            give_back(data, at)
            given_back = at


def _end_of(beginning: bytes, at: int, data: Data) -> int | None:
    """Where the comment, section or instruction ends that begins there; None if its end is missing."""
    opening = next(each for each in _OPENINGS if beginning.startswith(each))
    at += len(opening)
    if opening == b"<!--":
        end = find(data, b"--", at, len(data))
        return end + 3 if end >= 0 and data[end + 2 : end + 3] == b">" else None
    closing = b"]]>" if opening == b"<![CDATA[" else b"?>"
    another = find(data, opening, at, len(data))
    end = find(data, closing, at, len(data) if another < 0 else another)
    return end + len(closing) if end >= 0 else None


def hidden_tags(data: Data) -> list[tuple[int, int]]:
    """Where comments, CDATA sections and processing instructions are that have a second `<`."""
    found = []
    for begin, end in without_tags(data):
        is_short = end - begin <= _PIECE
        if (data.find(b"<", begin + 1, end) if is_short else find(data, b"<", begin + 1, end)) >= 0:
            found.append((begin, end))
    return found


def blanked(text: bytes) -> bytes:
    """As long a text, in which all is blank where tags are none."""
    shown = bytearray(text)
    for begin, end in without_tags(text):
        shown[begin:end] = b" " * (end - begin)
    return bytes(shown)
