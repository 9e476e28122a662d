"""The records of a long list in little memory: their versions, and the document ids of an answer."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterable, Iterator

_FIRST_PLACES = 4096

_LOAD_FACTOR = 0.8
"""The places double when this part of them is taken."""


class KeyTable:
    """A set of keys, which are numbers of 64 bits: a hash table with open addressing, in one array.

    Many small buckets would lie between the records of a page in memory. The gaps between them double their memory.
    """

    def __init__(self) -> None:
        self._number = 0
        self._set_places(_FIRST_PLACES)

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[int]:
        return filter(None, self._keys)

    def __contains__(self, key: int) -> bool:
        return self._keys[self._place(key or 1)] != 0

    def add(self, key: int) -> int:
        """The place of the key, which the table has from now on."""
        key = key or 1  # 0 is a free place
        place = self._place(key)
        if not self._keys[place]:
            self._keys[place] = key
            self._number += 1
            if self._number >= _LOAD_FACTOR * len(self._keys):
                self._double()
                place = self._place(key)
        return place

    def _place(self, key: int) -> int:
        """Where the key is, or would be."""
        keys, place = self._keys, key & self._mask
        while (found := keys[place]) != key and found:
            place = (place + 1) & self._mask
        return place

    def _set_places(self, number: int) -> None:
        """Make this number of free places, a power of two."""
        self._keys = array("q", (0,)) * number
        self._mask = number - 1

    def _double(self) -> None:
        """Move the keys to twice as many places."""
        old = self._keys
        self._set_places(2 * len(old))
        for key in filter(None, old):
            self._keys[self._place(key)] = key


class Versions(KeyTable):
    """The version of each record by its key; both are numbers of 64 bits.

    140,000 records take 4 MB; a dict takes 10 MB.
    """

    def __init__(self) -> None:
        super().__init__()
        self._versions = array("q", (0,)) * _FIRST_PLACES

    def get(self, key: int) -> int | None:
        """The version of a record; None if there is none."""
        place = self._place(key or 1)
        return self._versions[place] if self._keys[place] else None

    def __setitem__(self, key: int, version: int) -> None:
        place = self.add(key)
        self._versions[place] = version

    def _double(self) -> None:
        keys, versions = self._keys, self._versions
        super()._double()
        self._versions = array("q", (0,)) * len(self._keys)
        for key, version in zip(keys, versions, strict=True):
            if key:
                self._versions[self._place(key)] = version


class NamedIds:
    """The document ids that an answer has named: 140,000 of them take 3 MB; a set of texts takes 20 MB.

    `in` compares hashes of 64 bits: by chance, it finds one unnamed id of some 10^14 in them.
    """

    def __init__(self) -> None:
        self._last: list[str] = []
        self._pages: list[bytes] = []
        self._hashes = KeyTable()

    def add_page(self, document_ids: Iterable[str]) -> None:
        """Add the ids of a page. Most answers are one page: the page before is compressed when another one comes."""
        if self._last:
            self._pages.append(zlib.compress(json.dumps(self._last).encode(), 1))
            for each in self._last:
                self._hashes.add(hash(each))
        self._last = sorted(document_ids)

    def __contains__(self, document_id: object) -> bool:
        return hash(document_id) in self._hashes or document_id in self._last

    def __iter__(self) -> Iterator[str]:
        """The ids, page by page; an id that two pages have named comes twice."""
        for page in self._pages:
            yield from json.loads(zlib.decompress(page))
        yield from self._last
