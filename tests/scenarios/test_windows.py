"""Windows of datestamps at the level of the user: kills, refused tokens, and records that cannot be fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.oai_network import ALL, Network, is_list, lists, missing, report
from support.oai_server import Asked, OaiServer, Odd

TWICE = "SELECT document_id FROM harvest_log WHERE outcome IS NOT NULL GROUP BY document_id HAVING COUNT(*) > 1"


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    with OaiServer(records=25) as server:
        made = Network(tmp_path, server)
        yield made
        made.harvester.close()


def third_page(asked: Asked) -> bool:
    return "!20!" in asked.arguments.get("resumptionToken", "")


@pytest.mark.parametrize("token", ["taken", "refused", "expired"])
@pytest.mark.parametrize("is_full", [False, True])
def test_a_run_that_was_killed_goes_on_and_every_record_has_one_outcome(
    network: Network, token: str, is_full: bool
) -> None:
    server = network.server
    server.expires = "2026-11-20T03:00:00Z" if token == "expired" else ""
    network.register()
    network.kill(third_page, "2030-01-01", *(("--full",) if is_full else ()))
    server.odd |= {Odd.TOKEN_EXPIRES_ONCE} if token == "refused" else set()
    server.forget()
    network.harvest()
    assert network.held() == ALL
    assert network.harvester.rows(TWICE) == []
    [(listed, inserted)] = network.harvester.rows("SELECT listed, inserted FROM harvest_site_run")
    assert (listed, inserted) == (25, 25)
    begins = [each.arguments for each in lists(server)]
    assert ("until" in str(begins)) is (token != "taken")
    server.forget()
    network.harvest()
    assert "from" in lists(server)[0].arguments


def test_a_run_that_was_killed_while_its_windows_were_divided_does_not_begin_them_again(network: Network) -> None:
    server = network.server
    server.odd.add(Odd.TOKENS_EXPIRE)
    network.register()
    network.kill(lambda asked: asked.arguments.get("from", "") > "2026-01-1", "2030-01-01")
    server.forget()
    network.harvest()
    assert network.held() == ALL
    assert network.harvester.rows(TWICE) == []
    assert all(each.arguments.get("from", "") > "2026-01-0" for each in lists(server))


def without_the_fifth(body: bytes, asked: Asked) -> bytes:
    """Each list that has the fifth record breaks off."""
    return body.partition(b"oai:test:5<")[0] if is_list(asked) else body


def test_records_that_cannot_be_listed_are_named_by_their_dates_in_each_harvest_until_they_can(
    network: Network,
) -> None:
    server = network.server
    for number in (4, 5):
        server.records[f"oai:test:{number}"].datestamp = datetime(2026, 1, 4, 12, tzinfo=UTC)
    server.tamper = without_the_fifth
    network.register()
    found = network.harvest()
    assert (found["status"], found["inserted"]) == ("incomplete", 24)
    named = "The records with these datestamps cannot be fetched: from 2026-01-04T11:59:5"
    assert f"The list has ended with 24 records. {named}" in report(network)
    assert "broke off" not in report(network)
    server.put("oai:test:26")
    found = network.harvest()
    assert (found["status"], found["inserted"]) == ("incomplete", 1)
    assert "The records with these datestamps cannot be fetched" in report(network)
    server.tamper = None
    assert network.harvest()["status"] == "succeeded"
    assert network.held() == {**ALL, "26": 1}
    server.forget()
    network.harvest()
    assert [each.arguments["from"] for each in lists(server)] == ["2026-11-23T02:55:00Z"]


@pytest.mark.slow
def test_neighbouring_records_that_cannot_be_listed_cost_only_themselves(network: Network) -> None:
    server = network.server
    server.put("oai:test:26", datetime(2026, 1, 4, 23, tzinfo=UTC))
    server.poison = {"oai:test:5", "oai:test:26"}
    server.tamper = lambda body, asked: (
        b"" if asked.verb == "ListIdentifiers" and (b"test:5<" in body or b"test:26<" in body) else body
    )
    network.register()
    held = {**ALL, "26": 1}
    del held["5"], held["26"]
    found = [network.harvest() for _ in range(2)]
    assert ([each["status"] for each in found], network.held()) == (["incomplete"] * 2, held)
    assert "The list has ended with" in report(network)
    server.forget()
    server.put("oai:test:27")
    assert network.harvest()["listed"] == 1
    assert len(lists(server)) < 10
    server.poison, server.tamper = set(), None
    assert (network.harvest()["status"], network.held()) == ("succeeded", {**ALL, "26": 1, "27": 1})


def test_what_failed_for_a_while_is_tried_again_while_some_records_cannot_be_listed(network: Network) -> None:
    server = network.server
    server.tamper = without_the_fifth
    server.poison = {"oai:test:12"}
    server.poisoned = (b"no", 503, {})
    network.register("--method", "list-identifiers")
    found = network.harvest()
    assert (found["status"], found["access_error"]) == ("incomplete", 1)
    server.poison = set()
    assert network.harvest()["inserted"] == 1
    assert network.held() == {number: 1 for number in ALL if number != "5"}


def test_no_record_is_missing_while_some_cannot_be_listed(network: Network) -> None:
    server = network.server
    network.register()
    network.harvest()
    server.tamper = without_the_fifth
    assert network.harvest("--full")["status"] == "incomplete"
    assert missing(network) == 0
    del server.records["oai:test:9"]
    server.tamper = None
    assert network.harvest("--full")["status"] == "succeeded"
    assert missing(network) == 1


def test_a_record_of_an_answer_that_broke_off_is_missing_if_the_next_list_lacks_it(network: Network) -> None:
    server = network.server
    server.page, server.poisoned = 100, (b"no", 403, {})
    server.tamper = lambda body, asked: body.partition(b"oai:test:11<")[0] if asked.verb == "ListRecords" else body
    server.refuses = lambda asked: is_list(asked) and len(lists(server)) > 1
    network.register()
    server.forget()
    assert network.harvest()["inserted"] == 10
    server.tamper, server.refuses = None, lambda asked: False
    del server.records["oai:test:3"]
    assert network.harvest()["inserted"] == 15
    assert (missing(network), network.held()) == (1, ALL)


def test_records_that_two_harvests_request_are_not_listed_twice(network: Network) -> None:
    server = network.server
    server.seconds, server.poisoned = False, (b"no", 403, {})
    server.odd.add(Odd.TOKENS_EXPIRE)
    server.refuses = lambda asked: is_list(asked) and asked.arguments.get("from", "") > "2026-01-07"
    network.register()
    assert network.harvest()["status"] == "incomplete"
    before = len(network.held())
    server.refuses = lambda asked: False
    assert network.harvest() == {"status": "succeeded", "listed": 26 - before, "inserted": 25 - before, "unchanged": 1}
    assert network.held() == ALL
    sql = "SELECT message FROM harvest_log WHERE harvest_operation_code = 'ListRecordsSuccess'"
    assert network.harvester.rows(sql) == [("The repository listed 25 records to the end.",)]


@pytest.mark.parametrize("odd", [Odd.SAME_TOKEN, Odd.EMPTY_PAGES])
def test_a_window_that_led_nowhere_is_divided_in_the_next_harvest(network: Network, odd: Odd) -> None:
    server = network.server
    server.odd.add(odd)
    network.register()
    assert network.harvest()["status"] == "incomplete"
    server.forget()
    network.harvest()
    assert lists(server)[0].arguments.get("until") is not None


def test_a_repository_that_refuses_windows_is_asked_for_each_record(network: Network) -> None:
    server = network.server
    server.poison = {"oai:test:17"}
    server.tamper = lambda body, asked: (
        re.sub(rb"<(List\w+)>.*</\1>", b'<error code="badArgument">no dates</error>', body, flags=re.DOTALL)
        if "until" in asked.arguments or "from" in asked.arguments
        else body
    )
    for number in range(26, 60):
        server.put(f"oai:test:{number}")
    network.register()
    found = network.harvest()
    assert (found["status"], found["inserted"], found["access_error"]) == ("with-errors", 58, 1)
    assert len(server.answered) < 120


# OJS lists the deletion of an article that was published again: https://github.com/pkp/pkp-lib/issues/6625
OLD_DELETION = (
    b'<ListRecords><record><header status="deleted"><identifier>oai:test:25</identifier>'
    b"<datestamp>2026-01-01T00:00:00Z</datestamp></header></record>"
)
NO_ROBOTS = (b"<html><title>Robots keep out</title></html>", 403, {"Content-Type": "text/html"})


def test_an_old_deletion_waits_for_the_rest_of_a_list_that_breaks_off(network: Network) -> None:
    server = network.server

    def is_refused(asked: Asked) -> bool:
        return is_list(asked) and (asked.verb == "ListIdentifiers" or "resumptionToken" in asked.arguments)

    network.register()
    network.harvest()
    server.tamper = lambda body, asked: (
        body if asked.arguments.get("from") else body.replace(b"<ListRecords>", OLD_DELETION)
    )
    server.poisoned = NO_ROBOTS
    server.refuses = is_refused
    assert network.harvest("--full")["status"] == "incomplete"
    assert network.held() == ALL
    server.refuses = lambda asked: False
    assert network.harvest()["status"] == "succeeded"
    assert network.held() == ALL


def test_an_old_deletion_waits_longer_if_the_list_breaks_off_again(network: Network) -> None:
    server, answered = network.server, list[Asked]()

    def is_second(asked: Asked) -> bool:
        answered.extend([asked] if is_list(asked) else [])
        return is_list(asked) and len(answered) > 1

    network.register()
    network.harvest()
    server.tamper = lambda body, asked: (
        body if {"from", "resumptionToken"} & asked.arguments.keys() else body.replace(b"<ListRecords>", OLD_DELETION)
    )
    server.poisoned = NO_ROBOTS
    server.refuses = is_second
    for options in (("--full",), ()):
        answered.clear()
        assert network.harvest(*options)["status"] == "incomplete"
        assert network.held() == ALL
    server.refuses = lambda asked: False
    assert network.harvest()["status"] == "succeeded"
    assert network.held() == ALL
