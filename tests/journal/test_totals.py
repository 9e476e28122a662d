"""The kept totals of sites equal the sums of their site runs, on each database and after each change."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import SiteTotals
from metaharvest.queries.figures import Figures, Per, figures
from support.harvester import Harvester, eml, harvest_list
from support.http_server import HttpServer

DAYS = date(2026, 1, 1), date(2026, 12, 31)


def both(harvester: Harvester) -> tuple[list[list[Figures]], list[list[Figures]]]:
    """The figures from the kept totals, and from the site runs."""

    def read(session: Session) -> list[list[Figures]]:
        # The seconds are sums of floats, and the database chooses the order of the addends.
        return [
            [replace(each, took_seconds=round(each.took_seconds, 1)) for each in figures(session, *DAYS, per)]
            for per in (None, *Per)
        ]

    with Session(harvester.engine) as session:
        assert session.scalar(select(func.count()).select_from(SiteTotals))
        kept = read(session)
        session.execute(delete(SiteTotals))
        return kept, read(session)


@pytest.mark.slow
def test_each_run_keeps_the_totals_of_its_week(harvester: Harvester, server: HttpServer) -> None:
    for docid in ("a.1.1", "a.2.1"):
        server.serve(f"/{docid}.xml", eml(docid))
    server.serve("/bad.xml", b"<no>")
    listed = [(each, server.url(f"/{each}.xml")) for each in ("a.1.1", "a.2.1")]
    server.serve("/list.xml", harvest_list([*listed, ("a.3.1", server.url("/bad.xml"))]))
    harvester.add_site("alder", server.url("/list.xml"))
    harvester.add_site("birch", server.url("/none.xml"))
    for day in ("2026-10-30", "2026-11-01", "2026-11-20"):
        harvester.run(day)
    kept, read = both(harvester)
    assert kept == read
    [year] = kept[0]
    assert (year.harvests, year.inserted, year.failed_harvests, year.failing) == (6, 2, 3, 1)
    assert harvester("runs", "remove", "2", "--yes").code == 0
    kept, read = both(harvester)
    assert kept == read
    assert kept[0][0].harvests == 4
