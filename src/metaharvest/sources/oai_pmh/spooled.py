"""The bytes of an answer that is not well-formed, and where in them nothing is a tag; in bounded memory.

An answer that is on a disk is mapped, not read. What was looked at of it is given back now and then: it would count as
memory of the process as long as the system has no other use for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import UnsupportedOperation
from mmap import ACCESS_READ, MADV_DONTNEED, PAGESIZE, mmap
from typing import BinaryIO

Data = bytes | mmap

WINDOW = 16_777_216
"""Bytes of a file that are looked at before the memory that they take is given back."""

_NO_TAGS = re.compile(
    rb"<!--(?:[^-]|-(?!-))*+-->"
    rb"|<!\[CDATA\[(?:[^<\]]|\](?!\]>)|<(?!!\[CDATA\[))*+\]\]>"
    rb"|<\?(?:[^<?]|\?(?!>)|<(?!\?))*+\?>"
)
"""Comments, CDATA sections and processing instructions: what looks like a tag in them is none.

No comment has two hyphens in it: what would be one with them has lost its end, and would hide the records behind it.
"""

_NO_TAG = re.compile(rb"<!--|<!\[CDATA\[|<\?")
"""How those begin."""


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


def without_tags(data: Data) -> Iterator[re.Match[bytes]]:
    """What matches _NO_TAGS, one after the other; looked for in windows, as it may be long from one to the next."""
    at = 0
    for window in range(0, len(data), WINDOW):
        until, at = window + WINDOW, max(at, window)
        while (begin := _NO_TAG.search(data, at, until + len("<![CDATA[") - 1)) is not None:
            found = _NO_TAGS.match(data, begin.start())
            at = found.end() if found else begin.start() + 1
            if found:
                yield found
        give_back(data, min(until, len(data)))


def blanked(text: bytes) -> bytes:
    """As long a text, in which all is blank where tags are none."""
    return _NO_TAGS.sub(lambda found: b" " * len(found[0]), text)
