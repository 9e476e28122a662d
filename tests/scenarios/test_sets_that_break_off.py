"""Sites that ask for several sets, of which one breaks off by itself or is gone: the others go on as if it did not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.oai_network import ALL, Network, is_list, lists, missing, report
from support.oai_server import Asked, OaiServer, Odd


@pytest.fixture
def server() -> Iterator[OaiServer]:
    with OaiServer(records=25) as made:
        in_three_sets(made)
        yield made


@pytest.fixture
def network(tmp_path: Path, server: OaiServer) -> Iterator[Network]:
    made = Network(tmp_path, server)
    yield made
    made.harvester.close()


def mended(server: OaiServer) -> None:
    server.tamper, server.refuses = None, lambda asked: False


def begins(server: OaiServer) -> dict[str, str]:
    """From where on the list of each set was asked for first."""
    lists = [each.arguments for each in reversed(server.answered) if is_list(each) and "set" in each.arguments]
    return {each["set"]: each.get("from", "") for each in lists}


SETS = ("--set", "a", "--set", "b", "--set", "c")


def in_three_sets(server: OaiServer) -> None:
    server.sets = {"a": "A", "b": "B", "c": "C"}
    for number in range(1, 26):
        server.records[f"oai:test:{number}"].sets = ("a" if number < 10 else "b" if number < 14 else "c",)


def is_of(asked: Asked, *sets: str) -> bool:
    return asked.arguments.get("set") in sets


def refused(server: OaiServer, *sets: str) -> None:
    server.refuses = lambda asked: is_of(asked, *sets)


def said_to_be_wrong(server: OaiServer, *sets: str) -> None:
    error = b'<error code="badArgument">not that set</error>'
    server.tamper = lambda body, asked: (
        re.sub(rb"<(List.*</List\w+|error.*</error)>", error, body, flags=re.DOTALL) if is_of(asked, *sets) else body
    )


def too_short(server: OaiServer, *sets: str) -> None:
    """The number differs each night, as the same shortfall twice is a repository's way to count."""

    def tamper(body: bytes, asked: Asked) -> bytes:
        number = 99 + 50 * (server.now - datetime(2026, 11, 21, 3, tzinfo=UTC)).days
        size = b'<resumptionToken completeListSize="%d"/>' % number
        is_short = is_of(asked, *sets)
        return re.sub(rb"(<resump.*)?(</List(Rec|Id))", size + rb"\2", body, flags=re.DOTALL) if is_short else body

    server.tamper = tamper


def forbidden(server: OaiServer, *sets: str) -> None:
    refused(server, *sets)
    server.poisoned = (b"no", 403, {})


def a_page_for_people(server: OaiServer, *sets: str) -> None:
    server.tamper = lambda body, asked: b"<html>Fatal error</html>" if is_of(asked, *sets) else body


def no_longer_named(server: OaiServer, *sets: str) -> None:
    server.tamper = lambda body, asked: re.sub(
        rf"<set><setSpec>({'|'.join(sets)})</setSpec>.*?</set>".encode(), b"", body, flags=re.DOTALL
    )


BREAK_OFF = [refused, said_to_be_wrong, too_short, forbidden, a_page_for_people, no_longer_named]


@pytest.mark.parametrize(
    ("breaks_off", "broken"),
    [*((each, "b") for each in BREAK_OFF), (refused, "a"), (refused, "c"), (no_longer_named, "a"), (too_short, "c")],
)
def test_the_other_sets_are_harvested_where_one_breaks_off(
    network: Network, breaks_off: Callable[..., None], broken: str
) -> None:
    server = network.server
    network.register(*SETS)
    breaks_off(server, broken)
    others = {number for number in ALL if broken not in server.records[f"oai:test:{number}"].sets}
    for title in ("Toads", "Newts"):
        assert network.harvest()["status"] == "incomplete"
        assert others <= set(network.held())
        assert f"The list of the set {broken} broke off after" in report(network)
        assert "Other sets" not in report(network)
        for number in sorted(others):
            server.put(f"oai:test:{number}", title=title, sets=server.records[f"oai:test:{number}"].sets)
    server.tamper, server.refuses = None, lambda asked: False
    assert network.harvest()["status"] == "succeeded"
    assert network.held() == {number: 3 if number in others else 1 for number in ALL}
    server.forget()
    assert network.harvest()["status"] == "succeeded"
    assert all("from" in each.arguments for each in lists(server))
    assert missing(network) == 0


