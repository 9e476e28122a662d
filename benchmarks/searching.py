"""The benchmark of the search: an index is made, beside tantivy alone, and searched through HTTP, small and large."""

from __future__ import annotations

import gc
import http.client
import json
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import tantivy
from pydantic_core import to_json

from benchmarks.installation import Installation
from benchmarks.made_outputs import fill_outputs, made_outputs
from benchmarks.repositories import wait_for
from benchmarks.servers import free_port
from benchmarks.table import Line
from metaharvest.model.outputs import Output
from metaharvest.pipeline.search.contract import Search
from metaharvest.pipeline.search.entries import entry_of
from metaharvest.pipeline.search.index_places import IndexFolder
from metaharvest.pipeline.search.query_language import read_query
from metaharvest.pipeline.stage import Document
from metaharvest.pipeline.stored_outputs import output_of

SIZES = (1_000, 10_000, 100_000)
SEARCHES = 40
"""Searches of each kind."""

_A_COMMIT = 5_000
_AT_ONCE = 100
"""Entries in memory at a time, as the stage `index` has them."""

_FIELDS = (
    "title", "author", "abstract", "subject", "identifier",
    "site_words", "type_words", "language_words", "licence_words",
)  # fmt: skip
_TYPE, _LICENCE = "journal article", "CC-BY-4.0"
Texts = dict[str, str]


def search(scratch: Path, scale: float) -> Iterator[Line]:
    """Indexes of outputs with abstracts of some 2 KB."""
    gc.set_threshold(150_000)  # as the program does
    medians: dict[int, float] = {}
    for size in dict.fromkeys(max(1_000, int(each * scale)) for each in SIZES):
        folder = scratch / f"search-{size}"
        installation = Installation(folder)
        with closing(installation):
            fill_outputs(installation.engine, size)
            outputs = [_doubled(each) for each in made_outputs(size)]
            yield _indexed(folder, outputs)
            queries = _queries(outputs)
            yield _searched(folder, queries)
            with _served(installation) as port:
                medians[size] = statistics.median(_seconds(port, queries)) * 1000
    first = medians[min(medians)]
    for size, median in medians.items():
        yield Line(
            f"search of {size:,} outputs through HTTP, with facets and highlights", median, unit="ms",
            beside="the smallest", yardstick=first, goal=20, note="median",
        )  # fmt: skip


def _doubled(output: dict[str, Any]) -> dict[str, Any]:
    [abstract] = output["abstracts"]
    words = abstract["text"].split()
    return {**output, "abstracts": [{"text": " ".join([*words, *reversed(words)])}]}


def _with_sources(output: dict[str, Any]) -> Output:
    sourced = {
        name: [{"text": "", "source": "", **each} for each in values] if isinstance(values, list) else values
        for name, values in output.items()
    }
    more = {
        "types": [{"text": "Article", "source": "", "coar": "c_6501", "label": _TYPE}],
        "licences": [{"text": "", "source": "", "spdx": _LICENCE}],
    }
    return output_of(json.dumps({"format": "oai_dc", "language": "en", "likely_language": "en", **sourced, **more}))


def _document(number: int) -> Document:
    name = f"d.{number}"
    return Document(number, name, name, None, "oai_dc", 1, number, number, number % 40, f"site {number % 40}", False)


def _indexed(folder: Path, outputs: Sequence[dict[str, Any]]) -> Line:
    """The index of the program, from outputs in memory, beside an index of tantivy with the same texts."""
    made = [_with_sources(each) for each in outputs]
    place = IndexFolder(folder / "pipeline" / "index")
    began = time.process_time()
    with place.begin() as writer:
        for start in range(0, len(made), _AT_ONCE):
            some = enumerate(made[start : start + _AT_ONCE], start + 1)
            writer.put([entry_of(_document(number), each, number) for number, each in some])
            if (start + _AT_ONCE) % _A_COMMIT == 0:
                writer.commit()
        writer.commit()
    place.swap()
    ours = time.process_time() - began
    theirs = _tantivy_alone(folder / "alone", outputs)
    size = sum(each.stat().st_size for each in (folder / "pipeline" / "index").rglob("*") if each.is_file())
    return Line(
        f"index of {len(outputs):,} outputs", ours, beside="tantivy alone", yardstick=theirs, goal=1.3,
        goal_is_ratio=True, note=f"processor; {size / 1e6:,.0f} MB",
    )  # fmt: skip


