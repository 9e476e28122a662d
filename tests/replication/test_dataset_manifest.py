"""The manifest of a dataset, as a value and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from metaharvest.replication.dataset.manifest import DatasetFile, Manifest, as_json, from_json
from support import schemas

EMPTY = Manifest("jsonl", 40, 1000)
FIRST = DatasetFile("part-00001.jsonl.gz", 3, 1, 41, 47, 900, "0" * 64)
SECOND = DatasetFile("part-00002.jsonl.gz", 2, 0, 48, 50, 600, "1" * 64)


def test_it_adds_up_its_files() -> None:
    manifest = EMPTY.with_file(FIRST).with_file(SECOND)
    assert (manifest.documents, manifest.deleted) == (5, 1)
    assert (manifest.first_change_seq, manifest.last_change_seq) == (41, 50)
    assert (EMPTY.first_change_seq, EMPTY.last_change_seq) == (None, 40)


@pytest.mark.parametrize("manifest", [EMPTY, EMPTY.with_file(FIRST)])
def test_its_json_is_read_again(manifest: Manifest) -> None:
    written = as_json(manifest)
    assert schemas.problems("dataset-manifest", json.loads(written)) == []
    assert from_json(written) == manifest
    complete = as_json(replace(manifest, created_at=datetime(2026, 11, 20, tzinfo=UTC)))
    assert schemas.problems("dataset-manifest", json.loads(complete)) == []


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"format_version": 2}', b"\xff", as_json(EMPTY)[:-9]])
def test_nothing_else_is_a_manifest(content: bytes) -> None:
    with pytest.raises(ValueError):
        from_json(content)


def test_a_command_goes_on_only_with_its_own() -> None:
    assert EMPTY.with_file(FIRST).is_begun_like(EMPTY)
    for other in (replace(EMPTY, format="xml"), replace(EMPTY, since=0), replace(EMPTY, documents_per_file=1)):
        assert not EMPTY.is_begun_like(other)
