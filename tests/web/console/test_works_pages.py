"""The pages of works: a steward answers for pairs, takes an answer back, and says that two outputs are not related."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.console import Browser, Served, served_console
from support.harvester import Harvester
from support.provider import dc, record, store

pytestmark = pytest.mark.slow

PAIRS = "Pairs of outputs, with the answer of the rules"
RELATED = "Outputs of other works, the closest first"
ANSWERS = "Answers of people, the newest first"
TITLE = "Phenology of beech forests in the Solling mountains"
OTHER = "Beech forests, their phenology and &lt;script&gt;alert(1)&lt;/script&gt;"
A, B, C = (f"frogs/oai_dc/{each}" for each in "abc")


def of(title: str, year: int) -> bytes:
    more = f"<dc:creator>Rivera, Ana</dc:creator><dc:date>{year}</dc:date></oai_dc:dc>"
    return dc(title).replace(b"</oai_dc:dc>", more.encode())


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two outputs that may be the same, and one that is related to them."""
    made = Harvester(tmp_path_factory.mktemp("works"))
    with made.config.open("a") as file:
        file.write("[pipeline]\nenabled = true\n")
    made.add_site("alder", "https://alder.example.org/list.xml")
    store(made, record("a", of(TITLE, 2020)), record("b", of(TITLE, 2016)), record("c", of(OTHER, 2020)))
    assert made("pipeline", "run").code == 0
    with served_console(made) as served:
        yield served
    made.close()


@pytest.fixture
def steward(console: Served) -> Browser:
    return console.signed_in("steward")


def test_a_steward_is_led_from_tonight_to_a_pair_answers_and_takes_it_back(steward: Browser) -> None:
    tonight = steward.open("/console/tonight")
    assert "1 pair of outputs waits for an answer" in tonight.text
    page = steward.open(tonight.root.xpath("//ul[@class='waiting']//a[.='Works']/@href")[0])
    assert "The titles agree at 100 of 100, the years are 4 apart, both name Rivera." in page.text
    page = page.submit(f"Same: {A} and {B}", {"reason": "The year is a mistake."})
    assert page.notice == f"Your decision holds: {A} and {B} are the same output."
    assert "No pair waits for an answer." in page.text
    [row] = page.table(ANSWERS)
    assert row[2].startswith("✓ same steward@example.org,")
    assert row[2].endswith("The year is a mistake.")
    [last, *_] = steward.open("/console/decisions").table()
    assert last[1].startswith("steward@example.org (console)")
    assert "The year is a mistake." in last[2]
    assert "decided: if it is the same as another document" in steward.open(f"/console/documents/{quoted(A)}").text
    page = steward.open("/console/works").submit(f"Take back: {A} and {B}")
    assert page.notice == f"The decision about {A} and {B} is taken back: the rules decide again."
    assert page.form(f"Different: {A} and {B}") is not None


def test_not_related_holds_until_it_is_taken_back_and_leaves_other_answers(steward: Browser) -> None:
    page = steward.open(f"/console/documents/{quoted(A)}").follow("Its work, duplicates and related outputs")
    page = page.submit(f"Different: {A} and {B}")
    assert {row[0].split(" frogs")[0] for row in page.table(RELATED)} == {
        TITLE,
        "Beech forests, their phenology and <script>alert(1)</script>",
    }
    assert b"<script>alert" not in page.content
    page = page.submit(f"Not related: {A} and {C}")
    assert page.notice == f"Your decision holds: {A} and {C} are not related."
    assert [row[0] for row in page.table(RELATED)] == [f"{TITLE} {B}"]
    [row] = page.table("Decided by people")
    assert "unrelated" in row[1]
    page = page.submit(f"Not related: {A} and {B}")
    page = page.submit(f"Take back: {A} and {B}")  # the first button: of the answer about duplicates
    assert "unrelated" in [row[1].split()[1] for row in page.table("Decided by people")]
    for other in (B, C):
        assert page.submit(f"Take back: {A} and {other}").status == 200
        page = steward.open(page.path)
    assert len(page.table(RELATED)) == 2


def test_a_person_may_decide_about_any_two_documents(steward: Browser) -> None:
    path = f"/console/works/{quoted(A)}"
    page = steward.open(path).submit("Decide", {"other": C, "answer": "same"})
    assert page.path == path
    assert [row[1] for row in page.table("Outputs of the work, the first one first")] == [f"{A} (this one)", C]
    page = steward.open(path).submit("Decide", {"other": "x.1", "answer": "same"})
    assert (page.status, "no document 'x.1'" in page.text) == (404, True)
    page = steward.open(path).submit("Decide", {"other": A, "answer": "same"})
    assert (page.status, "two different documents" in page.text) == (422, True)
    assert steward.open(path).submit(f"Take back: {A} and {C}").status == 200
    assert steward.open("/console/works/x.1").status == 404
    assert steward.open("/console/works?after=x").status == 422


def test_a_viewer_looks_and_decides_nothing(console: Served) -> None:
    viewer = console.signed_in("viewer")
    page = viewer.open("/console/").follow("Works")
    assert "Are these the same?" in page.text
    assert [button.text for button in page.root.iter("button")] == ["Sign out"]
    answer = viewer.request("POST", f"/console/works/{quoted(A)}", data={"other": B, "answer": "same"})
    assert answer.status == 403


def quoted(document_id: str) -> str:
    return document_id.replace("/", "%2F")
