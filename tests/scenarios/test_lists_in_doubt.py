"""Lists of repositories that may have left records out: what was left out comes in a later night, or is reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.oai_network import ALL, Network, is_list, lists, missing, report
from support.oai_server import DAMAGED, GZIP, Asked, OaiServer, Odd

NO_RECORDS_MATCH = b'<error code="noRecordsMatch">nothing</error>'


@pytest.fixture
def server() -> Iterator[OaiServer]:
    with OaiServer(records=25) as made:
        made.sets = {"a": "A", "b": "B"}
        for number in range(1, 26):
            made.records[f"oai:test:{number}"].sets = ("b",) if number > 22 else ("a",)
        yield made


@pytest.fixture
def network(tmp_path: Path, server: OaiServer) -> Iterator[Network]:
    made = Network(tmp_path, server)
    yield made
    made.harvester.close()


def without_size(body: bytes) -> bytes:
    return re.sub(rb' completeListSize="\d+"', b"", body)


def moving(server: OaiServer, change: Callable[[], object], *, sizes: bool) -> Callable[[bytes, Asked], bytes]:
    """The list changes once, behind its first page."""
    is_done = False

    def tamper(body: bytes, asked: Asked) -> bytes:
        nonlocal is_done
        if is_list(asked) and not is_done:
            is_done = True
            change()
        return body if sizes else without_size(body)

    return tamper


# -- lists that move while they are read


@pytest.mark.parametrize("sizes", [True, False], ids=["with-sizes", "without-sizes"])
@pytest.mark.parametrize(
    "options",
    [(), ("--set", "a"), ("--method", "list-identifiers")],
    ids=["all", "one-set", "identifiers"],
)
@pytest.mark.parametrize("is_deleted", [False, True], ids=["changed", "deleted"])
def test_what_a_moving_list_leaves_out_comes_in_the_next_night(
    network: Network, options: tuple[str, ...], sizes: bool, is_deleted: bool
) -> None:
    server = network.server
    network.register(*options)
    server.tamper = moving(
        server,
        lambda: server.delete("oai:test:1") if is_deleted else server.put("oai:test:1", title="Toads", sets=("a",)),
        sizes=sizes,
    )
    network.harvest()
    expected = {key: 1 for key in ALL if options != ("--set", "a") or int(key) < 23}
    expected["1"] = 1 if "list-identifiers" in options else 2  # it has changed before it is asked for by itself
    if is_deleted:
        del expected["1"]
    assert network.held() == {key: expected[key] for key in expected if key != "11"}
    assert "1 record was left out" in report(network)
    assert "the same list is requested again" in report(network)
    network.harvest()
    assert network.held() == expected
    server.forget()
    assert network.harvest()["status"] == "succeeded"
    # The question how many records there are in all looks like such a list.
    harvested = lists(server)[:1] if "list-identifiers" in options else lists(server)
    assert all("from" in each.arguments for each in harvested)


def test_what_a_moving_list_leaves_out_after_a_crash_comes_in_the_next_night(network: Network) -> None:
    """Also where the crash parts the record's two places in the list."""
    server = network.server
    network.register()
    asked_for = 0

    def is_time(asked: Asked) -> bool:
        nonlocal asked_for
        asked_for += is_list(asked)
        return asked_for == 3

    network.kill(is_time, "2030-01-01")
    server.put("oai:test:1", title="Toads", sets=("a",))
    network.night = 1
    network.harvest()
    assert len(network.held()) == 24
    assert "the same list is requested again" in report(network)
    network.harvest()
    assert network.held() == {**ALL, "1": 2}


def all_comes_in_the_next_night(network: Network) -> None:
    """And then only changes are asked for."""
    network.server.tamper = None
    network.harvest()
    assert network.held() == ALL
    network.server.forget()
    network.harvest()
    assert not no_from(network.server)


