"""Records that a list has as they were before: of a repository from a backup, or beside what they are now."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

import pytest

from support.oai_network import ALL, Network, missing, report
from support.oai_server import Asked, OaiServer
from support.remote_target import Repository, installed

BEFORE = datetime(2025, 10, 1, tzinfo=UTC)
RESTORED = (3, 14, 15)
TOLD = {**ALL, **{str(number): 2 for number in RESTORED}}


@pytest.fixture
def server() -> Iterator[OaiServer]:
    with OaiServer(records=25) as made:
        yield made


@pytest.fixture
def network(tmp_path: Path, server: OaiServer) -> Iterator[Network]:
    made = Network(tmp_path, server)
    yield made
    made.harvester.close()


@pytest.fixture
def restored(network: Network) -> Network:
    """A repository that was harvested once, and restored from a backup since."""
    network.register()
    network.harvest()
    restore(network.server)
    return network


def restore(server: OaiServer) -> None:
    for number in RESTORED:
        server.put(f"oai:test:{number}", BEFORE, title="Toads")


def identifiers(asked: list[Asked]) -> list[str]:
    return sorted(each.arguments["identifier"] for each in asked)


def twice(server: OaiServer, **now: object) -> Callable[[bytes, Asked], bytes]:
    """The record 1 is on the first page as it was before, and at the list's end as it is now."""
    old = server._written(server.records.pop("oai:test:1"))
    server.put("oai:test:1", datetime(2026, 10, 1, tzinfo=UTC), title="Toads", **now)
    return lambda body, asked: (
        body.replace(b"<ListRecords>", b"<ListRecords>" + old, 1)
        if asked.verb == "ListRecords" and "resumptionToken" not in asked.arguments
        else body
    )


def test_a_deletion_that_has_waited_is_made_though_the_list_has_the_record_as_it_was_too(network: Network) -> None:
    server = network.server
    network.register("--max-loss", "0")
    network.harvest()
    server.now += timedelta(days=1)
    server.tamper = twice(server, deleted=True)
    waits = {"status": "with-errors", "listed": 26, "unchanged": 24, "deferred": 1}
    assert network.harvest("--full") == {**waits, "unchanged": 25}
    for _ in range(2):
        assert network.harvest("--full") == {**waits, "duplicate": 1}
        assert network.held() == dict.fromkeys(ALL, 1)
    assert "deletes 1 document" in network.harvester("sites", "confirm", "repo").out
    made = {"status": "succeeded", "listed": 26, "unchanged": 24, "duplicate": 1, "deleted": 1}
    assert network.harvest("--full") == made
    assert network.held() == {each: 1 for each in ALL if each != "1"}
    assert server.asked("GetRecord") == []


@pytest.mark.parametrize("deleted", [False, True])
def test_a_record_that_a_list_has_as_it_was_is_not_set_back(network: Network, deleted: bool) -> None:
    server = network.server
    network.register()
    network.harvest()
    server.now += timedelta(days=1)
    server.tamper = twice(server, deleted=deleted)
    first = network.harvest("--full")
    ended = {"deleted": 1} if deleted else {"updated": 1}
    assert first == {"status": "succeeded", "listed": 26, "unchanged": 25, **ended}
    held = {each: 1 for each in ALL if each != "1"} | ({} if deleted else {"1": 2})
    for _ in range(2):
        assert network.harvest("--full") == {"status": "succeeded", "listed": 26, "unchanged": 25, "duplicate": 1}
        assert network.held() == held
    server.refuse_tokens = (b"busy", 503)
    assert network.harvest("--full")["status"] == "incomplete"
    assert network.held() == held
    assert server.asked("GetRecord") == []


