"""The figures of all sites in a period, and the most frequent problems."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestRun, HarvestSiteRun, HarvestSiteSchedule, SiteProblem, SiteTotals
from metaharvest.errors import MetaharvestError
from metaharvest.journal.totals import keep_totals, keep_totals_of_run
from metaharvest.model import OutcomeKind
from metaharvest.queries.figures import Figures, Per, figures
from metaharvest.queries.problems import open_problems
from metaharvest.queries.site_totals import Span
from support.journal_rows import NOW, TODAY, JournalRows, new_database

YEAR = date(2026, 1, 1), date(2026, 12, 31)


@pytest.fixture(params=["site runs", "kept totals"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """Alder on two nights in two months, moss on one, with a retry; a list that failed; a night of another year."""
    engine = new_database()
    with Session(engine) as opened:
        rows = JournalRows(opened)
        alder, moss = rows.site("alder"), rows.site("moss")
        for days, site, status in ((400, alder, "succeeded"), (30, alder, "succeeded"), (1, moss, "list-failed")):
            night = timedelta(days=days)
            run = rows.run(TODAY - night, NOW - night, "succeeded")
            site_run = rows.site_run(run, site, status)
            if status == "succeeded":
                rows.document(run, site_run, f"a.{days}", 1, OutcomeKind.INSERTED, size=1000)
        run = rows.run(status="succeeded")
        site_run = rows.site_run(run, alder)
        rows.document(run, site_run, "a.1", 2, OutcomeKind.UPDATED, size=500)
        rows.document(run, site_run, "a.2", 1, OutcomeKind.INVALID)
        retry = rows.site_run(run, moss, kind="retry")
        rows.document(run, retry, "m.1", 1, OutcomeKind.INSERTED, size=10)
        if request.param == "kept totals":
            keep_totals(opened, [TODAY - timedelta(days=days) for days in (400, 30, 1)])
        yield opened
    engine.dispose()


def test_the_figures_of_a_year_leave_out_other_years(session: Session) -> None:
    [year] = figures(session, *YEAR)
    assert year == Figures(
        *YEAR, None, 3, 2, 3, 1, inserted=2, updated=1, deleted=0, failing=1, bytes=1510, took_seconds=800.0,
        last_success=TODAY,
    )  # fmt: skip


def test_a_row_for_each_month_ends_where_the_month_or_the_period_ends(session: Session) -> None:
    october, november = figures(session, date(2026, 10, 5), date(2026, 11, 25), Per.MONTH)
    assert (october.first_day, october.last_day, october.inserted) == (date(2026, 10, 5), date(2026, 10, 31), 1)
    assert (november.first_day, november.last_day, november.updated) == (date(2026, 11, 1), date(2026, 11, 25), 1)
    assert (november.harvests, november.failed_harvests) == (2, 1)


def test_weeks_begin_on_mondays(session: Session) -> None:
    assert [each.first_day.isoformat() for each in figures(session, *YEAR, Per.WEEK)] == ["2026-10-19", "2026-11-16"]


def test_each_site_has_its_last_success(session: Session) -> None:
    alder, moss = figures(session, *YEAR, Per.SITE)
    assert (alder.site, alder.last_success, alder.failing) == ("alder", TODAY, 1)
    assert (moss.site, moss.last_success, moss.inserted) == ("moss", None, 1)


def test_weeks_are_read_from_the_kept_totals(session: Session) -> None:
    before = figures(session, *YEAR, Per.WEEK)
    has_kept = session.query(SiteTotals).count() > 0
    session.execute(update(HarvestSiteRun).values(inserted=50))
    later = figures(session, *YEAR, Per.WEEK)
    assert [each.inserted for each in later] == ([1, 1] if has_kept else [50, 150])
    assert (later == before) == has_kept
    for run_id in session.scalars(select(HarvestRun.run_id)).all():
        keep_totals_of_run(session, run_id)
    assert [each.inserted for each in figures(session, *YEAR, Per.WEEK)] == [50, 150]


def test_the_site_runs_of_a_week_count_while_a_run_goes_on(session: Session) -> None:
    session.execute(update(HarvestSiteRun).values(inserted=50))
    session.execute(update(HarvestRun).where(HarvestRun.harvest_date == TODAY).values(status="running"))
    assert figures(session, TODAY - timedelta(days=6), TODAY)[0].inserted == 150


def test_a_period_that_cuts_a_week_reads_its_site_runs(session: Session) -> None:
    session.execute(update(HarvestSiteRun).values(inserted=50))
    [day] = figures(session, TODAY, TODAY)
    assert (day.number_of_runs, day.harvests, day.inserted, day.last_success) == (1, 1, 100, TODAY)


@pytest.mark.parametrize(
    ("day", "first", "last"),
    [
        (date(2026, 11, 20), date(2026, 11, 16), date(2026, 11, 22)),
        (date(2026, 11, 1), date(2026, 11, 1), date(2026, 11, 1)),
        (date(2026, 10, 31), date(2026, 10, 26), date(2026, 10, 31)),
        (date(2026, 12, 31), date(2026, 12, 28), date(2026, 12, 31)),
        (date(2028, 2, 29), date(2028, 2, 28), date(2028, 2, 29)),
    ],
)
def test_a_span_is_the_part_of_a_week_within_a_month(day: date, first: date, last: date) -> None:
    assert Span.of(day) == Span(first, last)


def test_a_period_without_a_harvest_has_figures_of_nothing(session: Session) -> None:
    [nothing] = figures(session, date(2020, 1, 1), date(2020, 1, 2))
    assert (nothing.number_of_runs, nothing.inserted, nothing.last_success) == (0, 0, None)
    assert figures(session, date(2020, 1, 1), date(2020, 1, 2), Per.SITE) == []


def problem(session: Session, site_id: int, rule: str, document_id: str | None, **columns: object) -> None:
    known = {"needs_attention": True, "state": "open", "first_seen": TODAY, **columns}
    number = session.query(SiteProblem).count()
    session.add(
        SiteProblem(
            site_schedule_id=site_id, rule=rule, document_id=document_id, fingerprint=str(number), detail_log_id=1,
            last_seen=TODAY, first_site_run=1, last_site_run=1, nights=1, **known,
        )
    )  # fmt: skip
    session.flush()


def test_problems_are_counted_by_rule_the_most_frequent_first(session: Session) -> None:
    before = TODAY - timedelta(days=9)
    for document_id in ("a.1", "a.1", "a.2"):
        problem(session, 1, "eml.id-duplicate", document_id, first_seen=before)
    problem(session, 2, "eml.id-duplicate", "m.1")
    problem(session, 1, "http.status", None)
    problem(session, 1, "eml.document-type", "a.3", needs_attention=False)
    problem(session, 1, "xml.dtd", "a.4", state="fixed")
    problem(session, 99, "xml.dtd", "of-a-site-that-is-gone.1")
    output = [
        (each.rule, each.number_of_problems, each.number_of_documents, each.number_of_sites, each.site)
        for each in open_problems(session)
    ]
    assert output == [
        ("eml.id-duplicate", 4, 3, 2, None),
        ("http.status", 1, 0, 1, "alder"),
        ("eml.document-type", 1, 1, 1, "alder"),
    ]
    assert open_problems(session)[0].first_seen == before
    assert [each.number_of_documents for each in open_problems(session, "moss")] == [1]
    with pytest.raises(MetaharvestError, match="nobody"):
        open_problems(session, "nobody")


def test_rehearsals_are_left_out(session: Session) -> None:
    before = {per: figures(session, *YEAR, per) for per in (None, *Per)}
    rows = JournalRows(session)
    run = rows.run(status="succeeded")
    for name in ("alder", "birch"):
        site = session.scalar(select(HarvestSiteSchedule).where(HarvestSiteSchedule.name == name)) or rows.site(name)
        site_run = rows.site_run(run, site, rehearsal=True)
        rows.document(run, site_run, f"{name}.9", 1, OutcomeKind.INSERTED, size=5000)
    assert {per: figures(session, *YEAR, per) for per in (None, *Per)} == before
