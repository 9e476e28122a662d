"""Two people who do the same thing at one moment, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest

from metaharvest.errors import RequestError
from metaharvest.mail import outbox
from metaharvest.services import my_site, reports
from metaharvest.services.harvester import Harvester as Opened
from metaharvest.sites.registry import lock_sites
from support.harvester import Harvester, publish
from support.http_server import HttpServer

ANNA = "alder@example.org"


@pytest.fixture
def opened(harvester: Harvester, server: HttpServer) -> Iterator[Opened]:
    harvester.add_site("alder", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    with harvester.opened() as made:
        yield made


def test_a_report_that_two_people_send_again_goes_to_a_new_address_once(harvester: Harvester, opened: Opened) -> None:
    to = ("birch@example.org",)
    with ThreadPoolExecutor(1) as pool:
        with opened.writing() as session:
            outbox.resend(session, 1, opened.settings, to)
            second = pool.submit(reports.resend, opened, 1, to)
            assert not wait([second], 0.5).done
        second.result(60)
    found = harvester.rows("SELECT status FROM report_delivery WHERE report_id = 1 AND recipient = ?", *to)
    assert found == [("queued",)]


def test_a_contact_who_leaves_twice_makes_one_request(harvester: Harvester, opened: Opened) -> None:
    with ThreadPoolExecutor(2) as pool:
        with opened.writing() as session:
            lock_sites(session, ["alder"])
            asked: list[Future[object]] = [pool.submit(my_site.leave, opened, "alder", ANNA) for _ in range(2)]
            assert not wait(asked, 0.5).done
        refused = [each.exception(60) for each in asked]
    [error] = filter(None, refused)
    assert isinstance(error, RequestError)
    assert str(error) == "The same request already waits for the steward."
    assert harvester.rows("SELECT kind FROM site_registration WHERE kind <> 'pause'") == [("leave",)]
