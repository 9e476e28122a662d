"""Answers that are damaged at one place: no record of them disappears without a finding, and reading stays quick."""

from __future__ import annotations

import time
from collections.abc import Callable
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaharvest.model import OaiOptions
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh.answers import Answer
from metaharvest.sources.oai_pmh.reading import listed
from metaharvest.sources.oai_pmh.records import Records
from support.oai_harvest import Harvested, harvest
from support.oai_server import OaiServer

ALL = [f"oai:test:{number}" for number in range(1, 31)]
NUMBER = 8
START = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>'
    "2026-11-20T03:00:00Z</responseDate><request>http://repository.example.org/oai</request>"
)
TOKEN = '<resumptionToken completeListSize="99">next</resumptionToken>'
MARC = '<c xmlns="urn:marc"><record><leader/></record><record/><record>{0}</record></c>'
DC = '<dc xmlns="urn:dc"><title>Title {0}</title><identifier>http://example.org/{0}</identifier></dc>'
ABOUT = (
    '<about><provenance xmlns="http://www.openarchives.org/OAI/2.0/provenance"><originDescription><identifier>'
    "oai:other:{0}</identifier><datestamp>2020-01-01</datestamp></originDescription></provenance></about>"
)
GARBAGE = b"|<|>|&|\0\1|\xff\xfe|<!--|]]>|<b>|<a b=|<record>|</record>|</metadata>|</header>|Fatal error: memory"


def part(number: int, verb: str) -> str:
    """What the list has of one record."""
    header = (
        f"<header><identifier>oai:test:{number}</identifier><datestamp>2026-01-{number:02}T00:00:00Z</datestamp>"
        + ("<setSpec>a</setSpec>" if number % 3 == 0 else "")
        + "</header>"
    )
    if verb == "ListIdentifiers":
        return header
    metadata = (MARC if number % 2 else DC).format(number)
    about = ABOUT.format(number) if number % 4 == 0 else ""
    return f"<record>{header}<metadata>{metadata}</metadata>{about}</record>\n"


def answer_with(inner: str, verb: str = "ListRecords", end: str = TOKEN) -> bytes:
    return f"{START}<{verb}>{inner}{end}</{verb}></OAI-PMH>".encode()


def read(body: bytes, verb: str = "ListRecords") -> tuple[list[ListedRecord], Answer, int]:
    """The records, those that are lost too; the answer; and how many have no identifier."""
    records, answer = Records("http://repository.example.org/oai", OaiOptions("test")), Answer(verb)
    found = list(listed(BytesIO(body), answer, records))
    return found, answer, records.odd["nameless"]


def identifier(record: ListedRecord) -> str:
    assert record.document.origin is not None
    return record.document.origin.identifier


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.sampled_from(["ListRecords", "ListIdentifiers"]),
    st.floats(0, 1),
    st.integers(0, 30),
    st.sampled_from(GARBAGE.split(b"|")),
)
def test_every_record_is_had_or_named_or_counted(verb: str, where: float, length: int, garbage: bytes) -> None:
    whole = answer_with("".join(part(number, verb) for number in range(1, NUMBER + 1)), verb)
    at = len(START) + int(where * (len(whole) - len(START)))
    damaged = whole[:at] + garbage + whole[at + length :]
    found, answer, nameless = read(damaged, verb)
    if not answer.is_whole:
        return  # it is asked for again
    named = {identifier(record) for record in found}
    had = {identifier(record) for record in found if not any(finding.is_error for finding in record.findings)}
    assert len(named) + nameless >= NUMBER
    places = [whole.index(part(number, verb).encode()) for number in range(1, NUMBER + 1)]
    for number, place in enumerate(places, start=1):
        is_hit = at < place + len(part(number, verb)) and at + length >= place
        if not is_hit:
            assert f"oai:test:{number}" in named
        if place + 500 < at or place > at + length + 500:
            assert f"oai:test:{number}" in had


