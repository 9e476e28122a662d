"""The names of a record: its document id, its URL, and what becomes of an identifier that is too long."""

from __future__ import annotations

import pytest

from metaharvest.model import OaiOptions
from metaharvest.sources.oai_pmh.bounds import IDENTIFIER
from metaharvest.sources.oai_pmh.records import RecordNames, shortened

NAMES = RecordNames("https://user:word@r.example.org/oai?a=1", OaiOptions("here", "oai_dc"))


@pytest.mark.parametrize(
    ("identifier", "document_id"),
    [
        ("oai:r:1/2", "here/oai_dc/oai:r:1/2"),
        ("oai:r:1 2", "here/oai_dc/oai:r:1%202"),
        ("oai:r:1%202", "here/oai_dc/oai:r:1%25202"),
        ("oai:r:(ü)", "here/oai_dc/oai:r:(%C3%BC)"),
    ],
)
def test_a_document_id_is_printable_ascii_and_that_of_one_identifier(identifier: str, document_id: str) -> None:
    assert NAMES.document_id(identifier) == document_id


def test_the_url_of_a_record_has_no_login() -> None:
    url = "https://r.example.org/oai?a=1&verb=GetRecord&metadataPrefix=oai_dc&identifier="
    assert NAMES.url("oai:r:1/2") == f"{url}oai%3Ar%3A1%2F2"
    assert NAMES.url("a b&c") == f"{url}a%20b%26c"
    assert NAMES.arguments("a b") == {"identifier": "a b", "metadataPrefix": "oai_dc"}


def test_an_identifier_that_is_too_long_is_an_error() -> None:
    most = 800 - len("here/oai_dc/")
    assert NAMES.too_long("x" * most) is None
    finding = NAMES.too_long("x" * (most + 1))
    assert finding is not None
    assert finding.rule == "oai.identifier"
    assert len(NAMES.document_id("x" * most)) == 800


def test_identifiers_that_differ_at_their_end_have_different_names() -> None:
    names = {NAMES.document_id("é" * 300 + end) for end in ("a", "b")}
    assert len(names) == 2
    assert {len(name) for name in names} == {800}
    origins = [NAMES.document_of("x" * IDENTIFIER + end).origin for end in ("", "a", "b")]
    assert len({origin.identifier for origin in origins if origin}) == 3
    assert {len(origin.identifier) for origin in origins if origin} == {IDENTIFIER}


def test_a_name_that_is_not_too_long_stays() -> None:
    assert shortened("x" * 70, 70) == "x" * 70
    assert len(shortened("x" * 71, 70)) == 70