def test_each_set_that_breaks_off_is_told(network: Network) -> None:
    too_short(network.server, "a", "c")
    network.register(*SETS)
    assert network.harvest()["status"] == "incomplete"
    assert "The list of the set a broke off after 9 of 99 records" in report(network)
    assert "The list of the set c broke off after 23 of 112 records" in report(network)
    assert {"11", "12", "13"} <= set(network.held())


def test_sets_that_all_break_off_at_once_are_a_list_that_was_not_begun(network: Network) -> None:
    said_to_be_wrong(network.server, "a", "b", "c")
    network.register(*SETS)
    assert network.harvest() == {"status": "list-failed"}
    assert all(f"The list of the set {name} broke off" in report(network) for name in "abc")


@pytest.mark.parametrize("is_time", [lambda asked: is_of(asked, "c"), lambda asked: "resumptionToken" in str(asked)])
def test_a_crash_behind_a_set_that_broke_off_does_not_take_its_list_for_whole(
    network: Network, is_time: Callable[[Asked], bool]
) -> None:
    server = network.server
    refused(server, "b")
    network.register(*SETS)
    network.kill(is_time, "2030-01-01")
    network.night = 1
    assert network.harvest()["status"] == "incomplete"
    assert "The list of the set b broke off after" in report(network)
    server.refuses = lambda asked: False
    assert network.harvest()["status"] == "succeeded"
    assert network.held() == ALL


def test_sets_that_wait_for_one_whose_server_is_away_are_named(network: Network) -> None:
    server = network.server
    server.page, server.poisoned = 1, (b"busy", 503, {})
    network.register(*SETS)
    for page, waiting in ((1, "c"), (2, "a, c")):
        server.refuses = lambda asked, page=page: f"!b!!!{page}!" in str(asked)  # type: ignore[misc]
        assert network.harvest()["status"] == "incomplete"
        assert f"Other sets of this site were not asked for: {waiting}." in report(network)
    server.refuses = lambda asked: False
    assert network.harvest()["status"] == "succeeded"
    assert network.held() == ALL


@pytest.mark.parametrize("breaks_off", [refused, too_short, no_longer_named])
def test_the_others_are_not_listed_in_full_again_for_one_that_is_broken_off_each_night(
    network: Network, breaks_off: Callable[..., None]
) -> None:
    server = network.server
    network.register(*SETS)
    breaks_off(server, "b")
    for _ in range(2):
        server.forget()
        assert network.harvest()["status"] == "incomplete"
    after = begins(server)
    assert after["a"] == after["c"] >= "2026-11-21"
    assert after.get("b", "") == ""
    mended(server)
    tonight = network.harvest()
    assert (tonight["status"], tonight["listed"]) == ("succeeded", 4)
    assert network.held() == ALL
    server.forget()
    assert network.harvest()["status"] == "succeeded"
    assert len(set(begins(server).values())) == 1


@pytest.mark.parametrize("full", [True, False])
def test_a_set_that_is_broken_off_for_some_nights_has_lost_no_change(network: Network, full: bool) -> None:
    """It goes on from where its own last list was begun, also where a crash comes in between."""
    server = network.server
    network.register(*SETS)
    network.harvest()
    server.put("oai:test:10", title="Toads", sets=("b",))
    refused(server, "b")
    server.now += timedelta(days=1)
    for night in range(3):
        assert network.harvest(*(("--full",) if full and night == 1 else ()))["status"] == "incomplete"
        server.put("oai:test:1", title=f"Toads {night}", sets=("a",))
    server.put("oai:test:11", title="Toads", sets=("b",))
    mended(server)
    network.kill(lambda asked: is_of(asked, "b", "c"), "2030-01-05")
    network.night = 5
    for _ in range(2):
        network.harvest()
    assert network.held() == {**ALL, "1": 4, "10": 2, "11": 2}
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}
    assert missing(network) == 0


