"""The files of outputs, each once, by their digest: `ab/cd/SHA256` in a folder, or in an object store by fsspec.

A file is written before the database knows it. `unconfirmed` has the digests of such files, so that a file whose writer
was killed is deleted in the end, too.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from metaharvest.errors import SettingsError, StoreUnavailable
from metaharvest.text import one_line, shown_url

_LOG = logging.getLogger(__name__)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NEW = "new"
_PART = "part-"
_WITH_BUCKETS = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "adl", "oci"))
"""Protocols of fsspec whose first folder is a bucket, and that need no folders below it."""

UNCONFIRMED_FOR = timedelta(hours=1)
"""The time after which the writer of a file that no row names, or of a part of a file, is taken for dead."""

_OF_THE_FOLDER = frozenset(
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE),
        *(errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.EMFILE, errno.ENFILE),
    )
)
"""The numbers of errors of a folder, or of its disk."""


class StoreError(OSError):
    """An object store at a URL does not do what it should."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(errno.EIO, reason)
        self.place = place


class DamagedFile(FileNotFoundError):
    """A file had other bytes than its digest says. It is deleted."""


class FileStore(Protocol):
    """A store of files. All methods may raise OSError."""

    @property
    def place(self) -> str:
        """The folder or URL of the store, for messages."""

    def put(self, sha256: str, content: bytes) -> None:
        """Write the file, whole or not at all, and note that it is unconfirmed."""

    def read(self, sha256: str) -> bytes:
        """The bytes of a file. Raises FileNotFoundError, and DamagedFile for a damaged file, which is deleted."""

    def has(self, sha256: str) -> bool:
        """True if there is such a file."""

    def delete(self, sha256: str) -> None:
        """Delete a file; nothing happens if it is not there."""

    def unconfirmed(self) -> Iterator[tuple[str, timedelta]]:
        """The digests of files that the database may not know, and the time since they were written."""

    def unconfirmed_for(self, sha256: str) -> timedelta | None:
        """The time since a file that the database may not know was written; None: the database knows it."""

    def confirm(self, sha256: str) -> None:
        """The database knows the file, or it was deleted."""


