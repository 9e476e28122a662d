"""No answer is parsed or compared in the event loop: its thread takes little of the processor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.hostile_oai import HostileRepository, answer, record, records
from support.oai_harvest import get, harvest

SECONDS = 0.5
"""Processor time of the event loop; each of these answers takes two or three times as long to read or to compare."""


@contextmanager
def little_in_loop() -> Iterator[None]:
    began = time.thread_time()
    yield
    took = time.thread_time() - began
    assert took < SECONDS, took


@pytest.mark.slow
def test_a_record_by_itself_is_read_beside_the_loop() -> None:
    with HostileRepository(GetRecord=answer("GetRecord", record(1) + b"<!--" * 200_000)) as repository:
        document = harvest(repository.base_url).records[0].document
        with little_in_loop():
            fetched = get(repository.base_url, document)
    assert b"Frogs 1" in fetched.content


@pytest.mark.slow
def test_sets_are_compared_beside_the_loop() -> None:
    sets = answer("ListSets", b"".join(b"<set><setSpec>%d</setSpec></set>" % number for number in range(90_000)))
    with HostileRepository(ListSets=sets, ListRecords=records(record(1))) as repository, little_in_loop():
        harvested = harvest(repository.base_url, set_spec="89999")
    assert harvested.identifiers == ["oai:hostile:1"]
