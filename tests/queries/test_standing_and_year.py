"""The sentence about a document, and the figures of a period."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session

from metaharvest.database.models import DocumentOwner
from metaharvest.model import OutcomeKind
from metaharvest.queries.figures import _median, year_figures
from metaharvest.queries.history import (
    DocumentHistory,
    ListingSite,
    document_history,
    document_standing,
    standing_of,
)
from support.journal_rows import TODAY, JournalRows


def listed(**values: Any) -> ListingSite:
    known: dict[str, Any] = {
        "site": "alder", "site_id": 1, "registered": True, "docid": "a.1.1", "revision": 1, "outcome": "inserted",
        "repository_revision": 1, "url": "https://alder.example.org/1.xml", "document_type": "eml",
        "failing_since": None, "nights": None, "attempts": 0, "missing_since": None, "title": None,
    }  # fmt: skip
    return ListingSite(**{**known, **values})


@pytest.mark.parametrize(
    ("rows", "sentence", "is_held", "is_well"),
    [
        ([], "It is not in the target: no site lists it.", False, False),
        ([listed()], "Revision 1 is in the target, as the site alder lists it.", True, True),
        (
            [listed(outcome="invalid", repository_revision=None, failing_since=date(2026, 11, 20))],
            "It is not in the target: revision 1 of the site alder is not valid since 2026-11-20.",
            False,
            False,
        ),
        (
            [listed(revision=2, outcome="access-error")],
            "Revision 1 is in the target, but revision 2 of the site alder could not be fetched.",
            True,
            False,
        ),
        (
            [listed(missing_since=date(2026, 11, 21))],
            "Revision 1 is in the target. A full list of the site alder has not named it since 2026-11-21.",
            True,
            False,
        ),
        ([listed(registered=False)], "Revision 1 is in the target, but no site lists it any longer.", True, False),
    ],
)
def test_a_sentence_says_why_a_document_is_in_the_target_or_not(
    rows: list[ListingSite], sentence: str, is_held: bool, is_well: bool
) -> None:
    found = standing_of(DocumentHistory("a.1", None, None, (), tuple(rows), (), (), ()), "", False)
    assert (found.sentence, found.is_held, found.is_well) == (sentence, is_held, is_well)


def test_a_document_that_was_withdrawn_is_not_in_the_target() -> None:
    found = standing_of(DocumentHistory("a.1", None, None, (), (listed(),), (), (), ()), "It was withdrawn.", True)
    assert (found.sentence, found.is_held, found.is_withdrawn) == (
        "It is not in the target. It was withdrawn.",
        False,
        True,
    )


@pytest.mark.parametrize("is_held", [True, False])
def test_a_document_whose_deletion_is_only_recorded_is_in_the_target(
    session: Session, rows: JournalRows, is_held: bool
) -> None:
    run = rows.run(TODAY)
    site_run = rows.site_run(run, rows.site("alder"))
    rows.ledger(site_run, "k.1", 2, OutcomeKind.DELETED, target_revision=2)
    where: dict[str, Any] = {"document_id": "k.1", "revision": 2, "target_revision": 2, "outcome": "deleted"}
    rows.log(run, "DocDeleted", site_run=site_run, **where)
    if is_held:
        session.add(DocumentOwner(document_id="k.1", site_schedule_id=site_run.site_schedule_id))
        session.flush()
    found = document_standing(session, document_history(session, "k.1", TODAY))
    sentence = "Revision 2 is in the target. The site alder says that it was deleted there."
    gone = f"It is not in the target. k.1 was deleted on {TODAY}, as the site 'alder' says that it was deleted there."
    assert (found.sentence, found.is_held, found.is_well) == (sentence if is_held else gone, is_held, False)


@pytest.mark.parametrize(
    ("days", "median"),
    [([], None), ([(3, 1)], 3), ([(1, 1), (4, 1)], 2.5), ([(0, 5), (9, 1)], 0), ([(1, 2), (7, 3)], 7)],
)
def test_the_median_of_days(days: list[tuple[int, int]], median: float | None) -> None:
    assert _median(days) == median


def test_the_figures_of_a_period_leave_out_other_days_and_rehearsals(session: Session, rows: JournalRows) -> None:
    alder, birch = rows.site("alder"), rows.site("birch")
    before, night = rows.run(TODAY - timedelta(days=1)), rows.run(TODAY)
    rows.site_run(before, alder, status="succeeded", listed=1, inserted=1)
    rows.site_run(night, alder, status="succeeded", listed=2, inserted=2)
    rows.site_run(night, birch, status="list-failed")
    rows.site_run(night, birch, status="succeeded", inserted=9, rehearsal=True)
    found = year_figures(session, TODAY, TODAY)
    assert (found.number_of_runs, found.number_of_sites, found.harvests, found.failed_harvests) == (1, 2, 2, 1)
    assert (found.inserted, found.went_well, found.share_well, found.silent) == (2, 1, 0.5, ("birch",))
    assert [(each.site, each.last_success) for each in found.sites] == [("alder", TODAY), ("birch", None)]
    assert year_figures(session, TODAY - timedelta(days=1), TODAY).inserted == 3
    assert year_figures(session, date(2001, 1, 1), date(2001, 12, 31)).share_well is None
