"""`metaharvest search`: what it prints for people, in 80 columns, and its mistakes."""

from __future__ import annotations

import json

from support.databases import on_one_database
from support.harvester import Harvester
from support.outputs import entry, output, write_index

pytestmark = on_one_database

LONG = "A long title about the phenology of beech forests in the mountains of Central Europe and beyond"


def fill(harvester: Harvester) -> None:
    creators = ["Rivera, Ana", "Lee, Bo", "Müller, Jörg", "Okafor, Chi"]
    write_index(
        harvester,
        entry(1, output(LONG, creators=creators, abstract="Beech <trees> & others " * 30, year=2019)),
        entry(2, output("Beech and oak", year=None, kind="", licence=""), site="elm", site_id=2),
        entry(3, output("Soil moisture", kind="dataset")),
    )


def test_people_read_what_was_found(harvester: Harvester) -> None:
    fill(harvester)
    said = harvester("search", "beech", "--limit", "1")
    assert said.code == 0
    assert max(map(len, said.out.splitlines()[:-1])) <= 80
    assert said.out.startswith(f"2 outputs\n\n{LONG[:80].rpartition(' ')[0]}\nEurope and beyond\n")
    assert "    Rivera, Ana; Lee, Bo; Müller, Jörg et al. · 2019 · journal article · alder ·\n" in said.out
    assert "    Beech <trees> & others Beech" in said.out
    assert "    doc.1\n" in said.out
    assert "Sites: alder 1, elm 1\nTypes: journal article 1\nYears: 2019 1\n" in said.out
    cursor = said.out.rsplit("--cursor ", 1)[1].strip()
    rest = harvester("search", "beech", "--limit", "1", "--cursor", cursor).out
    assert rest.startswith("2 outputs\n\nBeech and oak\n    elm\n    doc.2\n")
    assert "--cursor" not in rest


def test_asian_letters_take_two_columns(harvester: Harvester) -> None:
    write_index(harvester, entry(1, output("森林生態系における長期的な炭素循環" * 5, language="ja")))
    [first, *others] = harvester("search", "森林").out.splitlines()[2:5]
    assert (len(first), "".join([first, *others]).startswith("森林生態系における長期的な炭素循環" * 5)) == (40, True)


def test_options_narrow_the_search(harvester: Harvester) -> None:
    fill(harvester)

    def ids(*arguments: str) -> list[str]:
        return [each["document_id"] for each in json.loads(harvester("search", *arguments, "--json").out)["outputs"]]

    assert ids() == ["doc.3", "doc.1", "doc.2"]
    assert ids("--site", "alder", "--site", "elm", "beech") == ["doc.1", "doc.2"]
    assert ids("--type", "dataset") == ["doc.3"]
    assert ids("--year", "..2019") == ["doc.1"]
    assert ids("--language", "English", "oak") == ids("--language", "eng", "oak") == ["doc.2"]
    assert ids("beech", "NOT", "oak") == ids("beech", "-oak") == ids("-oak", "beech") == ["doc.1"]
    assert ids("oak", "-beech") == ids("oak", "NOT", "beech")
    assert harvester("search", "-h").out.startswith("Usage:")
    assert ids("--licence", "https://creativecommons.org/licenses/by/4.0/", "beech") == ["doc.1"]
    assert ids('"phenology of beech"') == ["doc.1"]
    assert ids("--full-text") == []
    assert harvester("search", "nowhere").out == "0 outputs\n"


def test_a_search_without_a_result_has_advice(harvester: Harvester) -> None:
    fill(harvester)
    said = harvester("search", "Type: the long one", "--year", "2019")
    assert "put it in quotation marks. The search has filters: year 2019. Leave one out to find more.\n" in said.err
    assert "Check their spelling" in json.loads(harvester("search", "nowhere", "--json").out)["advice"]


def test_mistakes_are_sentences(harvester: Harvester) -> None:
    said = harvester("search", "beech", "--json")
    assert (said.code, json.loads(said.out)["error"]["kind"]) == (2, "index")
    assert "There is no search index yet: `metaharvest pipeline run` makes it." in said.err
    fill(harvester)
    for words, sentence in ((["beech", "OR"], "Nothing stands after OR"), (["--year", "x"], "x is not a year")):
        said = harvester("search", *words)
        assert (said.code, said.out) == (2, "")
        assert sentence in said.err


def test_an_unknown_option_is_no_word(harvester: Harvester) -> None:
    said = harvester("search", "beech", "--limt=5")
    assert (said.code, said.out) == (2, "")
    assert "No such option '--limt'. (Did you mean one of: '--limit'" in said.err


def test_the_index_is_made_again(harvester: Harvester) -> None:
    fill(harvester)
    said = harvester("pipeline", "rebuild-index")
    assert (said.code, said.out) == (0, "The new index has 0 outputs.\n")
    assert harvester("search", "beech").out == "0 outputs\n"
