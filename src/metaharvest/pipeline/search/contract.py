"""What each search index can do: the entries that it takes, the searches that it answers.

There are two indexes: `embedded_index` and `opensearch_index`. The same tests hold for both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, Protocol

from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.pipeline.search.query_language import EVERYTHING, Query, words_of

INDEX_VERSION = 1
"""The version of the fields, of the terms and of the records. An index with another version is made again."""

OLDEST_READABLE = 1
"""The oldest version that searches can read until the new index is complete.

Its fields are the first fields of this version, in the same order; its records have what answers show.
"""

NO_INDEX = f"There is no search index yet: {todo('pipeline.run')} makes it."

WORD_FIELDS: Mapping[str, float] = {
    "title": 3.0, "author": 2.0, "subject": 2.0, "abstract": 1.5, "text": 1.0, "identifier": 2.0,
}  # fmt: skip
"""The fields that words without a field are searched in, with the weight of a hit in each."""

RELATED_FIELDS: Mapping[str, float] = {"title": 2.0, "subject": 2.0, "abstract": 1.0}
"""The fields that related outputs are found by."""

TIE = 0.3
"""The share that each further field adds to the score of the best one."""

NAMED_FIELDS = ("site_words", "type_words", "language_words", "licence_words")
FACETS = ("site", "year", "type", "language", "licence", "full_text")
FACET_VALUES = 50
"""The most values of a facet that an index counts."""

Record = Mapping[str, Any]
"""The parts of an output that the index keeps for answers: see entries.py."""


@frozen
class Entry:
    """One output in the index.

    `number` is its document in the catalogue, `change_seq` the number of its last change. `words` are the texts
    to search by field of the index, `facets` the values of a document to filter by and to count. `record` is kept for
    answers.
    """

    number: int
    document_id: str
    change_seq: int
    site_id: int | None
    origin: str | None
    work: int
    year: int | None
    words: Mapping[str, str]
    facets: Mapping[str, str]
    record: Record


class Sort(StrEnum):
    """The order of the hits: the best one first, or the newest year first."""

    RELEVANCE = "relevance"
    YEAR = "year"


@frozen
class Hiding:
    """The sites, by number, and the origins whose outputs are in no answer, and the numbers of single outputs."""

    sites: Collection[int] = ()
    origins: Collection[str] = ()
    numbers: Collection[int] = ()


@frozen
class Filters:
    """The values that hits have: of each facet one of these. Nothing: any value."""

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    first_year: int | None = None
    last_year: int | None = None
    work: int | None = None
    document_id: str | None = None


@frozen
class Place:
    """The place of the last hit that was seen: its score or its rank by year, its number, and the hits up to it."""

    value: float
    number: int
    seen: int


@frozen
class Search:
    """A search: at most `limit` hits after a place. `facets`: their values are counted over all hits."""

    query: Query = EVERYTHING
    filters: Filters = field(default_factory=Filters)
    sort: Sort = Sort.RELEVANCE
    limit: int = 20
    after: Place | None = None
    facets: bool = False
    hiding: Hiding = field(default_factory=Hiding)

    @property
    def order(self) -> Sort:
        """The order of the answer: hits without words to weigh have the order of their years."""
        return self.sort if any(words_of(self.query)) else Sort.YEAR


@frozen
class Hit:
    """An output that was found. `score` is 0 if the hits are in the order of years."""

    number: int
    score: float
    place: Place
    record: Record


@frozen
class Found:
    """The answer to a search: the number of all hits, some of them, and how often each value of a facet occurs."""

    total: int
    hits: Sequence[Hit]
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class SearchIndex(Protocol):
    """An index to read. All functions raise NoIndex, or IndexUnavailable."""

    def search(self, search: Search) -> Found:
        """Answer a search."""

    def more_like_this(self, terms: Mapping[str, float], limit: int, hiding: Hiding) -> Sequence[Hit]:
        """The outputs whose titles, subjects and abstracts have most of these terms; each term with its weight."""

    def frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """The number of outputs with each term in their titles, subjects or abstracts, and of all outputs as ``""``."""

    def size(self) -> int:
        """The number of outputs."""


class IndexWriter(Protocol):
    """The one writer of an index. All functions raise IndexUnavailable."""

    def put(self, entries: Sequence[Entry]) -> Mapping[int, str]:
        """Write these entries, each in the place of an older one with its number.

        Returns the reasons of entries that the index does not accept, by number. The other entries are written.
        """

    def remove(self, numbers: Collection[int]) -> None:
        """Remove the entries with these numbers, if the index has them."""

    def last_number(self) -> int:
        """The highest number of the entries that were committed; 0 if there are none."""

    def size(self) -> int:
        """The number of the entries that were committed."""

    def commit(self) -> None:
        """Show the written entries to readers. A process that ends loses the entries that it has not committed."""


_RANK_OF_YEAR = 2**38
"""Documents have lower numbers; a rank is less than 2**53, which JSON holds."""


def field_values(entry: Entry) -> dict[str, Any]:
    """The values of an entry by field of the index, without the record."""
    return {
        "number": entry.number,
        # The place in the order of years: the higher, the newer. Each output has a rank of its own.
        "rank": min(max(entry.year or 0, 0), 9999) * _RANK_OF_YEAR + min(entry.number, _RANK_OF_YEAR - 1),
        "site_id": entry.site_id,
        "work": entry.work,
        "year_number": entry.year,
        "document_id": entry.document_id,
        "origin": entry.origin,
        **entry.words,
        **entry.facets,
    }


def ordered_counts(pairs: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    """The values of a facet, the most frequent first; equal ones by name."""
    return dict(sorted(pairs, key=lambda each: (-each[1], each[0])))
