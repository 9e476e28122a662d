"""Answers that are damaged at one place: no record of them disappears without a finding, and reading stays quick."""

from __future__ import annotations

import time
from collections.abc import Callable
from io import BytesIO
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metaharvest.errors import ListError
from metaharvest.model import OaiOptions
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh import responses
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.response_reader import listed
from metaharvest.sources.oai_pmh.responses import Response
from support.oai_harvest import Harvested, harvest
from support.oai_server import Asked, OaiServer

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


def read(body: bytes, verb: str = "ListRecords") -> tuple[list[ListedRecord], Response, int]:
    """The records, those that are lost too; the answer; and how many have no identifier.

    They are the same whether the answer is read as a short one or, as long ones are, piece by piece.
    """
    with patch.object(responses, "SHORT", 0):
        piece_by_piece = _read(body, verb)
    as_a_whole = _read(body, verb)
    assert as_a_whole == piece_by_piece
    return as_a_whole


def _read(body: bytes, verb: str) -> tuple[list[ListedRecord], Response, int]:
    records, answer = Records("http://repository.example.org/oai", OaiOptions("test")), Response(verb)
    found = list(listed(BytesIO(body), answer, records))
    return found, answer, records.odd.number("nameless")


def identifier(record: ListedRecord) -> str:
    assert record.document.origin is not None
    return record.document.origin.identifier


@pytest.mark.slow
@settings(max_examples=300)
@example("ListRecords", 0.29296875, 11, b"")
@example("ListRecords", 0.969, 30, b"&")
@example("ListRecords", 0.9699, 30, b"")
@example("ListRecords", 0.9891, 25, b"<")
@example("ListIdentifiers", 0.91796875, 30, b"")
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
    assert answer.token is not None
    assert answer.token.text or answer.token.size == 99  # the list goes on, or is known to be longer
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


@pytest.mark.parametrize(("lost_until", "named"), [("<header>", 4), ("<metadata>", 3)])
def test_records_that_run_together_and_are_well_formed_are_not_taken_for_one(lost_until: str, named: int) -> None:
    third, fourth = part(3, "ListRecords"), part(4, "ListRecords")
    parts = [part(number, "ListRecords") for number in range(1, NUMBER + 1)]
    parts[2:4] = [third.rpartition("</record>")[0] + lost_until + fourth.partition(lost_until)[2]]
    found, answer, nameless = read(answer_with("".join(parts)))
    assert (len(found), nameless, answer.damage) == (NUMBER - 1, 1, "")
    assert [identifier(each) for each in found if each.findings] == [f"oai:test:{named}"]
    assert "runs together with another one" in found[2].findings[0].message
    assert found[2].content is None


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


def test_two_records_whose_headers_run_into_each_other_are_named_and_counted() -> None:
    found = harvested(
        lambda body: body.replace(
            b"<identifier>oai:test:17<", b"<identifier>a</identifier>" * 2 + b"<identifier>oai:test:17<"
        )
    )
    assert sorted(found.good) == sorted(ALL)
    assert "2 of the list's records have no identifier" in found.words("oai.identifier")


@pytest.mark.parametrize("damaged", ["oai:test:12", "oai:test:17", "oai:test:18"])
def test_records_of_oai_pmh_within_a_record_are_none_of_the_list(damaged: str) -> None:
    inner = "<record><header><identifier>oai:inner:1</identifier></header><metadata><a/></metadata></record>"
    with OaiServer(30) as repository:
        repository.records["oai:test:17"].metadata = f"<list>{inner}{inner.replace(':1<', ':2<')}</list>"
        repository.records[damaged].metadata = (repository.records[damaged].metadata or "<a></a>") + "&nbsp;"
        found = harvest(repository.base_url)
    assert sorted(found.good) == sorted(set(ALL) - {damaged})
    assert ("oai.damaged-record", damaged) in lost(found)


BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize("before", [b"\n", BOM + b"\n", b"\n" + BOM, BOM + BOM], ids=repr)
@pytest.mark.parametrize("version", ["2.0", "1.1"])
def test_what_comes_before_the_xml_declaration_keeps_nobody_out(before: bytes, version: str) -> None:
    with OaiServer(30, version=version) as repository:
        repository.records["oai:test:17"].title = "Fr\u00f6gs"
        repository.tamper = lambda body, _: before + body
        found = harvest(repository.base_url)
    assert sorted(found.good) == sorted(ALL)
    assert set(found.rules) == {"oai.ill-formed"}
    content = next(each.content for each in found.records if identifier(each) == "oai:test:17")
    assert "Fr\u00f6gs" in (content or b"").decode()


@pytest.mark.parametrize("before", [BOM, b""])
def test_a_byte_order_mark_or_no_declaration_is_nothing_to_tell(before: bytes) -> None:
    found = harvested(lambda body: before + body)
    assert (sorted(found.good), found.findings) == (sorted(ALL), [])
    found = harvested(lambda body: before + b"\n" + body.partition(b"?>")[2])
    assert (sorted(found.good), found.findings) == (sorted(ALL), [])


@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-8"])
def test_an_encoding_is_read_also_behind_a_blank_line(encoding: str) -> None:
    def change(body: bytes) -> bytes:
        text = body.decode().replace("UTF-8", encoding).replace("Frogs", "Fr\u00f6gs")
        return b"\n" + text.encode(encoding)

    found = harvested(change)
    assert sorted(found.good) == sorted(ALL)
    assert all("Fr\u00f6gs" in (each.content or b"").decode() for each in found.records)


# -- tokens and errors


def listed_by(change: Callable[[str, Asked], str], server: OaiServer | None = None) -> Harvested:
    """30 records in three pages; the answers to questions for lists are changed on their way."""
    with server or OaiServer(30) as repository:
        repository.tamper = lambda body, asked: (
            change(body.decode(), asked).encode() if asked.verb.startswith("List") else body
        )
        return harvest(repository.base_url)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_an_answer_in_utf_16_that_is_not_well_formed_loses_only_the_record_that_is_not(encoding: str) -> None:
    with OaiServer(30) as repository:
        repository.name = "Frogs & toads"
        repository.records["oai:test:8"].title = "Größe"

        def tamper(body: bytes, asked: Asked) -> bytes:
            body = body.replace(b"&amp; toads", b"& toads").replace("Größe".encode(), "Größe &".encode())
            return body.decode().replace('encoding="UTF-8"', 'encoding="UTF-16"').encode(encoding)

        repository.tamper = tamper
        found = harvest(repository.base_url)
        assert (found.broken, found.good) == (None, [each for each in ALL if each != "oai:test:8"])
        assert sorted(set(found.rules)) == ["oai.damaged-record", "oai.ill-formed"]
        assert "oai:test:8 cannot be read" in found.words("oai.damaged-record")
        assert len(repository.asked("ListRecords")) == 3


def test_a_token_with_a_bare_ampersand_is_sent_as_it_was_meant() -> None:
    repository = OaiServer(30)
    found = listed_by(lambda body, _: body.replace(">oai_dc!", ">oai_dc&b!").replace("&amp;", "&"), repository)
    assert sorted(found.good) == sorted(ALL)
    tokens = [asked.arguments.get("resumptionToken", "") for asked in repository.asked("ListRecords")]
    assert tokens == ["", "oai_dc&b!!!!10!0", "oai_dc&b!!!!20!0"]
    assert found.rules == ["oai.ill-formed"]


BROKEN_TOKENS = {
    "end tag": ("</resumptionToken>", "</resumptiontoken>"),
    "start tag": ("<resumptionToken ", "<resumptionToken <"),
    "attribute": (' cursor="0"', " cursor=0"),
    "entity": ('"0">', '"0">&nbsp;'),
    "no end": ("</resumptionToken>", ""),
    "no start": ("<resumptionToken ", "resumptionToken "),
}


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN_TOKENS)
def test_a_token_that_cannot_be_read_is_never_the_end_of_the_list(broken: str) -> None:
    found = listed_by(lambda body, asked: body.replace(*BROKEN_TOKENS[broken]) if "!20!" not in str(asked) else body)
    assert sorted(found.good) == sorted(ALL)  # in smaller lists
    assert "oai.page-failed" in found.rules
    assert "its resumption token cannot be read" in found.words("oai.page-failed")


