"""SQLite's plans of statements at the end of a harvest: they read the few rows that matter, and no others."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy.orm import Session

from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.config.target_settings import NamedTarget, NamedTargets
from metaharvest.ledger.deletions import waiting_deletions
from metaharvest.ledger.retries import failing
from metaharvest.model import Site
from metaharvest.reports.admin_view import admin_view
from support.journal_rows import JournalRows, new_database
from support.query_plans import sqlite_plans

OF_STATE = "SEARCH harvest_document USING INDEX ix_harvest_document_state (state=? AND site_schedule_id=?)"
WHOLE_LOG_OF_RUN = "SEARCH harvest_log USING INDEX ix_harvest_log_run (run_id=?)"


def test_the_end_of_a_sweep_reads_only_records_in_a_state_that_matters() -> None:
    plans = sqlite_plans(new_database(), lambda session: list(failing(session, 1, 1)))
    plans += sqlite_plans(new_database(), lambda session: waiting_deletions(session, Site(1, "a", "u", ()), 1))
    assert [line for line in plans if "harvest_document" in line] == [OF_STATE] * 3


def test_the_report_of_a_run_does_not_read_the_rows_of_its_documents() -> None:
    engine = new_database()
    with Session(engine) as session:
        run = JournalRows(session).run()
        session.commit()
    context = ReportContext(Settings(), NamedTargets(NamedTarget("")), datetime(2026, 11, 29, tzinfo=UTC))
    plans = sqlite_plans(engine, lambda session: admin_view(session, session.merge(run), context))
    assert "SEARCH harvest_log USING INDEX ix_harvest_log_run (run_id=? AND site_run_id=?)" in plans
    assert WHOLE_LOG_OF_RUN not in plans