def test_an_answer_that_is_not_damaged_at_any_record_loses_none() -> None:
    inner = "".join(part(number, "ListRecords") for number in range(1, NUMBER + 1))
    found, answer, nameless = read(answer_with(inner).replace(b"<request>", b"<request>?a=1&b=2"))
    assert [identifier(record) for record in found] == [f"oai:test:{number}" for number in range(1, NUMBER + 1)]
    assert not any(record.findings for record in found)
    assert answer.token is not None
    assert (answer.token.text, answer.is_whole, nameless) == ("next", True, 0)


# -- as the keeper is told


def harvested(change: Callable[[bytes], bytes]) -> Harvested:
    """30 records in three pages, of which one is changed on its way."""
    with OaiServer(30) as repository:
        repository.tamper = lambda body, asked: change(body)
        return harvest(repository.base_url)


def lost(found: Harvested) -> list[tuple[str, str]]:
    return [(finding.rule, finding.docid) for finding in found.findings if finding.is_error]


def test_a_record_that_stops_in_the_middle_is_named() -> None:
    start = b"<record><header><identifier>oai:test:17</identifier>"

    def stop(body: bytes) -> bytes:
        before, found, behind = body.partition(start)
        record, _, others = behind.partition(b"</record>")
        return before + found + record.partition(b"<metadata>")[0] + b"<metadata><a>Fatal error: memory" + others

    found = harvested(lambda body: stop(body) if start in body else body)
    assert sorted(found.good) == sorted(set(ALL) - {"oai:test:17"})
    assert lost(found) == [("oai.damaged-record", "oai:test:17")]
    assert "cannot be read: it has no end" in found.words("oai.damaged-record")


def test_a_record_without_its_beginning_is_named() -> None:
    found = harvested(lambda body: body.replace(b"<record><header><identifier>oai:test:17<", b"oai:test:17<"))
    assert sorted(found.good) == sorted(set(ALL) - {"oai:test:17"})
    assert lost(found) == [("oai.damaged-record", "oai:test:17")]


def test_two_records_that_run_into_each_other_are_both_named() -> None:
    border = b"</oai_dc:dc></metadata></record>\n<record><header><identifier>oai:test:17<"
    found = harvested(lambda body: body.replace(border, b"oai:test:17<"))
    assert sorted(found.good) == sorted(set(ALL) - {"oai:test:16", "oai:test:17"})
    assert lost(found) == [("oai.damaged-record", "oai:test:16"), ("oai.damaged-record", "oai:test:17")]


@pytest.mark.parametrize("damaged", ["oai:test:12", "oai:test:17", "oai:test:18"])
def test_records_of_oai_pmh_within_a_record_are_none_of_the_list(damaged: str) -> None:
    inner = "<record><header><identifier>oai:inner:1</identifier></header><metadata><a/></metadata></record>"
    with OaiServer(30) as repository:
        repository.records["oai:test:17"].metadata = f"<list>{inner}{inner.replace(':1<', ':2<')}</list>"
        repository.records[damaged].metadata = (repository.records[damaged].metadata or "<a></a>") + "&nbsp;"
        found = harvest(repository.base_url)
    assert sorted(found.good) == sorted(set(ALL) - {damaged})
    assert ("oai.damaged-record", damaged) in lost(found)


# -- how long it takes


def seconds(body: bytes) -> float:
    """Processor time of the quickest of three readings."""
    took = []
    for _ in range(3):
        began = time.thread_time()
        read(body)
        took.append(time.thread_time() - began)
    return min(took)


@pytest.mark.parametrize(
    "body",
    [
        lambda number: answer_with("<error>" * number),
        lambda number: answer_with(part(1, "ListRecords") + "<error>" * number + "&"),
        lambda number: answer_with(part(1, "ListRecords") + "&" + "<!--" * number),
        lambda number: answer_with("&" + "<record><!--" * number),
        lambda number: answer_with("&" + "<record><header>" * number),
        lambda number: answer_with("&" + "<record><header></record>" * number),
        lambda number: answer_with(part(1, "ListRecords") + "&" + "x" * (100 * number)),
    ],
)
def test_reading_takes_as_much_longer_as_the_answer_is(body: Callable[[int], bytes]) -> None:
    small, large = seconds(body(600)), seconds(body(4_800))
    assert large < 30 * small + 0.05