def in_no_order(body: bytes, asked: Asked) -> bytes:
    """The second page has records of the first one in the place of its own."""
    if b"oai:test:12<" not in body or not is_list(asked) or not asked.arguments.get("resumptionToken"):
        return without_size(body)
    for number in (2, 3):
        body = body.replace(b"oai:test:1%d<" % number, b"oai:test:%d<" % number)
        body = body.replace(b"2026-01-1%dT" % number, b"2026-01-0%dT" % number)
    return without_size(body)


def test_what_a_list_in_no_order_leaves_out_comes_in_the_next_night(network: Network) -> None:
    server = network.server
    server.tamper = in_no_order
    network.register()
    assert network.harvest() == {"status": "succeeded", "listed": 23, "inserted": 23}
    assert "If records moved between its pages, 2 records were left out" in report(network)
    all_comes_in_the_next_night(network)


def test_a_page_that_has_a_record_twice_has_left_nothing_out(network: Network) -> None:
    server = network.server
    server.tamper = lambda body, asked: re.sub(
        rb"(<record>.*?</record>)", rb"\1\1", without_size(body), flags=re.DOTALL
    )
    network.register()
    network.harvest()
    assert "moved between its pages" not in report(network)
    assert network.held() == ALL
    server.forget()
    network.harvest()
    assert not no_from(server)


def test_a_list_that_leaves_records_out_every_night_is_not_listed_from_its_beginning_for_ever(
    network: Network,
) -> None:
    server = network.server
    server.odd.add(Odd.SIZE_NEARLY)
    network.register()
    for _ in range(2):
        network.harvest()
        assert "announced a list of 26 records (completeListSize) and sent 25" in report(network)
    server.forget()
    network.harvest()
    assert all("from" in each.arguments for each in lists(server))


def test_a_full_list_that_left_records_out_calls_as_many_not_missing(network: Network) -> None:
    server = network.server
    network.register()
    network.harvest()
    kept = server.records.pop("oai:test:14")
    server.odd.add(Odd.SIZE_NEARLY)
    network.harvest("--full")
    assert missing(network) == 0
    del server.records["oai:test:15"]
    network.harvest("--full")
    assert missing(network) == 2  # one more than the list says that it left out
    server.odd.clear()
    server.records["oai:test:14"] = kept
    network.harvest("--full")
    assert missing(network) == 1


def no_from(server: OaiServer) -> bool:
    """Whether everything was asked for."""
    return "from" not in next(each for each in server.answered if is_list(each)).arguments


@pytest.mark.parametrize("is_known", [False, True])
def test_a_record_that_vanishes_while_the_list_is_read_costs_no_other_one(network: Network, is_known: bool) -> None:
    server = network.server
    network.register()
    if is_known:
        network.harvest()
    server.tamper = moving(server, lambda: server.records.pop("oai:test:1"), sizes=True)
    network.harvest("--full")
    assert missing(network) == 0
    assert "1 record was left out" in report(network)
    network.harvest()
    assert network.held() == ALL
    assert missing(network) == 1  # the one that is gone


@pytest.mark.parametrize("size", [b"10", b"12"])
def test_a_size_that_is_too_small_hides_no_record_that_moves(network: Network, size: bytes) -> None:
    server = network.server
    network.register()
    move = moving(server, lambda: server.put("oai:test:1", title="Toads"), sizes=True)
    server.tamper = lambda body, asked: re.sub(rb"(completeListSize)=\S+", rb'\1="%s"' % size, move(body, asked))
    network.harvest()
    assert "If records moved between its pages, 1 record was left out" in report(network)
    network.harvest()
    assert network.held() == {**ALL, "1": 2}


def test_a_size_that_counts_what_remains_has_nothing_left_out(network: Network) -> None:
    server = network.server
    server.page = 5
    network.register()

    def remaining(body: bytes, asked: Asked) -> bytes:
        cursor = re.search(rb'cursor="(\d+)"', body)
        size = b"%d" % (25 - int(cursor[1]) if cursor else 0)
        return re.sub(rb"(completeListSize)=\S+", rb'\1="%s"' % size, body)

    server.tamper = remaining
    network.harvest()
    assert "left out" not in report(network)
    server.forget()
    network.harvest()
    assert not no_from(server)


