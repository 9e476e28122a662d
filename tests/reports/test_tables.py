"""The tables that are attached and printed: complete, safe to open in a spreadsheet, in bounded memory."""

from __future__ import annotations

import csv
import io
import tracemalloc
from collections.abc import Iterable

import pytest
from sqlalchemy import insert
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestLog
from metaharvest.model import Finding, Level, OutcomeKind
from metaharvest.reports import tables
from metaharvest.reports.tables import least_documents_size
from support.databases import on_one_database
from support.journal_rows import NOW, TODAY, JournalRows

BROKEN = Finding("schema.missing-element", "The element 'creator'\nis missing.", "Add it.", line=9, column=4)
DOUBTFUL = Finding("eml.package-id", "The packageId is another one.", level=Level.WARNING)


def read(chunks: Iterable[str]) -> list[dict[str, str]]:
    text = "".join(chunks)
    assert text.startswith("\ufeff")
    assert "\n" not in text.replace("\r\n", "")
    return list(csv.DictReader(io.StringIO(text[1:], newline="")))


def test_the_documents_table_has_a_row_for_every_finding(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 7, OutcomeKind.INVALID, BROKEN, BROKEN, seconds=0.25, size=1200)
    rows.document(run, site_run, "alder.2", 1, OutcomeKind.INSERTED, warnings=(DOUBTFUL,), seconds=1.5, size=800)
    rows.document(run, site_run, "alder.2", 1, OutcomeKind.DUPLICATE)
    rows.document(run, site_run, "alder.3", 1, OutcomeKind.INSERTED)
    rows.unchanged(run, site_run, ("alder.4", 2, 3))
    rows.document(run, site_run, "alder.1", 7, OutcomeKind.DUPLICATE)
    rows.ledger(site_run, "alder.1", 7, OutcomeKind.INVALID, failing_since=TODAY, attempts=2)

    table = read(tables.documents_csv(session, site_run.site_run_id))

    # Of the entry that names a document once more nobody knows how long it has been failing.
    again = table.pop(2)
    assert (again["docid"], again["outcome"], again["failing_since"]) == ("alder.1.7", "duplicate", "")
    assert [(row["docid"], row["outcome"], row["rule"]) for row in table] == [
        ("alder.1.7", "invalid", BROKEN.rule),
        ("alder.1.7", "invalid", BROKEN.rule),
        ("alder.2.1", "inserted", DOUBTFUL.rule),
        ("alder.2.1", "duplicate", ""),
        ("alder.3.1", "inserted", ""),
    ]
    first = table[0]
    assert (first["seconds"], first["bytes"], first["line"], first["column"]) == ("0.250", "1200", "9", "4")
    assert (first["failing_since"], first["attempts"]) == ("2026-11-20", "2")
    assert first["message"] == "The element 'creator' is missing."
    assert table[2]["seconds"] == "1.500"


def test_the_least_size_of_the_documents_table_is_at_most_its_size(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    for number in range(9):
        rows.document(run, site_run, f"alder.{number}", 1, OutcomeKind.INSERTED, warnings=(DOUBTFUL,) * (number % 2))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.DUPLICATE)
    rows.log(run, "ValidateHarvestListError", "x", site_run, (BROKEN,))

    size = len("".join(tables.documents_csv(session, site_run.site_run_id)).encode())

    assert size / 4 < least_documents_size(session, site_run.site_run_id) <= size


def test_unchanged_documents_are_added_where_asked_for(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INSERTED)
    rows.unchanged(run, site_run, ("alder.4", 2, 3), ("alder.5", 1, 1))

    table = read(tables.documents_csv(session, site_run.site_run_id, unchanged=True))

    assert [(row["docid"], row["outcome"], row["repository_revision"]) for row in table] == [
        ("alder.1.1", "inserted", ""),
        ("alder.4.2", "unchanged", "3"),
        ("alder.5.1", "unchanged", "1"),
    ]


def test_findings_about_the_list_are_in_the_table(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"), "list-failed")
    finding = Finding("list.revision", "Not a whole number.", line=31, docid="alder.9.two")
    rows.log(run, "ValidateHarvestListError", "x", site_run, (finding,))

    (row,) = read(tables.documents_csv(session, site_run.site_run_id))

    assert (row["docid"], row["outcome"], row["rule"], row["line"]) == ("alder.9.two", "", "list.revision", "31")


@on_one_database
@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " =", "\uff1d"])
def test_no_cell_starts_a_formula(session: Session, rows: JournalRows, start: str) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    formula = f"{start}HYPERLINK(1)"
    finding = Finding("x", formula, formula, excerpt=formula, xpath=formula)
    document_id = formula.strip() if formula.isascii() else "plain.1"
    rows.document(run, site_run, document_id, 1, OutcomeKind.INVALID, finding, url=formula)

    for table in (tables.documents_csv(session, site_run.site_run_id), tables.log_csv(session, run.run_id)):
        (row,) = read(table)
        assert row["docid"].startswith("'") is formula.isascii()
        assert not [cell for cell in row.values() if cell.lstrip()[:1] in tuple("=+-@\uff1d")]


@on_one_database
def test_no_cell_has_the_login_of_a_url(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    rows.log(run, "HarvesterStartup", "https://anna:secret@example.org/x was not found.")

    (row,) = read(tables.log_csv(session, run.run_id))

    assert row["log_message"] == "https://example.org/x was not found."


def test_the_log_table_has_every_row_of_the_run_and_of_no_other(session: Session, rows: JournalRows) -> None:
    other = rows.run()
    rows.log(other, "HarvesterStartup")
    run = rows.run()
    rows.log(run, "HarvesterStartup", 'The run began, with a comma and a "quote".')
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 7, OutcomeKind.INVALID, BROKEN)

    table = read(tables.log_csv(session, run.run_id))

    assert [(row["operation"], row["operation_level"], row["site"], row["docid"]) for row in table] == [
        ("HarvesterStartup", "info", "", ""),
        ("ValidateDocError", "error", "alder-creek", "alder.1.7"),
    ]
    assert table[0]["log_message"] == 'The run began, with a comma and a "quote".'
    assert table[0]["logged_at_utc"] == "2026-11-20 02:30:00"


def test_a_long_table_is_streamed(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    common = {
        "harvest_date": TODAY,
        "logged_at": NOW,
        "status": 0,
        "message": "x" * 200,
        "harvest_operation_code": "InsertDocSuccess",
        "site_schedule_id": site_run.site_schedule_id,
        "site_run_id": site_run.site_run_id,
        "run_id": run.run_id,
        "revision": 1,
        "outcome": "inserted",
    }
    session.execute(insert(HarvestLog), [{**common, "document_id": f"alder.{number}"} for number in range(20_000)])
    session.expunge_all()

    tracemalloc.start()
    lines = sum(chunk.count("\r\n") for chunk in tables.documents_csv(session, site_run.site_run_id))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert lines == 20_001
    assert peak < 10_000_000
