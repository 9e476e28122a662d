"""No page reads a large table from end to end: the plan of each statement of its read models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from benchmarks.large_installation import TODAY, Size, fill, indices_to_drop
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.selection import Hidden
from metaharvest.config.kinds import STAGES
from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.config.target_settings import NamedTarget, NamedTargets
from metaharvest.database.models import HarvestLog, HarvestRun
from metaharvest.queries.changes import changed_sites, changes
from metaharvest.queries.decisions import DecisionFilter, decisions
from metaharvest.queries.departures import missing_records
from metaharvest.queries.document_search import count_with_rule, documents_with_rule, search_documents
from metaharvest.queries.documents import DocumentFilter, document_count, document_rows, documents_with
from metaharvest.queries.figures import Per, figures, site_year, year_figures
from metaharvest.queries.history import document_history
from metaharvest.queries.log import LogFilter, log_entries
from metaharvest.queries.outbox import ReportFilter, newest_reports, site_of_report
from metaharvest.queries.pipeline import FailureFilter, failed_documents
from metaharvest.queries.problems import documents_of_rule, open_problems, rule_trends, site_problems
from metaharvest.queries.public_sites import public_log
from metaharvest.queries.requests import RequestFilter, requests
from metaharvest.queries.runs import run_record, run_summaries, with_trends
from metaharvest.queries.sites import SiteSelection, registered_site, registered_sites, site_page
from metaharvest.queries.tonight import problem_groups, tonight
from metaharvest.queries.trends import harvests, named_failed_sites
from metaharvest.reports.admin_view import admin_view
from metaharvest.reports.findings import attention
from metaharvest.reports.tables import log_csv
from metaharvest.sites.overdue import overdue_sites
from support.databases import Servers, open_sqlite_file
from support.query_plans import executed, full_scans, sqlite_plans

pytestmark = pytest.mark.slow

SIZE = Size(sites=60, documents=60, nights=30, logged=10)
CONTEXT = ReportContext(Settings(), NamedTargets(NamedTarget("")), datetime(2026, 11, 29, tzinfo=UTC))
READ_MODELS: dict[str, Callable[[Session], object]] = {
    "tonight": lambda session: tonight(session, TODAY),
    "the problems of tonight": lambda session: problem_groups(session, 30, 10),
    "what changed": lambda session: changed_sites(session, 28, 30, 5, after=5),
    "the list of sites": lambda session: site_page(session, SiteSelection(failing=True), TODAY),
    "all sites": lambda session: registered_sites(session, TODAY),
    "a site": lambda session: registered_site(session, "site-4", TODAY),
    "the harvests of a site": lambda session: harvests(session, 4, 20, after=500),
    "the year of a site": lambda session: site_year(session, 4, TODAY - timedelta(days=365), TODAY),
    "the problems of a site": lambda session: site_problems(
        session, 4, 20, after=site_problems(session, 4, 1)[0].problem_id
    ),
    "the site of a report": lambda session: site_of_report(session, 5),
    "the changes of a site": lambda session: changes(session, 29, 30, "site-4"),
    "the decisions about a site": lambda session: list(decisions(session, DecisionFilter(site_id=4), 20)),
    "the requests for a site": lambda session: requests(session, RequestFilter(4)),
    "missing records": lambda session: missing_records(session, 4, after=5),
    "runs": lambda session: run_summaries(session, 20, after=25),
    "a run": lambda session: with_trends(session, run_record(session, 30)),
    "the log of a run": lambda session: list(log_entries(session, LogFilter(run_id=30, limit=20))),
    "the log of a run as a table": lambda session: list(log_csv(session, 30)),
    "the log of a site from a day on": lambda session: list(
        log_entries(session, LogFilter(site="site-4", since=TODAY - timedelta(days=5), limit=5))
    ),
    "the figures of a period that cuts weeks": lambda session: figures(session, TODAY - timedelta(days=17), TODAY),
    "the log of a site": lambda session: list(log_entries(session, LogFilter(site="site-4", limit=5))),
    "failing documents": lambda session: list(document_rows(session, DocumentFilter(failing=True), TODAY, limit=20)),
    "documents of a site": lambda session: list(document_rows(session, DocumentFilter("site-4"), TODAY, limit=20)),
    "overdue sites": lambda session: overdue_sites(session, TODAY + timedelta(days=90)),
    "a document": lambda session: document_history(session, "net-3.7", TODAY),
    "the figures of a year": lambda session: figures(session, TODAY - timedelta(days=365), TODAY, Per.MONTH),
    "the figures of sites": lambda session: figures(session, TODAY - timedelta(days=18), TODAY, Per.SITE),
    "the year": lambda session: year_figures(session, TODAY - timedelta(days=365), TODAY),
    "a search by name": lambda session: search_documents(session, "net-3.7", DocumentFilter("site-4"), TODAY, limit=20),
    "a search by rule": lambda session: documents_with_rule(session, DocumentFilter(rule="http.status"), TODAY),
    "the number of documents": lambda session: document_count(session, DocumentFilter(failing=True), TODAY),
    "the number of documents with a rule": lambda session: count_with_rule(
        session, DocumentFilter(rule="http.status"), TODAY
    ),
    "changes between two runs": lambda session: changes(session, 25, 30),
    "problems": open_problems,
    "rules": lambda session: rule_trends(session, TODAY),
    "a rule": lambda session: documents_of_rule(session, "http.status"),
    "failed sites": lambda session: named_failed_sites(session, TODAY),
    "the outbox": lambda session: newest_reports(session, 20, after=500),
    "mails that were not delivered": lambda session: newest_reports(session, 20, ReportFilter(undelivered=True)),
    "the mails of a site": lambda session: newest_reports(session, 20, ReportFilter(site="site-4")),
    "failures of the pipeline": lambda session: failed_documents(session, FailureFilter(), STAGES.names(), 20, after=5),
    "failures at a stage": lambda session: failed_documents(session, FailureFilter(), ["full-text"], 20),
    "the mails about a document": lambda session: newest_reports(session, 20, ReportFilter(document="net-3.7")),
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """A small database of the shape of a large one. SQLite plans without statistics, as installations have none."""
    if request.param == "sqlite":
        file: Path = tmp_path_factory.mktemp("plans") / "metaharvest.db"
        engine = open_sqlite_file(file)
        fill(engine, SIZE)
        yield engine
        engine.dispose()
    else:
        with servers.bare("postgresql") as engine:
            fill(engine, SIZE)
            yield engine


@pytest.mark.parametrize("name", READ_MODELS)
def test_no_statement_reads_a_large_table_from_end_to_end(filled: Engine, name: str) -> None:
    found = full_scans(filled, READ_MODELS[name])
    assert not found, "\n".join(found)


def test_the_public_log_reads_the_catalogue_by_an_index_only(filled: Engine) -> None:
    assert {each.split()[0] for each in full_scans(filled, lambda session: public_log(session, Hidden()))} <= {
        "catalogue_document"
    }


def test_the_report_of_a_run_reads_only_the_index_of_failing_documents(filled: Engine) -> None:
    found = full_scans(filled, lambda session: admin_view(session, session.get_one(HarvestRun, 30), CONTEXT))
    assert {each.split()[0] for each in found} <= {"harvest_document"}


def test_the_report_of_a_site_reads_no_findings_of_other_nights(filled: Engine) -> None:
    if filled.dialect.name != "sqlite":
        pytest.skip("PostgreSQL has statistics")
    site_run = (SIZE.nights - 1) * SIZE.sites + 4
    lines = sqlite_plans(filled, lambda session: attention(session, site_run, TODAY, 20))
    assert any("ix_harvest_detail_log_harvest_log_id" in line for line in lines)
    assert not [line for line in lines if "ix_harvest_detail_log_rule" in line]


def test_the_log_of_a_run_is_not_sorted(filled: Engine) -> None:
    if filled.dialect.name != "sqlite":
        pytest.skip("PostgreSQL has statistics")
    lines = sqlite_plans(filled, lambda session: list(log_csv(session, 30)))
    assert "USE TEMP B-TREE FOR ORDER BY" not in lines


def test_the_log_of_a_run_is_found_without_the_runs_before_it(filled: Engine) -> None:
    if filled.dialect.name != "postgresql":
        pytest.skip("only PostgreSQL looks for the lowest number from the first row on")
    with executed(filled) as statements, Session(filled) as session:
        list(log_csv(session, 30))
    with filled.connect() as connection:
        plans = [
            line
            for statement, values in statements
            for line in connection.exec_driver_sql(f"EXPLAIN (ANALYZE) {statement}", values).scalars()
        ]
    removed = [int(line.rpartition(":")[2]) for line in plans if "Rows Removed by Filter" in line]
    assert not removed


def test_findings_without_a_problem_are_looked_up(filled: Engine) -> None:
    """A rule may have a million findings that are problems."""
    if filled.dialect.name != "sqlite":
        pytest.skip("PostgreSQL has statistics")
    lines = sqlite_plans(filled, lambda session: documents_with(session, "eml.unit-undefined"))
    assert any("ix_harvest_detail_log_without_problem" in line for line in lines)


def test_a_large_installation_on_mariadb_keeps_its_indices() -> None:
    assert indices_to_drop("mariadb") == indices_to_drop("mysql") == []
    assert indices_to_drop("postgresql")


def test_a_statement_without_an_index_is_found(filled: Engine) -> None:
    def read(session: Session) -> object:
        return session.scalars(select(HarvestLog.message).where(HarvestLog.size == 1)).all()

    assert [each.split(":")[0] for each in full_scans(filled, read)] == ["harvest_log is read from end to end by"]
