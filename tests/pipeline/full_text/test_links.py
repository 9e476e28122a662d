"""The addresses of a record, in the order in which they are tried."""

from __future__ import annotations

import pytest

from metaharvest.model.outputs import (
    Access,
    FileLink,
    FileRole,
    Identifier,
    Licence,
    Output,
    Relation,
    ResourceType,
    Text,
)
from metaharvest.pipeline.full_text.candidates import Expects, is_same_place, web_address
from metaharvest.pipeline.full_text.links import candidates, is_closed, is_without_text, licence_of

OWN = ("repo.example.org",)


def identifier(scheme: str, value: str) -> Identifier:
    return Identifier(scheme, value, "dc:identifier")


def url(value: str) -> Identifier:
    return identifier("url", value)


def relation(value: str, kind: str = "relation", scheme: str = "url") -> Relation:
    return Relation(kind, scheme, value, "dc:relation")


def file(value: str, role: FileRole = FileRole.FULL_TEXT, media_type: str | None = None) -> FileLink:
    return FileLink(value, "ali:file", role, media_type)


def addresses(output: Output) -> list[str]:
    return [each.url for each in candidates(output, OWN)]


ALDER = "https://repo.example.org/item/12"
CASES = [
    ("nothing", Output("oai_dc"), []),
    (
        "a file of the record first, HTML after others",
        Output(
            "rioxx",
            files=(
                file("https://repo.example.org/a.html", media_type="text/html"),
                file("https://repo.example.org/a.pdf", media_type="application/pdf"),
            ),
            identifiers=(url(ALDER),),
        ),
        ["https://repo.example.org/a.pdf", "https://repo.example.org/a.html", ALDER],
    ),
    (
        "own host before others, whatever their order",
        Output("oai_dc", identifiers=(url("https://other.example.com/9"), url(ALDER))),
        [ALDER, "https://other.example.com/9"],
    ),
    (
        "a host in the same domain is an own one",
        Output("oai_dc", identifiers=(url("https://a.test/9"), url("https://www.repo.example.org/12"))),
        ["https://www.repo.example.org/12", "https://a.test/9"],
    ),
    (
        "a direct file before pages",
        Output("oai_dc", identifiers=(url(ALDER), url("https://repo.example.org/item/12/a.pdf"))),
        ["https://repo.example.org/item/12/a.pdf", ALDER],
    ),
    (
        "a cover and a supplement after the text, and never the licence of DSpace",
        Output(
            "oai_dc",
            files=tuple(
                file(f"{ALDER}/{name}", media_type="application/pdf")
                for name in ("1/cover.pdf", "2/license.txt", "3/Supplement_1.pdf", "4/thesis.pdf")
            ),
        ),
        [f"{ALDER}/4/thesis.pdf", f"{ALDER}/1/cover.pdf", f"{ALDER}/3/Supplement_1.pdf"],
    ),
    (
        "a file with a word of the title has its place",
        Output(
            "oai_dc",
            titles=(Text("Cover crops", "dc:title"),),
            files=tuple(file(f"{ALDER}/{name}.pdf") for name in ("cover-crops", "data")),
        ),
        [f"{ALDER}/cover-crops.pdf", f"{ALDER}/data.pdf"],
    ),
    (
        "a pattern before its page",
        Output("oai_dc", identifiers=(url("http://arxiv.org/abs/2101.00001"),)),
        ["https://arxiv.org/pdf/2101.00001", "http://arxiv.org/abs/2101.00001"],
    ),
    (
        "a DOI only if there is nothing else",
        Output("oai_dc", identifiers=(identifier("doi", "10.5072/f1"), url(ALDER))),
        [ALDER],
    ),
    ("a DOI alone", Output("oai_dc", identifiers=(identifier("doi", "10.5072/f1"),)), ["https://doi.org/10.5072/f1"]),
    (
        "a DOI as an address is a DOI",
        Output("oai_dc", identifiers=(url("http://dx.doi.org/10.5072/f1"), url("https://orcid.org/0000-1"))),
        ["http://dx.doi.org/10.5072/f1"],
    ),
    (
        "a handle, an arXiv number, a PMC number, a URN",
        Output(
            "oai_dc",
            identifiers=(
                identifier("urn", "urn:nbn:de:1-2"),
                identifier("handle", "1/2"),
                identifier("pmcid", "PMC7"),
                identifier("arxiv", "2101.00001"),
            ),
        ),
        [
            "https://pmc.ncbi.nlm.nih.gov/articles/PMC7/pdf/",
            "https://arxiv.org/pdf/2101.00001",
            "https://nbn-resolving.org/urn:nbn:de:1-2",
            "https://hdl.handle.net/1/2",
            "https://pmc.ncbi.nlm.nih.gov/articles/PMC7/",
        ],
    ),
    (
        "identifiers before relations, own ones of these before others",
        Output(
            "oai_dc",
            identifiers=(url("https://other.example.com/9"),),
            relations=(relation("https://far.example.net/x"), relation("https://repo.example.org/a.pdf")),
        ),
        ["https://other.example.com/9", "https://repo.example.org/a.pdf", "https://far.example.net/x"],
    ),
    (
        "no relation to another work",
        Output("datacite", relations=(relation("https://repo.example.org/1.pdf", "References"),)),
        [],
    ),
    (
        "never people, networks, licences",
        Output(
            "oai_dc",
            identifiers=(
                url("https://orcid.org/0000-0002-1825-0097"),
                url("https://pubmed.ncbi.nlm.nih.gov/1"),
                url("https://www.ncbi.nlm.nih.gov/pubmed/1"),
                url("https://twitter.com/alder"),
                url("https://m.facebook.com/alder"),
                url("https://creativecommons.org/licenses/by/4.0"),
                url("https://repo.example.org/index.php/j/article/downloadSuppFile/12/3"),
            ),
        ),
        [],
    ),
    ("no login, no file:, no mail", Output("x", identifiers=(url("http://u:p@h.test/a"), url("mailto:a@b.c"))), []),
    (
        "five at most, each once",
        Output("oai_dc", identifiers=tuple(url(f"https://repo.example.org/i/{n % 7}") for n in range(20))),
        [f"https://repo.example.org/i/{n}" for n in range(5)],
    ),
    (
        "data are no text",
        Output("eml", files=(file("https://repo.example.org/a.csv", FileRole.DATA, "text/csv"),)),
        [],
    ),
    (
        "a PDF among the data is one",
        Output("eml", files=(file("https://repo.example.org/a.pdf", FileRole.DATA),)),
        ["https://repo.example.org/a.pdf"],
    ),
    ("the page of a dataset is not searched", Output("eml", identifiers=(url(ALDER),)), []),
    (
        "a landing page of the record",
        Output("rioxx", files=(file(ALDER, FileRole.LANDING_PAGE),)),
        [ALDER],
    ),
]


