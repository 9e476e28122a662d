"""The pipeline in the two reports: numbers, reasons and examples, and silence where there is nothing to say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy.orm import Session

from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.database.models import CatalogueDocument
from metaharvest.model import OutcomeKind
from metaharvest.model.kinds import StepState
from metaharvest.reports import compose
from support.databases import on_one_database
from support.journal_rows import NAMED, NOW, JournalRows
from support.pipeline_steps import add_failure, add_step

NO_LINK, LOGIN = "full-text.no-link", "full-text.login"


def settings_with(**pipeline: Any) -> Settings:
    return Settings.model_validate(
        {
            "harvester": {"name": "NAME", "administrators": ["steward@example.org"]},
            "mail": {"sender": "harvester@example.org"},
            "pipeline": {"enabled": True, **pipeline},
        }
    )


@pytest.fixture
def site_run(session: Session, rows: JournalRows) -> Any:
    """A harvest of a site with seven documents in the catalogue, four of which lead to no file."""
    run, site = rows.run(), rows.site("alder")
    made = rows.site_run(run, site)
    rows.document(run, made, "a.1", 1, OutcomeKind.INSERTED)
    other = rows.site("birch")
    for number in range(1, 9):
        session.add(
            CatalogueDocument(
                catalogue_document_id=number,
                document_id=f"a.{number}",
                item_identifier=f"a.{number}",
                document_type="urn:dc",
                revision=1,
                sha256="",
                title=f"Paper number {number}",
                site_schedule_id=(other if number == 8 else site).site_schedule_id,
                deleted=False,
                changed_at=datetime(2026, 11, 20, tzinfo=UTC),
                change_seq=number,
            )
        )
    session.flush()
    for number in (1, 2, 3, 8):
        add_failure(session, f"a.{number}", NO_LINK, "It has no address.")
    add_failure(session, "a.4", LOGIN, "A login.")
    add_step(session, "a.5", "full-text", StepState.DONE)
    add_step(session, "a.6", "full-text", StepState.SKIPPED)
    add_step(session, "a.7", "full-text", StepState.WAITING)
    session.flush()
    return made


def words(text: str) -> str:
    return " ".join(text.split())


def site_text(session: Session, site_run: Any, settings: Settings) -> tuple[str, str]:
    report = compose.site_report(session, site_run.site_run_id, ReportContext(settings, NAMED, NOW))
    return words(report.text), words(report.html)


def admin_text(session: Session, site_run: Any, settings: Settings) -> tuple[str, str]:
    report = compose.admin_report(session, site_run.run_id, ReportContext(settings, NAMED, NOW))
    return words(report.text), words(report.html)


def test_contacts_read_which_records_lead_to_no_file(session: Session, site_run: Any) -> None:
    text, page = site_text(session, site_run, settings_with())
    assert "4 of 5 records lead to no file (as of 2026-11-20 02:30 UTC)." in text
    assert "- The record leads to no file: 3 documents such as: Paper number 1 Paper number 2 What to do:" in text
    assert "- The file needs a login: 1 document such as: Paper number 4 What to do: Open the file" in text
    assert "4 of 5 records lead to no file" in page
    assert "3 documents, such as Paper number 1; Paper number 2" in page
    assert "number 8" not in text


@on_one_database
def test_contacts_read_nothing_where_nobody_looks_for_files_or_all_are_there(session: Session, site_run: Any) -> None:
    for settings in (settings_with(enabled=False), settings_with(full_text=False)):
        assert "no file" not in "".join(site_text(session, site_run, settings))
    session.query(CatalogueDocument).update({"site_schedule_id": None})
    assert "no file" not in "".join(site_text(session, site_run, settings_with()))


def test_administrators_read_how_far_the_pipeline_is(session: Session, site_run: Any) -> None:
    text, page = admin_text(session, site_run, settings_with())
    assert "before its run of this night (as of 2026-11-20 02:30 UTC):" in text
    assert "full-text 1 done, 1 waiting, 5 failed" in text
    assert "- The record leads to no file: full-text, 4 documents What to do:" in text
    assert text.index("4 documents") < text.index("The file needs a login: full-text, 1 document")
    assert "1 done, 1 waiting, 5 failed" in page
    assert "The pipeline" not in admin_text(session, site_run, settings_with(enabled=False))[0]


@on_one_database
def test_administrators_read_their_own_remedy(session: Session, site_run: Any) -> None:
    add_failure(session, "a.1", "extraction.file-missing", "The file is gone.", stage="extraction")
    session.flush()
    text, _page = admin_text(session, site_run, settings_with())
    assert "`metaharvest pipeline retry extraction` lets the next run fetch missing files" in text
    assert "You need to do nothing" not in text


@on_one_database
def test_stages_that_are_switched_off_are_in_no_report(session: Session, site_run: Any) -> None:
    text, _page = admin_text(session, site_run, settings_with(full_text=False))
    assert "All is well: nothing waits, and nothing failed" in text
    assert "full-text" not in text


@on_one_database
def test_administrators_read_one_line_if_all_is_well(session: Session, rows: JournalRows) -> None:
    made = rows.site_run(rows.run(), rows.site("alder"))
    text, _ = admin_text(session, made, settings_with())
    assert "All is well: nothing waits, and nothing failed (as of 2026-11-20 02:30 UTC)." in text
    assert "0 done" not in text
