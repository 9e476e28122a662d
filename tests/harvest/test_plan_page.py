"""What is to be done with the records of a page, given what the ledger, the target and other sites know of them."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date
from typing import Any

import pytest

from metaharvest.harvest.oai.plan import AccountedFor, Elsewhere, PageContext, PagePlan, plan_page
from metaharvest.ledger.entries import LedgerEntry, of_outcome
from metaharvest.ledger.records import Brought, KnownRecord
from metaharvest.model import (
    Action,
    Deletions,
    DocumentState,
    Holding,
    ListedDocument,
    OutcomeKind,
    RecordOrigin,
    SameOrigin,
    Site,
    SiteOptions,
    SiteRun,
    SiteRunKind,
    Withdrawal,
)
from metaharvest.sources.base import ListedRecord
from metaharvest.targets.base import RECORD_OF_ANOTHER_SITE

OWN, SIBLING, STRANGER = 1, 2, 3
NAMES = {OWN: "own", SIBLING: "sibling", STRANGER: "stranger"}
DAY = "2026-11-20T00:00:00Z"
EARLIER = "2026-11-19T00:00:00Z"
SEEN = AccountedFor(5, 5)


def record(digest: str = "new", datestamp: str = DAY, *, deleted: bool = False) -> ListedRecord:
    origin = RecordOrigin("u", "r", "oai_dc", datestamp, DAY, digest="" if deleted else digest)
    content = None if deleted else b"<dc/>"
    return ListedRecord(ListedDocument("r", 0, "t", "u", origin=origin), content, deleted)


FIELDS = frozenset(field.name for field in fields(LedgerEntry))


def known(outcome: OutcomeKind = OutcomeKind.UNCHANGED, **columns: Any) -> KnownRecord:
    of_entry = {key: columns.pop(key) for key in list(columns) if key in FIELDS}
    entry = LedgerEntry(9, "r", 1, "u", "t", 1, outcome.value, None, 0, None, of_outcome(outcome.value), None)
    made = KnownRecord(replace(entry, **of_entry), "old", EARLIER, 4, "sent")
    return replace(made, **columns)


def site_run(options: SiteOptions | None = None) -> SiteRun:
    site = Site(OWN, "own", "u", (), options=options or SiteOptions())
    same_origin = SameOrigin(frozenset({SIBLING}), frozenset({SIBLING}))
    return SiteRun(7, site, SiteRunKind.SCHEDULED, lambda _: (None, None), same_origin=same_origin)


def planned(
    *records: ListedRecord,
    row: KnownRecord | None = None,
    holding: Holding | None = None,
    elsewhere: Elsewhere | None = None,
    seen: AccountedFor = SEEN,
    options: SiteOptions | None = None,
    used_up: int = 0,
) -> PagePlan:
    rows, held = {"r": row} if row else {}, {"r": holding} if holding else {}
    others = elsewhere or Elsewhere()
    return plan_page(records, PageContext(site_run(options), NAMES, seen, rows, held, {"r": used_up}, others))


def held(site_id: int | None = OWN, revision: int = 1) -> Holding:
    return Holding("r", revision, None, site_id)


def intent_of(plan: PagePlan) -> tuple[Action, int, int | None]:
    [[todo]] = plan.chains
    return todo.intent.action, todo.intent.document.revision, todo.intent.target_revision


def test_a_new_record_is_inserted() -> None:
    plan = planned(record())
    assert (intent_of(plan), plan.listed, plan.in_hand) == ((Action.INSERT, 1, None), 1, {"r": record()})


def test_a_record_that_was_deleted_in_the_target_gets_the_next_revision() -> None:
    assert intent_of(planned(record(), used_up=4)) == (Action.INSERT, 5, None)


def test_an_unchanged_record_is_settled_and_one_that_is_noted_already_is_not_written() -> None:
    plan = planned(record("old"), row=known(), holding=held())
    [(outcome, _)] = plan.settled
    assert (outcome.kind, outcome.document.revision, outcome.target_revision) == (OutcomeKind.UNCHANGED, 1, 1)
    assert (plan.listed, plan.unchanged, plan.chains) == (1, 1, [])
    plan = planned(record("old", EARLIER), row=known(), holding=held())
    assert (plan.unchanged, plan.settled) == (1, [])


def test_an_unchanged_record_is_checked_again_where_all_are() -> None:
    plan = planned(record("old"), row=known(), holding=held(), seen=replace(SEEN, rechecks=True))
    assert intent_of(plan) == (Action.UPDATE, 2, 1)


def test_a_changed_record_is_updated_and_compared_with_what_was_sent_last() -> None:
    plan = planned(record(), row=known(), holding=held())
    assert intent_of(plan) == (Action.UPDATE, 2, 1)
    assert plan.chains[0][0].intent.held_sha256 == "sent"


def test_a_deleted_record_waits_for_the_end_of_the_list() -> None:
    plan = planned(record(deleted=True), row=known(), holding=held())
    waits = replace(known().entry, state=DocumentState.TO_DELETE)
    assert ([entry for _, entry in plan.to_delete], plan.listed) == ([waits], 0)


def test_a_deletion_that_is_older_than_the_known_record_is_named() -> None:
    row, older = known(datestamp=DAY), record(deleted=True, datestamp=EARLIER)
    assert planned(older, row=row, holding=held()).older_deletions == ["r"]
    assert planned(older, row=known(), holding=held()).older_deletions == []
    waits = known(OutcomeKind.DEFERRED, state=DocumentState.TO_DELETE, datestamp=DAY)
    assert planned(older, row=waits, holding=held()).older_deletions == []


def test_a_deleted_record_that_the_target_does_not_have_is_noted_at_once() -> None:
    plan = planned(record(deleted=True))
    assert [outcome.kind for outcome, _ in plan.settled] == [OutcomeKind.DELETED]
    plan = planned(record(deleted=True), row=known(), holding=None)
    assert [outcome.kind for outcome, _ in plan.ended] == [OutcomeKind.DELETED]


def test_a_deleted_record_of_a_site_that_only_notes_deletions_is_noted_at_once() -> None:
    plan = planned(record(deleted=True), row=known(), holding=held(), options=SiteOptions(deletions=Deletions.KEEP))
    assert ([outcome.kind for outcome, _ in plan.ended], plan.to_delete) == ([OutcomeKind.DELETED], [])


def test_a_record_with_an_older_datestamp_than_known_waits() -> None:
    row = known(datestamp=DAY)
    plan = planned(record("other", EARLIER), row=row, holding=held())
    assert (plan.outdated, plan.chains, plan.listed) == ([row], [], 0)


@pytest.mark.parametrize("newest_first", [True, False])
def test_of_two_versions_on_a_page_the_newest_counts(newest_first: bool) -> None:
    versions = [record("new"), record("older", EARLIER)]
    plan = planned(*(versions if newest_first else versions[::-1]))
    assert (plan.listed, plan.duplicate, plan.in_hand["r"]) == (2, 1, record("new"))


def test_a_record_that_the_list_has_named_before_is_a_duplicate() -> None:
    plan = planned(record("old", EARLIER), row=known(sweep_id=5), holding=held())
    assert (plan.listed, plan.duplicate, plan.unchanged) == (1, 1, 0)


def test_a_record_that_an_earlier_harvest_of_the_list_has_brought_is_unchanged() -> None:
    seen, row = replace(SEEN, goes_on=True), known(sweep_id=5)
    plan = planned(record("old", EARLIER), row=row, holding=held(), seen=seen)
    assert (plan.listed, plan.duplicate, plan.unchanged) == (1, 0, 1)
    older = planned(record("older", "2026-11-18T00:00:00Z"), row=row, holding=held(), seen=seen)
    assert (older.listed, older.duplicate) == (1, 1)


def test_a_document_of_a_site_of_another_origin_is_refused() -> None:
    plan = planned(record(), holding=held(STRANGER))
    [(outcome, _)] = plan.ended
    assert (outcome.kind, outcome.findings[0].rule) == (OutcomeKind.UPLOAD_ERROR, "target.other-site")
    assert "'stranger'" in outcome.findings[0].message


def test_a_record_without_an_origin_is_refused_in_the_words_for_records() -> None:
    plan = planned(ListedRecord(ListedDocument("r", 0, "t", "u"), b"<dc/>"), holding=held(STRANGER))
    [(outcome, _)] = plan.ended
    assert outcome.findings[0].remedy == RECORD_OF_ANOTHER_SITE


def test_what_belonged_to_a_site_that_is_registered_no_longer_is_free() -> None:
    assert intent_of(planned(record(), holding=held(17))) == (Action.UPDATE, 2, 1)


def test_a_withdrawn_document_is_left_out_and_its_deletion_is_noted() -> None:
    holding = Holding("r", 0, withdrawn=Withdrawal("why", date(2026, 11, 20)))
    assert [outcome.kind for outcome, _ in planned(record(), holding=holding).ended] == [OutcomeKind.FILTERED]
    plan = planned(record(deleted=True), holding=holding)
    assert [outcome.kind for outcome, _ in plan.settled] == [OutcomeKind.DELETED]


def test_a_pending_upload_of_the_same_content_keeps_its_revision_and_of_another_one_uses_it_up() -> None:
    row = known(OutcomeKind.DEFERRED, revision=2, pending_sha256="p", state=DocumentState.PENDING)
    assert intent_of(planned(record("old"), row=row, holding=held())) == (Action.UPDATE, 2, 1)
    plan = planned(record("new"), row=row, holding=held())
    assert intent_of(plan) == (Action.UPDATE, 3, 1)
    entry = plan.chains[0][0].known
    assert entry is not None
    assert entry.pending_sha256 is None


@pytest.mark.parametrize("is_away", [True, False])
def test_a_record_that_cannot_be_fetched_ends_as_an_error_and_is_tried_again_if_that_may_pass(is_away: bool) -> None:
    plan = planned(replace(record(), content=None, is_away=is_away), row=known(), holding=held())
    [(outcome, _)] = plan.ended
    kind = OutcomeKind.ACCESS_ERROR if is_away else OutcomeKind.INVALID
    assert (outcome.kind, outcome.transient, outcome.target_revision) == (kind, is_away, 1)
    assert (plan.listed, plan.unchanged, plan.in_hand) == (1, 0, {})


@pytest.mark.parametrize(
    ("row", "seen"),
    [(known(), replace(SEEN, logged={"r"})), (known(sweep_id=5), AccountedFor(6, 5))],
    ids=["interrupted", "list-from-its-beginning"],
)
def test_a_record_that_has_its_outcome_in_this_site_run_is_not_counted_again(
    row: KnownRecord, seen: AccountedFor
) -> None:
    assert planned(record("old"), row=row, holding=held(), seen=seen) == PagePlan()
    assert planned(record("new"), row=row, holding=held(), seen=seen).listed == 1


def test_another_version_later_in_the_list_is_taken_and_counted_as_moved() -> None:
    plan = planned(record(), row=known(sweep_id=5), holding=held())
    assert (intent_of(plan), plan.listed, plan.duplicate, plan.moved) == ((Action.UPDATE, 2, 1), 1, 0, 1)
    in_doubt = known(sweep_id=5, state=DocumentState.OLDER)
    plan = planned(record(), row=in_doubt, holding=held())
    assert (intent_of(plan), plan.listed, plan.duplicate) == ((Action.UPDATE, 2, 1), 2, 1)


# -- deletions


@pytest.mark.parametrize("is_live_first", [True, False])
def test_a_record_that_a_page_has_live_and_deleted_with_one_datestamp_is_live(is_live_first: bool) -> None:
    versions = [record("old"), record(deleted=True)]
    plan = planned(*(versions if is_live_first else versions[::-1]), row=known(), holding=held())
    assert (plan.unchanged, plan.duplicate, plan.to_delete) == (1, 1, [])


def test_a_deletion_with_the_datestamp_of_a_live_record_earlier_in_the_list_is_a_duplicate() -> None:
    plan = planned(record(deleted=True), row=known(sweep_id=5, datestamp=DAY), holding=held())
    assert (plan.duplicate, plan.to_delete) == (1, [])
    plan = planned(record(deleted=True), row=known(sweep_id=4, datestamp=DAY), holding=held())
    assert (plan.duplicate, len(plan.to_delete)) == (0, 1)


def test_the_document_of_a_deleted_record_whose_upload_may_have_arrived_is_deleted() -> None:
    row = known(OutcomeKind.DEFERRED, target_revision=None, pending_sha256="p", state=DocumentState.PENDING)
    [(document, entry)] = planned(record(deleted=True), row=row).to_delete
    assert (document.revision, entry and entry.state) == (1, DocumentState.TO_DELETE)


def test_a_deletion_that_waits_keeps_its_confirmation_and_one_that_was_put_off_before_is_to_be_confirmed() -> None:
    again = date(2026, 11, 20)
    waits = known(OutcomeKind.DEFERRED, state=DocumentState.TO_CONFIRM, next_attempt=again)
    [(_, entry)] = planned(record(deleted=True), row=waits, holding=held()).to_delete
    assert entry == waits.entry
    in_doubt = known(state=DocumentState.OLDER, datestamp=DAY, next_attempt=again)
    [(_, entry)] = planned(record(deleted=True), row=in_doubt, holding=held()).to_delete
    assert entry == replace(in_doubt.entry, state=DocumentState.TO_CONFIRM, outcome=OutcomeKind.DEFERRED)
    [(_, entry)] = planned(record(deleted=True), row=replace(in_doubt, datestamp=EARLIER), holding=held()).to_delete
    assert entry == replace(in_doubt.entry, state=DocumentState.TO_DELETE, next_attempt=None)


def test_a_deletion_that_was_made_needs_no_fetch_after_an_older_version_had_been_listed() -> None:
    row = known(OutcomeKind.DELETED, state=DocumentState.REAPPEARED)
    plan = planned(record(deleted=True), row=row)
    assert (plan.deleted_again, plan.listed, plan.unchanged, plan.settled) == ([row], 1, 1, [])
    plan = planned(record(deleted=True), row=known(OutcomeKind.DELETED))
    assert (plan.deleted_again, plan.listed, plan.unchanged) == ([], 1, 1)


# -- sites of one origin


@pytest.mark.parametrize("row", [None, known(), known(OutcomeKind.INVALID), known(OutcomeKind.DELETED)])
def test_what_another_site_of_the_origin_has_brought_is_unchanged_with_the_revision_that_is_held(
    row: KnownRecord | None,
) -> None:
    elsewhere = Elsewhere({"r": Brought("new", "sent there")})
    plan = planned(record(), row=row, holding=held(SIBLING, 4), elsewhere=elsewhere)
    [(outcome, entry)] = plan.settled
    assert (outcome.kind, outcome.document.revision, outcome.target_revision) == (OutcomeKind.UNCHANGED, 4, 4)
    assert (outcome.sha256, entry) == ("sent there", row.entry if row else None)
    assert (plan.listed, plan.unchanged, plan.chains) == (1, 1, [])


def test_what_another_site_of_the_origin_has_brought_is_checked_again_where_all_are() -> None:
    elsewhere = Elsewhere({"r": Brought("new", "sent there")})
    plan = planned(record(), holding=held(SIBLING, 4), elsewhere=elsewhere, seen=replace(SEEN, rechecks=True))
    assert intent_of(plan) == (Action.UPDATE, 5, 4)


@pytest.mark.parametrize("digest", ["another", None], ids=["other-content", "not-comparable"])
def test_what_differs_from_what_another_site_has_brought_is_the_next_revision(digest: str | None) -> None:
    plan = planned(record(), holding=held(SIBLING, 4), elsewhere=Elsewhere({"r": Brought(digest, "sent there")}))
    assert intent_of(plan) == (Action.UPDATE, 5, 4)
    assert plan.chains[0][0].intent.held_sha256 == "sent there"


def test_what_this_site_knows_itself_is_unchanged_whichever_site_of_the_origin_has_brought_it() -> None:
    plan = planned(record("old"), row=known(), holding=held(SIBLING))
    assert (plan.unchanged, len(plan.settled)) == (1, 1)


def test_a_deletion_of_what_another_site_has_brought_waits_like_any_other() -> None:
    assert len(planned(record(deleted=True), row=known(), holding=held(SIBLING)).to_delete) == 1


def test_a_deletion_that_was_noted_is_not_reported_again_while_another_site_lists_the_record() -> None:
    row = known(OutcomeKind.DELETED)
    plan = planned(record(deleted=True), row=row, holding=held(), elsewhere=Elsewhere(listed={"r"}))
    assert (plan.listed, plan.unchanged, plan.to_delete) == (1, 1, [])
    assert len(planned(record(deleted=True), row=row, holding=held()).to_delete) == 1


def test_a_deletion_of_what_this_site_never_had_is_noted_while_another_site_lists_the_record() -> None:
    plan = planned(record(deleted=True), holding=held(SIBLING), elsewhere=Elsewhere(listed={"r"}))
    [(outcome, _)] = plan.settled
    assert (outcome.kind, outcome.target_revision, plan.to_delete) == (OutcomeKind.DELETED, None, [])


def test_the_rows_of_a_page_are_new_for_records_that_the_ledger_does_not_have() -> None:
    today = date(2026, 11, 21)
    new, changed = planned(record(deleted=True), holding=held()).rows(site_run(), today)
    assert ([(row["document_id"], row["state"], row["datestamp"]) for row in new], changed) == (
        [("r", "to-delete", DAY)],
        [],
    )
    new, changed = planned(record(deleted=True), row=known(), holding=held()).rows(site_run(), today)
    assert (new, [(row["harvest_document_id"], row["state"]) for row in changed]) == ([], [(9, "to-delete")])


def test_the_rows_of_a_page_with_an_older_version_have_the_record_fetched_and_a_deletion_ends_that() -> None:
    today, row = date(2026, 11, 21), known(datestamp=DAY, digest="new")
    older = planned(record("old", EARLIER), row=row, holding=held())
    new, [changed] = older.rows(site_run(), today)
    assert (new, changed["harvest_document_id"], changed["state"], changed["next_attempt"]) == ([], 9, "older", today)
    again = planned(record(deleted=True), row=known(OutcomeKind.DELETED, state=DocumentState.REAPPEARED))
    new, [changed] = again.rows(site_run(), today)
    assert (new, changed["state"], changed["next_attempt"]) == ([], "deleted", None)
