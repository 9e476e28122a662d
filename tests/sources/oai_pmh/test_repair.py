"""Where damaged answers are cut, and what is made of each piece."""

from __future__ import annotations

import time
from io import BytesIO

import pytest
from lxml import etree

from metaharvest.sources.oai_pmh.bounds import record_limits
from metaharvest.sources.oai_pmh.protocol import ResponseRoot
from metaharvest.sources.oai_pmh.repair import (
    Envelope,
    Repaired,
    Unreadable,
    blanked,
    cut,
    repaired,
)
from support.hostile_oai import OAI, record, records

ROOT = ResponseRoot(OAI, "2.0")
HIDING = (b"<!-- <record> -->", b"<![CDATA[<record>]]>", b"<?php <record> ?>")


def pieces(body: bytes, skip: int = 0) -> tuple[list[str], Envelope]:
    """The identifiers of the records, `lost:` in front of those that are lost; and what is beside them."""
    *found, around = cut(BytesIO(body), ROOT, "ListRecords", "record", skip, record_limits(50_000_000))
    assert isinstance(around, Envelope)
    return [shown(each) for each in found], around


def shown(piece: object) -> str:
    if isinstance(piece, Unreadable):
        return f"lost:{piece.identifier}"
    is_repaired = isinstance(piece, Repaired)
    element = piece.item if isinstance(piece, Repaired) else piece
    assert isinstance(element, etree._Element)
    return ("repaired:" if is_repaired else "") + str(element.findtext(f".//{{{OAI}}}identifier"))


def named(*numbers: int) -> list[str]:
    return [f"oai:hostile:{number}" for number in numbers]


def test_whole_records_are_taken_whatever_is_between_them() -> None:
    found, around = pieces(records(record(1), b"&", record(2), b"<x>", record(3), token=b"next"))
    assert found == named(1, 2, 3)
    assert (around.is_whole, around.has_list, around.unread) == (True, True, frozenset())
    assert [each.text for each in around.elements if each.tag.endswith("Token")] == ["next"]


def test_a_record_with_bytes_that_are_no_text_is_repaired() -> None:
    bad = record(2, metadata=b"<a>\xff &#1;</a>")
    assert pieces(records(record(1), bad, record(3)))[0] == [named(1)[0], "repaired:oai:hostile:2", named(3)[0]]
    assert repaired(b"\xff\x01&#x2;&#xD800;&#65;") == "\ufffd\ufffd\ufffd\ufffd&#65;".encode()


def test_a_record_that_stays_damaged_is_named_or_counted() -> None:
    nameless = record(3, metadata=b"<a>").replace(b"<identifier>oai:hostile:3</identifier>", b"")
    assert pieces(records(record(1), record(2, metadata=b"<a>"), nameless, record(4)))[0] == [
        *named(1),
        "lost:oai:hostile:2",
        "lost:",
        *named(4),
    ]


@pytest.mark.parametrize("hiding", HIDING)
def test_what_is_no_tag_begins_no_record(hiding: bytes) -> None:
    found, _ = pieces(records(hiding, record(1, metadata=b"<a>" + hiding + b"</a>"), hiding, b"&", record(2)))
    assert found == named(1, 2)


@pytest.mark.parametrize("unclosed", [b"<!-- ", b"<![CDATA[ ", b"<? "])
def test_what_has_lost_its_end_hides_nothing(unclosed: bytes) -> None:
    body = unclosed + b"<record>" + b"<!-- a -->" + b"<![CDATA[ b ]]>" + b"<?c ?>"
    assert blanked(body) == body[: len(unclosed) + 8].ljust(len(body))
    assert pieces(records(record(1), unclosed, record(2), record(3)))[0] == named(1, 2, 3)


def test_records_without_an_end_do_not_hide_the_next_ones() -> None:
    some = [record(number) for number in range(2, 40)]
    assert pieces(records(record(1).replace(b"</record>", b""), *some))[0] == [
        "lost:oai:hostile:1",
        *named(*range(2, 40)),
    ]


@pytest.mark.parametrize("cut_off", [b"</record>", b"</metadata></record>"])
def test_a_record_without_an_end_and_one_without_a_beginning_do_not_hide_those_between(cut_off: bytes) -> None:
    first, last = record(1).removesuffix(cut_off), record(5).removeprefix(b"<record><header>")
    found = pieces(records(first, record(2), record(3), last, record(6)))[0]
    assert [each for each in found if not each.startswith("lost:")] == named(2, 3, 6)
    assert {each for each in found if each.startswith("lost:")} == {"lost:oai:hostile:1", "lost:oai:hostile:5"}


def test_the_first_records_are_skipped() -> None:
    assert pieces(records(record(1), record(2), b"&", record(3)), skip=2)[0] == named(3)


def test_an_answer_that_breaks_off_in_a_record_does_not_count_it() -> None:
    body = records(record(1), record(2))
    found, around = pieces(body[: body.index(b"oai:hostile:2") + 20])
    assert (found, around.is_whole) == (named(1), False)


@pytest.mark.parametrize(
    "token", [b"<resumptionToken>a", b"resumptionToken>a</resumptionToken>", b"<resumptionToken a"]
)
def test_a_token_of_which_only_parts_are_there_is_unread(token: bytes) -> None:
    _, around = pieces(records(record(1), b"&", token))
    assert around.unread == {"resumptionToken"}


@pytest.mark.slow
def test_millions_of_instructions_take_seconds() -> None:
    large = record(2, metadata=b"<r>" + b"<?a?>" * 3_000_000 + b"</r>")
    began = time.process_time()
    assert pieces(records(record(1), b"&", large, record(3)))[0] == [*named(1), "lost:oai:hostile:2", *named(3)]
    assert time.process_time() - began < 5
