"""ResourceSync as programs read it that keep a copy of all records, behind a real server."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from lxml import etree
from sqlalchemy import update
from sqlalchemy.orm import Session

from metaharvest.catalogue import resources
from metaharvest.catalogue.change_feed import COMMIT_LAG
from metaharvest.catalogue.resources import ChangeRange, Changes, Resource
from metaharvest.catalogue.selection import Hidden
from metaharvest.database.models import CatalogueDocument
from metaharvest.web.pages import resource_sync
from support.databases import on_one_database
from support.harvester import Harvester
from support.provider import EML, Served, dc, delete, document, record, served, served_at, store

RS = "{http://www.openarchives.org/rs/terms/}"
AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
GONE = record("oai:frogs.org:3", dc("Gone"), site=2)
FROGS = "frogs/oai_dc/oai:frogs.org:2"


def set_times(harvester: Harvester, at: datetime, *document_ids: str) -> None:
    """Set the time of the last change of these documents; none: of all."""
    query = update(CatalogueDocument).values(changed_at=at)
    with Session(harvester.engine) as session, session.begin():
        session.execute(query.where(CatalogueDocument.document_id.in_(document_ids)) if document_ids else query)


@pytest.fixture
def filled(harvester: Harvester) -> Harvester:
    """Two documents, one of them changed, a record, a deleted one, and a document of a site to hide."""
    for name in ("alder-creek", "frogs", "secret"):
        harvester.add_site(name, f"https://{name}.example.org/list.xml")
    store(harvester, document("alder.1", b"<first/>"), document("alder.2", b"<x/>"), GONE)
    store(harvester, record("oai:frogs.org:2", dc("Toads"), site=2), document("hidden.1", b"<x/>", site=3))
    store(harvester, document("alder.1", b"<second/>", revision=2))
    delete(harvester, GONE)
    set_times(harvester, AT)
    return harvester


class Copier:
    """A program that reads the documents of ResourceSync. Each answer has to be XML in the order of sitemaps."""

    def __init__(self, each: Served) -> None:
        self.root = each.base_url.removesuffix("/oai")

    def get(self, url: str) -> etree._Element:
        status, headers, content = Served("").get(url)
        assert (status, headers["content-type"]) == (200, "application/xml"), content
        root = etree.fromstring(content)
        entry = {"urlset": "url", "sitemapindex": "sitemap"}[etree.QName(root).localname]
        names = [etree.QName(each).localname for each in root]
        assert names == sorted(names, key=lambda name: ("ln", "md", entry).index(name))
        for each in root.iter(f"{{{root.nsmap[None]}}}{entry}"):
            inside = [etree.QName(part).localname for part in each]
            assert inside == sorted(inside, key=("loc", "lastmod", "md", "ln").index)
        return root

    def at(self, path: str) -> etree._Element:
        return self.get(f"{self.root}/{path}")

    def list_at(self, path: str) -> Iterator[etree._Element]:
        """The entries of a list, over all of its parts."""
        root = self.at(path)
        if root.tag.endswith("urlset"):
            yield from root.iterfind("{*}url")
        else:
            for part in locations(root):
                yield from self.get(part).iterfind("{*}url")


def locations(root: etree._Element) -> list[str]:
    return [each.text or "" for each in root.iter("{*}loc")]


def facts(entry: etree._Element) -> dict[str, str]:
    [found] = entry.findall(f"{RS}md")
    return {str(name): str(value) for name, value in found.attrib.items()}


@pytest.fixture
def copier(filled: Harvester) -> Iterator[Copier]:
    """The time stands still: two answers have the same time."""
    with served_at(lambda: AT + timedelta(days=1), filled, hidden=["secret"]) as each:
        yield Copier(each)


def test_from_the_well_known_address_to_every_record(copier: Copier) -> None:
    description = copier.at(".well-known/resourcesync")
    assert facts(description) == {"capability": "description"}
    [capabilities] = locations(description)
    found = {facts(each)["capability"]: each.findtext("{*}loc") for each in copier.get(capabilities).iterfind("{*}url")}
    assert found == {
        "resourcelist": f"{copier.root}/resourcesync/resourcelist.xml",
        "changelist": f"{copier.root}/resourcesync/changelist.xml",
    }
    entries = {each.findtext("{*}loc"): each for each in copier.list_at("resourcesync/resourcelist.xml")}
    contents = {"alder.1": b"<second/>", "alder.2": b"<x/>", FROGS: dc("Toads")}
    assert set(entries) == {f"{copier.root}/xml/{each}" for each in contents}
    for document_id, content in contents.items():
        url = f"{copier.root}/xml/{document_id}"
        digest = hashlib.sha256(content).hexdigest()
        assert facts(entries[url]) == {
            "hash": f"sha-256:{digest}",
            "length": str(len(content)),
            "type": "application/xml",
        }
        assert Served(url).get("")[2] == content
    links = {each.get("rel"): each.get("href") for each in entries[f"{copier.root}/xml/alder.1"].iterfind(f"{RS}ln")}
    assert links == {"describes": f"{copier.root}/documents/alder.1", "profile": EML}


def test_changes_and_deletions(copier: Copier) -> None:
    found = [
        (facts(each)["change"], facts(each)["datetime"], (each.findtext("{*}loc") or "").removeprefix(copier.root))
        for each in copier.list_at("resourcesync/changelist.xml")
    ]
    at = "2026-11-20T02:30:00Z"
    assert found == [
        ("created", at, "/xml/alder.2"),
        ("created", at, f"/xml/{FROGS}"),
        ("updated", at, "/xml/alder.1"),
        ("deleted", at, "/xml/frogs/oai_dc/oai:frogs.org:3"),
    ]


def test_a_change_is_listed_when_all_of_its_time_are_committed(filled: Harvester) -> None:
    """A copy that goes by the newest time of a list lacks no change that is committed later with an earlier time."""
    now = AT + timedelta(days=1)
    committed = now - COMMIT_LAG
    set_times(filled, committed + timedelta(seconds=1), "alder.2")
    set_times(filled, committed - timedelta(seconds=1), FROGS)
    with served_at(lambda: now, filled, hidden=["secret"]) as each:
        copier = Copier(each)
        changed = locations_of(copier, "changelist")
        assert f"{copier.root}/xml/alder.2" not in changed
        assert f"{copier.root}/xml/{FROGS}" in changed
        entries = {each.findtext("{*}loc"): each for each in copier.list_at("resourcesync/resourcelist.xml")}
        assert entries[f"{copier.root}/xml/alder.2"].findtext("{*}lastmod") == f"{committed:%Y-%m-%dT%H:%M:%SZ}"
        head = copier.at("resourcesync/resourcelist.xml").find(f"{RS}md")
        assert head is not None
        assert datetime.fromisoformat(head.get("at") or "") <= committed


def locations_of(copier: Copier, name: str) -> list[str | None]:
    return [each.findtext("{*}loc") for each in copier.list_at(f"resourcesync/{name}.xml")]


def test_ranges_keep_their_bounds_while_documents_move(filled: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "RANGE", 3)
    hidden = Hidden((3,))
    with Session(filled.engine) as session:
        ranges = resources.resource_ranges(session, hidden)
        found = [[each.document_id for each in resources.resources_in(session, index, hidden)] for index in ranges]
        assert (list(ranges), found) == ([0, 1], [["alder.1", "alder.2"], [FROGS]])
        changes = resources.change_ranges(session, hidden, AT)
        assert changes == [ChangeRange(0, None, AT), ChangeRange(1, AT, AT), ChangeRange(2, AT, None)]
        listed = [resources.changes_in(session, each.index, hidden, AT) for each in changes]
        assert [(each.since, each.until) for each in listed] == [(None, AT), (AT, AT), (AT, None)]
        assert [[each.document_id for each in of.resources] for of in listed] == [
            ["alder.2"],
            [FROGS],
            ["alder.1", GONE.fetched.document.document_id],
        ]
        before = AT - timedelta(seconds=1)
        assert resources.change_ranges(session, hidden, before) == []
        assert resources.changes_in(session, 5, hidden, AT) == Changes(AT, None, [])
        assert resources.number_of_resources(session, hidden) == 3
        assert resources.number_of_resources(session, Hidden()) == 4


@on_one_database
def test_long_lists_have_parts(copier: Copier, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {name: locations_of(copier, name) for name in ("resourcelist", "changelist")}
    monkeypatch.setattr(resources, "RANGE", 3)
    for name, expected in whole.items():
        index = copier.at(f"resourcesync/{name}.xml")
        assert locations(index)[0] == f"{copier.root}/resourcesync/{name}/000000000.xml"
        assert locations_of(copier, name) == expected
        part = copier.get(locations(index)[-1])
        links = {each.get("rel"): each.get("href") for each in part.iterfind(f"{RS}ln")}
        assert links == {
            "up": f"{copier.root}/resourcesync/capabilitylist.xml",
            "index": f"{copier.root}/resourcesync/{name}.xml",
        }
        until = {"until": "2026-11-20T02:30:00Z"} if name == "changelist" else {}
        assert facts(copier.get(locations(index)[0])) == {**facts(index), **until}
    periods = [facts(each) for each in copier.at("resourcesync/changelist.xml").iterfind("{*}sitemap")]
    at = "2026-11-20T02:30:00Z"
    assert periods == [{"from": "1970-01-01T00:00:00Z", "until": at}, {"from": at, "until": at}, {"from": at}]


@on_one_database
def test_lists_without_a_document(harvester: Harvester) -> None:
    with served(harvester) as each:
        copier = Copier(each)
        for name in ("resourcelist", "changelist"):
            assert locations(copier.at(f"resourcesync/{name}.xml")) == []
            assert locations(copier.at(f"resourcesync/{name}/000000000.xml")) == []


@on_one_database
@pytest.mark.parametrize("index", ["1", "9" * 5000, str(2**63 - 1), "-1", "\u0661", "x"])
def test_a_part_that_is_not_there(copier: Copier, index: str) -> None:
    for name in ("resourcelist", "changelist"):
        assert Served(copier.root).get(f"/resourcesync/{name}/{quote(index)}.xml")[0] == 404


def test_everything_leads_to_it(copier: Copier) -> None:
    """From robots.txt, the pages, and the records."""
    robots = Served(copier.root).get("/robots.txt")[2].decode()
    assert f"\nSitemap: {copier.root}/resourcesync/resourcelist.xml\n" in robots
    link = f'<{copier.root}/resourcesync/capabilitylist.xml>; rel="resourcesync"'
    for path in ("/documents/alder.1", "/xml/alder.1"):
        assert link in Served(copier.root).get(path)[1]["link"].split(", ")


def test_odd_names_are_escaped() -> None:
    odd = Resource("a&b'\"<\u00f6", 'https://e.org/"<&>', AT, "0" * 64, None, False, True)
    root = etree.fromstring(resource_sync.resource_list([odd], "https://c.example.org", AT).encode())
    assert locations(root) == ["https://c.example.org/xml/a&b'%22%3C%C3%B6"]
    [entry] = root.iterfind("{*}url")
    assert [each.get("href") for each in entry.iterfind(f"{RS}ln")] == [
        "https://c.example.org/documents/a&b'%22%3C%C3%B6",
        "https://e.org/%22%3C&%3E",
    ]
    assert "length" not in facts(entry)


@pytest.mark.slow
@on_one_database
def test_a_client_of_others_keeps_a_copy(filled: Harvester, tmp_path: Path) -> None:
    """The client of the package resync: a copy of everything, then changes and deletions."""
    pytest.importorskip("resync.sitemap")
    with served(filled, hidden=["secret"]) as each:
        root = each.base_url.removesuffix("/oai")

        def run(*options: str) -> str:
            # Its script `resync-sync`, which stands beside Python.
            command = [sys.executable, str(Path(sys.executable).with_name("resync-sync")), "--verbose", *options]
            done = subprocess.run(
                [*command, f"{root}/xml={tmp_path / 'copy'}"], capture_output=True, text=True, timeout=60, cwd=tmp_path
            )
            assert done.returncode == 0, done.stderr
            return done.stdout + done.stderr

        def copied() -> dict[str, bytes]:
            folder = tmp_path / "copy"
            return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}

        description = ("--capabilitylist", f"{root}/resourcesync/capabilitylist.xml", "--hash", "sha-256")
        run("--baseline", *description)
        assert copied() == {"alder.1": b"<second/>", "alder.2": b"<x/>", FROGS: dc("Toads")}
        assert "IN SYNC" in run("--audit", *description)
        store(filled, document("alder.3", b"<new/>"), document("alder.2", b"<changed/>", revision=2))
        delete(filled, document("alder.1", b"<second/>"))
        later = AT + timedelta(hours=1)
        set_times(filled, later, "alder.1", "alder.2", "alder.3")
        changes = ("--changelist-uri", f"{root}/resourcesync/changelist.xml", "--from", "2026-11-20T03:00:00Z")
        run("--incremental", "--delete", *changes)
        assert copied() == {"alder.2": b"<changed/>", "alder.3": b"<new/>", FROGS: dc("Toads")}
        assert "IN SYNC" in run("--audit", *description)