def test_a_list_of_changes_that_was_asked_for_again_uses_up_no_full_list(network: Network) -> None:
    server = network.server
    network.register("--full-every", "3")
    network.harvest()
    for number in range(1, 26):
        server.put(f"oai:test:{number}", title="New")
    server.tamper = moving(server, lambda: server.put("oai:test:1", title="Toads"), sizes=True)
    network.harvest()
    server.now += timedelta(days=3)
    for number in range(30, 60):
        server.put(f"oai:test:{number}", datetime(2025, 12, 1, tzinfo=UTC))
    server.tamper = moving(server, lambda: server.put("oai:test:30", title="Toads"), sizes=True)
    network.harvest()
    assert len(network.held()) == 54
    server.tamper = None
    network.harvest()
    assert len(network.held()) == 55
    server.forget()
    network.harvest()
    assert not no_from(server)


def test_a_page_that_breaks_off_once_has_left_nothing_out(network: Network) -> None:
    network.server.odd.add(Odd.CUT_OFF_ONCE)
    network.register()
    network.harvest()
    assert network.held() == ALL
    assert "left out" not in report(network)


def test_records_that_a_list_always_names_twice_and_counts_so_keep_no_other_one_from_being_missing(
    network: Network,
) -> None:
    server = network.server
    network.register()

    def twice(body: bytes, asked: Asked) -> bytes:
        found = re.findall(rb"<record>.*?</record>", body, re.DOTALL)
        body = re.sub(rb'(completeListSize)="(\d+)"', lambda size: b'%s="%d"' % (size[1], int(size[2]) + 1), body)
        return body.replace(found[0], found[0] * 2, 1) if found and b"oai:test:1<" in found[0] else body

    server.tamper = twice
    for _ in range(2):
        network.harvest()
        assert "1 record was left out" in report(network)
    server.forget()
    network.harvest()
    assert not no_from(server)
    del server.records["oai:test:20"]
    assert [network.harvest("--full")["status"], missing(network)] == ["succeeded", 0]
    assert [network.harvest("--full")["status"], missing(network)] == ["succeeded", 1]


@pytest.mark.parametrize("nights", [1, 2])
def test_lists_in_doubt_do_not_keep_records_from_being_judged_again(
    network: Network, tmp_path: Path, nights: int
) -> None:
    server = network.server
    network.register()
    network.harvest()
    (tmp_path / "filters.xml").write_text("<filters match='all'><filter xpath='/other'/></filters>")
    network.harvester("sites", "edit", "repo", "--filters", "filters.xml")
    server.tamper = lambda body, asked: without_size(ends_early(body, asked))
    for _ in range(nights):
        network.harvest()
    server.tamper = None
    assert network.harvest()["filtered"] == 25


# -- lists of which nobody can say whether they have ended


def ends_early(body: bytes, asked: Asked) -> bytes:
    if is_list(asked) and "resumptionToken" in asked.arguments:
        return re.sub(rb"<(List\w+)>.*</\1>", NO_RECORDS_MATCH, body, flags=re.DOTALL)
    return body


def ends_in_nothing(body: bytes, asked: Asked, token: bytes = b"") -> bytes:
    if is_list(asked) and "resumptionToken" in asked.arguments:
        return re.sub(rb"<record>.*</record>\s*(<resumptionToken.*</resumptionToken>)?", token, body, flags=re.DOTALL)
    return body


def ends_without_token(body: bytes) -> bytes:
    return re.sub(rb"<resumptionToken.*</resumptionToken>", b"", body)


