"""The folder target: every revision of every document is a file of its own below a base folder.

An index in the folder (index.py) lists its holdings; the target checks that the files exist. A file is synced before it
is put into its place, and its folder afterwards: an accepted document survives a power cut.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Engine

from metaharvest.config.paths import nearest_there
from metaharvest.errors import TargetError
from metaharvest.model import Site
from metaharvest.targets.base import HeldRevision, Standing
from metaharvest.targets.folder.base_folder import INDEX, BaseFolder, begin, locked, named
from metaharvest.targets.folder.failures import damaged, in_sentences, out_of_date, shown
from metaharvest.targets.folder.files import OURS
from metaharvest.targets.folder.index import Index, Revision
from metaharvest.targets.folder.names import Layout
from metaharvest.targets.folder.rebuild import Rebuilt, rebuild
from metaharvest.targets.folder.session import FolderSession
from metaharvest.targets.withdrawals import still_held
from metaharvest.text import counted, one_line

_MOST_DESCRIBED = 80
_LITTLE_ROOM = 100_000_000
"""Bytes."""


class FolderTarget:
    """The folder `path`; `BaseFolder` describes `layout`, `most` and `engine`."""

    uploads_at_once = 8

    def __init__(self, path: Path, layout: Layout, most: int, engine: Engine) -> None:
        self._engine = engine
        self._folder = BaseFolder(path, layout, most, engine)

    def describe(self) -> str:
        """The folder, by its path."""
        path = one_line(str(self._folder.path), 5000)
        return f"the folder {path if len(path) <= _MOST_DESCRIBED else f'…{path[1 - _MOST_DESCRIBED :]}'}"

    @contextmanager
    def session(self, site: Site | None) -> Iterator[FolderSession]:
        """A session, the same for every site. Raises TargetError if the folder is unusable."""
        with closing(FolderSession(self._folder)) as session:
            session.holdings([])
            yield session

    def check(self, site: Site | None) -> Iterator[Standing]:
        """Check that it exists, that it is writable, and that the index agrees with all files. Nothing is written."""
        folder = self._folder
        try:
            with in_sentences(folder.path):
                yield from _room(folder)
                with folder.reading() as index:
                    if index is None:
                        nothing = f"Nothing was put into the folder {shown(folder.path)} yet"
                        yield Standing("ok", f"{nothing}; the first document begins it.")
                    else:
                        yield _used(folder, index)
            with self.session(site) as session:
                yield from still_held(session.holdings, self._engine)
        except TargetError as error:
            yield Standing("problem", " ".join(error.sentences))

    def held(self) -> Iterator[HeldRevision]:
        """Every revision, in the order of the index."""
        with in_sentences(self._folder.path), self._folder.reading() as index:
            for row in index.held() if index else ():
                if self._is_held(row):
                    yield row.as_held()

    def revisions(self, document_id: str) -> list[HeldRevision]:
        """The revisions of one document, the highest first."""
        with in_sentences(self._folder.path), self._folder.reading() as index:
            rows = list(index.revisions([document_id])) if index else []
            return [row.as_held() for row in reversed(rows) if self._is_held(row)]

    def content(self, document_id: str, revision: int) -> bytes | None:
        """The exact bytes of one revision; None if it is not there."""
        with in_sentences(self._folder.path):
            with self._folder.reading() as index:
                row = index.revision(document_id, revision) if index else None
            if row is None or not self._is_held(row):
                return None
            if (content := self._folder.files.content(row.path)) is None:
                raise out_of_date(self._folder.path, f"{shown(row.path)} is not there any more")
            return content

    def _is_held(self, row: Revision) -> bool:
        """True if a revision is there, even if its upload was interrupted before the index recorded it."""
        return row.state == "held" or (row.state == "reserved" and self._folder.came_there(row))

    def rebuild(self) -> Rebuilt:
        """Rebuild the index from the files, and accept the folder in its present state. Raises TargetError."""
        files = self._folder.files
        with in_sentences(self._folder.path):
            folder_id = begin(files, repair=True)
            with locked(files, exclusive=True):
                done = rebuild(files, folder_id)
            self._folder.remember(folder_id)
            return done


def _room(folder: BaseFolder) -> Iterator[Standing]:
    there = nearest_there(folder.path)
    free = shutil.disk_usage(there).free
    if free < _LITTLE_ROOM:
        yield Standing("warning", f"There are only {free:,} bytes left in the folder {shown(folder.path)}.")
    wanted = ((there, os.W_OK | os.X_OK), (folder.path / OURS, os.W_OK | os.X_OK), (folder.path / INDEX, os.W_OK))
    unwritable = [path for path, mode in wanted if path.exists() and not os.access(path, mode)]
    if unwritable:
        yield Standing("problem", f"{shown(unwritable[0])} cannot be written by this user: nothing can be put there.")


def _used(folder: BaseFolder, index: Index) -> Standing:
    if (integrity := index.integrity()) != "ok":
        raise damaged(folder.path, f"is damaged: {shown(integrity)}")
    documents, revisions, deleted = index.numbers()
    known, unknown, changed = 0, [], []
    for path, size, _ in folder.files.walk():
        row = index.at(path)
        if row is not None and row.state != "deleted":
            known += row.state == "held"
            if row.state == "held" and row.size != size:
                changed.append(path)
        elif named(path):
            unknown.append(path)
    odd = [
        *([f"it does not know {_some(unknown)}"] if unknown else []),
        *([f"{_some(changed)} changed"] if changed else []),
        *([f"{_missing(folder, index, revisions - known)} not there any more"] if known < revisions else []),
    ]
    if odd:
        raise out_of_date(folder.path, "; ".join(odd))
    holds = f"holds {counted(documents, 'document')} in {counted(revisions, 'file')}"
    apart = f", and {counted(deleted, 'file')} of deleted documents apart" if deleted else ""
    return Standing("ok", f"The folder {shown(folder.path)} {holds}{apart}.")


def _missing(folder: BaseFolder, index: Index, number: int) -> str:
    gone = (row.path for row in index.held() if row.state == "held" and folder.files.digest(row.path) is None)
    return _some([next(gone, "a file")], number) + (" is" if number == 1 else " are")


def _some(paths: list[str], number: int = 0) -> str:
    """The first of these paths, and the number of the others."""
    more = (number or len(paths)) - 1
    return shown(paths[0]) + (f" and {counted(more, 'other file')}" if more else "")
