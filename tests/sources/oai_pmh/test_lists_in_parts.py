"""Lists of which pages cannot be fetched, tokens expire or borders are lost: they end, and lose nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest

from metaharvest.errors import FetchError
from metaharvest.model import Level, ListMethod, OaiOptions
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.response_reader import listed
from metaharvest.sources.oai_pmh.responses import Response
from support.oai_harvest import harvest
from support.oai_server import Asked, OaiServer, Odd, Record


class WithoutWindows(OaiServer):
    """It ignores `from` and `until`."""

    def _matching(self, wanted: Any) -> list[Record]:
        return list(self.records.values())


@pytest.mark.parametrize("seconds", [True, False])
def test_a_repository_without_windows_is_asked_record_by_record_for_a_page_that_fails(seconds: bool) -> None:
    with WithoutWindows(60, seconds=seconds) as repository:
        repository.poison.add("oai:test:35")
        found = harvest(repository.base_url)
        assert found.broken is None
        assert set(found.good) == set(repository.records) - {"oai:test:35"}
        assert len(repository.answered) < 200


def test_a_repository_without_windows_whose_tokens_expire_comes_to_its_end() -> None:
    with WithoutWindows(60) as repository:
        repository.odd.add(Odd.TOKEN_EXPIRES_ONCE)
        found = harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS)
        assert found.broken is None
        assert set(found.good) == set(repository.records)
        assert len(repository.answered) < 200


def test_a_list_whose_last_token_finds_nothing_is_begun_again_the_next_night() -> None:
    with OaiServer(40) as repository:
        repository.tamper = lambda body, asked: (
            re.sub(rb"<ListRecords>.*</ListRecords>", b'<error code="noRecordsMatch"/>', body, flags=re.DOTALL)
            if asked.arguments.get("resumptionToken", "").count("!30!")
            else body
        )
        found = harvest(repository.base_url)
        assert found.broken is not None
        assert "announced a list of 40 records (completeListSize) and sent 30" in str(found.broken)
        repository.tamper = lambda body, asked: body
        again = harvest(repository.base_url, found.checkpoint)
        assert (again.broken, set(again.good)) == (None, set(repository.records))


@pytest.mark.parametrize(("size", "level"), [(b"30", Level.WARNING), (b"", Level.ERROR)])
def test_an_error_at_the_end_of_a_list_is_graver_where_nobody_said_how_long_it_is(size: bytes, level: Level) -> None:
    with OaiServer(40) as repository:
        repository.tamper = lambda body, asked: (
            re.sub(rb"<ListRecords>.*</ListRecords>", b'<error code="noRecordsMatch"/>', body, flags=re.DOTALL)
            if asked.arguments.get("resumptionToken", "").count("!30!")
            else body.replace(b' completeListSize="40"', b' completeListSize="%s"' % size)
        )
        found = harvest(repository.base_url)
        assert (found.broken, len(found.good)) == (None, 30)
        assert [(finding.rule, finding.level) for finding in found.findings] == [("oai.token", level)]


def test_records_that_run_together_do_not_make_a_list_too_short() -> None:
    border = re.compile(rb"</record>\s*<record>(?=<header><identifier>oai:test:(4|5)<)")
    with OaiServer(40) as repository:
        repository.tamper = lambda body, asked: border.sub(b"", body)
        found = harvest(repository.base_url)
        assert (found.broken, len(found.good)) == (None, 37)
        assert "2 of the list's records have no identifier" in found.words("oai.identifier")
        assert "oai:test:5" in found.words("oai.damaged-record")


EMPTY = " xmlns=''"


def _page(padding: int, others: Sequence[int]) -> bytes:
    records = "".join(
        f"<record{EMPTY if number in others else ''}><header><identifier>oai:test:{number}</identifier>"
        f"<datestamp>2026-01-01</datestamp></header>"
        f"<metadata><a xmlns='urn:a'>{'x' * 4000}</a></metadata></record>{' ' * 30}"
        for number in range(40)
    )
    return (
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-01-01T00:00:00Z</responseDate>'
        f"<request>{'r' * padding}</request><ListRecords>{records}</ListRecords></OAI-PMH>"
    ).encode()


@pytest.mark.slow
@pytest.mark.parametrize("others", [(13,), (14,), (15,), (13, 14, 15, 16)])
def test_a_record_in_another_namespace_is_taken_wherever_a_piece_of_the_answer_ends(others: Sequence[int]) -> None:
    """Answers are read in pieces of 64 KiB; one ends at about the fifteenth record here."""
    for padding in range(0, 4400, 20):
        records = Records("http://repository.example.org/oai", OaiOptions("test"))
        found = list(listed(BytesIO(_page(padding, others)), Response("ListRecords"), records))
        assert len(found) == 40, padding


# -- windows whose records cannot be fetched


def lists_break_off_at(*numbers: int) -> Callable[[bytes, Asked], bytes]:
    """Each list with one of these records breaks off before it."""

    def broken(body: bytes, asked: Asked) -> bytes:
        found = re.search("|".join(f"oai:test:{number}<" for number in numbers).encode(), body)
        return body[: found.start()] if found and asked.verb != "GetRecord" else body

    return broken


def no_dates(code: bytes, name: str) -> Callable[[bytes, Asked], bytes]:
    """Each list with an argument of this name is answered with an error."""
    error = b'<error code="' + code + b'"/>'
    return lambda body, asked: (
        re.sub(rb"<(List\w+)>.*</\1>", error, body, flags=re.DOTALL) if name in asked.arguments else body
    )


@pytest.mark.parametrize("resumed", [True, False])
def test_the_last_part_of_a_harvest_has_the_warnings_of_all_parts(resumed: bool) -> None:
    with OaiServer(60) as repository:
        repository.poison.add("oai:test:3")
        first = harvest(repository.base_url, most_pages=3)
        repository.poison.clear()
        found = harvest(repository.base_url, first.checkpoint, resumed=resumed)
        assert {*first.identifiers, *found.identifiers} == set(repository.records)
        assert found.rules == (["oai.page-failed"] if resumed else [])


def test_records_that_cannot_be_fetched_do_not_stop_a_harvest_without_changes() -> None:
    with OaiServer(25) as repository:
        repository.tamper = lists_break_off_at(5)
        first = harvest(repository.base_url)
        repository.now += timedelta(days=1)
        again = harvest(repository.base_url, first.checkpoint)
        assert "The records with these datestamps cannot be fetched: from 2026-01-04" in str(again.broken)
        assert again.checkpoint is not None
        assert again.checkpoint["watermark"] == "2026-11-21T03:00:00Z"


@pytest.mark.slow
def test_changes_come_however_many_records_cannot_be_fetched() -> None:
    with OaiServer(120, page=3) as repository:
        repository.tamper = lists_break_off_at(*range(5, 120, 5))
        found = harvest(repository.base_url)
        assert len(found.good) == 97
        for name in ("one", "two", "three"):
            repository.now += timedelta(days=1)
            repository.put(f"oai:test:{name}")
            found = harvest(repository.base_url, found.checkpoint)
            assert f"oai:test:{name}" in found.good
            assert "cannot be fetched: from 2026-01-04" in str(found.broken)


def test_a_repository_that_refuses_dates_for_one_night_loses_no_change_while_records_cannot_be_fetched() -> None:
    with OaiServer(25) as repository:
        repository.tamper = lists_break_off_at(5)
        first = harvest(repository.base_url)
        repository.put("oai:test:26")
        repository.now += timedelta(days=1)
        repository.tamper = no_dates(b"badArgument", "from")
        found = harvest(repository.base_url, first.checkpoint)
        assert found.broken is None
        assert set(repository.records) == set(found.good)
        assert "badArgument" in found.words("oai.error")


def test_records_in_the_future_that_cannot_be_fetched_are_asked_for_once_in_each_harvest() -> None:
    with OaiServer(40) as repository:
        for number in range(20, 41):
            stamp = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(days=number)
            repository.records[f"oai:test:{number}"].datestamp = stamp
        repository.odd.add(Odd.TOKENS_EXPIRE)
        checkpoint = None
        for _ in range(4):
            repository.forget()
            checkpoint = harvest(repository.base_url, checkpoint).checkpoint
            assert checkpoint is not None
            assert len(checkpoint["holes"]) == 1
            repository.now += timedelta(days=1)
        assert len(repository.answered) < 100


def test_the_others_come_though_the_first_record_cannot_be_fetched_and_nobody_says_when_it_is() -> None:
    with OaiServer(25) as repository:
        repository.odd.add(Odd.NO_EARLIEST)
        repository.records["oai:test:1"].datestamp = datetime(2005, 3, 3, 3, 3, 3, tzinfo=UTC)
        repository.tamper = lists_break_off_at(1)
        assert set(harvest(repository.base_url).good) == set(repository.records) - {"oai:test:1"}


@pytest.mark.parametrize(("name", "lacks"), [("until", 10), ("from", 4)])
def test_windows_that_leave_out_what_the_whole_list_has_are_an_error(name: str, lacks: int) -> None:
    """Nobody says how many records there are: the list would otherwise be complete, and all others lost."""
    with OaiServer(60) as repository:
        repository.odd.add(Odd.TOKENS_EXPIRE)
        none = no_dates(b"noRecordsMatch", name)
        repository.tamper = lambda body, asked: none(re.sub(rb' completeListSize="\d+"', b"", body), asked)
        found = harvest(repository.base_url)
        assert f"leave out {lacks} records that the whole list has, and perhaps others" in str(found.broken)
        assert found.checkpoint is not None
        assert found.checkpoint["watermark"] == ""


@pytest.mark.parametrize("status", [503, 521, 522, 523])
def test_a_repository_that_is_away_is_not_asked_for_smaller_parts_of_the_list(status: int) -> None:
    with OaiServer(60) as repository:
        repository.refuses = lambda asked: asked.verb == "ListRecords"
        repository.poisoned = (b"error code: %d" % status, status, {})
        with pytest.raises(FetchError, match=f"the server answered {status}"):
            harvest(repository.base_url)
        assert not [asked for asked in repository.answered if "until" in asked.arguments]
