"""The state of a document in the ledger after each event."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import func, insert, select, update

from metaharvest.database.models import Base
from metaharvest.ledger.entries import (
    after_deletion,
    after_listing,
    after_older,
    after_other_options,
    after_outcome,
    of_outcome,
)
from metaharvest.ledger.rows import becoming
from metaharvest.model import DocumentState, ListedDocument, Outcome, OutcomeKind, RecordOrigin
from support.harvester import Harvester

LEDGER = Base.metadata.tables["harvest_document"]
LISTED = ListedDocument("r", 2, "t", "u", origin=RecordOrigin("u", "r", "oai_dc", "", ""))
FETCHED = ListedDocument("r", 2, "t", "u")
KINDS = {
    "held": ("inserted", "updated", "unchanged"),
    "left-out": ("filtered", "stale"),
    "failed": ("access-error", "invalid", "upload-error"),
    "deferred": ("deferred",),
    "deleted": ("deleted",),
}


@pytest.mark.parametrize("state", [None, *DocumentState])
def test_the_outcome_of_a_listed_record_is_its_state(state: DocumentState | None) -> None:
    for after, kinds in KINDS.items():
        for kind in kinds:
            assert after_outcome(state, Outcome(LISTED, OutcomeKind(kind))) == after


@pytest.mark.parametrize("state", [None, "held", "failed", "pending", "older"])
def test_an_upload_without_an_answer_is_pending(state: str | None) -> None:
    assert after_outcome(state, Outcome(FETCHED, OutcomeKind.DEFERRED, unconfirmed=True)) == "pending"


@pytest.mark.parametrize(
    ("outcome", "after"),
    [
        (Outcome(FETCHED, OutcomeKind.DELETED), "deleted"),
        (Outcome(FETCHED, OutcomeKind.DEFERRED, needs_confirmation=True), "to-confirm"),
        (Outcome(FETCHED, OutcomeKind.DEFERRED), "to-delete"),
        (Outcome(FETCHED, OutcomeKind.UPLOAD_ERROR), "to-delete"),
    ],
)
@pytest.mark.parametrize("state", ["to-delete", "to-confirm"])
def test_a_deletion_waits_until_it_is_made(state: str, outcome: Outcome, after: str) -> None:
    assert after_outcome(state, outcome) == after


@pytest.mark.parametrize(
    ("outcome", "after"),
    [
        (Outcome(FETCHED, OutcomeKind.UPDATED), "older"),
        (Outcome(FETCHED, OutcomeKind.DEFERRED, unconfirmed=True), "pending-older"),
        (Outcome(FETCHED, OutcomeKind.UPLOAD_ERROR), "failed"),
        (Outcome(LISTED, OutcomeKind.UPDATED), "held"),
    ],
)
def test_a_record_is_fetched_when_the_target_has_answered_about_its_upload(outcome: Outcome, after: str) -> None:
    assert after_outcome("pending-older", outcome) == after


@pytest.mark.parametrize(
    ("state", "is_known", "after"),
    [
        (None, False, "to-delete"),
        ("held", True, "to-delete"),
        ("missing", False, "to-delete"),
        ("older", False, "to-delete"),
        ("older", True, "to-confirm"),
        ("to-delete", False, "to-delete"),
        ("to-confirm", False, "to-confirm"),
    ],
)
def test_a_deletion_that_was_put_off_before_is_to_be_confirmed(state: str | None, is_known: bool, after: str) -> None:
    assert after_deletion(state, is_known=is_known) == after


@pytest.mark.parametrize(
    ("state", "outcome", "after"),
    [
        ("held", "unchanged", "older"),
        ("left-out", "filtered", "older"),
        ("older", "unchanged", "older"),
        ("to-delete", "unchanged", "older"),
        ("to-confirm", "deferred", "older"),
        ("deleted", "deleted", "reappeared"),
        ("reappeared", "deleted", "reappeared"),
        ("failed", "invalid", "failed"),
        ("deferred", "deferred", "deferred"),
        ("missing", "unchanged", "older"),
        ("missing", "invalid", "failed"),
    ],
)
def test_a_record_of_which_a_list_shows_an_older_version_is_fetched(state: str, outcome: str, after: str) -> None:
    assert after_older(state, outcome, is_pending=False) == after
    assert after_older(state, outcome, is_pending=True) == "pending-older"


@pytest.mark.parametrize("state", DocumentState)
def test_a_list_changes_the_state_of_missing_records_alone(state: DocumentState) -> None:
    for outcome in (None, *OutcomeKind):
        after = after_listing(state, outcome)
        assert after is (of_outcome(outcome) if state is DocumentState.MISSING else state)


def test_a_site_that_asks_for_other_records_has_no_question_about_the_former_ones() -> None:
    changed = {state: after_other_options(state, "unchanged") for state in DocumentState}
    assert {state.value: after.value for state, after in changed.items() if after is not state} == {
        "pending-older": "pending", "older": "held", "reappeared": "held", "missing": "held",
    }  # fmt: skip
    assert after_other_options("reappeared", "deleted") == "deleted"


@pytest.mark.parametrize("change", [after_listing, after_other_options])
def test_a_change_of_many_rows_is_that_of_each(
    harvester: Harvester, change: Callable[[str, str | None], DocumentState]
) -> None:
    cases = {f"{state}/{outcome}": (state, outcome) for state in DocumentState for outcome in OutcomeKind}
    common = {"site_schedule_id": 1, "revision": 1, "document_url": "u", "document_type": "t"}
    given = [
        {**common, "document_id": name, "state": state.value, "outcome": outcome.value}
        for name, (state, outcome) in cases.items()
    ]
    with harvester.engine.begin() as connection:
        connection.execute(insert(LEDGER), given)
        connection.execute(update(LEDGER).values(missing_since=None, state=becoming(change)))
        rows = connection.execute(select(LEDGER.c.document_id, LEDGER.c.state))
        found = {row.document_id: row.state for row in rows}
        assert connection.scalar(select(func.count()).select_from(LEDGER)) == len(cases)
    assert found == {name: change(*case).value for name, case in cases.items()}
