"""Repositories whose answers are small on the wire and costly to read: they cost themselves, and no other site."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from support.harvester import Harvester
from support.hostile_oai import FORMAT, IDENTIFY, Body, HostileRepository, answer, errors, namespaces, record, records
from support.hostile_run import Cost, GoodSite, measured_run

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

PEAK_MB, BUSY, DATABASE_MB = 400, 3, 6

URI = b"http://" + b"u" * 1000
MANY = [record(number) for number in range(200)]
OF_COMMENTS = b"<!---->" * 1_000_000
OF_FRIENDS = (
    b"<friends xmlns='http://www.openarchives.org/OAI/2.0/friends/'><baseURL>" * 1_000
    + b"<a/>a" * 900_000
    + b"</baseURL></friends>" * 1_000
)
DEEP = (b"<d%b>" % namespaces(90)) * 2_000 + b"<a><error/></a>" * 50_000 + b"</d>" * 2_000


def of_namespaces() -> bytes:
    """Elements below 400,000 namespace declarations."""
    levels = b"".join(b"<d%b>" % namespaces(200, b"u%d/" % level) for level in range(2_000))
    return b"<r>" + levels + b"<n1:a/>" * 300_000 + b"</d>" * 2_000 + b"</r>"


def in_list(attributes: bytes, *some: bytes) -> bytes:
    """Records in a list whose start tag has these attributes."""
    return records(*some).replace(b"<ListRecords>", b"<ListRecords" + attributes + b">")


@dataclass(frozen=True)
class Case:
    """Answers by verb, the rule of their finding, and the number of records that are harvested all the same."""

    answers: dict[str, Body]
    rule: str
    inserted: int


def of_list(body: Body, rule: str, inserted: int) -> Case:
    return Case({"ListRecords": body}, rule, inserted)


def long_tokens(arguments: Mapping[str, str]) -> bytes:
    """A page with a token of 10 MB, whatever is asked."""
    return records(record(1), record(2), token=b"t" * 10_000_000)


CASES: Mapping[str, Callable[[], Case]] = {
    "long namespaces around records and abouts": lambda: of_list(
        in_list(namespaces(100, URI), *(record(n, about=b"<about><a/></about>" * 100) for n in range(200))),
        "oai.too-large",
        200,
    ),
    "many short namespaces": lambda: of_list(in_list(namespaces(10_000), *MANY), "oai.too-large", 200),
    "a start tag of 900 KB around damaged records": lambda: of_list(
        in_list(namespaces(40_000), *MANY, b"&"), "oai.too-large", 200
    ),
    "a start tag of 900 KB in a damaged list": lambda: of_list(
        records(record(500), b"<record " + b"a='' " * 180_000 + b"&>", *MANY), "oai.ill-formed", 201
    ),
    "beginnings of records": lambda: of_list(records(*MANY, b"<record><header>" * 110_000), "oai.page-failed", 200),
    "elements that are no records": lambda: of_list(records(*MANY, b"<x/>" * 1_000_000 + b"&"), "oai.ill-formed", 200),
    "comments without an end": lambda: of_list(records(*MANY, b"<!--" * 1_000_000), "oai.ill-formed", 200),
    "abouts in namespaces that are just not too many": lambda: of_list(
        in_list(
            b"".join(b' xmlns:n%d="urn:%d:%s"' % (n, n, b"u" * 70) for n in range(90)),
            *(record(n, about=b"<about><a/></about>" * 100) for n in range(200)),
        ),
        "oai.too-long",
        200,
    ),
    "processing instructions between records": lambda: of_list(
        records(*MANY, b"<?a?>" * 3_000_000, record(500)), "", 201
    ),
    "a start tag that does not end": lambda: of_list(
        records(*MANY, b"<record " + b"a" * 900_000), "oai.ill-formed", 200
    ),
    "a record of empty elements": lambda: of_list(
        records(record(1), record(2, metadata=b"<r>" + b"<a/>" * 20_000_000 + b"</r>"), record(3)), "oai.too-large", 2
    ),
    "a record of comments": lambda: of_list(
        records(record(1), record(2, metadata=b"<r>" + OF_COMMENTS * 3 + b"</r>"), record(3)), "oai.too-large", 2
    ),
    "a record of attributes": lambda: of_list(
        records(record(1), record(2, metadata=b"<r><a" + b" b=''" * 3_000_000 + b"/></r>"), record(3)),
        "oai.too-large",
        2,
    ),
    "a record of namespaces at each level": lambda: of_list(
        records(record(1), record(2, metadata=of_namespaces()), record(3)), "", 3
    ),
    "a root element of namespaces": lambda: of_list(
        records(record(1), record(2, metadata=b"<r" + namespaces(100_000) + b"/>"), record(3)), "oai.too-large", 2
    ),
    "a record of instructions": lambda: of_list(
        records(record(1), record(2, metadata=b"<r>" + b"<?a?>" * 9_000_000 + b"</r>"), record(3)), "oai.too-large", 2
    ),
    "named beginnings of records": lambda: of_list(
        records(record(1), b"&", b"<record><header><identifier>a</identifier>" * 900_000), "oai.page-failed", 1
    ),
    "records without anything": lambda: of_list(records(record(1), b"<record/>" * 5_000_000), "oai.page-failed", 1),
    "an identifier of 40 MB": lambda: of_list(
        records(record(1), record(2).replace(b"oai:hostile:2", "é".encode() * 20_000_000)), "oai.identifier", 1
    ),
    "a token of 10 MB": lambda: of_list(long_tokens, "oai.broken-off", 2),
    "setSpecs and abouts of megabytes": lambda: of_list(
        records(
            record(1, header=b"<setSpec>" + b"s" * 5_000_000 + b"</setSpec>"),
            record(2, header=b"<setSpec>a</setSpec>" * 200_000),
            record(3, about=b"<about><a>" + b"x" * 9_000_000 + b"</a></about>"),
            record(4, about=b"<about><a/></about>" * 200_000),
        ),
        "oai.too-long",
        4,
    ),
    "an error full of processing instructions": lambda: of_list(
        errors(b"<error code='badArgument'>" + b"<?a?>" * 3_000_000 + b"</error>"), "oai.too-large", 0
    ),
    "an error with a million comments": lambda: of_list(
        errors(b'<error code="badArgument">' + OF_COMMENTS + b"</error>"), "oai.broken-off", 0
    ),
    "a million errors": lambda: of_list(errors(b'<error code="badArgument"/>' * 900_000), "oai.broken-off", 0),
    "comments in Identify": lambda: Case(
        {"Identify": answer("Identify", IDENTIFY + b"<description>" + OF_COMMENTS + b"</description>")},
        "oai.too-large",
        0,
    ),
    "references to unknown entities in Identify": lambda: Case(
        {"Identify": answer("Identify", IDENTIFY.replace(b"Hostile", b"&a;" * 10_000_000))}, "oai.too-large", 0
    ),
    "base URLs within base URLs": lambda: Case(
        {"Identify": answer("Identify", IDENTIFY + b"<description>%b</description>" % OF_FRIENDS)}, "", 2
    ),
    "names of the protocol deep in a record": lambda: of_list(
        records(record(1), record(2, metadata=DEEP), record(3)), "", 3
    ),
    "sets": lambda: Case({"ListSets": answer("ListSets", b"<set><setSpec>a</setSpec></set>" * 300_000)}, "", 2),
    "an undeclared prefix in Identify": lambda: Case(
        {"Identify": answer("Identify", IDENTIFY + b"<dc:title>x</dc:title>")}, "oai.ill-formed", 2
    ),
    "an undeclared prefix in the formats": lambda: Case(
        {"ListMetadataFormats": answer("ListMetadataFormats", FORMAT + b"<x:y/>")}, "oai.ill-formed", 2
    ),
    "an undeclared prefix in a record": lambda: of_list(
        records(record(1), record(2, metadata=b"<dc:title>x</dc:title>"), record(3)), "oai.damaged-record", 2
    ),
    "an undeclared prefix in a header": lambda: of_list(
        records(record(1), record(2, header=b"<dc:title>x</dc:title>"), record(3)), "oai.damaged-record", 2
    ),
    "UTF-7": lambda: of_list(
        b'<?xml version="1.0" encoding="UTF-7"?>' + records(record(1, metadata=b"+ADw-a/+AD4-" * 1_000_000)),
        "oai.encoding",
        0,
    ),
}
"""Functions, as the answers take 600 MB together."""


@pytest.fixture
def good() -> Iterator[GoodSite]:
    with GoodSite(80) as site:
        yield site


def register(harvester: Harvester, hostile: HostileRepository) -> None:
    with HostileRepository() as proper:
        said = harvester("sites", "add", "hostile", "--oai", proper.base_url, "--origin", "hostile")
        assert said.code == 0, said.err
    harvester.rows("UPDATE harvest_site_schedule SET documentlisturl = ? WHERE name = 'hostile'", hostile.base_url)


def harvested(harvester: Harvester, good: GoodSite, hostile: HostileRepository) -> Cost:
    """A run with both sites, in which the good one loses nothing."""
    harvester.add_site("good", good.list_url)
    register(harvester, hostile)
    cost = measured_run(harvester, good)
    assert cost.code in (0, 3), cost
    assert good.is_harvested(harvester), cost
    assert cost.busy < BUSY, cost
    assert cost.peak_mb < PEAK_MB, cost
    return cost


def held(harvester: Harvester) -> int:
    return sum(each.startswith("hostile/") for each in harvester.held())


def rules(harvester: Harvester) -> set[str]:
    return {rule for (rule,) in harvester.rows("SELECT DISTINCT rule FROM harvest_detail_log")}


@pytest.mark.parametrize("make_case", CASES.values(), ids=CASES.keys())
def test_a_hostile_answer_costs_its_own_site_alone(
    harvester: Harvester, good: GoodSite, make_case: Callable[[], Case]
) -> None:
    case = make_case()
    with HostileRepository(bodies=case.answers) as hostile:
        harvested(harvester, good, hostile)
    assert {case.rule} - {""} <= rules(harvester)
    assert "harvest.surprise" not in rules(harvester)
    assert held(harvester) == case.inserted
    assert (harvester.folder / "metaharvest.db").stat().st_size < DATABASE_MB * 1_000_000


def test_a_proper_repository_is_harvested_beside_the_other_site(harvester: Harvester, good: GoodSite) -> None:
    with HostileRepository() as proper:
        cost = harvested(harvester, good, proper)
    assert cost.code == 0
    assert held(harvester) == 2


def test_a_record_that_is_too_large_is_named_and_the_others_are_harvested(harvester: Harvester, good: GoodSite) -> None:
    large = record(2, metadata=b"<r>" + b"<a>x</a>" * 100_000 + b"</r>")
    harvester.config.write_text(harvester.config.read_text() + "max_document_bytes = 500_000\n")
    with HostileRepository(ListRecords=records(record(1), large, record(3))) as hostile:
        harvested(harvester, good, hostile)
    sql = "SELECT error_message FROM harvest_detail_log WHERE rule = 'oai.too-large' AND level = 'error'"
    [(message,)] = harvester.rows(sql)
    assert "oai:hostile:2 is too large" in message
    assert "500,000" in message
    assert held(harvester) == 2


def test_other_formats_than_last_night_are_compared_soon(harvester: Harvester, good: GoodSite) -> None:
    def formats(word: bytes) -> bytes:
        one = b"<metadataFormat><metadataPrefix>%b%d</metadataPrefix></metadataFormat>"
        return answer("ListMetadataFormats", FORMAT + b"".join(one % (word, number) for number in range(60_000)))

    with HostileRepository(ListMetadataFormats=formats(b"one")) as hostile:
        harvested(harvester, good, hostile)
        hostile.bodies["ListMetadataFormats"] = formats(b"two")
        harvester.rows("UPDATE harvest_site_schedule SET datenextharvest = '2026-01-01'")
        cost = measured_run(harvester, good)
    assert cost.processor < 15, cost
    assert {"oai.too-long", "oai.repository-changed"} <= rules(harvester)


def test_short_pages_that_take_long_to_read_hold_no_other_site_up(harvester: Harvester, good: GoodSite) -> None:
    def page(arguments: Mapping[str, str]) -> bytes:
        number = int(arguments.get("resumptionToken", "0"))
        token = b"%d" % (number + 1) if number < 4 else b""
        some = [record(10 * number + each) for each in range(10)]
        return records(*some, b"<!--" * 39_000, token=token)

    assert len(page({})) < 200_000
    with HostileRepository(ListRecords=page) as hostile:
        cost = harvested(harvester, good, hostile)
    assert cost.loop < 1, cost
    assert held(harvester) == 50
