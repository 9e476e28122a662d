"""A long answer is searched without taking the memory for all of it."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from metaharvest.sources.oai_pmh.mapped_file import WINDOW, bytes_of, matches

TAG = re.compile(rb"<record>")


@pytest.mark.parametrize("before", [0, 1, 2, 3, 7, 8, 9, 30])
def test_a_match_on_the_border_of_two_pieces_is_found_once(before: int) -> None:
    start = WINDOW - before
    data = b"." * start + b"<record>" + b"." * before
    assert [each.start() for each in matches(TAG, data, 0, len(data))] == [start]
    assert not list(matches(TAG, data, start + 1, len(data)))
    assert not list(matches(TAG, data, 0, start + 7))


STATUS = Path("/proc/self/status")


def mapped_kilobytes() -> int:
    """How much memory of this process is that of files."""
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("RssFile:"))


@pytest.mark.skipif(not STATUS.exists(), reason="Only Linux tells how much memory is that of files.")
def test_the_memory_of_what_was_searched_is_given_back() -> None:
    with tempfile.TemporaryFile() as file:
        for _ in range(12):
            file.write(b"." * WINDOW + b"<record>")
        data = bytes_of(cast(BinaryIO, file))
        before = mapped_kilobytes()
        found = [mapped_kilobytes() - before for _ in matches(TAG, data, 0, len(data))]
        assert len(found) == 12
        assert max(found) < 3 * WINDOW // 1024
        assert data[:10] == b"." * 10
