"""Rebuilds the index of a folder from its files, and takes the other values from the old index."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from metaharvest.errors import TargetError
from metaharvest.fetch.xml_bounds import HEAD, root_namespace
from metaharvest.model.values import frozen
from metaharvest.targets.folder.base_folder import DELETED, INDEX, NAMES, named
from metaharvest.targets.folder.files import OURS, Files
from metaharvest.targets.folder.index import Index, Revision, State, make_index, open_index
from metaharvest.targets.folder.names import Named, digest_of, place_of, starts_at

_MOST_SHOWN = 20
_UNUSABLE = (TargetError, OSError, sqlite3.Error, UnicodeDecodeError)
"""The errors of a damaged index."""


@dataclass(slots=True)
class Rebuilt:
    """The result of a rebuild; `problems` are sentences about the first files that were left out."""

    documents: int = 0
    revisions: int = 0
    deleted: int = 0
    others: int = 0
    left_out: int = 0
    problems: list[str] = field(default_factory=list)

    def leave_out(self, problem: str) -> None:
        """Count a file that should be one of ours, and is unusable."""
        self.left_out += 1
        if len(self.problems) < _MOST_SHOWN:
            self.problems.append(problem)


def rebuild(files: Files, folder_id: str) -> Rebuilt:
    """Rebuild the index; it takes the values that the files lack from the old one, if that is readable.

    Call it under the exclusive lock. Raises TargetError, OSError and sqlite3.Error.
    """
    done = Rebuilt()
    # This name makes git ignore the file, should this process be killed.
    new = (files.base / INDEX).with_name("index.db-new")
    _remove(new)
    try:
        make_index(new, folder_id)
        with closing(open_index(new, files.base, folder_id)) as index, _old_index(files, folder_id) as old:
            with index.writing():
                _Rebuilding(files, index, old, done).fill()
            done.documents, done.revisions, done.deleted = index.numbers()
    except BaseException:
        _remove(new)
        raise
    _remove(files.base / INDEX)
    new.rename(files.base / INDEX)
    _remove(new)
    files.sync(OURS)
    return done


@frozen
class _Rebuilding:
    """Fills the new index from the files, and takes from the `old` one the values that the files lack."""

    files: Files
    index: Index
    old: Index | None
    done: Rebuilt

    def fill(self) -> None:
        folders = _Folders()
        for path, _, changed in self.files.walk():
            if (what := named(path)) is None:
                self.done.others += 1
            elif (row := self._row(path, what, changed, "held")) is not None:
                if (before := self.index.revision(row.document_id, row.revision)) is None:
                    self._put(row, what)
                    folders.add(path)
                else:
                    same = "the same content" if before.sha256 == row.sha256 else "other content"
                    again = f"{path} is {row.document_id}.{row.revision} again, with {same}"
                    self.done.leave_out(f"{again}: {before.path} is used.")
        for apart, _, changed in self.files.walk(DELETED) if (self.files.base / DELETED).is_dir() else ():
            path = apart.removeprefix(f"{DELETED}/")
            row = self._row(path, what, changed, "deleted") if (what := named(path)) else None
            if what and row and self.index.revision(row.document_id, row.revision) is None:
                self._put(row, what)
        for key, (folder, names) in folders.counted().items():
            self.index.put_folder(key, folder, names)

    def _put(self, row: Revision, what: Named) -> None:
        self.index.put(row)
        self.index.put_document(row.document_id, place_of(row.document_id, what.layout, bool(what.digest)))

    def _row(self, path: str, what: Named, changed: float, state: State) -> Revision | None:
        """The row for the file of this path, which is kept apart if it is deleted; None if its document is unknown."""
        document_id = what.document_id if what.document_id is not None else _named_apart(self.files, what.digest)
        if document_id is None:
            self.done.leave_out(f"{path} does not show its document, and {NAMES} does not have it.")
            return None
        content = self.files.content(f"{DELETED}/{path}" if state == "deleted" else path) or b""
        sha256 = hashlib.sha256(content).hexdigest()
        before = self._before(path)
        if before and (before.document_id, before.revision, before.sha256) == (document_id, what.revision, sha256):
            return replace(before, state=state)
        at = datetime.fromtimestamp(changed, UTC).isoformat()
        # The type of an EML document is the namespace of its root element.
        of_type = root_namespace(content[:HEAD])
        return Revision(document_id, what.revision, path, state, of_type, len(content), sha256, at, "")

    def _before(self, path: str) -> Revision | None:
        """The revision of this file in the old index; None if the index is damaged there."""
        with suppress(*_UNUSABLE):
            return self.old.at(path) if self.old else None
        return None


def _named_apart(files: Files, digest: str) -> str | None:
    """The document with this digest; None if no file has its id."""
    content = files.content(f"{NAMES}/{digest[:2]}/{digest}")
    with suppress(UnicodeDecodeError):
        document_id = (content or b"").decode(errors="surrogatepass")
        if digest_of(document_id) == digest:
            return document_id
    return None


class _Folders:
    """Counts the names in each folder, and in each of its sub-folders such as `starting_at_5000`."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {"": ""}
        self._names: Counter[tuple[str, int]] = Counter()

    def add(self, path: str) -> None:
        """Count a file, and the folders on the way to it."""
        key, begin, real = "", 0, ""
        for part in path.split("/"):
            real = f"{real}/{part}".lstrip("/")
            if (number := starts_at(part)) is not None:
                begin = number
                continue
            inner = f"{key}/{part.lower()}"
            if inner not in self._paths:
                self._paths[inner] = real
                self._names[key, begin] += 1
            key, begin = inner, 0

    def counted(self) -> dict[str, tuple[str, int]]:
        """Key -> path, and the number of names that were given out in the folder.

        Files are included, as folders without names.
        """
        counted: dict[str, tuple[str, int]] = {}
        for (key, begin), names in self._names.items():
            most = counted.get(key, ("", 0))[1]
            counted[key] = (self._paths[key], max(most, begin + names))
        return counted


@contextmanager
def _old_index(files: Files, folder_id: str) -> Iterator[Index | None]:
    """The present index; None if it is unusable."""
    try:
        index = open_index(files.base / INDEX, files.base, folder_id)
    except _UNUSABLE:
        yield None
        return
    with closing(index):
        is_whole = False
        with suppress(*_UNUSABLE):
            is_whole = index.integrity() == "ok"
        yield index if is_whole else None


def _remove(file: Path) -> None:
    """Remove a SQLite file with its companion files."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
