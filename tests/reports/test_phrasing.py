"""The words of reports."""

from __future__ import annotations

import pytest

from metaharvest.model import OutcomeKind, SiteRunKind, SiteRunStatus
from metaharvest.model.actions import Remedy, todo
from metaharvest.reports.phrasing import Doubts, SiteEnd, duration, run_story, site_sentence, without_commands


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        ("Write `packageId`.", "Write `packageId`."),
        (Remedy("He confirms it ({}), then.", todo("sites.confirm", name="a (`b`)")), "He confirms it, then."),
        (Remedy("Ask for {}.", todo("runs.full", name="alder")), 'Ask for "fetch the whole list of the site alder".'),
        (Remedy("{} tries it.", todo("lists.check", url="a.xml")), "`metaharvest check a.xml` tries it."),
        ("He types `metaharvest sites confirm 'alder'`.", "He types `metaharvest sites confirm 'alder'`."),
    ],
)
def test_contacts_are_shown_only_the_commands_that_they_can_type(remedy: str, words: str) -> None:
    assert without_commands(remedy) == words


def test_a_length_of_time_has_the_units_that_people_use() -> None:
    seconds = (-1, 0.04, 0.05, 9.94, 12, 200, 7500)
    said = ["0.0 s", "0.0 s", "0.1 s", "9.9 s", "12 s", "3 min 20 s", "2 h 5 min"]
    assert [duration(each) for each in seconds] == said


@pytest.mark.parametrize("status", SiteRunStatus)
def test_the_story_of_a_run_counts_each_site(status: SiteRunStatus) -> None:
    assert run_story([status], {}).startswith("1 site: 1 ")


def test_the_story_of_a_run_counts_stopped_sites() -> None:
    story = run_story([SiteRunStatus.SUCCEEDED, SiteRunStatus.STOPPED], {OutcomeKind.INSERTED: 3})
    assert story == "2 sites: 1 well, 1 stopped; 3 new"


@pytest.mark.parametrize(
    ("status", "counts", "sentence"),
    [
        (
            SiteRunStatus.STOPPED,
            {},
            "The harvest of your site was stopped; the next run goes on with it. Your harvest list names 5 documents.",
        ),
        (SiteRunStatus.SUCCEEDED, {OutcomeKind.UNCHANGED: 5}, "Your harvest list names 5 documents: 5 are unchanged."),
    ],
)
def test_the_sentence_about_a_site_that_was_harvested_only_in_part(
    status: SiteRunStatus, counts: dict[OutcomeKind, int], sentence: str
) -> None:
    end = SiteEnd(
        status, SiteRunKind.SCHEDULED, counts, 5, "harvest list", Doubts(), 0, went_nowhere=False, stores_nothing=False
    )
    assert site_sentence(end) == sentence