@pytest.mark.parametrize(
    "end",
    [
        lambda body, asked: re.sub(rb"(<resumptionToken) [^>]*>[^<]+", rb"\1>\n ", body),
        lambda body, asked: without_size(ends_early(body, asked)),
        lambda body, asked: re.sub(rb'completeListSize="\d+"', b'completeListSize="5"', ends_early(body, asked)),
        lambda body, asked: re.sub(rb'completeListSize="\d+"', b'completeListSize="10"', ends_early(body, asked)),
        lambda body, asked: without_size(ends_in_nothing(body, asked)),
        lambda body, asked: without_size(ends_in_nothing(body, asked, b"<resumptionToken/>")),
        lambda body, asked: re.sub(rb'completeListSize="\d+"', b'completeListSize="10"', ends_in_nothing(body, asked)),
        lambda body, asked: ends_without_token(body) if b"oai:test:12<" in body else without_size(body),
    ],
    ids=["blank", "no-records-match", "size-wrong", "size-of-page", "nothing", "empty-token", "page-size", "no-token"],
)
def test_a_list_that_may_not_have_ended_is_asked_for_again_until_it_has(
    network: Network, end: Callable[[bytes, Asked], bytes]
) -> None:
    server = network.server
    server.tamper = end
    network.register()
    for _ in range(2):
        network.harvest()
        assert len(network.held()) in (10, 20)
        assert "0 records had come, and no completeListSize says whether these are all" in report(network)
        assert "Fixed" not in report(network)
    server.tamper = None
    network.harvest()
    assert network.held() == ALL
    server.tamper = end
    network.harvest("--full")
    assert missing(network) == 0
    server.tamper = None
    network.harvest()
    server.forget()
    network.harvest()
    assert all("from" in each.arguments for each in lists(server))


def test_white_space_behind_the_last_of_many_pages_is_the_end(network: Network) -> None:
    server = network.server
    server.tamper = lambda body, asked: re.sub(rb"></resumptionToken>", b">\n</resumptionToken>", without_size(body))
    network.register()
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}
    server.forget()
    network.harvest()
    assert all("from" in each.arguments for each in lists(server))


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_empty_list_behind_a_token_may_be_that_of_a_token_that_was_forgotten(tmp_path: Path, version: str) -> None:
    with OaiServer(records=25, version=version) as server:
        network = Network(tmp_path, server)
        server.tamper = ends_in_nothing
        network.register()
        assert network.harvest()["inserted"] == 10
        assert "The list ended in a page without records: 10 records had come, and no completeListSize says" in report(
            network
        )
        all_comes_in_the_next_night(network)
        network.harvester.close()


def test_a_token_that_is_missing_behind_the_last_page_is_no_matter_where_that_was_not_full(network: Network) -> None:
    network.server.tamper = lambda body, asked: ends_without_token(body) if b":25<" in body else without_size(body)
    network.register()
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}
    network.server.forget()
    network.harvest()
    assert not no_from(network.server)


def test_an_empty_page_behind_one_that_was_not_full_is_the_end(network: Network) -> None:
    server = network.server
    network.register()

    def tamper(body: bytes, asked: Asked) -> bytes:
        if asked.arguments.get("resumptionToken") == "over":
            return re.sub(rb"<error.*</error>", b"<ListRecords><resumptionToken/></ListRecords>", body)
        return re.sub(rb"></resumptionToken>", b">over</resumptionToken>", without_size(body))

    server.tamper = tamper
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}
    server.forget()
    network.harvest()
    assert not no_from(server)


def test_an_empty_token_behind_a_token_is_not_the_end(network: Network) -> None:
    network.server.tamper = lambda body, asked: body.replace(
        b"</resumptionToken>", b"</resumptionToken><resumptionToken/>"
    )
    network.register()
    network.harvest()
    assert network.held() == ALL
    assert "2 of the list's answers have several resumption tokens" in report(network)


# -- clocks


