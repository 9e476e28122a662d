"""The files below the base folder, each reached without following a symbolic link below it.

Paths are relative to the base folder, with `/` between their parts; "" is the base folder itself. A file is written
whole under a temporary name, synced, and put into its place, which is synced too. Raises OSError, and TargetError for
links.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from secrets import token_hex

from metaharvest.targets.folder.failures import linked

OURS = ".metaharvest"
"""The folder with our own files, which are no documents."""

TEMPORARY = f"{OURS}/tmp"

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_AT_ONCE = 1 << 20
_STALE_SECONDS = 86_400


class Files:
    """The files below one base folder."""

    def __init__(self, base: Path) -> None:
        self.base = base

    @contextmanager
    def folder(self, path: str, *, make: bool = False) -> Iterator[int]:
        """The folder, opened; with `make`, it is made if it is missing."""
        descriptor = os.open(self.base, _FOLDER)
        try:
            for part in path.split("/") if path else ():
                inner = self._inner(descriptor, part, path, make)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def make(self, folder: str) -> None:
        """Make a folder if it is missing."""
        with self.folder(folder, make=True):
            pass

    def content(self, path: str) -> bytes | None:
        """The content of a file; None if there is no such file."""
        folder, _, name = path.rpartition("/")
        try:
            with self.folder(folder) as descriptor:
                found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise linked(self.base, path) from error
            raise
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise linked(self.base, path)
        with os.fdopen(found, "rb") as file:
            return file.read()

    def digest(self, path: str) -> str | None:
        """The SHA-256 of a file; None if there is no such file."""
        content = self.content(path)
        return None if content is None else hashlib.sha256(content).hexdigest()

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder; empty if there is no such folder."""
        try:
            with self.folder(folder) as descriptor, os.scandir(descriptor) as entries:
                return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return []

    def walk(self, folder: str = "") -> Iterator[tuple[str, int, float]]:
        """Every regular file of a folder and below it, with its size and the time of its last change.

        Names that begin with a dot are left out, and so are base folders of other targets.
        """
        with self.folder(folder) as descriptor, os.scandir(descriptor) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
            if folder and any(entry.name == OURS for entry in entries):
                return
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    # File systems have such files at their root; only the superuser can read them.
                    with suppress(PermissionError) if path == "lost+found" else nullcontext():
                        yield from self.walk(path)
                elif entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    yield path, found.st_size, found.st_mtime

    def write_temporary(self, content: bytes) -> str:
        """Write a new file, synced, outside of the places for documents; returns its path."""
        name = f"{os.getpid()}-{token_hex(8)}"
        with self.folder(TEMPORARY) as descriptor:
            made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=descriptor)
            try:
                with os.fdopen(made, "wb", buffering=0) as file:
                    left = memoryview(content)
                    while left:
                        left = left[file.write(left[:_AT_ONCE]) :]
                    os.fsync(file.fileno())
            except BaseException:
                with suppress(OSError):
                    os.unlink(name, dir_fd=descriptor)
                raise
        return f"{TEMPORARY}/{name}"

    def write(self, path: str, content: bytes) -> None:
        """Write a file, synced with its folder, unless it exists."""
        if self.content(path) is not None:
            return
        temporary = self.write_temporary(content)
        try:
            self.move(temporary, path)
            self.sync(path.rpartition("/")[0])
        finally:
            self.remove(temporary)

    def clear_temporary(self) -> None:
        """Remove half-written files of dead runs, if they are older than a day."""
        limit = time.time() - _STALE_SECONDS
        for name in self.names(TEMPORARY):
            path = f"{TEMPORARY}/{name}"
            with suppress(OSError):
                if (self.base / path).lstat().st_mtime < limit:
                    self.remove(path)

    def move(self, path: str, to: str) -> bool:
        """Move a file to a free path, and make the folders; False if the path is taken. Nothing is synced.

        Call it under a lock: no other process may make the same file.
        """
        folder, _, name = path.rpartition("/")
        to_folder, _, to_name = to.rpartition("/")
        with self.folder(folder) as source, self.folder(to_folder, make=True) as goal:
            with suppress(FileNotFoundError):
                os.stat(to_name, dir_fd=goal, follow_symlinks=False)
                return False
            os.rename(name, to_name, src_dir_fd=source, dst_dir_fd=goal)
        return True

    def sync(self, folder: str) -> None:
        """Sync the names in a folder to the disk."""
        with self.folder(folder) as descriptor:
            os.fsync(descriptor)

    def remove(self, path: str) -> None:
        """Remove a file if it is there."""
        folder, _, name = path.rpartition("/")
        with suppress(FileNotFoundError), self.folder(folder) as descriptor:
            os.unlink(name, dir_fd=descriptor)

    def remove_if_empty(self, folder: str) -> None:
        """Remove an empty folder, and the empty ones above it."""
        while folder:
            above, _, name = folder.rpartition("/")
            try:
                with self.folder(above) as descriptor:
                    os.rmdir(name, dir_fd=descriptor)
            except OSError:
                return
            folder = above

    def _inner(self, descriptor: int, name: str, path: str, make: bool) -> int:
        try:
            return self._opened(descriptor, name, path)
        except FileNotFoundError:
            if not make:
                raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=descriptor)
        os.fsync(descriptor)
        return self._opened(descriptor, name, path)

    def _opened(self, descriptor: int, name: str, path: str) -> int:
        try:
            return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise linked(self.base, path) from error
            raise
