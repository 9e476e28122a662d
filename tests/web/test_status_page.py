"""The public harvest log as people see it, behind a real server."""

from __future__ import annotations

from lxml import html
from sqlalchemy.orm import Session

from support.databases import on_one_database
from support.harvester import Harvester
from support.journal_rows import TODAY, JournalRows
from support.provider import Served, document, served, store

REASON = "https://user:word@alder.example.org/secret cannot be read: ask keeper@alder.example.org"


def page(harvester: Harvester, **options: object) -> tuple[str, html.HtmlElement]:
    with served(harvester, **options) as server:
        status, headers, content = Served(server.base_url.removesuffix("/oai")).get("/status")
        assert status == 200
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'self';")
        return content.decode(), html.fromstring(content.decode())


def lines_of(root: html.HtmlElement) -> list[str]:
    return [" ".join(each.text_content().split()) for each in root.findall(".//dl/*")]


def test_the_log_of_sites_without_reasons_and_people(harvester: Harvester) -> None:
    with Session(harvester.engine) as session, session.begin():
        rows = JournalRows(session)
        run = rows.run()
        for name, status in (("<b>alder", "list-failed"), ("birch", "succeeded"), ("secret", "succeeded")):
            rows.site_run(run, rows.site(name, contact="keeper@alder.example.org"), status, failure_reason=REASON)
    store(harvester, *(document(f"birch.{number}", b"<x/>", site=2) for number in range(3)))
    text, root = page(harvester, hidden=["secret"])
    assert lines_of(root) == [
        "<b>alder",
        f"failing since {TODAY}; 0 documents",
        "birch",
        f"well since {TODAY}; last harvest {TODAY}; 3 documents",
    ]
    assert "went well: 1 of 2." in " ".join(text.split())
    for hidden in ("@", "word", "secret", "<b>"):
        assert hidden not in text
    assert not root.findall(".//script")


@on_one_database
def test_the_log_without_a_site(harvester: Harvester) -> None:
    _, root = page(harvester)
    assert "No site is registered yet." in root.text_content()
    assert lines_of(root) == []


@on_one_database
def test_the_documents_are_not_counted_for_each_reader(harvester: Harvester) -> None:
    with Session(harvester.engine) as session, session.begin():
        JournalRows(session).site("alder")
    with served(harvester) as server:
        pages = Served(server.base_url.removesuffix("/oai"))
        first = pages.get("/status")
        store(harvester, document("alder.1", b"<x/>"))
        assert pages.get("/status")[2] == first[2]
        assert b"0 documents" in first[2]
