"""Every link and every form of the console that asks for something opens, whatever sites and documents are called."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, urldefrag, urlencode, urljoin, urlsplit

import pytest

from metaharvest.web.console.access import PAGES
from metaharvest.web.console.dispatch import found_page
from metaharvest.web.console.rights import Page as Path
from support.console import Page, Served, served_console
from support.harvester import Harvester, eml, harvest_list
from support.http_server import HttpServer
from support.oai_server import OaiServer

pytestmark = pytest.mark.slow

SITES = ("add", "..", "a/b", "50 % of", "<b>Zürich</b> ?x#y:z", "~add")
ITEMS = ("oai:example.org:a/b", "oai:example.org:x?y=1&z", "oai:example.org:#1", "oai:example.org:50%25")
MOST_OF_A_PAGE = 2
"""Addresses of one page that are opened: a table of many rows has one kind of link."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Three nights at sites of strange names: a good document, a broken one, one that cannot be fetched."""
    made = Harvester(tmp_path_factory.mktemp("links"))
    with HttpServer() as server, OaiServer(records=0) as repository:
        for item in ITEMS:
            repository.put(item)
        server.serve("/bad.xml", b"<eml>")
        for number, name in enumerate(SITES):
            server.serve(f"/{number}.xml", eml(f"s{number}.1.1"))
            entries = [(f"s{number}.1.1", server.url(f"/{number}.xml")), (f"s{number}.2.1", server.url("/bad.xml"))]
            server.serve(f"/list-{number}.xml", harvest_list(entries))
            made.add_site(name, server.url(f"/list-{number}.xml"), contact_email="anna@example.org")
        made.add_site("gone", server.url("/gone.xml"))
        said = made("sites", "add", "repo", "--oai", repository.base_url, "--contact", "anna@example.org")
        assert said.code == 0, said.err
        for day in ("2050-11-20", "2050-11-21"):
            made.run(day)
        assert made("sites", "edit", "..", "--every", "2").code == 0
        assert made("sites", "harvest", "a/b").code == 0
        assert made("sites", "remove", "~add", "--yes").code == 0
        with served_console(made) as console:
            yield console
    made.close()


def addresses(page: Page) -> Iterator[str]:
    """The addresses of links, of fragments, and of forms that ask: each as it is, and with each choice."""
    for each in page.root.iter("a", "link", "script"):
        yield each.get("href") or each.get("src") or ""
    for each in page.root.xpath("//*[@hx-get]"):
        yield each.get("hx-get")
    for form in page.root.forms:
        if (form.get("method") or "get").lower() != "get":
            continue
        action, pairs = form.get("action") or page.path, form.form_values()
        if action.endswith("/changes") and not pairs:
            continue  # two boxes of runs have to be ticked first
        yield f"{action}?{urlencode(pairs)}"
        for select in form.iter("select"):
            for option in select.value_options:
                others = [(name, value) for name, value in pairs if name != select.name]
                yield f"{action}?{urlencode([*others, (select.name, option)])}"


@pytest.mark.parametrize("role", ["operator", "contact"])
def test_every_link_opens(served: Served, role: str) -> None:
    browser = served.signed_in_as("anna@example.org") if role == "contact" else served.signed_in(role)
    start = f"{served.url}/console/"
    waiting, known, wrong = [(start, "")], {start}, []
    opened = dict[tuple[Path | None, tuple[str, ...]], int]()
    while waiting:
        address, origin = waiting.pop(0)
        page = browser.open(address)
        if page.status >= 400:
            wrong.append((page.status, address.removeprefix(served.url), origin.removeprefix(served.url), page.title))
        if not page.content.strip() or not page.headers.get("content-type", "").startswith("text/html"):
            continue  # a table, or a fragment with nothing to say
        for each in addresses(page):
            following = urldefrag(urljoin(page.url, each)).url
            parts = urlsplit(following)
            if not following.startswith(f"{served.url}/console") or following in known:
                continue
            known.add(following)
            kind = (found_page(PAGES, "GET", parts.path)[0], tuple(name for name, _ in parse_qsl(parts.query)))
            opened[kind] = opened.get(kind, 0) + 1
            if opened[kind] <= MOST_OF_A_PAGE:
                waiting.append((following, page.url))
    assert wrong == []
    paths = {page.path for page, _ in opened if page}
    assert len(paths) > (8 if role == "contact" else 40), sorted(paths)
