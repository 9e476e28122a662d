"""The versions of the records of a long list: the last one of each record, in little memory."""

from __future__ import annotations

import tracemalloc

import pytest

from metaharvest.sources.oai_pmh import versions as module
from metaharvest.sources.oai_pmh.versions import Versions

MANY = 100_000


def test_has_the_last_version_of_each_record() -> None:
    versions = Versions()
    for key, version in ((1, 10), (1 + 2**40, 1), (-1, 20), (1, 30)):
        versions[key] = version
    assert [versions.get(key) for key in (1, 1 + 2**40, -1, 10)] == [30, 1, 20, None]
    assert sorted(versions) == [-1, 1, 1 + 2**40]
    assert len(versions) == 3
    assert -1 in versions
    assert 20 not in versions


@pytest.mark.slow
def test_keeps_the_version_of_each_record_when_the_buckets_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOAD_FACTOR", 1)
    versions = Versions()
    keys = [hash(f"oai:pages.example.org:{number}") for number in range(20_000)]
    for key in keys:
        versions[key] = key // 2
    versions[keys[0]] = 7
    assert [versions.get(key) for key in keys] == [7, *(key // 2 for key in keys[1:])]
    assert len(versions) == len(set(versions)) == len(keys)
    assert 20_001 not in versions


@pytest.mark.slow
def test_has_many_records_in_half_of_the_memory_of_a_dict() -> None:
    assert 2 * _memory_of(Versions()) < _memory_of({})


def _memory_of(versions: Versions | dict[int, int]) -> int:
    version = hash("2026-01-01T00:00:00Z")
    tracemalloc.start()
    try:
        for number in range(MANY):
            versions[hash(f"oai:pages.example.org:{number}")] = version
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return used
