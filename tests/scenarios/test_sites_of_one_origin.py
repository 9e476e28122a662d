"""Several sites of one source repository: a document is deleted when none of them lists its record any more."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.databases import TestDatabase, on_one_database
from support.oai_network import ALL, TOTALS, Network, is_list
from support.oai_server import Asked, OaiServer
from support.workers import tick, wait_until_closed, workers

FOLDER = '[target]\nkind = "folder"\nfolder = "documents"\n'


@pytest.fixture
def server() -> Iterator[OaiServer]:
    with OaiServer(records=25) as made:
        yield made


@pytest.fixture
def network(tmp_path: Path, server: OaiServer, database: TestDatabase) -> Iterator[Network]:
    made = Network(tmp_path, server, database=database)
    yield made
    made.harvester.close()


@pytest.fixture(params=["", FOLDER], ids=["embedded", "folder"])
def two_sets(tmp_path: Path, server: OaiServer, request: pytest.FixtureRequest) -> Iterator[Network]:
    """A repository whose two sets are two sites, a of 24 records and b of one, both harvested; in two targets."""
    made = Network(tmp_path, server, request.param)
    harvest_two_sets(made)
    yield made
    made.harvester.close()


def harvest_two_sets(network: Network) -> None:
    network.server.sets = {"a": "A", "b": "B"}
    for number in range(1, 26):
        network.server.records[f"oai:test:{number}"].sets = ("b",) if number == 25 else ("a",)
    for name in ("a", "b"):
        network.register("--set", name, name=name)
    assert nights(network, "a", "b")["b"]["inserted"] == 1


def night(network: Network, *options: str) -> dict[str, dict[str, Any]]:
    """The next night: the totals of each site that are not 0."""
    network.night += 1
    network.server.now += timedelta(days=1)
    sites = network.harvester.run(f"2030-01-{network.night:02}", *options)["sites"]
    return {site["site"]: {key: site[key] for key in TOTALS.split() if site[key]} for site in sites}


def nights(network: Network, *sites: str, options: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """Harvest these sites, each in a night of its own: the totals of each that are not 0."""
    found: dict[str, dict[str, Any]] = {}
    for name in sites:
        found |= night(network, "--site", name, *options)
    return found


def missing(network: Network, site: str = "a") -> list[str]:
    said = network.harvester("documents", "--site", site, "--missing", "--json")
    return [each["document_id"].removeprefix("test/oai_dc/oai:test:") for each in json.loads(said.out)]


def without(*numbers: str) -> dict[str, int]:
    return {key: 1 for key in ALL if key not in numbers}


def test_records_that_move_between_sets_keep_their_documents_in_every_database(network: Network) -> None:
    harvest_two_sets(network)
    network.server.put("oai:test:4", sets=("b",), left=("a",))
    network.server.put("oai:test:5", sets=("b",))
    assert nights(network, "b")["b"] == {"listed": 2, "unchanged": 2}
    assert nights(network, "a", options=("--full",))["a"] == {"listed": 23, "unchanged": 22, "deleted": 1}
    assert nights(network, "b")["b"] == {}
    assert missing(network) == []
    assert network.held() == ALL
    assert network.harvester.rows("SELECT count(*) FROM document_transfer") == [(0,)]
    noted = "SELECT revision, target_revision FROM harvest_document WHERE site_schedule_id = 2"
    assert network.harvester.rows(noted) == [(1, 1)] * 3


@pytest.mark.parametrize("is_told", [True, False], ids=["said-to-be-deleted", "not-named"])
def test_a_record_that_moves_to_the_set_of_another_site_keeps_its_document_and_its_revision(
    two_sets: Network, is_told: bool
) -> None:
    network, server = two_sets, two_sets.server
    left = ("a",) if is_told else ()
    server.put("oai:test:4", sets=("b",), left=left)
    assert nights(network, "b")["b"] == {"listed": 1, "unchanged": 1}
    gone = nights(network, "a", options=() if is_told else ("--full",))["a"]
    assert gone == ({"listed": 1, "deleted": 1} if is_told else {"listed": 23, "unchanged": 23})
    assert network.held() == ALL
    told = " ".join(network.report().split())
    if is_told:
        assert "The site 'b' still lists test/oai_dc/oai:test:4: nothing was deleted." in told
        assert "1 deletion noted" in network.subject("site")
        assert "1 deletion noted" in network.subject("admin")
    else:
        assert "list any more" not in told
    server.put("oai:test:4", sets=("b",), left=left, title="Toads")
    assert nights(network, "a", "b") == {
        "a": {"listed": 1, "unchanged": 1} if is_told else {},
        "b": {"listed": 1, "updated": 1},
    }
    assert network.held() == ALL | {"4": 2}
    assert nights(network, "a", "b", options=("--full",)) == {
        "a": {"listed": 24, "unchanged": 24} if is_told else {"listed": 23, "unchanged": 23},
        "b": {"listed": 2, "unchanged": 2},
    }
    assert "list any more" not in network.report()
    server.delete("oai:test:4")
    assert nights(network, "b")["b"] == {"listed": 1, "deleted": 1}
    assert network.held() == without("4")
    assert "1 deleted" in network.subject("site")


def test_records_that_move_in_one_night_keep_their_documents_whichever_site_lists_first(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    server.now += timedelta(days=1)
    for number in range(1, 19):
        server.put(f"oai:test:{number}", sets=("b",), left=("a",))
    server.put("oai:test:25", sets=("a",), left=("b",))
    assert night(network) == {
        "a": {"listed": 19, "unchanged": 1, "deleted": 18},
        "b": {"listed": 19, "unchanged": 18, "deleted": 1},
    }
    assert network.held() == ALL
    assert night(network) == {"a": {}, "b": {}}
    assert night(network, "--full") == {"a": {"listed": 25, "unchanged": 25}, "b": {"listed": 19, "unchanged": 19}}
    assert network.held() == ALL


def test_killed_while_the_second_site_lists_nothing_is_lost_or_counted_twice(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    server.now += timedelta(days=1)
    server.put("oai:test:4", sets=("b",), left=("a",))
    server.put("oai:test:5", sets=("a",), title="Toads")
    server.delete("oai:test:6")
    server.put("oai:test:26", sets=("b",))
    network.kill(lambda asked: is_list(asked) and asked.arguments.get("set") == "b", "2030-01-05")
    assert "6" in network.held()
    sites = network.harvester.run("2030-01-05")["sites"]
    assert {site["site"]: {key: site[key] for key in TOTALS.split() if site[key]} for site in sites} == {
        "a": {"listed": 3, "updated": 1, "deleted": 2},
        "b": {"listed": 2, "inserted": 1, "unchanged": 1},
    }
    assert {site["status"] for site in sites} == {"succeeded"}
    assert network.held() == without("6") | {"5": 2, "26": 1}
    network.night = 5
    # They are within the overlap of the next list.
    assert night(network) == {"a": {"listed": 3, "unchanged": 3}, "b": {"listed": 2, "unchanged": 2}}


def test_a_change_that_one_site_has_brought_is_unchanged_at_the_others(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    server.now += timedelta(days=1)
    for title in ("Toads", "Newts"):
        server.put("oai:test:4", sets=("a", "b"), title=title)
        found = night(network)
        assert found == {"a": {"listed": 1, "updated": 1}, "b": {"listed": 1, "unchanged": 1}}
    assert network.held() == ALL | {"4": 3}
    noted = "SELECT revision, target_revision FROM harvest_document WHERE document_id = ?"
    assert network.harvester.rows(noted, "test/oai_dc/oai:test:4") == [(3, 3), (3, 3)]
    server.put("oai:test:4", sets=("a", "b"), title="Frogs")
    assert nights(network, "b", "a") == {"a": {"listed": 1, "unchanged": 1}, "b": {"listed": 1, "updated": 1}}
    assert network.held() == ALL | {"4": 4}


def test_a_record_of_two_sets_that_is_deleted_is_deleted_when_the_last_site_is_told_so(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    for number in (4, 5):
        server.put(f"oai:test:{number}", sets=("a", "b"))
    assert nights(network, "b")["b"] == {"listed": 2, "unchanged": 2}
    for number, sites in ((4, ("a", "b")), (5, ("b", "a"))):
        server.delete(f"oai:test:{number}")
        assert nights(network, sites[0])[sites[0]]["deleted"] == 1
        assert str(number) in network.held()
        nights(network, sites[1])
        assert str(number) not in network.held()
    assert nights(network, "a", "b") == {"a": {}, "b": {}}
    assert network.held() == without("4", "5")


def test_a_record_of_two_sets_that_is_deleted_in_one_night_is_deleted_once(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    server.put("oai:test:4", sets=("a", "b"))
    night(network)
    server.delete("oai:test:4")
    assert night(network) == {"a": {"listed": 1, "deleted": 1}, "b": {"listed": 1, "deleted": 1}}
    assert network.held() == without("4")
    server.put("oai:test:4", sets=("a", "b"))
    assert night(network) == {"a": {"listed": 1, "inserted": 1}, "b": {"listed": 1, "unchanged": 1}}
    assert network.held() == ALL | {"4": 2}


def test_very_many_records_that_move_need_no_confirmation_and_very_many_deletions_do(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    server.now += timedelta(days=1)
    for number in range(1, 25):
        server.put(f"oai:test:{number}", sets=("b",), left=("a",))
    assert night(network)["a"] == {"listed": 24, "deleted": 24}
    assert network.held() == ALL
    for number in range(1, 25):
        server.delete(f"oai:test:{number}")
    assert nights(network, "b")["b"] == {"listed": 24, "deferred": 24}
    assert network.harvester("sites", "confirm", "b").code == 0
    assert nights(network, "b")["b"] == {"listed": 24, "deleted": 24}
    assert network.held() == {"25": 1}


def test_what_is_deleted_and_what_is_only_noted_in_one_night_are_told_apart(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    server.put("oai:test:4", sets=("b",), left=("a",))
    nights(network, "b")
    server.delete("oai:test:6")
    assert nights(network, "a")["a"] == {"listed": 2, "deleted": 2}
    told = " ".join(network.report().split())
    assert "2 documents: 1 is marked as deleted and 1 is marked as deleted (the copy stays)." in told


def test_what_one_full_list_leaves_out_by_the_dozen_is_not_missing_where_another_site_lists_it(
    two_sets: Network,
) -> None:
    network, server = two_sets, two_sets.server
    server.now += timedelta(days=1)
    for number in range(1, 22):
        server.put(f"oai:test:{number}", sets=("a", "b"))
    assert nights(network, "b")["b"] == {"listed": 21, "unchanged": 21}
    for number in range(1, 22):
        server.records[f"oai:test:{number}"].sets = ("b",)
    assert nights(network, "a", options=("--full",))["a"] == {"listed": 3, "unchanged": 3}
    assert missing(network) == []
    for number in range(1, 22):
        server.records[f"oai:test:{number}"].sets = ("a", "b")
    assert nights(network, "a", options=("--full",))["a"] == {"listed": 24, "unchanged": 24}
    assert network.held() == ALL


def test_what_another_site_lists_is_no_longer_missing(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server

    def is_told() -> bool:
        return "missing since" in network.harvester("documents", "show", "test/oai_dc/oai:test:4").out

    for number in (4, 5):
        server.put(f"oai:test:{number}", sets=())
    nights(network, "a", options=("--full",))
    assert (missing(network), is_told()) == (["4", "5"], True)
    server.put("oai:test:4", sets=("b",))
    rehearsed = network.harvester.run("2030-01-20", "--site", "b", "--dry-run")["sites"]
    assert (rehearsed[0]["unchanged"], rehearsed[0]["upload_error"], missing(network)) == (1, 0, ["4", "5"])
    nights(network, "b")
    assert (missing(network), is_told()) == (["5"], False)
    nights(network, "a", options=("--full",))
    assert "oai:test:4" not in network.report()
    assert "oai:test:5 is not in" in network.report()
    told = "SELECT message FROM harvest_log WHERE harvest_operation_code = 'DocMissing' ORDER BY harvest_log_id DESC"
    assert "1 record that was there before; 23 are known" in network.harvester.rows(told)[0][0]
    server.put("oai:test:4", sets=("a", "b"))
    assert nights(network, "a", "b") == {"a": {"listed": 1, "unchanged": 1}, "b": {"listed": 1, "unchanged": 1}}
    assert network.held() == ALL


def test_a_record_that_the_last_of_two_sites_loses_is_missing_there(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    server.put("oai:test:4", sets=("a", "b"))
    nights(network, "b")
    server.put("oai:test:4", sets=())
    nights(network, "a", "b", options=("--full",))
    assert (missing(network, "a"), missing(network, "b")) == ([], ["4"])
    assert network.held() == ALL


def test_what_another_site_is_told_to_be_deleted_is_missing_nowhere(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    server.put("oai:test:4", sets=())
    nights(network, "a", options=("--full",))
    assert missing(network) == ["4"]
    server.put("oai:test:4", sets=(), left=("b",))
    assert nights(network, "b")["b"] == {"listed": 1, "deleted": 1}
    assert (missing(network), network.held()) == ([], without("4"))


def test_what_the_filters_of_another_site_leave_out_is_deleted(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    filters = '<filters match="all"><filter xpath="/*" regexp="Frogs"/></filters>'
    (network.harvester.folder / "filters.xml").write_text(filters, encoding="utf-8")
    server.put("oai:test:4", sets=("a", "b"), title="Toads")
    nights(network, "a")
    network.harvester("sites", "edit", "b", "--filters", "filters.xml")
    assert nights(network, "b")["b"] == {"listed": 2, "unchanged": 1, "filtered": 1}
    assert network.held() == ALL | {"4": 2}
    server.put("oai:test:4", sets=("b",), left=("a",), title="Toads")
    nights(network, "a")
    assert network.held() == without("4")


@pytest.mark.parametrize("other", ["switched-off", "another-target", "another-origin"])
def test_a_deletion_is_told_where_no_other_site_keeps_the_document_up_to_date(two_sets: Network, other: str) -> None:
    network, server = two_sets, two_sets.server
    if other == "another-origin":
        network.harvester("sites", "edit", "b", "--origin", "other")
    server.put("oai:test:4", sets=("b",), left=("a",))
    if other == "another-target":
        config = network.harvester.config
        config.write_text(f'{config.read_text()}[sites.b.target]\nkind = "folder"\nfolder = "own"\n')
    nights(network, "b")
    if other == "switched-off":
        network.harvester("sites", "disable", "b")
    assert nights(network, "a")["a"] == {"listed": 1, "deleted": 1}
    assert "1 deleted" in network.subject("site")
    assert "test/oai_dc/oai:test:4." not in network.harvester("target", "list").out


def test_a_document_that_a_person_transfers_out_of_the_origin_is_another_sites(two_sets: Network) -> None:
    network, server = two_sets, two_sets.server
    network.register("--set", "b", "--origin", "other", name="c")
    transfer = "target", "transfer", "test/oai_dc/oai:test:4"
    assert network.harvester(*transfer, "c").code == 0
    server.put("oai:test:4", sets=("b",), left=("a",), title="Toads")
    assert nights(network, "b")["b"] == {"listed": 1, "upload_error": 1}
    assert "belongs to the site 'c'" in network.report()
    assert nights(network, "a")["a"] == {"listed": 1, "upload_error": 1}
    assert "It was not deleted." in network.report()
    assert network.held() == ALL
    assert network.harvester(*transfer, "a").code == 0
    assert nights(network, "b")["b"] == {"listed": 1, "updated": 1}
    assert nights(network, "a")["a"] == {"listed": 1, "deleted": 1}
    assert network.held() == ALL | {"4": 2}


def test_a_missing_record_whose_document_goes_to_another_origin_is_forgotten_by_the_next_full_list(
    two_sets: Network,
) -> None:
    network, server = two_sets, two_sets.server
    network.register("--set", "b", "--origin", "other", name="c")
    server.put("oai:test:4", sets=())
    nights(network, "a", options=("--full",))
    assert missing(network) == ["4"]
    assert network.harvester("target", "transfer", "test/oai_dc/oai:test:4", "c").code == 0
    nights(network, "a", options=("--full",))
    assert missing(network) == []
    assert "test/oai_dc/oai:test:4." in network.harvester("target", "list").out


def test_a_run_without_a_target_changes_nothing_of_what_is_missing_at_another_site(
    tmp_path: Path, server: OaiServer
) -> None:
    network = Network(tmp_path, server)
    harvest_two_sets(network)
    server.put("oai:test:4", sets=())
    nights(network, "a", options=("--full",))
    config = network.harvester.config
    with_target = config.read_text()
    config.write_text(f'{with_target}[target]\nkind = "none"\n')
    server.put("oai:test:4", sets=("b",))
    assert {name: totals["listed"] for name, totals in night(network).items()} == {"a": 23, "b": 2}
    assert missing(network) == ["4"]
    config.write_text(with_target)
    nights(network, "b")
    assert missing(network) == []
    network.harvester.close()


@on_one_database
def test_records_that_two_sites_list_in_one_night_come_in_once(network: Network) -> None:
    network.register()
    network.register(name="other")
    assert night(network) == {"other": {"listed": 25, "inserted": 25}, "repo": {"listed": 25, "unchanged": 25}}
    network.harvester("sites", "remove", "other", "--yes")
    network.server.delete("oai:test:4")
    assert night(network) == {"repo": {"listed": 1, "deleted": 1}}
    assert network.held() == without("4")


@pytest.mark.parametrize("fails", ["away", "in the middle"])
def test_a_record_that_moved_to_a_site_whose_list_fails_is_not_deleted(two_sets: Network, fails: str) -> None:
    network, server = two_sets, two_sets.server
    for number in range(30, 50):
        server.put(f"oai:test:{number}", sets=("b",))
    server.put("oai:test:7", sets=("b",), left=("a",))
    server.poisoned = (b"no", 503, {"Retry-After": "1000"})
    server.refuses = lambda asked: (
        is_list(asked) and "b" in str(asked.arguments) and (fails == "away" or "resumptionToken" in asked.arguments)
    )
    found = night(network)
    assert found["a"] == {"listed": 1, "deferred": 1}
    assert network.held()["7"] == 1
    sql = "SELECT error_message FROM harvest_detail_log WHERE rule = 'records.deletions-wait'"
    [(said,)] = network.harvester.rows(sql)
    assert "The list of the site 'b' did not come to its end" in said
    server.refuses = lambda asked: False
    night(network)
    assert network.held()["7"] == 1
    server.delete("oai:test:7")
    night(network)
    assert "7" not in network.held()


@on_one_database
@pytest.mark.parametrize("goes_on", ["next run", "next slice"])
def test_a_record_that_moved_is_not_deleted_when_the_harvest_goes_on(network: Network, goes_on: str) -> None:
    """The list of the site that has the record now failed before the interruption."""
    harvest_two_sets(network)
    harvester, server = network.harvester, network.server
    server.now += timedelta(days=1)
    for number in range(30, 60):
        server.put(f"oai:test:{number}", sets=("b",))
    server.put("oai:test:25", sets=("a",), left=("b",))
    server.poisoned = (b"no", 403, {})
    server.refuses = lambda asked: is_list(asked) and asked.arguments.get("set") == "a"
    if goes_on == "next run":
        network.kill(lambda asked: "!20!" in asked.arguments.get("resumptionToken", ""), "2030-01-05")
        assert harvester.rows(LAST_TWO) == [("b", "running"), ("a", "list-failed")]
        harvester.run("2030-01-05")
    else:
        harvest_in_slices(network, 3)
    assert harvester.rows(LAST_TWO) == [("b", "with-errors"), ("a", "list-failed")]
    assert network.held()["25"] == 1
    server.refuses = lambda asked: False
    network.night = 5
    night(network)
    assert network.held()["25"] == 1


def slowly(body: bytes, asked: Asked) -> bytes:
    time.sleep(0.7 if is_list(asked) else 0)
    return body


def only_the_requested_set(body: bytes, asked: Asked) -> bytes:
    return re.sub(rb"(<setSpec>.</setSpec>)+", f"<setSpec>{asked.arguments['set']}</setSpec>".encode(), body)


def test_a_record_in_the_sets_of_two_sites_does_not_change_with_each_full_list(network: Network) -> None:
    server = network.server
    server.sets = {"a": "A", "b": "B"}
    for record in server.records.values():
        record.sets = ("a", "b")
    server.tamper = lambda body, asked: only_the_requested_set(body, asked) if "set" in asked.arguments else body
    for name in ("a", "b"):
        network.register("--set", name, name=name)
    night(network)
    night(network, "--full")
    changes = "SELECT max(change_seq) FROM catalogue_document"
    before = network.harvester.rows(changes)
    assert night(network, "--full") == {name: {"listed": 25, "unchanged": 25} for name in ("a", "b")}
    assert network.harvester.rows(changes) == before


LAST_TWO = "SELECT site_name, status FROM harvest_site_run ORDER BY site_run_id DESC LIMIT 2"


def harvest_in_slices(network: Network, run_id: int, *options: str, seconds: int = 1) -> None:
    """Workers harvest both sites on request, in slices of this time."""
    harvester = network.harvester
    network.server.tamper = slowly
    settings = harvester.config.read_text(encoding="utf-8")
    broker = '[workers]\nbroker = "amqp://guest@127.0.0.1:1/"\n'
    harvester.config.write_text(f"{settings}{broker}slice = {seconds}\n", encoding="utf-8")
    for name in ("a", "b"):
        assert harvester("sites", "harvest", name, *options).code == 0
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester, run_id)
    assert harvester.rows("SELECT slices > 0 FROM job WHERE kind = 'harvest_site'") == [(1,)]


@on_one_database
def test_everything_that_a_person_asked_for_is_listed_once_in_all_slices(network: Network) -> None:
    """The list of one site ends in an early slice, and its deletion waits for the list of the other site."""
    harvest_two_sets(network)
    server = network.server
    server.now += timedelta(days=1)
    for number in range(30, 60):
        server.put(f"oai:test:{number}", sets=("b",))
    server.delete("oai:test:4")
    server.forget()
    harvest_in_slices(network, 3, "--everything", seconds=4)
    full = [
        each.arguments["set"] for each in server.asked("ListRecords") if {*each.arguments} == {"metadataPrefix", "set"}
    ]
    assert sorted(full) == ["a", "b"]
    assert "4" not in network.held()
    ends = network.harvester.rows("SELECT state, sentence FROM harvest_request")
    assert ends == [("done", "Run 3 harvested it: succeeded.")] * 2
