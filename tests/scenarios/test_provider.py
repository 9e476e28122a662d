"""metaharvest harvests metaharvest: a second installation harvests the provider of the first one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from support.databases import TestDatabase
from support.harvester import SETTINGS, Harvester, eml
from support.provider import DATACITE, OAI_DC, dc, delete, document, record, served, store

NESTED = (
    b'<provenance xmlns="http://www.openarchives.org/OAI/2.0/provenance">'
    b'<originDescription harvestDate="2025-01-01T00:00:00Z" altered="false"><baseURL>https://first.org/oai</baseURL>'
    b"<identifier>oai:first.org:1</identifier><datestamp>2024-01-01</datestamp>"
    b"<metadataNamespace>urn:x</metadataNamespace></originDescription></provenance>"
)
RECORDS = {f"oai:frogs.org:{number}": dc(f"Frog {number}") for number in range(25)}


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Harvester]:
    folder = tmp_path / "second"
    folder.mkdir()
    made = Harvester(folder, SETTINGS)
    yield made
    made.close()


def canonical(content: bytes) -> bytes:
    return etree.tostring(etree.fromstring(content), method="c14n", exclusive=True)


def held(harvester: Harvester, start: str = "") -> dict[str, bytes | None]:
    """The documents by identifier, in canonical form; None: deleted."""
    rows = harvester.rows(
        "SELECT d.item_identifier, d.deleted, r.content FROM catalogue_document d "
        "JOIN document_revision r ON r.document_id = d.document_id AND r.revision = d.revision "
        "WHERE d.document_id LIKE ?",
        f"{start}%",
    )
    return {name: None if deleted else canonical(content) for name, deleted, content in rows}


def register(second: Harvester, base_url: str, name: str, *options: str) -> None:
    said = second("sites", "add", name, "--oai", base_url, "--origin", name, "--allow-duplicate", *options)
    assert said.code == 0, said.err


def test_a_second_installation_has_the_same_records_and_deletions(harvester: Harvester, second: Harvester) -> None:
    uploads = [record(name, content, sets=("a:b",), about=[NESTED]) for name, content in RECORDS.items()]
    store(harvester, *uploads, document("alder.1", eml("alder.1.1", "Alders")))
    delete(harvester, uploads[3])
    with served(harvester, page_records=10) as server:
        register(second, server.base_url, "dc")
        register(second, server.base_url, "eml", "--prefix", "eml-2.1.1")
        first = second.run("2030-01-01")
        assert [site["status"] for site in first["sites"]] == ["succeeded", "succeeded"], second.findings(1)
        mine, other = held(harvester, "frogs/"), held(second, "dc/")
        del mine["oai:frogs.org:3"]
        made = other.pop("oai:localhost.localdomain:alder.1")
        assert made is not None
        assert b"Alders" in made
        assert other == mine
        assert held(second, "eml/") == {"oai:localhost.localdomain:alder.1": canonical(eml("alder.1.1", "Alders"))}

        delete(harvester, uploads[4])
        changed = record("oai:frogs.org:5", dc("Another frog"), revision=2)
        store(harvester, changed, record("oai:frogs.org:99", dc("A new frog")))
        again = second.run("2030-01-02")
        assert [site["status"] for site in again["sites"]] == ["succeeded", "succeeded"], second.findings(2)
        mine, other = held(harvester, "frogs/"), held(second, "dc/")
        del mine["oai:frogs.org:3"], other["oai:localhost.localdomain:alder.1"]
        assert other == mine
        assert other["oai:frogs.org:4"] is None

    [(about, sets)] = second.rows(
        "SELECT about, sets FROM document_origin WHERE document_id = 'dc/oai_dc/oai:frogs.org:1'"
    )
    [provenance] = json.loads(about)
    assert provenance.index("https://frogs.example.org/oai") < provenance.index("https://first.org/oai")
    assert json.loads(sets) == ["origin:frogs:a:b", "format:oai_dc"]


def test_records_that_change_between_two_pages_arrive_in_the_end(
    harvester: Harvester, second: Harvester, database: TestDatabase
) -> None:
    """Whatever a run writes while another one reads, the next harvest has all of it."""
    uploads = [record(name, content) for name, content in RECORDS.items()]
    store(harvester, *uploads)
    with served(harvester, page_records=5) as server:
        register(second, server.base_url, "dc")
        process = second.start("run", "--date", "2030-01-01")
        for number in range(5, 25):
            store(harvester, record(f"oai:frogs.org:{number}", dc(f"Changed {number}"), revision=2))
        process.communicate(timeout=60)
        second.run("2030-01-02")
    assert held(second) == held(harvester)


def test_a_record_in_two_formats_is_one_item(harvester: Harvester, second: Harvester) -> None:
    in_datacite = f'<resource xmlns="{DATACITE}"><titles><title>Frog</title></titles></resource>'.encode()
    store(
        harvester,
        record("oai:frogs.org:1", dc("Frog")),
        record("oai:frogs.org:1", in_datacite, prefix="datacite", kind=DATACITE),
        record("oai:frogs.org:2", in_datacite, prefix="datacite", kind=DATACITE),
    )
    with served(harvester) as server:
        register(second, server.base_url, "dc")
        register(second, server.base_url, "datacite", "--prefix", "datacite")
        second.run("2030-01-01")
    assert held(second, "datacite/") == held(harvester, "frogs/datacite/")
    found = held(second, "dc/")
    assert found["oai:frogs.org:1"] == canonical(dc("Frog"))
    assert OAI_DC.encode() in (found["oai:frogs.org:2"] or b"")
