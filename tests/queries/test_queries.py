"""What the read models give beyond what the commands' own tests show."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from metaharvest.database.models import DocumentRevision
from metaharvest.errors import MetaharvestError
from metaharvest.model import Finding, OutcomeKind
from metaharvest.queries.live import last_seconds
from metaharvest.queries.log import LogFilter, LogScope, log_entries, log_scope
from metaharvest.queries.runs import newest_runs, run_record, site_run_id_of
from support.journal_rows import NOW, TODAY, JournalRows


def hold(session: Session, document_id: str, *revisions: int) -> None:
    for revision in revisions:
        session.add(
            DocumentRevision(
                document_id=document_id,
                revision=revision,
                document_type="t",
                content=b"x",
                size=1,
                sha256="0" * 64,
                source_url="https://example.org/x.xml",
                site_schedule_id=None,
                inserted_at=NOW,
            )
        )
    session.flush()


def test_each_run_comes_with_its_own_site_runs_the_newest_run_first(session: Session, rows: JournalRows) -> None:
    alder, birch = rows.site("alder"), rows.site("birch")
    for night in range(4):
        run = rows.run(TODAY + timedelta(days=night), status="succeeded")
        for site in (alder, birch)[: night % 3]:
            rows.document(run, rows.site_run(run, site), f"a.{night}", 1, OutcomeKind.INSERTED)
    found = newest_runs(session, 3)
    assert [(record.run_id, [site.site for site in record.sites]) for record in found] == [
        (4, []),
        (3, ["alder", "birch"]),
        (2, ["alder"]),
    ]
    assert [record.totals.inserted for record in found] == [0, 2, 1]
    assert [record.took for record in found] == [None] * 3


def test_a_run_of_no_such_number_is_not_found_however_large_the_number(session: Session) -> None:
    assert newest_runs(session, 20) == []
    for number in (-1, 1, 2**70):
        with pytest.raises(MetaharvestError, match=f"There is no run {number}"):
            run_record(session, number)


def test_of_two_site_runs_of_a_site_in_one_run_the_later_is_meant(session: Session, rows: JournalRows) -> None:
    alder, run = rows.site("alder"), rows.run()
    rows.site_run(run, alder, status="list-failed")
    retried = rows.site_run(run, alder, kind="retry")
    assert site_run_id_of(session, run.run_id, "alder") == retried.site_run_id
    assert log_scope(session, LogFilter(site="alder")) == LogScope(None, retried.site_run_id)


def test_a_retry_does_not_count_as_the_last_harvest_of_a_site(session: Session, rows: JournalRows) -> None:
    alder, run = rows.site("alder"), rows.run()
    rows.site_run(run, alder, ended_at=NOW + timedelta(hours=1))
    rows.site_run(run, alder, kind="retry", ended_at=NOW + timedelta(seconds=3))
    assert last_seconds(session, [alder.site_schedule_id]) == {alder.site_schedule_id: 3600}


@pytest.mark.slow
def test_findings_stay_with_their_row_however_long_the_log_is(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    for number in range(1100):
        rows.log(run, "GetDocError", findings=(Finding("http.status", f"number {number}"),) * (number % 3))
    entries = list(log_entries(session, LogFilter()))
    assert [len(entry.findings) for entry in entries] == [number % 3 for number in range(1100)]
    assert all(finding.message == f"number {at}" for at, entry in enumerate(entries) for finding in entry.findings)
    last = list(log_entries(session, LogFilter(run_id=run.run_id, limit=2)))
    assert [entry.log_id for entry in last] == [1099, 1100]
