"""The search for readers: its page and its API, with and without an index, and what they hide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urljoin

import pytest
import requests
from lxml import html

from metaharvest.model.outputs import Access
from support import schemas
from support.chromium import Reader, chromium
from support.databases import on_one_database
from support.harvester import Harvester
from support.outputs import entry, output, write_index
from support.provider import delete, document, record, served, store

pytestmark = on_one_database

TEXT = "The plots lie in the Solling mountains. <script>alert(1)</script>"


@pytest.fixture
def published(harvester: Harvester) -> Iterator[str]:
    """The address of a provider with three documents of `alder`, two of `elm`, and an index of them."""
    alder, elm = (harvester.add_site(name, f"https://{name}.example.org/l.xml") for name in ("alder", "elm"))
    store(harvester, *(document(f"doc.{number}", b"<x/>", site=alder) for number in (1, 2, 3)))
    store(harvester, *(document(f"doc.{number}", b"<x/>", site=elm) for number in (4, 5)))
    about = "Beech trees unfold their leaves early; the phenology of leaves is <i>observed</i>."
    embargoed = replace(output("Soil", year=None), access=Access.EMBARGOED, embargo_until="2020-01-01")
    write_index(
        harvester,
        entry(1, output("Beech phenology", creators=["Rivera, Ana"], abstract=about, year=2019), text=TEXT),
        entry(2, output("Beech phenology and leaves", year=2020, subjects=["beech"]), work=1),
        entry(3, output("Phenology of oak leaves", year=2020, kind="dataset")),
        entry(4, output("Beech leaves in autumn", year=2021), site="elm", site_id=elm),
        entry(5, embargoed, site="elm", site_id=elm),
    )
    place = harvester.folder / "pipeline" / "texts" / "00" / "00"
    place.mkdir(parents=True)
    (place / f"{1:064x}").write_text(TEXT, encoding="utf-8")
    with served(harvester) as each:
        yield each.base_url.removesuffix("/oai")


def page(url: str, status: int = 200) -> Any:
    answer = requests.get(url, timeout=30)
    assert answer.status_code == status, answer.text
    return html.fromstring(answer.content, base_url=url)


def titles(found: Any) -> list[str]:
    return [each.text_content() for each in found.xpath("//ol//h2")]


def data(url: str) -> Any:
    answer = requests.get(url, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def problem(url: str, status: int) -> str:
    answer = requests.get(url, timeout=30)
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
    return str(answer.json()["detail"])


def test_marks_that_nobody_sees_are_not_shown(harvester: Harvester) -> None:
    alder = harvester.add_site("alder", "https://alder.example.org/l.xml")
    store(harvester, document("doc.1", b"<x/>", site=alder))
    write_index(harvester, entry(1, output("\u200fBeech\u200b trees", abstract="Beech\u2028leaves")))
    with served(harvester) as each:
        root = each.base_url.removesuffix("/oai")
        [found] = data(f"{root}/api/v1/search?q=beech")["outputs"]
        by_year = page(f"{root}/search?q=year:2020")
    assert found["highlights"] == {"title": "<mark>Beech</mark> trees", "abstract": "<mark>Beech</mark> leaves"}
    assert titles(by_year) == ["Beech trees"]
    assert "\ufffd" not in by_year.text_content()


def test_a_person_searches_chooses_a_value_and_comes_to_a_page(published: str) -> None:
    start = page(f"{published}/")
    [link] = start.xpath("//header//a[.='Search']/@href")
    form = page(urljoin(f"{published}/", link)).forms[0]
    form.fields["q"] = "beech"
    found = page(f"{published}/search?q={quote(form.fields['q'])}")
    assert titles(found) == ["Beech phenology", "Beech phenology and leaves", "Beech leaves in autumn"]
    assert found.xpath("//ol//h2//mark")[0].text == "Beech"
    assert "3 outputs" in found.text_content()
    [href] = found.xpath("//nav//a[.='elm']/@href")
    narrowed = page(urljoin(f"{published}/search", href))
    assert titles(narrowed) == ["Beech leaves in autumn"]
    assert narrowed.forms[0].fields["site"] == "elm"
    [href] = narrowed.xpath("//ul[@class='chosen']//a/@href")
    assert titles(page(urljoin(f"{published}/search", href))) == titles(found)
    [href] = found.xpath("//ol//a[.='Beech phenology']/@href")
    assert page(urljoin(f"{published}/search", href)).findtext(".//h1") == "A title"


def test_the_words_of_a_text_are_shown_and_nothing_of_it_is_executed(published: str) -> None:
    found = page(f"{published}/search?q=solling%20observed")
    assert [each.text for each in found.xpath("//ol//mark")] == ["observed", "Solling"]
    assert "<script>alert(1)</script>" in found.text_content()
    assert found.xpath("//script | //ol//i") == []
    answer = requests.get(f"{published}/search?q=%22%3E%3Cb%3E", timeout=30)
    assert "<b>" not in answer.text
    assert "form-action 'self'" in answer.headers["Content-Security-Policy"]


def test_a_mistake_in_a_query_is_a_sentence(published: str) -> None:
    wrong = page(f"{published}/search?q=%22beech", 400)
    assert "The quotation mark at character 1 has no second one" in wrong.xpath("//*[@role='alert']")[0].text
    assert wrong.forms[0].fields["q"] == '"beech'
    assert "is not a year" in page(f"{published}/search?year=x", 400).text_content()
    assert "another search" in page(f"{published}/search?q=beech&cursor=nonsense", 400).text_content()
    assert "0 outputs" in page(f"{published}/search?q=nowhere&unknown=1").text_content()
    assert "Check their spelling" in page(f"{published}/search?q=nowhere").text_content()
    assert titles(page(f"{published}/search?q=title:%20autumn")) == ["Beech leaves in autumn"]
    assert "There are no wildcards in be*ch" in page(f"{published}/search?q=be*ch", 400).text_content()
    assert "percent-encoded from UTF-8" in problem(f"{published}/api/v1/search?q=%FF", 400)
    assert "There are no wildcards in be*ch" in problem(f"{published}/api/v1/search?q=be*ch", 400)


def test_a_search_without_a_result_has_advice(published: str) -> None:
    spelling, mark, filters = "Check their spelling", "put it in quotation marks", "The search has filters: "
    for parameters, wanted, not_there in (
        ("q=nowhere", [spelling], [mark, filters]),
        ("q=Type:%20the%20long%20one", [spelling, mark], [filters]),
        ("q=10.5063/F9", [spelling], [mark, filters]),
        ("q=type:journal%20article", ['as in type:"journal article"'], [filters]),
        ("q=beech%202020", ["To find outputs of the year 2020, write year:2020."], [mark]),
        ("q=beech&type=song&year=1999", [spelling, f"{filters}type song, year 1999."], [mark]),
        ("site=nowhere", [f"{filters}site nowhere."], [spelling, mark]),
    ):
        advice = data(f"{published}/api/v1/search?{parameters}")["advice"]
        assert [each for each in wanted if each not in advice] == [], parameters
        assert [each for each in not_there if each in advice] == [], parameters
        assert advice in page(f"{published}/search?{parameters}").text_content()
    assert data(f"{published}/api/v1/search?q=beech")["advice"] is None


def test_pages_follow_one_another(harvester: Harvester) -> None:
    store(harvester, *(document(f"doc.{number}", b"<x/>") for number in range(1, 46)))
    write_index(harvester, *(entry(number, output(f"Beech {number}")) for number in range(1, 46)))
    with served(harvester) as each:
        url, found = f"{each.base_url.removesuffix('/oai')}/search?q=beech", list[str]()
        while url:
            shown = page(url)
            found += titles(shown)
            url = next((urljoin(url, href) for href in shown.xpath("//a[@rel='next nofollow']/@href")), "")
        url = f"{each.base_url.removesuffix('/oai')}/api/v1/search?q=beech&limit=15"
        first = requests.get(url, timeout=30).json()
        read = [output["document_id"] for output in first["data"]["outputs"]]
        for document_id in read:
            delete(harvester, document(document_id, b"<x/>"))
        second = requests.get(f"{url}&cursor={first['next_cursor']}", timeout=30).json()
        third = requests.get(f"{url}&cursor={second['next_cursor']}", timeout=30).json()
        for answer in (second, third):
            read += [output["document_id"] for output in answer["data"]["outputs"]]
    assert len(found) == len(set(found)) == len(set(read)) == len(read) == 45
    assert third["next_cursor"] is None


def test_programs_search_without_a_key(published: str) -> None:
    answer = requests.get(f"{published}/api/v1/search?q=beech&limit=2", timeout=30).json()
    found = answer["data"]
    assert schemas.problems("search", {**found, "outputs": [], "next_cursor": None}) == []
    assert (found["total"], len(found["outputs"]), found["facets"]["site"]) == (3, 2, {"alder": 2, "elm": 1})
    first = found["outputs"][0]
    assert (first["document_id"], first["creators"], first["has_full_text"]) == ("doc.1", ["Rivera, Ana"], True)
    assert first["url"] == f"{published}/documents/doc.1"
    assert first["highlights"]["title"] == "<mark>Beech</mark> phenology"
    rest = data(f"{published}/api/v1/search?q=beech&limit=2&cursor={answer['next_cursor']}")
    assert [each["document_id"] for each in rest["outputs"]] == ["doc.4"]
    assert problem(f"{published}/api/v1/search?q=oak&cursor={answer['next_cursor']}", 400).startswith("The cursor")
    newest = data(f"{published}/api/v1/search?q=beech&sort=year&year=2019..2020&type=journal%20article")
    assert [each["document_id"] for each in newest["outputs"]] == ["doc.2", "doc.1"]


def test_programs_read_outputs_works_and_related_ones(published: str) -> None:
    found = data(f"{published}/api/v1/outputs/doc.1")
    assert schemas.problems("output", {name: each for name, each in found.items() if name != "url"}) == []
    assert (found["title"], found["characters"], found["work"]) == ("Beech phenology", len(TEXT), 1)
    # Its embargo has ended since the index was written.
    assert data(f"{published}/api/v1/outputs/doc.5")["access"] == "open access"
    work = data(f"{published}/api/v1/works/1")
    assert [each["document_id"] for each in work["outputs"]] == ["doc.2", "doc.1"]
    related = data(f"{published}/api/v1/recommend/doc.1")
    assert {each["document_id"] for each in related} == {"doc.3", "doc.4"}
    assert all({"phenology", "beech", "leaves"} & set(each["shares"]) for each in related)
    assert problem(f"{published}/api/v1/outputs/doc.9", 404).startswith("The index has no output with the id doc.9")
    assert problem(f"{published}/api/v1/works/77", 404) == "There is no work with this number."
    assert problem(f"{published}/api/v1/works/x", 404)
    assert "Nothing stands after OR" in problem(f"{published}/api/v1/search?q=a%20OR", 400)
    assert problem(f"{published}/api/v1/search?colour=green", 400)
    assert problem(f"{published}/api/v1/sites", 404)
    described = requests.get(f"{published}/api/v1/openapi.json", timeout=30).json()
    assert sorted(described["paths"]) == [
        "/api/v1/outputs/{document}",
        "/api/v1/recommend/{document}",
        "/api/v1/search",
        "/api/v1/works/{work}",
    ]


def test_an_id_with_slashes_is_one_part_of_the_address(harvester: Harvester) -> None:
    store(harvester, record("oai%3Afrogs%3A1", b"<x/>"))
    document_id = "frogs/oai_dc/oai%3Afrogs%3A1"
    of = entry(1, output("Frogs"))
    write_index(harvester, replace(of, document_id=document_id, record={**of.record, "document_id": document_id}))
    with served(harvester) as each:
        root = each.base_url.removesuffix("/oai")
        assert data(f"{root}/api/v1/outputs/{quote(document_id, safe='')}")["title"] == "Frogs"
        [link] = page(f"{root}/search").xpath("//ol//a/@href")
        assert requests.get(urljoin(f"{root}/search", link), timeout=30).status_code == 200


def test_documents_of_a_site_that_is_not_public_are_gone_at_once(published: str, harvester: Harvester) -> None:
    harvester.rows("UPDATE harvest_site_schedule SET public = FALSE WHERE name = 'elm'")
    assert titles(page(f"{published}/search?q=beech")) == ["Beech phenology", "Beech phenology and leaves"]
    found = data(f"{published}/api/v1/search")
    assert (found["total"], found["facets"]["site"]) == (3, {"alder": 3})
    assert problem(f"{published}/api/v1/outputs/doc.4", 404)
    assert problem(f"{published}/api/v1/works/4", 404)
    assert {each["document_id"] for each in data(f"{published}/api/v1/recommend/doc.1")} == {"doc.3"}
    # A document that was deleted since the index was written, and comes back.
    [site] = harvester.rows("SELECT site_schedule_id FROM harvest_site_schedule WHERE name = 'alder'")
    delete(harvester, document("doc.1", b"<x/>", site=site[0]))
    found = data(f"{published}/api/v1/search?q=beech")
    assert (found["total"], found["facets"]["site"], found["facets"]["year"]) == (1, {"alder": 1}, {"2020": 1})
    assert titles(page(f"{published}/search?q=beech&sort=year")) == ["Beech phenology and leaves"]
    assert "1 output" in page(f"{published}/search?q=beech").text_content()
    store(harvester, document("doc.1", b"<x/>", site=site[0], revision=2))
    assert data(f"{published}/api/v1/search?q=beech")["total"] == 2


def test_without_an_index_there_is_a_sentence_and_no_link(harvester: Harvester) -> None:
    with served(harvester) as each:
        root = each.base_url.removesuffix("/oai")
        assert "The search has no index yet" in page(f"{root}/search", 503).text_content()
        assert "There is no search index yet" in problem(f"{root}/api/v1/search", 503)
        assert page(f"{root}/").xpath("//a[.='Search']") == []
        store(harvester, document("doc.1", b"<x/>"))
        write_index(harvester, entry(1, output("Beech")))
        assert titles(page(f"{root}/search")) == ["Beech"]
        assert len(page(f"{root}/").xpath("//a[.='Search']")) == 2


def test_a_folder_that_cannot_be_read_takes_no_page_away(
    harvester: Harvester, caplog: pytest.LogCaptureFixture
) -> None:
    store(harvester, document("doc.1", b"<x/>"))
    with served(harvester) as each:
        root = each.base_url.removesuffix("/oai")
        write_index(harvester, entry(1, output("Beech")))
        [pointer] = harvester.folder.rglob("index/current")
        pointer.unlink()
        pointer.mkdir()
        for path in ("/", "/documents/doc.1", "/status"):
            assert page(f"{root}{path}").xpath("//a[.='Search']") == []
    assert caplog.text.count("The folder of the search index cannot be read") == 1


@pytest.mark.slow
def test_a_browser_without_scripts_searches_in_the_light_and_in_the_dark_on_a_wide_and_a_narrow_screen(
    published: str,
) -> None:
    with chromium() as browser:
        reader = Reader(browser, published)
        faults = []
        for path in ("/search", "/search?q=beech+OR+solling", "/search?q=beech&site=alder", "/search?q=%22", "/"):
            reader.open(path)
            faults += reader.faults(path)
        reader.close()
        assert faults == []
        plain = Reader(browser, published, scripts=False)
        plain.open("/search")
        plain.fill("Words, phrases", "beech")
        plain.press("Search")
        plain.follow("elm")
        assert "1 output." in plain.text
        plain.follow("Beech leaves in autumn")
        assert plain.text.startswith("A title")
        assert plain.troubles == []
        plain.close()