@pytest.mark.parametrize("minutes", [6, 8, 25, 900, 1440, 4320, 60 * 24 * 365 * 70])
def test_what_changes_behind_a_clock_that_is_ahead_is_not_lost(network: Network, minutes: int) -> None:
    server = network.server
    server.ahead = timedelta(minutes=minutes)
    network.register()
    network.harvest()
    assert "ahead of that of its web server" in report(network)
    server.put("oai:test:5", server.now + timedelta(seconds=1), title="Toads")
    server.now += timedelta(days=3)
    server.put("oai:test:6", title="Toads")
    network.harvest()
    assert network.held() == {**ALL, "5": 2, "6": 2}


def test_a_long_list_that_may_not_have_ended_is_asked_for_once_more_and_not_every_night(network: Network) -> None:
    server = network.server
    for number in range(26, 2100):
        server.put(f"oai:test:{number}")
    server.page = 2010
    server.tamper = lambda body, asked: re.sub(rb"(<resumptionToken) [^>]*>[^<]+", rb"\1>\n ", body)
    network.register()
    for expected in (False, False, True):
        server.forget()
        network.harvest()
        assert all(("from" in each.arguments) is expected for each in lists(server))


# -- pages that are refused, or damaged on their way


@pytest.mark.parametrize("number", [4, 14])
@pytest.mark.parametrize(
    "answer",
    [
        *((b"no", status, {}) for status in (206, 400, 401, 403, 404, 405, 406, 410, 413, 414, 415, 418, 421, 451)),
        (DAMAGED, 200, GZIP),
        (b"<OAI-PMH/>", 200, GZIP),
    ],
    ids=lambda answer: f"{answer[1]} {answer[0][:4]!r}",
)
def test_a_page_that_is_always_refused_costs_the_one_record_that_is(
    network: Network, answer: tuple[bytes, int, dict[str, str]], number: int
) -> None:
    server = network.server
    server.poison.add(f"oai:test:{number}")
    server.poisoned = answer
    network.register()
    found = network.harvest()
    assert (found["status"], found["inserted"], found["access_error"]) == ("with-errors", 24, 1)
    assert "A page of the list failed, and its records were requested in smaller lists" in report(network)
    assert f"The repository lists the record oai:test:{number}, and it cannot be fetched" in report(network)
    assert len(server.answered) < 80


def test_a_page_that_was_damaged_once_is_asked_for_again(network: Network) -> None:
    network.server.odd.add(Odd.DAMAGED_ONCE)
    network.register()
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}
    assert "smaller lists" not in report(network)
    assert len(network.server.asked("ListRecords")) == 4


def test_no_record_of_a_page_that_broke_off_is_missing_if_the_list_ends_in_its_place(network: Network) -> None:
    is_cut = False

    def tamper(body: bytes, asked: Asked) -> bytes:
        nonlocal is_cut
        if not is_list(asked) or b"oai:test:25<" not in body:
            return body
        if is_cut:
            return re.sub(rb"(?s)<ListRecords>.*</ListRecords>", NO_RECORDS_MATCH, body)
        is_cut = True
        return body[: body.rindex(b"</record>") + len(b"</record>")]

    network.register()
    network.harvest()
    network.server.tamper = tamper
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}
    assert is_cut
    assert missing(network) == 0


def test_a_server_that_refuses_all_but_the_first_page_is_not_asked_hundreds_of_times(network: Network) -> None:
    server = network.server
    network.register()
    server.poison = {f"oai:test:{number}" for number in range(11, 26)}
    server.poisoned = (b"no", 403, {})
    assert network.harvest()["inserted"] == 10
    assert len(server.answered) < 150