def open_store(folder: Path, url: str = "", now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> FileStore:
    """The store in this folder, or at this URL of fsspec, such as `s3://bucket/files`. Raises SettingsError.

    `now` is the clock for the notes of an object store: all machines need the same one.
    """
    return _ObjectStore(url, now) if url else FolderStore(folder / "files")


def delete_settled(files: FileStore, sha256: str, after: timedelta = timedelta.max) -> bool:
    """Delete a file that no row names, unless it was written again in the time `after`: a row of it may be under way.

    It looks at this moment: many files may have been deleted, or written, since the rows were read.
    """
    age = files.unconfirmed_for(sha256)
    if age is not None and age < after:
        return False
    files.delete(sha256)
    return True


def place_of(sha256: str) -> str:
    """The place of a file in its store. Raises ValueError for anything but a digest."""
    if not _DIGEST.fullmatch(sha256):
        raise ValueError(f"{sha256!r:.80} is no SHA-256")
    return f"{sha256[:2]}/{sha256[2:4]}/{sha256}"


class FolderStore:
    """Files in a folder of this machine, or of a file server that all workers share, whose clock dates the notes."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folder = folder

    def path(self, sha256: str) -> Path:
        """The path of a file."""
        return self._folder / place_of(sha256)

    def put(self, sha256: str, content: bytes) -> None:
        """See FileStore. The bytes are on the disk before the file has its name."""
        path = self.path(sha256)
        note = self._note(sha256)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=_PART, dir=note.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def read(self, sha256: str) -> bytes:
        """See FileStore."""
        return _whole(self, sha256, self.path(sha256).read_bytes())

    def has(self, sha256: str) -> bool:
        """See FileStore."""
        return self.path(sha256).is_file()

    def delete(self, sha256: str) -> None:
        """See FileStore. Empty folders go, too."""
        path = self.path(sha256)
        path.unlink(missing_ok=True)
        with suppress(OSError):  # they have other files
            path.parent.rmdir()
            path.parent.parent.rmdir()

    def unconfirmed(self) -> Iterator[tuple[str, timedelta]]:
        """See FileStore."""
        with suppress(FileNotFoundError):
            now = self._now()
            for each in os.scandir(self._folder / _NEW):
                with suppress(FileNotFoundError):
                    age = timedelta(seconds=now - each.stat().st_mtime)
                    if _DIGEST.fullmatch(each.name):
                        yield each.name, age
                    elif each.name.startswith(_PART) and age > UNCONFIRMED_FOR:
                        Path(each.path).unlink()

    def unconfirmed_for(self, sha256: str) -> timedelta | None:
        """See FileStore."""
        with suppress(FileNotFoundError):
            return timedelta(seconds=self._now() - self._note(sha256).stat().st_mtime)
        return None

    def confirm(self, sha256: str) -> None:
        """See FileStore."""
        self._note(sha256).unlink(missing_ok=True)

    def _now(self) -> float:
        """The time of the file server: the clock of this machine may differ."""
        with tempfile.TemporaryFile(dir=self._folder / _NEW) as file:
            return os.fstat(file.fileno()).st_mtime

    def _note(self, sha256: str) -> Path:
        place_of(sha256)
        return self._folder / _NEW / sha256


class _ObjectStore:
    """A FileStore in an object store. The content of a note is its time: not all stores report times."""

    def __init__(self, url: str, now: Callable[[], datetime]) -> None:
        self.place = url
        self._now = now
        try:
            import fsspec

            self._system, self._root = fsspec.core.url_to_fs(url)
            named = self._system.protocol
            protocols = (named,) if isinstance(named, str) else named
            self._has_buckets = not _WITH_BUCKETS.isdisjoint(protocols)
        except ImportError as error:
            raise SettingsError(
                f"The files of the pipeline belong at {url}, and a package is missing ({error.name or error}). "
                "Install `metaharvest[object-store]`, and the package of fsspec for this kind of URL, such as s3fs."
            ) from error
        except ValueError as error:
            raise SettingsError(f"[pipeline] files is {url}, which is no URL of fsspec: {error}.") from error

    def put(self, sha256: str, content: bytes) -> None:
        """Object stores write a file whole or not at all."""
        with _store_errors(self.place):
            self._write(f"{_NEW}/{sha256}", self._now().isoformat().encode())
            self._write(place_of(sha256), content)

    def read(self, sha256: str) -> bytes:
        try:
            with _store_errors(self.place, may_be_missing=True):
                content = bytes(self._system.cat_file(self._path(place_of(sha256))))
        except FileNotFoundError:
            self._require_bucket()
            raise
        return _whole(self, sha256, content)

    def has(self, sha256: str) -> bool:
        with _store_errors(self.place):
            if self._system.exists(self._path(place_of(sha256))):
                return True
        self._require_bucket()
        return False

    def delete(self, sha256: str) -> None:
        with suppress(FileNotFoundError), _store_errors(self.place, may_be_missing=True):
            self._system.rm_file(self._path(place_of(sha256)))

    def unconfirmed(self) -> Iterator[tuple[str, timedelta]]:
        found: list[Any] = []
        with suppress(FileNotFoundError), _store_errors(self.place, may_be_missing=True):
            # Other processes write, too: an older listing is of no use.
            self._system.invalidate_cache()
            found = self._system.ls(self._path(_NEW), detail=False)
        for each in found:
            name = str(each).rpartition("/")[2]
            with suppress(ValueError):
                if (age := self.unconfirmed_for(name)) is not None:
                    yield name, age

    def unconfirmed_for(self, sha256: str) -> timedelta | None:
        place_of(sha256)
        noted = None
        with suppress(FileNotFoundError), _store_errors(self.place, may_be_missing=True):
            noted = self._system.cat_file(self._path(f"{_NEW}/{sha256}"))
        return None if noted is None else self._now() - datetime.fromisoformat(noted.decode())

    def confirm(self, sha256: str) -> None:
        with suppress(FileNotFoundError), _store_errors(self.place, may_be_missing=True):
            self._system.rm_file(self._path(f"{_NEW}/{sha256}"))

    def _write(self, place: str, content: bytes) -> None:
        path = self._path(place)
        if not self._has_buckets:  # there, it would make the bucket of a mistyped URL
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._system.pipe_file(path, content)

    def _path(self, place: str) -> str:
        return f"{self._root}/{place}"

    def _require_bucket(self) -> None:
        """Raises OSError without the bucket: to fsspec, a file that is missing is then the same."""
        bucket = self._root.lstrip("/").partition("/")[0]
        with _store_errors(self.place):
            if self._has_buckets and not self._system.exists(bucket):
                raise FileNotFoundError(f"there is no bucket {bucket}")


def _whole(files: FileStore, sha256: str, content: bytes) -> bytes:
    """The bytes of a file. If they have another digest, the file is deleted, so that it is fetched again."""
    if hashlib.sha256(content).hexdigest() == sha256:
        return content
    files.delete(sha256)
    place = f"{place_of(sha256)} in {shown_url(files.place)}"
    text = f"The file {place} was damaged and is deleted: its {len(content):,} bytes had another SHA-256."
    _LOG.warning(text)
    raise DamagedFile(errno.ENOENT, text)


@contextmanager
def _store_errors(place: str, *, may_be_missing: bool = False) -> Iterator[None]:
    """Raises StoreError for any error of the store at this URL; FileNotFoundError stays if it `may_be_missing`."""
    try:
        yield
    except Exception as error:
        if isinstance(error, FileNotFoundError) and may_be_missing:
            raise
        raise StoreError(place, f"the store says: {one_line(str(error), 300)}") from error


# -- errors, as sentences: a full disk is no fault of a document


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """Raises StoreUnavailable for an OSError of this folder, or of its disk. Other errors stay as they are."""
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_THE_FOLDER:
            raise
        raise unusable(folder, error) from error


def unusable(folder: Path | str, error: OSError) -> StoreUnavailable:
    """The error that says that the folder, or the store of files at a URL, cannot be used."""
    reason = one_line(error.strerror or str(error), 300)
    if isinstance(error, StoreError):
        return StoreUnavailable(
            f"The pipeline cannot use {shown_url(error.place)} ([pipeline] files): {reason}. Check the server, the "
            "bucket, and that the key may read and write there. Nothing is lost: the next run goes on."
        )
    place = f" ({one_line(str(error.filename), 300)})" if error.filename else ""
    return StoreUnavailable(
        f"The pipeline cannot use {folder}: {reason}{place}. Check that there is room, and that this user may write "
        "there; [pipeline] folder and files name other places. Nothing is lost: the next run goes on."
    )
