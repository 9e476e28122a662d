"""Landing pages as people, crawlers and programs see them, behind a real server."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from unittest.mock import Mock
from urllib.parse import quote

import pytest
from lxml import etree, html
from sqlalchemy.orm import Session

from metaharvest.catalogue import resources
from metaharvest.catalogue.selection import Hidden
from metaharvest.web.pages import file_cache
from metaharvest.web.provider.provider import Provider
from metaharvest.web.turns import Busy
from support.databases import on_one_database
from support.harvester import Harvester
from support.provider import Served, dc, delete, document, record, served, store

HOSTILE = """\
<eml:eml xmlns:eml="eml://ecoinformatics.org/eml-2.1.1" packageId="alder.1.1"><dataset>
<title>Frogs &lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; \u202etoads</title>
<creator><individualName><givenName>Ann</givenName><surName>Alder</surName></individualName></creator>
<pubDate>2026</pubDate><abstract><para>Counts of &lt;b&gt;frogs.</para></abstract>
<distribution><online><url>javascript:alert(1)</url></online></distribution>
<intellectualRights><para>https://creativecommons.org/licenses/by/4.0/</para></intellectualRights>
</dataset></eml:eml>"""
DATACITE = "http://datacite.org/schema/kernel-4"
IN_DATACITE = (
    f'<resource xmlns="{DATACITE}"><identifier>10.1234/toads</identifier>'
    "<titles><title>Toads</title></titles></resource>"
)
TOADS = record("oai:frogs.org:2", dc("Toads"), site=2)
GONE = record("oai:frogs.org:3", dc("Gone"), site=2)


@pytest.fixture
def filled(harvester: Harvester) -> Harvester:
    """A document with two revisions, a record in two formats, a deleted one, one of a site to hide."""
    for name in ("alder-creek", "frogs", "secret"):
        harvester.add_site(name, f"https://{name}.example.org/list.xml")
    in_datacite = record("oai:frogs.org:2", IN_DATACITE.encode(), prefix="datacite", kind=DATACITE, site=2)
    store(harvester, document("alder.1", b"<first/>", site=3), TOADS, GONE, document("hidden.1", b"<x/>", site=3))
    moved = document("alder.1", HOSTILE.encode(), revision=2)
    store(harvester, replace(moved, same_origin=frozenset({1, 3})), in_datacite)
    delete(harvester, GONE)
    return harvester


class Browser:
    """A client of the pages."""

    def __init__(self, served: Served) -> None:
        self.root = served.base_url.removesuffix("/oai")

    def get(self, path: str) -> tuple[int, Mapping[str, str], bytes]:
        return Served(self.root).get(path)

    def page(self, path: str, status: int = 200) -> html.HtmlElement:
        code, headers, content = self.get(path)
        assert code == status, content
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'self';")
        return html.fromstring(content.decode())


@pytest.fixture
def browser(filled: Harvester) -> Iterator[Browser]:
    with served(filled, hidden=["secret"]) as each:
        yield Browser(each)


def test_the_page_of_a_document(browser: Browser) -> None:
    page = browser.page("/documents/alder.1")
    title = "Frogs </script><script>alert(1)</script> & \ufffdtoads"
    assert page.findtext(".//h1") == title
    text = page.text_content()
    for part in ("Alder, Ann", "Counts of <b>frogs.", "alder-creek", f"Alder, Ann (2026): {title}. {browser.root}"):
        assert part in text
    [data] = page.xpath("//script")
    assert data.get("type") == "application/ld+json"
    assert json.loads(data.text or "")["name"] == title
    addresses = page.xpath("//a/@href")
    assert "../xml/alder.1" in addresses
    assert "https://creativecommons.org/licenses/by/4.0/" in addresses
    assert not [each for each in addresses if each.startswith("javascript")]


def test_it_needs_no_script_and_no_style_in_the_page(browser: Browser) -> None:
    page = browser.page("/documents/alder.1")
    assert page.xpath("//style | //@style | //@*[starts-with(name(), 'on')]") == []
    [style] = page.xpath("//link[@rel='stylesheet']/@href")
    assert style == "../pages.css"
    status, headers, _ = browser.get("/pages.css")
    assert (status, headers["content-type"]) == (200, "text/css; charset=utf-8")


def test_links_for_programs(browser: Browser) -> None:
    _, headers, _ = browser.get("/documents/frogs/datacite/oai:frogs.org:2")
    assert headers["link"].split(", ") == [
        '<https://doi.org/10.1234/toads>; rel="cite-as"',
        '<https://schema.org/AboutPage>; rel="type"',
        '<https://schema.org/Dataset>; rel="type"',
        f'<{browser.root}/xml/frogs/datacite/oai:frogs.org:2>; rel="describedby"; type="application/xml"; '
        f'profile="{DATACITE}"',
        f'<{browser.root}/xml/frogs/oai_dc/oai:frogs.org:2>; rel="describedby"; type="application/xml"; '
        'profile="http://www.openarchives.org/OAI/2.0/oai_dc/"',
        f'<{browser.root}/resourcesync/capabilitylist.xml>; rel="resourcesync"',
    ]


def test_a_record_names_its_source_and_its_other_formats(browser: Browser) -> None:
    page = browser.page("/documents/frogs/oai_dc/oai:frogs.org:2")
    assert "https://frogs.example.org/oai" in page.xpath("//a/@href")
    assert "../../../documents/frogs/datacite/oai:frogs.org:2" in page.xpath("//a/@href")
    assert "2026-11-19" in page.text_content()


def test_the_record_as_xml_is_a_file(browser: Browser) -> None:
    status, headers, content = browser.get("/xml/alder.1")
    assert (status, content) == (200, HOSTILE.encode())
    assert headers["content-type"] == "application/xml"
    assert headers["content-disposition"] == 'attachment; filename="alder.1.xml"'
    assert "sandbox" in headers["content-security-policy"]
    assert headers["link"].startswith(f'<{browser.root}/documents/alder.1>; rel="describes"; type="text/html", ')
    assert browser.get("/xml/alder.1?revision=2")[2] == content


def test_a_revision_that_is_not_there(browser: Browser) -> None:
    for revision in ("0", "3", "x", "9" * 5000, ""):
        assert browser.get(f"/xml/alder.1?revision={revision}")[0] == 404


def test_the_start_page(browser: Browser) -> None:
    page = browser.page("/")
    assert "This repository has 3 metadata documents." in page.text_content()
    addresses = page.xpath("//main//a/@href")
    assert addresses == ["./status", "./oai", "./resourcesync/capabilitylist.xml", "./sitemap.xml"]
    for address in addresses:
        assert browser.get(address.removeprefix("."))[0] == 200
    for path in ("/documents/alder.1", "/status"):
        assert {"oai", "status", ""} <= {
            each.replace("../", "./").removeprefix("./") for each in browser.page(path).xpath("//a/@href")
        }


def test_what_was_withdrawn_is_gone(browser: Browser) -> None:
    page = browser.page("/documents/frogs/oai_dc/oai:frogs.org:3", 410)
    assert page.findtext(".//h1") == "This document was withdrawn."
    assert "Gone" not in page.text_content()
    assert browser.get("/xml/frogs/oai_dc/oai:frogs.org:3")[0] == 410


def test_what_is_not_there_or_not_public(browser: Browser) -> None:
    for document_id in ("alder.2", "hidden.1", "", "a%00b", "%ff", "alder.1%20", "%F0%9F%90%B8", "x" * 3000):
        page = browser.page(f"/documents/{document_id}", 404)
        assert page.findtext(".//h1") == "There is no document at this address."
        assert browser.get(f"/xml/{document_id}")[0] == 404


def test_a_revision_of_a_hidden_site_is_not_public(browser: Browser, filled: Harvester) -> None:
    assert browser.get("/xml/alder.1?revision=1")[0] == 404
    assert "revision=1" not in "".join(browser.page("/documents/alder.1").xpath("//a/@href"))
    with served(filled) as everything:
        assert Browser(everything).get("/xml/alder.1?revision=1")[2] == b"<first/>"


def test_sitemaps_lead_to_every_page(browser: Browser) -> None:
    robots = browser.get("/robots.txt")[2].decode()
    assert f"\nSitemap: {browser.root}/sitemap.xml\n" in robots
    index = etree.fromstring(browser.get("/sitemap.xml")[2])
    found = []
    for part in _locations(index):
        urls = etree.fromstring(browser.get(part.removeprefix(browser.root))[2])
        assert len(list(urls.iter("{*}lastmod"))) == len(_locations(urls))
        found += _locations(urls)
    ids = ("alder.1", "frogs/oai_dc/oai:frogs.org:2", "frogs/datacite/oai:frogs.org:2")
    assert sorted(found) == sorted(f"{browser.root}/documents/{each}" for each in ids)
    for url in found:
        browser.page(url.removeprefix(browser.root))


@on_one_database
def test_a_sitemap_is_kept_for_a_short_time_in_gzip(
    browser: Browser, filled: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, headers, packed = Served(browser.root).get("/sitemap/0.xml", Accept_Encoding="gzip")
    assert headers["content-encoding"] == "gzip"
    first = browser.get("/sitemap/0.xml")[2]
    assert gzip.decompress(packed) == first
    store(filled, document("new.1", b"<x/>"))
    assert browser.get("/sitemap/0.xml")[2] == first
    now = monotonic()
    monkeypatch.setattr(file_cache, "monotonic", lambda: now + 121)
    assert b"/documents/new.1" in browser.get("/sitemap/0.xml")[2]


@on_one_database
@pytest.mark.parametrize("after", ["9" * 5000, "-1", "\u0661", "x"])
def test_a_sitemap_that_is_not_there(browser: Browser, after: str) -> None:
    browser.page(f"/sitemap/{quote(after)}.xml", 404)


def _locations(root: etree._Element) -> list[str]:
    return [each.text or "" for each in root.iter("{*}loc")]


def test_parts_of_a_sitemap(filled: Harvester) -> None:
    with Session(filled.engine) as session:
        found = resources.parts(session, Hidden(), 3)
        documents = [resources.documents_after(session, Hidden(), each.after, 3) for each in found]
        assert [len(each) for each in documents] == [3, 1]
        assert [each.changed_at for each in found] == [max(at for _, at in each) for each in documents]
        assert len(resources.parts(session, Hidden(), 4)) == 1
        assert resources.parts(session, Hidden((1, 2, 3)), 4) == []


@on_one_database
def test_a_database_that_cannot_be_read(filled: Harvester, caplog: pytest.LogCaptureFixture) -> None:
    with served(filled) as each:
        browser = Browser(each)
        with filled.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE catalogue_document RENAME TO lost")
        assert "cannot be read at this moment" in browser.page("/documents/alder.1", 503).text_content()
        assert browser.get("/sitemap.xml")[1]["retry-after"] == "60"
    assert "A page was not answered" in caplog.text


@on_one_database
def test_many_documents_at_once_are_put_off(filled: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Provider, "turn", Mock(side_effect=Busy))
    with served(filled) as each:
        browser = Browser(each)
        for path in ("/documents/alder.1", "/xml/alder.1", "/sitemap.xml", "/sitemap/0.xml"):
            assert "Please try again" in browser.page(path, 503).text_content()
            assert browser.get(path)[1]["retry-after"] == "5"
        assert browser.get("/status")[0] == 200


@on_one_database
def test_a_document_that_is_not_read_has_its_title_of_the_catalogue(harvester: Harvester) -> None:
    large = b"<x><title>Frogs</title>" + b" " * 10_000_000 + b"</x>"
    with_dtd = b'<!DOCTYPE x [<!ENTITY e "Frogs">]><x><title>&e;</title></x>'
    store(harvester, document("large.1", large), document("dtd.1", with_dtd))
    with served(harvester) as each:
        for document_id, content in {"large.1": large, "dtd.1": with_dtd}.items():
            assert Browser(each).page(f"/documents/{document_id}").findtext(".//h1") == "A title"
            assert Browser(each).get(f"/xml/{document_id}")[2] == content


@pytest.mark.slow
@on_one_database
def test_a_browser_shows_the_page_on_a_phone_and_obeys_its_policy(browser: Browser, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not there: apt-get install chromium")
    quiet = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    quiet += " --disable-component-update --disable-sync --enable-logging=stderr --virtual-time-budget=5000 --dump-dom"

    def dumped(url: str) -> tuple[str, str]:
        command = [chromium, *quiet.split(), f"--user-data-dir={tmp_path / 'profile'}", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
        return done.stdout, done.stderr

    shown, log = dumped(f"{browser.root}/documents/alder.1")
    assert "Frogs" in shown
    assert "Content Security Policy" not in log
    (tmp_path / "pages.css").write_bytes(browser.get("/pages.css")[2])
    page = browser.get("/documents/alder.1")[2].decode().replace("../pages.css", "pages.css")
    measure = '<script>parent.postMessage(document.documentElement.scrollWidth, "*")</script></body>'
    (tmp_path / "page.html").write_text(page.replace("</body>", measure).replace("alder.1", "alder-" * 60), "utf-8")
    listen = 'addEventListener("message", event => document.body.setAttribute("data-width", event.data))'
    frame = '<iframe src="page.html" width="380" height="3000" style="border: 0"></iframe>'
    (tmp_path / "frames.html").write_text(f"<!DOCTYPE html><body><script>{listen}</script>{frame}</body>")
    assert re.search(r'data-width="(\d+)"', dumped((tmp_path / "frames.html").as_uri())[0])[1] == "380"  # type: ignore[index]
