"""Whether a site's contacts get a report: their own wish, and what changed since the last one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.database.models import HarvestSiteRun
from metaharvest.mail import outbox
from metaharvest.model import Finding, Level, OutcomeKind
from metaharvest.reports import compose
from metaharvest.reports.notify_policy import is_wanted
from metaharvest.sites.registry import read_site
from support.databases import on_one_database
from support.journal_rows import NAMED, NOW, TODAY, JournalRows

BROKEN = Finding("schema.missing-element", "The element 'creator' is missing.")
OTHER = Finding("schema.date", "This is not a date.")
DOUBTFUL = Finding("eml.package-id", "The packageId is another one.", level=Level.WARNING)


class Nights:
    """One site, harvested night after night."""

    def __init__(self, rows: JournalRows, notify: str) -> None:
        self.rows = rows
        self.site = rows.site("alder-creek", notify=notify)
        self.number = 0

    def harvest(self, *documents: tuple[Any, ...], status: str = "succeeded", kind: str = "scheduled") -> bool:
        """One night with these documents; whether a report is wanted, which is then queued."""
        self.number += 1
        now = NOW + timedelta(days=self.number)
        run = self.rows.run(TODAY + timedelta(days=self.number), now)
        site_run = self.rows.site_run(run, self.site, status, kind)
        for document_id, outcome, *findings in documents:
            if outcome is OutcomeKind.UNCHANGED:
                self.rows.unchanged(run, site_run, (document_id, 1, 1))
                continue
            errors = [finding for finding in findings if finding.is_error]
            warnings = tuple(finding for finding in findings if not finding.is_error)
            self.rows.document(run, site_run, document_id, 1, outcome, *errors, warnings=warnings)
        return self._report(run.run_id, site_run)

    def _report(self, run_id: int, site_run: HarvestSiteRun) -> bool:
        session = self.rows.session
        wanted = is_wanted(session, site_run, read_site(session, site_run.site_schedule_id))
        if wanted:
            report = compose.site_report(session, site_run.site_run_id, ReportContext(Settings(), NAMED, NOW))
            outbox.queue(session, report, run_id, site_run.site_run_id, NOW)
        return wanted


NEW = ("alder.1", OutcomeKind.INSERTED)
BAD = ("alder.2", OutcomeKind.INVALID, BROKEN)
UNREACHABLE = ("alder.3", OutcomeKind.ACCESS_ERROR, Finding("http.timeout", "No answer."))


@on_one_database
@pytest.mark.parametrize(
    ("notify", "quiet", "new", "bad"),
    [
        ("always", True, True, True),
        ("on-change", False, True, True),
        ("on-error", False, False, True),
        ("never", False, False, False),
    ],
)
def test_each_mode_has_its_own_idea_of_what_is_worth_a_mail(
    rows: JournalRows, notify: str, quiet: bool, new: bool, bad: bool
) -> None:
    nights = Nights(rows, notify)

    assert [nights.harvest(), nights.harvest(NEW), nights.harvest(BAD)] == [quiet, new, bad]


def test_on_change_keeps_quiet_about_problems_told_before(rows: JournalRows) -> None:
    nights = Nights(rows, "on-change")

    assert nights.harvest(BAD)
    assert not nights.harvest(BAD)
    assert not nights.harvest(BAD)
    assert nights.harvest(BAD, UNREACHABLE)
    assert nights.harvest(BAD), "one problem is gone"
    assert nights.harvest(("alder.2", OutcomeKind.INVALID, OTHER)), "another finding"
    assert nights.harvest(), "all problems are gone"
    assert not nights.harvest()


def test_on_change_tells_a_list_that_fails_once_and_its_recovery(rows: JournalRows) -> None:
    nights = Nights(rows, "on-change")

    assert nights.harvest(status="list-failed")
    assert not nights.harvest(status="list-failed")
    assert nights.harvest()


def test_on_change_counts_a_new_warning_as_a_change(rows: JournalRows) -> None:
    nights = Nights(rows, "on-change")
    nights.harvest(("alder.1", OutcomeKind.STALE))

    assert nights.harvest(("alder.1", OutcomeKind.STALE, DOUBTFUL))


@on_one_database
def test_on_error_tells_of_a_list_that_fails(rows: JournalRows) -> None:
    assert Nights(rows, "on-error").harvest(status="list-failed")


@on_one_database
@pytest.mark.parametrize("notify", ["always", "on-error", "on-change"])
def test_a_retry_that_fails_as_before_is_not_told(rows: JournalRows, notify: str) -> None:
    nights = Nights(rows, notify)
    nights.harvest(UNREACHABLE)

    assert not nights.harvest(UNREACHABLE, kind="retry")
    assert not nights.harvest(("alder.3", OutcomeKind.DEFERRED), kind="retry")
    assert nights.harvest(("alder.3", OutcomeKind.INVALID, BROKEN), kind="retry")


def test_a_retry_that_works_is_told(rows: JournalRows) -> None:
    nights = Nights(rows, "always")
    nights.harvest(UNREACHABLE)

    assert nights.harvest(("alder.3", OutcomeKind.INSERTED), kind="retry")


def test_on_change_takes_what_a_retry_has_told_for_told(rows: JournalRows) -> None:
    nights = Nights(rows, "on-change")
    nights.harvest(BAD, UNREACHABLE, ("alder.4", OutcomeKind.DEFERRED))

    assert nights.harvest(("alder.3", OutcomeKind.INVALID, BROKEN), ("alder.4", OutcomeKind.UNCHANGED), kind="retry")
    assert not nights.harvest(BAD, ("alder.3", OutcomeKind.INVALID, BROKEN))
    assert nights.harvest(BAD), "one problem is gone"


@on_one_database
def test_on_change_does_not_take_a_night_without_an_event_for_a_change(rows: JournalRows) -> None:
    nights = Nights(rows, "on-change")
    robots = Finding("http.robots", "The robots.txt forbids it.", level=Level.WARNING)
    bad = ("alder.2", OutcomeKind.INVALID, BROKEN, robots)

    assert nights.harvest(bad)
    assert not nights.harvest(BAD)
    assert not nights.harvest(bad)
    assert nights.harvest(("alder.2", OutcomeKind.INVALID, OTHER))
