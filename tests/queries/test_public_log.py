"""The public harvest log, on each database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session

from metaharvest.catalogue.selection import Hidden
from metaharvest.queries.public_sites import PublicStatus, Standing, numbers_of, public_log
from support.harvester import Harvester, eml
from support.journal_rows import TODAY, JournalRows
from support.provider import delete, document, store

NIGHTS = [TODAY - timedelta(days=back) for back in (4, 3, 2, 1, 0)]
OAI = json.dumps({"oai": {"origin": "frogs", "prefix": "oai_dc"}})


@pytest.fixture
def session(harvester: Harvester) -> Iterator[Session]:
    with Session(harvester.engine) as opened:
        yield opened


def harvested(session: Session, name: str, *statuses: str, **columns: Any) -> None:
    """A site with a run a night, which ended in these ways; "": it had none."""
    rows = JournalRows(session)
    site = rows.site(name, **columns)
    for night, status in zip(NIGHTS, statuses, strict=False):
        if status:
            rows.site_run(rows.run(night), site, status)


@pytest.mark.parametrize(
    ("statuses", "standing", "since", "last"),
    [
        ((), Standing.NEW, None, None),
        (("running",), Standing.NEW, None, None),
        (("succeeded", "with-errors", "succeeded"), Standing.WELL, NIGHTS[0], NIGHTS[2]),
        (("list-failed", "succeeded", "with-errors", "running"), Standing.WELL, NIGHTS[1], NIGHTS[2]),
        (("failed", "incomplete", "interrupted"), Standing.FAILING, NIGHTS[0], None),
        (("succeeded", "succeeded", "list-failed", "failed"), Standing.FAILING, NIGHTS[2], NIGHTS[1]),
        (("failed", "succeeded", "failed", "succeeded", "failed"), Standing.FAILING, NIGHTS[4], NIGHTS[3]),
    ],
)
def test_how_a_site_stands(
    session: Session, statuses: tuple[str, ...], standing: Standing, since: date | None, last: date | None
) -> None:
    harvested(session, "alder", *statuses)
    assert public_log(session, Hidden()) == [PublicStatus("alder", standing, since, last, 0)]


def test_rehearsals_and_retries_do_not_count(session: Session) -> None:
    rows = JournalRows(session)
    site = rows.site("alder")
    rows.site_run(rows.run(NIGHTS[0]), site, "succeeded")
    rows.site_run(rows.run(NIGHTS[1]), site, "failed", rehearsal=True)
    rows.site_run(rows.run(NIGHTS[2]), site, "failed", kind="retry")
    [found] = public_log(session, Hidden())
    assert (found.standing, found.last_harvest) == (Standing.WELL, NIGHTS[0])


def test_each_site_has_its_own_line_unless_it_or_its_origin_is_hidden(harvester: Harvester, session: Session) -> None:
    gone = document("birch.2", eml("birch.2.1"), site=2)
    store(harvester, document("birch.1", eml("birch.1.1"), site=2), gone)
    delete(harvester, gone)
    harvested(session, "alder", "succeeded", enabled=False)
    harvested(session, "birch", "failed")
    harvested(session, "hidden", "failed")
    harvested(session, "of-frogs", "failed", source_kind="oai-pmh", options=OAI)
    [site] = numbers_of(session, ["hidden"]).values()
    assert public_log(session, Hidden((site,), ("frogs",))) == [
        PublicStatus("alder", Standing.OFF, None, NIGHTS[0], 0),
        PublicStatus("birch", Standing.FAILING, NIGHTS[0], None, 1),
    ]
