"""The folder target: every revision of every document is a file of its own below a base folder.

An index in the folder (index.py) lists its holdings; the target checks that the files exist. A file is synced before it
is put into its place, and its folder afterwards: an accepted document survives a power cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Engine

from metaharvest.model import Site
from metaharvest.targets.base import HeldRevision, Standing
from metaharvest.targets.folder import marker
from metaharvest.targets.folder.base_folder import BaseFolder
from metaharvest.targets.folder.failures import in_sentences, out_of_date, shown
from metaharvest.targets.folder.index import Revision
from metaharvest.targets.folder.names import Layout
from metaharvest.targets.folder.rebuild import Rebuilt, rebuild
from metaharvest.targets.folder.session import FolderSession
from metaharvest.targets.folder.standing import standings
from metaharvest.text import one_line

_MOST_DESCRIBED = 80


class FolderTarget:
    """The folder `path`; `BaseFolder` describes `layout`, `most` and `engine`."""

    uploads_at_once = 8

    def __init__(self, path: Path, layout: Layout, most: int, engine: Engine) -> None:
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
        """Check that it exists, that it is writable, and that the index agrees with all files."""
        return standings(self._folder)

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
                rows = list(index.revisions([document_id])) if index else []
            row = next((row for row in rows if row.revision == revision and self._is_held(row)), None)
            if row is None:
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
            folder_id = marker.begin(files, repair=True)
            with marker.locked(files, exclusive=True):
                done = rebuild(files, folder_id)
            self._folder.remember(folder_id)
            return done
