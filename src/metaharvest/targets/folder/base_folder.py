"""One base folder: its marker, the place of its index, and the check that it is the folder of earlier runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from metaharvest.errors import TargetError
from metaharvest.targets.folder import marker
from metaharvest.targets.folder.failures import damaged
from metaharvest.targets.folder.files import Files
from metaharvest.targets.folder.index import Index, Revision, open_index, without_numbers
from metaharvest.targets.folder.names import Layout, Named, read


class BaseFolder:
    """The folder `path`: new documents get this layout, and no folder gets more than `most` names.

    `engine` is the harvester's own database, which remembers the folder's marker. Each user of the index holds `lock`.
    Raises TargetError, OSError and sqlite3.Error.
    """

    def __init__(self, path: Path, layout: Layout, most: int, engine: Engine) -> None:
        self.path = path
        self.layout = layout
        self.most = most
        self.files = Files(path)
        self.lock = threading.RLock()
        self._engine = engine
        self._remembered: str | None = None

    def opened(self) -> Index | None:
        """The index, to be closed; None if the folder was never used."""
        # Another process may begin the folder now: it makes the marker first, and remembers it then.
        if self._remembered is None:
            self._remembered = marker.remembered(self._engine, self.path)
        folder_id = marker.read_marker(self.files)
        marker.require_known(self.path, folder_id, self._remembered)
        if folder_id is not None:
            return open_index(self.path / marker.INDEX, self.path, folder_id)
        if self.path.is_dir() and any(named(path) for path, _, _ in self.files.walk()):
            if marker.read_marker(self.files) is not None:
                return self.opened()
            raise damaged(self.path, "is not there, but documents are")
        return None

    @contextmanager
    def reading(self) -> Iterator[Index | None]:
        """The index, closed afterwards."""
        index = self.opened()
        try:
            yield index
        finally:
            if index is not None:
                index.close()

    def came_there(self, row: Revision) -> bool:
        """True if the file of a reserved revision is in its place; False for a link or a folder."""
        try:
            return self.files.digest(row.path) == row.sha256
        except TargetError:
            return False

    def begin(self) -> None:
        """Make our own files in the folder if it was never used, and remember its marker."""
        with self.reading() as index:
            is_known = index is not None and self._remembered is not None
        if not is_known:
            self.remember(marker.begin(self.files))

    def remember(self, folder_id: str) -> None:
        """From now on, accept only a folder with this marker."""
        if self._remembered != folder_id:
            marker.remember(self._engine, self.path, folder_id)
            self._remembered = folder_id


def named(path: str) -> Named | None:
    """The document and revision of the file with this path; None for a file of others."""
    folder, _, name = path.rpartition("/")
    return read(without_numbers(folder), name)
