"""The index on a server that speaks the protocol of OpenSearch: https://docs.opensearch.org/latest/api-reference/.

It uses only what small servers of the same protocol have, too: no point in time, no analysers of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metaharvest.errors import IndexUnavailable, NoIndex, library_errors
from metaharvest.pipeline.search.contract import (
    FACET_VALUES,
    FACETS,
    NAMED_FIELDS,
    NO_INDEX,
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
from metaharvest.text import one_line, without_credentials

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

_SECONDS = 30
_ENTRIES_AT_ONCE = 500
_BYTES_AT_ONCE = 10_000_000
_CONFLICT = 409
"""The server has a newer version of the entry."""

_MISSING = 404
_BAD_ENTRY = 400
"""The server cannot read the entry. Other numbers are about the server, or about the index."""

_MOST_TERMS = 50_000
"""The values of a condition: a server accepts 65,536 (`index.max_terms_count`)."""

_LONGEST_TERM = 8_000
"""Characters. A server refuses a document with a term of more than 32,766 bytes."""

MAPPING: Mapping[str, Any] = {
    "dynamic": False,
    "_source": {"includes": ["record", "number"]},
    "properties": {
        **{name: {"type": "long"} for name in ("number", "rank", "site_id", "work")},
        "year_number": {"type": "integer"},
        **{name: {"type": "text", "analyzer": "whitespace"} for name in (*WORD_FIELDS, *NAMED_FIELDS)},
        **{name: {"type": "keyword", "ignore_above": _LONGEST_TERM} for name in (*FACETS, "document_id", "origin")},
        "record": {"type": "object", "enabled": False},
    },
}


def client_of(url: str) -> OpenSearch:
    """A client of the server at this URL, for several threads. Raises MetaharvestError without the library."""
    with library_errors("opensearch", "the search needs", "opensearchpy"):
        from opensearchpy import OpenSearch
    # The client logs each failed request with a traceback; server_errors() has a sentence for it.
    logging.getLogger("opensearch").setLevel(logging.CRITICAL)
    return OpenSearch(hosts=[url], timeout=_SECONDS, max_retries=2, retry_on_timeout=True)


@contextmanager
def server_errors(url: str) -> Iterator[None]:
    """Errors of the client as sentences: NoIndex, IndexUnavailable."""
    from opensearchpy.exceptions import ConnectionError, NotFoundError, OpenSearchException

    try:
        yield
    except NotFoundError as error:
        raise NoIndex(NO_INDEX) from error
    except ConnectionError as error:
        raise IndexUnavailable(
            f"The search server {without_credentials(url)} cannot be reached: "
            f"{one_line(str(error.info), 300).rpartition(': ')[2]}. Check the server, and search in [pipeline]."
        ) from error
    except OpenSearchException as error:
        raise IndexUnavailable(
            f"The search server {without_credentials(url)} did not answer as it should: {one_line(str(error), 300)}. "
            "Check the server, and search in [pipeline]."
        ) from error


class OpenSearchWriter:
    """The writer of one index of a server."""

    def __init__(self, client: OpenSearch, url: str, index: str) -> None:
        self._client = client
        self._url = url
        self._index = index

    def put(self, entries: Sequence[Entry]) -> Mapping[int, str]:
        """Write these entries; a newer version on the server stays. Returns the reasons of refused entries.

        Raises IndexUnavailable.
        """
        return self._send(
            {
                "_op_type": "index",
                "_index": self._index,
                "_id": str(entry.number),
                "version": entry.change_seq,
                # A full text that comes later has the same number of the change.
                "version_type": "external_gte",
                "_source": {**field_values(entry), "record": entry.record},
            }
            for entry in entries
        )

    def remove(self, numbers: Collection[int]) -> None:
        """Remove the entries with these numbers. Raises IndexUnavailable."""
        self._send({"_op_type": "delete", "_index": self._index, "_id": str(number)} for number in numbers)

    def last_number(self) -> int:
        """The highest number of the entries. Raises IndexUnavailable."""
        body = {"query": {"match_all": {}}, "sort": [{"number": "desc"}], "size": 1, "_source": ["number"]}
        with server_errors(self._url):
            self._client.indices.refresh(index=self._index)
            hits = self._client.search(index=self._index, body=body)["hits"]["hits"]
        return int(hits[0]["sort"][0]) if hits else 0

    def size(self) -> int:
        """The number of the entries. Raises IndexUnavailable."""
        self.commit()
        return OpenSearchIndex(self._client, self._url, lambda: self._index).size()

    def commit(self) -> None:
        """Show the written entries to readers. Raises IndexUnavailable."""
        with server_errors(self._url):
            self._client.indices.refresh(index=self._index)

    def _send(self, actions: Iterator[dict[str, Any]]) -> Mapping[int, str]:
        """Send these actions; returns the reasons of the refused ones, by the number of the entry."""
        from opensearchpy import helpers

        refused = dict[int, str]()
        with server_errors(self._url):
            for done, item in helpers.streaming_bulk(
                self._client,
                actions,
                chunk_size=_ENTRIES_AT_ONCE,
                max_chunk_bytes=_BYTES_AT_ONCE,
                raise_on_error=False,
            ):
                [answer] = item.values()
                if done or answer.get("status") in (_CONFLICT, _MISSING):
                    continue
                reason = _reason(answer.get("error"))
                if answer.get("status") != _BAD_ENTRY:
                    raise IndexUnavailable(f"The search server did not accept the entry {answer.get('_id')}: {reason}.")
                refused[int(answer["_id"])] = reason
        return refused


def _reason(error: object) -> str:
    """The sentence of the server about an action."""
    return one_line(str(error.get("reason", error) if isinstance(error, Mapping) else error), 300)


class OpenSearchIndex:
    """An index of a server, to read, for several threads. `name` gives its present name; it raises NoIndex."""

    def __init__(self, client: OpenSearch, url: str, name: Callable[[], str]) -> None:
        self._client = client
        self._url = url
        self._name = name

    def search(self, search: Search) -> Found:
        """Answer a search. Raises NoIndex, IndexUnavailable."""
        body: dict[str, Any] = {
            "query": _restricted(_translated(search.query), search.filters, search.hiding),
            "track_total_hits": True,
            "_source": ["record", "number"],
            **(_by_year(search) if search.order is Sort.YEAR else _by_score(search)),
        }
        if search.facets:
            body["aggs"] = {name: {"terms": {"field": name, "size": FACET_VALUES}} for name in FACETS}
        answer = self._ask(body)
        found, step = [_hit(each) for each in answer["hits"]["hits"]], search.limit
        while (start := body.get("from", 0)) and search.after and not _reaches(found, search.after):
            # More outputs than a page are gone: these hits begin after the place.
            body["from"] = max(0, start - step)
            body["size"] = start - body["from"] + search.limit
            step *= 2
            answer = self._ask(body)
            found = [_hit(each) for each in answer["hits"]["hits"]]
        hits = _after(found, search)
        counted = answer.get("aggregations", {})
        facets = {
            name: ordered_counts((each["key"], each["doc_count"]) for each in counted[name]["buckets"])
            for name in FACETS
            if name in counted
        }
        return Found(answer["hits"]["total"]["value"], hits, facets)

    def more_like_this(self, terms: Mapping[str, float], limit: int, hiding: Hiding) -> Sequence[Hit]:
        """The outputs that have most of these terms. Raises NoIndex, IndexUnavailable."""
        parts = [
            {"term": {field: {"value": term, "boost": weight * of_field}}}
            for term, weight in terms.items()
            for field, of_field in RELATED_FIELDS.items()
        ]
        if not parts:
            return []
        query = {"bool": {"should": parts, "minimum_should_match": 1}}
        body = {
            "query": _restricted(query, Filters(), hiding),
            "sort": [{"_score": "desc"}, {"number": "asc"}],
            "size": limit,
            "_source": ["record", "number"],
        }
        return [_hit(each) for each in self._ask(body)["hits"]["hits"]]

    def frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """The number of outputs with each term, and of all as "". Raises NoIndex, IndexUnavailable."""
        wanted = list(terms)
        counters = {
            str(number): {"filter": {"bool": {"should": [{"term": {field: term}} for field in RELATED_FIELDS]}}}
            for number, term in enumerate(wanted)
        }
        body = {"query": {"match_all": {}}, "size": 0, "track_total_hits": True, "aggs": counters}
        answer = self._ask(body)
        counted = answer.get("aggregations", {})
        found = {term: counted[str(number)]["doc_count"] for number, term in enumerate(wanted)}
        return {**found, "": answer["hits"]["total"]["value"]}

    def size(self) -> int:
        """The number of outputs. Raises NoIndex, IndexUnavailable."""
        return int(self._at_present(lambda index: self._client.count(index=index))["count"])

    def _ask(self, body: Mapping[str, Any]) -> Any:
        return self._at_present(lambda index: self._client.search(index=index, body=body))

    def _at_present(self, ask: Callable[[str], Any]) -> Any:
        """The answer of the present index."""
        with suppress(NoIndex), server_errors(self._url):
            return ask(self._name())
        # The index was replaced after the look at its name: now there is another one.
        with server_errors(self._url):
            return ask(self._name())


def _by_year(search: Search) -> Mapping[str, Any]:
    """The order of the years, and the place."""
    place = {} if search.after is None else {"search_after": [int(search.after.value)]}
    return {"sort": [{"rank": "desc"}], "size": search.limit, **place}


def _by_score(search: Search) -> Mapping[str, Any]:
    """The order of the scores, and a page that begins with hits that were seen.

    `search_after` with a score is not exact on all servers: some write fewer digits of a score than they compare.
    """
    sort = [{"_score": "desc"}, {"number": "asc"}]
    if search.after is None:
        return {"sort": sort, "size": search.limit}
    return {"sort": sort, "from": max(0, search.after.seen - search.limit), "size": 2 * search.limit}


def _reaches(hits: Sequence[Hit], last: Place) -> bool:
    """True if no hit is missing between the last one that was seen and these hits."""
    return any(each.number == last.number for each in hits) or any(_is_seen(each, last) for each in hits[:1])


def _is_seen(hit: Hit, last: Place) -> bool:
    """True if the hit comes before the last one that was seen, or is this one."""
    return (-hit.place.value, hit.number) <= (-last.value, last.number)


def _after(hits: Sequence[Hit], search: Search) -> Sequence[Hit]:
    """The hits after the place of the search, which know how many were seen.

    If the last hit that was seen is gone, the hits after it have a lower score, or the same one and a higher number.
    """
    seen = search.after.seen if search.after is not None else 0
    if search.after is not None and search.order is Sort.RELEVANCE:
        last = search.after
        known = next((place for place, each in enumerate(hits, 1) if each.number == last.number), None)
        before = sum(_is_seen(each, last) for each in hits)
        hits = hits[before if known is None else known :]
    hits = hits[: search.limit]
    return [replace(each, place=replace(each.place, seen=seen + number)) for number, each in enumerate(hits, 1)]


def _hit(found: Mapping[str, Any]) -> Hit:
    number = int(found["_source"]["number"])
    return Hit(number, found.get("_score") or 0.0, Place(found["sort"][0], number, 0), found["_source"]["record"])


def _translated(query: Query) -> Mapping[str, Any]:
    """A query in the terms of OpenSearch."""
    match query:
        case Words(terms, _, None):
            fields = [_phrase(name, terms, weight) for name, weight in WORD_FIELDS.items()]
            return {"dis_max": {"queries": fields, "tie_breaker": TIE}}
        case Words(terms, _, str(field)):
            return _phrase(field, terms, WORD_FIELDS.get(field, 1.0))
        case Years(first, last):
            return {"bool": {"filter": [_years(first, last)]}}
        case AnyOf(parts):
            return {"bool": {"should": [_translated(part) for part in parts], "minimum_should_match": 1}}
        case Without(part):
            return {"bool": {"filter": [{"match_all": {}}], "must_not": [_translated(part)]}}
        case All(parts) if parts:
            return {"bool": {"must": [_translated(part) for part in parts]}}
        case _:
            return {"match_all": {}}


def _restricted(query: Mapping[str, Any], filters: Filters, hiding: Hiding) -> Mapping[str, Any]:
    """The query for hits with the values of the filters that are not hidden."""
    needed: list[Mapping[str, Any]] = [
        {"terms": {name: list(values)}} for name, values in filters.values.items() if values
    ]
    if filters.first_year is not None or filters.last_year is not None:
        needed.append(_years(filters.first_year, filters.last_year))
    if filters.work is not None:
        needed.append({"term": {"work": filters.work}})
    if filters.document_id is not None:
        needed.append({"term": {"document_id": filters.document_id}})
    hidden: list[Mapping[str, Any]] = [{"terms": {"site_id": list(hiding.sites)}}] if hiding.sites else []
    if hiding.origins:
        hidden.append({"terms": {"origin": list(hiding.origins)}})
    numbers = sorted(hiding.numbers)
    hidden += [
        {"terms": {"number": numbers[start : start + _MOST_TERMS]}} for start in range(0, len(numbers), _MOST_TERMS)
    ]
    if not needed and not hidden:
        return query
    return {"bool": {"must": [query], "filter": needed, "must_not": hidden}}


def _phrase(field: str, terms: Sequence[str], boost: float) -> Mapping[str, Any]:
    """Terms one after another. The analyser of the field cuts the phrase at its blanks."""
    if len(terms) == 1:
        return {"term": {field: {"value": terms[0], "boost": boost}}}
    return {"match_phrase": {field: {"query": " ".join(terms), "boost": boost}}}


def _years(first: int | None, last: int | None) -> Mapping[str, Any]:
    limits = {name: year for name, year in (("gte", first), ("lte", last)) if year is not None}
    return {"range": {"year_number": limits}}