def test_a_wall_that_begins_in_the_middle_of_a_list_is_left_alone_and_the_list_goes_on_when_it_is_gone(
    network: Network,
) -> None:
    server = network.server
    network.register()
    server.forget()
    server.poisoned = (b"no", 403, {})
    server.refuses = lambda asked: is_list(asked) and len([each for each in server.answered if is_list(each)]) > 1
    assert network.harvest() == {"status": "incomplete", "listed": 10, "inserted": 10}
    assert len([each for each in server.answered if is_list(each)]) <= 3
    server.refuses = lambda asked: False
    server.forget()
    assert network.harvest() == {"status": "succeeded", "listed": 15, "inserted": 15}
    assert "!10!" in server.asked("ListRecords")[0].arguments["resumptionToken"]


def test_a_list_of_nothing_that_was_announced_to_have_records_is_broken_off(network: Network) -> None:
    network.server.tamper = lambda body, asked: re.sub(
        rb"<record>.*</record>\s*(<resumptionToken[^>]*>).*</resumptionToken>",
        rb"\1</resumptionToken>",
        body,
        flags=re.S,
    )
    network.register()
    assert network.harvest()["status"] == "incomplete"
    assert "announced a list of 25 records (completeListSize) and sent 0" in report(network)


@pytest.mark.parametrize("version", ["2.0", "1.1", "1.0"])
def test_a_page_that_is_looked_for_in_smaller_lists_names_no_record_twice(tmp_path: Path, version: str) -> None:
    with OaiServer(records=60, version=version) as server:
        network = Network(tmp_path, server)
        server.poison = {"oai:test:17"}
        network.register()
        assert network.harvest() == {"status": "with-errors", "listed": 60, "inserted": 59, "access_error": 1}
        assert "listed twice" not in network.subject("site")
        network.harvester.close()


@pytest.mark.parametrize("method", ["list-records", "list-identifiers"])
@pytest.mark.parametrize("version", ["1.0", "1.1", "2.0"])
@pytest.mark.parametrize("end", [b"<metadata>", b"<dc:title>"])
def test_a_record_whose_answers_break_off_is_tried_again(tmp_path: Path, version: str, method: str, end: bytes) -> None:
    with OaiServer(records=12, version=version, page=20) as server:
        network = Network(tmp_path, server)
        network.register("--method", method)

        def breaks_off(body: bytes, asked: Asked) -> bytes:
            before, name, behind = body.partition(b"oai:test:3<")
            return body if asked.verb == "ListIdentifiers" or not name else before + name + behind.partition(end)[0]

        server.tamper = breaks_off
        harvested = network.harvest()
        assert (harvested["inserted"], harvested["access_error"]) == (11, 1)
        assert "oai:test:3, and it cannot be fetched: An answer to GetRecord breaks off before its end" in report(
            network
        )
        assert len([each for each in server.answered if is_list(each)]) < 10
        server.tamper = None
        network.harvest()
        assert sorted(network.held(), key=int) == [str(number) for number in range(1, 13)]
        network.harvester.close()


@pytest.mark.parametrize("verb", ["Identify", "ListMetadataFormats", "ListSets"])
def test_what_a_repository_says_of_itself_is_not_concluded_from_what_breaks_off(network: Network, verb: str) -> None:
    server = network.server
    network.register("--set", "b")
    network.harvest()
    server.put("oai:test:26", sets=("b",))
    ends = {"Identify": b"<deletedRecord>", "ListMetadataFormats": b"<metadataPrefix>", "ListSets": b"b</setSpec>"}
    server.tamper = lambda body, asked: body.partition(ends[verb])[0] if asked.verb == verb else body
    assert network.harvest() == {"status": "list-failed"}
    assert f"An answer to {verb} breaks off before its end: Premature end of data" in report(network)
    server.tamper = None
    assert network.harvest()["inserted"] == 1
    assert "changed since its last harvest" not in report(network)


# -- headers


