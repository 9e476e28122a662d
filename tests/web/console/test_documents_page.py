"""The pages of documents: found by any name, why one is or is not in the target, its records, its withdrawal."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from support.console import Browser, Page, Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer
from support.oai_server import OaiServer

DAYS = ("2050-11-20", "2050-11-21")
HOSTILE = "&lt;script&gt;alert(1)&lt;/script&gt; and &lt;b&gt;rain&lt;/b&gt;"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harvester]:
    """alder: a.1 with two revisions, a.2 not valid, a.3 with a hostile title; birch: b.1, and a list with a missing."""
    made = Harvester(tmp_path_factory.mktemp("documents"))
    with HttpServer() as server:
        server.serve("/bad.xml", b"<eml>\n<dataset>\n</eml>")
        server.serve("/hostile.xml", eml("a.3.1", HOSTILE))
        also = [("a.2.1", server.url("/bad.xml")), ("a.3.1", server.url("/hostile.xml"))]
        made.add_site("alder", publish(server, "a.1.1", path="/alder.xml", also=also))
        made.add_site("birch", publish(server, "b.1.1", path="/birch.xml", also=[("b.2.1", server.url("/gone.xml"))]))
        made.run(DAYS[0])
        server.serve("/a.1.2.xml", eml("a.1.2", "Water chemistry"))
        publish(server, path="/alder.xml", also=[("a.1.2", server.url("/a.1.2.xml")), *also])
        made.run(DAYS[1])
        yield made
    made.close()


@pytest.fixture(scope="module")
def viewer(served: Served) -> Browser:
    return served.signed_in("viewer")


@pytest.fixture(scope="module")
def served(installed: Harvester) -> Iterator[Served]:
    with served_console(installed) as console:
        yield console


def names(page: Page) -> list[str]:
    """The last word of each document in the table: its docid."""
    return [row[0].split()[-1] for row in page.table("Documents")] if page.root.findall(".//table") else []


def test_all_documents_are_listed_with_their_outcome_in_the_words_of_the_mails(viewer: Browser) -> None:
    page = viewer.open("/console/documents")
    rows = {row[0].split()[-1]: row for row in page.table("Documents")}
    assert sorted(rows) == ["a.1.2", "a.2.1", "a.3.1", "b.1.1", "b.2.1"]
    assert rows["a.1.2"][1:3] == ["alder", "✓ updated"]
    assert rows["a.2.1"][1:4] == ["alder", "✕ not valid", "2050-11-20 (2 nights)"]
    assert "xml.mismatched-tag" in rows["a.2.1"][4]
    assert rows["b.2.1"][2] == "✕ not fetched"


def test_the_documents_of_the_filters_are_the_table_of_the_command(viewer: Browser, installed: Harvester) -> None:
    table = viewer.open("/console/documents?failing=yes&site=alder").follow("All of these documents as a table (CSV)")
    said = installed("documents", "--failing", "--site", "alder", "--csv").out
    assert list(csv.reader(table.content.decode().splitlines())) == list(csv.reader(said.splitlines()))
    assert len(said.splitlines()) == 2


def test_a_document_can_be_checked_as_it_is_now(viewer: Browser) -> None:
    page = viewer.open("/console/documents/a.2").follow("Check it as it is now")
    assert dict(page.form("Check").form_values())["url"].endswith("/bad.xml")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=a.1", ["a.1.2"]),
        ("q=a.1.2", ["a.1.2"]),
        ("q=water+CHEM", ["a.1.2"]),
        ("q=hostile.xml", ["a.3.1"]),
        ("q=/gone", ["b.2.1"]),
        ("q=xml&site=birch", ["b.1.1", "b.2.1"]),
        ("q=.xml&failing=yes", ["a.2.1", "b.2.1"]),
        ("q=.xml&rule=http.status", ["b.2.1"]),
        ("q=%25", []),
        ("q=nothing+like+this", []),
        ("failing=yes", ["a.2.1", "b.2.1"]),
        ("outcome=invalid", ["a.2.1"]),
        ("rule=http.status", ["b.2.1"]),
        ("site=birch", ["b.1.1", "b.2.1"]),
    ],
)
def test_documents_are_found_by_name_and_by_filter(viewer: Browser, query: str, found: list[str]) -> None:
    page = viewer.open(f"/console/documents?{query}")
    assert (page.status, names(page)) == (200, found)
    number = f"{len(found)} {'document' if len(found) == 1 else 'documents'}."
    assert number in page.text if found else "No document matches these filters." in page.text


def test_a_mistake_in_the_address_is_a_sentence(viewer: Browser) -> None:
    for query in ("outcome=nonsense", "rule=nonsense", "site=nonsense", "after=nonsense", "after=99.1.a"):
        page = viewer.open(f"/console/documents?{query}")
        assert page.status == 422, query
        assert page.title.endswith("."), query


def test_a_document_says_why_it_is_in_the_target(viewer: Browser) -> None:
    page = viewer.open("/console/documents/a.1")
    assert page.title == "Water chemistry"
    assert "Revision 2 is in the target, as the site alder lists it." in page.text
    assert [row[0] for row in page.table("Revisions that went in")] == ["2", "1"]
    assert [(row[1], row[2]) for row in page.table("What happened, the newest first") if row[4] == "2"][-1:] == [
        ("revision 2 updated", "alder")
    ]
    assert any(row[1].startswith("mail:") for row in page.table("What happened, the newest first"))


def test_a_document_says_why_it_is_not_in_the_target_with_the_place_and_the_remedy(viewer: Browser) -> None:
    page = viewer.open("/console/documents/a.2.1")
    assert "It is not in the target: revision 1 of the site alder is not valid since 2050-11-20." in page.text
    assert "What to do:" in page.text
    assert "Line 2, column 1" in page.text
    assert [each.text for each in page.root.iter("pre")] == ["<dataset>"]


def test_two_revisions_are_compared_as_text(viewer: Browser) -> None:
    page = viewer.open("/console/documents/a.1").follow("Difference to revision 1")
    assert "<title>Water chemistry</title>" in page.text
    added = [each.text for each in page.root.find_class("added")]
    removed = [each.text for each in page.root.find_class("removed")]
    assert any("Water chemistry" in (line or "") for line in added)
    assert any("A title" in (line or "") for line in removed)
    assert viewer.open("/console/documents/a.1/record?revision=9").status == 404


def test_texts_of_a_document_are_shown_as_text(viewer: Browser) -> None:
    for path in ("/console/documents?q=rain", "/console/documents/a.3", "/console/documents/a.3/record"):
        page = viewer.open(path)
        assert page.status == 200
        assert "<script>alert(1)" in page.text.replace("&lt;", "<").replace("&gt;", ">")
        assert not [each for each in page.root.iter("script") if not each.get("src")]


def test_a_contact_sees_only_documents_of_own_sites(served: Served) -> None:
    contact = served.signed_in_as("alder@example.org")
    assert names(contact.open("/console/documents")) == ["a.1.2", "a.2.1", "a.3.1"]
    assert names(contact.open("/console/documents?q=.xml")) == ["a.1.2", "a.2.1", "a.3.1"]
    assert names(contact.open("/console/documents?q=b.1")) == []
    assert contact.open("/console/documents?site=birch").status == 404
    assert contact.open("/console/documents.csv?site=birch").status == 404
    for path in ("/console/documents.csv", "/console/documents.csv?q=x", "/console/documents?q=%E2%80%8B"):
        assert b"birch" not in contact.open(path).content
    assert contact.open("/console/documents/a.1").status == 200
    foreign, unknown = contact.open("/console/documents/b.1"), contact.open("/console/documents/nothing")
    assert (foreign.status, foreign.title) == (404, unknown.title)
    assert contact.open("/console/documents/b.1/record").status == 404
    assert contact.open("/console/documents/a.1/withdraw").status == 403
    assert contact.open("/console/problems").status == 403


def test_a_document_of_another_site_belongs_to_none_of_a_contacts_sites(tmp_path: Path) -> None:
    made = Harvester(tmp_path)
    with HttpServer() as server:
        made.add_site("alder", publish(server, "a.1.1", path="/alder.xml"))
        made.run(DAYS[0])
        made.add_site("birch", publish(server, "a.1.1", path="/birch.xml"))
        made.run(DAYS[1])
        with served_console(made) as console:
            contact = console.signed_in_as("birch@example.org").open("/console/documents/a.1")
            assert "Belongs to none of your sites" in contact.text
            assert "Belongs to alder" in console.signed_in("viewer").open("/console/documents/a.1").text
    made.close()


def test_an_empty_installation_says_so(tmp_path: Path) -> None:
    made = Harvester(tmp_path)
    with served_console(made) as console:
        assert "There are no documents yet" in console.signed_in("viewer").open("/console/documents").text
    made.close()


# -- decisions


@pytest.fixture
def changed(harvester: Harvester, server: HttpServer) -> Iterator[Served]:
    harvester.add_site("alder", publish(server, "a.1.1", path="/alder.xml"))
    harvester.add_site("birch", publish(server, "b.1.1", path="/birch.xml"))
    harvester.run(DAYS[0])
    with served_console(harvester) as console:
        yield console


def audit(harvester: Harvester) -> list[tuple[object, ...]]:
    sql = "SELECT action, actor, via, subject, reason FROM audit_entry WHERE subject_kind = 'document' ORDER BY 1"
    return harvester.rows(sql)


@on_one_database
def test_a_withdrawal_needs_a_reason_and_can_be_taken_back(changed: Served, harvester: Harvester) -> None:
    steward = changed.signed_in("steward")
    page = steward.open("/console/documents/a.1").follow("Withdraw…")
    assert "Revision 1 is in the target" in page.text
    page = page.submit("Withdraw a.1", {"reason": " "})
    assert page.status == 422
    assert "Write a reason" in page.text
    page = page.submit("Withdraw a.1", {"reason": "It has <b>personal</b> data."})
    assert page.notice.startswith("a.1 was withdrawn: deleted in ")
    assert "It is not in the target. a.1 was withdrawn on" in page.text
    assert "by steward@example.org" in page.text
    page = page.submit("Take the withdrawal back")
    assert (
        page.notice == "The withdrawal of a.1 was taken back. The next harvest of the site alder may bring it in again."
    )
    assert audit(harvester) == [
        ("documents.readmit", "steward@example.org", "console", "a.1", None),
        ("documents.withdraw", "steward@example.org", "console", "a.1", "It has <b>personal</b> data."),
    ]


@on_one_database
def test_an_erasure_is_asked_for_twice(changed: Served, harvester: Harvester) -> None:
    page = changed.signed_in("steward").open("/console/documents/a.1/withdraw")
    page = page.submit("Withdraw a.1", {"reason": "A mistake", "erase": "yes"})
    assert "This cannot be taken back." in page.text
    assert harvester.rows("SELECT count(*) FROM document_revision WHERE document_id = 'a.1'") == [(1,)]
    page = page.submit("Withdraw and erase a.1")
    assert "Its content was erased (1 revision)." in page.notice
    assert harvester.rows("SELECT count(*) FROM document_revision WHERE document_id = 'a.1'") == [(0,)]


@on_one_database
def test_a_transfer_shows_what_it_changes_first(changed: Served, harvester: Harvester) -> None:
    page = changed.signed_in("steward").open("/console/documents/a.1").submit("Transfer…", {"name": "birch"})
    assert "a.1 belongs to alder now." in page.text
    page = page.submit("Transfer the document a.1 to the site birch")
    assert page.notice == "a.1 now belongs to the site birch."
    assert page.path == "/console/documents/a.1"
    assert "transferred from alder to birch" in page.text
    assert audit(harvester)[0][:3] == ("documents.transfer", "steward@example.org", "console")


@on_one_database
def test_a_viewer_decides_nothing(changed: Served) -> None:
    viewer = changed.signed_in("viewer")
    page = viewer.open("/console/documents/a.1")
    assert "Withdraw…" not in page.links()
    assert viewer.open("/console/documents/a.1/withdraw").status == 403


@on_one_database
def test_a_record_is_found_by_its_oai_identifier(harvester: Harvester) -> None:
    with OaiServer(records=3) as repository:
        added = harvester("sites", "add", "repo", "--oai", repository.base_url, "--contact", "a@repo.example.org")
        assert added.code == 0
        harvester.run(DAYS[0])
        identifier = next(iter(repository.records))
    with served_console(harvester) as console:
        viewer = console.signed_in("viewer")
        page = viewer.open(f"/console/documents?q={quote(identifier)}")
        [row] = page.table("Documents")
        assert identifier in row[0]
        [address] = {each for each in page.links().values() if "/console/documents/" in each}
        page = viewer.open(address)
        assert (page.status, "is in the target, as the site repo lists it." in page.text) == (200, True)
