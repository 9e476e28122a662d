"""Long lists come in pages: each row is on one page, also if rows are added between two pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import islice

import pytest
from sqlalchemy import delete, event, text
from sqlalchemy.orm import Session

from metaharvest.database.models import (
    DocumentTransfer,
    HarvestDocument,
    HarvestSiteSchedule,
    ReportOutbox,
    SiteProblem,
)
from metaharvest.model import DocumentState, Finding, OutcomeKind
from metaharvest.queries import document_search, documents
from metaharvest.queries.document_search import count_with_rule, search_documents
from metaharvest.queries.documents import (
    SORTED,
    DocumentFilter,
    RowCount,
    document_count,
    document_page,
    document_rows,
)
from metaharvest.queries.log import LogFilter, log_entries
from metaharvest.queries.outbox import newest_reports
from metaharvest.queries.runs import run_record, run_summaries, with_trends
from metaharvest.queries.sites import registered_sites
from metaharvest.queries.trends import harvests, newest_site_runs
from support.databases import TestDatabase
from support.journal_rows import NOW, TODAY, JournalRows


def test_a_page_of_runs_begins_after_the_last_one(session: Session, rows: JournalRows) -> None:
    for _ in range(5):
        rows.run()
    first = run_summaries(session, 2)
    rows.run()
    second = run_summaries(session, 2, after=first[-1].run_id)
    third = run_summaries(session, 2, after=second[-1].run_id)
    assert [[run.run_id for run in page] for page in (first, second, third)] == [[5, 4], [3, 2], [1]]


def test_a_page_of_reports_begins_after_the_last_one(session: Session, rows: JournalRows) -> None:
    run = rows.run()

    def report(number: int) -> None:
        same = {"run_id": run.run_id, "kind": "site", "created_at": NOW, "content": b""}
        session.add(ReportOutbox(idempotency_key=str(number), message_id="", subject=str(number), **same))
        session.flush()

    for number in range(1, 6):
        report(number)
    first = newest_reports(session, 2)
    report(6)
    second = newest_reports(session, 2, after=first[-1].report_id)
    third = newest_reports(session, 2, after=second[-1].report_id)
    assert [[each.subject for each in page] for page in (first, second, third)] == [["5", "4"], ["3", "2"], ["1"]]


def test_a_page_of_the_log_has_the_rows_before_the_first_one(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    for number in range(1, 6):
        rows.log(run, "GetDocError", str(number), findings=(Finding("http.status", "no"),) * 2)
    first = list(log_entries(session, LogFilter(run_id=1, limit=2)))
    rows.log(run, "GetDocError", "6")
    second = list(log_entries(session, LogFilter(run_id=1, limit=2, after=first[0].log_id)))
    third = list(log_entries(session, LogFilter(run_id=1, limit=2, after=second[0].log_id)))
    assert [[entry.message for entry in page] for page in (first, second, third)] == [["4", "5"], ["2", "3"], ["1"]]


def test_transfers_before_the_first_run_are_on_the_last_page_of_the_log(session: Session, rows: JournalRows) -> None:
    for number in range(4):
        when = {"transferred_on": TODAY, "transferred_at": NOW, "transferred_by": "kim"}
        session.add(DocumentTransfer(document_id=f"a.{number}", to_site="fern", message="given", **when))
    run = rows.run()
    for number in range(3):
        rows.log(run, "GetDocError", str(number))
    wanted = LogFilter(since=TODAY, limit=2)
    first = list(log_entries(session, wanted))
    second = list(log_entries(session, replace(wanted, after=first[0].log_id)))
    assert [entry.message for entry in first] == ["1", "2"]
    assert [entry.message for entry in second] == [*["given"] * 4, "0"]


def test_a_page_of_a_site_s_harvests_begins_after_the_last_one(session: Session, rows: JournalRows) -> None:
    alder = rows.site("alder")
    for night in range(5):
        rows.site_run(rows.run(TODAY + timedelta(days=night)), alder, kind="retry" if night == 3 else "scheduled")
    first = harvests(session, 1, 2)
    rows.site_run(rows.run(), alder)
    second = harvests(session, 1, 2, after=first[-1].site_run_id)
    third = harvests(session, 1, 2, after=second[-1].site_run_id)
    assert [[each.run_id for each in page] for page in (first, second, third)] == [[5, 4], [3, 2], [1]]
    assert [each.is_retry for each in first] == [False, True]


@pytest.mark.parametrize("rule", [None, "eml.title"])
def test_a_page_of_documents_begins_after_the_last_one(session: Session, rows: JournalRows, rule: str | None) -> None:
    run, listed = rows.run(), [("birch", "b.1", 1), ("birch", "b.1", 2), ("Alder", "a.2", 1), ("Alder", "a.1", 1)]
    site_runs = {name: rows.site_run(run, rows.site(name)) for name in ("birch", "Alder")}

    def fail(site: str, document_id: str, revision: int) -> None:
        rows.ledger(site_runs[site], document_id, revision, OutcomeKind.INVALID, title=None)
        rows.document(run, site_runs[site], document_id, revision, OutcomeKind.INVALID, Finding("eml.title", "no"))
        site_runs[site].status = "running"  # a finding of a site run that has ended is a problem, too

    for each in listed:
        fail(*each)
    wanted, found, after = DocumentFilter(rule=rule), [], None
    for _ in listed:
        [row] = document_rows(session, wanted, TODAY, limit=1, after=after)
        found.append((row.site, row.docid))
        after = row.cursor
        fail("Alder", f"A.{len(found)}", 1)
    assert found == [("Alder", "a.1.1"), ("Alder", "a.2.1"), ("birch", "b.1.1"), ("birch", "b.1.2")]
    assert list(islice(document_rows(session, wanted, TODAY, after=after), 1)) == []


def test_pages_of_documents_skip_none_while_others_go(session: Session, rows: JournalRows) -> None:
    site_run, listed = rows.site_run(rows.run(), rows.site("alder")), {f"a.{number}" for number in range(SORTED)}
    session.add_all(
        HarvestDocument(
            site_schedule_id=site_run.site_schedule_id,
            document_id=document_id,
            revision=1,
            document_url="",
            document_type="",
            state=DocumentState.HELD.value,
        )
        for document_id in listed
    )
    wanted = DocumentFilter("alder")
    page, after = document_page(session, wanted, TODAY, 100, None)
    found = [each.document_id for each in page]
    session.execute(delete(HarvestDocument).where(HarvestDocument.document_id.in_(found[:2])))
    while after is not None:
        page, after = document_page(session, wanted, TODAY, 100, after)
        found += [each.document_id for each in page]
    assert sorted(found) == sorted(listed)
    session.execute(delete(HarvestDocument).where(HarvestDocument.document_id.not_in(["a.2", "a.10"])))
    page, after = document_page(session, wanted, TODAY, 2, None)
    assert ([each.document_id for each in page], after) == (["a.2", "a.10"], None)


def test_each_page_of_documents_knows_their_number(
    session: Session, rows: JournalRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rows.run()
    site_runs = {name: rows.site_run(run, rows.site(name)) for name in ("alder", "birch")}
    for number in range(6):
        site_run = site_runs["birch" if number > 3 else "alder"]
        kind = OutcomeKind.INVALID if number % 2 else OutcomeKind.INSERTED
        since = TODAY if number % 2 else None
        rows.ledger(site_run, f"a.{number}", 1, kind, title=f"Rain {number}", failing_since=since)
        if since:
            problem = {"site_schedule_id": site_run.site_schedule_id, "document_id": f"a.{number}", "rule": "eml.title"}
            night = {"first_seen": TODAY, "last_seen": TODAY, "first_site_run": 1, "last_site_run": 1, "nights": 1}
            state = {"state": "open", "needs_attention": True, "detail_log_id": 0}
            session.add(SiteProblem(fingerprint=str(number), **problem, **night, **state))
    rows.ledger(site_runs["alder"], "a.1", 2, OutcomeKind.INVALID, title="Rain 1", failing_since=TODAY)
    any_document, failing, of_rule = DocumentFilter(), DocumentFilter(failing=True), DocumentFilter(rule="eml.title")

    def counts() -> list[RowCount]:
        first = search_documents(session, "rain", any_document, TODAY, limit=2)
        assert first.next is not None
        return [
            document_count(session, any_document, TODAY),
            document_count(session, DocumentFilter("birch"), TODAY),
            document_count(session, failing, TODAY),
            count_with_rule(session, of_rule, TODAY),
            count_with_rule(session, replace(of_rule, site_ids={site_runs["birch"].site_schedule_id}), TODAY),
            first.count,
            search_documents(session, "rain", any_document, TODAY, limit=2, after=first.next).count,
            search_documents(session, "rain", replace(any_document, site_ids={1}), TODAY, limit=2).count,
            search_documents(session, "a.1", any_document, TODAY).count,
        ]

    assert [each.number for each in counts()] == [7, 2, 4, 3, 1, 7, 7, 5, 2]
    assert all(each.is_all for each in counts())
    for module in (documents, document_search):
        monkeypatch.setattr(module, "MOST_COUNTED", 2)
    limited = [(each.number, each.is_all) for each in counts()]
    assert limited == [(2, False), (2, True), *[(2, False)] * 2, (1, True), *[(2, False)] * 3, (2, True)]


def test_the_number_of_queries_about_sites_does_not_grow_with_them(session: Session, rows: JournalRows) -> None:
    queries = []
    event.listen(session.get_bind(), "before_cursor_execute", lambda *arguments: queries.append(arguments[2]))
    numbers = []
    for more in (2, 20):
        sites = [rows.site(f"site{more}-{number}") for number in range(more)]
        for night in range(7):
            run = rows.run(TODAY + timedelta(days=night))
            for site in sites:
                rows.site_run(run, site, rehearsal=night == 6, access_error=night, listed=10)
        queries.clear()
        listed = registered_sites(session, TODAY)
        with_trends(session, run_record(session, run.run_id))
        numbers.append(len(queries))
    assert numbers[0] == numbers[1]
    assert len(listed) == 22
    trend = listed[0].trend
    assert [each.failing for each in trend] == [2, 3, 4, 5, 6]
    assert (trend[-1].rehearsal, listed[0].last_run_id) == (True, trend[-2].run_id)


def test_a_run_has_the_trend_of_each_site_up_to_it(session: Session, rows: JournalRows) -> None:
    alder, birch = rows.site("alder"), rows.site("birch")
    for night in range(8):
        run = rows.run(TODAY + timedelta(days=night))
        rows.site_run(run, alder, invalid=night, listed=10)
        rows.site_run(run, alder, kind="retry", invalid=100)
        if night % 2:
            rows.site_run(run, birch, invalid=night, listed=10)
    sites = {site.site: site for site in with_trends(session, run_record(session, 6)).sites if site.kind != "retry"}
    assert [each.failing for each in sites["alder"].trend] == [1, 2, 3, 4, 5]
    assert [each.failing for each in sites["birch"].trend] == [1, 3, 5]


def test_a_broken_row_is_listed_as_it_is(session: Session, rows: JournalRows) -> None:
    rows.site("alder", unit="moons")
    session.add(HarvestSiteSchedule(name="birch", documentlisturl="https://example.org/", contact_email="a@b.example"))
    session.flush()
    alder, birch = registered_sites(session, TODAY)
    assert (alder.is_broken, alder.unit, len(alder.problems)) == (True, "moons", 1)
    assert (birch.is_broken, birch.problems, birch.trend) == (False, (), ())


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_mariadb_looks_up_the_newest_site_runs_in_an_index(database: TestDatabase) -> None:
    assert database.engine is not None
    with Session(database.engine) as session:
        rows, read = JournalRows(session), text("SHOW SESSION STATUS LIKE 'Handler_read_next'")
        run, numbers = rows.run(), {}
        for site in [rows.site(f"site-{number}") for number in range(20)]:
            for _ in range(20):
                numbers[site.site_schedule_id] = rows.site_run(run, site).site_run_id
        before = session.execute(read).one()
        assert newest_site_runs(session) == numbers
        after = session.execute(read).one()
        assert int(after[1]) - int(before[1]) < len(numbers) * 20