def test_a_window_whose_token_can_never_be_read_is_tried_again_in_each_harvest() -> None:
    day = ALL[:12]
    with OaiServer(12) as repository:
        for each in repository.records.values():
            each.datestamp = repository.records["oai:test:1"].datestamp
        repository.tamper = lambda body, _: body.replace(b"</resumptionToken>", b"</resumptiontoken>")
        found = harvest(repository.base_url)
        assert set(found.good) < set(day)
        assert "The list has ended with 10 records. The records with these datestamps" in str(found.broken)
        assert "The last error: An answer to ListIdentifiers breaks off before its end" in str(found.broken)
        assert "until 2026-01-01T00:00:01Z. All others were requested." in str(found.broken)
        repository.tamper = None
        again = harvest(repository.base_url, found.checkpoint)
        assert (again.broken, {*found.good, *again.good}) == (None, set(day))


ERROR = '<error code="{0}">The token a=1&b=2 is {1}</error>'


def with_error(body: str, code: str, words: str = "unknown") -> str:
    return body.partition("<ListRecords>")[0] + ERROR.format(code, words) + "</OAI-PMH>"


@pytest.mark.parametrize(("words", "read"), [("unknown", "unknown"), ("<b>dead", "<b>dead"), ("&nbsp;", "&nbsp;")])
def test_an_error_that_is_not_well_formed_is_an_error(words: str, read: str) -> None:
    found = listed_by(
        lambda body, asked: with_error(body, "badThing", words) if "resumptionToken" in str(asked) else body
    )
    assert sorted(found.good) == sorted(ALL)  # in smaller lists
    assert f"refuses ListRecords: badThing (The token a=1&b=2 is {read}" in found.words("oai.page-failed")


def test_an_error_of_which_not_even_the_code_can_be_read_is_an_error() -> None:
    with pytest.raises(ListError) as caught:
        listed_by(lambda body, _: with_error(body, "noRecordsMatch").replace('"noRecords', "noRecords"))
    assert "refuses ListRecords: error (its words cannot be read)" in str(caught.value)


def test_no_records_match_is_the_end_of_the_list_also_where_its_words_are_not_well_formed() -> None:
    found = listed_by(lambda body, _: with_error(body, "noRecordsMatch", "<b>dead"))
    assert (found.good, found.broken) == ([], None)
    assert found.checkpoint is not None


@pytest.mark.parametrize("inner", ["", "<Identify><repositoryName>R & D</repositoryName></Identify>"])
def test_an_answer_with_no_list_is_none(inner: str) -> None:
    def change(body: str, _: Asked) -> str:
        return body.partition("<ListRecords>")[0].replace("<request>", "<request>a=1&b=2") + inner + "</OAI-PMH>"

    with pytest.raises(ListError) as caught:
        listed_by(change)
    assert [finding.rule for finding in caught.value.findings] == ["oai.not-oai"]
    assert "answered something else than ListRecords" in str(caught.value)


# -- how long it takes


def seconds(body: bytes) -> float:
    """Processor time of the quickest of three readings."""
    took = []
    for _ in range(3):
        began = time.thread_time()
        read(body)
        took.append(time.thread_time() - began)
    return min(took)


def with_attributes(number: int) -> str:
    """A record whose metadata are an element with this number of attributes."""
    attributes = " ".join(f'a{each}="{each}"' for each in range(number))
    return (
        f"<record><header><identifier>oai:test:1</identifier></header><metadata><r {attributes}/></metadata></record>"
    )


@pytest.mark.slow
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
        lambda number: answer_with(with_attributes(10 * number)),
    ],
)
def test_reading_takes_as_much_longer_as_the_answer_is(body: Callable[[int], bytes]) -> None:
    small, large = seconds(body(600)), seconds(body(4_800))
    assert large < 30 * small + 0.05
