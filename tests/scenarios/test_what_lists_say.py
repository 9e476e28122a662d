"""Lists of repositories in doubt: empty lists, announced numbers, a wrong `from`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from support.oai_network import Network, is_list, missing, report
from support.oai_server import Asked, OaiServer, Record


@pytest.fixture
def server() -> Iterator[OaiServer]:
    with OaiServer(records=25) as made:
        yield made


@pytest.fixture
def network(tmp_path: Path, server: OaiServer) -> Iterator[Network]:
    made = Network(tmp_path, server)
    yield made
    made.harvester.close()


def begins(server: OaiServer) -> list[str]:
    """The `from` of each first request for a list; empty without one."""
    lists = [each.arguments for each in server.asked("ListRecords") if "resumptionToken" not in each.arguments]
    return [each.get("from", "") for each in lists]


def empty_container(body: bytes, asked: Asked) -> bytes:
    return re.sub(rb"<error code=.noRecordsMatch.*</error>", b"<ListRecords></ListRecords>", body)


def nothing_but_nameless(body: bytes, asked: Asked) -> bytes:
    """Each record without an identifier."""
    return re.sub(rb"<identifier>.*?</identifier>", b"", body) if is_list(asked) else body


# -- lists without a record


@pytest.mark.parametrize("tamper", [None, empty_container], ids=["no-records-match", "empty"])
def test_a_repository_that_lists_nothing_at_first_is_asked_for_all_until_it_lists_something(
    network: Network, tamper: Callable[[bytes, Asked], bytes] | None
) -> None:
    server = network.server
    records, server.records, server.tamper = server.records, {}, tamper
    network.register()
    for _ in range(2):
        assert network.harvest() == {"status": "succeeded"}
        assert "repo: the repository lists nothing, nothing new" in network.subject("site")
        assert "all well" not in network.subject("site")
        assert "1 repository lists nothing; nothing new" in network.subject("admin")
        assert "Your OAI-PMH repository was asked for all records and lists none." in report(network)
    server.records = records
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}
    assert "all well, 25 new" in network.subject("site")
    server.forget()
    network.harvest()
    assert begins(server) == ["2026-11-23T02:55:00Z"]
    assert "all well, nothing new" in network.subject("site")


def test_a_contact_who_wants_errors_alone_hears_of_a_repository_that_lists_nothing(network: Network) -> None:
    network.server.records.clear()
    network.register("--notify", "on-error")
    network.harvest()
    assert "the repository lists nothing" in network.subject("site")


def test_a_list_in_which_no_record_has_a_name_is_no_basis_for_changes(network: Network) -> None:
    server = network.server
    server.tamper = nothing_but_nameless
    network.register()
    assert network.harvest()["status"] == "with-errors"
    server.tamper = None
    assert network.harvest()["inserted"] == 25


def test_a_list_of_deleted_records_is_a_basis_for_changes(network: Network) -> None:
    server = network.server
    for record in server.records.values():
        record.deleted = True
    network.register()
    network.harvest()
    server.forget()
    network.harvest()
    assert begins(server) == ["2026-11-21T02:55:00Z"]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_set_that_lists_nothing_at_first_is_asked_for_all_until_it_lists_something(
    network: Network, is_killed: bool
) -> None:
    server = network.server
    server.sets = {"a": "A", "b": "B"}
    for record in server.records.values():
        record.sets = ("a",)
    network.register("--set", "b")
    if is_killed:
        network.kill(lambda asked: asked.arguments.get("set") == "b", "2030-01-01")
        network.night = 1
    network.harvest()
    network.harvest()
    for record in list(server.records.values())[:5]:
        record.sets = ("a", "b")
    for number in range(31, 41):
        server.put(f"oai:test:{number}", server.records["oai:test:1"].datestamp, sets=("b",))
    assert network.harvest()["inserted"] == 15
    server.forget()
    network.harvest()
    assert all(begins(server))


def test_what_comes_back_after_an_empty_list_is_asked_for_in_full(network: Network) -> None:
    server = network.server
    network.register()
    network.harvest()
    records, server.records = server.records, {}
    network.harvest("--full")
    assert "the list lost 25 documents" in network.subject("site")
    server.records = {key: record for key, record in records.items() if key != "oai:test:7"}
    server.records["oai:test:99"] = records["oai:test:7"]
    server.records["oai:test:99"].identifier = "oai:test:99"
    assert network.harvest()["inserted"] == 1
    assert missing(network) == 1


# -- the number of records that a list announces


def announces(more: int) -> Callable[[bytes, Asked], bytes]:
    """Each list announces this many records too many, like a repository that counts hidden deleted records."""

    def tamper(body: bytes, asked: Asked) -> bytes:
        return re.sub(rb'completeListSize="(\d+)"', lambda size: b'completeListSize="%d"' % (int(size[1]) + more), body)

    return tamper


def test_the_same_shortfall_in_the_next_list_is_the_way_in_which_a_repository_counts(tmp_path: Path) -> None:
    with OaiServer(records=789, page=100) as server:
        network = Network(tmp_path, server)
        for record in server.records.values():
            record.datestamp = server.records["oai:test:1"].datestamp
        server.tamper = announces(46)
        network.register()
        assert network.harvest() == {"status": "incomplete", "listed": 789, "inserted": 789}
        assert "announced a list of 835 records (completeListSize) and sent 789" in report(network)
        assert "The next harvest asks for this list once more" in report(network)
        assert network.harvest() == {"status": "succeeded", "listed": 789, "unchanged": 789}
        assert network.harvester("runs").code == 0
        assert "announced a list of 835 records (completeListSize) and sent 789. It does so in each list" in report(
            network
        )
        for number in range(1, 160):
            server.put(f"oai:test:{number}", title="Toads")
        server.forget()
        assert network.harvest() == {"status": "succeeded", "listed": 159, "updated": 159}
        assert all(begins(server))
        assert missing(network) == 0
        del server.records["oai:test:789"]
        assert network.harvest("--full")["status"] == "succeeded"
        assert missing(network) == 1
        network.harvester.close()


def test_another_shortfall_is_an_error_again(tmp_path: Path) -> None:
    with OaiServer(records=300, page=100) as server:
        network = Network(tmp_path, server)
        network.register()
        for more in (40, 60, 20):
            server.tamper = announces(more)
            assert network.harvest()["status"] == "incomplete"
        assert network.harvest()["status"] == "succeeded"
        server.tamper = announces(90)
        assert network.harvest("--full")["status"] == "incomplete"
        server.tamper = None
        assert network.harvest()["status"] == "succeeded"
        server.tamper = announces(90)
        assert network.harvest("--full")["status"] == "incomplete"
        network.harvester.close()


def test_a_short_list_whose_last_page_has_no_token_is_broken_off_each_time(network: Network) -> None:
    server = network.server

    def tamper(body: bytes, asked: Asked) -> bytes:
        body = announces(10)(body, asked)
        return re.sub(rb"<resumptionToken [^>]*></resumptionToken>", b"", body)

    server.tamper = tamper
    network.register()
    for _ in range(3):
        assert network.harvest()["status"] == "incomplete"
        assert "sent 25. Its last page has no resumptionToken" in report(network)


@pytest.mark.parametrize("breaks_off", ["short", "refused"])
def test_deletions_are_carried_out_though_their_list_does_not_come_to_its_end(
    network: Network, breaks_off: str
) -> None:
    server = network.server
    network.register()
    network.harvest()
    for number in range(1, 16):
        server.put(f"oai:test:{number}", title="Toads")
    server.delete("oai:test:10")
    if breaks_off == "short":
        server.tamper = announces(10)
    else:
        server.poisoned = (b"no", 503, {"Retry-After": "1000"})
        server.refuses = lambda asked: "resumptionToken" in asked.arguments
    found = network.harvest()
    assert (found["status"], found["deleted"]) == ("incomplete", 1)
    assert "10" not in network.held()
    assert "1 deleted" in network.subject("site")


# -- how many records there are


def test_a_silent_loss_of_records_is_reported_in_the_same_night(network: Network) -> None:
    server = network.server
    network.register("--notify", "on-error")
    network.harvest()
    network.harvest()
    assert network.harvester.rows("SELECT * FROM report_outbox WHERE kind = 'site'") == []
    for number in range(1, 13):
        del server.records[f"oai:test:{number}"]
    server.forget()
    assert network.harvest() == {"status": "succeeded"}
    assert "the repository has fewer records than before, nothing new" in network.subject("site")
    assert "1 repository has fewer records than before" in network.subject("admin")
    assert "it has 13 records (completeListSize); 25 are known" in report(network)
    assert "run --site repo --full" in " ".join(network.report("admin").split())
    assert len(server.asked("ListIdentifiers")) == 1
    network.harvest("--full")
    assert missing(network) == 12
    network.harvest()
    assert "fewer records" not in network.subject("admin")


def test_a_silent_loss_is_reported_where_the_last_full_list_is_of_an_older_version(network: Network) -> None:
    network.register()
    network.harvest()
    [(checkpoint,)] = network.harvester.rows("SELECT checkpoint FROM site_checkpoint")
    older = {name: value for name, value in json.loads(checkpoint).items() if name not in ("size", "listed", "newest")}
    with network.harvester.engine.begin() as connection:
        connection.execute(text("UPDATE site_checkpoint SET checkpoint = :older"), {"older": json.dumps(older)})
    for number in range(1, 13):
        del network.server.records[f"oai:test:{number}"]
    network.harvest()
    assert "it has 13 records (completeListSize); 25 are known" in report(network)


def test_a_loss_that_new_records_hide_is_reported(network: Network) -> None:
    """The ledger has no deleted records, so the number is compared with the last full list."""
    server = network.server
    for number in range(1, 16):
        server.records[f"oai:test:{number}"].deleted = True
    network.register()
    network.harvest()
    for number in range(1, 13):
        del server.records[f"oai:test:{number}"]
    network.harvest()
    assert "it has 13 records (completeListSize); it had 25 at the last full list" in report(network)


@pytest.mark.parametrize("page", [10, 100])
def test_the_number_of_records_is_asked_by_one_request_and_only_where_it_is_said(tmp_path: Path, page: int) -> None:
    with OaiServer(records=25, page=page) as server:
        network = Network(tmp_path, server)
        server.tamper = lambda body, asked: re.sub(rb' completeListSize="\d+"', b"", body)
        network.register()
        network.harvest()
        server.forget()
        network.harvest()
        assert len(server.asked("ListIdentifiers")) == (page == 100)  # a list of one page says it by itself
        network.harvester.close()


@pytest.mark.parametrize("size", [b"10", b"12"], ids=["of-a-page", "half"])
def test_a_number_that_is_too_small_is_no_number_of_records(network: Network, size: bytes) -> None:
    server = network.server
    numbered = b'completeListSize="' + size + b'"'
    server.tamper = lambda body, asked: re.sub(rb'completeListSize="\d+"', numbered, body)
    network.register()
    assert network.harvest()["inserted"] == 25
    network.harvest()
    assert "all well, nothing new" in network.subject("site")
    assert "fewer" not in network.subject("admin")


def test_reported_deletions_do_not_count_as_lost_records(network: Network) -> None:
    network.server.deleted = "persistent"
    network.register()
    network.harvest()
    for number in (3, 4, 5):
        network.server.delete(f"oai:test:{number}")
    assert network.harvest()["deleted"] == 3
    assert "fewer" not in network.subject("site")


def test_when_the_last_full_list_was_is_said(network: Network) -> None:
    network.server.deleted = "no"
    assert "(deletedRecord: no): only a full list shows which are gone" in network.register()
    assert "sites edit other --full-every 30" in network.register(name="other")
    network.harvest()
    network.harvest()
    shown = network.harvester("sites", "show", "repo").out
    assert re.search(r"last full list +2026-11-21T03:00:00Z", shown)
    doctor = " ".join(network.harvester("doctor").out.split())
    assert "oldest first: repo (2026-11-21)" in doctor
    assert "repo: its repository does not name all deleted records (deletedRecord: no)" in doctor
    network.harvester("sites", "edit", "repo", "--full-every", "30")
    assert "does not name all" not in " ".join(network.harvester("doctor").out.split())


# -- `from`


class OddFrom(OaiServer):
    """A repository that adds `shift` to `from`, or ignores `from`."""

    shift: timedelta | None = timedelta(0)

    def _matching(self, wanted: Any) -> list[Record]:
        begin = ""
        if wanted.begin and self.shift is not None:
            begin = f"{datetime.fromisoformat(wanted.begin.replace('Z', '+00:00')) + self.shift:%Y-%m-%dT%H:%M:%SZ}"
        return super()._matching(replace(wanted, begin=begin))


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Network]:
    with OddFrom(records=25) as server:
        made = Network(tmp_path, server)
        yield made
        made.harvester.close()


MONTH = timedelta(days=31)


@pytest.mark.parametrize("shift", [MONTH, None], ids=["a-month-later", "ignored"])
def test_a_repository_with_a_wrong_from_is_listed_in_full_until_it_is_right(
    odd: Network, shift: timedelta | None
) -> None:
    server = odd.server
    assert isinstance(server, OddFrom)
    server.shift = shift
    odd.register()
    assert odd.harvest()["inserted"] == 25
    assert "since 2026-01-25T00:00:00Z (from)" in report(odd)
    assert "Until then each harvest of this site lists everything" in report(odd)
    server.put("oai:test:26")
    server.forget()
    assert odd.harvest()["inserted"] == 1
    assert begins(server) == [""]
    assert "(from)" in report(odd)
    server.shift = timedelta(0)
    odd.harvest()
    assert "(from)" not in report(odd)
    server.put("oai:test:27")
    server.forget()
    assert odd.harvest()["inserted"] == 1
    assert all(begins(server))


def test_a_from_that_becomes_wrong_is_reported_within_a_month(odd: Network) -> None:
    server = odd.server
    assert isinstance(server, OddFrom)
    odd.register()
    odd.harvest()
    server.shift = MONTH
    server.put("oai:test:26")
    assert odd.harvest() == {"status": "succeeded"}
    server.now += timedelta(days=30)
    odd.harvest()
    assert "(from)" in report(odd)
    assert odd.harvest()["inserted"] == 1


def test_a_from_that_leaves_out_its_own_moment_is_reported_and_costs_no_full_lists(odd: Network) -> None:
    server = odd.server
    assert isinstance(server, OddFrom)
    server.shift = timedelta(seconds=1)
    odd.register()
    odd.harvest()
    assert "it lists the record with a slightly earlier `from`" in report(odd)
    server.forget()
    odd.harvest()
    assert all(begins(server))


@pytest.mark.parametrize(
    ("shift", "code", "words"),
    [(MONTH, 1, "Lists of changes leave records out"), (None, 0, "ignores `from`"), (timedelta(0), 0, "")],
)
def test_a_wrong_from_is_reported_as_a_site_is_added_and_by_validate(
    odd: Network, shift: timedelta | None, code: int, words: str
) -> None:
    server = odd.server
    assert isinstance(server, OddFrom)
    server.shift = shift
    said = odd.harvester("sites", "add", "repo", "--oai", server.base_url)
    assert (said.code, words in " ".join(said.err.split())) == (0, True)
    assert ("(from)" in said.err) == bool(words)
    validated = odd.harvester("oai", "validate", server.base_url)
    assert (validated.code, words in " ".join(validated.out.split())) == (code, True)
    first = odd.harvester("oai", "validate", server.base_url, "--pages", "1")
    assert ("(from)" in first.out) == bool(words)


def test_where_all_records_have_one_datestamp_from_is_right(tmp_path: Path) -> None:
    with OaiServer(records=25) as server:
        for record in server.records.values():
            record.datestamp = server.records["oai:test:1"].datestamp
        network = Network(tmp_path, server)
        network.register()
        network.harvest()
        assert "(from)" not in report(network)
        network.harvester.close()


@pytest.mark.parametrize("is_gone", [False, True], ids=["older", "gone"])
def test_a_repository_that_was_restored_from_a_backup_has_no_wrong_from(odd: Network, is_gone: bool) -> None:
    server = odd.server
    odd.register()
    odd.harvest()
    server.put("oai:test:26", title="Toads")
    assert odd.harvest()["inserted"] == 1
    before = server.records.pop("oai:test:26")
    if not is_gone:
        server.put("oai:test:26", server.records["oai:test:1"].datestamp, title=before.title)
    server.now += timedelta(days=30)
    server.forget()
    odd.harvest()
    assert [each.arguments["identifier"] for each in server.asked("GetRecord")][:1] == ["oai:test:26"]
    assert "(from)" not in report(odd)
    server.forget()
    odd.harvest()
    assert all(begins(server))


# -- lists without an end


class Endless(OaiServer):
    """Each page has new records and a token, whatever is asked for."""

    def _list(self, asked: Asked) -> bytes:
        place = int(asked.arguments.get("resumptionToken", "0"))
        for number in range(place, place + self.page):
            self.put(f"oai:test:{number}", self.now)
        page = b"".join(self._written(self.records.pop(f"oai:test:{number}")) for number in range(place, place + 10))
        return page + f"<resumptionToken>{place + self.page}</resumptionToken>".encode()


def test_an_endless_list_ends_at_a_number_of_records(tmp_path: Path) -> None:
    with Endless() as server:
        network = Network(tmp_path, server, "max_list_records = 200\n")
        network.register()
        found = network.harvest()
        assert (found["status"], found["inserted"]) == ("incomplete", 210)
        assert "More than 200 records came: the list may have no end (max_list_records in [http])" in report(network)
        server.forget()
        assert network.harvest() == {"status": "list-failed"}
        assert "More than 200 records came" in report(network)
        assert server.asked("ListRecords") == []
        network.harvester.close()


def test_a_list_ends_at_a_number_of_bytes_and_goes_on_in_the_next_night(tmp_path: Path, server: OaiServer) -> None:
    network = Network(tmp_path, server, "max_run_bytes = 3000\n")
    network.register()
    assert network.harvest() == {"status": "incomplete", "listed": 20, "inserted": 20}
    assert "the most that one site may bring in a run (max_run_bytes in [http])" in report(network)
    assert network.harvest() == {"status": "succeeded", "listed": 5, "inserted": 5}
    network.harvester.close()


def test_a_list_that_is_far_longer_than_the_last_full_one_is_broken_off(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metaharvest.sources.oai_pmh.sweep.ENDLESS", 0)
    server = network.server
    network.register()
    network.harvest()
    server.page = 100
    for number in range(1, 400):
        server.put(f"oai:test:{number}", title="Toads")
    found = network.harvest()
    assert (found["status"], found["listed"]) == ("incomplete", 300)
    assert "More than 250 records came: the list may have no end, as that is ten times" in report(network)
    assert network.harvest("--full")["status"] == "succeeded"


# -- a base URL that is a web page


@pytest.mark.parametrize("before", [b"", b" " * 9000, b"<!-- " + b"x" * 9000 + b" -->\n", b"Notice: x\n"])
def test_a_web_page_at_the_base_url_is_called_a_web_page(network: Network, before: bytes) -> None:
    page = before + b"<!DOCTYPE html>\n<html><head><title>Welcome to Frogs</title></head></html>"
    network.server.tamper = lambda body, asked: page
    for command in (("sites", "add", "repo", "--oai"), ("oai", "identify")):
        said = network.harvester(*command, network.server.base_url)
        words = " ".join((said.out + said.err).split())
        assert said.code != 0
        assert "is an HTML page titled 'Welcome to Frogs', not one of OAI-PMH" in words
        assert "of EPrints in /cgi/oai2" in words
        assert "DTD" not in words