def test_records_of_a_set_that_was_not_asked_for_are_reported(network: Network) -> None:
    """As where a resumption token loses the set."""
    server = network.server
    server.sets = {"a": "A", "b": "B", "c": "C"}
    for number in range(1, 26):
        server.records[f"oai:test:{number}"].sets = ("a" if number < 10 else "b" if number < 14 else "c",)
    server.records["oai:test:2"].sets = ("a:b", "c")
    added = b"".join(server._written(server.records[f"oai:test:{number}"]) for number in (12, 13))
    server.tamper = lambda body, asked: (
        body.replace(b"</ListRecords>", added + b"</ListRecords>") if asked.verb == "ListRecords" else body
    )
    network.register("--set", "a")
    assert network.harvest() == {"status": "succeeded", "listed": 11, "inserted": 11}
    assert "2 of the list's records are not in the set that was asked for, though others are" in report(network)


def test_headers_that_do_not_name_a_set_are_in_order(network: Network) -> None:
    server = network.server
    server.sets = {"all": "All"}
    for record in server.records.values():
        record.sets = ("all",)
    network.register("--set", "all")
    server.tamper = lambda body, asked: (
        body if asked.verb == "ListSets" else body.replace(b"<setSpec>", b"<setSpec>other:")
    )
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}
    assert "none of the sets" not in report(network)


@pytest.mark.parametrize(("written", "example"), [("31/12/2029", "31/12/2029"), ("", "none")])
def test_datestamps_that_are_none_are_reported_as_that(network: Network, written: str, example: str) -> None:
    network.server.tamper = lambda body, asked: re.sub(
        rb"<datestamp>[^<]*</datestamp>", f"<datestamp>{written}</datestamp>".encode(), body
    )
    network.register()
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}
    assert "25 of the list's records have a datestamp that OAI-PMH does not have, such as oai:test:" in report(network)
    assert f": {example}." in report(network)
    assert "are days" not in report(network)


# -- what looks like tags, and is none

HIDDEN = (
    b'<record><header status="deleted"><identifier>oai:test:5</identifier><datestamp>2026-11-01T00:00:00Z</datestamp>'
    b"</header></record><record><header><identifier>oai:test:99</identifier><datestamp>2026-11-01T00:00:00Z</datestamp>"
    b"</header><metadata><a/></metadata></record><resumptionToken>evil</resumptionToken></ListRecords>"
)


@pytest.mark.parametrize("way", [b"<!-- %s -->", b"<?pi %s ?>", b"<![CDATA[ %s ]]>"])
@pytest.mark.parametrize("before", [b"<ListRecords>", b"</dc:title>", b"</record>", b"</metadata>"])
def test_what_only_looks_like_records_is_none_where_the_answer_is_damaged(
    network: Network, way: bytes, before: bytes
) -> None:
    def tamper(body: bytes, asked: Asked) -> bytes:
        if asked.verb != "ListRecords":
            return body
        body = body.replace(before, before + way % HIDDEN if before.startswith(b"<L") else way % HIDDEN + before)
        return body.replace(b"oai:test:8</identifier>", b"oai:test:8</identifier>&", 1)

    network.server.tamper = tamper
    network.register()
    assert network.harvest() == {"status": "with-errors", "listed": 25, "inserted": 24, "invalid": 1}
    assert network.harvest("--full") == {"status": "with-errors", "listed": 25, "unchanged": 24, "invalid": 1}
    assert network.held() == {number: 1 for number in ALL if number != "8"}
    assert not re.search("twice|tokens", report(network))


def test_a_comment_that_has_lost_its_end_hides_no_other_record(network: Network) -> None:
    def tamper(body: bytes, asked: Asked) -> bytes:
        for number, text in ((3, b"<!-- Frogs"), (5, b"1999--2001"), (7, b"A --> B")):
            before, name, behind = body.partition(b"oai:test:%d<" % number)
            body = before + name + behind.replace(b"Frogs", text, 1)
        return without_size(body)

    network.server.tamper = tamper
    network.register()
    assert network.harvest() == {"status": "with-errors", "listed": 25, "inserted": 24, "invalid": 1}
    assert network.held() == {number: 1 for number in ALL if number != "3"}
