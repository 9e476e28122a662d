"""The index in a folder, by tantivy: https://docs.rs/tantivy. One process writes, any number read."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic_core import to_json

from metaharvest.errors import IndexUnavailable, library_errors
from metaharvest.model.actions import todo
from metaharvest.pipeline.search.contract import (
    FACET_VALUES,
    FACETS,
    NAMED_FIELDS,
    RELATED_FIELDS,
    TIE,
    WORD_FIELDS,
    Entry,
    Filters,
    Found,
    Hiding,
    Hit,
    Place,
    Search,
    Sort,
    field_values,
    ordered_counts,
)
from metaharvest.pipeline.search.query_language import All, AnyOf, Query, Without, Words, Years
from metaharvest.text import one_line

_HEAP = 64_000_000
"""Bytes of memory of the writer before it writes a segment."""

_MOST_TIED = 20_000
"""Hits of one score whose order by number is kept from page to page."""

STATE = "meta.json"
"""tantivy replaces this file with each commit."""

_NUMBERS = ("number", "rank", "site_id", "work")
_EXACT = ("document_id", "origin")
_Native = Any
"""A query of tantivy."""

_TOTAL = "total"
_BASIC = "basic"
"""The option of a field whose positions nobody needs."""


def library() -> Any:
    """The module tantivy. Raises MetaharvestError if it is not installed."""
    with library_errors("pipeline", "the search needs", "tantivy"):
        import tantivy
    return tantivy


@cache
def _schema() -> Any:
    builder = library().SchemaBuilder()
    for name in _NUMBERS:
        builder.add_unsigned_field(name, indexed=True, fast=True)
    builder.add_integer_field("year_number", indexed=True, fast=True)
    for name in (*WORD_FIELDS, *NAMED_FIELDS):
        builder.add_text_field(name, tokenizer_name="whitespace")
    for name in FACETS:
        builder.add_text_field(name, tokenizer_name="raw", index_option=_BASIC, fast=True)
    for name in _EXACT:
        builder.add_text_field(name, tokenizer_name="raw", index_option=_BASIC)
    builder.add_bytes_field("record", stored=True)
    return builder.build()


@contextmanager
def _index_errors(folder: Path) -> Iterator[None]:
    """Errors of tantivy as sentences."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise IndexUnavailable(
            f"The search index in {folder} cannot be used: {one_line(str(error), 300)}. "
            f"If it is damaged, {todo('pipeline.rebuild')} makes it again."
        ) from error


