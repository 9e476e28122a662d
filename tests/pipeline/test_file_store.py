"""The store of files: in a folder, and in an object store."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from datetime import timedelta
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from metaharvest.errors import MetaharvestError, SettingsError
from metaharvest.monitoring.pipeline_checks import probe
from metaharvest.pipeline.file_store import FileStore, delete_settled, folder_errors, open_store, place_of

DIGEST = hashlib.sha256(b"one").hexdigest()


@pytest.fixture(params=["", "memory://alder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    return open_store(tmp_path, request.param)


def test_a_file_is_written_read_and_deleted(store: FileStore) -> None:
    assert not store.has(DIGEST)
    for content in (b"one", b"one"):
        store.put(DIGEST, content)
        assert store.read(DIGEST) == content
    assert [digest for digest, _ in store.unconfirmed()] == [DIGEST]
    for _ in range(2):
        store.confirm(DIGEST)
        assert list(store.unconfirmed()) == []
        store.delete(DIGEST)
        assert not store.has(DIGEST)
    with pytest.raises(FileNotFoundError):
        store.read(DIGEST)


def test_a_damaged_file_is_deleted_and_missing(store: FileStore) -> None:
    store.put(DIGEST, b"on")
    with pytest.raises(FileNotFoundError, match="was damaged and is deleted: its 2 bytes had another SHA-256"):
        store.read(DIGEST)
    assert not store.has(DIGEST)


def test_a_bucket_that_vanished_is_no_missing_file(tmp_path: Path) -> None:
    class Buckets(MemoryFileSystem):  # type: ignore[misc]
        protocol = "oci"
        cachable = False

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return f"/{path.removeprefix('oci://').strip('/')}"

    fsspec.register_implementation("oci", Buckets, clobber=True)
    files = open_store(tmp_path, "oci://oak/files")
    for ask in (files.has, files.read):
        with pytest.raises(OSError, match="there is no bucket oak") as raised:
            ask(DIGEST)
        assert raised.value.errno == errno.EIO
    Buckets().mkdir("/oak")
    assert not files.has(DIGEST)
    with pytest.raises(FileNotFoundError):
        files.read(DIGEST)


def test_a_file_that_is_written_at_this_moment_is_not_deleted(store: FileStore) -> None:
    store.put(DIGEST, b"one")
    assert not delete_settled(store, DIGEST, timedelta(hours=1))
    assert not delete_settled(store, DIGEST)
    assert store.has(DIGEST)
    assert delete_settled(store, DIGEST, timedelta())
    store.put(DIGEST, b"one")
    store.confirm(DIGEST)
    assert delete_settled(store, DIGEST)
    assert not store.has(DIGEST)


def test_the_place_is_the_digest(tmp_path: Path) -> None:
    open_store(tmp_path).put(DIGEST, b"one")
    assert (tmp_path / "files" / DIGEST[:2] / DIGEST[2:4] / DIGEST).read_bytes() == b"one"
    for wrong in ("../../etc/passwd", DIGEST.upper(), ""):
        with pytest.raises(ValueError, match="no SHA-256"):
            place_of(wrong)


def test_files_of_others_among_the_notes_stay(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(DIGEST, b"one")
    others = tmp_path / "files" / "new" / ".nfs000000000b1c2d3e00000001"  # an NFS client keeps an open file so
    others.write_bytes(b"")
    assert [digest for digest, _ in store.unconfirmed()] == [DIGEST]
    assert others.exists()


def test_a_part_that_was_left_is_deleted(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(DIGEST, b"one")
    left = tmp_path / "files" / "new" / "part-x"
    left.write_bytes(b"on")
    assert [digest for digest, _ in store.unconfirmed()] == [DIGEST]
    assert left.exists()
    os.utime(left, (time.time() - 7200,) * 2)
    list(store.unconfirmed())
    assert not left.exists()


def test_a_url_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no-such-store"):
        open_store(tmp_path, "no-such-store://a/b")


def test_an_object_store_that_is_away_says_so(tmp_path: Path) -> None:
    class Away(MemoryFileSystem):  # type: ignore[misc]
        protocol = "away"
        cachable = False

        def _fail(self, *_arguments: object, **_options: object) -> None:
            raise RuntimeError("the server does not answer")

        cat_file = pipe_file = exists = rm_file = ls = _fail

    fsspec.register_implementation("away", Away, clobber=True)
    files = open_store(tmp_path, "away://bucket/files")
    digest = "a" * 64
    calls = (lambda: files.put(digest, b"x"), lambda: files.read(digest), lambda: files.has(digest))
    more = (lambda: files.delete(digest), lambda: list(files.unconfirmed()), lambda: files.confirm(digest))
    for call in (*calls, *more):
        with pytest.raises(OSError, match="the server does not answer") as raised:
            call()
        assert raised.value.errno == errno.EIO
    sentence = r"cannot use away://bucket/files \(\[pipeline\] files\): the store says: .* Check the server, the bucket"
    with pytest.raises(MetaharvestError, match=sentence), folder_errors(tmp_path):
        files.has(digest)


def test_a_key_that_may_only_read_is_found(tmp_path: Path) -> None:
    class ReadOnly(MemoryFileSystem):  # type: ignore[misc]
        protocol = "readonly"
        cachable = False

        def pipe_file(self, *_arguments: object, **_options: object) -> None:
            raise PermissionError("Access Denied")

    fsspec.register_implementation("readonly", ReadOnly, clobber=True)
    with pytest.raises(OSError, match="the store says: Access Denied"):
        probe(open_store(tmp_path, "readonly://bucket/files"))


def test_a_probe_has_a_file_of_its_own_and_leaves_nothing(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    put = store.put

    def noted(sha256: str, content: bytes) -> None:
        written.append(sha256)
        put(sha256, content)

    monkeypatch.setattr(store, "put", noted)
    probe(store)
    probe(store)
    assert len(set(written)) == 2
    assert not any(store.has(each) or store.unconfirmed_for(each) for each in written)
