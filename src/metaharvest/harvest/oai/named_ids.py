"""The document ids of a long answer in little memory."""

from __future__ import annotations

import json
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator

_FIRST_BUCKETS = 4096

_LOAD_FACTOR = 64
"""The number of buckets doubles when a bucket has more hashes than this, on average. A search reads a whole bucket."""


class NamedIds:
    """The document ids that an answer has named: 140,000 of them take 3 MB; a set of texts takes 20 MB.

    `in` compares hashes of 64 bits: by chance, it finds one unnamed id of some 10^14 in them.
    """

    def __init__(self) -> None:
        self._last: list[str] = []
        self._pages: list[bytes] = []
        self._hashes: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))
        self._bucket_count = _FIRST_BUCKETS
        self._number = 0

    def add_page(self, document_ids: Iterable[str]) -> None:
        """Add the ids of a page. Most answers are one page: the page before is compressed when another one comes."""
        if self._last:
            self._pages.append(zlib.compress(json.dumps(self._last).encode(), 1))
            self._add(map(hash, self._last))
            self._number += len(self._last)
            if self._number > _LOAD_FACTOR * self._bucket_count:
                self._double()
        self._last = sorted(document_ids)

    def _add(self, hashes: Iterable[int]) -> None:
        for each in hashes:
            self._hashes[each % self._bucket_count].append(each)

    def _double(self) -> None:
        """Move the hashes to twice as many buckets."""
        old, self._hashes = self._hashes, defaultdict(lambda: array("q"))
        self._bucket_count *= 2
        while old:
            self._add(old.popitem()[1])

    def __contains__(self, document_id: object) -> bool:
        number = hash(document_id)
        return number in self._hashes.get(number % self._bucket_count, ()) or document_id in self._last

    def __iter__(self) -> Iterator[str]:
        """The ids, page by page; an id that two pages have named comes twice."""
        for page in self._pages:
            yield from json.loads(zlib.decompress(page))
        yield from self._last