def test_a_full_list_of_which_a_set_has_broken_off_is_asked_for_again_once_that_is_there(network: Network) -> None:
    """What is missing shows only then; meanwhile the others are not listed in full each night."""
    server = network.server
    network.register(*SETS, "--full-every", "30")
    network.harvest()
    del server.records["oai:test:3"]
    server.now += timedelta(days=30)
    is_full = []
    for is_well in (False, False, False, True, True, True, True):
        server.refuses = lambda asked, is_well=is_well: not is_well and is_of(asked, "b")  # type: ignore[misc]
        server.forget()
        assert network.harvest()["status"] == ("succeeded" if is_well else "incomplete")
        is_full.append(not begins(server)["a"])
        assert missing(network) == (len(is_full) > 4)
    assert is_full == [True, False, False, False, True, False, False]


def test_a_full_list_that_breaks_off_once_more_waits_for_the_next_one(network: Network) -> None:
    """As where a set breaks off only if all of it is asked for together with the others."""
    server = network.server
    network.register(*SETS, "--full-every", "5")
    network.harvest()
    is_full = []
    for _ in range(10):
        server.forget()
        server.refuses = lambda asked: is_of(asked, "b") and not begins(server)["a"]
        network.harvest()
        is_full.append(not begins(server)["a"])
    assert [night for night, each in enumerate(is_full, 1) if each] == [5, 7]


@pytest.mark.parametrize("moved", ["long ago", "a night before", "meanwhile"])
@pytest.mark.parametrize("title", ["Frogs", "Toads"])
def test_what_has_left_a_set_that_was_broken_off_stays_where_another_set_has_it(
    network: Network, moved: str, title: str
) -> None:
    """The set calls it deleted; the others name only what has changed since they were listed last."""
    server = network.server
    network.register(*SETS)
    if moved == "long ago":
        server.put("oai:test:12", server.now - timedelta(days=9), sets=("a",), left=("b",), title=title)
    else:
        network.harvest()
        to = server.now + timedelta(hours=23, minutes=58)
        server.put("oai:test:12", to, sets=("a",), left=("b",), title=title)
    if moved == "a night before":
        network.harvest()
    refused(server, "b")
    assert network.harvest()["status"] == "incomplete"
    server.delete("oai:test:11")
    mended(server)
    for _ in range(2):
        assert network.harvest()["status"] == "succeeded"
    assert network.held() == {
        number: 1 + (number == "12" and title == "Toads" and moved != "long ago") for number in ALL if number != "11"
    }
    assert network.harvest() == {"status": "succeeded"}


def test_what_moves_to_a_set_that_was_read_already_is_not_deleted_meanwhile(network: Network) -> None:
    """The next list, which begins where this one did, reports deletions of the meantime."""
    server = network.server
    network.register(*SETS)
    network.harvest()

    def move(asked: Asked) -> bool:
        if is_of(asked, "b") and not server.records["oai:test:12"].left:
            server.now += timedelta(minutes=2)
            server.put("oai:test:12", sets=("a",), left=("b",))
            server.delete("oai:test:11")
        return False

    server.refuses = move
    assert network.harvest() == {"status": "succeeded"}
    assert network.held() == ALL
    assert network.harvest() == {"status": "succeeded", "listed": 3, "unchanged": 1, "duplicate": 1, "deleted": 1}
    assert network.held() == {number: 1 for number in ALL if number != "11"}


def test_a_first_list_of_which_a_set_has_broken_off_is_asked_for_once(network: Network) -> None:
    """Nothing can be missing that never was there."""
    server = network.server
    network.register(*SETS, "--full-every", "30")
    refused(server, "b")
    network.harvest()
    mended(server)
    network.harvest()
    server.forget()
    network.harvest()
    assert all(begins(server).values())


