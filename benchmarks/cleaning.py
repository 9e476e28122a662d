"""The benchmark of cleaning: names, dates, licences, types and DOIs of labelled texts, and the time of a record.

The texts in data/ are made for this benchmark, in the forms that records have; names and titles are invented. Precision
is the share of right values among all values that were found, recall their share among all values that are there.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lxml import etree

from benchmarks.table import Line
from metaharvest.pipeline.cleaning.dates import edtf_of
from metaharvest.pipeline.cleaning.identifiers import find_dois
from metaharvest.pipeline.cleaning.licences import spdx_of
from metaharvest.pipeline.cleaning.names import agents
from metaharvest.pipeline.cleaning.stage import clean
from metaharvest.pipeline.cleaning.types import type_of
from metaharvest.transform.embedding import root_of

DATA = Path(__file__).parent / "data"

Found = frozenset[tuple[str, ...]]
"""The values of a text."""

_ESCAPES = {r"\n": "\n", r"\u00ad": "\u00ad", r"\u200b": "\u200b", r"\u00a0": "\u00a0"}
_RECORDS = 2_000

_DUBLIN_CORE = """\
<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/">
  <dc:title>Frogs of pond {0}</dc:title><dc:creator>Alder{0}, Ann B.</dc:creator><dc:creator>Birch{0}, Bo</dc:creator>
  <dc:subject>frogs {0}</dc:subject><dc:description>{1}</dc:description><dc:date>2021-03-04T10:20:30Z</dc:date>
  <dc:date>2020-12</dc:date><dc:type>Article</dc:type><dc:identifier>https://doi.org/10.5063/F{0}</dc:identifier>
  <dc:identifier>https://repository.example.org/bitstream/10023/{0}/1/frogs.pdf</dc:identifier>
  <dc:language>eng</dc:language><dc:rights>http://creativecommons.org/licenses/by/4.0/</dc:rights>
</oai_dc:dc>"""


def cleaning(_scratch: Path, scale: float) -> Iterator[Line]:
    """Precision and recall for each kind of value, and the time to clean a record."""
    yield from _quality("names", _names, _names_of, "nameparser, other names: 16 of 24 forms")
    yield from _quality("dates", _values("edtf"), _one(edtf_of))
    yield from _quality("licences", _values("spdx"), _one(spdx_of))
    yield from _quality("types", _values("coar"), _one(lambda text: (type_of(text) or ("",))[0]))
    yield from _quality("DOIs", _values("dois"), _dois_of, "Crossref's pattern, other texts: 6 of 20 hard cases")
    yield from _speed(max(1, int(_RECORDS * scale)))


def _quality(
    name: str, labels: Callable[[Mapping[str, str]], Found], read: Callable[[str], Found], beside: str = ""
) -> Iterator[Line]:
    rows = _rows(DATA / f"{name.lower()}.tsv")
    right = found = wanted = 0
    for row in rows:
        values, expected = read(_unescaped(next(iter(row.values())))), labels(row)
        right += len(values & expected)
        found += len(values)
        wanted += len(expected)
    yield Line(f"{name}, precision", right / found, "", beside, note=f"{len(rows)} texts, {found} values")
    yield Line(f"{name}, recall", right / wanted, "", beside, note=f"{wanted} values are there")


def _rows(file: Path) -> Sequence[Mapping[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE))


def _unescaped(text: str) -> str:
    for written, character in _ESCAPES.items():
        text = text.replace(written, character)
    return text


def _names(row: Mapping[str, str]) -> Found:
    """The kind, and the parts; a name of unknown kind has no value."""
    return frozenset() if row["kind"] == "unknown" else frozenset({(row["kind"], row["family"], row["given"])})


def _names_of(text: str) -> Found:
    known = (each for each in agents(text, "") if each.kind != "unknown")
    return frozenset((each.kind.value, each.family or "", each.given or "") for each in known)


def _values(column: str) -> Callable[[Mapping[str, str]], Found]:
    return lambda row: frozenset((value,) for value in row[column].split())


def _one(read: Callable[[str], str | None]) -> Callable[[str], Found]:
    return lambda text: frozenset((value,) for value in (read(text),) if value)


def _dois_of(text: str) -> Found:
    return frozenset((doi,) for doi in find_dois(text))


def _speed(records: int) -> Iterator[Line]:
    """Each record has values of its own: what the program remembers of values that many records have counts little."""
    abstract = "We counted frogs in all ponds of the creek. " * 25
    contents = [_DUBLIN_CORE.format(number, abstract).encode() for number in range(records)]
    began = time.process_time()
    roots: list[etree._Element] = [root_of(content) for content in contents]
    parsed = time.process_time()
    outputs = [clean(root, "oai_dc") for root in roots]
    cleaned = time.process_time()
    assert len({output.doi for output in outputs}) == records
    micro = 1e6 / records
    yield Line(
        "cleaning a record of Dublin Core",
        (cleaned - began) * micro,
        "µs",
        beside="lxml reads it",
        yardstick=(parsed - began) * micro,
        note="processor time",
    )