def test_what_a_repository_has_from_a_backup_is_asked_for_by_itself_and_taken(network: Network) -> None:
    server = network.server
    network.register()
    network.harvest()
    for number in (3, 14):
        server.put(f"oai:test:{number}", datetime(2025, 10, 1, tzinfo=UTC), title="Toads")
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 23, "updated": 2}
    assert {each.arguments["identifier"] for each in server.asked("GetRecord")} == {"oai:test:3", "oai:test:14"}
    assert network.held() == {**ALL, "3": 2, "14": 2}
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}
    server.put("oai:test:3", datetime(2025, 9, 1, tzinfo=UTC), title="Newts")
    server.unreadable = {"oai:test:3"}
    assert network.harvest("--full") == {"status": "with-errors", "listed": 25, "unchanged": 24, "access_error": 1}
    server.unreadable.clear()
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 24, "updated": 1}
    server.put("oai:test:4", datetime(2025, 9, 1, tzinfo=UTC), metadata="")
    assert network.harvest("--full") == {"status": "with-errors", "listed": 25, "unchanged": 24, "invalid": 1}


def test_older_records_are_asked_for_in_a_later_night_where_the_list_broke_off(restored: Network) -> None:
    server = restored.server
    server.refuse_tokens = (b"busy", 503)
    assert restored.harvest("--full")["status"] == "incomplete"
    assert server.asked("GetRecord") == []
    server.refuse_tokens = None
    while (tonight := restored.harvest())["status"] != "succeeded":
        assert restored.night < 6
    assert tonight["updated"] >= 1
    assert restored.held() == TOLD


@pytest.mark.parametrize(
    "is_time",
    [
        lambda asked: "resumptionToken" in asked.arguments,
        lambda asked: asked.verb == "GetRecord",
        lambda asked: asked.arguments.get("identifier") == "oai:test:15",
    ],
    ids=["in-the-list", "at-the-first", "at-the-last"],
)
@pytest.mark.parametrize("same_run", [True, False], ids=["resumed", "next-night"])
def test_older_records_are_asked_for_after_a_crash(
    restored: Network, is_time: Callable[[Asked], bool], same_run: bool
) -> None:
    restored.server.now += timedelta(days=1)
    restored.kill(is_time, "2030-01-02", "--full")
    restored.night = 1 if same_run else 2
    for _ in range(2):
        assert restored.harvest()["status"] == "succeeded"
    assert restored.held() == TOLD
    assert restored.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}


def test_older_records_that_wait_are_asked_for_in_a_night_in_which_the_site_is_not_due(network: Network) -> None:
    server = network.server
    network.register("--every", "1", "--unit", "weeks")
    network.harvest()
    restore(server)
    server.refuses, server.poisoned = lambda asked: asked.verb == "GetRecord", (b"busy", 503, {})
    assert network.harvest("--full") == {"status": "with-errors", "listed": 25, "unchanged": 22, "access_error": 3}
    server.refuses = lambda asked: False
    server.forget()
    [site] = network.harvester.run("2030-01-03")["sites"]  # it is due in a week
    assert (site["status"], site["updated"]) == ("succeeded", 3)
    assert {each.verb for each in server.answered} == {"GetRecord"}
    assert network.held() == TOLD


def test_an_older_record_that_is_listed_twice_is_asked_for_once(restored: Network) -> None:
    server = restored.server
    first = server._written(server.records["oai:test:3"])
    second = first.replace(b"2025-10-01", b"2025-11-01")

    def tamper(body: bytes, asked: Asked) -> bytes:
        is_second = asked.verb == "ListRecords" and "resumptionToken" in asked.arguments
        return body.replace(b"<ListRecords>", b"<ListRecords>" + second, 1) if is_second else body

    server.tamper = tamper
    tonight = restored.harvest("--full")
    assert (tonight["status"], tonight["updated"], tonight["unchanged"]) == ("succeeded", 3, 22)
    assert identifiers(server.asked("GetRecord")) == ["oai:test:14", "oai:test:15", "oai:test:3"]
    assert restored.held() == TOLD


def test_an_older_record_has_its_second_attempt(restored: Network) -> None:
    server = restored.server
    refused: list[Asked] = []

    def refuses(asked: Asked) -> bool:
        if asked.verb != "GetRecord" or refused:
            return False
        refused.append(asked)
        return True

    server.refuses, server.poisoned = refuses, (b"busy", 503, {"Retry-After": "1"})
    assert restored.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 22, "updated": 3}
    assert restored.held() == TOLD


