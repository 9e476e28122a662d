"""An item in two formats, each from another site, of which one is not public: nothing of that site is shown."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest
from lxml import etree

from support.databases import on_one_database
from support.format_documents import VALID
from support.harvester import Harvester
from support.provider import DATACITE, OAI, OAI_DC, Asked, Served, asked, codes, dc, record, served, store, texts

ITEM = "oai:frogs.org:1"
ADDRESSES = {"oai_dc": f"frogs/oai_dc/{ITEM}", "datacite": f"frogs/datacite/{ITEM}"}
IN_DC = dc("Toads of the marsh")
IN_DATACITE = VALID["datacite"].encode()
WORDS = {"oai_dc": "Toads of the marsh", "datacite": "10.1234"}


def fill(harvester: Harvester, hidden: str, *, was_public: bool) -> None:
    """The sites `shown` and `secret`: the latter has the format `hidden` of the item."""
    for name in ("shown", "secret"):
        harvester.add_site(name, f"https://{name}.example.org/list.xml")
    if not was_public:
        assert harvester("sites", "edit", "secret", "--not-public").code == 0
    for prefix, content, kind in (("oai_dc", IN_DC, OAI_DC), ("datacite", IN_DATACITE, DATACITE)):
        site = 2 if prefix == hidden else 1
        sets = ("secret-set",) if prefix == hidden else ("shown-set",)
        store(harvester, record(ITEM, content, prefix=prefix, kind=kind, site=site, sets=sets))
    if was_public:
        assert harvester("sites", "edit", "secret", "--not-public").code == 0
    set_back(harvester)


def set_back(harvester: Harvester) -> None:
    """Let all changes be those of 2020."""
    for table in ("catalogue_document", "catalogue_counter"):
        harvester.rows(f"UPDATE {table} SET changed_at = '2020-01-01 00:00:00'")


CASES = [(hidden, was_public) for hidden in ("oai_dc", "datacite") for was_public in (False, True)]


@on_one_database
@pytest.mark.parametrize(("hidden", "was_public"), CASES)
def test_the_provider(harvester: Harvester, hidden: str, *, was_public: bool) -> None:
    fill(harvester, hidden, was_public=was_public)
    shown = "datacite" if hidden == "oai_dc" else "oai_dc"
    with asked(harvester) as ask:
        # The answers without the request that they repeat.
        text = b"".join(etree.tostring(each) for answer in every_answer(ask) for each in list(answer)[2:]).decode()
        assert WORDS[hidden] not in text
        assert WORDS[shown] in text
        assert "secret" not in text or was_public
        formats = texts(ask("ListMetadataFormats", identifier=ITEM), "metadataPrefix")
        assert ("datacite" in formats) == (shown == "datacite" or was_public)
        own = ask("GetRecord", identifier=ITEM, metadataPrefix=shown)
        assert texts(own, "identifier") == [ITEM]
        assert "secret" not in str(texts(own, "setSpec"))
        if hidden == "datacite":
            other = ask("GetRecord", identifier=ITEM, metadataPrefix=hidden)
            assert codes(other) == [] if was_public else codes(other) == ["cannotDisseminateFormat"]
            assert b"<metadata" not in etree.tostring(other)


@on_one_database
@pytest.mark.parametrize(
    ("withhold", "publish"),
    [
        (("sites", "edit", "first", "--not-public"), ("sites", "edit", "first", "--public")),
        (("target", "transfer", ADDRESSES["oai_dc"], "secret"), ("target", "transfer", ADDRESSES["oai_dc"], "first")),
    ],
    ids=["flag", "transfer"],
)
def test_a_harvester_gets_the_other_format_when_one_is_withheld(
    harvester: Harvester, withhold: tuple[str, ...], publish: tuple[str, ...]
) -> None:
    for name in ("first", "second", "secret"):
        harvester.add_site(name, f"https://{name}.example.org/list.xml")
    assert harvester("sites", "edit", "secret", "--not-public").code == 0
    store(harvester, record(ITEM, IN_DC, site=1))
    store(harvester, record(ITEM, IN_DATACITE, prefix="datacite", kind=DATACITE, site=2))
    with asked(harvester) as ask:
        for command, is_shown in ((withhold, False), (publish, True)):
            set_back(harvester)
            assert harvester(*command).code == 0
            [metadata] = ask("ListRecords", metadataPrefix="oai_dc", from_="2021-01-01").iter(f"{OAI}metadata")
            assert (WORDS["oai_dc"] in etree.tostring(metadata).decode()) == is_shown


def every_answer(ask: Asked) -> Iterator[etree._Element]:
    yield ask("Identify")
    yield ask("ListSets")
    yield ask("ListMetadataFormats")
    yield ask("ListMetadataFormats", identifier=ITEM)
    for prefix in ADDRESSES:
        yield ask("GetRecord", identifier=ITEM, metadataPrefix=prefix)
        for verb in ("ListRecords", "ListIdentifiers"):
            for set_ in ({}, {"set": "site:secret"}, {"set": "site:shown"}, {"set": "origin:frogs:secret-set"}):
                yield ask(verb, metadataPrefix=prefix, **set_)


@on_one_database
@pytest.mark.parametrize(("hidden", "was_public"), CASES)
def test_pages(harvester: Harvester, hidden: str, *, was_public: bool) -> None:
    fill(harvester, hidden, was_public=was_public)
    shown = "datacite" if hidden == "oai_dc" else "oai_dc"
    with served(harvester) as server:
        root = Served(server.base_url.removesuffix("/oai"))
        gone = 410 if was_public else 404
        for start in ("/documents/", "/xml/"):
            assert root.get(start + ADDRESSES[hidden])[0] == gone
            status, headers, content = root.get(start + ADDRESSES[shown])
            assert status == 200
            for text in (content.decode(), headers["link"]):
                assert ADDRESSES[hidden] not in text
                assert WORDS[hidden] not in text
                assert "secret" not in text
        for path in ("/sitemap/0.xml", "/status", "/", "/resourcesync/resourcelist.xml"):
            text = root.get(path)[2].decode()
            assert ADDRESSES[hidden] not in text
            assert "secret" not in text
        assert root.get("/")[2].count(b"1 ") > 0
        text = root.get("/resourcesync/changelist.xml")[2].decode()
        assert (f"/xml/{ADDRESSES[hidden]}" in text) == was_public
        assert text.count('change="deleted"') == (1 if was_public else 0)
    lines = dataset(harvester, hidden)
    assert lines == ({ADDRESSES[shown]: False, ADDRESSES[hidden]: True} if was_public else {ADDRESSES[shown]: False})


def dataset(harvester: Harvester, hidden: str) -> dict[str, bool]:
    """The documents of a new dataset, each with the mark of deleted ones."""
    said = harvester("export", "dataset", str(harvester.folder / "dataset"))
    assert said.code == 0, said.err
    found = {}
    for path in (harvester.folder / "dataset").glob("part-*"):
        text = gzip.decompress(path.read_bytes()).decode()
        assert WORDS[hidden] not in text
        found.update({each["document_id"]: each["is_deleted"] for each in map(json.loads, text.splitlines())})
    return found
