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
    The loops are written out in each method: a call for each key takes three times as long.
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
        keys, mask = self._keys, self._mask
        place = key & mask
        while (found := keys[place]) != key:
            if not found:
                keys[place] = key
                self._number += 1
                if self._number >= self._most:
                    self._double()
                    return self._place(key)
                return place
            place = (place + 1) & mask
        return place

    def _place(self, key: int) -> int:
        """Where the key is, or would be."""
        keys, mask = self._keys, self._mask
        place = key & mask
        while (found := keys[place]) != key and found:
            place = (place + 1) & mask
        return place

    def _set_places(self, number: int) -> None:
        """Make this number of free places, a power of two."""
        self._keys = array("q", (0,)) * number
        self._mask = number - 1
        self._most = _LOAD_FACTOR * number

    def _double(self) -> None:
        """Move the keys to twice as many places."""
        for _ in self._moves():
            pass

    def _moves(self) -> Iterator[int]:
        """Double the places, and move each key. Gives the new place of each old one, of free ones as well."""
        old = self._keys
        self._set_places(2 * len(old))
        keys, mask = self._keys, self._mask
        for key in old:
            place = key & mask
            if key:
                while keys[place]:
                    place = (place + 1) & mask
                keys[place] = key
            yield place


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

    def setdefault(self, key: int, version: int) -> int | None:
        """The version of a record; None if there was none: then it is this one from now on."""
        before = self._number
        place = self.add(key)
        if self._number == before:
            return self._versions[place]
        self._versions[place] = version
        return None

    def __setitem__(self, key: int, version: int) -> None:
        place = self.add(key)
        self._versions[place] = version

    def _double(self) -> None:
        old = self._versions
        self._versions = array("q", (0,)) * (2 * len(old))
        for version, place in zip(old, self._moves(), strict=True):
            if version:
                self._versions[place] = version


_SOME = 2_000
"""Document ids that are kept as they are: most answers have fewer."""


class NamedIds:
    """The document ids that an answer has named: 140,000 of them take 3 MB; a set of texts takes 20 MB.

    `in` compares hashes of 64 bits: by chance, it finds one unnamed id of some 10^14 in them.
    """

    def __init__(self) -> None:
        self._last: list[str] = []
        self._are_last: set[str] = set()
        self._pages: list[bytes] = []
        self._hashes: KeyTable | None = None

    def add_page(self, document_ids: Iterable[str]) -> None:
        """Add the ids of a page. The last ones are compressed when they are many, and another page comes."""
        if len(self._last) >= _SOME:
            self._pages.append(zlib.compress(json.dumps(self._last).encode(), 1))
            self._hashes = self._hashes or KeyTable()
            for each in self._are_last:
                self._hashes.add(hash(each))
            self._last, self._are_last = [], set()
        some = sorted(document_ids)
        self._last += some
        self._are_last.update(some)

    def __contains__(self, document_id: object) -> bool:
        is_before = self._hashes is not None and hash(document_id) in self._hashes
        return is_before or document_id in self._are_last

    def __iter__(self) -> Iterator[str]:
        """The ids, page by page; an id that two pages have named comes twice."""
        for page in self._pages:
            yield from json.loads(zlib.decompress(page))
        yield from self._last
