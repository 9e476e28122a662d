"""Two outputs and the answer about them, by what is difficult about them; benchmarks/data has 221 labelled pairs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from metaharvest.pipeline.duplicates.comparison import Answer, compare
from metaharvest.pipeline.duplicates.facts import Facts, facts_of
from metaharvest.pipeline.duplicates.keys import blocks_of

SAME, VERSION, LOOK, DIFFERENT = Answer.SAME, Answer.VERSION, Answer.LOOK, Answer.DIFFERENT


def facts(
    title: str, creators: str = "Rivera, Ana", year: int | None = 2014, number: int = 1, item: str = "", **more: Any
) -> Facts:
    output: dict[str, Any] = {
        "titles": [{"text": each} for each in title.split(" = ") if each],
        "creators": [{"name": each} for each in creators.split("; ") if each],
        "identifiers": [
            {"scheme": scheme, "value": more[scheme]} for scheme in ("doi", "handle", "url") if scheme in more
        ],
        "types": [{"coar": more["coar"]}] if "coar" in more else [],
        "relations": [{"kind": "IsVersionOf", "scheme": "doi", "value": more["of"]}] if "of" in more else [],
        "year": year,
    }
    return facts_of(number, item, json.dumps(output))


BEECH = "Phenology of beech forests in the Solling mountains"
PREPRINT, ARTICLE, DATASET, THESIS = "c_816b", "c_6501", "c_ddb1", "c_46ec"


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [
        # spelling
        (facts(BEECH), facts(f"{BEECH.upper()}."), SAME),
        (facts(BEECH), facts("Phenology of beech forest in the Soling mountains"), SAME),
        (facts("The <i>Fagus</i> genome &amp; its history"), facts("The Fagus genome and its history"), SAME),
        (facts("A database of leaf traits of trees"), facts("A data base of leaf traits of trees"), SAME),
        (facts("Über die Ernährung der Schleiereule"), facts("Ueber die Ernaehrung der Schleiereule"), SAME),
        (facts("Growth rings of turtles: is it reli..."), facts("Growth rings of turtles: is it reliable?"), SAME),
        # names
        (facts(BEECH, "van der Berg, Jo"), facts(BEECH, "Berg, J. van der"), SAME),
        (facts(BEECH, "Grosvernier, Philippe"), facts(BEECH, "Grosvernier Philippe"), SAME),
        (facts(BEECH, "Weber, R. Jr."), facts(BEECH, "Reto Weber"), SAME),
        (facts("Climate change and cities", "Bell, A."), facts("Climate change and cities", "Bose, R."), DIFFERENT),
        (facts(BEECH, "Bell, A."), facts(BEECH, "Bose, R."), DIFFERENT),
        (facts(BEECH, ""), facts(BEECH), SAME),
        (facts("Management plan", ""), facts("Management plan", ""), DIFFERENT),
        # years
        (facts(BEECH), facts(BEECH, year=2015), SAME),
        (facts(BEECH), facts(BEECH, year=None), SAME),
        (facts(BEECH), facts(BEECH, year=2018), LOOK),
        (facts(BEECH, coar=DATASET), facts(BEECH, year=2015, coar=DATASET), LOOK),
        (facts("Annual report of the station"), facts("Annual report of the station", year=2015), DIFFERENT),
        # other words
        (facts("Root growth under drought"), facts("Root growth under salt stress"), DIFFERENT),
        (facts("Male song of the chiffchaff"), facts("Female song of the chiffchaff"), DIFFERENT),
        (facts("Slopes of the northern valley, hourly"), facts("Slopes of the southern valley, hourly"), DIFFERENT),
        (facts("A review of intraspecific competition"), facts("A review of interspecific competition"), DIFFERENT),
        (facts("长江口浮游植物群落结构", "陈, 明"), facts("长江口浮游动物群落结构", "陈, 明"), DIFFERENT),
        (facts("黄河三角洲土壤盐分", "王, 小明"), facts("黄河三角洲土壤盐分 = Soil salinity", "王, 小明"), SAME),
        (facts("Waldbrände = Forest fires of Sardinia"), facts("Forest fires of Sardinia"), SAME),
        # parts of a series
        (facts(f"{BEECH}. Part I"), facts(f"{BEECH}. Part II"), DIFFERENT),
        (facts(f"{BEECH}, 2003-2005"), facts(f"{BEECH}, 2006-2008"), DIFFERENT),
        (facts("Net production at site A"), facts("Net production at site B"), DIFFERENT),
        (facts("The fourth workshop on beech"), facts("The 4th workshop on beech"), SAME),
        (facts("The fourth workshop on beech"), facts("The fifth workshop on beech"), DIFFERENT),
        # subtitles
        (facts(f"{BEECH}: a record", coar=ARTICLE), facts(BEECH, coar=ARTICLE), SAME),
        (facts(f"{BEECH}: a record", coar=DATASET), facts(BEECH, coar=DATASET), LOOK),
        (facts("Solling project: soil"), facts("Solling project: throughfall"), DIFFERENT),
        (facts(f"{BEECH}: dataset"), facts(BEECH), SAME),
        # about another output
        (facts(f"Data from: {BEECH}"), facts(BEECH), DIFFERENT),
        (facts(f"Data from: {BEECH}"), facts(f"Data from: {BEECH.lower()}"), SAME),
        (facts(f"Erratum to: {BEECH}"), facts(BEECH), DIFFERENT),
        (facts(BEECH, coar=DATASET), facts(BEECH, coar=ARTICLE), DIFFERENT),
        (facts(BEECH, coar=THESIS), facts(BEECH, coar=ARTICLE), LOOK),
        # titles that say nothing
        (facts("Editorial"), facts("Editorial"), DIFFERENT),
        (facts("Figure 3"), facts("Figure 3"), DIFFERENT),
        # versions
        (facts(f"{BEECH} (version 2)"), facts(f"{BEECH}, v1"), VERSION),
        (facts(f"{BEECH}, second edition", year=2011), facts(BEECH, year=1998), VERSION),
        (facts(BEECH, coar=PREPRINT), facts(BEECH, coar=ARTICLE, year=2015), VERSION),
        # identifiers
        (facts(BEECH, doi="10.5555/a"), facts("Buchen", "", doi="10.5555/a"), SAME),
        (facts(BEECH, doi="10.5555/a"), facts("Water of lakes", "Bose, R.", 1980, doi="10.5555/a"), LOOK),
        (facts(BEECH, doi="10.5555/a"), facts(BEECH, doi="10.5555/b"), VERSION),
        (facts("Introduction", doi="10.5555/a"), facts("Introduction", doi="10.5555/b"), DIFFERENT),
        (facts(BEECH, doi="10.5555/a"), facts(BEECH), SAME),
        (facts(BEECH, handle="1/2"), facts(BEECH, handle="1/2"), SAME),
        (facts(BEECH, url="https://e.org/"), facts("Water of lakes", url="https://e.org/"), DIFFERENT),
        (facts(BEECH, doi="10.5555/b", of="10.5555/a"), facts("Buchen", "", doi="10.5555/a"), VERSION),
        (facts("", "", None, item="o 1"), facts("Buchen", "", item="o 1"), SAME),
    ],
)  # fmt: skip
def test_answers(first: Facts, second: Facts, answer: Answer) -> None:
    second = replace(second, number=2)
    found = compare(first, second)
    assert (found.answer, found.reason) == (answer, found.reason)
    assert compare(second, first) == found
    if answer is not DIFFERENT:
        assert blocks_of(first) & blocks_of(second), "they would never be compared"


def test_the_reason_is_a_sentence_for_people() -> None:
    found = compare(facts(BEECH), facts("Phenology of beech forests in the Soling mountains"))
    assert found.reason == "The titles agree at 99 of 100, the years are the same, both name Rivera."
    assert (
        compare(facts(BEECH, doi="10.5555/a"), facts(BEECH, doi="10.5555/a")).reason == "Both have the DOI 10.5555/a."
    )


def test_an_output_without_anything_is_like_no_other() -> None:
    assert blocks_of(facts("", "", None)) == frozenset()
    assert compare(facts("", "", None), facts("", "", None)).answer is DIFFERENT


def test_outputs_of_very_different_sizes_have_few_blocks() -> None:
    words = " ".join(f"word{chr(97 + each % 26)}{chr(97 + each // 26)}" for each in range(600))
    assert len(blocks_of(facts(words, "; ".join(f"Name{each}, A." for each in range(3000))))) < 30
