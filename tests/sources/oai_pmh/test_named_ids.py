"""The document ids of a long answer: they are all there, in little memory."""

from __future__ import annotations

import tracemalloc
from sys import getsizeof

import pytest

from metaharvest.sources.oai_pmh import versions as module
from metaharvest.sources.oai_pmh.versions import NamedIds


def test_gives_the_ids_of_each_page_in_order_and_finds_them() -> None:
    named = NamedIds()
    named.add_page(["b", 'a"\n'])
    named.add_page({"b", "\u00e9\U0001f600"})
    assert list(named) == ['a"\n', "b", "b", "\u00e9\U0001f600"]
    assert all(each in named for each in named)
    assert "c" not in named


def test_finds_each_id_when_the_buckets_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOAD_FACTOR", 1)
    ids = [f"pages.example.org-record-{number}" for number in range(20_000)]
    named = NamedIds()
    for start in range(0, len(ids), 200):
        named.add_page(ids[start : start + 200])
    assert all(each in named for each in ids)
    assert "pages.example.org-record-20000" not in named


def test_has_many_ids_in_a_third_of_the_memory_of_a_set() -> None:
    ids = [f"pages.example.org-record-{number}" for number in range(20_000)]
    tracemalloc.start()
    try:
        named = NamedIds()
        for start in range(0, len(ids), 200):
            named.add_page(ids[start : start + 200])
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 3 * used < sum(map(getsizeof, ids)) + getsizeof(set(ids))
