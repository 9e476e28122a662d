"""Reads the file of a list, and replaces it after a change."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from metaharvest.config.files import open_file, read_file
from metaharvest.errors import PublishingError
from metaharvest.model import ListedDocument
from metaharvest.publishing.list_file import ListFile, written
from metaharvest.publishing.list_reading import read_list_file
from metaharvest.publishing.saving import replace_file
from metaharvest.sources.harvest_list.source import read_list
from metaharvest.text import one_line

LARGEST = 1_073_741_824
"""The most bytes of a list; a harvester accepts no more."""


@dataclass(frozen=True, slots=True)
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
