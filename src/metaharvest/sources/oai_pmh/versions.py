"""The versions of the records of a long list in little memory."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator

_FIRST_BUCKETS = 4096

_LOAD_FACTOR = 64
"""The number of buckets doubles when a bucket has more records than this, on average. A search reads a whole bucket."""


class Versions:
    """The version of each record by its key; both are numbers of 64 bits.

    140,000 records take 3 MB; a dict takes 10 MB.
    """

    def __init__(self) -> None:
        self._buckets: defaultdict[int, tuple[array[int], array[int]]] = defaultdict(_bucket)
        self._bucket_count = _FIRST_BUCKETS
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[int]:
        """The keys."""
        for keys, _ in self._buckets.values():
            yield from keys

    def __contains__(self, key: int) -> bool:
        return key in self._buckets[key % self._bucket_count][0]

    def get(self, key: int) -> int | None:
        """The version of a record; None if there is none."""
        keys, versions = self._buckets[key % self._bucket_count]
        return versions[keys.index(key)] if key in keys else None

    def __setitem__(self, key: int, version: int) -> None:
        keys, versions = self._buckets[key % self._bucket_count]
        if key in keys:
            versions[keys.index(key)] = version
            return
        keys.append(key)
        versions.append(version)
        self._number += 1
        if self._number > _LOAD_FACTOR * self._bucket_count:
            self._double()

    def _double(self) -> None:
        """Move the records to twice as many buckets."""
        old, self._buckets, self._bucket_count = self._buckets, defaultdict(_bucket), 2 * self._bucket_count
        while old:
            for key, version in zip(*old.popitem()[1], strict=True):
                keys, versions = self._buckets[key % self._bucket_count]
                keys.append(key)
                versions.append(version)


def _bucket() -> tuple[array[int], array[int]]:
    return array("q"), array("q")
