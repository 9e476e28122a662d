"""One base folder: is it there, is it the one that was used before, where is its index."""

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
    """The folder `path`, in which new documents get this layout, and no folder gets more than `most` names.

    `engine` is that of the harvester's own database, which remembers the folder's marker. Who uses the index holds
    `lock`. Raises TargetError, OSError and sqlite3.Error.
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
        """The index, to be closed; None if nothing ever went into the folder."""
        # Others may begin meanwhile: they make the marker first, and remember it then.
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
        """The same, closed afterwards."""
        index = self.opened()
        try:
            yield index
        finally:
            if index is not None:
                index.close()

    def came_there(self, row: Revision) -> bool:
        """Whether the file of a reserved revision is in its place: not, if there is a link or a folder."""
        try:
            return self.files.digest(row.path) == row.sha256
        except TargetError:
            return False

    def begin(self) -> None:
        """Make what is ours in the folder, if nothing ever went into it, and remember its marker."""
        with self.reading() as index:
            is_known = index is not None and self._remembered is not None
        if not is_known:
            self.remember(marker.begin(self.files))

    def remember(self, folder_id: str) -> None:
        """Take no folder without this marker for this one from now on."""
        if self._remembered != folder_id:
            marker.remember(self._engine, self.path, folder_id)
            self._remembered = folder_id


def named(path: str) -> Named | None:
    """Which document and revision the file with this path is; None: none of ours."""
    folder, _, name = path.rpartition("/")
    return read(without_numbers(folder), name)