def test_a_repository_that_is_busy_is_not_asked_for_all_of_many_older_records(network: Network) -> None:
    server = network.server
    network.register()
    network.harvest()
    for number in range(1, 201):
        server.put(f"oai:test:{number}")
    network.harvest()
    for number in range(1, 201):
        server.put(f"oai:test:{number}", BEFORE, title="Toads")
    server.refuses, server.poisoned = lambda asked: asked.verb == "GetRecord", (b"busy", 503, {})
    tonight = network.harvest("--full")
    assert tonight["listed"] == 200 == tonight["access_error"] + tonight["deferred"]
    assert len(server.asked("GetRecord")) < 100
    server.refuses = lambda asked: False
    assert network.harvest()["updated"] == 200


def test_an_older_record_that_could_not_be_had_sets_nothing_back(restored: Network) -> None:
    """The list that names it again has an old version, however often."""
    server = restored.server
    old = server._written(server.records["oai:test:3"])
    server.put("oai:test:3", datetime(2026, 1, 3, tzinfo=UTC))
    new = server._written(server.records["oai:test:3"])
    server.tamper = lambda body, asked: body.replace(new, old) if asked.verb == "ListRecords" else body
    server.unreadable = {"oai:test:3", "oai:test:14", "oai:test:15"}
    for _ in range(2):
        assert restored.harvest("--full") == {"status": "with-errors", "listed": 25, "unchanged": 22, "access_error": 3}
    server.unreadable.clear()
    assert restored.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 23, "updated": 2}
    assert restored.held() == {**TOLD, "3": 1}


def test_datestamps_that_do_not_begin_with_the_year_are_not_compared(network: Network) -> None:
    server = network.server
    network.register()
    old = server._written(server.records.pop("oai:test:1"))
    server.put("oai:test:1", datetime(2026, 10, 1, tzinfo=UTC), title="Toads")

    def tamper(body: bytes, asked: Asked) -> bytes:
        if asked.verb == "ListRecords" and "resumptionToken" not in asked.arguments:
            body = body.replace(b"<ListRecords>", b"<ListRecords>" + old, 1)
        return body.replace(b"2026-01-01T00:00:00Z", b"31.01.2026").replace(b"2026-10-01T00:00:00Z", b"01.02.2026")

    server.tamper = tamper
    network.harvest()
    assert network.held()["1"] == 2
    assert "Toads" in network.harvester("target", "get", "test/oai_dc/oai:test:1").out


def test_a_record_that_is_listed_live_is_not_deleted_though_its_deletion_was_put_off(network: Network) -> None:
    server = network.server
    network.register("--max-loss", "0")
    network.harvest()
    server.now += timedelta(days=1)
    server.delete("oai:test:3")
    assert network.harvest()["deferred"] == 1
    server.put("oai:test:3", BEFORE, title="Toads")
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 24, "updated": 1}
    assert network.held() == {**ALL, "3": 2}


def test_a_record_that_was_deleted_and_is_restored_comes_back(network: Network) -> None:
    server = network.server
    network.register()
    network.harvest()
    server.now += timedelta(days=1)
    server.delete("oai:test:3")
    assert network.harvest()["deleted"] == 1
    server.put("oai:test:3", BEFORE, title="Toads")
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 24, "inserted": 1}
    assert network.held() == {**ALL, "3": 2}


def test_what_was_mended_of_an_older_record_is_told(restored: Network) -> None:
    server = restored.server

    def damaged(body: bytes, asked: Asked) -> bytes:
        return body.replace(b"Toads", b"Toads \xff") if asked.arguments.get("identifier") == "oai:test:3" else body

    server.tamper = damaged
    assert restored.harvest("--full")["updated"] == 3
    assert "oai:test:3" in restored.report()
    assert "U+FFFD" in restored.report()


