"""The read models of the console: the night, the list of sites, the year of a site, rules over the nights."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDocument, ReportDelivery, ReportOutbox, SiteProblem
from metaharvest.queries.departures import missing_records
from metaharvest.queries.documents import DocumentFilter, document_rows
from metaharvest.queries.figures import site_year
from metaharvest.queries.problems import documents_of_rule, rule_trends
from metaharvest.queries.runs import newest_runs, run_summaries
from metaharvest.queries.sites import SiteOrder, SiteSelection, site_page
from metaharvest.queries.tonight import ProblemNumbers, Reason, State, problem_groups, problem_numbers, tonight
from metaharvest.queries.trends import named_failed_sites
from metaharvest.sites.overdue import overdue_sites
from support.journal_rows import NOW, TODAY, JournalRows

YESTERDAY = TODAY - timedelta(days=1)


def problem(session: Session, site_id: int, number: int, **columns: object) -> None:
    known = {
        "fingerprint": str(number), "document_id": f"alder.{number}", "rule": "http.status", "needs_attention": True,
        "detail_log_id": 0, "state": "open", "first_seen": YESTERDAY, "first_site_run": 1, "last_seen": TODAY,
        "last_site_run": 2, "nights": 2,
    }  # fmt: skip
    session.add(SiteProblem(site_schedule_id=site_id, **{**known, **columns}))
    session.flush()


def ledger(session: Session, site_id: int, number: int, **columns: object) -> None:
    known = {"document_url": f"https://alder.example.org/{number}.xml", "document_type": "eml", "to_delete": False}
    row = {**known, "document_id": f"alder.{number}", "revision": 1, **columns}
    session.add(HarvestDocument(site_schedule_id=site_id, **row))
    session.flush()


def test_without_a_run_the_night_says_so(session: Session) -> None:
    found = tonight(session, TODAY)
    assert (found.state, found.sentence) == (State.NONE, "There has been no run yet.")


def test_a_good_night_is_one_sentence(session: Session, rows: JournalRows) -> None:
    rows.site_run(rows.run(status="succeeded"), rows.site("alder"), listed=3, unchanged=3)
    found = tonight(session, TODAY)
    said = f"All is well: run 1 harvested 1 site on {TODAY}."
    assert (found.state, found.sentence, found.waiting, found.failed) == (State.WELL, said, (), ())
    assert tonight(session, TODAY, 2).sentence == f"{said} 2 matters wait for a decision."
    assert (found.next_harvest, found.number_next) == (TODAY + timedelta(days=1), 1)


def test_open_problems_of_a_removed_site_are_no_problems_of_the_night(session: Session, rows: JournalRows) -> None:
    alder = rows.site("alder")
    rows.site_run(rows.run(), alder, "with-errors")
    for site_id in (alder.site_schedule_id, 99):
        problem(session, site_id, 2 * site_id)
        problem(session, site_id, 2 * site_id + 1, first_site_run=0)
    assert problem_numbers(session, 1) == ProblemNumbers(1, 1, 0)
    found = problem_groups(session, 1, 10)
    assert [[(each.site, each.number) for each in groups] for groups in (found.new, found.still_open)] == [
        [("alder", 1)],
        [("alder", 1)],
    ]


def test_the_night_names_all_that_waits_for_a_person(session: Session, rows: JournalRows) -> None:
    alder, oak = rows.site("alder"), rows.site("oak", datenextharvest=TODAY - timedelta(days=9))
    rows.site("fern", updatefrequency=0)
    rows.site("ash", datenextharvest=TODAY - timedelta(days=9))
    first, run = rows.run(YESTERDAY, status="failed"), rows.run(status="with-errors")
    rows.site_run(first, oak, "list-failed", failure_reason="503")
    rows.site_run(run, alder, "with-errors", listed=4, invalid=2)
    rows.site_run(run, oak, "list-failed", failure_reason="503")
    ledger(session, alder.site_schedule_id, 1, state="to-confirm", to_delete=True, next_attempt=TODAY)
    problem(session, alder.site_schedule_id, 1, rule="target.other-site", first_site_run=2)
    problem(session, alder.site_schedule_id, 2)
    problem(session, alder.site_schedule_id, 3, state="fixed", ended_site_run=2, ended_on=TODAY)
    report = ReportOutbox(
        idempotency_key="1", kind="site", run_id=2, message_id="", subject="", content=b"", created_at=NOW
    )
    session.add(report)
    session.flush()
    session.add(ReportDelivery(report_id=1, recipient="a@b.example", status="refused", last_attempt_at=NOW))
    found = tonight(session, TODAY)
    assert len(found.waiting) == 5
    assert {each.reason: (each.site, str(each.action)) for each in found.waiting} == {
        Reason.DELETIONS: ("alder", "`metaharvest sites confirm alder`"),
        Reason.OWNERSHIP: ("alder", "`metaharvest documents --site alder --rule target.other-site`"),
        Reason.BROKEN: ("fern", "`metaharvest sites edit fern`"),
        Reason.OVERDUE: ("ash", "`metaharvest sites show ash`"),
        Reason.REFUSED_MAIL: (None, "`metaharvest reports resend --state refused`"),
    }
    assert [(each.site, each.failure_reason, each.failed_since) for each in found.failed] == [("oak", "503", YESTERDAY)]
    assert found.problems == ProblemNumbers(new=1, still_open=1, fixed=1)
    assert found.state is State.ATTENTION
    assert found.sentence == (
        f"Run 2 of {TODAY} needs attention: of 2 sites, 1 failed as a whole, 2 documents were not accepted, "
        "5 matters wait for a decision."
    )


def test_an_interrupted_harvest_counts_as_failed_in_each_list_and_a_stopped_one_in_none(
    session: Session, rows: JournalRows
) -> None:
    oak = rows.site("oak", datenextharvest=TODAY - timedelta(days=9))
    for number, status in enumerate(("succeeded", "stopped", "list-failed", "interrupted")):
        rows.site_run(rows.run(TODAY - timedelta(days=12 - number), status="with-errors"), oak, status)
    rows.run()
    [late], [failed] = overdue_sites(session, TODAY), named_failed_sites(session, TODAY)
    assert late.sentence.endswith("; the last 2 runs that tried could not harvest it.")
    assert (failed.status, failed.failed_since) == ("interrupted", TODAY - timedelta(days=10))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("list-failed", "of 1 site, 1 failed as a whole, 1 other site failed before."),
        ("succeeded", "1 other site failed before."),
    ],
)
def test_a_run_of_one_site_has_no_failed_sites_of_others(
    session: Session, rows: JournalRows, status: str, said: str
) -> None:
    alder, oak = rows.site("alder"), rows.site("oak")
    rows.site_run(rows.run(YESTERDAY, status="with-errors"), oak, "list-failed")
    rows.site_run(rows.run(TODAY, status="failed" if status == "list-failed" else "succeeded"), alder, status)
    assert tonight(session, TODAY).sentence == f"Run 2 of {TODAY} needs attention: {said}"


def test_the_totals_of_runs_are_those_of_their_site_runs(session: Session, rows: JournalRows) -> None:
    alder, oak = rows.site("alder"), rows.site("oak")
    for day in (YESTERDAY, TODAY):
        run = rows.run(day)
        rows.site_run(run, alder, "with-errors", listed=9, inserted=2, updated=1, unchanged=1, invalid=2, stale=3)
        rows.site_run(run, oak, "list-failed")
    rows.run()
    assert [each.totals for each in run_summaries(session, 9)] == [each.totals for each in newest_runs(session, 9)]
    assert [each.run_id for each in run_summaries(session, 1, after=3)] == [2]


@pytest.fixture
def sites(session: Session, rows: JournalRows) -> None:
    """Five sites: one that failed, one with a failing document, one overdue, one switched off, one broken."""
    last: dict[str, Any] = {"datelastharvest": YESTERDAY}
    failed = rows.site("alder", **last, options=json.dumps({"groups": ["north"]}))
    oai = json.dumps({"oai": {"origin": "oak"}})
    failing = rows.site("Oak", "kim@oak.example.org", **last, source_kind="oai-pmh", options=oai)
    overdue: dict[str, Any] = {
        "datenextharvest": TODAY - timedelta(days=9),
        "datelastharvest": TODAY - timedelta(days=10),
    }
    rows.site("fern", **overdue)
    rows.site("birch", enabled=False, datelastharvest=TODAY)
    rows.site("cedar", updatefrequency=0)
    run = rows.run()
    rows.site_run(run, failed, "failed", failure_reason="no answer")
    rows.site_run(run, failing, "with-errors", listed=2, invalid=1)
    ledger(session, failing.site_schedule_id, 1, outcome="invalid", failing_since=YESTERDAY)


@pytest.mark.usefixtures("sites")
@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (SiteSelection(), ["alder", "birch", "cedar", "fern", "Oak"]),
        (SiteSelection(state="off"), ["birch"]),
        (SiteSelection(state="broken"), ["cedar"]),
        (SiteSelection(kind="oai-pmh"), ["Oak"]),
        (SiteSelection(group="north"), ["alder"]),
        (SiteSelection(overdue=True), ["fern"]),
        (SiteSelection(failing=True), ["alder", "Oak"]),
        (SiteSelection(text="KIM@"), ["Oak"]),
        (SiteSelection(order=SiteOrder.FAILING), ["alder", "Oak", "birch", "cedar", "fern"]),
        (SiteSelection(order=SiteOrder.LAST_SUCCESS), ["cedar", "fern", "alder", "Oak", "birch"]),
        (SiteSelection(order=SiteOrder.NEXT, state="waiting"), ["alder", "Oak"]),
    ],
)
def test_sites_are_selected_and_sorted(session: Session, wanted: SiteSelection, names: list[str]) -> None:
    found = site_page(session, wanted, TODAY)
    assert ([each.site for each in found.sites], found.number) == (names, len(names))


@pytest.mark.usefixtures("sites")
def test_sites_come_in_pages(session: Session) -> None:
    first = site_page(session, SiteSelection(), TODAY, limit=3)
    second = site_page(session, SiteSelection(), TODAY, limit=3, after=first.next)
    assert [each.site for each in (*first.sites, *second.sites)] == ["alder", "birch", "cedar", "fern", "Oak"]
    assert (first.number, second.next, first.groups) == (5, None, ("north",))
    assert (first.sites[0].failed and first.sites[0].failed.failure_reason, second.sites[1].failing) == ("no answer", 1)


@pytest.mark.usefixtures("sites")
def test_a_page_of_sites_begins_at_its_place_in_each_order(session: Session) -> None:
    for order in SiteOrder:
        every = [each.site for each in site_page(session, SiteSelection(order=order), TODAY).sites]
        found, after = list[str](), None
        while after or not found:
            page = site_page(session, SiteSelection(order=order), TODAY, limit=2, after=after)
            found, after = [*found, *(each.site for each in page.sites)], page.next
        assert found == every, order


@pytest.mark.usefixtures("sites")
@pytest.mark.parametrize(
    "changed", ["DELETE FROM harvest_site_schedule", "UPDATE harvest_site_schedule SET name = 'a'"]
)
def test_no_site_is_skipped_or_shown_again_if_the_last_one_of_a_page_changes(session: Session, changed: str) -> None:
    first = site_page(session, SiteSelection(), TODAY, limit=3)
    assert [each.site for each in first.sites] == ["alder", "birch", "cedar"]
    session.execute(text(f"{changed} WHERE name = 'cedar'"))
    second = site_page(session, SiteSelection(), TODAY, limit=3, after=first.next)
    assert [each.site for each in second.sites] == ["fern", "Oak"]


@pytest.mark.usefixtures("sites")
def test_a_place_of_another_list_leads_to_the_first_page(session: Session) -> None:
    for after in ("7", "[7]", '["a"]', '["a", "b"]', "[true, 1]", "[" * 100_000, "9" * 5000, "²", "null", "{}"):
        assert site_page(session, SiteSelection(), TODAY, limit=1, after=after).sites[0].site == "alder"


def test_the_year_of_a_site_has_every_week(session: Session, rows: JournalRows) -> None:
    alder = rows.site("alder")
    for back, status, listed in ((20, "succeeded", 5), (2, "with-errors", 6), (1, "list-failed", 0)):
        run = rows.run(TODAY - timedelta(days=back))
        rows.site_run(run, alder, status, listed=listed, inserted=listed and 1, invalid=listed and 2)
    rows.site_run(rows.run(), alder, "with-errors", kind="retry", listed=1, inserted=9)
    weeks = site_year(session, alder.site_schedule_id, TODAY - timedelta(days=20), TODAY)
    shown = [(each.harvests, each.failed_harvests, each.listed, each.failing, each.inserted) for each in weeks]
    assert shown == [(1, 0, 5, 2, 1), (0, 0, None, None, 0), (2, 1, 6, 2, 1)]
    assert (weeks[0].first_day, weeks[-1].last_day) == (TODAY - timedelta(days=20), TODAY)
    assert sum(each.took_seconds for each in weeks) == 600.0


def test_missing_records_are_named_page_by_page(session: Session, rows: JournalRows) -> None:
    alder = rows.site("alder").site_schedule_id
    for number in range(3):
        ledger(session, alder, number, state="missing", missing_since=YESTERDAY, title=f"Plot {number}")
    ledger(session, alder, 9, state="held")
    first = missing_records(session, alder, 2)
    second = missing_records(session, alder, 2, after=first[-1].entry_id)
    assert [each.docid for each in (*first, *second)] == ["alder.0.1", "alder.1.1", "alder.2.1"]
    assert (first[0].title, first[0].missing_since) == ("Plot 0", YESTERDAY)


def test_a_rule_has_a_trend_and_documents_with_titles(session: Session, rows: JournalRows) -> None:
    alder = rows.site("alder").site_schedule_id
    problem(session, alder, 1)
    problem(session, alder, 2, first_seen=TODAY)
    problem(session, alder, 3, state="fixed", first_seen=TODAY - timedelta(days=5), ended_on=YESTERDAY)
    problem(session, alder + 1, 4)
    ledger(session, alder, 1, title="Frogs of the plot")
    [rule] = rule_trends(session, TODAY)
    assert (rule.total.number_of_documents, rule.trend[-4:]) == (2, (1, 1, 1, 2))
    first = documents_of_rule(session, "http.status", limit=1)
    second = documents_of_rule(session, "http.status", limit=9, after=first[-1].cursor)
    shown = [(each.site, each.document_id, each.title) for each in (*first, *second)]
    assert shown == [("alder", "alder.1", "Frogs of the plot"), ("alder", "alder.2", None)]


def test_a_document_with_an_open_problem_stays_with_its_rule_after_its_log_is_deleted(
    session: Session, rows: JournalRows
) -> None:
    alder = rows.site("alder").site_schedule_id
    for number, state in enumerate(("open", "gone")):
        problem(session, alder, number, state=state)
        ledger(session, alder, number)
    [found] = document_rows(session, DocumentFilter(rule="http.status"), TODAY)
    assert (found.document_id, found.findings) == ("alder.0", ())