@pytest.mark.parametrize(("output", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_addresses_of_a_record(output: Output, expected: list[str]) -> None:
    assert addresses(output) == expected


def test_a_candidate_says_where_it_is_from_and_what_is_expected() -> None:
    [first, page] = candidates(Output("oai_dc", identifiers=(url("http://arxiv.org/abs/2101.00001"),)), OWN)
    assert (first.found_by, first.expects, first.start) == ("identifier > arXiv", Expects.FILE, first.url)
    assert (page.found_by, page.expects) == ("identifier", Expects.PAGE)


@pytest.mark.parametrize(
    ("text", "base", "expected"),
    [
        ("HTTP://Example.org:80/a b#top", "", "http://example.org/a%20b"),
        ("/x;jsessionid=AB12?y=1", "https://example.org/q/", "https://example.org/x?y=1"),
        ("x;jsessionid=AB12", "https://example.org/q/", "https://example.org/q/x"),
        ("http://localhost:8080/bitstream/1/2/a.pdf", "https://d.example.org/handle/1/2", "https://d.example.org/bitstream/1/2/a.pdf"),
        ("http://localhost:8080/a.pdf", "", "http://localhost:8080/a.pdf"),
        ("//cdn.example.org/a", "https://example.org/", "https://cdn.example.org/a"),
        ("ftp://example.org/a", "", None),
        ("http://", "", None),
        ("https://example.org/" + "a" * 3000, "", None),
    ],
)  # fmt: skip
def test_an_address_is_made_ready(text: str, base: str, expected: str | None) -> None:
    assert web_address(text, base) == expected


@pytest.mark.parametrize(
    ("host", "other", "expected"),
    [
        ("a.example.org", "example.org", True),
        ("a.example.org", "b.example.org", True),
        ("a.co.uk", "b.co.uk", False),
        ("eprints.uni.ac.uk", "oai.uni.ac.uk", True),
        ("a.org", "b.org", False),
        ("", "", False),
    ],
)
def test_hosts_belong_together(host: str, other: str, expected: bool) -> None:
    assert is_same_place(host, other) is expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (Output("oai_dc"), False),
        (Output("oai_dc", access=Access.OPEN), False),
        (Output("oai_dc", access=Access.RESTRICTED), True),
        (Output("oai_dc", access=Access.METADATA_ONLY), True),
        (Output("oai_dc", access=Access.EMBARGOED), True),
        (Output("oai_dc", access=Access.EMBARGOED, embargo_until="2027-01-01"), True),
        (Output("oai_dc", access=Access.EMBARGOED, embargo_until="2026-01-01"), False),
        (Output("oai_dc", embargo_until="2027-01-01"), True),
    ],
)
def test_a_file_may_be_closed(output: Output, expected: bool) -> None:
    assert is_closed(output, "2026-11-28") is expected


def test_some_types_have_no_text() -> None:
    assert is_without_text(Output("oai_dc", types=(ResourceType("Dataset", "dc:type", "c_ddb1"),)))
    assert not is_without_text(Output("eml", types=(ResourceType("article", "x", "c_6501"),)))
    assert is_without_text(Output("eml"))
    assert not is_without_text(Output("oai_dc"))


def test_the_licence_is_the_shortest_name_of_it() -> None:
    assert (
        licence_of(Output("x", licences=(Licence("CC BY 4.0", "dc:rights", "CC-BY-4.0", "https://c"),))) == "CC-BY-4.0"
    )
    assert licence_of(Output("x", licences=(Licence("All rights reserved", "dc:rights"),))) == "All rights reserved"
    assert licence_of(Output("x")) is None
