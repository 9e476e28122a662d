"""Outputs by the thousand, made by chance but always the same: papers, their copies, series of data sets."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine

from metaharvest.database.all_tables import Base
from metaharvest.database.rows import insert_rows

_SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu bra cle dri flo gru ple sta tri".split()  # noqa: SIM905
_SURNAMES = 4000
_WORDS = 20_000
_FREQUENT = 500
_IN_A_SERIES = 25
_AT_ONCE = 5000


def made_outputs(number: int) -> Iterator[dict[str, Any]]:
    """Of ten outputs seven are papers, two are copies of papers with other spelling, one is of a series."""
    chance = random.Random(7)
    # The more frequent a word is, the shorter: as in any language.
    words = [_word(chance, 1, 2) for _ in range(_FREQUENT)]
    words += [_word(chance, 2, 6) for _ in range(_WORDS - _FREQUENT)]
    surnames = [_word(chance, 2, 3).title() for _ in range(_SURNAMES)]
    former: list[dict[str, Any]] = []
    series: dict[str, Any] = {}
    for place in range(number):
        kind = place % 10
        if kind in (3, 6) and former:
            yield _copy(chance, former[chance.randrange(len(former))])
        elif kind == 9:
            if place // 10 % _IN_A_SERIES == 0:
                series = _paper(chance, words, surnames)
            yield {**series, "titles": [{"text": f"{series['titles'][0]['text']}, site {place // 10}"}]}
        else:
            paper = _paper(chance, words, surnames)
            if chance.random() < 0.6:
                paper["identifiers"] = [{"scheme": "doi", "value": f"10.5555/{place}"}]
            former.append(paper)
            yield paper


def _paper(chance: random.Random, words: list[str], surnames: list[str]) -> dict[str, Any]:
    title = [words[int(_WORDS ** chance.random()) - 1] for _ in range(chance.randint(5, 13))]
    creators = [surnames[int(_SURNAMES * chance.random() ** 2)] for _ in range(chance.randint(1, 5))]
    return {
        "titles": [{"text": " ".join(title).capitalize()}],
        "creators": [{"name": f"{each}, A.", "family": each, "given": "A."} for each in creators],
        "abstracts": [{"text": " ".join(chance.choices(words, k=120))}],
        "year": chance.randint(1960, 2026),
        "types": [{"coar": "c_6501"}],
    }


def _copy(chance: random.Random, paper: dict[str, Any]) -> dict[str, Any]:
    """The same paper in another source: no DOI, another case, now and then a missing letter."""
    title = paper["titles"][0]["text"].upper()
    if chance.random() < 0.3:
        cut = chance.randrange(len(title))
        title = title[:cut] + title[cut + 1 :]
    return {**paper, "titles": [{"text": title}], "identifiers": []}


def _word(chance: random.Random, least: int, most: int) -> str:
    return "".join(chance.choices(_SYLLABLES, k=chance.randint(least, most)))


def fill_outputs(engine: Engine, number: int) -> None:
    """Fill the tables catalogue_document and output."""
    tables = Base.metadata.tables
    now = datetime(2026, 11, 20, tzinfo=UTC)
    same = {"document_type": "oai_dc", "revision": 1, "sha256": "", "title": "", "deleted": False, "changed_at": now}
    documents, outputs = [], []
    with engine.begin() as connection:
        for each, output in enumerate(made_outputs(number), start=1):
            names = {"document_id": f"d.{each}", "item_identifier": f"i.{each}", "origin": f"o{each % 20}"}
            documents.append({"catalogue_document_id": each, "change_seq": each, **names})
            outputs.append({"catalogue_document_id": each, "content": json.dumps(output)})
            if len(documents) == _AT_ONCE or each == number:
                insert_rows(connection, tables["catalogue_document"], documents, same)
                insert_rows(connection, tables["output"], outputs, {"revision": 1, "version": 1})
                documents, outputs = [], []
