"""Pages in Chromium with odd texts: long names without spaces, titles from right to left, markup in titles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from metaharvest.services import accounts
from support.chromium import NARROW, WIDE, Reader, chromium
from support.console import Served, served_console
from support.harvester import Harvester, eml, harvest_list
from support.http_server import HttpServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

LONG = "N" * 100
HEBREW = "כותרת בעברית (כאלה)!"
CONTACT = "a" * 60 + "@" + "b" * 60 + ".example.org"
PAGES = (
    *("tonight", "sites", "runs/1", "jobs", "documents", "log?run=1", "problems", "problems/xml.ampersand", "year"),
    *("outbox", "decisions", "list", f"sites/{LONG}", f"sites/{LONG}/history", "sites/odd/problems", "my/odd"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    harvester = Harvester(tmp_path_factory.mktemp("odd"))
    with HttpServer() as server:
        titles = ["_".join(["Title"] * 60), HEBREW, "&lt;script&gt;alert(1)&lt;/script&gt;"]
        documents = {
            f"{'s' * 60}.{number}.1": eml(f"{'s' * 60}.{number}.1", each) for number, each in enumerate(titles)
        }
        documents["odd.1.1"] = eml("odd.1.1", "Sand & gravel")
        for docid, content in documents.items():
            server.serve(f"/{docid}.xml", content)
        entries = [(docid, server.url(f"/{docid}.xml")) for docid in documents]
        entries.append(("odd.2.1", server.url(f"/{'missing' * 40}.xml")))
        server.serve("/list.xml", harvest_list(entries))
        harvester.add_site("odd", server.url("/list.xml"), contact_email=CONTACT)
        harvester.add_site(LONG, server.url(f"/{'x' * 200}.xml"), contact_email=CONTACT)
        server.serve("/bad.xml", harvest_list([("a.1.1", "x")]).replace(b"<scope>a</scope>", b""))
        harvester.add_site("bad", server.url("/bad.xml"))
        harvester.run("2026-11-20")
        for group in ("g" * 60, "rivers", "lakes"):
            assert harvester("sites", "edit", LONG, "--add-to-group", group).code == 0
    with served_console(harvester) as served:
        served.signed_in("operator")
        yield served
    harvester.close()


@pytest.fixture(scope="module")
def operator(console: Served, browser: Browser) -> Iterator[Reader]:
    reader = Reader(browser, console.url)
    reader.sign_in(accounts.new_link(console.harvester, "operator@example.org"))
    yield reader
    reader.close()


def test_no_page_scrolls_sideways_for_a_long_name(operator: Reader) -> None:
    wide = []
    for page in PAGES:
        for size in (WIDE, NARROW):
            operator.page.set_viewport_size(size)
            assert operator.open(f"/console/{page}") == 200, page
            wide += [f"{page} {size['width']}"] if operator.is_wider_than_its_window() else []
    assert wide == []
    assert operator.troubles == []


def test_the_groups_of_a_site_are_large_enough_for_a_finger(operator: Reader) -> None:
    operator.open("/console/sites")
    lowest = "links => Math.min(...links.map(link => link.getBoundingClientRect().height))"
    assert operator.page.locator("a.tag").evaluate_all(lowest) >= 24


def test_a_cell_takes_the_whole_width_of_a_narrow_window(operator: Reader) -> None:
    operator.page.set_viewport_size({"width": 500, "height": 800})
    operator.open("/console/sites/odd/problems")
    widest = "cells => Math.max(...cells.map(cell => cell.getBoundingClientRect().width))"
    assert operator.page.locator(".scroll tbody td, .scroll tbody th").evaluate_all(widest) > 400


def test_code_in_a_message_has_no_backticks(operator: Reader) -> None:
    for page in (
        "tonight",
        "runs/1",
        "problems",
        "problems/list.missing",
        "log?run=1",
        "sites/bad",
        "sites/bad/problems",
    ):
        operator.open(f"/console/{page}")
        assert "`" not in operator.text, page


def test_a_title_from_right_to_left_keeps_its_order(operator: Reader, console: Served) -> None:
    document = "s" * 60 + ".1"
    for page in ("/console/documents", f"/console/documents/{document}", f"/documents/{document}"):
        operator.open(page)
        title = operator.page.get_by_text(HEBREW).locator("visible=true").first
        style = title.evaluate("each => [getComputedStyle(each).direction, getComputedStyle(each).textAlign]")
        assert style == ["rtl", "left"], page


def test_the_title_of_a_rule_has_its_code_without_backticks(operator: Reader) -> None:
    for page in ("tonight", "problems", "problems/xml.ampersand", "year"):
        operator.open(f"/console/{page}")
        assert "& is not written as &amp;" in operator.text, page
        assert "`" not in operator.text + operator.page.title(), page
    operator.open("/console/problems/xml.ampersand/letters")
    assert operator.page.locator("h1").inner_text() == "Letters: & is not written as &amp;"
    for page in ("sites/odd", "my/odd", "documents/odd.1"):
        operator.open(f"/console/{page}")
        words = operator.page.get_by_text("is not written as").first.inner_text()
        assert "& is not written as &amp;" in words, page


def test_a_site_that_never_succeeded_shows_how_its_last_harvest_ended(console: Served, browser: Browser) -> None:
    contact = Reader(browser, console.url)
    contact.sign_in(accounts.new_link(console.harvester, CONTACT))
    for page in ("my-sites", f"my/{LONG}"):
        contact.open(f"/console/{page}")
        assert "list not read last success: none yet" in contact.text, page
    contact.close()


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "America/Argentina/Buenos_Aires"])
def test_a_time_with_its_zone_stays_in_its_cell(operator: Reader, zone: str) -> None:
    write = "(times, zone) => times.forEach(time => { time.textContent = `2026-11-20 04:30 ${zone}` })"
    outside = "time => time.getBoundingClientRect().right > time.closest('td').getBoundingClientRect().right"
    operator.page.set_viewport_size(WIDE)
    for page in ("log?run=1", "outbox", "sessions", "users"):
        operator.open(f"/console/{page}")
        times = operator.page.locator("td time")
        assert times.count(), page
        times.evaluate_all(write, zone)
        assert times.evaluate_all(f"times => times.filter({outside}).length") == 0, page
