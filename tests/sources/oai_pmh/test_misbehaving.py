"""Repositories that misbehave: every record comes, or a finding says that it does not, or how far the list came."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from metaharvest.errors import FetchError, ListError
from metaharvest.model import Finding, Level, ListMethod
from metaharvest.rules import RULES
from support.oai_harvest import Harvested, Patient, harvest
from support.oai_server import Asked, OaiServer, Odd, Record, dublin_core

ALL = [f"oai:test:{number}" for number in range(1, 31)]
DAY = datetime(2026, 1, 17, tzinfo=UTC)


def harvested(*odd: Odd, **options: object) -> Harvested:
    with OaiServer(30) as repository:
        repository.odd.update(odd)
        return harvest(repository.base_url, **options)  # type: ignore[arg-type]


def with_record(xml: bytes) -> Harvested:
    """30 records in three pages; the 17th is written like this."""
    with OaiServer(30) as repository:
        repository.records["oai:test:17"].xml = xml
        return harvest(repository.base_url)


def record(metadata: str | bytes, identifier: str = "oai:test:17") -> bytes:
    inner = metadata.encode() if isinstance(metadata, str) else metadata
    head = f"<record><header><identifier>{identifier}</identifier><datestamp>2026-01-17T00:00:00Z</datestamp></header>"
    return head.encode() + inner + b"</record>"


@pytest.mark.parametrize(
    "odd",
    [
        Odd.BUSY_SECONDS,
        Odd.BUSY_DATE,
        Odd.TOO_MANY,
        Odd.EMPTY_PAGE,
        Odd.TOKEN_EXPIRES_ONCE,
        Odd.STATUS_OF_ERRORS,
        Odd.REDIRECTED,
        Odd.NO_EARLIEST,
        Odd.OTHER_BASE_URL,
    ],
)
def test_every_record_comes_once_and_nothing_is_to_be_reported(odd: Odd) -> None:
    found = harvested(odd)
    assert sorted(found.good) == sorted(ALL)
    assert len(found.identifiers) == 30
    assert found.findings == []
    assert found.broken is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("odd", "rule"),
    [
        (Odd.CUT_OFF_ONCE, "oai.ill-formed"),
        (Odd.CUT_OFF, "oai.page-failed"),
        (Odd.TOKENS_EXPIRE, "oai.page-failed"),
        (Odd.UNESCAPED_REQUEST, "oai.ill-formed"),
        (Odd.JUNK_AT_THE_END, "oai.ill-formed"),
        (Odd.TWICE, "oai.duplicates"),
        (Odd.SIZE_NEARLY, "oai.list-size"),
    ],
)
def test_every_record_comes_once_and_a_warning_says_what_is_odd(odd: Odd, rule: str) -> None:
    found = harvested(odd)
    assert sorted(found.good) == sorted(ALL)
    assert len(found.identifiers) == 30
    assert rule in found.rules
    assert all(finding.level is Level.WARNING for finding in found.findings)
    assert found.broken is None


@pytest.mark.parametrize(
    ("odd", "came", "words"),
    [
        (Odd.SAME_TOKEN, 20, "after 20 of 30 records: The repository gives the same resumption token again"),
        (Odd.CIRCLE, 30, "after 30 of 30 records: 10 pages in a row had no new records, and a token each"),
        (Odd.SIZE_TOO_HIGH, 30, "after 30 of 60 records: The repository announced a list of 60 records"),
    ],
)
def test_a_list_that_leads_nowhere_is_broken_off_after_so_many_of_so_many(odd: Odd, came: int, words: str) -> None:
    found = harvested(odd)
    assert len(found.good) == came
    assert found.broken is not None
    assert words in found.broken.findings[0].message
    assert found.broken.findings[0].rule == "oai.broken-off"


@pytest.mark.parametrize("pages", [1, 2])
@pytest.mark.parametrize("odd", [set(), {Odd.TOKEN_EXPIRES_ONCE}])
def test_a_list_in_circles_is_broken_off_also_where_records_come_again(odd: set[Odd], pages: int) -> None:
    with OaiServer(30) as repository:
        repository.odd |= odd
        first = harvest(repository.base_url, most_pages=pages)
        repository.odd.add(Odd.CIRCLE)
        second = harvest(repository.base_url, first.checkpoint)
        assert "10 pages in a row had no new records" in str(second.broken)
        assert len(repository.asked("ListRecords")) < 30


@pytest.mark.parametrize("odd", [Odd.SAME_TOKEN, Odd.EMPTY_PAGES, Odd.SIZE_TOO_HIGH])
def test_after_a_list_that_led_nowhere_the_next_harvest_begins_again(odd: Odd) -> None:
    with OaiServer(30) as repository:
        repository.odd.add(odd)
        first = harvest(repository.base_url)
        repository.odd.clear()
        second = harvest(repository.base_url, first.checkpoint)
        assert sorted(second.good) == sorted(ALL)
        assert second.listing.is_complete
        assert not second.listing.goes_on
        assert second.broken is None


def test_a_token_of_white_space_is_the_end_and_the_warning_says_after_how_many() -> None:
    found = harvested(Odd.BLANK_TOKEN)
    assert len(found.good) == 10
    assert "10 records had come" in found.words("oai.token")


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (Odd.HTML_PAGE, "is an HTML page titled 'Our repository', not one of OAI-PMH"),
        (Odd.OTHER_VERB, "answered something else than ListRecords"),
        (Odd.EMPTY_ANSWERS, "The answer to ListRecords is empty."),
        (Odd.DTD, "begins with a DTD"),
    ],
)
def test_what_is_no_answer_is_said_in_a_sentence(odd: Odd, words: str) -> None:
    with pytest.raises(ListError) as caught:
        harvested(odd)
    assert words in str(caught.value)


def test_a_page_for_people_in_the_middle_of_a_list_is_asked_for_in_smaller_lists() -> None:
    with OaiServer(30) as repository:
        repository.tamper = lambda body, asked: b"<html><title>Sorry</title></html>" if "!20!" in str(asked) else body
        found = harvest(repository.base_url)
        assert (sorted(found.good), found.broken, found.rules) == (sorted(ALL), None, ["oai.page-failed"])
        assert "The answer to ListRecords is an HTML page titled 'Sorry'" in found.findings[-1].message


@pytest.mark.parametrize(("body", "status"), [(b"", 404), (b"", 410), (b"no", 422)])
def test_a_dead_token_begins_the_list_again_however_it_is_refused(body: bytes, status: int) -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url, most_pages=1)
        repository.refuse_tokens = (body, status)
        second = harvest(repository.base_url, first.checkpoint)
        # Every token is refused now: smaller lists need none.
        assert (sorted(second.good), second.broken) == (sorted(ALL), None)
        assert second.listing.goes_on is False
        assert "oai.page-failed" in second.rules


def test_tokens_that_are_all_answered_with_a_page_for_people_are_done_without() -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url, most_pages=1)
        repository.refuse_tokens = (b"<html><title>Session expired</title></html>", 200)
        second = harvest(repository.base_url, first.checkpoint)
        assert (sorted(second.good), second.broken) == (sorted(ALL), None)


def test_a_repository_that_is_away_keeps_the_place_where_the_list_goes_on() -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url, most_pages=1)
        repository.odd.add(Odd.HTML_PAGE)
        with pytest.raises((FetchError, ListError)):
            harvest(repository.base_url, first.checkpoint)
        repository.odd.clear()
        assert harvest(repository.base_url, first.checkpoint).good == ALL[10:]


def test_a_from_of_the_sites_own_that_is_refused_is_not_left_out() -> None:
    with OaiServer(30) as repository:
        repository.tamper = lambda body, asked: (
            re.sub(rb"<ListRecords>.*</ListRecords>", b'<error code="badArgument"/>', body, flags=re.DOTALL)
            if "from" in asked.arguments
            else body
        )
        with pytest.raises(ListError, match="refuses ListRecords: badArgument"):
            harvest(repository.base_url, begin="2026-01-05")


# -- what is wrong with a record


@pytest.mark.parametrize("inner", ["<!-- c -->", "<?php 1?>", "<![CDATA[]]>"])
@pytest.mark.parametrize("method", [ListMethod.LIST_RECORDS, ListMethod.LIST_IDENTIFIERS])
def test_a_comment_within_a_text_cuts_nothing_off(inner: str, method: ListMethod) -> None:
    with OaiServer(30) as repository:
        repository.sets = {"abc": "A"}
        for each in repository.records.values():
            each.sets = ("abc",)

        def comment(body: bytes, asked: Asked) -> bytes:
            if asked.verb not in ("ListRecords", "ListIdentifiers", "GetRecord"):
                return body
            for text in (b"<identifier>oai:", b"<datestamp>2026", b"<setSpec>a", b">oai_dc!", b"<responseDate>2026"):
                body = body.replace(text, text + inner.encode())
            return body

        repository.tamper = comment
        found = harvest(repository.base_url, method=method)
    assert (sorted(found.good), found.findings) == (sorted(ALL), [])
    origins = [each.document.origin for each in found.records if each.document.origin]
    assert {origin.datestamp for origin in origins if origin.identifier == "oai:test:1"} == {"2026-01-01T00:00:00Z"}
    assert {origin.sets for origin in origins} == {("abc",)}
    assert {origin.response_date for origin in origins} == {"2026-11-20T03:00:00Z"}


def test_a_comment_within_an_identifier_of_1_1_cuts_nothing_off() -> None:
    with OaiServer(30, version="1.1") as repository:
        repository.tamper = lambda body, _: body.replace(b"<identifier>oai:", b"<identifier>oai:<!-- c -->")
        found = harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS)
    assert (sorted(found.good), found.findings) == (sorted(ALL), [])


def test_records_within_the_metadata_are_no_records_of_the_list() -> None:
    marc = '<metadata><collection xmlns="urn:marc"><record><leader/></record><record/></collection></metadata>'
    found = with_record(record(marc))
    assert sorted(found.good) == sorted(ALL)
    with OaiServer(30) as repository:
        repository.records["oai:test:17"].xml = record(marc)
        repository.records["oai:test:18"].xml = record("<metadata><y:x/></metadata>", "oai:test:18")
        found = harvest(repository.base_url)
    assert sorted(found.good) == sorted(set(ALL) - {"oai:test:18"})


def test_an_answer_within_the_metadata_is_none_of_the_list() -> None:
    token = "<resumptionToken>inner</resumptionToken>"
    inner = f"<OAI-PMH><ListRecords>{record('<metadata><a/></metadata>', 'oai:inner:1').decode()}{token}</ListRecords>"
    found = with_record(record(f"<metadata>{inner}</OAI-PMH></metadata>"))
    assert sorted(found.identifiers) == sorted(ALL)
    assert found.findings == []


def test_a_very_long_text_is_not_lost() -> None:
    found = with_record(record("<metadata><t>" + "x" * 11_000_000 + "</t></metadata>"))
    assert sorted(found.good) == sorted(ALL)
    assert max(len(each.content or b"") for each in found.records) > 11_000_000
    assert found.findings == []


@pytest.mark.parametrize(
    ("metadata", "rule"),
    [
        ("", "oai.no-metadata"),
        ("<metadata/>", "oai.no-metadata"),
        ("<metadata>  <!-- none --> </metadata>", "oai.no-metadata"),
        ("<metadata>only text</metadata>", "oai.no-metadata"),
        ("<metadata><a/><b/></metadata>", "oai.metadata-parts"),
    ],
)
def test_a_record_without_metadata_that_can_be_taken_is_an_error_of_its_own(metadata: str, rule: str) -> None:
    found = with_record(record(metadata))
    assert sorted(found.good) == sorted(set(ALL) - {"oai:test:17"})
    assert [(finding.rule, finding.docid, finding.is_error) for finding in found.findings] == [
        (rule, "oai:test:17", True)
    ]


def test_text_beside_the_metadata_is_a_warning() -> None:
    found = with_record(record("<metadata>see also <a/></metadata>"))
    assert sorted(found.good) == sorted(ALL)
    assert found.rules == ["oai.metadata-parts"]


def test_records_without_an_identifier_are_counted() -> None:
    found = with_record(record("<metadata><a/></metadata>", ""))
    assert len(found.good) == 29
    assert "1 of the list's records have no identifier" in found.words("oai.identifier")


def test_records_without_an_identifier_are_received_for_all_that() -> None:
    with OaiServer(30) as repository:
        for number in (2, 3, 14):
            repository.records[f"oai:test:{number}"].xml = record("<metadata><a/></metadata>", "")
        found = harvest(repository.base_url)
        assert (len(found.good), found.rules, found.broken) == (27, ["oai.identifier"], None)
        repository.poison.add("oai:test:17")
        found = harvest(repository.base_url)
        assert (len(found.good), found.broken) == (26, None)


@pytest.mark.parametrize("whole", [10, 5])
def test_a_list_in_circles_is_broken_off_also_where_records_have_no_identifier(whole: int) -> None:
    with OaiServer(30) as repository:
        repository.odd.add(Odd.CIRCLE)
        for number in range(11, 11 + whole):
            repository.records[f"oai:test:{number}"].xml = record(f"<metadata><a{number}/></metadata>", "")
        found = harvest(repository.base_url)
        assert "10 pages in a row had no new records" in str(found.broken)
        assert len(repository.asked("ListRecords")) < 20


def test_datestamps_that_the_protocol_does_not_have_are_reported() -> None:
    xml = record("<metadata><a/></metadata>").replace(b"2026-01-17T00:00:00Z", b"2026-01-17T00:00:00.123+01:00")
    found = with_record(xml)
    assert len(found.good) == 30
    assert "2026-01-17T00:00:00.123+01:00" in found.words("oai.datestamp")


# -- pages and records that fail


def test_a_page_that_fails_for_ever_costs_the_one_record_that_fails() -> None:
    with OaiServer(300, page=100) as repository:
        repository.poison.add("oai:test:150")
        found = harvest(repository.base_url)
        assert len(found.good) == 299
        assert len(found.identifiers) == 300
        errors = [finding for finding in found.findings if finding.is_error]
        assert [(finding.rule, finding.docid) for finding in errors] == [("oai.record-failed", "oai:test:150")]
        assert "oai.page-failed" in found.rules
        assert found.checkpoint is not None
        assert found.checkpoint["watermark"] == "2026-11-20T03:00:00Z"
        assert len(repository.answered) < 60


@pytest.mark.slow
@pytest.mark.parametrize("place", ["inside", "behind"])
@pytest.mark.parametrize("code", ["internal", "badResumptionToken"])
def test_a_page_that_ends_in_an_error_is_no_end_of_the_list(place: str, code: str) -> None:
    error, end = f'<error code="{code}">the database went away</error>'.encode(), b"</ListRecords>"

    def failing(body: bytes, asked: Asked) -> bytes:
        if asked.verb != "ListRecords" or b">oai:test:17<" not in body:
            return body
        records = body.partition(b"</record>\n<record><header><identifier>oai:test:18<")[0].partition(end)[0]
        records = records.rpartition(b"<record>")[0] if b"<record>" in records else records
        return records + (error + end if place == "inside" else end + error) + b"</OAI-PMH>"

    with OaiServer(30) as repository:
        repository.tamper = failing
        found = harvest(repository.base_url)
        assert sorted(found.good) == sorted(ALL)
        assert len(found.identifiers) == 30
        assert f"has records, and then an error: {code} (the database went away)" in found.words("oai.page-failed")
        repository.tamper = lambda body, asked: body.replace(end, error + end).replace(b"</ListI", error + b"</ListI")
        found = harvest(repository.base_url)
        assert "has records, and then an error" in str(found.broken)


def test_many_scattered_records_that_make_their_pages_fail_cost_only_themselves() -> None:
    with OaiServer(200) as repository:
        for number, each in enumerate(repository.records.values()):
            each.datestamp += timedelta(seconds=317 * number)
        repository.poison.update(f"oai:test:{number}" for number in range(7, 200, 12))
        found = harvest(repository.base_url)
        assert found.broken is None
        assert set(found.good) == set(repository.records) - repository.poison
        assert {finding.docid for finding in found.findings if finding.is_error} == repository.poison
        assert len(repository.answered) < 30 * len(repository.poison)


@pytest.mark.slow
def test_a_repository_of_which_no_page_can_be_fetched_gives_out_its_records_one_by_one() -> None:
    class Pageless(OaiServer):
        def _list(self, asked: Asked) -> bytes:
            return super()._list(asked) if asked.verb == "ListIdentifiers" else bytes(1 // 0)

    with Pageless(300) as repository:
        found = harvest(repository.base_url)
        assert found.broken is None
        assert set(found.good) == set(repository.records)
        assert len(repository.answered) < 300 + 3 * 200 + 60


def until_midnight(begin: str, until: str) -> tuple[str, str]:
    return begin and f"{begin}T00:00:00", until and f"{until}T00:00:00"


def in_milliseconds(begin: str, until: str) -> tuple[str, str]:
    return begin.rstrip("Z"), until.rstrip("Z")


@pytest.mark.parametrize(
    ("limits", "step"),
    [(until_midnight, timedelta(days=9, hours=7)), (in_milliseconds, timedelta(milliseconds=1733))],
)
def test_windows_leave_no_gap_where_a_repository_takes_their_ends_otherwise(
    limits: Callable[[str, str], tuple[str, str]], step: timedelta
) -> None:
    class Finer(OaiServer):
        """Datestamps are finer than what is shown of them."""

        def _matching(self, wanted: Any) -> list[Record]:
            begin, until = limits(wanted.begin, wanted.until)
            stamps = {each.identifier: f"{each.datestamp:%Y-%m-%dT%H:%M:%S.%f}" for each in self.records.values()}
            return [
                each
                for each in self.records.values()
                if begin <= stamps[each.identifier] and (not until or stamps[each.identifier] <= until)
            ]

    with Finer(30, seconds=limits is in_milliseconds) as repository:
        for number, each in enumerate(repository.records.values(), 1):
            each.datestamp = datetime(2026, 1, 1, 12, tzinfo=UTC) + number * step
        repository.now = datetime(2026, 1, 1, 12, 2, tzinfo=UTC) if limits is in_milliseconds else repository.now
        repository.poison.add("oai:test:17")
        found = harvest(repository.base_url)
        assert sorted(found.good) == sorted(set(ALL) - {"oai:test:17"})
        assert [finding.docid for finding in found.findings if finding.is_error] == ["oai:test:17"]


@pytest.mark.parametrize(("hidden", "told"), [(1, "oai.list-size"), (5, "oai.broken-off")])
def test_smaller_lists_that_do_not_add_up_are_reported_with_numbers(hidden: int, told: str) -> None:
    class Forgetful(OaiServer):
        """Some records are in no list that has a window."""

        def _matching(self, wanted: Any) -> list[Record]:
            found = super()._matching(wanted)
            is_whole = not (wanted.begin or wanted.until)
            return found if is_whole else [each for each in found if each.identifier not in ALL[-hidden:]]

    with Forgetful(30) as repository:
        repository.poison.add("oai:test:17")
        found = harvest(repository.base_url)
        assert f"announced a list of 30 records (completeListSize) and sent {30 - hidden}" in found.words(told)
        assert (found.broken is None) == (told == "oai.list-size")
        if found.broken:
            repository.poison.clear()
            again = harvest(repository.base_url, found.checkpoint)
            assert (sorted(again.good), again.listing.is_complete) == (sorted(ALL), True)


def test_a_page_that_fails_where_datestamps_are_days() -> None:
    with OaiServer(40, seconds=False) as repository:
        for number in range(31, 41):
            repository.records[f"oai:test:{number}"].datestamp = DAY
        repository.poison.add("oai:test:17")
        found = harvest(repository.base_url)
        assert len(found.good) == 39
        assert [finding.docid for finding in found.findings if finding.is_error] == ["oai:test:17"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["failing", "not there"])
@pytest.mark.parametrize("first", [1, 40, 161])
@pytest.mark.parametrize("number", [25, 40])
def test_many_neighbours_that_cannot_be_fetched_cost_only_themselves(kind: str, first: int, number: int) -> None:
    with OaiServer(200, page=100) as repository:
        bad = {f"oai:test:{each}" for each in range(first, first + number)}
        getattr(repository, "unreadable" if kind == "failing" else "unknown").update(bad)
        found = harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS)
        assert found.broken is None
        assert set(found.good) == set(repository.records) - bad
        assert {finding.docid for finding in found.findings if finding.rule == "oai.record-failed"} == bad
        assert len(found.identifiers) == 200
        assert len(repository.asked("GetRecord")) < 200 + 60 + 10


def test_many_neighbours_that_make_their_pages_fail_cost_only_themselves() -> None:
    with OaiServer(200, page=100) as repository:
        bad = {f"oai:test:{each}" for each in range(50, 75)}
        for each in bad:
            repository.records[each].datestamp = DAY
        repository.poison |= bad
        found = harvest(repository.base_url)
        assert set(found.good) == set(repository.records) - bad
        assert found.broken is None


@pytest.mark.parametrize("page", [10, 100])
def test_a_repository_that_gives_out_no_record_is_left_alone_after_a_few_pages(page: int) -> None:
    with OaiServer(1000, page=page) as repository:
        repository.unreadable.update(repository.records)
        found = harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS)
        assert len(repository.asked("GetRecord")) < 60 + 3 * 10
        assert "the server answered 500" in str(found.broken)
        assert found.checkpoint is not None
        unasked = [finding for finding in found.findings if "was not requested" in finding.message]
        assert 20 <= len(found.records) - len(unasked) <= 22
        assert all(record.is_away for record in found.records)


def test_a_page_of_which_no_record_can_be_fetched_is_passed_over() -> None:
    with OaiServer(300, page=100) as repository:
        bad = {f"oai:test:{each}" for each in range(1, 101)}
        repository.unreadable |= bad
        found = harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS)
        assert set(found.good) == set(repository.records) - bad
        assert set(found.identifiers) == set(repository.records)
        assert len(repository.asked("GetRecord")) < 60 + 20 + 200


class Impatient(OaiServer):
    """No token outlives a request for a single record."""

    def _wanted(self, asked: Asked) -> Any:
        is_late = "resumptionToken" in asked.arguments and self.answered[-2].verb == "GetRecord"
        (self.odd.add if is_late else self.odd.discard)(Odd.TOKENS_EXPIRE)
        return super()._wanted(asked)


@pytest.mark.parametrize("days", [0, 1, 5])
@pytest.mark.parametrize("seconds", [True, False])
def test_tokens_that_expire_while_records_are_asked_for_one_by_one_cost_no_record(days: int, seconds: bool) -> None:
    with Impatient(60, seconds=seconds) as repository:
        for number, each in enumerate(repository.records.values()):
            each.datestamp = DAY + timedelta(days=days * number)
        found = harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS)
        assert (found.broken, found.rules) == (None, [])
        assert set(found.good) == set(repository.records)
        assert len(repository.asked("GetRecord")) == 60
        assert len(repository.asked("ListIdentifiers")) < 150


@pytest.mark.parametrize("method", [ListMethod.LIST_IDENTIFIERS, ListMethod.LIST_RECORDS])
def test_a_list_in_parts_goes_on_in_the_next_harvest_where_it_was_stopped(method: ListMethod) -> None:
    with Impatient(60) as repository:
        if method is ListMethod.LIST_RECORDS:
            repository.poison |= {"oai:test:17", "oai:test:38"}
        good: set[str] = set()
        checkpoint, nights, stamps = None, 0, []
        while not (checkpoint and checkpoint["watermark"]):
            found = harvest(repository.base_url, checkpoint, method=method, most_pages=9)
            good.update(found.good)
            checkpoint, nights = found.checkpoint, nights + 1
            assert found.listing.is_complete
            assert found.listing.goes_on == (nights > 1)
            stamps.append(repository.now)
            repository.now += timedelta(days=1)
            assert nights < 30
        assert good == set(repository.records) - repository.poison
        assert checkpoint["watermark"] == f"{stamps[0]:%Y-%m-%dT%H:%M:%SZ}"
        assert len(repository.asked("GetRecord")) < 150


@pytest.mark.parametrize("change", ["none", "gone", "changed"])
def test_a_long_answer_of_identifiers_goes_on_behind_the_records_that_came(change: str) -> None:
    with OaiServer(450, page=1000) as repository:
        first = harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS, most_pages=1)
        assert (len(first.good), first.listing.goes_on) == (200, False)
        if change == "gone":
            del repository.records["oai:test:7"]
        elif change == "changed":
            repository.put("oai:test:7", metadata=dublin_core("Toads"))
        repository.now += timedelta(days=1)
        repository.forget()
        again = harvest(repository.base_url, first.checkpoint, method=ListMethod.LIST_IDENTIFIERS)
        assert (again.broken, again.listing.goes_on, again.listing.is_complete) == (None, True, True)
        assert {*first.good, *again.good} >= set(repository.records)
        assert "oai:test:7" in again.good or change != "changed"
        assert len(repository.asked("GetRecord")) == {"none": 250, "gone": 449, "changed": 450}[change]
        assert again.checkpoint is not None
        assert again.checkpoint["watermark"] == "2026-11-20T03:00:00Z"


def test_a_long_answer_of_identifiers_of_which_all_records_came_is_not_empty() -> None:
    with OaiServer(450, page=1000) as repository:
        checkpoint = harvest(repository.base_url, most_pages=2, method=ListMethod.LIST_IDENTIFIERS).checkpoint
        for number in range(401, 451):
            del repository.records[f"oai:test:{number}"]
        found = harvest(repository.base_url, checkpoint, method=ListMethod.LIST_IDENTIFIERS)
        assert (found.records, found.rules, found.listing.is_empty) == ([], [], False)
        assert found.checkpoint is not None
        assert found.checkpoint["watermark"] == "2026-11-20T03:00:00Z"


def test_a_header_that_was_corrected_is_asked_for() -> None:
    with OaiServer(30) as repository:
        repository.records["oai:test:17"].sets = ("a\x01",)
        found = harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS)
        assert sorted(found.good) == sorted(ALL)


def test_a_list_that_is_stopped_leaves_no_request_behind() -> None:
    stop = Finding("harvest.stopped", "The run was stopped before its end.", level=Level.WARNING)
    with OaiServer(30) as repository:
        repository.unreadable.add("oai:test:11")

        def slowly(body: bytes, asked: Asked) -> bytes:
            time.sleep(0.3 if asked.arguments.get("identifier") in ("oai:test:12", "oai:test:13") else 0)
            return body

        repository.tamper = slowly
        found = harvest(repository.base_url, patience=Patient(stop, 2), method=ListMethod.LIST_IDENTIFIERS)
        assert found.good == ALL[:10]
        assert "The run was stopped" in str(found.broken)
        assert not any("Singly" in name for name in found.under_way)


def test_a_repository_that_can_do_nothing_is_soon_left_alone() -> None:
    with OaiServer(30) as repository:
        repository.poison.update(ALL)
        repository.tamper = lambda body, asked: b"" if asked.verb == "ListIdentifiers" else body
        with pytest.raises((FetchError, ListError)) as caught:
            harvest(repository.base_url)
        assert caught.value.findings
        assert len(repository.answered) < 60


def test_duplicates_that_changed_meanwhile_come_again() -> None:
    with OaiServer(30) as repository:
        repository.records["again"] = Record(
            "oai:test:1", datetime(2026, 2, 20, tzinfo=UTC), title="Toads", metadata=dublin_core("Toads")
        )
        found = harvest(repository.base_url)
        assert found.identifiers.count("oai:test:1") == 2


@pytest.mark.slow
def test_every_rule_of_a_finding_is_explained() -> None:
    for odd in Odd:
        try:
            rules = harvested(odd).rules
        except ListError as error:
            rules = [finding.rule for finding in error.findings]
        assert set(rules) <= set(RULES)


@pytest.mark.parametrize(
    "sent",
    [b"", b"\n", b"<br/>\n<b>Fatal error</b>: Allowed memory size exhausted", b"<html><title>Oops</title></html>"],
)
def test_a_page_in_whose_place_something_else_comes_costs_no_record(sent: bytes) -> None:
    """As from a program that runs out of memory while it writes a page with the 15th record."""
    with OaiServer(30) as repository:
        repository.tamper = lambda body, asked: (
            sent if asked.verb == "ListRecords" and b">oai:test:15<" in body else body
        )
        found = harvest(repository.base_url)
        assert found.broken is None
        assert sorted(found.good) == sorted(ALL)
        assert found.rules == ["oai.page-failed"]


@pytest.mark.slow
def test_pages_that_are_each_cut_off_once_are_each_asked_for_twice() -> None:
    with OaiServer(60) as repository:
        asked: set[str] = set()

        def cut_off_once(body: bytes, request: Asked) -> bytes:
            token = request.arguments.get("resumptionToken", "")
            if request.verb != "ListRecords" or token in asked:
                return body
            asked.add(token)
            return body[: len(body) // 2]

        repository.tamper = cut_off_once
        found = harvest(repository.base_url)
        assert found.broken is None
        assert len({*found.good}) == 60
        assert len(repository.asked("ListRecords")) == 12
        assert found.rules == ["oai.ill-formed"]


def test_a_repository_that_has_nothing_but_pages_for_people_from_now_on_is_not_asked_for_ever() -> None:
    with OaiServer(30) as repository:
        repository.tamper = lambda body, asked: (
            b"<html><title>Maintenance</title></html>" if len(repository.asked("ListRecords")) > 1 else body
        )
        found = harvest(repository.base_url)
        assert found.broken is not None
        assert "The list broke off after 10 of 30 records" in str(found.broken)
        assert len(repository.answered) < 250
        repository.tamper = None
        again = harvest(repository.base_url, found.checkpoint)
        assert again.broken is None
        assert len({*found.good, *again.good}) == 30


def test_a_record_that_moves_while_its_list_is_read_is_reported_as_others_may_be_left_out() -> None:
    with OaiServer(30) as repository:

        def move(body: bytes, asked: Asked) -> bytes:
            if asked.verb == "ListRecords" and repository.records["oai:test:3"].title == "Frogs":
                repository.put("oai:test:3", title="Toads")
            return body

        repository.tamper = move
        found = harvest(repository.base_url)
        assert len(set(found.identifiers)) == 29
        [finding] = found.findings
        assert finding.rule == "oai.duplicates"
        assert finding.message.startswith("1 of the list's records came twice")
        assert found.pages[-1].left_out == 1


def test_a_circle_of_pages_whose_datestamps_are_always_new_is_found_out() -> None:
    with OaiServer(30) as repository:
        first = b""
        stamps = (
            f"2026-11-20T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z" for number in range(86_400)
        )

        def turn(body: bytes, asked: Asked) -> bytes:
            nonlocal first
            if asked.verb != "ListRecords":
                return body
            token = re.search(rb"<resumptionToken.*?</resumptionToken>|<resumptionToken[^>]*/>", body)
            assert token is not None
            first = first or token[0]
            if len(repository.asked("ListRecords")) % 3 == 0:
                body = body.replace(token[0], first)
            return re.sub(rb"<datestamp>[^<]*", lambda _found: f"<datestamp>{next(stamps)}".encode(), body)

        repository.tamper = turn
        found = harvest(repository.base_url)
        assert len(set(found.identifiers)) == 30
        assert "the same resumption token again, with no new records" in str(found.broken)
        assert len(repository.answered) < 40


def test_after_datestamps_without_the_time_that_is_promised_whole_days_are_asked_for() -> None:
    """The repository compares texts: what changes on the day of a harvest is before the second of that harvest."""
    with OaiServer(12) as repository:

        def days(body: bytes, asked: Asked) -> bytes:
            if "T" in asked.arguments.get("from", ""):
                inner = b'<error code="noRecordsMatch"/>'
                return re.sub(b"<ListRecords>.*</ListRecords>", inner, body, flags=re.DOTALL)
            return re.sub(rb"(<datestamp>[^<T]*)T[^<]*", rb"\1", body)

        repository.tamper = days
        first = harvest(repository.base_url)
        [finding] = first.findings
        assert (finding.rule, finding.level) == ("oai.granularity", Level.WARNING)
        assert "12 of the list's records have days" in finding.message
        repository.now += timedelta(hours=2)
        repository.put("oai:test:13")
        second = harvest(repository.base_url, first.checkpoint)
        assert (second.good, second.rules) == (["oai:test:13"], [])
