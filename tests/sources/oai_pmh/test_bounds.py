"""What a repository may send at most: what is kept of a record is bounded by what came for it, in linear time."""

from __future__ import annotations

import hashlib
import time
from io import BytesIO

import pytest

from metaharvest.model import Finding, OaiOptions, lengths
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh import bounds
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.response_reader import listed
from metaharvest.sources.oai_pmh.responses import NotOaiResponse, Response, short_response
from support.hostile_oai import FORMAT, IDENTIFY, answer, namespaces, record, records

SECONDS = 5
"""Processor time; work that is not linear takes minutes."""


def read(body: bytes, verb: str = "ListRecords", largest: int = 52_428_800) -> tuple[list[ListedRecord], Records]:
    made = Records("http://repository.example.org/oai", OaiOptions("test"), largest=largest)
    began = time.process_time()
    found = list(listed(BytesIO(body), Response(verb), made))
    assert time.process_time() - began < SECONDS
    return found, made


def rules(found: list[ListedRecord]) -> list[list[str]]:
    return [[finding.rule for finding in each.findings] for each in found]


def findings(made: Records) -> dict[str, Finding]:
    return {finding.rule: finding for finding in made.odd.findings()}


def in_list(attributes: bytes, *some: bytes) -> bytes:
    return records(*some).replace(b"<ListRecords>", b"<ListRecords" + attributes + b">")


@pytest.mark.slow
@pytest.mark.parametrize("filling", [b"<a/>", b"<!---->", b"<?a?>", b"<a>x</a>", b"<![CDATA[x]]>"])
@pytest.mark.parametrize("number", [200_000, 1_100_000])
def test_a_record_beyond_the_limit_of_nodes_is_lost_alone(filling: bytes, number: int) -> None:
    body = records(record(1), record(2, metadata=b"<r>" + filling * number + b"</r>"), record(3))
    found, made = read(body)
    expected = ["oai.too-large"] if number > bounds.RECORD_NODES else []
    assert rules(found) == [[], expected, []]
    assert [each.document.origin.identifier for each in found if each.document.origin] == [
        f"oai:hostile:{n}" for n in (1, 2, 3)
    ]
    assert "oai.ill-formed" not in findings(made)


@pytest.mark.parametrize("padding", [0, 600_000])
def test_max_document_bytes_holds_for_records(padding: int) -> None:
    """The reader takes short answers as a whole, and long ones piece by piece."""
    some = [record(n, metadata=b"<r>%b</r>" % (b"x" * size)) for n, size in enumerate((10, 19_000, 21_000, 200_000))]
    found, _ = read(records(*some, b" " * padding), largest=20_000)
    assert rules(found) == [[], [], ["oai.too-large"], ["oai.too-large"]]
    assert "20,000 are taken" in found[2].findings[0].message or "20,000 bytes" in found[2].findings[0].message


def test_a_record_keeps_the_namespaces_around_it_that_it_uses() -> None:
    """Also where only a value has the prefix."""
    metadata = b'<n7:a n8:b="c" type="n9:d"><n7:e/></n7:a>'
    found, made = read(in_list(namespaces(5_000), record(1, metadata=metadata), record(2)))
    content = found[0].content or b""
    assert all(b'xmlns:n%d="u%d"' % (n, n) in content for n in (7, 8, 9))
    assert content.count(b"xmlns") == 4
    assert "5,001 namespaces" in findings(made)["oai.too-large"].message


def test_a_usual_number_of_namespaces_goes_with_each_record() -> None:
    found, made = read(records(record(1), attributes=namespaces(30)))
    assert (found[0].content or b"").count(b"xmlns") == 33
    assert not findings(made)


def test_a_namespace_or_too_many_of_them_that_a_record_uses_lose_it_alone() -> None:
    long = b' xmlns:long="' + b"u" * 5_000 + b'"'
    uses_all = b"<r>" + b"".join(b"<n%d:a/>" % n for n in range(150)) + b"</r>"
    body = in_list(namespaces(200) + long, record(1, metadata=b"<long:a/>"), record(2, metadata=uses_all), record(3))
    found, _ = read(body)
    assert rules(found) == [["oai.too-large"], ["oai.too-large"], []]
    own = record(1, metadata=b'<a xmlns="' + b"u" * 5_000 + b'"/>')
    assert rules(read(records(own, record(2)))[0]) == [["oai.too-large"], []]
    of_record = record(1).replace(b"<record>", b"<record" + namespaces(300) + b">")
    assert rules(read(records(of_record, record(2)))[0]) == [["oai.too-large"], []]