def test_the_embedded_target_knows_the_datestamp_of_a_record_that_comes_back_as_it_is_there(restored: Network) -> None:
    """GetRecord says that only the datestamp is another one; so does a record that had failed meanwhile."""
    server = restored.server
    titled = [server._written(server.records[f"oai:test:{number}"]) for number in RESTORED]
    for number in RESTORED:
        server.put(f"oai:test:{number}", BEFORE)
    plain = [server._written(server.records[f"oai:test:{number}"]) for number in RESTORED]

    def stale(body: bytes, asked: Asked) -> bytes:
        for one, other in zip(plain, titled, strict=True) if asked.verb == "ListRecords" else ():
            body = body.replace(one, other)
        return body

    server.tamper = stale
    assert restored.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}
    assert restored.held() == ALL
    query = "SELECT DISTINCT datestamp FROM document_origin WHERE identifier IN ('oai:test:3', 'oai:test:14')"
    assert restored.harvester.rows(query) == [("2025-10-01T00:00:00Z",)]


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A target that tells no digests, for this process and those that it starts."""
    added = installed(tmp_path)
    monkeypatch.syspath_prepend(added)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(added), str(Path(__file__).parents[1])]))
    with Repository() as made:
        yield made


@pytest.fixture
def into_remote(tmp_path: Path, server: OaiServer, remote: Repository) -> Iterator[Network]:
    made = Network(tmp_path, server, f'[target]\nkind = "remote"\nurl = "{remote.url}"\n')
    yield made
    made.harvester.close()


def test_a_target_that_tells_no_digests_gets_no_revision_of_what_it_has(into_remote: Network) -> None:
    network, server = into_remote, into_remote.server
    network.register()
    assert network.harvest()["inserted"] == 25
    new = server._written(server.records["oai:test:3"])
    old = new.replace(b"2026-01-03", b"2025-10-01").replace(b"Frogs", b"Toads")
    server.tamper = lambda body, asked: body.replace(new, old) if asked.verb == "ListRecords" else body
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}
    assert len(server.asked("GetRecord")) == 1


def test_a_target_that_tells_no_digests_gets_no_revision_of_what_could_not_be_had_for_a_night(
    into_remote: Network, remote: Repository
) -> None:
    network, server = into_remote, into_remote.server
    network.register("--method", "list-identifiers")
    network.harvest()
    server.put("oai:test:2", datetime(2026, 1, 2, tzinfo=UTC), title="Toads")
    server.refuses = lambda asked: asked.verb == "GetRecord"
    assert network.harvest("--full")["access_error"] == 25
    server.refuses = lambda asked: False
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "updated": 1, "unchanged": 24}
    assert sorted(remote.highest().values()) == [*(1,) * 24, 2]


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_older_records_that_are_being_sent_as_the_run_is_killed_arrive_once(
    into_remote: Network, remote: Repository, after: int
) -> None:
    network, server = into_remote, into_remote.server
    network.register()
    network.harvest()
    restore(server)
    server.now += timedelta(days=1)
    sent: list[str] = []
    receive = remote.receive

    def kill(docid: str, content: bytes) -> bool:
        if len(sent) == after:
            running[0].send_signal(signal.SIGKILL)
        sent.append(docid)
        return receive(docid, content)

    remote.receive = kill if after < 3 else receive  # type: ignore[method-assign]
    running = [network.harvester.start("run", "--date", "2030-01-02", "--full")]
    running[0].communicate(timeout=60)
    assert running[0].returncode == (-signal.SIGKILL if after < 3 else 0)
    remote.receive = receive  # type: ignore[method-assign]
    network.night = 2
    assert network.harvest()["status"] == "succeeded"
    assert {key.rpartition(":")[2]: revision for key, revision in remote.highest().items()} == TOLD
    assert len(set(remote.received)) == len(remote.received)
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}


def put_off(network: Network, remote: Repository, *, arrives: bool) -> None:
    """The target does not say whether a new version of the record 3 has arrived."""
    receive = remote.receive

    def hang_up(docid: str, content: bytes) -> bool:
        if arrives:
            receive(docid, content)
        raise ConnectionResetError

    network.server.put("oai:test:3", datetime(2026, 10, 1, tzinfo=UTC), title="Newts")
    remote.receive = hang_up  # type: ignore[method-assign]
    assert network.harvest("--full")["deferred"] == 1
    remote.receive = receive  # type: ignore[method-assign]


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("arrives", [False, True])
def test_an_older_record_is_asked_for_when_it_is_known_whether_the_last_upload_of_it_arrived(
    into_remote: Network, remote: Repository, arrives: bool, away: bool
) -> None:
    network, server = into_remote, into_remote.server
    network.register()
    network.harvest()
    put_off(network, remote, arrives=arrives)
    restore(server)
    if away:
        remote.patience = 3  # it is asked once for each page of the list
        assert network.harvest("--full")["deferred"] == 3
        remote.patience = inf
    network.harvest(*(() if away else ("--full",)))
    if arrives:
        assert "the central repository has it" in report(network)
        assert network.harvest() == {"status": "succeeded", "listed": 1, "updated": 1}
    assert network.held() == {**TOLD, "3": 3 if arrives else 2}
    assert b"Toads" in remote.documents[f"test/oai_dc/oai:test:3.{network.held()['3']}"]
    server.forget()
    assert network.harvest() == {"status": "succeeded"}
    assert server.asked("GetRecord") == []


def test_a_target_that_is_away_as_older_records_are_asked_for_has_what_it_had(
    into_remote: Network, remote: Repository
) -> None:
    network, server = into_remote, into_remote.server
    network.register()
    network.harvest()
    restore(server)
    remote.patience = 3  # it is asked once for each page of the list
    away = network.harvest("--full")
    assert (away["unchanged"], away["deferred"]) == (22, 3)
    remote.patience = inf
    del server.records["oai:test:3"]
    assert network.harvest("--full")["updated"] == 2
    assert missing(network) == 1
    assert "test/oai_dc/oai:test:3 is not in the repository's list any more" in report(network)


def test_an_older_record_that_is_being_sent_as_a_retry_is_killed_is_sent_by_the_next_run(
    into_remote: Network, remote: Repository
) -> None:
    """Not by the next harvest of its site, which may be a month away."""
    network, server = into_remote, into_remote.server
    network.register("--every", "1", "--unit", "months")
    network.harvest()
    server.put("oai:test:3", BEFORE, title="Toads")
    server.poisoned = (b"", 503, {})
    server.refuses = lambda asked: asked.arguments.get("resumptionToken", "").endswith("!20!0")
    assert network.harvest("--full")["status"] == "incomplete"
    server.refuses = lambda asked: False
    receive = remote.receive

    def kill(docid: str, content: bytes) -> bool:
        running.send_signal(signal.SIGKILL)
        return True  # it never arrives

    remote.receive = kill  # type: ignore[method-assign]
    running = network.harvester.start("run", "--date", "2030-01-03")
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGKILL
    remote.receive = receive  # type: ignore[method-assign]
    (site_run,) = network.harvester.run("2030-01-04")["sites"]
    assert (site_run["kind"], site_run["listed"], site_run["updated"]) == ("retry", 1, 1)
    assert network.held() == {**ALL, "3": 2}


def test_an_older_record_whose_upload_may_not_have_arrived_is_not_told_as_there(
    into_remote: Network, remote: Repository
) -> None:
    network, server = into_remote, into_remote.server
    network.register()
    network.harvest()
    put_off(network, remote, arrives=False)
    server.put("oai:test:3", BEFORE, title="Toads")
    remote.patience = 3  # it is asked once for each page of the list
    assert network.harvest("--full") == {"status": "with-errors", "listed": 25, "unchanged": 24, "deferred": 1}
    there = report(network).partition("Unchanged (24)")[2]
    assert "oai:test:3." not in there
    assert "oai:test:9.1" in there
    said = network.harvester("documents", "show", "test/oai_dc/oai:test:3").out
    assert "not decided yet" in said
