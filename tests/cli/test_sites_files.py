"""`sites export` and `sites import` copy all values of sites into another installation."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.databases import TestDatabase, on_one_database
from support.harvester import Harvester

LISTS = ("--list-url", "https://elm.example.org/list.xml", "--contact", "elm@example.org")
ASKED = {"method": "list-records"}
"""The OAI-PMH options of each repository in the schedule."""

COLUMNS = (
    "name, source_kind, documentlisturl, contact_email, updatefrequency, unit, datenextharvest, datelastharvest, "
    "day_of_month, notify, enabled, ldapdn, ldappwd"
)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Harvester]:
    """Another installation, with an empty database."""
    (tmp_path / "other").mkdir()
    made = Harvester(tmp_path / "other")
    yield made
    made.close()


def registered(harvester: Harvester) -> list[tuple[Any, ...]]:
    rows = harvester.rows(f"SELECT {COLUMNS}, options FROM harvest_site_schedule ORDER BY name")
    return [(*row[:-1], json.loads(row[-1] or "{}")) for row in rows]


def three_sites(harvester: Harvester) -> None:
    """A plain site, one with every option, and a repository."""
    (harvester.folder / "filters.xml").write_text('<filters xmlns="https://metaharvest.example/filters"/>')
    for arguments in (
        ("elm", *LISTS),
        ("=cmd, \"of\" Böhmen", "--list-url", "https://fir.example.org/l.xml?b=1&a=2", "--contact", "a@x.org, b@x.org",
         "--every", "3", "--unit", "months", "--next", "2039-01-31", "--notify", "on-change",
         "--package-id-mismatch", "error", "--allow-network", "10.1.0.0/16", "--allow-network", "192.168.7.0/24",
         "--validation", "very-strict", "--deletions", "note", "--max-loss", "0", "--full-text", "text",
         "--ldapdn", "uid=fir,o=x", "--ldappwd", "env:FIR"),
        ("oak", "--oai", "https://oak.example.org/oai", "--unasked", "--contact", "oak@example.org", "--prefix", "eml",
         "--set", "fish:fresh", "--from", "2020-01-01", "--until", "2030-01-01",
         "--method", "list-identifiers", "--full-every", "30", "--post", "--origin", "oak"),
    ):  # fmt: skip
        said = harvester("sites", "add", *arguments)
        assert said.code == 0, said.err
    harvester.rows(
        "UPDATE harvest_site_schedule SET datelastharvest = '2026-11-19', day_of_month = 31 WHERE ldapdn <> ''"
    )
    assert harvester("sites", "disable", "oak").code == 0


@pytest.mark.parametrize("form", [(), ("--csv",)], ids=["json", "csv"])
def test_an_export_of_one_installation_is_an_import_into_another(
    harvester: Harvester, other: Harvester, form: tuple[str, ...]
) -> None:
    three_sites(harvester)
    file = harvester.folder / "sites"
    said = harvester("sites", "export", *form, "-o", str(file))
    assert (said.code, said.err) == (0, f"Wrote 3 sites to {file}.\n")
    dry = other("sites", "import", str(file), "--dry-run")
    assert (dry.code, "3 sites: 3 added, 0 changed, 0 unchanged." in dry.out) == (0, True), dry.err
    assert registered(other) == []
    done = other("sites", "import", str(file))
    assert done.code == 0, done.err
    assert registered(other) == registered(harvester)
    # Done again, nothing changes; and what is exported there is the same file.
    again = other("sites", "import", str(file))
    assert again.out == "3 sites: 0 added, 0 changed, 3 unchanged.\n"
    assert other("sites", "export", *form).out.encode() == file.read_bytes()


@on_one_database
def test_the_number_of_imported_sites_is_in_words(harvester: Harvester) -> None:
    three_sites(harvester)
    (harvester.folder / "sites.csv").write_text("name,notify\nelm,never\n")
    said = harvester("sites", "import", str(harvester.folder / "sites.csv"))
    assert "\n1 site: 0 added, 1 changed, 0 unchanged.\n" in said.out


@on_one_database
def test_an_import_says_each_value_that_changes_and_leaves_the_others(harvester: Harvester) -> None:
    three_sites(harvester)
    before = registered(harvester)
    rows = "name;contacts;every\nelm;new@example.org, elm@example.org;2\noak;oak@example.org;1\n"
    (harvester.folder / "sites.csv").write_text(rows)
    said = harvester("sites", "import", str(harvester.folder / "sites.csv"))
    assert said.out == (
        "elm: changed.\n"
        "  contacts: elm@example.org -> new@example.org, elm@example.org\n"
        "  every: 1 -> 2\n"
        "2 sites: 0 added, 1 changed, 1 unchanged.\n"
    )
    after = registered(harvester)
    assert [row for row in after if row[0] != "elm"] == [row for row in before if row[0] != "elm"]


@on_one_database
def test_a_repository_that_a_person_writes_into_a_file_gets_an_origin(harvester: Harvester) -> None:
    rows = (
        "name,source_kind,list_url,contacts,oai_prefix,oai_sets,oai_origin\n"
        "oak,oai-pmh,https://oak.example.org/oai,oak@example.org,eml,fish,\n"
        "yew,oai-pmh,https://yew.example.org/oai,yew@example.org,,,\n"
        "elm,,https://elm.example.org/list.xml,elm@example.org,,,\n"
    )
    (harvester.folder / "sites.csv").write_text(rows)
    said = harvester("sites", "import", str(harvester.folder / "sites.csv"))
    assert said.code == 0, said.err
    found = {row[0]: (row[1], row[-1]) for row in registered(harvester)}
    assert found == {
        "elm": ("harvest-list", {}),
        "oak": (
            "oai-pmh",
            {"oai": {"origin": "oak.example.org-oai", "prefix": "eml", "set": "fish", **ASKED}},
        ),
        "yew": ("oai-pmh", {"oai": {"origin": "yew.example.org-oai", "prefix": "oai_dc", **ASKED}}),
    }
    again = harvester("sites", "import", str(harvester.folder / "sites.csv"))
    assert again.out == "3 sites: 0 added, 0 changed, 3 unchanged.\n"


@on_one_database
def test_no_cell_of_an_export_begins_a_formula(harvester: Harvester) -> None:
    three_sites(harvester)
    harvester("sites", "edit", "elm", "--name", "'=elm")
    out = harvester("sites", "export", "--csv").out.lstrip("\ufeff")
    cells = [cell for row in csv.reader(io.StringIO(out)) for cell in row]
    assert not [cell for cell in cells if cell.startswith(tuple("=+-@\t\r"))]
    assert "''=elm" in cells


BAD = """\
name,list_url,contacts,every
elm,https://elm.example.org/list.xml,elm@example.org,1
fir,nonsense,fir@example.org,1
oak,https://oak.example.org/l.xml,nobody,1
ash,https://ash.example.org/l.xml,ash@example.org,often
elm,https://other.example.org/l.xml,elm@example.org,1
yew,https://yew.example.org/l.xml
"""


@on_one_database
def test_addresses_are_read_as_people_type_them_in_a_spreadsheet(harvester: Harvester) -> None:
    """A line break (Alt+Enter in Excel), a semicolon at the end, invisible marks of a copy, and one address twice."""
    cell = "\u200ba@example.org\u200b;\r\n b@example.org\u00a0\nc@example.org; A@Example.org;"
    file = harvester.folder / "sites.csv"
    file.write_text(f'name,list_url,contacts\nelm,https://elm.example.org/list.xml,"{cell}"\n', encoding="utf-8")
    assert harvester("sites", "import", str(file)).code == 0
    assert harvester.rows("SELECT contact_email FROM harvest_site_schedule") == [
        ("a@example.org, b@example.org, c@example.org",)
    ]
    # The mark is U+00AD, which some words have inside.
    refused = harvester("sites", "edit", "elm", "--add-contact", "d@exam\u00adple.org")
    assert (refused.code, "is not an email address" in refused.err) == (2, True)


@on_one_database
def test_one_bad_row_and_nothing_is_imported(harvester: Harvester) -> None:
    file = harvester.folder / "sites.csv"
    file.write_text(BAD)
    said = harvester("sites", "import", str(file))
    assert (said.code, said.out) == (2, "")
    for line in (
        "line 3: ",
        "line 4: oak: 'nobody' is not an email address",
        "line 5: every is 'often': it must be a whole number",
        "line 6: the site 'elm' is in line 2 already",
        "line 7: it has 2 values, and the first line names 4 columns",
        "Nothing was imported",
    ):
        assert line in said.err, said.err
    assert registered(harvester) == []


@on_one_database
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"sites": []}', 'it must begin with "format"'),
        ("{", "is not JSON"),
        ("site,url\n", "The first line names no column `name`"),
        ("name,colour\n", "there is no column colour"),
        ('{"format": "metaharvest sites 1", "sites": [3, {"name": "a", "colour": 1}]}', "site 1: it is no object"),
        ('{"format": "metaharvest sites 1", "sites": [{"name": "a", "colour": 1}]}', "no value called colour"),
        ('{"format": "metaharvest sites 1", "sites": [{"name": "a", "list_url": 3}]}', "site 1 (a): "),
        ('name,list_url\n"a,b\n', "is not CSV"),
        (
            "name,list_url,contacts,next_harvest\na,https://a.example.org/l,a@example.org,31.01.2031\n",
            "line 2: a: next_harvest is '31.01.2031'; it must be a date",
        ),
    ],
)
def test_what_is_no_file_of_sites_is_said(harvester: Harvester, content: str, sentence: str) -> None:
    file = harvester.folder / "sites"
    file.write_text(content)
    said = harvester("sites", "import", str(file))
    assert (said.code, sentence in said.err) == (2, True), said.err


@on_one_database
def test_a_login_in_a_url_is_exported_only_if_asked_for(harvester: Harvester, other: Harvester) -> None:
    harvester("sites", "add", "elm", "--list-url", "https://me:secret@elm.example.org/l.xml", "--contact", "e@x.org")
    said = harvester("sites", "export")
    assert "secret" not in said.out
    assert "Exported without the login in the URL, which --with-logins writes: elm." in said.err
    whole = harvester("sites", "export", "--with-logins")
    file = harvester.folder / "sites.json"
    file.write_text(whole.out)
    assert other("sites", "import", str(file)).code == 0
    assert registered(other) == registered(harvester)
    assert "secret" not in other("sites", "import", str(file)).out
    file.write_text("name,list_url\nelm,https://elm.example.org/new.xml\n")
    assert "The user name and password in its former URL were not kept" in other("sites", "import", str(file)).out


@on_one_database
def test_another_login_of_the_same_url_is_a_change(harvester: Harvester) -> None:
    url = "https://me:secret@elm.example.org/l.xml"
    harvester("sites", "add", "elm", "--list-url", url, "--contact", "e@x.org")
    said = harvester("sites", "edit", "elm", "--list-url", url.replace("secret", "other"))
    assert "Changed elm" in said.out
    assert "  login: (not shown) -> another one (not shown)\n" in said.out


@on_one_database
def test_a_broken_row_is_named_and_left_out(harvester: Harvester) -> None:
    three_sites(harvester)
    harvester.rows("UPDATE harvest_site_schedule SET unit = 'fortnights' WHERE name = 'elm'")
    said = harvester("sites", "export")
    assert said.code == 1
    assert "elm is not exported: its row cannot be used" in said.err
    assert len(json.loads(said.out)["sites"]) == 2


# -- one source, one site


SAME = (
    "https://elm.example.org/list.xml",
    "HTTPS://ELM.example.org:443/list.xml",
    "https://elm.example.org./%6Cist.xml#top",
)


@on_one_database
@pytest.mark.parametrize("url", SAME)
def test_a_list_is_registered_once(harvester: Harvester, url: str) -> None:
    assert harvester("sites", "add", "elm", *LISTS).code == 0
    said = harvester("sites", "add", "second", "--list-url", url, "--contact", "b@example.org")
    assert (said.code, said.out) == (2, "")
    assert "The site 'elm' harvests this list already" in said.err
    assert harvester("sites", "add", "other", "--list-url", f"{SAME[0]}?a=1", "--contact", "b@example.org").code == 0
    moved = harvester("sites", "edit", "other", "--list-url", url)
    assert (moved.code, "The site 'elm' harvests this list already" in moved.err) == (2, True)
    assert [row[2] for row in registered(harvester)] == [SAME[0], f"{SAME[0]}?a=1"]
    both = harvester("sites", "edit", "other", "--list-url", url, "--allow-duplicate")
    assert both.code == 0, both.err
    # What was so before can be changed in other ways.
    assert harvester("sites", "edit", "other", "--every", "2").code == 0


@on_one_database
def test_a_set_of_a_repository_is_registered_once(harvester: Harvester) -> None:
    def add(name: str, *options: str, url: str = "https://oak.example.org/oai") -> str:
        said = harvester("sites", "add", name, "--oai", url, "--unasked", "--contact", "o@example.org", *options)
        return said.err if said.code else ""

    assert add("oak", "--set", "b") == ""
    assert "The site 'oak' harvests this repository for the same format and set" in add(
        "second", "--set", "b", url="https://OAK.example.org:443/oai/"
    )
    assert add("third", "--set", "a") == ""
    assert add("fourth", "--set", "a", "--prefix", "eml") == ""
    assert add("fifth") == ""
    assert "The site 'fifth'" in add("sixth")
    moved = harvester("sites", "edit", "third", "--set", "none", "--unasked")
    assert (moved.code, "The site 'fifth' harvests" in moved.err) == (2, True)
    file = harvester.folder / "sites.json"
    exported = json.loads(harvester("sites", "export").out)
    exported["sites"] = [{**exported["sites"][0], "name": "copy"}]
    file.write_text(json.dumps(exported))
    said = harvester("sites", "import", str(file))
    assert (said.code, "site 1 (copy): The site 'fifth' harvests" in said.err) == (2, True), said.err
    assert harvester("sites", "import", str(file), "--allow-duplicate").code == 0


# -- what an edit says


@on_one_database
def test_an_edit_says_each_value_before_and_after(harvester: Harvester) -> None:
    harvester("sites", "add", "elm", *LISTS, "--contact", "two@example.org")
    said = harvester("sites", "edit", "elm", "--contact", "new@example.org", "--every", "2", "--max-loss", "0")
    assert said.out.splitlines()[1:] == [
        "  contacts: elm@example.org, two@example.org -> new@example.org",
        "  every: 1 -> 2",
        "  max loss: none -> 0",
    ]
    same = harvester("sites", "edit", "elm", "--every", "2")
    assert same.out == "Nothing was changed: elm has these values already.\n"
    renamed = harvester("sites", "edit", "elm", "--name", "elm wood", "--notify", "never")
    assert "  name: elm -> elm wood" in renamed.out
    assert "  notify: always -> never" in renamed.out


@on_one_database
def test_contacts_are_added_and_removed_one_by_one(harvester: Harvester) -> None:
    harvester("sites", "add", "elm", *LISTS)

    def edit(*arguments: str) -> str:
        said = harvester("sites", "edit", "elm", *arguments)
        return said.out if said.code == 0 else said.err

    assert "contacts: elm@example.org -> elm@example.org, b@example.org, c@example.org" in edit(
        "--add-contact", "b@example.org", "--add-contact", "c@example.org"
    )
    assert "-> b@example.org, d@example.org" in edit(
        "--remove-contact", "ELM@example.org", "--remove-contact", "c@example.org", "--add-contact", "d@example.org"
    )
    assert "Nothing was changed" in edit("--add-contact", "B@example.org")
    assert "x@example.org is no contact of elm. Its contacts: b@example.org, d@example.org." in edit(
        "--remove-contact", "x@example.org"
    )
    assert "would have no contact left" in edit(
        "--remove-contact", "b@example.org", "--remove-contact", "d@example.org"
    )
    assert "--contact replaces all contacts" in edit("--contact", "a@example.org", "--add-contact", "b@example.org")
    assert "'nobody' is not an email address" in edit("--add-contact", "nobody")
    assert [row[3] for row in registered(harvester)] == ["b@example.org, d@example.org"]


def test_a_broken_row_is_put_right_and_says_what_it_was(tmp_path: Path, database: TestDatabase) -> None:
    harvester = Harvester(tmp_path, database=database)
    harvester("sites", "add", "elm", *LISTS)
    harvester.rows("UPDATE harvest_site_schedule SET unit = 'fortnights'")
    said = harvester("sites", "edit", "elm", "--unit", "weeks")
    assert "  unit: fortnights -> weeks" in said.out
    harvester.close()


def test_a_spreadsheet_with_a_mistyped_year_is_imported_with_a_warning(harvester: Harvester) -> None:
    file = harvester.folder / "sites.csv"
    rows = "name;source_kind;list_url;contacts;next_harvest\r\n" + "".join(
        f"{name};harvest-list;https://{name}.example.org/list.xml;{name}@example.org;{day}\r\n"
        for name, day in (("elm", "3026-12-01"), ("oak", ""))
    )
    file.write_bytes(b"\xef\xbb\xbf" + rows.encode())
    said = harvester("sites", "import", str(file))
    assert (said.code, said.out.splitlines()[-1]) == (0, "2 sites: 2 added, 0 changed, 0 unchanged.")
    assert said.err.startswith("warning: elm: the next harvest, 3026-12-01, is ")
    assert "oak" not in said.err
    again = harvester("sites", "import", str(file))
    assert (again.code, again.err) == (0, "")
    file.write_bytes("".join(rows.splitlines(keepends=True)[:2]).encode())
    assert harvester("sites", "import", str(file)).out == "1 site: 0 added, 0 changed, 1 unchanged.\n"