def test_what_is_stored_beside_the_content_is_bounded() -> None:
    some = [
        record(1, header=b"<setSpec>%b</setSpec><setSpec>a</setSpec>" % (b"s" * 2_000)),
        record(2, header=b"<setSpec>abcdefgh</setSpec>" * 20_000),
        record(3, about=b"<about><a>%b</a></about><about><b/></about>" % (b"x" * 2_000_000)),
        record(4).replace(b"2026-01-01T00:00:00Z", b"2" * 100_000),
        record(5).replace(b"oai:hostile:5", b"i" * 100_000),
    ]
    found, made = read(records(*some))
    origins = [each.document.origin for each in found if each.document.origin]
    assert len(origins) == 5
    assert origins[0].sets == ("a",)
    assert sum(map(len, origins[1].sets)) <= bounds.SET_SPECS
    assert sum(map(len, origins[2].about)) <= lengths.ABOUTS
    assert len(origins[3].datestamp) <= bounds.DATE
    assert len(origins[4].identifier) <= bounds.IDENTIFIER
    assert len(found[4].document.url) < 3 * bounds.IDENTIFIER + 200
    assert rules(found) == [[], [], [], [], ["oai.identifier"]]
    assert "oai.too-long" in findings(made)


@pytest.mark.slow
def test_removing_a_record_takes_a_time_that_is_linear_in_its_parts() -> None:
    """Where something refers to an element, lxml looks through all parts of the element to remove it."""
    many = record(1, header=b"<setSpec>a</setSpec>" * 300_000)
    found, _ = read(records(many, record(2, about=b"<about><a>%b</a></about>" % (b"x" * 600_000)), many, record(3)))
    assert len(found) == 4


def test_a_record_of_very_many_namespaces_is_kept_as_it_is() -> None:
    """Canonical XML looks through all namespaces in scope, for each element."""
    content = b"<r><b" + namespaces(30_000) + b">" + b"<a/>" * 200_000 + b"</b></r>"
    found, _ = read(records(record(1, metadata=content)))
    assert rules(found) == [[]]
    assert found[0].document.origin
    assert found[0].document.origin.digest == hashlib.sha256(found[0].content or b"").hexdigest()


@pytest.mark.parametrize("attributes", [0, 300_000])
def test_a_record_whose_root_element_declares_very_many_namespaces_is_lost_alone(attributes: int) -> None:
    """To write an element takes a time that grows with its attributes times its namespaces."""
    content = b"<r" + namespaces(30_000) + b"".join(b' a%d=""' % number for number in range(attributes)) + b"/>"
    found, _ = read(records(record(1, metadata=content), record(2)))
    assert rules(found) == [["oai.too-large"], []]


def why(body: bytes, verb: str) -> Finding:
    began = time.process_time()
    with pytest.raises(NotOaiResponse) as refused:
        short_response(body, verb)
    assert time.process_time() - began < SECONDS
    return refused.value.finding


def test_a_short_answer_beyond_a_bound_is_refused() -> None:
    nodes = answer("Identify", IDENTIFY + b"<x/>" * 1_000_001)
    assert why(nodes, "Identify").rule == "oai.too-large"
    assert why(answer("Identify", b"x" * 40_000_000), "Identify").rule == "oai.too-large"
    around = answer("ListMetadataFormats", FORMAT).replace(b"Formats>", b"Formats" + namespaces(101) + b">", 1)
    assert "namespaces" in why(around, "ListMetadataFormats").message
    assert "whole tag" in why(answer("Identify", IDENTIFY, namespaces(50_000)), "Identify").message
    seven = b'<?xml version="1.0" encoding="UTF-7"?>' + answer("Identify", IDENTIFY)
    assert why(seven, "Identify").rule == "oai.encoding"


def test_the_words_of_an_error_are_bounded_whatever_comments_are_in_them() -> None:
    began = time.process_time()
    inner = b'<error code="badArgument">no <!-- x -->such thing' + b"<!---->" * 900_000 + b"</error>" + b"<error/>" * 50
    body = answer("x", b"").replace(b"<x></x>", inner)
    _, found = short_response(body, "ListSets")
    assert time.process_time() - began < SECONDS
    assert str(found.errors[0]) == "badArgument (no such thing)"
    assert len(found.errors) == bounds.ERRORS


def test_a_token_that_is_too_long_is_not_kept() -> None:
    found = Response("ListRecords")
    made = Records("http://repository.example.org/oai", OaiOptions("test"))
    list(listed(BytesIO(records(record(1), token=b"t" * 70_000)), found, made))
    assert found.token is not None
    assert (found.token.text, found.token.too_long) == ("", 70_000)
