"""The deletions that wait in the ledger, and the rows that other questions to the ledger find."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDocument, HarvestSiteSchedule
from metaharvest.ledger.deletions import waiting_deletions
from metaharvest.ledger.records import BEFORE_SPLIT, before_split, known_at, listed_by, missing_at, unnamed
from metaharvest.model import DocumentState, OutcomeKind, Site, SiteOptions
from support.journal_rows import JournalRows, new_database


@pytest.fixture
def rows() -> Iterator[JournalRows]:
    with Session(new_database()) as session:
        yield JournalRows(session)


def note(rows: JournalRows, site: HarvestSiteSchedule, name: str, state: DocumentState, listing: int = 3) -> None:
    columns = {"document_id": name, "revision": 1, "document_url": "u", "document_type": "t", "outcome": "unchanged"}
    row = HarvestDocument(site_schedule_id=site.site_schedule_id, listing=listing, state=state.value, **columns)
    row.target_revision, row.sha256 = 1, "sent"
    rows.session.add(row)
    rows.session.flush()


def waiting(
    rows: JournalRows, row: HarvestSiteSchedule, split_from: str | None = None, site_run_id: int = 0
) -> list[str]:
    site = Site(row.site_schedule_id, row.name, "u", (), options=SiteOptions(split_from=split_from))
    return [entry.document_id for entry in waiting_deletions(rows.session, site, site_run_id)]


def test_deletions_wait_for_the_target_or_for_a_confirmation(rows: JournalRows) -> None:
    own, other = rows.site("own"), rows.site("other")
    for state in DocumentState:
        note(rows, own, state.value, state)
    note(rows, other, "other", DocumentState.TO_DELETE)
    assert waiting(rows, own) == ["to-confirm", "to-delete"]


def test_a_deletion_that_this_site_run_refused_waits_for_the_next_one(rows: JournalRows) -> None:
    own, run = rows.site("own"), rows.run()
    before, now = rows.site_run(run, own), rows.site_run(run, own)
    for name in ("a", "b"):
        note(rows, own, name, DocumentState.TO_DELETE)
    outcome = OutcomeKind.UPLOAD_ERROR.value
    rows.log(run, "InsertDocError", "", now, document_id="a", outcome=outcome)
    assert waiting(rows, own, site_run_id=now.site_run_id) == ["b"]
    assert waiting(rows, own, site_run_id=before.site_run_id) == ["a", "b"]


def test_a_deletion_that_waits_at_the_site_that_was_split_is_carried_out_there(rows: JournalRows) -> None:
    first, second, other = rows.site("first"), rows.site("second"), rows.site("other")
    note(rows, first, "since-before", DocumentState.TO_DELETE, BEFORE_SPLIT)
    note(rows, first, "later", DocumentState.TO_DELETE)
    note(rows, first, "live", DocumentState.HELD, BEFORE_SPLIT)
    note(rows, other, "elsewhere", DocumentState.TO_DELETE, BEFORE_SPLIT)
    names = ["elsewhere", "later", "live", "since-before"]
    for name in names:
        note(rows, second, name, DocumentState.TO_DELETE)
    assert waiting(rows, second, "first") == ["elsewhere", "later", "live"]
    assert waiting(rows, second) == names
    assert waiting(rows, first, "first") == ["later", "since-before"]


def test_the_sites_that_list_a_record_or_miss_it_are_found(rows: JournalRows) -> None:
    first, second = rows.site("first"), rows.site("second")
    ids = [first.site_schedule_id, second.site_schedule_id]
    note(rows, first, "a", DocumentState.HELD)
    note(rows, second, "a", DocumentState.FAILED)
    note(rows, second, "b", DocumentState.MISSING)
    note(rows, second, "c", DocumentState.HELD, BEFORE_SPLIT)
    asked = ["a", "b", "c", *(f"unknown{number}" for number in range(600))]
    assert listed_by(rows.session, ids, asked) == {"a": set(ids)}
    assert missing_at(rows.session, ids, asked) == ["b"]
    assert sorted(known_at(rows.session, ids[1:], asked[::-1])) == ["a", "b", "c"]


def test_the_rows_that_a_complete_list_did_not_name_are_those_of_earlier_lists(rows: JournalRows) -> None:
    own = rows.site("own")
    for state in DocumentState:
        note(rows, own, state.value, state)
    note(rows, own, "listed", DocumentState.HELD, 4)
    note(rows, own, "since-before", DocumentState.HELD, BEFORE_SPLIT)
    note(rows, own, "pending-since-before", DocumentState.PENDING, BEFORE_SPLIT)
    found = [each.document_id for each in unnamed(rows.session, own.site_schedule_id, 4)]
    assert found == ["deferred", "failed", "held", "left-out", "missing", "older"]
    assert [each.document_id for each in before_split(rows.session, own.site_schedule_id)] == ["since-before"]
