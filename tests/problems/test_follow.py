"""The life of problems over the nights, from hand-made log rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestRun, HarvestSiteRun, SiteProblem
from metaharvest.journal.oai_notes import missing
from metaharvest.ledger.records import MarkedMissing
from metaharvest.model import MAX_FINDINGS, DocumentState, Finding, OutcomeKind, SiteRunKind
from metaharvest.problems.follow import EndedSiteRun, update_problems
from metaharvest.queries.problems import site_problems
from support.journal_rows import NOW, TODAY, JournalRows, new_database


class SiteNights:
    """One site, harvested night after night: `end` closes the harvest that `begin` has begun."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.rows = JournalRows(session)
        self.site = self.rows.site("alder-creek")
        self.number = 0
        self.begin()

    def begin(self) -> tuple[HarvestRun, HarvestSiteRun]:
        self.number += 1
        later = timedelta(days=self.number)
        self.run = self.rows.run(TODAY + later, NOW + later)
        self.site_run = self.rows.site_run(self.run, self.site)
        return self.run, self.site_run

    def end(self, *, is_complete: bool = True) -> dict[str, str]:
        """Close the harvest, and begin the next one; return the states of problems, by the message of each finding."""
        number = self.site_run.site_run_id
        ended = EndedSiteRun(self.site.site_schedule_id, number, SiteRunKind.SCHEDULED, True, True, is_complete)
        update_problems(self.session, [ended], self.run.harvest_date)
        self.begin()
        return self.states()

    def states(self) -> dict[str, str]:
        its_row = HarvestDetailLog.detail_log_id == SiteProblem.detail_log_id
        query = select(HarvestDetailLog.error_message, SiteProblem.state).select_from(SiteProblem)
        return {
            message or "": state for message, state in self.session.execute(query.outerjoin(HarvestDetailLog, its_row))
        }

    def names_missing(self, *names: str) -> None:
        row = missing(names, MarkedMissing(0, 1000, 1000))
        self.rows.log(self.run, row.code, row.message, self.site_run, row.findings)

    def purge(self) -> None:
        self.session.execute(delete(HarvestDetailLog))


@pytest.fixture
def nights() -> Iterator[SiteNights]:
    with Session(new_database()) as session:
        yield SiteNights(session)


def test_a_problem_shows_its_last_finding(nights: SiteNights) -> None:
    for line in (7, 9):
        finding = Finding("eml.title", f"The title in line {line} is empty.", line=line)
        nights.rows.document(nights.run, nights.site_run, "a.1", line, OutcomeKind.INVALID, finding)
        nights.end()
    [problem] = site_problems(nights.session, nights.site.site_schedule_id)
    assert (problem.line, problem.message, problem.nights) == (9, "The title in line 9 is empty.", 2)


def test_a_missing_record_whose_finding_the_log_has_deleted_is_still_missing(nights: SiteNights) -> None:
    columns = {"state": DocumentState.MISSING.value, "listing": 1}
    record = nights.rows.ledger(nights.site_run, "oai:a", 1, OutcomeKind.INSERTED, **columns)
    nights.names_missing("oai:a")
    nights.end()
    nights.purge()
    assert nights.end(is_complete=False) == {"": "open"}
    assert nights.end() == {"": "open"}
    record.state = DocumentState.HELD.value
    assert nights.end() == {"": "gone"}


def test_the_number_of_missing_records_stays_until_a_complete_list_ends_it(nights: SiteNights) -> None:
    names = [f"oai:{number:04}" for number in range(MAX_FINDINGS + 1)]
    for name in names:
        columns = {"state": DocumentState.MISSING.value, "listing": 1}
        nights.rows.ledger(nights.site_run, name, 1, OutcomeKind.INSERTED, **columns)
    nights.names_missing(*names)
    nights.end()
    assert set(nights.end(is_complete=False).values()) == {"open"}
    nights.names_missing(*names[1:])
    states = nights.end()
    assert [message for message, state in states.items() if state == "fixed"] == [
        message for message in states if message.startswith("The complete list")
    ]
