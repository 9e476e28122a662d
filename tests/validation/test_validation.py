"""The checks of a document as a whole: its type, the levels, threads, and whatever bytes may come."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaharvest.model import Level, Verdict
from metaharvest.validation.identity import nearest_docid
from metaharvest.validation.validator import Validator
from support.eml_documents import NAMESPACES, NUMBERS, VALIDATOR, eml, listed

every_version = pytest.mark.parametrize("number", NUMBERS)


def check(content: bytes, document_type: str | None = None, number: str = "2.2.0") -> Verdict:
    return VALIDATOR.check(content, listed(number, document_type=document_type))


@every_version
def test_the_document_type_may_have_blanks_around_it(number: str) -> None:
    assert check(eml(number), f"\n  {NAMESPACES[number]} ", number).findings == ()


@pytest.mark.parametrize("document_type", [NAMESPACES["2.1.1"], "metadata", ""])
def test_a_document_type_that_differs_from_an_eml_document_is_a_warning(document_type: str) -> None:
    verdict = check(eml("2.2.0"), document_type)

    assert verdict.acceptable
    [finding] = verdict.findings
    assert finding.rule == "eml.document-type"
    assert "EML 2.2.0" in finding.message
    assert NAMESPACES["2.2.0"] in finding.remedy


def test_the_warnings_of_a_level_that_was_passed_stay_beside_the_errors_of_the_next() -> None:
    findings = check(eml("2.2.0", "<foo/>"), NAMESPACES["2.1.1"]).findings
    assert [finding.rule for finding in findings] == ["eml.document-type", "schema.unexpected-element"]


@pytest.mark.parametrize(
    ("root", "remedy"),
    [
        ('<eml:eml xmlns:eml="eml://ecoinformatics.org/eml-2.2.0"/>', "https://eml.ecoinformatics.org/eml-2.2.0"),
        ('<eml:eml xmlns:eml="https://eml.ecoinformatics.org/eml-2.1.1"/>', "eml://ecoinformatics.org/eml-2.1.1"),
        ('<eml:eml xmlns:eml="https://eml.ecoinformatics.org/eml-2.3.0"/>', "EML 2.3.0 is not known"),
        ('<eml:eml xmlns:eml="eml://ecoinformatics.org/eml2.0.1"/>', "Did you mean the namespace"),
        (
            '<eml:eml xmlns:eml="eml://ecoinformatics.org/eml-2.2"/>',
            'Did you mean EML 2.2.0? It is declared as xmlns:eml="https://eml.ecoinformatics.org/eml-2.2.0".',
        ),
        ("<eml/>", "Declare the namespace"),
        ('<e:dataset xmlns:e="https://eml.ecoinformatics.org/eml-2.2.0"/>', "eml:eml"),
        ('<h:harvestList xmlns:h="eml://ecoinformatics.org/harvestList"/>', "This is a harvest list"),
        ("<html><body/></html>", "URL"),
        ("<metadata><idinfo/></metadata>", "This seems to be a document of FGDC. Put an EML document there"),
        ('<m:MD_Metadata xmlns:m="http://www.isotc211.org/2005/gmd"/>', "This seems to be a document of ISO 19139."),
    ],
)
def test_a_root_that_is_not_eml_is_refused_with_what_would_be_right(root: str, remedy: str) -> None:
    [finding] = check(root.encode()).findings

    assert (finding.rule, finding.level) == ("eml.not-eml", Level.ERROR)
    assert finding.line == 1
    assert remedy in finding.remedy


def test_another_document_type_is_accepted_where_the_settings_list_it_if_it_is_well_formed() -> None:
    fgdc = b"<metadata><idinfo/></metadata>"

    assert check(fgdc, " FGDC-STD-001-1998 ").findings == ()
    assert [f.rule for f in check(fgdc[:-3], "FGDC-STD-001-1998").findings] == ["xml.unclosed"]
    [finding] = check(fgdc, "INCITS-453-2009").findings
    assert finding.rule == "eml.not-eml"
    assert "INCITS-453-2009" in finding.message


def test_eml_listed_as_another_type_is_checked_as_eml_all_the_same() -> None:
    findings = check(eml("2.2.0", "<foo/>"), "FGDC-STD-001-1998").findings
    assert [finding.rule for finding in findings] == ["eml.document-type", "schema.unexpected-element"]


@pytest.mark.slow
def test_threads_come_to_the_same_findings_as_one_alone() -> None:
    documents = []
    for number in NUMBERS:
        documents += [
            (number, eml(number)),
            (number, eml(number, "<foo/>")),
            (number, eml(number, "<pubDate>x</pubDate>")),
            (number, eml(number, "<contact><references>nothing</references></contact>")),
            (number, eml(number, "&")),
            (number, eml(number)[:-20]),
        ]
    alone = [check(content, number=number) for number, content in documents]
    order = list(range(len(documents))) * 12
    random.Random(2).shuffle(order)
    validator = Validator()

    def verdict(index: int) -> Verdict:
        number, content = documents[index]
        return validator.check(content, listed(number))

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(verdict, order))

    assert together == [alone[index] for index in order]


PIECES = [
    *(b"<", b">", b"&", b"\x00", b"\xff\xfe", b"</dataset>", b'id="creator-1"'),
    *(b"<references>", b"<!DOCTYPE a [", b"]>"),
]
MUTATIONS = st.lists(
    st.tuples(st.integers(0, 600), st.integers(0, 40), st.one_of(st.binary(max_size=8), st.sampled_from(PIECES))),
    max_size=4,
)


@settings(max_examples=120)
@given(st.sampled_from(NUMBERS), MUTATIONS)
def test_whatever_the_bytes_there_is_a_verdict_with_whole_sentences(
    number: str, mutations: list[tuple[int, int, bytes]]
) -> None:
    content = eml(number)
    for start, length, replacement in mutations:
        content = content[:start] + replacement + content[start + length :]

    for finding in check(content, number=number).findings:
        assert finding.message.endswith((".", "?"))
        assert finding.line is None or finding.line >= 1
        assert "\n" not in finding.message + finding.excerpt


@settings(max_examples=60)
@given(st.binary(max_size=200))
def test_bytes_that_are_no_document_are_refused(content: bytes) -> None:
    assert not check(content).acceptable


def test_a_thread_that_dies_without_memory_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metaharvest.validation.validator._OwnThread.run", lambda thread: None)
    with pytest.raises(MemoryError):
        check(eml("2.2.0", f"<!--{'x' * 60_000}-->"))


def test_an_error_in_a_thread_of_its_own_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> Verdict:
        raise ZeroDivisionError

    monkeypatch.setattr(Validator, "_verdict", fail)
    with pytest.raises(ZeroDivisionError):
        check(eml("2.2.0", f"<!--{'x' * 60_000}-->"))


@pytest.mark.parametrize(
    ("package_id", "meant"),
    [
        ("alder.10", "alder.10.1"),
        ("alder.2.1.3", ""),
        ("alder creek.5.2", "alder-creek.5.2"),
        ("alder.-7.1", ""),
        ("alder.99999999999999999999.1", ""),
    ],
)
def test_a_docid_is_suggested_only_where_it_is_clear(package_id: str, meant: str) -> None:
    assert nearest_docid(package_id) == meant


def test_a_package_id_with_other_capital_letters_says_so() -> None:
    [finding] = VALIDATOR.check(eml("2.2.0", package_id="Alder.1.1"), listed("2.2.0", "alder.1.1")).findings
    assert finding.message.endswith("calls the document alder.1.1. Only capital and small letters differ.")
    assert finding.remedy == 'Write packageId="alder.1.1", or correct the docid in the harvest list.'


def test_the_remedy_for_an_older_package_id_warns_of_a_change_after_the_harvest() -> None:
    verdict = VALIDATOR.check(eml("2.2.0", package_id="alder.1.1"), listed("2.2.0", "alder.1.2"))
    [finding] = verdict.findings
    assert finding.message.endswith("Only the revision differs.")
    assert finding.remedy.endswith("Once the document is harvested, write it with the next revision.")
