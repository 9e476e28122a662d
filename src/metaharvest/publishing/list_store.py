"""Reads the file of a list, checks it as its harvest would, and replaces it after a change.

A file is replaced as a whole: a reader, for example a web server, finds the old one or the new one.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from metaharvest.config.files import open_file, read_file
from metaharvest.errors import ListError, PublishingError
from metaharvest.harvest.decide import decide
from metaharvest.model import Finding, ListedDocument
from metaharvest.model.values import frozen
from metaharvest.publishing.list_file import ListFile, place_of, read_list_file, written
from metaharvest.sources.harvest_list.source import read_list
from metaharvest.text import one_line

LARGEST = 1_073_741_824
"""The most bytes of a list; a harvester accepts no more."""


@frozen
class StoredList:
    """A list as its file had it; `content` is None if there was no file."""

    path: Path
    content: bytes | None
    list_file: ListFile


def open_list(path: Path) -> StoredList:
    """The list in this file; an empty one if there is none. Raises PublishingError, ListError."""
    if not path.parent.is_dir():
        raise PublishingError(f"There is no folder {_shown(path.parent)} for the list. Make it, or name another.")
    content = _content(path)
    return StoredList(path, content, ListFile() if content is None else read_list_file(content))


def documents_of_list(path: Path, *, files_allowed: bool) -> Iterator[ListedDocument]:
    """The documents of the list in this file, as its harvest reads them. Raises PublishingError, ListError."""
    try:
        with open_file(path) as file:
            yield from read_list(file, files_allowed=files_allowed)
    except OSError as error:
        raise _unreadable(path, error) from error


def store(stored: StoredList, list_file: ListFile) -> bool:
    """Replace the list that was read by `list_file`; false if the file has the same bytes already.

    The new bytes are first read again, as by a harvester. Raises ListError if that fails, PublishingError.
    """
    content = written(list_file)
    if content == stored.content:
        return False
    for _ in read_list(io.BytesIO(content), files_allowed=True):
        pass
    require_untouched(stored)
    try:
        replace_file(stored.path, content)
    except OSError as error:
        raise PublishingError(f"{_shown(stored.path)} cannot be written: {error.strerror}.") from error
    return True


def require_untouched(stored: StoredList) -> None:
    """Raises PublishingError if the file has changed since it was read."""
    if _content(stored.path) != stored.content:
        raise PublishingError(
            f"{_shown(stored.path)} was changed by somebody else in the meantime; it was left as it is now. Try again."
        )


def _content(path: Path) -> bytes | None:
    try:
        return read_file(path, LARGEST)
    except FileNotFoundError:
        if path.is_symlink():
            raise PublishingError(f"{_shown(path)} is a link that leads nowhere. Correct it, or delete it.") from None
        return None
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> PublishingError:
    return PublishingError(f"{_shown(path)} cannot be read: {error.strerror}.")


def _shown(path: Path) -> str:
    return one_line(str(path), 300)


_NEW_FILE = 0o666


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` at `path`; the file keeps its permissions and its owner, as far as possible.

    If `path` is a link, the linked file is replaced. Raises OSError; then the old file is untouched.
    """
    there = Path(os.path.realpath(path))
    if there.exists() and not there.is_file():
        raise OSError(errno.EINVAL, "it is not a file, but a folder, a device or a pipe", str(there))
    # Beside it, as a rename works only within a file system; hidden, so that it is not listed or served.
    new = there.with_name(f".metaharvest-{secrets.token_hex(8)}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _NEW_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with suppress(FileNotFoundError):
                _as_before(descriptor, there.stat())
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        new.replace(there)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _as_before(descriptor: int, before: os.stat_result) -> None:
    with suppress(OSError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    # Windows' drives in WSL refuse it: https://github.com/microsoft/WSL/issues/41519
    with suppress(OSError):
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


@frozen
class CheckedList:
    """The entries of a list, none if it is not valid, and the findings of its harvest."""

    documents: tuple[ListedDocument, ...]
    findings: tuple[Finding, ...]

    @property
    def is_valid(self) -> bool:
        """True if a harvest would accept it."""
        return not any(finding.is_error for finding in self.findings)


def checked_list(path: Path, *, files_allowed: bool) -> CheckedList:
    """The list in this file; `files_allowed`: it may name file: URLs. Raises PublishingError."""
    try:
        documents = tuple(documents_of_list(path, files_allowed=files_allowed))
    except ListError as error:
        return CheckedList((), error.findings)
    in_order = sorted(documents, key=lambda each: (*place_of(each)[:2], each.document_id, each.revision))
    intents = decide(in_order, {}, 0, {})
    return CheckedList(documents, tuple(finding for intent in intents for finding in intent.findings))
