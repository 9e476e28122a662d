"""The place of the index on a search server: indexes with a version and a number, and an alias for the current one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from metaharvest.errors import NoIndex
from metaharvest.pipeline.search.contract import INDEX_VERSION, NO_INDEX, OLDEST_READABLE
from metaharvest.pipeline.search.opensearch_index import (
    MAPPING,
    OpenSearchIndex,
    OpenSearchWriter,
    client_of,
    server_errors,
)

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

_ALIAS = "metaharvest"
"""The alias, unless the URL has another one as its path."""


class IndexServer:
    """The place of the index at a URL of the settings: `https://HOST:PORT`, or `https://HOST:PORT/ALIAS`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._url = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        self._alias = parts.path.strip("/") or _ALIAS
        self._own = re.compile(rf"{re.escape(self._alias)}-v(\d{{1,6}})-\d{{1,9}}", re.ASCII)

    @cached_property
    def _client(self) -> OpenSearch:
        return client_of(self._url)

    def reader(self) -> OpenSearchIndex:
        """The current index."""
        return OpenSearchIndex(self._client, self._url, self._readable_name)

    def version(self) -> int | None:
        """The version of the current index; None if there is none. Raises IndexUnavailable."""
        name = self._current_name()
        return self._version(name) if name is not None else None

    def current(self) -> AbstractContextManager[OpenSearchWriter] | None:
        """The writer of the current index; None if there is none of this version. Raises IndexUnavailable."""
        name = self._current_name()
        return self._writer(name) if name is not None and self._version(name) == INDEX_VERSION else None

    def next(self) -> AbstractContextManager[OpenSearchWriter] | None:
        """The writer of the index that was begun; None if there is none. Raises IndexUnavailable."""
        name = self._next_name()
        return self._writer(name) if name is not None else None

    def begin(self) -> AbstractContextManager[OpenSearchWriter]:
        """The writer of a new index. Raises IndexUnavailable."""
        number = max(map(self._number, self._names()), default=0)
        name = f"{self._alias}-v{INDEX_VERSION}-{number + 1}"
        with server_errors(self._url):
            self._client.indices.create(index=name, body={"mappings": MAPPING})
        return self._writer(name)

    def swap(self) -> None:
        """Make the next index the current one, and delete all others. Raises IndexUnavailable."""
        if (name := self._next_name()) is None:
            return
        others = [each for each in self._names() if each != name]
        actions = [{"add": {"index": name, "alias": self._alias}}]
        current = self._current_name()
        if current is not None:
            actions.append({"remove": {"index": current, "alias": self._alias}})
        with server_errors(self._url):
            self._client.indices.update_aliases(body={"actions": actions})
            for each in others:
                self._client.indices.delete(index=each)

    def _writer(self, name: str) -> AbstractContextManager[OpenSearchWriter]:
        return nullcontext(OpenSearchWriter(self._client, self._url, name))

    def _readable_name(self) -> str:
        """The current index, if searches can read its version. Raises NoIndex, IndexUnavailable."""
        name = self._current_name()
        version = self._version(name) if name is not None else None
        if name is None or version is None or not OLDEST_READABLE <= version <= INDEX_VERSION:
            raise NoIndex(NO_INDEX)
        return name

    def _current_name(self) -> str | None:
        try:
            with server_errors(self._url):
                return next(iter(self._client.indices.get_alias(name=self._alias)), None)
        except NoIndex:
            return None

    def _next_name(self) -> str | None:
        current = self._current_name()
        made = [each for each in self._names() if each != current and self._version(each) == INDEX_VERSION]
        return max(made, key=self._number, default=None)

    def _names(self) -> Sequence[str]:
        """The indexes of this program, of all versions."""
        try:
            with server_errors(self._url):
                return list(filter(self._own.fullmatch, self._client.indices.get(index=f"{self._alias}-v*")))
        except NoIndex:
            return []

    def _number(self, name: str) -> int:
        return int(name.rpartition("-")[2])

    def _version(self, name: str) -> int | None:
        """The version of an index; None for an index of somebody else."""
        found = self._own.fullmatch(name)
        return int(found[1]) if found else None
