"""What the log says of a document and of a list: pure functions of values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from metaharvest.journal import oai_notes
from metaharvest.journal.list_notes import shrank, vanished
from metaharvest.journal.log_rows import fingerprint, outcome_rows
from metaharvest.journal.totals import Totals
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.model import Finding, Level, ListedDocument, Outcome, OutcomeKind, SiteRunStatus, ValidationLevel

DOCUMENT = ListedDocument("alder.1", 2, "eml", "https://example.org/1.xml")
DOUBT = Finding("eml.package-id", "It is doubtful.", "Look.", Level.WARNING)
ERROR = Finding("schema.missing-element", "It is wrong.", "Mend it.", xpath="/eml")


def codes(outcome: Outcome) -> list[str]:
    return [row.code for row in outcome_rows(outcome)]


def test_a_document_that_goes_in_has_a_row_for_each_step_and_its_outcome_in_the_last() -> None:
    outcome = Outcome(DOCUMENT, OutcomeKind.INSERTED, size=1234, seconds=0.1)
    rows = outcome_rows(outcome)
    assert [row.code for row in rows] == ["GetDocSuccess", "ValidateDocSuccess", "InsertDocSuccess"]
    assert [row.outcome for row in rows] == [None, None, outcome]
    assert rows[0].message == "alder.1.2 was fetched: 1,234 bytes."


def test_a_warning_stays_with_the_row_of_the_check() -> None:
    fetched, checked, stored = outcome_rows(Outcome(DOCUMENT, OutcomeKind.UPDATED, 1, (DOUBT,), 0.1, 10))
    assert (checked.code, checked.findings) == ("ValidateDocWarning", (DOUBT,))
    assert fetched.findings == stored.findings == ()


def test_an_error_is_told_in_the_last_row_and_comes_first_in_its_message() -> None:
    fetched, ended = outcome_rows(Outcome(DOCUMENT, OutcomeKind.INVALID, None, (DOUBT, ERROR), 0.1, 10))
    assert fetched.code == "GetDocSuccess"
    assert (ended.code, ended.findings) == ("ValidateDocError", (DOUBT, ERROR))
    assert ended.message == "alder.1.2 is not acceptable. It is wrong."


def test_a_document_that_could_not_be_fetched_or_stored_says_so() -> None:
    assert codes(Outcome(DOCUMENT, OutcomeKind.ACCESS_ERROR, None, (ERROR,), 3.0)) == ["GetDocError"]
    new = Outcome(DOCUMENT, OutcomeKind.UPLOAD_ERROR, None, (ERROR,), 0.1, 10)
    assert codes(new)[-1] == "InsertDocError"
    assert codes(replace(new, target_revision=1))[-1] == "UpdateDocError"
    assert "UploadUnconfirmed" in codes(replace(new, unconfirmed=True))


def test_what_a_rehearsal_does_not_keep_would_be_inserted() -> None:
    *_, ended = outcome_rows(Outcome(DOCUMENT, OutcomeKind.INSERTED, size=1, seconds=0.1), is_kept=False)
    assert ended.message == "alder.1.2 would be inserted; nothing was uploaded."


def test_a_finding_is_the_same_as_long_as_its_document_rule_and_place_are() -> None:
    same = fingerprint(ERROR, "alder.1")
    assert fingerprint(replace(ERROR, message="Other words.", line=7), "alder.1") == same
    others = [(replace(ERROR, xpath="/eml/dataset"), "alder.1"), (replace(ERROR, rule="x"), "alder.1"), (ERROR, "b.1")]
    assert len({same, *(fingerprint(finding, document_id) for finding, document_id in others)}) == 4


def test_what_happened_once_is_no_problem_that_stays() -> None:
    assert fingerprint(Finding("list.shrank", "It shrank.", "", Level.WARNING), "") is None
    assert fingerprint(Finding("list.shrank", "It shrank.", ""), "") is not None


@pytest.mark.parametrize(
    ("listed", "before", "told"), [(80, 100, True), (81, 100, False), (5, 10, True), (6, 10, False)]
)
def test_a_list_that_lost_a_fifth_of_its_entries_and_at_least_five_shrank(listed: int, before: int, told: bool) -> None:
    assert (shrank(listed, before) is not None) is told


def test_of_very_many_vanished_documents_a_hundred_are_told_one_by_one() -> None:
    entries = [
        LedgerEntry(number, f"a.{number}", 1, "u", "t", 1, "unchanged", None, 0, None, "held", None)
        for number in range(150)
    ]
    row = vanished(entries, reported=30)
    assert row.message.startswith("150 documents are listed no longer")
    assert len(row.findings) == 71
    assert row.findings[0].message == row.message


@pytest.mark.parametrize(
    ("outcomes", "listed", "level", "status"),
    [
        ({OutcomeKind.INSERTED: 2}, 2, None, SiteRunStatus.SUCCEEDED),
        ({OutcomeKind.INSERTED: 2}, 3, None, SiteRunStatus.INCOMPLETE),
        ({OutcomeKind.INSERTED: 1, OutcomeKind.INVALID: 1}, 2, None, SiteRunStatus.WITH_ERRORS),
        ({OutcomeKind.INSERTED: 1, OutcomeKind.INVALID: 1}, 2, ValidationLevel.LOOSE, SiteRunStatus.SUCCEEDED),
        ({OutcomeKind.UPLOAD_ERROR: 1}, 1, ValidationLevel.LOOSE, SiteRunStatus.WITH_ERRORS),
        ({OutcomeKind.DEFERRED: 1}, 1, None, SiteRunStatus.WITH_ERRORS),
    ],
)
def test_a_site_run_has_succeeded_only_if_every_document_has_a_good_outcome(
    outcomes: dict[OutcomeKind, int], listed: int, level: ValidationLevel | None, status: SiteRunStatus
) -> None:
    assert Totals(outcomes, 0).status(listed, level) is status


def test_one_record_is_no_plural() -> None:
    reason = Finding("oai.http", "It fails.", "Look.")
    assert oai_notes.broken_off([reason], 1, None).message == "The list broke off after 1 record: It fails."
    assert oai_notes.broken_off([reason], 1, 30).message == "The list broke off after 1 of 30 records: It fails."
    [row] = oai_notes.fewer(1, 3, 0, "alder")
    assert row.message.startswith("The repository says that it has 1 record (completeListSize); 3 are known.")
