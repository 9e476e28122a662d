"""The benchmark of duplicates: how many are found, how many of them are right, and how long it takes.

Labelled pairs are in data/duplicate_pairs.txt; `python -m benchmarks.duplicates` prints those that are not right.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz
from rapidfuzz.process import extract
from rapidfuzz.utils import default_process
from sqlalchemy import URL
from sqlalchemy.orm import Session

from benchmarks.made_outputs import fill_outputs, made_outputs
from benchmarks.table import Line
from metaharvest.database.batches import batches
from metaharvest.database.engine import open_url, upgrade, writers
from metaharvest.pipeline.duplicates import tables
from metaharvest.pipeline.duplicates.comparison import Answer, Comparison, compare
from metaharvest.pipeline.duplicates.facts import Facts, facts_of
from metaharvest.pipeline.duplicates.keys import blocks_of
from metaharvest.pipeline.duplicates.stage import STAGE

NUMBERS = (1_000, 10_000, 100_000)
PAIRS = Path(__file__).with_name("data") / "duplicate_pairs.txt"

_LEAST_SCORE = 85
_MOST_TITLES = 10_000
"""More titles would take rapidfuzz too long: each beside all others."""

_TYPES = {
    "article": "c_6501", "preprint": "c_816b", "dataset": "c_ddb1", "book": "c_2f33", "thesis": "c_46ec",
    "software": "c_5ce6", "image": "c_c513",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """Two outputs with the right answer. `case` is what is difficult about them."""

    case: str
    answer: Answer
    first: Facts
    second: Facts
    line: str

    def found(self) -> Comparison:
        """What the program says: different without a look, if they have no block in common."""
        if blocks_of(self.first).isdisjoint(blocks_of(self.second)):
            return Comparison(Answer.DIFFERENT, 0.0, "They have no block in common.")
        return compare(self.first, self.second)


def read_pairs(file: Path = PAIRS) -> Iterator[Pair]:
    """The labelled pairs."""
    case = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("=="):
            case = line.strip("= ")
        elif line and not line.startswith("#"):
            answer, _, pair = line.partition("::")
            first, _, second = pair.partition("||")
            yield Pair(case, Answer(answer.strip()), _output(1, first), _output(2, second), line)


def _output(number: int, text: str) -> Facts:
    titles, creators, year, more = (each.strip() for each in (text + "|||").split("|")[:4])
    values = dict(re.findall(r"([a-z-]+)[=:](\S+)", more))
    item = values.pop("item", "")
    output: dict[str, Any] = {
        "titles": [{"text": each.strip()} for each in titles.split(" = ") if each.strip()],
        "creators": [{"name": each.strip()} for each in creators.split(";") if each.strip()],
        "identifiers": [
            {"scheme": scheme, "value": values[scheme].lower() if scheme == "doi" else values[scheme]}
            for scheme in ("doi", "handle", "arxiv", "pmid", "urn", "url")
            if scheme in values
        ],
    }
    if year:
        output["year"] = int(year)
    if "type" in values:
        output["types"] = [{"coar": _TYPES[values["type"]]}]
    if "version-of" in values:
        output["relations"] = [{"kind": "IsVersionOf", "scheme": "doi", "value": values["version-of"]}]
    return facts_of(number, f"an-origin {item}" if item else "", json.dumps(output))


def duplicates(scratch: Path, scale: float) -> Iterator[Line]:
    """Precision and recall of two answers; the processor time of an output, of 1,000 to 100,000 outputs."""
    pairs = list(read_pairs())
    found = [pair.found().answer for pair in pairs]
    for answer in (Answer.SAME, Answer.VERSION):
        right = sum(each is pair.answer is answer for each, pair in zip(found, pairs, strict=True))
        given, wanted = found.count(answer), sum(pair.answer is answer for pair in pairs)
        note = f"{len(pairs)} pairs, {wanted} of them {answer.value}"
        yield Line(f"duplicates, {answer.value}: precision", 100 * right / max(given, 1), "%", note=note)
        yield Line(f"duplicates, {answer.value}: recall", 100 * right / wanted, "%", note=note)
    first: float | None = None
    for number in NUMBERS:
        outputs = max(100, round(number * scale))
        spent = _time_of(scratch / f"{number}.db", outputs)
        a_document = 1000 * spent / outputs
        yield Line(f"duplicates, {outputs:,} outputs", a_document, "ms", "1,000", first, note=f"{spent:.0f} s in all")
        first = first or a_document
        if outputs <= _MOST_TITLES:
            alone = 1000 * _time_of_titles(outputs) / outputs
            name = f"duplicates, {outputs:,} outputs, with the database"
            yield Line(name, a_document, "ms", "rapidfuzz, all titles", alone, 1.3, goal_is_ratio=True)


def _time_of(file: Path, number: int) -> float:
    """The processor time of the stage for this number of outputs, in seconds."""
    engine = open_url(URL.create("sqlite", database=str(file)))
    upgrade(engine)
    fill_outputs(engine, number)
    began = time.process_time()
    for numbers in batches(range(1, number + 1), STAGE.batch):
        with Session(engine) as session:
            facts = tables.read_facts(session, numbers)
        with writers(engine).begin() as session:
            tables.replace(session, facts)
    engine.dispose()
    return time.process_time() - began


def _time_of_titles(number: int) -> float:
    """The processor time of rapidfuzz alone for the titles of these outputs, each beside all others, in seconds."""
    titles = [default_process(each["titles"][0]["text"]) for each in made_outputs(number)]
    began = time.process_time()
    for title in titles:
        extract(title, titles, scorer=fuzz.token_sort_ratio, score_cutoff=_LEAST_SCORE, limit=None)
    return time.process_time() - began


def show_mistakes() -> None:
    """Print each pair with another answer than the right one, and the numbers of them all."""
    numbers: Counter[tuple[str, str]] = Counter()
    for pair in read_pairs():
        found = pair.found()
        numbers[pair.answer.value, found.answer.value] += 1
        if found.answer is not pair.answer:
            print(f"{pair.case}: {found.answer.value} ({found.reason})\n    {pair.line}")
    print(dict(numbers))


if __name__ == "__main__":
    show_mistakes()
