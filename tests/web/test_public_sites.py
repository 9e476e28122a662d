"""Sites that are not public: for harvesters, readers of pages and readers of dataset files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from lxml import etree

from support.databases import on_one_database
from support.harvester import Harvester, eml
from support.provider import OAI, Asked, Served, asked, dc, delete, document, record, served, store, texts

OURS = "oai:catalogue.example.org:"
LONG_AGO, SINCE = "2020-01-01 00:00:00", "2021-01-01T00:00:00Z"
SECRET = {"oai:frogs.org:1", "oai:frogs.org:2"}


@pytest.fixture
def filled(harvester: Harvester) -> Harvester:
    """A document of a harvest list; two records of another site, one in a second format and a set."""
    for name in ("alder", "frogs"):
        harvester.add_site(name, f"https://{name}.example.org/list.xml")
    store(
        harvester,
        document("alder.1", eml("alder.1.1")),
        record("oai:frogs.org:1", dc("Frogs"), site=2),
        record("oai:frogs.org:2", dc("Toads"), sets=("pond",), site=2),
        record("oai:frogs.org:2", b"<toads xmlns='urn:t'/>", prefix="t", kind="urn:t", site=2),
    )
    as_if_long_ago(harvester)
    return harvester


def as_if_long_ago(harvester: Harvester) -> None:
    for table in ("catalogue_document", "catalogue_counter"):
        harvester.rows(f"UPDATE {table} SET changed_at = '{LONG_AGO}'")


def edit(harvester: Harvester, *options: str, site: str = "frogs") -> None:
    said = harvester("sites", "edit", site, *options)
    assert said.code == 0, said.err


def add_toads(harvester: Harvester) -> None:
    """Register a site that was never public; its number is 3."""
    values = ("--list-url", "https://t.example.org/", "--contact", "a@b.org", "--not-public")
    said = harvester("sites", "add", "toads", *values)
    assert said.code == 0, said.err


def states(ask: Asked, **arguments: str) -> dict[str, str | None]:
    """The status of each record that changed."""
    root = ask("ListRecords", **{"metadataPrefix": "oai_dc", "from": SINCE, **arguments})
    return {each.findtext(f"{OAI}identifier") or "": each.get("status") for each in root.iter(f"{OAI}header")}


def all_of(ask: Asked) -> set[str]:
    return set(ask.identifiers(metadataPrefix="oai_dc"))


def test_a_site_that_is_no_longer_public_leaves_deletions(filled: Harvester) -> None:
    with asked(filled) as ask:
        edit(filled, "--not-public")
        assert states(ask) == dict.fromkeys(SECRET, "deleted")
        assert states(ask, set="site:frogs") == dict.fromkeys(SECRET, "deleted")
        assert states(ask, set="origin:frogs:pond") == {"oai:frogs.org:2": "deleted"}
        assert {"site:frogs", "origin:frogs:pond"} <= set(texts(ask("ListSets"), "setSpec"))
        assert all_of(ask) == {*SECRET, f"{OURS}alder.1"}
        [prefix] = [each for each in texts(ask("ListMetadataFormats"), "metadataPrefix") if each.startswith("t-")]
        for each in ("oai_dc", prefix):
            got = ask("GetRecord", identifier="oai:frogs.org:2", metadataPrefix=each)
            assert b"oads" not in etree.tostring(got)
            assert states(ask, metadataPrefix=prefix) == {"oai:frogs.org:2": "deleted"}

        as_if_long_ago(filled)
        edit(filled, "--public")
        assert states(ask) == dict.fromkeys(SECRET)
        assert filled.rows("SELECT * FROM catalogue_withheld") == []


def test_documents_that_were_never_public_are_not_named(filled: Harvester) -> None:
    assert filled(
        "sites", "add", "toads", "--list-url", "https://t.example.org/", "--contact", "a@b.org", "--not-public"
    )
    store(filled, document("toads.1", eml("toads.1.1"), site=3), document("toads.2", eml("toads.2.1"), site=3))
    delete(filled, document("toads.2", b"", site=3))
    with asked(filled) as ask:
        assert all_of(ask) == {*SECRET, f"{OURS}alder.1"}
        assert "toads" not in str(texts(ask("ListSets"), "setSpec"))
        edit(filled, "--public", site="toads")
        assert all_of(ask) == {*SECRET, f"{OURS}alder.1", f"{OURS}toads.1", f"{OURS}toads.2"}


def test_documents_follow_the_site_that_they_belong_to(filled: Harvester) -> None:
    with asked(filled) as ask:
        edit(filled, "--not-public")
        as_if_long_ago(filled)
        assert filled("target", "transfer", "frogs/oai_dc/oai:frogs.org:1", "alder").code == 0
        assert states(ask) == {"oai:frogs.org:1": None}
        assert filled("target", "transfer", "alder.1", "frogs").code == 0
        assert states(ask)[f"{OURS}alder.1"] == "deleted"


@pytest.mark.parametrize("by_settings", [False, True])
@pytest.mark.parametrize("change", [("edit", "frogs", "--name", "toads"), ("remove", "frogs", "--yes")])
def test_nothing_becomes_public_by_a_new_name_or_a_removal(
    filled: Harvester, change: tuple[str, ...], *, by_settings: bool
) -> None:
    if by_settings:
        with filled.config.open("a", encoding="utf-8") as file:
            file.write('[web]\nhidden = ["frogs"]\n')
    else:
        edit(filled, "--not-public")
    left = {f"{OURS}alder.1"} if by_settings else {f"{OURS}alder.1", *SECRET}
    assert filled("sites", *change).code == 0
    store(filled, record("oai:frogs.org:3", dc("Newts"), origin="newts", site=2))
    for hidden in ([], ["frogs"]) if by_settings else ([],):
        with asked(filled, hidden=hidden) as ask:
            assert all_of(ask) == left
            assert b"Frogs" not in ask.provider.answer([("verb", "ListRecords"), ("metadataPrefix", "oai_dc")])


@on_one_database
def test_a_flag_that_was_changed_with_sql_counts_at_once(filled: Harvester) -> None:
    filled.rows("UPDATE harvest_site_schedule SET public = 0 WHERE name = 'frogs'")
    with asked(filled) as ask:
        assert all_of(ask) == {f"{OURS}alder.1"}
        filled.run("2026-11-20", "--site", "alder")
        assert states(ask) == dict.fromkeys(SECRET, "deleted")


@on_one_database
def test_pages_sitemap_and_log(filled: Harvester) -> None:
    edit(filled, "--not-public")
    add_toads(filled)
    store(filled, document("toads.1", eml("toads.1.1"), site=3))
    as_if_long_ago(filled)
    with served(filled) as server:
        root = Served(server.base_url.removesuffix("/oai"))
        found = {each: root.get(f"/documents/{each}")[0] for each in ("alder.1", "frogs/t/oai:frogs.org:2", "toads.1")}
        assert list(found.values()) == [200, 410, 404]
        assert [root.get(f"/xml/{each}")[0] for each in found] == [200, 410, 404]
        assert [root.get("/sitemap/0.xml")[2].count(each) for each in (b"alder.1", b"frogs", b"toads")] == [1, 0, 0]
        for path, wanted in (("resourcelist", [1, 0, 0]), ("changelist", [1, 3, 0])):
            text = root.get(f"/resourcesync/{path}.xml")[2]
            assert [text.count(each) for each in (b"/xml/alder.1", b"/xml/frogs/", b"toads")] == wanted, text
        assert text.count(b'change="deleted"') == 3
        log = root.get("/status")[2]
        assert (b"alder" in log, b"frogs" in log, b"toads" in log) == (True, False, False)


def lines(harvester: Harvester, folder: str, *options: str) -> dict[str, bool]:
    """The documents of a new dataset, each with the mark of deleted ones."""
    said = harvester("export", "dataset", str(harvester.folder / folder), *options)
    assert said.code == 0, said.err
    found = {}
    for path in Path(harvester.folder / folder).glob("part-*"):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            each = json.loads(line)
            found[each["document_id"]] = each["is_deleted"]
            assert not each["is_deleted"] or each.get("content") is None
    return found


@on_one_database
def test_dataset_files(filled: Harvester) -> None:
    [(last,)] = filled.rows("SELECT change_seq FROM catalogue_counter")
    edit(filled, "--not-public")
    frogs = {
        f"frogs/{each}": True for each in ("oai_dc/oai:frogs.org:1", "oai_dc/oai:frogs.org:2", "t/oai:frogs.org:2")
    }
    assert lines(filled, "one", "--since", str(last)) == frogs
    assert filled("sites", "remove", "frogs", "--yes").code == 0
    assert lines(filled, "two") == {"alder.1": False, **frogs}


@on_one_database
def test_dataset_files_without_a_removed_site_that_the_settings_hid(filled: Harvester) -> None:
    """The site was never harvested under its name."""
    with filled.config.open("a", encoding="utf-8") as file:
        file.write('[web]\nhidden = ["frogs"]\n')
    assert filled("sites", "remove", "frogs", "--yes").code == 0
    filled.config.write_text(filled.config.read_text(encoding="utf-8").replace('"frogs"', ""), encoding="utf-8")
    assert lines(filled, "one") == {"alder.1": False}


@on_one_database
def test_the_flag_is_shown_exported_and_imported(filled: Harvester) -> None:
    said = filled("sites", "edit", "frogs", "--not-public")
    assert "public: yes -> no" in said.out
    assert [each["public"] for each in json.loads(filled("sites", "list", "--json").out)] == [True, False]
    file = filled.folder / "sites.json"
    assert filled("sites", "export", "-o", str(file)).code == 0
    content = file.read_text(encoding="utf-8")
    file.write_text(content.replace('"public": false', '"public": true'), encoding="utf-8")
    assert filled("sites", "import", str(file)).code == 0
    assert filled.rows("SELECT * FROM catalogue_withheld") == []
    with asked(filled) as ask:
        assert all_of(ask) == {*SECRET, f"{OURS}alder.1"}


@on_one_database
def test_the_audit_has_both_changes_of_the_flag(filled: Harvester) -> None:
    edit(filled, "--not-public")
    edit(filled, "--public")
    found = filled.rows("SELECT before_values, after_values FROM audit_entry ORDER BY audit_entry_id")
    values = [[json.loads(each) for each in row] for row in found]
    assert values == [[{"public": True}, {"public": False}], [{"public": False}, {"public": True}]]