@pytest.mark.parametrize("broken", "abc")
@pytest.mark.parametrize("seconds", [True, False])
def test_what_is_refused_of_one_set_alone_is_not_refused_of_the_others(
    network: Network, broken: str, seconds: bool
) -> None:
    """Neither the time of day in `from`, which the repository may refuse for all of them, nor `from` itself."""
    server = network.server
    network.register(*SETS)
    network.harvest()
    server.odd = set() if seconds else {Odd.NO_SECONDS}
    said_to_be_wrong(server, broken)
    for _ in range(2):
        server.forget()
        server.now += timedelta(hours=12)
        assert network.harvest() == {"status": "incomplete"}
        taken = [each.arguments for each in server.answered if is_list(each) and not is_of(each, broken)]
        assert taken.pop()["from"].endswith("Z") is seconds
        assert all("from" in each for each in taken)
        assert "all was asked for" not in report(network)
        is_found_out = not seconds and network.night == 2
        assert ("its datestamps have seconds, and refuses them" in report(network)) is is_found_out
    mended(server)
    server.put("oai:test:11", title="Toads", sets=server.records["oai:test:11"].sets)
    server.forget()
    assert network.harvest() == {"status": "succeeded", "listed": 1, "updated": 1}
    assert all(each.endswith("Z") is seconds for each in begins(server).values())


@pytest.mark.parametrize("breaks_off", [refused, no_longer_named])
def test_a_night_without_news_in_the_others_is_incomplete_and_none_without_a_list(
    network: Network, breaks_off: Callable[..., None]
) -> None:
    server = network.server
    network.register(*SETS)
    network.harvest()
    server.now += timedelta(days=9)
    network.harvest()
    breaks_off(server, "b")
    assert network.harvest() == {"status": "incomplete"}
    assert "The list of the set b broke off after 0" in report(network)


def test_deletions_in_the_others_are_told_where_the_set_is_gone(network: Network) -> None:
    server = network.server
    network.register(*SETS)
    network.harvest()
    no_longer_named(server, "b")
    server.now += timedelta(days=1)
    server.delete("oai:test:3")
    assert network.harvest() == {"status": "incomplete", "listed": 1, "deleted": 1}
    assert network.held() == {number: 1 for number in ALL if number != "3"}


def test_deletions_in_the_others_wait_for_a_set_that_may_have_the_records(network: Network) -> None:
    """Some repositories say of a record that is in another set now that it is deleted."""
    server = network.server
    network.register(*SETS)
    network.harvest()
    refused(server, "b")
    server.now += timedelta(days=1)
    server.put("oai:test:3", sets=("b",), left=("a",))
    server.delete("oai:test:4")
    assert network.harvest() == {"status": "incomplete", "listed": 2, "deferred": 2}
    assert network.held() == ALL
    assert (
        "The repository says that 2 documents of this site are deleted. As the list of the set b broke off"
        in report(network)
    )
    assert network.harvest() == {"status": "incomplete", "listed": 2, "deferred": 2}
    mended(server)
    night = network.harvest()
    assert (night["status"], night["deleted"]) == ("succeeded", 1)
    assert network.held() == {number: 1 for number in ALL if number != "4"}


def asked_to_confirm(network: Network) -> int:
    """How many deletions a person is asked to confirm."""
    found = re.search(r"repo: (\d+) deletions? waits?\.", network.harvester("doctor").out)
    return int(found[1]) if found else 0


def test_deletions_that_wait_for_a_set_are_nothing_to_be_confirmed(network: Network) -> None:
    server = network.server
    network.register(*SETS)
    network.harvest()
    refused(server, "b")
    server.now += timedelta(days=1)
    server.delete("oai:test:3")
    for _ in range(2):
        assert network.harvest() == {"status": "incomplete", "listed": 1, "deferred": 1}
        assert asked_to_confirm(network) == 0
        assert "Nothing of repo waits to be confirmed." in network.harvester("sites", "confirm", "repo").out


def test_deletions_that_are_too_many_are_to_be_confirmed_where_a_set_has_broken_off_too(network: Network) -> None:
    server = network.server
    network.register(*SETS, "--max-loss", "0")
    network.harvest()
    refused(server, "b")
    server.now += timedelta(days=1)
    server.delete("oai:test:3")
    assert network.harvest() == {"status": "incomplete", "listed": 1, "deferred": 1}
    assert asked_to_confirm(network) == 1
    assert "deletes 1 document." in network.harvester("sites", "confirm", "repo").out
    assert asked_to_confirm(network) == 0
    mended(server)
    assert network.harvest()["deleted"] == 1


