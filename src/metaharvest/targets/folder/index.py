"""The index of a folder: its revisions with their places, and the number of names in its folders. A SQLite file.

A revision is `reserved` before its file is put into its place, and `held` afterwards: the index also has the remains of
a crash. The file of a `deleted` revision is kept apart. The index can be rebuilt from the files; a commit therefore
outlives the process, but need not outlive a power cut.

`folder` has a row for each folder that we made: its name without sub-folders such as `starting_at_5000`, in lower case,
so that no two folders differ in case alone; its real path; the number of names that were given out in it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from metaharvest.model.values import frozen
from metaharvest.targets.base import HeldRevision
from metaharvest.targets.folder.failures import damaged
from metaharvest.targets.folder.names import Layout, Place, place_of, starts_at

State = Literal["reserved", "held", "deleted"]

_APPLICATION = 0x6D686669
_VERSION = 1
_WAIT_SECONDS = 60

_TABLES = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
CREATE TABLE about (folder_id TEXT NOT NULL);
CREATE TABLE document (
    document_id TEXT PRIMARY KEY, layout TEXT NOT NULL, hashed INTEGER NOT NULL, key TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX document_key ON document (key);
CREATE TABLE revision (
    document_id TEXT, revision INTEGER, path TEXT NOT NULL, state TEXT NOT NULL, document_type TEXT NOT NULL,
    size INTEGER NOT NULL, sha256 TEXT NOT NULL, inserted_at TEXT NOT NULL, source_url TEXT NOT NULL,
    PRIMARY KEY (document_id, revision)
) WITHOUT ROWID;
CREATE INDEX revision_path ON revision (path);
CREATE TABLE folder (key TEXT PRIMARY KEY, path TEXT NOT NULL, names INTEGER NOT NULL) WITHOUT ROWID;
"""
_COLUMNS = "document_id, revision, path, state, document_type, size, sha256, inserted_at, source_url"


@frozen
class Revision:
    """One row: a revision, and the present or future place of its file; `inserted_at` in ISO format."""

    document_id: str
    revision: int
    path: str
    state: State
    document_type: str
    size: int
    sha256: str
    inserted_at: str
    source_url: str

    @property
    def folder(self) -> str:
        """The folder of the file."""
        return self.path.rpartition("/")[0]

    def as_held(self) -> HeldRevision:
        """The same for people."""
        at = datetime.fromisoformat(self.inserted_at) if self.inserted_at else None
        what = self.document_id, self.revision, self.document_type, self.size, self.sha256
        return HeldRevision(*what, inserted_at=at, source_url=self.source_url)


