"""Reads the file of a list, checks it as its harvest would, and replaces it after a change.

A file is replaced as a whole: a reader, for example a web server, finds the old one or the new one.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

from metaharvest.config.files import open_file, read_file, replace_file
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
        replace_file(Path(os.path.realpath(stored.path)), content, keeps_mode=True)
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