@pytest.mark.parametrize("way_out", ["mended", "taken-out-of-the-site"])
def test_a_confirmation_outlives_the_nights_in_which_deletions_wait_for_a_set(network: Network, way_out: str) -> None:
    server = network.server
    network.register(*SETS, "--max-loss", "0")
    network.harvest()
    server.now += timedelta(days=1)
    server.delete("oai:test:3")
    assert network.harvest() == {"status": "with-errors", "listed": 1, "deferred": 1}
    assert "deletes 1 document." in network.harvester("sites", "confirm", "repo").out
    refused(server, "b")
    for _ in range(2):
        assert network.harvest() == {"status": "incomplete", "listed": 1, "deferred": 1}
        assert "the list of the set b broke off" in report(network)
        assert asked_to_confirm(network) == 0
    if way_out == "mended":
        mended(server)
    else:
        network.harvester("sites", "edit", "repo", "--set", "a", "--set", "c")
    assert network.harvest()["deleted"] == 1


def test_what_waits_in_the_others_is_tried_again(network: Network) -> None:
    server = network.server
    network.register(*SETS)
    server.put("oai:test:1", sets=("a",), metadata="")
    assert network.harvest()["invalid"] == 1
    server.put("oai:test:1", server.records["oai:test:1"].datestamp, sets=("a",))
    server.put("oai:test:15", datetime(2025, 1, 1, tzinfo=UTC), sets=("c",), title="Toads")
    refused(server, "b")
    server.now += timedelta(days=9)
    tonight = network.harvest("--full")
    assert (tonight["status"], tonight["inserted"], tonight["updated"]) == ("incomplete", 1, 1)
    assert network.held() == {**ALL, "15": 2}


@pytest.mark.parametrize("parted", [True, False], ids=["by-a-crash", "in-one-run"])
def test_what_a_set_leaves_out_that_moves_while_another_is_broken_off_comes_later(
    network: Network, parted: bool
) -> None:
    """The first page of the set a shrinks behind our back, so that one record behind it is not listed."""
    server = network.server
    server.page = 3
    network.register(*SETS)
    server.refuses = lambda asked: is_of(asked, "b")
    if parted:
        network.kill(lambda asked: "!a!!!6!" in str(asked), "2030-01-01")
        server.put("oai:test:1", title="Toads", sets=("a",))
        network.night = 1
    else:

        def change(body: bytes, asked: Asked) -> bytes:
            if is_of(asked, "a") and server.records["oai:test:1"].title == "Frogs":
                server.put("oai:test:1", title="Toads", sets=("a",))
            return body

        server.tamper = change
    assert network.harvest()["status"] == "incomplete"
    assert len({"4", "7"} & set(network.held())) == 1
    assert "the same list is requested again" in report(network)
    server.tamper = None
    assert network.harvest()["status"] == "incomplete"
    assert network.held() == {number: 1 + (number == "1") for number in ALL if not 10 <= int(number) < 14}
    mended(server)
    for _ in range(2):
        assert network.harvest()["status"] == "succeeded"
    assert network.held() == {**ALL, "1": 2}
    server.forget()
    network.harvest()
    assert all(begins(server).values())


@pytest.mark.parametrize("broken_off", [False, True])
def test_a_list_that_an_earlier_version_has_begun_goes_on_or_begins_anew(network: Network, broken_off: bool) -> None:
    """It kept whether a set's list had broken off, not which."""
    server = network.server
    server.page = 3
    network.register(*SETS)
    if broken_off:
        refused(server, "b")
    network.kill(lambda asked: "!c!!!6!" in str(asked), "2030-01-01")
    mended(server)
    [(kept,)] = network.harvester.rows("SELECT checkpoint FROM site_checkpoint")
    state = json.loads(kept)
    assert bool(state["progress"]["broken_off"]) is broken_off
    del state["behind"], state["progress"]["begins"]
    state["progress"]["broken_off"] = broken_off
    network.harvester.rows("UPDATE site_checkpoint SET checkpoint = ?", json.dumps(state))
    server.forget()
    network.night = 1
    assert network.harvest()["status"] == "succeeded"
    assert network.held() == ALL
    assert ("a" in begins(server)) is broken_off
