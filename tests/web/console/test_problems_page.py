"""The pages of problems and of the year: the numbers of the commands, a rule, letters, the workbook."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import date
from email.utils import parseaddr
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from metaharvest.queries.figures import SITE_COLUMNS, year_figures
from metaharvest.services import tables
from support.console import Browser, Served, served_console
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer

DAYS = ("2050-11-20", "2050-11-21", "2050-11-23")
PERIOD = "from=2050-01-01&to=2050-12-31"
BY_RULE = "Open problems by rule"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harvester]:
    """Three nights: a.2 is repaired after three days, b.2 is never there, the list of fern is never there."""
    made = Harvester(tmp_path_factory.mktemp("problems"))
    with HttpServer() as server:
        server.serve("/a.2.1.xml", b"<eml>")
        made.add_site("alder", publish(server, "a.1.1", path="/alder.xml", also=[("a.2.1", server.url("/a.2.1.xml"))]))
        made.add_site("birch", publish(server, "b.1.1", path="/birch.xml", also=[("b.2.1", server.url("/gone.xml"))]))
        made.add_site("fern", server.url("/no-list.xml"))
        made.run(DAYS[0])
        made.run(DAYS[1])
        server.serve("/a.2.1.xml", eml("a.2.1"))
        made.run(DAYS[2])
        yield made
    made.close()


@pytest.fixture(scope="module")
def viewer(served: Served) -> Browser:
    return served.signed_in("viewer")


@pytest.fixture(scope="module")
def served(installed: Harvester) -> Iterator[Served]:
    with served_console(installed) as console:
        yield console


def test_problems_have_the_numbers_of_the_command(viewer: Browser, installed: Harvester) -> None:
    page = viewer.open("/console/problems")
    asked = json.loads(installed("problems", "--json").out)
    shown = {row[0].removeprefix(each["rule_title"]): row for row, each in zip(page.table(BY_RULE), asked, strict=True)}
    assert sorted(shown) == sorted(each["rule"] for each in asked)
    for each in asked:
        row = shown[each["rule"]]
        assert row[2] == f"{each['number_of_documents']:,}"
        assert row[3] == (each["site"] or str(each["number_of_sites"]))
        assert row[4] == each["first_seen"]
    [failed] = page.table("Sites whose last harvest failed")
    assert failed[:2] == ["fern", "2050-11-20"]
    assert viewer.open("/console/problems?sort=rule").status == 200


def test_the_table_is_that_of_the_command(viewer: Browser, installed: Harvester) -> None:
    page = viewer.open("/console/problems.csv")
    assert page.headers["content-disposition"] == 'attachment; filename="problems.csv"'
    assert page.content.decode() == installed("problems", "--csv").out


def test_a_rule_says_what_it_means_and_names_its_documents(viewer: Browser) -> None:
    page = viewer.open("/console/problems/http.status")
    assert "The usual cause" in page.text
    assert "`" not in viewer.open("/console/problems/eml.id-duplicate").text
    rows = page.table("Open problems of this rule")
    assert ["b.2", "birch"] in [row[:2] for row in rows]
    table = page.follow("Table (CSV)")
    assert ("birch", "b.2") in [
        (row["site"], row["document_id"]) for row in csv.DictReader(io.StringIO(table.content.decode("utf-8-sig")))
    ]
    assert viewer.open("/console/problems/no.rule").status == 404


def test_a_problem_has_the_number_of_harvests_that_found_it(viewer: Browser) -> None:
    """A site that is harvested each month has few harvests, and many nights in between."""
    [row] = [row for row in viewer.open("/console/problems/http.status").table() if row[0] == "b.2"]
    assert row[2:4] == [DAYS[0], "3"]
    assert f"{DAYS[0]}3 harvests" in viewer.open("/console/sites/birch").text


def test_the_table_of_a_rule_has_all_its_problems(viewer: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_PROBLEMS_AT_ONCE", 1)
    page = viewer.open("/console/problems/http.status")
    found = csv.DictReader(io.StringIO(page.follow("Table (CSV)").content.decode("utf-8-sig")))
    shown = page.table("Open problems of this rule")
    assert len(shown) > 1
    assert [row["site"] for row in found] == [row[1] for row in shown]


def test_a_letter_is_ready_for_the_contacts_of_each_site(viewer: Browser) -> None:
    page = viewer.open("/console/problems/http.status?site=birch").follow("Letters to the contacts")
    [area] = page.root.iter("textarea")
    assert "- b.2" in area.text
    assert "What to do:" in area.text
    assert "`metaharvest" not in area.text
    parts = urlsplit(page.links()["Open in the mail program for birch"])
    assert (parts.scheme, parseaddr(unquote(parts.path))[1]) == ("mailto", "birch@example.org")
    assert parse_qs(parts.query)["body"][0].replace("\r\n", "\n").strip() == area.text.strip()


def test_the_year_has_the_numbers_of_the_command(served: Served, installed: Harvester) -> None:
    [asked] = json.loads(installed("figures", "--from", "2050-01-01", "--to", "2050-12-31", "--json").out)
    with served.harvester.reading() as session:
        found = year_figures(session, date(2050, 1, 1), date(2050, 12, 31))
    names = ("number_of_runs", "number_of_sites", "harvests", "failed_harvests", "inserted", "updated", "deleted")
    assert {name: getattr(found, name) for name in names} == {name: asked[name] for name in names}
    by_site = json.loads(
        installed("figures", "--from", "2050-01-01", "--to", "2050-12-31", "--per", "site", "--json").out
    )
    assert [
        (each.site, each.harvests, str(each.last_success) if each.last_success else None) for each in found.sites
    ] == [(each["site"], each["harvests"], each["last_success"]) for each in by_site]
    assert (found.days_until_fixed, found.most_days_until_fixed, found.fixed) == (3.0, 3, 1)
    assert found.silent == ("fern",)


def test_the_year_is_a_page(viewer: Browser) -> None:
    page = viewer.open(f"/console/year?{PERIOD}")
    assert page.title == "2050-01-01 to 2050-12-31"
    assert [row[0] for row in page.table("Sites in this time")] == ["alder", "birch", "fern"]
    assert "half of them within 3 days, the last one after 3 days" in page.text
    assert "1 site that is switched on had no harvest that succeeded: fern" in page.text
    for query, status in (("from=2050-02-01&to=2050-01-01", 422), ("from=nonsense", 422), ("to=99999-01-01", 422)):
        wrong = viewer.open(f"/console/year?{query}")
        assert wrong.status == status
        assert wrong.root.get_element_by_id(f"field-{query.partition('=')[0]}").get("aria-invalid") == "true"
    empty = viewer.open("/console/year?from=2001-01-01&to=2001-12-31")
    assert "No site was harvested from 2001-01-01 to 2001-12-31." in empty.text


def test_everything_is_in_one_workbook(viewer: Browser) -> None:
    page = viewer.open(f"/console/year.xlsx?{PERIOD}")
    assert page.status == 200
    assert page.content.startswith(b"PK")
    assert page.headers["content-disposition"] == 'attachment; filename="harvest-2050-01-01-2050-12-31.xlsx"'


def test_the_command_has_the_numbers_of_the_page(viewer: Browser, installed: Harvester) -> None:
    period = ("--from", "2050-01-01", "--to", "2050-12-31")
    found = json.loads(installed("year", *period, "--json").out)
    page = viewer.open(f"/console/year?{PERIOD}")
    assert (found["number_of_runs"], found["harvests"], found["failed_harvests"]) == (3, 9, 3)
    assert f"{found['went_well']} ({found['share_well'] * 100:.1f} %)" in page.text
    assert found["silent"] == ["fern"]
    rows = list(csv.reader(io.StringIO(installed("year", *period, "--csv").out.removeprefix("\ufeff"))))
    assert tuple(rows[0]) == SITE_COLUMNS
    assert [row[0] for row in rows[1:]] == [each["site"] for each in found["sites"]] == ["alder", "birch", "fern"]
    said = installed("year", *period).out
    assert f"{found['went_well']} ({found['share_well'] * 100:.1f} %)" in said
    assert "fern" in said
    assert installed("year", "--from", "2050-02-01", "--to", "2050-01-01").code == 2
