"""The list of sites: filters, changes of many sites at once, the file of all sites."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from metaharvest.web.console.pages import sites
from support.console import Page, Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester

pytestmark = on_one_database


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    harvester.add_site("birch", "https://birch.example.org/list.xml", enabled=False)
    harvester.add_site("cedar", "https://cedar.example.org/list.xml")
    with harvester.engine.begin() as connection:
        connection.execute(text("UPDATE harvest_site_schedule SET updatefrequency = NULL WHERE name = 'cedar'"))
    with served_console(harvester) as made:
        yield made


def names_of(page: Page) -> list[str]:
    """The sites in the list of a viewer, which has no boxes."""
    return [row[0] for row in page.table()]


def names(page: Page) -> list[str]:
    return [row[1] for row in page.table()]


def test_the_list_shows_states_and_filters_them(console: Served) -> None:
    steward = console.signed_in("steward")
    page = steward.open("/console/sites")
    assert names(page) == ["alder", "birch", "cedar"]
    assert [row[2] for row in page.table()] == ["… due", "– off", "✕ broken"]
    assert names(page.submit("Show", {"state": "off"})) == ["birch"]
    assert names(page.submit("Show", {"text": "CEDAR.example"})) == ["cedar"]
    assert "No site matches these filters." in page.submit("Show", {"text": "elm"}).text


def test_a_viewer_sees_the_list_and_changes_nothing(console: Served) -> None:
    viewer = console.signed_in("viewer")
    page = viewer.open("/console/sites")
    assert names_of(page) == ["alder", "birch", "cedar"]
    assert "Change the chosen sites" not in page.text
    refused = viewer.open("/console/sites/import")
    assert (refused.status, "Sign in" in refused.links()) == (403, False)
    assert refused.title == "This needs the role steward, and your role is viewer. An operator can change it."


def test_a_number_that_no_row_has_leads_to_the_first_page(console: Served) -> None:
    viewer = console.signed_in("viewer")
    for after in ("9" * 30, "9" * 5000, "²", "-1"):
        assert names_of(viewer.open(f"/console/sites?after={after}")) == ["alder", "birch", "cedar"]


def test_an_installation_without_sites_says_so(harvester: Harvester) -> None:
    with served_console(harvester) as console:
        assert "No site is registered yet." in console.signed_in("steward").open("/console/sites").text


def test_many_sites_are_changed_at_once_after_both_values_were_shown(console: Served, harvester: Harvester) -> None:
    page = console.signed_in("steward").open("/console/sites")
    values: dict[str, str | list[str]] = {"name": ["alder", "birch"]}
    values |= {"add_groups": "north", "every": "2", "unit": "weeks", "enabled": "on"}
    page = page.submit("Show the changes", values)
    assert page.title == "Change 2 sites?"
    assert ["birch", "enabled", "no", "yes"] in page.table()
    assert ["alder", "groups", "none", "north"] in page.table()
    assert harvester.rows("SELECT DISTINCT updatefrequency FROM harvest_site_schedule WHERE name <> 'cedar'") == [(1,)]
    page = page.submit("Change 2 sites")
    assert (page.path, page.notice) == ("/console/sites", "2 sites were changed.")
    rows = harvester.rows("SELECT unit, enabled FROM harvest_site_schedule WHERE name <> 'cedar'")
    assert rows == [("weeks", 1), ("weeks", 1)]
    audit = "SELECT actor, via, subject FROM audit_entry WHERE action = 'sites.edit' ORDER BY subject"
    steward = "steward@example.org"
    assert harvester.rows(audit) == [(steward, "console", "alder"), (steward, "console", "birch")]


def test_all_sites_of_a_selection_are_changed(console: Served, harvester: Harvester) -> None:
    page = console.signed_in("steward").open("/console/sites?state=off")
    page = page.submit("Show the changes", {"all": "yes", "notify": "never"}).submit("Change 1 site")
    assert page.path == "/console/sites?state=off"
    rows = harvester.rows("SELECT name FROM harvest_site_schedule WHERE notify = 'never'")
    assert rows == [("birch",)]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"notify": "never"}, "No site is chosen"),
        ({"name": "alder"}, "No change is chosen"),
        ({"name": "alder", "every": "100"}, "Every: '100' is not a number from 1 to 99."),
        ({"name": "alder", "every": "9" * 5000}, "is not a number from 1 to 99."),
        ({"name": "alder", "add_groups": "a b"}, "is no name of a group"),
        ({"name": "cedar", "notify": "never"}, "updatefrequency"),
    ],
)
def test_a_wrong_change_of_many_sites_is_refused(console: Served, values: dict[str, str], said: str) -> None:
    page = console.signed_in("steward").open("/console/sites").submit("Show the changes", values)
    assert page.status == 422
    assert said in page.text


def test_a_change_of_many_sites_that_stops_names_the_number_of_changed_sites(
    console: Served, harvester: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites, "_TOGETHER", 1)
    page = console.signed_in("steward").open("/console/sites")
    page = page.submit("Show the changes", {"name": ["alder", "birch"], "notify": "never"})
    harvester.rows("UPDATE harvest_site_schedule SET updatefrequency = NULL WHERE name = 'birch'")
    page = page.submit("Change 2 sites")
    assert page.status == 422
    assert "1 site was changed, and the others were not: " in page.text
    assert harvester.rows("SELECT name FROM harvest_site_schedule WHERE notify = 'never'") == [("alder",)]


@pytest.mark.parametrize("size", [100_000, 100_001])
def test_a_file_of_sites_that_is_shown_can_be_confirmed(
    console: Served, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    assert sites.IMPORT_BYTES > 20_000_000 * 4 / 3
    monkeypatch.setattr(sites, "_FILE_BYTES", 100_000)
    steward = console.signed_in("steward")
    exported = steward.open("/console/sites/export").content.replace(b"alder@example.org", b"anna@example.org")
    file = ("sites.csv", exported + b"\n" * (size - len(exported)))
    page = steward.open("/console/sites/import").submit("Show the changes", files={"file": file})
    if size > 100_000:
        assert (page.status, "The file is too large" in page.text) == (422, True)
    else:
        assert page.submit("Import").notice == "Imported: 0 new, 1 changed, 1 unchanged."


def test_the_file_of_all_sites_is_exported_changed_and_imported(console: Served, harvester: Harvester) -> None:
    steward = console.signed_in("steward")
    exported = steward.open("/console/sites/export").content.decode("utf-8-sig")
    assert exported.splitlines()[1].startswith("alder,")
    changed = exported.replace("alder@example.org", "anna@example.org").encode()
    page = steward.open("/console/sites/import")
    page = page.submit("Show the changes", files={"file": ("sites.csv", changed)})
    assert page.title == "Import 2 sites?"
    assert page.table() == [["alder", "contacts", "alder@example.org", "anna@example.org"]]
    assert harvester.rows("SELECT count(*) FROM harvest_site_schedule WHERE contact_email LIKE 'anna%'") == [(0,)]
    page = page.submit("Import")
    assert page.notice == "Imported: 0 new, 1 changed, 1 unchanged."
    assert harvester.rows("SELECT count(*) FROM harvest_site_schedule WHERE contact_email LIKE 'anna%'") == [(1,)]
    page = steward.open("/console/sites/import").submit("Show the changes", files={"file": ("x.csv", b"\x00\xff")})
    assert page.status == 422
    assert "Traceback" not in page.text


def test_an_import_keeps_the_login_of_a_url_and_says_if_a_new_url_has_none(
    console: Served, harvester: Harvester
) -> None:
    with_login = "https://me:secret@rowan.example.org/list.xml"
    harvester.add_site("rowan", with_login)
    steward = console.signed_in("steward")
    exported = steward.open("/console/sites/export").content
    assert b"secret" not in exported
    page = steward.open("/console/sites/import")
    page = page.submit("Show the changes", files={"file": ("sites.csv", exported)})
    assert "All sites of the file are registered with these values already." in page.text
    other = exported.replace(b"rowan.example.org/list.xml", b"rowan.example.org/new.xml")
    page = steward.open("/console/sites/import").submit("Show the changes", files={"file": ("sites.csv", other)})
    assert "rowan: The user name and password in its former address are not kept" in page.text


def test_a_form_that_was_cut_off_is_refused(console: Served) -> None:
    browser = console.signed_in("steward")
    csrf = dict(browser.open("/console/sites/import").form("Show the changes").form_values())["csrf"]
    for content in ("abc", "ä"):
        fields = {"csrf": csrf, "confirmed": "yes", "content": content}
        page = browser.request("POST", "/console/sites/import", data=fields)
        assert (page.status, "This form is not complete" in page.text) == (422, True)


def test_a_change_of_many_sites_that_is_refused_leads_back_to_the_list(console: Served) -> None:
    steward = console.signed_in("steward")
    token = steward.open("/console/sites").form("Show the changes").fields["csrf"]
    form = {"Referer": f"{console.url}/console/sites?state=due"}
    data = {"csrf": token, "name": "cedar", "notify": "never"}
    refused = steward.request("POST", "/console/sites/several", headers=form, data=data)
    assert refused.status == 422
    assert refused.follow("Open the page of the form").path == "/console/sites"
