"""Site runs that are opened, and taken up again."""

from __future__ import annotations

from datetime import UTC, date, datetime

from metaharvest.database.engine import writers
from metaharvest.journal.log_rows import LogRow, Stamp, whose, write_log
from metaharvest.journal.site_runs import Opening, open_all
from metaharvest.model import SiteRunKind
from metaharvest.sites.registry import read_sites
from support.databases import on_one_database
from support.harvester import Harvester


@on_one_database
def test_a_site_run_that_goes_on_in_its_own_run_rewrites_no_log_row(harvester: Harvester) -> None:
    """A slice of a large site has many rows: on PostgreSQL, 300,000 took 22 seconds."""
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    for _ in range(2):
        harvester.rows(
            "INSERT INTO harvest_run (harvest_date, started_at, status, host, pid, heartbeat_at, distributed) "
            "VALUES ('2026-11-20', '2026-11-20', 'running', 'machine', 1, '2026-11-20', 1)"
        )
    harvester.rows("CREATE TABLE rewritten (run_id INTEGER)")
    harvester.rows(
        "CREATE TRIGGER rewriting AFTER UPDATE OF run_id ON harvest_log "
        "BEGIN INSERT INTO rewritten VALUES (NEW.run_id); END"
    )
    for run_id in (1, 1, 2):
        stamp = Stamp(run_id, date(2026, 11, 20), datetime(2026, 11, 20, tzinfo=UTC))
        with writers(harvester.engine).begin() as session:
            [site] = read_sites(session)
            opening = Opening(site, SiteRunKind.SCHEDULED, lambda document_id: (None, None))  # type: ignore[arg-type]
            [site_run] = open_all(session, [opening], stamp)
            if not site_run.resumed:
                write_log(session, [(LogRow("GetHarvestListSuccess", "The list was read."), whose(site_run))], stamp)
        harvester.rows("UPDATE harvest_site_run SET status = 'interrupted'")
    assert harvester.rows("SELECT run_id FROM rewritten") == [(2,)]
