"""The page that adds sites: an address is asked first, or repositories are chosen from a registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.console import Page, Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.oai_server import OaiServer

pytestmark = on_one_database

ADD = "/console/sites/add"


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    with served_console(harvester) as made:
        yield made


@pytest.fixture
def repository() -> Iterator[OaiServer]:
    with OaiServer(records=2) as made:
        yield made


def asked(console: Served, url: str, kind: str = "find out") -> Page:
    return console.signed_in("steward").open(ADD).submit("Ask the source", {"url": url, "kind": kind})


def test_a_repository_is_asked_and_registered_with_its_own_values(
    console: Served, harvester: Harvester, repository: OaiServer
) -> None:
    page = asked(console, repository.base_url)
    assert "An OAI-PMH repository" in page.text
    form = page.form("Register")
    given = dict(form.form_values())
    assert (given["prefix"], given["kind"]) == ("oai_dc", "oai-pmh")
    assert "@" in given["contacts"]
    assert harvester.rows("SELECT count(*) FROM harvest_site_schedule") == [(0,)]
    page = page.submit("Register", {"name": "frogs", "groups": "north", "every": "2"})
    assert page.path == "/console/sites/frogs"
    assert page.notice.startswith("Registered frogs. Its next harvest is due")
    columns = "source_kind, updatefrequency, enabled"
    assert harvester.rows(f"SELECT {columns} FROM harvest_site_schedule") == [("oai-pmh", 2, 1)]
    page = asked(console, repository.base_url)
    assert "This address is registered already: frogs." in page.text


def test_a_list_is_checked_and_registered(console: Served, harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))])
    page = asked(console, url)
    assert "A harvest list" in page.text
    assert "a.2.1" in page.table("What it found")[0][0]
    page = page.submit("Register", {"name": "alder", "contacts": "a@example.org"})
    assert page.path == "/console/sites/alder"
    assert harvester.rows("SELECT documentlisturl, source_kind FROM harvest_site_schedule") == [(url, "harvest-list")]
    page = asked(console, url).submit("Register", {"name": "alder 2", "contacts": "a@example.org"})
    assert page.status == 422
    assert "The site 'alder' harvests this list already" in page.text
    assert dict(page.form("Register").form_values())["name"] == "alder 2"
    page = page.submit("Register", {"allow_duplicate": "yes"})
    assert page.path == "/console/sites/alder%202"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": ""}, "name"),
        ({"contacts": ""}, "Contacts: give at least one address"),
        ({"contacts": "nobody"}, "is not an email address"),
        ({"every": "x"}, "Harvest every: 'x' is not a number from 1 to 99."),
        ({"next_harvest": "2001-01-01"}, "2001-01-01 is past"),
        ({"groups": "a b"}, "is no name of a group"),
    ],
)
def test_a_wrong_value_is_said_and_the_form_keeps_the_others(
    console: Served, harvester: Harvester, server: HttpServer, values: dict[str, str], said: str
) -> None:
    page = asked(console, publish(server, "a.1.1"), "harvest-list")
    page = page.submit("Register", {"name": "alder", "contacts": "a@example.org", **values})
    assert page.status == 422
    assert said in page.text
    assert "a@example.org" in dict(page.form("Register").form_values())["contacts"] or "contacts" in values
    assert harvester.rows("SELECT count(*) FROM harvest_site_schedule") == [(0,)]


def test_an_address_that_cannot_be_used_is_said(console: Served, server: HttpServer) -> None:
    assert "Only http and https addresses" in asked(console, "ftp://example.org/list.xml").text
    page = asked(console, server.url("/none.xml"))
    assert page.status == 200
    assert "The list cannot be read." in page.text
    server.serve("/eml.xml", b"<eml/>")
    page = asked(console, server.url("/eml.xml"), "oai-pmh")
    assert "Register it without asking it again" in page.text


def test_repositories_are_chosen_from_a_file(console: Served, harvester: Harvester) -> None:
    urls = b"https://frogs.example.org/oai\nhttps://toads.example.org/oai\nnonsense\n"
    steward = console.signed_in("steward")
    page = steward.open(ADD).submit("Show the repositories", files={"file": ("urls.txt", urls)})
    assert [row[1:] for row in page.table()] == [
        ["https://frogs.example.org/oai", "not yet"],
        ["https://toads.example.org/oai", "not yet"],
    ]
    assert "'nonsense' is left out" in page.text
    assert "No repository is chosen" in page.submit("Register the chosen repositories, switched off").text
    page = page.submit("Register the chosen repositories, switched off", {"url": ["https://toads.example.org/oai"]})
    assert page.path == "/console/sites?state=off"
    rows = harvester.rows("SELECT name, enabled, contact_email FROM harvest_site_schedule")
    assert rows == [("toads.example.org-oai", 0, "steward@example.org")]
    page = steward.open(ADD).submit("Show the repositories", files={"file": ("urls.txt", urls)})
    assert page.table()[1][2] == "toads.example.org-oai"


def test_friends_of_a_repository_are_shown(console: Served, repository: OaiServer) -> None:
    page = console.signed_in("steward").open(ADD).submit("Show the repositories", {"friends_of": repository.base_url})
    assert page.status == 422
    assert "No repository is named there." in page.text
