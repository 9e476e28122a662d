"""The benchmark of related outputs: how many of the first four are of the same subject.

The titles in data/related_titles.txt are made for this project: 42 subjects with five titles each, most of which share
no word. There are no abstracts, which hold most of the words that related outputs share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.table import Line
from metaharvest.model.outputs import Output, Text
from metaharvest.pipeline.duplicates.vectors import LEAST_SIMILARITY, encoded
from metaharvest.pipeline.search.contract import Hiding
from metaharvest.pipeline.search.entries import entry_of
from metaharvest.pipeline.search.index_places import IndexFolder
from metaharvest.pipeline.search.related import ranked, telling_terms
from metaharvest.pipeline.stage import Document

TITLES = Path(__file__).with_name("data") / "related_titles.txt"

_FIRST = 4
_CANDIDATES = 35


def related(scratch: Path, _scale: float) -> Iterator[Line]:
    """The share of right ones among the first four: by words, by the meaning of titles, by both."""
    subjects, titles = _labelled()
    words = _by_words(scratch / "index", titles)
    meaning = _by_meaning(titles)
    both = {number: list(ranked(words[number], meaning[number], {})) for number in titles}
    for name, rankings in (("words", words), ("meaning of titles", meaning), ("both", both)):
        right = sum(subjects[other] == subjects[number] for number in titles for other in rankings[number][:_FIRST]) / (
            _FIRST * len(titles)
        )
        yield Line(f"related, by {name}: right among the first four", 100 * right, "%", note=f"{len(titles)} titles")


def _labelled() -> tuple[Mapping[int, str], Mapping[int, str]]:
    subjects: dict[int, str] = {}
    titles: dict[int, str] = {}
    subject = ""
    for line in TITLES.read_text(encoding="utf-8").splitlines():
        if line.startswith("=="):
            subject = line
        elif line and not line.startswith("#"):
            titles[len(titles) + 1] = line
            subjects[len(titles)] = subject
    return subjects, titles


def _by_words(folder: Path, titles: Mapping[int, str]) -> Mapping[int, Sequence[int]]:
    place = IndexFolder(folder)
    with place.begin() as writer:
        writer.put([entry_of(_document(each), _output(title), each) for each, title in titles.items()])
        writer.commit()
    place.swap()
    index = place.reader()
    found: dict[int, Sequence[int]] = {}
    for number, title in titles.items():
        terms = telling_terms({"title": title}, index.frequencies)
        hits = index.more_like_this(terms, _CANDIDATES, Hiding())
        found[number] = [each.number for each in hits if each.number != number]
    return found


def _by_meaning(titles: Mapping[int, str]) -> Mapping[int, Sequence[int]]:
    import numpy

    bytes_of = [each for each in encoded(list(titles.values())) if each is not None]
    if len(bytes_of) < len(titles):
        return {number: [] for number in titles}  # the extra is not installed
    vectors = numpy.array([numpy.frombuffer(each, dtype="<f4") for each in bytes_of])
    alike = vectors @ vectors.T
    found: dict[int, Sequence[int]] = {}
    for number in titles:
        row = alike[number - 1]
        best = [int(each) + 1 for each in numpy.argsort(-row, kind="stable") if row[each] >= LEAST_SIMILARITY]
        found[number] = [each for each in best if each != number][:_CANDIDATES]
    return found


def _output(title: str) -> Output:
    return Output("urn:benchmark", titles=(Text(title, "title"),))


def _document(number: int) -> Document:
    name = f"doc.{number}"
    return Document(number, name, name, None, "urn:benchmark", 1, number, number, 1, "a-site", is_gone=False)
