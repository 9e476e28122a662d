"""What in an answer is no tag is found wherever it is, and a long answer does not take the memory for all of it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from metaharvest.sources.oai_pmh.spooled import WINDOW, blanked, bytes_of, without_tags

HIDING = (b"<!-- <record> -->", b"<![CDATA[<record>]]>", b"<?php <record> ?>")


@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize("before", [0, 1, 2, 3, 5, 8, 9, 10, 17, 30])
def test_what_is_no_tag_is_found_on_the_border_of_two_windows(hiding: bytes, before: int) -> None:
    start = WINDOW - before
    data = b"." * start + hiding + b"<record>" + hiding
    assert list(without_tags(data)) == [(start, start + len(hiding)), (len(data) - len(hiding), len(data))]


def test_what_is_longer_than_a_window_is_found_once() -> None:
    data = b"<!--" + b"<record>" * (WINDOW // 4) + b"--><!-- a --><record>"
    assert [end - begin for begin, end in without_tags(data)] == [len(data) - len(b"<!-- a --><record>"), 10]


@pytest.mark.parametrize("unclosed", [b"<!-- ", b"<![CDATA[ ", b"<? "])
def test_what_has_lost_its_end_hides_nothing(unclosed: bytes) -> None:
    data = b"." * (WINDOW - 3) + unclosed + b"<record>" + b"<!-- a -->" + b"<![CDATA[ b ]]>" + b"<?c ?>"
    assert [data[begin:end] for begin, end in without_tags(data)] == [b"<!-- a -->", b"<![CDATA[ b ]]>", b"<?c ?>"]
    assert b"<record>" in blanked(data)


STATUS = Path("/proc/self/status")


def mapped_kilobytes() -> int:
    """How much memory of this process is that of files."""
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("RssFile:"))


@pytest.mark.skipif(not STATUS.exists(), reason="Only Linux tells how much memory is that of files.")
def test_the_memory_of_what_was_looked_at_is_given_back() -> None:
    with tempfile.TemporaryFile() as file:
        for _ in range(6):
            file.write(b"." * WINDOW)
        file.write(HIDING[0])
        data = bytes_of(cast(BinaryIO, file))
        before = mapped_kilobytes()
        most = 0
        for begin, end in without_tags(data):
            assert data[begin:end] == HIDING[0]
            most = max(most, mapped_kilobytes() - before)
        assert most < 2 * WINDOW // 1024
        assert data[:10] == b"." * 10
