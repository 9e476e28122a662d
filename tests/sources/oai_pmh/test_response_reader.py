"""Long and damaged answers are read in a process that can be ended: a limit costs that answer alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from metaharvest.model import OaiOptions
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh import response_reader
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.response_reader import ResponseReader
from metaharvest.sources.oai_pmh.responses import NotOaiResponse, Response
from support.hostile_oai import record, records

SOME = [record(number) for number in range(300)]
DAMAGED = records(*SOME, b"<!-- & --> & " + b"x" * 100_000)
COSTLY = records(*SOME, b"<!--" * 1_000_000)


@pytest.fixture
def reader() -> Iterator[ResponseReader]:
    with closing(ResponseReader()) as reader:
        yield reader


def maker() -> Records:
    return Records("https://r.example.org/oai", OaiOptions("r"))


def read(reader: ResponseReader, content: bytes) -> tuple[list[ListedRecord], Response, Records]:
    answer, made = Response("ListRecords"), maker()
    with TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        found = [each for part in reader.parts(file, answer, made) for each in part]
    return found, answer, made


def processes() -> list[int]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(each) for each in children if b"response_reader" in Path(f"/proc/{each}/cmdline").read_bytes()]


def test_a_damaged_answer_is_read_elsewhere_as_it_is_read_here(reader: ResponseReader) -> None:
    found, answer, made = read(reader, DAMAGED)
    (process,) = processes()
    here, answered_here = maker(), Response("ListRecords")
    assert found == list(response_reader.listed(BytesIO(DAMAGED), answered_here, here))
    assert (answer.is_ill_formed, answer.is_whole, len(found)) == (True, True, 300)
    assert (answer, made.odd.counted()) == (answered_here, here.odd.counted())
    assert read(reader, DAMAGED)[0] == found
    assert processes() == [process]


def test_a_well_formed_answer_needs_no_process(reader: ResponseReader) -> None:
    assert len(read(reader, records(*SOME))[0]) == 300
    assert processes() == []


@pytest.mark.slow
def test_an_answer_that_takes_too_long_is_given_up(reader: ResponseReader, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(response_reader, "SECONDS", 1.5)
        with pytest.raises(
            NotOaiResponse, match="To read the answer to ListRecords takes more than 2 seconds"
        ) as refused:
            read(reader, COSTLY)
    assert refused.value.finding.rule == "oai.too-large"
    assert processes() == []
    assert len(read(reader, DAMAGED)[0]) == 300


@pytest.mark.slow
def test_an_answer_that_takes_too_much_memory_is_given_up(
    reader: ResponseReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_reader, "MEMORY", 120_000_000)
    with pytest.raises(NotOaiResponse, match="takes more than the memory that it may take"):
        read(reader, records(record(1, metadata=b"<a>" + b"\x01" * 40_000_000 + b"</a>")))


def test_a_process_that_is_killed_costs_its_answer(reader: ResponseReader) -> None:
    with TemporaryFile() as file:
        file.write(records(*(record(number) for number in range(100_000)), b"&"))
        file.seek(0)
        parts = reader.parts(file, Response("ListRecords"), maker())
        assert len(next(parts)) == 200
        for process in processes():
            os.kill(process, signal.SIGKILL)
        with pytest.raises(NotOaiResponse, match="ended the process that reads it"):
            list(parts)
