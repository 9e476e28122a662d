"""The file of an answer: in memory if the answer is short, otherwise on the disk and mapped to be searched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import UnsupportedOperation
from mmap import ACCESS_READ, MADV_DONTNEED, PAGESIZE, mmap
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

Data = bytes | mmap

IN_MEMORY = 2_097_152
"""Bytes of an answer; a longer one is on the disk."""

LONGEST_TAG = 65_536
"""Bytes of a tag: a longer one is not found."""

_PIECE = 262_144
WINDOW = 4_194_304
"""Bytes of a mapped file that are searched before their memory is released."""


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


def release(data: Data, upto: int) -> None:
    """Give the memory of what was searched back to the system, which reads the file again if that is needed."""
    if isinstance(data, mmap):
        data.madvise(MADV_DONTNEED, 0, upto - upto % PAGESIZE)


def matches(pattern: re.Pattern[bytes], data: Data, begin: int, end: int) -> Iterator[re.Match[bytes]]:
    """What matches the pattern between there. A match has at most LONGEST_TAG bytes."""
    released = begin
    for start in range(begin, end, _PIECE):
        until = min(start + _PIECE, end)
        for found in pattern.finditer(data, start, min(until + LONGEST_TAG, end)):
            if found.start() >= until:
                break
            yield found
        if until - released >= WINDOW:
            release(data, until)
            released = until
