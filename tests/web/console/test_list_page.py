"""Make a harvest list: the table, filled, edited, checked and downloaded without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.console import Page, Served, served_console
from support.databases import on_one_database
from support.harvester import TYPE, Harvester, eml, harvest_list

pytestmark = on_one_database

BASE = "https://www.example.org/eml/"


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    with served_console(harvester) as made:
        yield made


def cells(page: Page) -> list[tuple[str, ...]]:
    """The values in the table of the form, without empty rows."""
    values = page.form("Add 5 rows").form_values()
    columns = [[value for each, value in values if each == name] for name in ("scope", "identifier", "revision", "url")]
    return [row for row in zip(*columns, strict=True) if any(row)]


def with_files(page: Page, *files: tuple[str, bytes]) -> Page:
    form = page.form("Add these documents")
    pairs = [(name, value) for name, value in form.form_values() if name != "base"]
    pairs += [("base", BASE), ("do", "documents")]
    return page.browser.request("POST", page.url, data=pairs, files=[("files", file) for file in files])


def test_files_become_rows_and_a_canonical_list(console: Served) -> None:
    page = console.visitor().open("/console/list")
    page = with_files(page, ("b 2.xml", eml("a.10.1")), ("a.xml", eml("a.9.3")), ("bad.xml", b"<eml"))
    assert cells(page) == [("a", "9", "3", f"{BASE}a.xml"), ("a", "10", "1", f"{BASE}b%202.xml")]
    assert "2 rows were added or changed." in page.text
    assert "bad.xml" in page.text
    file = page.submit("Download the list")
    assert file.headers["Content-Disposition"] == 'attachment; filename="harvest-list.xml"'
    assert file.content.index(b"<identifier>9</identifier>") < file.content.index(b"<identifier>10</identifier>")
    assert b"<?metaharvest docid=" in file.content

    again = console.visitor().open("/console/list")
    again = again.submit("Read the old list", files={"list": ("harvest-list.xml", file.content)})
    assert cells(again) == cells(page)
    changed = with_files(again, ("a.xml", eml("a.9.3").replace(b"</title>", b" changed</title>")))
    assert cells(changed)[0] == ("a", "9", "4", f"{BASE}a.xml")
    assert again.submit("Download the list").content == file.content


def test_rows_are_added_and_deleted(console: Served) -> None:
    page = console.visitor().open("/console/list")
    page = page.submit("Read the old list", files={"list": ("l.xml", harvest_list([("a.1.1", BASE), ("a.2.1", BASE)]))})
    page = page.submit("Add 5 rows")
    assert len(page.table()) == 7
    page = page.submit("Delete row 1")
    assert cells(page) == [("a", "2", "1", BASE)]
    assert len(page.table()) == 6
    assert "All rows are correct." in page.submit("Check the table").text


def test_a_document_that_left_the_list_and_comes_back_changed_gets_a_new_revision(console: Served) -> None:
    page = with_files(console.visitor().open("/console/list"), ("a.xml", eml("a.1.1")), ("b.xml", eml("b.1.1")))
    file = page.submit("Delete row 1").submit("Add 5 rows").submit("Check the table").submit("Download the list")
    assert b"<scope>a</scope>" not in file.content
    again = console.visitor().open("/console/list")
    again = again.submit("Read the old list", files={"list": ("harvest-list.xml", file.content)})
    assert "The old list has 1 row." in again.text
    assert cells(again) == [("b", "1", "1", f"{BASE}b.xml")]
    assert again.submit("Download the list").content == file.content
    assert cells(with_files(again, ("a.xml", eml("a.1.1"))))[0][2] == "1"
    changed = with_files(again, ("a.xml", eml("a.1.1").replace(b"</title>", b" changed</title>")))
    assert "1 row was added or changed." in changed.text
    assert [row[:3] for row in cells(changed)] == [("a", "1", "2"), ("b", "1", "1")]


def test_a_row_that_is_emptied_and_another_that_is_deleted_keep_their_numbers(console: Served) -> None:
    page = with_files(console.visitor().open("/console/list"), *((f"{name}.xml", eml(f"{name}.1.1")) for name in "abc"))
    empty = {name: ["", "1", "1"] for name in ("identifier", "revision", "document_type")}
    empty |= {"scope": ["", "b", "c"], "url": ["", BASE, BASE], "document_type": ["", TYPE, TYPE]}
    page = page.submit("Delete row 3", empty)
    assert [row[0] for row in cells(page)] == ["b"]
    content = page.submit("Download the list").content
    assert content.count(b"<?metaharvest docid=") == 3


def test_a_mistake_is_shown_beside_its_cell(console: Served) -> None:
    page = console.visitor().open("/console/list")
    rows = {"scope": ["a", "a b"], "identifier": ["1", "x"], "revision": ["1", "1"]}
    more = {"document_type": ["eml://ecoinformatics.org/eml-2.1.1"] * 2, "url": [BASE, "no<b>"]}
    page = page.submit("Download the list", {**rows, **more})
    assert page.status == 422
    assert "The table has 3 mistakes." in page.text
    wrong = {each.get("aria-label") for each in page.root.iter("input") if each.get("aria-invalid")}
    assert wrong == {"Scope, row 2", "Identifier, row 2", "URL, row 2"}
    assert cells(page)[1] == ("a b", "x", "1", "no<b>")
    assert b"no<b>" not in page.content


def test_an_old_list_with_mistakes_says_each_line(console: Served) -> None:
    content = harvest_list([("a.1.1", BASE)]).replace(b"<revision>1", b"<revision>-1")
    page = console.visitor().open("/console/list").submit("Read the old list", files={"list": ("l.xml", content)})
    assert page.status == 422
    assert "The old list, line" in page.text
    assert (
        "Choose the file of the old list first."
        in console.visitor().open("/console/list").submit("Read the old list").text
    )


@pytest.mark.parametrize("base", ["www.example.org/eml", "file:///C:/eml", "ftp://www.example.org/", ""])
def test_a_wrong_folder_is_corrected_beside_its_field(console: Served, base: str) -> None:
    page = console.visitor().open("/console/list")
    page = page.submit("Add these documents", {"base": base}, files={"files": ("a.xml", eml("a.1.1"))})
    assert page.status == 422
    said = page.root.get_element_by_id("field-base-note").text
    assert "https://" in said
    assert "--" not in said


def test_a_table_is_bounded_and_strange_forms_are_answered(console: Served) -> None:
    browser = console.visitor()
    page = browser.open("/console/list")
    csrf = dict(page.form("Add 5 rows").form_values())["csrf"]
    many = [("csrf", csrf), *[("scope", "a")] * 501]
    assert browser.request("POST", page.url, data=many).status == 422
    for pressed in ("check", "more", "download"):
        long = browser.request("POST", page.url, data=[("csrf", csrf), ("scope", "a" * 5000), ("do", pressed)])
        assert (long.status, cells(long)) == (422, [("a" * 5000, "", "", "")]), pressed
    for pressed in ("delete 99", "delete x", "delete ٣", "nothing", "documents", "list"):
        answer = browser.request("POST", page.url, data=[("csrf", csrf), ("do", pressed)])
        assert answer.status == 422, pressed
    assert browser.request("POST", page.url, data=[("do", "check")]).status == 403
