"""The place of the embedded index: folders with a version and a number, and a file that names the current one.

    index/current      the name of the current index
    index/v1-3         an index of the version 1, the third one

Readers look at the file for each search. It is replaced at once; the old folder is deleted afterwards.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from threading import Lock
from typing import Any

from metaharvest.config.files import replace_file
from metaharvest.errors import NoIndex
from metaharvest.pipeline.search.contract import INDEX_VERSION, NO_INDEX, OLDEST_READABLE
from metaharvest.pipeline.search.embedded_index import EmbeddedIndex, EmbeddedWriter, library

_NAME = re.compile(r"v(\d{1,6})-(\d{1,9})", re.ASCII)
_POINTER = "current"
_STATE = "meta.json"
"""tantivy replaces this file with each commit."""


class IndexFolder:
    """The place of the embedded index, below this folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader = EmbeddedIndex(folder, _Searchers(folder))

    def reader(self) -> EmbeddedIndex:
        """The current index, for several threads."""
        return self._reader

    def version(self) -> int | None:
        """The version of the current index; None if there is none."""
        name = current_name(self._folder)
        return _version(name) if name is not None and (self._folder / name / _STATE).is_file() else None

    def current(self) -> EmbeddedWriter | None:
        """The writer of the current index; None if there is none of this version. Raises IndexUnavailable."""
        name = current_name(self._folder)
        return EmbeddedWriter(self._folder / name) if name is not None and self.version() == INDEX_VERSION else None

    def next(self) -> EmbeddedWriter | None:
        """The writer of the index that was begun; None if there is none. Raises IndexUnavailable."""
        name = self._next_name()
        return EmbeddedWriter(self._folder / name) if name is not None else None

    def begin(self) -> EmbeddedWriter:
        """The writer of a new index. Raises IndexUnavailable."""
        number = max((_number(each) for each in self._names()), default=0)
        return EmbeddedWriter(self._folder / f"v{INDEX_VERSION}-{number + 1}")

    def swap(self) -> None:
        """Make the next index the current one, and delete all others."""
        if (name := self._next_name()) is None:
            return
        replace_file(self._folder / _POINTER, f"{name}\n".encode())
        for each in self._names():
            if each != name:
                shutil.rmtree(self._folder / each, ignore_errors=True)

    def _next_name(self) -> str | None:
        """The name of the index that is made."""
        current = current_name(self._folder)
        made = [each for each in self._names() if each != current and _version(each) == INDEX_VERSION]
        return max(made, key=_number, default=None)

    def _names(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        return [each.name for each in self._folder.iterdir() if _NAME.fullmatch(each.name)]


def current_name(folder: Path) -> str | None:
    """The name of the current index; None if there is none."""
    try:
        name = (folder / _POINTER).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    return name if _NAME.fullmatch(name) else None


def _version(name: str) -> int:
    return int(name.removeprefix("v").partition("-")[0])


def _number(name: str) -> int:
    return int(name.partition("-")[2])


class _Searchers:
    """The state of the current index, as it is at each call, for several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._name: str | None = None
        self._state: tuple[int, int] | None = None
        self._index: Any = None

    def __call__(self) -> Any:
        """The present state. Raises NoIndex, and the errors of tantivy."""
        with self._lock:
            try:
                return self._present()
            except (FileNotFoundError, ValueError):
                # The index was replaced after the look at its name: now there is another one.
                self._index = None
                return self._present()

    def _present(self) -> Any:
        name = current_name(self._folder)
        if name is None or not OLDEST_READABLE <= _version(name) <= INDEX_VERSION:
            raise NoIndex(NO_INDEX)
        status = (self._folder / name / _STATE).stat()
        state = (status.st_mtime_ns, status.st_ino)
        if self._index is None or name != self._name:
            self._index = library().Index.open(str(self._folder / name))
            self._index.config_reader("manual")
        elif state != self._state:
            self._index.reload()
        self._name, self._state = name, state
        return self._index.searcher()