class EmbeddedWriter:
    """The writer of the index in a folder; a new index, if the folder has none. Use it in `with`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tantivy = library()
        with _index_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._index = self._tantivy.Index(_schema(), str(folder))
            self._writer = self._index.writer(_HEAP, 1)
        self._highest = self.last_number()

    def __enter__(self) -> EmbeddedWriter:
        return self

    def __exit__(self, *_error: object) -> None:
        """Wait for the merges of segments, and release the lock of the writer."""
        with _index_errors(self._folder):
            self._writer.wait_merging_threads()

    def put(self, entries: Sequence[Entry]) -> Mapping[int, str]:
        """Write these entries; returns the reasons of entries that cannot be written. Raises IndexUnavailable."""
        schema, refused = _schema(), {}
        with _index_errors(self._folder):
            # The index has no entry with a higher number. A deletion takes time even if it finds nothing.
            self._delete([entry.number for entry in entries if entry.number <= self._highest])
            self._highest = max(self._highest, *(entry.number for entry in entries), 0)
            for entry in entries:
                known = {name: value for name, value in field_values(entry).items() if value is not None}
                try:
                    document = self._tantivy.Document.from_dict({**known, "record": to_json(entry.record)}, schema)
                except (ValueError, TypeError, OverflowError) as error:
                    refused[entry.number] = one_line(str(error), 300)
                else:
                    self._writer.add_document(document)
        return refused

    def remove(self, numbers: Collection[int]) -> None:
        """Remove the entries with these numbers. Raises IndexUnavailable."""
        with _index_errors(self._folder):
            self._delete(list(numbers))

    def _delete(self, numbers: Sequence[int]) -> None:
        if numbers:
            self._writer.delete_documents_by_query(library().Query.term_set_query(_schema(), "number", list(numbers)))

    def last_number(self) -> int:
        """The highest number of the entries. Raises IndexUnavailable."""
        with _index_errors(self._folder):
            everything, searcher = self._tantivy.Query.all_query(), self._committed()
            found = searcher.search(everything, 1, count=False, order_by_field="number").hits
        return found[0][0] if found else 0

    def size(self) -> int:
        """The number of the entries. Raises IndexUnavailable."""
        with _index_errors(self._folder):
            return int(self._committed().num_docs)

    def _committed(self) -> Any:
        self._index.reload()
        return self._index.searcher()

    def commit(self) -> None:
        """Show the written entries to readers. Raises IndexUnavailable."""
        with _index_errors(self._folder):
            self._writer.commit()


class EmbeddedIndex:
    """An index in a folder, to read, for several threads. `name` gives its present name; it raises NoIndex."""

    def __init__(self, folder: Path, name: Callable[[], str]) -> None:
        self._folder = folder
        self._current_name = name
        self._lock = Lock()
        self._name: str | None = None
        self._state: tuple[int, int] | None = None
        self._index: Any = None

    def _searcher(self) -> Any:
        """The present state of the index. Raises NoIndex, and the errors of tantivy."""
        with self._lock:
            try:
                return self._present()
            except (FileNotFoundError, ValueError):
                # The index was replaced after the look at its name: now there is another one.
                self._index = None
                return self._present()

    def _present(self) -> Any:
        name = self._current_name()
        status = (self._folder / name / STATE).stat()
        state = (status.st_mtime_ns, status.st_ino)
        if self._index is None or name != self._name:
            self._index = library().Index.open(str(self._folder / name))
            self._index.config_reader("manual")
        elif state != self._state:
            self._index.reload()
        self._name, self._state = name, state
        return self._index.searcher()

    def search(self, search: Search) -> Found:
        """Answer a search. Raises IndexUnavailable."""
        with _index_errors(self._folder):
            searcher, query = self._searcher(), _restricted(_translated(search.query), search.filters, search.hiding)
            found = (_by_year if search.order is Sort.YEAR else _by_score)(searcher, query, search)
            hits = [
                Hit(place.number, place.value if search.order is Sort.RELEVANCE else 0.0, place, _record(searcher, at))
                for place, at in found
            ]
            total, facets = _counted(searcher, query, FACETS if search.facets else ())
            return Found(total, hits, facets)

    def more_like_this(self, terms: Mapping[str, float], limit: int, hiding: Hiding) -> Sequence[Hit]:
        """The outputs that have most of these terms. Raises IndexUnavailable."""
        parts = [
            _boosted(_term(field, term), weight * of_field)
            for term, weight in terms.items()
            for field, of_field in RELATED_FIELDS.items()
        ]
        if not parts:
            return []
        with _index_errors(self._folder):
            searcher, query = self._searcher(), _restricted(_any_of(parts), Filters(), hiding)
            found = _by_score(searcher, query, Search(limit=limit))
            return [Hit(place.number, place.value, place, _record(searcher, at)) for place, at in found]

    def frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """The number of outputs with each term, and of all as "". Raises IndexUnavailable."""
        with _index_errors(self._folder):
            searcher = self._searcher()
            queries = {each: _any_of([_term(field, each) for field in RELATED_FIELDS]) for each in terms}
            found = {each: searcher.search(query, 1).count for each, query in queries.items()}
            return {**found, "": searcher.num_docs}

    def size(self) -> int:
        """The number of outputs. Raises IndexUnavailable."""
        with _index_errors(self._folder):
            return int(self._searcher().num_docs)


def _by_year(searcher: Any, query: _Native, search: Search) -> Sequence[tuple[Place, Any]]:
    """The next hits by their rank."""
    seen = 0
    if search.after is not None:
        rank, seen = int(search.after.value), search.after.seen
        query = _all_of([query, _constant(_range("rank", library().FieldType.Unsigned, None, max(rank - 1, 0)))])
    hits = searcher.search(query, search.limit, count=False, order_by_field="rank").hits
    numbers = searcher.fast_field_values("number", [at for _rank, at in hits])
    return [
        (Place(rank, number, seen + place), at)
        for place, ((rank, at), number) in enumerate(zip(hits, numbers, strict=True), 1)
    ]


def _by_score(searcher: Any, query: _Native, search: Search) -> Sequence[tuple[Place, Any]]:
    """The next hits by their score; hits of one score by their number.

    tantivy orders hits of one score by their place in the files, which changes. Therefore all hits of the last score
    are read.
    """
    after = search.after
    start = (-after.value, after.number) if after is not None else (-float("inf"), 0)
    seen = after.seen if after is not None else 0
    wanted = seen + search.limit + 1
    while True:
        hits = searcher.search(query, wanted, count=False).hits
        numbers = searcher.fast_field_values("number", [at for _score, at in hits])
        ordered = sorted(
            ((-score, number, at) for (score, at), number in zip(hits, numbers, strict=True)), key=lambda each: each[:2]
        )
        page = [each for each in ordered if each[:2] > start][: search.limit]
        is_whole = len(hits) < wanted or (len(page) == search.limit and page[-1][0] < -hits[-1][0])
        if is_whole or wanted > seen + _MOST_TIED:
            break
        wanted *= 4
    return [(Place(-negative, number, seen + place), at) for place, (negative, number, at) in enumerate(page, 1)]


def _record(searcher: Any, at: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(bytes(searcher.doc(at)["record"][0]))
    return found


def _counted(searcher: Any, query: _Native, facets: Collection[str]) -> tuple[int, Mapping[str, Mapping[str, int]]]:
    """The number of all hits, and the values of each facet with their numbers, the most frequent first.

    All in one pass: the count of a search would take another one.
    """
    wanted = {name: {"terms": {"field": name, "size": FACET_VALUES}} for name in facets}
    found = searcher.aggregate(query, {**wanted, _TOTAL: {"value_count": {"field": "number"}}})
    counts = {
        name: ordered_counts((each["key"], each["doc_count"]) for each in found[name]["buckets"]) for name in facets
    }
    return int(found[_TOTAL]["value"]), counts


def _translated(query: Query) -> _Native:
    """A query in the terms of tantivy."""
    tantivy = library()
    match query:
        case Words(terms, _, None):
            fields = [_boosted(_phrase(name, terms), weight) for name, weight in WORD_FIELDS.items()]
            return tantivy.Query.disjunction_max_query(fields, TIE)
        case Words(terms, _, str(field)):
            return _boosted(_phrase(field, terms), WORD_FIELDS.get(field, 1.0))
        case Years(first, last):
            return _constant(_range("year_number", tantivy.FieldType.Integer, first, last))
        case AnyOf(parts):
            return _any_of([_translated(part) for part in parts])
        case Without(part):
            return _constant(_all_of([tantivy.Query.all_query()], [_translated(part)]))
        case All(parts) if parts:
            return _all_of([_translated(part) for part in parts])
        case _:
            return _constant(tantivy.Query.all_query())


def _restricted(query: _Native, filters: Filters, hiding: Hiding) -> _Native:
    """The query for hits with the values of the filters that are not hidden."""
    tantivy = library()
    needed = [
        tantivy.Query.term_set_query(_schema(), name, list(values)) for name, values in filters.values.items() if values
    ]
    if filters.first_year is not None or filters.last_year is not None:
        needed.append(_range("year_number", tantivy.FieldType.Integer, filters.first_year, filters.last_year))
    if filters.work is not None:
        needed.append(_term("work", filters.work))
    if filters.document_id is not None:
        needed.append(_term("document_id", filters.document_id))
    hidden = [_term("site_id", each) for each in hiding.sites] + [_term("origin", each) for each in hiding.origins]
    if hiding.numbers:
        hidden.append(tantivy.Query.term_set_query(_schema(), "number", list(hiding.numbers)))
    if not needed and not hidden:
        return query
    return _all_of([query, *map(_constant, needed)], hidden)


def _all_of(parts: Sequence[_Native], without: Sequence[_Native] = ()) -> _Native:
    """Documents that all parts find, without others."""
    occur = library().Occur
    needed, refused = [(occur.Must, each) for each in parts], [(occur.MustNot, each) for each in without]
    return library().Query.boolean_query([*needed, *refused])


def _any_of(parts: Sequence[_Native]) -> _Native:
    """Documents that one of the parts finds."""
    return library().Query.boolean_query([(library().Occur.Should, each) for each in parts])


def _constant(query: _Native) -> _Native:
    """A part that adds nothing to the score."""
    return library().Query.const_score_query(query, 0.0)


def _boosted(query: _Native, weight: float) -> _Native:
    return library().Query.boost_query(query, weight)


def _term(field: str, value: str | int) -> _Native:
    return library().Query.term_query(_schema(), field, value)


def _phrase(field: str, terms: Sequence[str]) -> _Native:
    """Terms one after another."""
    if len(terms) == 1:
        return _term(field, terms[0])
    return library().Query.phrase_query(_schema(), field, list(terms))


def _range(field: str, kind: Any, first: int | None, last: int | None) -> _Native:
    return library().Query.range_query(_schema(), field, kind, first, last)
