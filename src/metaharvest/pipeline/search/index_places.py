"""The place of the index, in a folder or on a search server: the current index, and the next one while it is made.

The name of an index has its version and a number: v1-3 is the third one, of the version 1. On a server, the names begin
with the alias that names the current index. In a folder, a file names it:

    index/current      the name of the current index
    index/v1-3         an index

Readers look at the name for each search. It is replaced at once; the old index is deleted afterwards. An index with a
higher number than the current one was begun.
"""

from __future__ import annotations

import logging
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from metaharvest.config.files import replace_file
from metaharvest.errors import IndexUnavailable, NoIndex
from metaharvest.pipeline.search.contract import INDEX_VERSION, NO_INDEX, OLDEST_READABLE, IndexWriter, SearchIndex
from metaharvest.pipeline.search.embedded_index import STATE, EmbeddedIndex, EmbeddedWriter
from metaharvest.pipeline.search.opensearch_index import (
    MAPPING,
    OpenSearchIndex,
    OpenSearchWriter,
    client_of,
    server_errors,
)

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

_LOG = logging.getLogger(__name__)
_POINTER = "current"
_ALIAS = "metaharvest"
"""The alias, unless the URL has another one as its path."""


class IndexPlace(ABC):
    """Where the index is: the current one, which readers see, and the next one.

    On a server, all functions raise IndexUnavailable; in a folder, OSError.

    The names of indexes begin with `prefix`.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._own = re.compile(rf"{re.escape(prefix)}v(\d{{1,6}})-(\d{{1,9}})", re.ASCII)

    @abstractmethod
    def reader(self) -> SearchIndex:
        """The current index, as it is at each call, for several threads: readers are not opened again."""

    def version(self) -> int | None:
        """The version of the current index; None if there is none."""
        name = self._current_name()
        return None if name is None else self._version(name)

    def current(self) -> AbstractContextManager[IndexWriter] | None:
        """The writer of the current index; None if there is none of INDEX_VERSION."""
        name = self._current_name()
        return self._writer(name) if name is not None and self.version() == INDEX_VERSION else None

    def is_begun(self) -> bool:
        """True if an index was begun."""
        return self._next_name() is not None

    def next(self) -> AbstractContextManager[IndexWriter] | None:
        """The writer of the index that was begun; None if there is none, or it is damaged."""
        name = self._next_name()
        try:
            return None if name is None else self._writer(name)
        except IndexUnavailable as error:
            _LOG.warning("The new index %s is not used: %s", name, error)
            return None

    def begin(self) -> AbstractContextManager[IndexWriter]:
        """The writer of a new index."""
        number = max([self._current_number(), *map(self._number, self._names())]) + 1
        name = f"{self._prefix}v{INDEX_VERSION}-{number}"
        self._create(name)
        return self._writer(name)

    def swap(self) -> None:
        """Make the next index the current one, at once for all readers, and delete the older ones."""
        if (name := self._next_name()) is not None:
            self._make_current(name)
            self.delete_old()

    def delete_old(self) -> None:
        """Delete the indexes that are older than the current one. One that cannot be deleted stays, and is logged."""
        current = self._current_number()
        for each in self._names():
            if self._number(each) < current:
                try:
                    self._delete(each)
                except (IndexUnavailable, NoIndex) as error:
                    _LOG.warning("The old index %s stays: %s", each, error)

    def _readable_name(self) -> str:
        """The current index, if searches can read its version. Raises NoIndex."""
        name = self._current_name()
        version = None if name is None else self._version(name)
        if name is None or version is None or not OLDEST_READABLE <= version <= INDEX_VERSION:
            raise NoIndex(NO_INDEX)
        return name

    def _next_name(self) -> str | None:
        current = self._current_number()
        made = [each for each in self._names() if self._number(each) > current]
        return max((each for each in made if self._version(each) == INDEX_VERSION), key=self._number, default=None)

    def _current_number(self) -> int:
        """The number of the current index; 0 if there is none."""
        name = self._current_name()
        return self._number(name) if name is not None and self._version(name) is not None else 0

    def _version(self, name: str) -> int | None:
        """The version of an index; None for an index of somebody else."""
        found = self._own.fullmatch(name)
        return int(found[1]) if found else None

    def _number(self, name: str) -> int:
        return int(name.rpartition("-")[2])

    @abstractmethod
    def _current_name(self) -> str | None: ...

    @abstractmethod
    def _names(self) -> Sequence[str]:
        """The indexes of this program, of all versions."""

    @abstractmethod
    def _writer(self, name: str) -> AbstractContextManager[IndexWriter]: ...

    @abstractmethod
    def _create(self, name: str) -> None: ...

    @abstractmethod
    def _make_current(self, name: str) -> None: ...

    @abstractmethod
    def _delete(self, name: str) -> None: ...


class IndexFolder(IndexPlace):
    """The place of the embedded index, below this folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._reader = EmbeddedIndex(folder, self._readable_name)

    def reader(self) -> EmbeddedIndex:
        """See IndexPlace."""
        return self._reader

    def version(self) -> int | None:
        """See IndexPlace. A folder without the state of its index has none."""
        name = self._current_name()
        return super().version() if name is not None and (self._folder / name / STATE).is_file() else None

    def _current_name(self) -> str | None:
        try:
            name = (self._folder / _POINTER).read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return None
        return name if self._own.fullmatch(name) else None

    def _names(self) -> Sequence[str]:
        if not self._folder.is_dir():
            return []
        return [each.name for each in self._folder.iterdir() if self._own.fullmatch(each.name)]

    def _writer(self, name: str) -> EmbeddedWriter:
        return EmbeddedWriter(self._folder / name)

    def _create(self, name: str) -> None:
        """The writer creates the index."""

    def _make_current(self, name: str) -> None:
        replace_file(self._folder / _POINTER, f"{name}\n".encode())

    def _delete(self, name: str) -> None:
        shutil.rmtree(self._folder / name, ignore_errors=True)


class IndexServer(IndexPlace):
    """The place of the index at a URL of the settings: `https://HOST:PORT`, or `https://HOST:PORT/ALIAS`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._url = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        self._alias = parts.path.strip("/") or _ALIAS
        super().__init__(f"{self._alias}-")

    @cached_property
    def _client(self) -> OpenSearch:
        return client_of(self._url)

    def reader(self) -> OpenSearchIndex:
        """See IndexPlace."""
        return OpenSearchIndex(self._client, self._url, self._readable_name)

    def _current_name(self) -> str | None:
        try:
            with server_errors(self._url):
                return next(iter(self._client.indices.get_alias(name=self._alias)), None)
        except NoIndex:
            return None

    def _names(self) -> Sequence[str]:
        try:
            with server_errors(self._url):
                return list(filter(self._own.fullmatch, self._client.indices.get(index=f"{self._prefix}v*")))
        except NoIndex:
            return []

    def _writer(self, name: str) -> AbstractContextManager[OpenSearchWriter]:
        return nullcontext(OpenSearchWriter(self._client, self._url, name))

    def _create(self, name: str) -> None:
        with server_errors(self._url):
            self._client.indices.create(index=name, body={"mappings": MAPPING})

    def _make_current(self, name: str) -> None:
        actions = [{"add": {"index": name, "alias": self._alias}}]
        current = self._current_name()
        if current is not None:
            actions.append({"remove": {"index": current, "alias": self._alias}})
        with server_errors(self._url):
            self._client.indices.update_aliases(body={"actions": actions})

    def _delete(self, name: str) -> None:
        with server_errors(self._url):
            self._client.indices.delete(index=name)
