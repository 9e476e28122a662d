"""Lists of the catalogue: by format, site, set and time, page by page; the formats of one record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from metaharvest.catalogue.publication import has_several_formats
from metaharvest.catalogue.selection import CatalogueEntry, Position, Selection, entries_of_item, entry_of, list_entries
from metaharvest.database.engine import readers, writers
from metaharvest.model import FetchedDocument, ListedDocument, RecordOrigin
from metaharvest.targets.base import Upload
from metaharvest.targets.embedded import EmbeddedTarget
from support.catalogue import AT, ORIGIN
from support.harvester import Harvester

SETS = {1: ("a",), 2: ("a:b",), 3: ("ab",), 4: ("a:b:c", "d"), 5: ()}
START = datetime(2026, 11, 1, tzinfo=UTC)


def stored(name: str, kind: str, sets: tuple[str, ...] = (), site: int = 1) -> Upload:
    origin = None
    if "/" in name:
        prefix, identifier = name.split("/")[1:]
        origin = RecordOrigin(ORIGIN.base_url, identifier, prefix, "2026-11-20", "", kind, "", sets)
    document = ListedDocument(name, 1, kind, "https://e.org/1.xml", origin=origin)
    return Upload(FetchedDocument(document, b"x", "0" * 64, 0.1), site, AT)


@pytest.fixture
def filled(harvester: Harvester) -> Harvester:
    """Five records, the first in two formats, and a document of a list; each changes a day after the one before."""
    uploads = [stored(f"r/oai_dc/oai:r:{number}", "urn:dc", sets) for number, sets in SETS.items()]
    uploads += [stored("r/datacite/oai:r:1", "urn:datacite"), stored("e.1", "eml", site=2)]
    with writers(harvester.engine).begin() as session:
        EmbeddedTarget(readers(harvester.engine)).upload(uploads, session)
    for number in range(len(uploads)):
        moment = f"{START + timedelta(days=number):%Y-%m-%d %H:%M:%S}.000000"
        harvester.rows("UPDATE catalogue_document SET changed_at = ? WHERE change_seq = ?", moment, number + 1)
    return harvester


def names(found: list[CatalogueEntry]) -> list[str]:
    return [each.document_id.removeprefix("r/oai_dc/oai:r:") for each in found]


def listed(harvester: Harvester, selection: Selection, limit: int = 100, after: Position | None = None) -> list[str]:
    with readers(harvester.engine)() as session:
        return names(list(list_entries(session, selection, limit, after)))


@pytest.mark.parametrize(
    ("selection", "found"),
    [
        (Selection(), ["1", "2", "3", "4", "5", "r/datacite/oai:r:1", "e.1"]),
        (Selection(("eml", "urn:datacite")), ["r/datacite/oai:r:1", "e.1"]),
        (Selection(site_id=2), ["e.1"]),
        (Selection(("urn:dc",), origin="r", set_spec="a"), ["1", "2", "4"]),
        (Selection(origin="r", set_spec="a:b"), ["2", "4"]),
        (Selection(origin="r", set_spec="d"), ["4"]),
        (Selection(origin="other", set_spec="a"), []),
        (Selection(since=START + timedelta(days=2), until=START + timedelta(days=3)), ["3", "4"]),
    ],
)
def test_a_list_has_the_selected_documents(filled: Harvester, selection: Selection, found: list[str]) -> None:
    assert listed(filled, selection) == found


@pytest.mark.parametrize("same_time", [False, True])
def test_pages_follow_one_another(filled: Harvester, same_time: bool) -> None:
    if same_time:
        filled.rows("UPDATE catalogue_document SET changed_at = '2026-11-20 00:00:00.000000'")
    found: list[CatalogueEntry] = []
    with readers(filled.engine)() as session:
        while page := list_entries(session, Selection(("urn:dc",)), 2, found[-1].position if found else None):
            found += page
    assert names(found) == ["1", "2", "3", "4", "5"]


def test_a_document_of_a_list_is_no_format_of_an_origin(harvester: Harvester) -> None:
    """The document id `r.10` follows all document ids of the origin `r.1`."""
    with writers(harvester.engine).begin() as session:
        uploads = [stored("r.1/oai_dc/oai:r:1", "urn:dc"), stored("r.10", "eml")]
        EmbeddedTarget(readers(harvester.engine)).upload(uploads, session)
        assert not has_several_formats(session)


def test_a_record_is_one_item_in_its_formats(filled: Harvester) -> None:
    with readers(filled.engine)() as session:
        found = entries_of_item(session, "r", "oai:r:1")
        assert [each.document_id for each in found] == ["r/datacite/oai:r:1", "r/oai_dc/oai:r:1"]
        assert entries_of_item(session, "other", "oai:r:1") == []
        assert entry_of(session, "e.2") is None
