"""One base folder: its index, and its marker, which shows that it is the folder of earlier runs.

The harvester's own database remembers the marker of each folder. The first document begins a folder without a marker,
but only if the folder was never used before. Otherwise its file system is missing, or a person has cleared it, and an
empty folder must not mean "nothing held".

    .metaharvest/folder.json    the marker
                 index.db       the index; .gitignore leaves it out
                 names/         the ids of documents whose names do not show them
                 deleted/       the files of documents that were deleted
                 received/      what was received, of documents that were normalised
                 tmp/           files that are being written
                 lock           held by each writer; exclusively by a rebuild of the index
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

from sqlalchemy import Engine, delete, select

from metaharvest.config.files import make_folder
from metaharvest.database.engine import readers, writers
from metaharvest.database.models import FolderMarker
from metaharvest.errors import TargetError
from metaharvest.model.actions import Remedy
from metaharvest.targets.folder.failures import REBUILD, damaged, failure, shown
from metaharvest.targets.folder.files import OURS, TEMPORARY, Files
from metaharvest.targets.folder.index import Index, Revision, make_index, open_index, without_numbers
from metaharvest.targets.folder.names import Layout, Named, read

DELETED = f"{OURS}/deleted"
NAMES = f"{OURS}/names"
RECEIVED = f"{OURS}/received"
INDEX = f"{OURS}/index.db"
MARKER = f"{OURS}/folder.json"
_LOCK = "lock"
_BEGINNING = "lock-of-the-beginning"
_IGNORE = f"{OURS}/.gitignore"

_IGNORED = "index.db*\nlock*\ntmp/\n"
_ABOUT = "A folder into which metaharvest puts documents. Without this file it would not know the folder again."


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
        self._key = hashlib.sha256(os.fsencode(path)).hexdigest()
        self._remembered: str | None = None

    def opened(self) -> Index | None:
        """The index, to be closed; None if the folder was never used."""
        # Another process may begin the folder now: it makes the marker first, and remembers it then.
        if self._remembered is None:
            self._remembered = self._read_remembered()
        folder_id = read_marker(self.files)
        if self._remembered not in (None, folder_id):
            # Another process may have rebuilt the folder.
            self._remembered = self._read_remembered()
        _require_known(self.path, folder_id, self._remembered)
        if folder_id is not None:
            return open_index(self.path / INDEX, self.path, folder_id)
        if self.path.is_dir() and any(named(path) for path, _, _ in self.files.walk()):
            if read_marker(self.files) is not None:
                return self.opened()
            raise damaged(self.path, "is not there, but documents are")
        return None

    @contextmanager
    def reading(self) -> Iterator[Index | None]:
        """The index, closed afterwards."""
        index = self.opened()
        with closing(index) if index else nullcontext():
            yield index

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
            self.remember(begin(self.files))

    def remember(self, folder_id: str) -> None:
        """From now on, accept only a folder with this marker."""
        if self._remembered != folder_id:
            with writers(self._engine).begin() as session:
                session.execute(delete(FolderMarker).where(FolderMarker.path_sha256 == self._key))
                session.add(FolderMarker(path_sha256=self._key, path=str(self.path), folder_id=folder_id))
            self._remembered = folder_id

    def _read_remembered(self) -> str | None:
        """The id of the marker that this folder had before; None if it was never used."""
        with readers(self._engine)() as session:
            return session.scalar(select(FolderMarker.folder_id).where(FolderMarker.path_sha256 == self._key))


def read_marker(files: Files) -> str | None:
    """The id in the marker of a folder; None if there is no marker. Raises OSError, TargetError."""
    if (content := files.content(MARKER)) is None:
        return None
    try:
        return str(json.loads(content)["id"])
    except (ValueError, KeyError, TypeError):
        message = f"The file {shown(files.base / MARKER)} is damaged: it does not name the folder any more."
        raise failure("target.folder-missing", message, Remedy("{} writes a new one.", REBUILD)) from None


def begin(files: Files, *, repair: bool = False) -> str:
    """Make our files in a folder, the marker last; its id. Existing files stay; `repair` replaces a damaged marker."""
    make_folder(files.base)
    files.make(OURS)
    # Two processes that begin at the same time would make different markers.
    with _lock_file(files, _BEGINNING) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # git does not store empty folders.
        files.make(TEMPORARY)
        files.write(_IGNORE, _IGNORED.encode())
        try:
            if (there := read_marker(files)) is not None:
                return there
        except TargetError:
            if not repair:
                raise
            files.remove(MARKER)
        folder_id = str(uuid.uuid4())
        for left in (files.base / OURS).glob("index.db*"):
            left.unlink()
        make_index(files.base / INDEX, folder_id)
        files.write(MARKER, f"{json.dumps({'about': _ABOUT, 'id': folder_id}, indent=1)}\n".encode())
        return folder_id


@contextmanager
def locked(files: Files, *, exclusive: bool = False) -> Iterator[None]:
    """Hold the lock of a folder, together with other writers, or alone. Raises TargetError if it is taken."""
    with _lock_file(files, _LOCK) as lock:
        try:
            fcntl.flock(lock, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            who = "a harvester is writing into it" if exclusive else "its index is being rebuilt"
            message = f"The folder {shown(files.base)} is in use: {who}."
            raise failure("target.away", message, "Try again when that has ended; nothing was changed.") from error
        yield


@contextmanager
def _lock_file(files: Files, name: str) -> Iterator[int]:
    """A lock file of ours; closing it ends the lock. Folders cannot be locked on network file systems."""
    with files.folder(OURS) as descriptor:
        lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=descriptor)
    try:
        yield lock
    finally:
        os.close(lock)


def _require_known(base: Path, there: str | None, before: str | None) -> None:
    """Raises TargetError if the folder is not the one that was used before."""
    if before is None or there == before:
        return
    remedy = Remedy(
        "If it is on a file system that is not mounted, have it mounted. If it is meant to be used as it is now, {} "
        "says so; what is then missing is harvested again.",
        REBUILD,
    )
    what = "it has no marker any more" if there is None else "its marker belongs to another folder"
    message = f"The folder {shown(base)} is not the one that documents went into: {what} ({MARKER})."
    raise failure("target.folder-missing", message, remedy)


def named(path: str) -> Named | None:
    """The document and revision of the file with this path; None for a file of others."""
    folder, _, name = path.rpartition("/")
    return read(without_numbers(folder), name)