class Index:
    """An open index. Not safe for threads: its user ensures that one thread at a time calls it.

    Raises sqlite3.Error.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction; meanwhile no other thread or process writes."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()

    def integrity(self) -> str:
        """ "ok", or the fault of the file."""
        return str(self._connection.execute("PRAGMA quick_check(1)").fetchone()[0])

    # -- revisions

    def revisions(self, document_ids: Sequence[str]) -> Iterator[Revision]:
        """All rows of these documents, in ascending order of document and revision."""
        texts = [each for each in document_ids if _is_text(each)]
        marks = ",".join("?" * len(texts))
        return self._rows(f"WHERE document_id IN ({marks}) ORDER BY document_id, revision", texts)

    def revision(self, document_id: str, revision: int) -> Revision | None:
        """The row of this revision; None if there is none."""
        return next((row for row in self.revisions([document_id]) if row.revision == revision), None)

    def held(self) -> Iterator[Revision]:
        """All rows of documents that are not deleted, in the same order."""
        return self._rows("WHERE state <> 'deleted' ORDER BY document_id, revision", [])

    def at(self, path: str) -> Revision | None:
        """The revision whose file is, was, or will be at this path."""
        return next(self._rows("WHERE path = ?", [path]), None) if _is_text(path) else None

    def reserved(self) -> list[Revision]:
        """The revisions whose files may not have come into their places."""
        return list(self._rows("WHERE state = 'reserved'", []))

    def numbers(self) -> tuple[int, int, int]:
        """The numbers of documents that are not deleted, of their revisions, and of deleted revisions."""
        held = "SELECT count(DISTINCT document_id), count(*) FROM revision WHERE state = 'held'"
        documents, revisions = self._connection.execute(held).fetchone()
        [deleted] = self._connection.execute("SELECT count(*) FROM revision WHERE state = 'deleted'").fetchone()
        return int(documents), int(revisions), int(deleted)

    def put(self, revision: Revision) -> None:
        """Write a row, or replace the present one."""
        values = [getattr(revision, name) for name in _COLUMNS.split(", ")]
        self._connection.execute(f"REPLACE INTO revision ({_COLUMNS}) VALUES ({','.join('?' * 9)})", values)

    def forget(self, revision: Revision) -> None:
        """Delete a row."""
        key = (revision.document_id, revision.revision)
        self._connection.execute("DELETE FROM revision WHERE document_id = ? AND revision = ?", key)

    def _rows(self, where: str, values: Sequence[object]) -> Iterator[Revision]:
        query = f"SELECT {_COLUMNS} FROM revision {where}"
        return (Revision(*row) for row in self._connection.execute(query, values))

    # -- places

    def place(self, document_id: str, layout: Layout) -> Place:
        """The place for the files of a document: the same as for its first file, or a new one."""
        known = self._connection.execute(
            "SELECT layout, hashed FROM document WHERE document_id = ?", [document_id]
        ).fetchone()
        if known:
            return place_of(document_id, known[0], bool(known[1]))
        place = place_of(document_id, layout)
        if not place.hashed and not self._is_free(place):
            place = place_of(document_id, layout, hashed=True)
        self.put_document(document_id, place)
        return place

    def put_document(self, document_id: str, place: Place) -> None:
        """Store the place for the files of a document."""
        values = (document_id, place.layout, place.hashed, place.key)
        self._connection.execute("REPLACE INTO document VALUES (?, ?, ?, ?)", values)

    def path_for(self, place: Place, revision: int, most: int) -> str:
        """A new path for a revision, so that no folder gets more than `most` names; this counts the names."""
        key, path = "", ""
        for name in place.folders:
            inner = f"{key}/{name.lower()}"
            known = self.folder(inner)
            if known is None:
                known = self._room(key, path, most) + name
                self.put_folder(inner, known, 0)
            key, path = inner, known
        return self._room(key, path, most) + place.file_name(revision)

    def folder(self, key: str) -> str | None:
        """The path of a folder that we made."""
        found = self._connection.execute("SELECT path FROM folder WHERE key = ?", [key]).fetchone()
        return found and str(found[0])

    def put_folder(self, key: str, path: str, names: int) -> None:
        """Store a folder, and the number of names that were given out in it."""
        self._connection.execute("REPLACE INTO folder VALUES (?, ?, ?)", (key, path, names))

    def _room(self, key: str, path: str, most: int) -> str:
        """The path for the next name in a folder, with a `/` at the end unless it is the base folder itself."""
        found = self._connection.execute("SELECT names FROM folder WHERE key = ?", [key]).fetchone()
        names = int(found[0]) if found else 0
        if found:
            self._connection.execute("UPDATE folder SET names = names + 1 WHERE key = ?", [key])
        else:
            self.put_folder(key, path, 1)
        begin = names // most * most
        return "".join(f"{part}/" for part in (path, f"starting_at_{begin}" if begin else "") if part)

    def _is_free(self, place: Place) -> bool:
        """True if no other document has this place, and no folder on the way has another spelling."""
        query = "SELECT 1 FROM document WHERE key = ?"
        if self._connection.execute(query, [place.key]).fetchone():
            return False
        for number in range(1, len(place.folders) + 1):
            folders = place.folders[:number]
            known = self.folder("".join(f"/{folder.lower()}" for folder in folders))
            if known and without_numbers(known) != folders:
                return False
        return True


def without_numbers(path: str) -> tuple[str, ...]:
    """The parts of a path, without folders such as `starting_at_5000`."""
    return tuple(part for part in path.split("/") if part and starts_at(part) is None)


def make_index(file: Path, folder_id: str) -> None:
    """Make an empty index where there is no file."""
    with closing(_connected(file, "rwc")) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.executescript(_TABLES)
        connection.execute("INSERT INTO about VALUES (?)", [folder_id])


def open_index(file: Path, base: Path, folder_id: str) -> Index:
    """The index in a file. Raises TargetError if it is no index, or the index of another folder, and sqlite3.Error."""
    if not file.exists():
        raise damaged(base, "is not there (it does not travel with git)")
    connection = _connected(file, "rw")
    try:
        found = tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        if found[0] != _APPLICATION:
            raise damaged(base, "is damaged: it is empty, or something else")
        if found[1] != _VERSION:
            raise damaged(base, "was made by another version of this program")
        about = connection.execute("SELECT folder_id FROM about").fetchone()
        if about is None or about[0] != folder_id:
            raise damaged(base, "belongs to another folder")
    except BaseException:
        connection.close()
        raise
    return Index(connection)


def _connected(file: Path, mode: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(file))}?mode={mode}"
    connection = sqlite3.connect(
        uri, _WAIT_SECONDS, isolation_level=None, check_same_thread=False, uri=True, cached_statements=64
    )
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_text(text: str) -> bool:
    """True if SQLite can store it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