def _tantivy_alone(folder: Path, outputs: Sequence[dict[str, Any]]) -> float:
    """The processor time of tantivy for the same fields, with its own analyser, and the output in JSON."""
    builder = tantivy.SchemaBuilder()
    for name in _FIELDS:
        builder.add_text_field(name)
    for name in ("site", "type", "language", "published", "licence", "has_text"):
        builder.add_text_field(name, tokenizer_name="raw", fast=True, index_option="basic")
    builder.add_text_field("document_id", tokenizer_name="raw", index_option="basic")
    for name in ("number", "rank", "work", "site_id"):
        builder.add_unsigned_field(name, indexed=True, fast=True)
    builder.add_integer_field("year", indexed=True, fast=True)
    builder.add_bytes_field("record", stored=True)
    schema = builder.build()
    folder.mkdir()
    index = tantivy.Index(schema, str(folder))
    began = time.process_time()
    writer = index.writer(64_000_000, 1)
    for number, output in enumerate(outputs, start=1):
        site, document_id, year = f"site {number % 40}", f"d.{number}", output["year"]
        values = {
            "title": output["titles"][0]["text"],
            "author": "; ".join(each["name"] for each in output["creators"]),
            "abstract": output["abstracts"][0]["text"],
            "identifier": " ".join([document_id, *(each["value"] for each in output.get("identifiers", ()))]),
            "site_words": site,
            "type_words": _TYPE,
            "language_words": "en",
            "licence_words": _LICENCE,
            "site": site,
            "type": _TYPE,
            "language": "en",
            "published": str(year),
            "licence": _LICENCE,
            "has_text": "no",
            "document_id": document_id,
            "number": number,
            "rank": 10_000_000 * year + number,
            "work": number,
            "site_id": number % 40,
            "year": year,
            "record": to_json(output),
        }
        writer.add_document(tantivy.Document.from_dict(values, schema))
        if number % _A_COMMIT == 0:
            writer.commit()
    writer.commit()
    writer.wait_merging_threads()
    return time.process_time() - began


def _queries(outputs: Sequence[dict[str, Any]]) -> Sequence[str]:
    """One word, two words, three words with OR, a phrase, a word in a field: from outputs, by chance."""
    chance = random.Random(11)
    queries = []
    for _ in range(SEARCHES):
        output = chance.choice(outputs)
        title = output["titles"][0]["text"].split()
        other = chance.choice(outputs)["abstracts"][0]["text"].split()
        queries += [
            chance.choice(title),
            " ".join(chance.sample(title, 2)),
            f"{title[0]} OR {title[1]} OR {chance.choice(other)}",
            f'"{title[0]} {title[1]}"',
            f"author:{output['creators'][0]['family']} {chance.choice(title)}",
        ]
    return queries


def _searched(folder: Path, queries: Sequence[str]) -> Line:
    """The index alone, in this process: the median of searches with facets, beside searches without them."""
    reader = IndexFolder(folder / "pipeline" / "index").reader()
    times: dict[bool, list[float]] = {True: [], False: []}
    for text in queries:
        for facets, seconds in times.items():
            began = time.perf_counter()
            reader.search(Search(read_query(text), facets=facets))
            seconds.append(time.perf_counter() - began)
    return Line(
        f"search of {reader.size():,} outputs in this process, with facets", statistics.median(times[True]) * 1000,
        unit="ms", beside="without facets", yardstick=statistics.median(times[False]) * 1000, note="median",
    )  # fmt: skip


@contextmanager
def _served(installation: Installation) -> Iterator[int]:
    """The port of `metaharvest serve --public`."""
    port = free_port()
    process = installation.start("serve", "--public", "--port", str(port))
    try:
        wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _seconds(port: int, queries: Sequence[str]) -> list[float]:
    """The time of each search. Each has to find something."""
    found = []
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        for text in ("warm", *queries):
            began = time.perf_counter()
            connection.request("GET", f"/api/v1/search?q={quote(text)}")
            answer = connection.getresponse()
            body = answer.read()
            found.append(time.perf_counter() - began)
            if answer.status != 200 or (text != "warm" and not json.loads(body)["data"]["outputs"]):
                raise AssertionError(f"{text}: {answer.status} {body[:300]!r}")
    return found[1:]
