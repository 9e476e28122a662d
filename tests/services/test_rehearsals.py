"""Rehearsals of registered sites, as the console shows them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from metaharvest.errors import ScheduleError
from metaharvest.services import sites
from metaharvest.services.harvester import Harvester as Opened
from metaharvest.services.rehearsals import Rehearsal, Rehearsals
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.oai_server import OaiServer
from support.waiting import wait_until

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""


@pytest.fixture
def opened(harvester: Harvester) -> Iterator[Opened]:
    with harvester.opened() as made:
        yield made


def ended(rehearsals: Rehearsals, started: Rehearsal) -> Rehearsal:
    def found() -> Rehearsal | None:
        here = rehearsals.find(started.number, started.site_id)
        return here if here and here.has_ended else None

    wait_until(lambda: found() is not None)
    done = found()
    assert done
    return done


def test_a_rehearsal_has_the_report_of_the_next_harvest_and_writes_nothing(
    harvester: Harvester, opened: Opened, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))]))
    sites.switch(opened, "alder", enabled=False)
    rehearsals = Rehearsals()
    done = ended(rehearsals, rehearsals.start(opened, "alder"))
    assert (done.listed, done.done, done.errors, done.failure) == (2, 2, 1, "")
    assert done.report
    assert (done.report.site_run.inserted, done.report.site_run.access_error) == (1, 1)
    assert "1 would be added" in done.report.text
    assert [(each.document_id, each.rule) for each in done.report.findings] == [("a.2", "http.status")]
    assert rehearsals.find(done.number, done.site_id + 1) is None
    assert rehearsals.newest(done.site_id) == done
    assert harvester.rows("SELECT count(*) FROM harvest_run, report_outbox, harvest_log") == [(0,)]
    assert sites.find(opened, "alder").enabled is False


def test_a_second_request_gets_the_rehearsal_that_has_not_ended(
    harvester: Harvester, opened: Opened, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    rehearsals = Rehearsals()
    with rehearsals._turn:
        first = rehearsals.start(opened, "alder")
        assert rehearsals.start(opened, "alder").number == first.number
    assert ended(rehearsals, first).report
    again = rehearsals.start(opened, "alder")
    assert again.number != first.number
    ended(rehearsals, again)


def test_a_rehearsal_of_a_repository_knows_its_records(harvester: Harvester, opened: Opened) -> None:
    with OaiServer(records=2) as repository:
        values = sites.SiteValues(name="frogs", base_url=repository.base_url, contacts=("f@example.org",))
        sites.register(opened, values)
        harvester.run(str(opened.today()))
        rehearsals = Rehearsals()
        done = ended(rehearsals, rehearsals.start(opened, "frogs"))
        assert done.report
        assert done.report.site_run.inserted == 0


def test_an_unknown_site_has_no_rehearsal(opened: Opened) -> None:
    with pytest.raises(ScheduleError, match="There is no site named 'alder'"):
        Rehearsals().start(opened, "alder")
