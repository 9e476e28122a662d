"""Each write of the embedded target moves the documents that changed in the change feed, and no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from metaharvest.catalogue.change_feed import changed_documents, last_stamp
from metaharvest.catalogue.current import held_documents
from metaharvest.catalogue.provenance import provenance_of
from metaharvest.catalogue.selection import Hidden, entry_of, sets_of
from metaharvest.catalogue.writing import transfer
from metaharvest.database.engine import readers, writers
from metaharvest.errors import TargetError
from metaharvest.model import Action, ListedDocument
from metaharvest.targets.base import Deletion, Upload
from metaharvest.targets.embedded import EmbeddedTarget
from support.catalogue import AT, ORIGIN, upload
from support.harvester import Harvester

NAME = "r.example.org-oai/oai_dc/oai:r:1"


def record(revision: int = 1, **values: Any) -> Upload:
    return upload(f"{NAME}.{revision}", origin=replace(ORIGIN, **values))


class Catalogue:
    """The embedded target, and what its catalogue says."""

    def __init__(self, harvester: Harvester) -> None:
        self.harvester = harvester
        self.target = EmbeddedTarget(readers(harvester.engine))
        self.site = harvester.add_site("alder", "https://e.org/list.xml")
        self._seen = 0

    def upload(self, *uploads: Upload) -> list[Action]:
        with writers(self.harvester.engine).begin() as session:
            return self.target.upload(uploads, session)

    def do(self, action: Callable[..., object], *values: object) -> None:
        with writers(self.harvester.engine).begin() as session:
            action(*values, session)

    def changed(self) -> list[tuple[str, int, bool]]:
        """The documents that changed since the last question."""
        with readers(self.harvester.engine)() as session:
            found = changed_documents(session, self._seen, 100, Hidden())
        self._seen = found[-1].change_seq if found else self._seen
        return [(each.document_id, each.revision, each.is_deleted) for each in found]

    def sets(self, document_id: str) -> list[str]:
        with readers(self.harvester.engine)() as session:
            entry = entry_of(session, document_id)
            assert entry is not None
            return list(sets_of(session, [entry.number]).get(entry.number, ()))

    def title(self, document_id: str) -> str:
        with readers(self.harvester.engine)() as session:
            entry = entry_of(session, document_id)
            assert entry is not None
            return entry.title


@pytest.fixture
def catalogue(harvester: Harvester) -> Catalogue:
    return Catalogue(harvester)


def deletion(document_id: str) -> Deletion:
    return Deletion(ListedDocument(document_id, 1, "", ""), 1, AT)


def test_an_upload_moves_its_documents_alone(catalogue: Catalogue) -> None:
    assert catalogue.upload(upload("a.1.1"), upload("a.2.1"), upload("a.2.3")) == ["insert", "insert", "update"]
    assert catalogue.changed() == [("a.1", 1, False), ("a.2", 3, False)]
    assert catalogue.upload(upload("a.1.2", "Another title")) == ["update"]
    assert catalogue.changed() == [("a.1", 2, False)]
    assert (catalogue.title("a.1"), catalogue.title("a.2")) == ("Another title", "A title")
    assert catalogue.changed() == []


def test_a_refused_upload_moves_nothing(catalogue: Catalogue) -> None:
    catalogue.upload(upload("a.1.2"))
    catalogue.changed()
    with pytest.raises(TargetError):
        catalogue.upload(upload("a.2.1"), upload("a.1.1"))
    assert catalogue.changed() == []


def test_a_document_is_deleted_and_comes_back(catalogue: Catalogue) -> None:
    catalogue.upload(upload("a.1.1"), upload("a.2.1"))
    catalogue.changed()
    catalogue.do(catalogue.target.delete, deletion("a.1"))
    assert catalogue.changed() == [("a.1", 1, True)]
    assert list(catalogue.target.holdings(["a.1", "a.2"])) == ["a.2"]
    assert catalogue.target.used_up(["a.1"]) == {"a.1": 1}
    catalogue.do(catalogue.target.delete, deletion("a.1"))
    assert catalogue.changed() == []
    assert catalogue.upload(upload("a.1.2")) == ["insert"]
    assert catalogue.changed() == [("a.1", 2, False)]


def test_a_deleted_document_is_restored_unless_its_content_was_erased(catalogue: Catalogue) -> None:
    catalogue.upload(upload("a.1.1"), record())
    for document_id in ("a.1", NAME):
        catalogue.do(catalogue.target.delete, deletion(document_id))
    catalogue.changed()
    catalogue.do(catalogue.target.restore, "a.1")
    assert catalogue.changed() == [("a.1", 1, False)]
    catalogue.do(catalogue.target.restore, "a.1")
    assert catalogue.changed() == []
    catalogue.do(catalogue.target.erase, NAME)
    assert catalogue.changed() == [(NAME, 1, True)]
    # Readers of a set learn of the deletion, too.
    assert (catalogue.title(NAME), catalogue.sets(NAME)) == ("", ["a", "b:c"])
    catalogue.do(catalogue.target.restore, NAME)
    assert catalogue.changed() == []
    assert list(catalogue.target.holdings([NAME, "a.1"])) == ["a.1"]
    assert catalogue.upload(record()) == ["insert"]
    assert catalogue.changed() == [(NAME, 1, False)]


@pytest.mark.parametrize(
    "values",
    [{"sets": ("a", "d")}, {"sets": ()}, {"about": (b"<a/>",)}, {"datestamp": "2026-11-21"}],
    ids=lambda values: "".join(values),
)
def test_a_record_with_other_sets_about_or_datestamp_moves(catalogue: Catalogue, values: dict[str, Any]) -> None:
    catalogue.upload(record(), upload("a.1.1"))
    catalogue.changed()
    same, other = replace(ORIGIN, response_date="2026-11-22T00:00:00Z"), replace(ORIGIN, **values)
    document = record().fetched.document
    catalogue.do(catalogue.target.restamp, [replace(document, origin=same)])
    assert catalogue.changed() == []
    catalogue.do(catalogue.target.restamp, [replace(document, origin=other)])
    assert catalogue.changed() == [(NAME, 1, False)]
    assert catalogue.sets(NAME) == list(other.sets)
    with readers(catalogue.harvester.engine)() as session:
        found = provenance_of(session, NAME, 1)
    assert found is not None
    assert found.origin == other
    turned = replace(other, sets=other.sets[::-1])
    catalogue.do(catalogue.target.restamp, [replace(document, origin=turned)])
    assert catalogue.changed() == []


def test_sets_follow_the_current_revision(catalogue: Catalogue) -> None:
    catalogue.upload(record(sets=("a", "a", "ü", "x" * 801)))
    assert catalogue.sets(NAME) == ["a"]
    catalogue.upload(record(2, sets=("b", "c")))
    assert catalogue.sets(NAME) == ["b", "c"]


def test_a_transfer_moves_what_has_another_site(catalogue: Catalogue) -> None:
    birch = catalogue.harvester.add_site("birch", "https://e.org/b.xml")
    catalogue.upload(upload("a.1.1"), upload("a.2.1"), upload("a.3.1"))
    catalogue.do(catalogue.target.delete, deletion("a.3"))
    catalogue.changed()
    with writers(catalogue.harvester.engine).begin() as session:
        transfer(session, ["a.1", "a.3"], birch)
    assert catalogue.changed() == [("a.1", 1, False)]
    with writers(catalogue.harvester.engine).begin() as session:
        transfer(session, ["a.1"], birch)
    assert catalogue.changed() == []
    with readers(catalogue.harvester.engine)() as session:
        held = held_documents(session, ["a.1", "a.2"]).values()
    assert {each.document_id: each.site_id for each in held} == {"a.1": birch, "a.2": catalogue.site}


def test_a_record_has_the_origin_and_the_identifier_of_its_source_repository(catalogue: Catalogue) -> None:
    catalogue.upload(record(), upload("a.1.1"))
    with readers(catalogue.harvester.engine)() as session:
        of_record, of_list = entry_of(session, NAME), entry_of(session, "a.1")
    assert of_record is not None
    assert of_list is not None
    assert (of_record.origin, of_record.item_identifier) == ("r.example.org-oai", "oai:r:1")
    assert (of_list.origin, of_list.item_identifier) == (None, "a.1")


def test_a_record_of_a_plug_in_may_have_another_kind_of_id(catalogue: Catalogue) -> None:
    catalogue.upload(upload("plug-in:7.1", origin=ORIGIN))
    with readers(catalogue.harvester.engine)() as session:
        found = entry_of(session, "plug-in:7")
    assert found is not None
    assert (found.origin, found.item_identifier) == (None, "plug-in:7")


def test_stamps_are_whole_seconds_and_never_go_back(catalogue: Catalogue) -> None:
    catalogue.upload(upload("a.1.1"))
    sessions = readers(catalogue.harvester.engine)
    with sessions() as session:
        first = last_stamp(session)
    assert first is not None
    assert first.microsecond == 0
    assert timedelta(0) <= datetime.now(UTC) - first < timedelta(minutes=1)
    catalogue.harvester.rows("UPDATE catalogue_counter SET changed_at = '2099-01-01 00:00:00'")
    catalogue.upload(upload("a.2.1"))
    with sessions() as session:
        assert [each.changed_at for each in changed_documents(session, 0, 9, Hidden())] == [
            first,
            datetime(2099, 1, 1, tzinfo=UTC),
        ]
    assert catalogue.harvester("database", "repair-dates").out.endswith("1 documents.\n")
    catalogue.upload(upload("a.3.1"))
    with sessions() as session:
        assert max(each.changed_at for each in changed_documents(session, 0, 9, Hidden())) <= datetime.now(UTC)
