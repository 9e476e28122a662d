"""What a document costs is bounded by its size, whatever is in it, also without a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from metaharvest.text import one_line, shown_url
from metaharvest.validation import lenient, libxml2_errors
from support.costly_documents import COSTLY
from support.eml_documents import VALIDATOR, eml, listed

pytestmark = pytest.mark.slow

SECONDS = 20.0
"""A document that costs little takes a few seconds on a slow machine; without a bound each takes much longer."""


@pytest.mark.parametrize("made", COSTLY, ids=lambda made: made.__name__)
@pytest.mark.timeout(60)
def test_a_document_made_to_take_long_does_not(made: Callable[[], bytes]) -> None:
    content, began = made(), time.process_time()
    findings = VALIDATOR.check(content, listed("2.2.0")).findings
    assert time.process_time() - began < SECONDS
    assert {finding.rule for finding in findings} - {"findings.more", "schema.missing-element"} == COSTLY[made]


def test_a_similar_id_is_suggested_as_long_as_that_is_cheap() -> None:
    contacts = "".join(f'<contact id="station-{number}"><references>x</references></contact>' for number in range(3))
    references = "<contact><references>staton-1</references></contact>"
    findings = VALIDATOR.check(eml("2.2.0", contacts, references), listed("2.2.0")).findings
    assert "Did you mean the id 'station-1'?" in [finding.remedy for finding in findings]


def test_the_encoding_of_a_stylesheet_is_not_that_of_the_document() -> None:
    content = b'<?xml-stylesheet encoding="ISO-8859-1"?>\n<x>\xe9</x>'
    [finding] = VALIDATOR.check(content, listed("2.2.0")).findings
    assert "declares no encoding, so it is read as UTF-8" in finding.message


@pytest.mark.parametrize("encoding", ["idna", "punycode", "unicode_escape", "rot13", "utf-7"])
def test_only_encodings_that_xml_parsers_know_are_asked(encoding: str) -> None:
    content = f'<?xml version="1.0" encoding="{encoding}"?>\n<x>'.encode() + b"\xe9</x>"
    [finding] = VALIDATOR.check(content, listed("2.2.0")).findings
    assert finding.message == f"The document cannot be read in its encoding, {encoding}."


MESSAGES = [
    "Element 'a': '{}' is not a valid value of the atomic type 'xs:decimal'.",
    "Element 'a': '{}' is not a valid value of the local atomic type",
    "Element 'a': [facet 'enumeration'] The value '{}' is not an element of the set {{'a', 'b'}}",
    "Element 'a': [facet 'maxInclusive'] The value '{}' is greater than the maximum value allowed ('{}'",
    "Element '{}': This element is not expected. Expected is one of ( {} )",
    "Opening and ending tag mismatch: {} line 1 and {}",
    "Attribute {} in '{}' redefine",
    "{}",
]
PIECES = [
    *"' \n{}()[]:/#?@%=<>&-.,a1é\"",
    "' is not a valid value ",
    "' is not a valid value type '",
    "type 'yearDate",
    "' is less than the a value allowed ('",
    "' is not an element of the set {",
    "', attribute '",
    " line 1 and ",
    "://",
    "a://b:c@",
    "%41",
]


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
@pytest.mark.parametrize(
    "read",
    [
        libxml2_errors.schema_error_in_words,
        lenient.accepted_url,
        lenient.is_accepted_date,
        lenient.is_url,
        libxml2_errors.parser_error_in_words,
        one_line,
        shown_url,
    ],
    ids=lambda read: read.__name__,
)
@pytest.mark.timeout(60)
def test_what_reads_messages_takes_time_in_proportion_to_their_length(
    read: Callable[[str], object], message: str
) -> None:
    """A message of libxml2 has 64,000 characters at most."""
    for pieces in [*((piece,) for piece in PIECES), (PIECES[-9], "type '", "yearDate"), (PIECES[-8], " ", "'")]:
        text = "x" + "".join(piece * (60_000 // len(pieces) // len(piece)) for piece in pieces)
        began = time.process_time()
        read(message.replace("{}", text))
        assert time.process_time() - began < 2, pieces
