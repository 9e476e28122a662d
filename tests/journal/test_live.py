"""The rows of live numbers."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import SiteProgress
from metaharvest.journal import live
from metaharvest.journal.live import SiteNumbers
from metaharvest.model.requests import LivePhase
from support.journal_rows import NOW, new_database


def test_the_numbers_of_a_new_slice_replace_the_numbers_of_an_earlier_one() -> None:
    ended = SiteNumbers(7, "alder", LivePhase.ENDED, 3, 3, 0, NOW, is_new=True)
    waits = SiteNumbers(7, "alder", LivePhase.WAITING, 0, 0, 0, None, is_new=True)
    with Session(new_database()) as session:
        live.write(session, 1, [ended], NOW)
        live.write(session, 1, [waits], NOW + timedelta(seconds=2))
        rows = session.execute(select(SiteProgress.site_schedule_id, SiteProgress.phase, SiteProgress.done)).all()
    assert [tuple(row) for row in rows] == [(7, "waiting", 0)]
