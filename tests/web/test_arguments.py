"""The arguments of a request: what each verb takes, and every mistake."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaharvest.web.provider.arguments import Refused, read_request

LIST = "verb=ListRecords&metadataPrefix=oai_dc"


def pairs(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (part.partition("=") for part in text.split("&"))]


@pytest.mark.parametrize(
    "text",
    [
        "verb=Identify",
        "verb=ListMetadataFormats",
        "verb=ListMetadataFormats&identifier=oai:e.org:1",
        "verb=ListSets",
        "verb=ListSets&resumptionToken=x",
        "metadataPrefix=oai_dc&identifier=doi:10.1/a%20b&verb=GetRecord",
        f"{LIST}&from=2026-01-01&until=2026-01-01&set=a:b:c",
        f"{LIST}&from=2026-01-01T00:00:00Z&until=2026-01-01T00:00:00Z",
        "verb=ListIdentifiers&resumptionToken=x",
    ],
)
def test_a_right_request(text: str) -> None:
    request = read_request(pairs(text))
    assert {"verb": request.verb, **request.arguments} == dict(pairs(text))


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", ["badVerb"]),
        ("verb=", ["badVerb"]),
        ("verb=identify", ["badVerb"]),
        ("verb=Identify&verb=Identify", ["badVerb"]),
        ("verb=Identify&identifier=x", ["badArgument"]),
        ("verb=GetRecord", ["badArgument", "badArgument"]),
        ("verb=GetRecord&identifier=a&metadataPrefix=b&metadataPrefix=b", ["badArgument"]),
        ("verb=GetRecord&identifier=a<b&metadataPrefix=b", ["badArgument"]),
        ("verb=GetRecord&identifier=a%2&metadataPrefix=b", ["badArgument"]),
        ("verb=ListRecords", ["badArgument"]),
        ("verb=ListRecords&metadataPrefix=", ["badArgument"]),
        ("verb=ListRecords&metadataPrefix=a b", ["badArgument"]),
        ("verb=ListRecords&resumptionToken=x&metadataPrefix=oai_dc", ["badArgument"]),
        ("verb=ListRecords&resumptionToken=\0", ["badArgument"]),
        (f"{LIST}&set=a::b", ["badArgument"]),
        (f"{LIST}&set=a&set=b&foo=1", ["badArgument", "badArgument"]),
        (f"{LIST}&from=2026", ["badArgument"]),
        (f"{LIST}&from=2026-02-30", ["badArgument"]),
        (f"{LIST}&from=0000-01-01", ["badArgument"]),
        (f"{LIST}&from=2026-01-01T00:00:00", ["badArgument"]),
        (f"{LIST}&from=x&until=y", ["badArgument", "badArgument"]),
        (f"{LIST}&from=2026-01-01&until=2026-01-02T00:00:00Z", ["badArgument"]),
        (f"{LIST}&from=2026-01-02&until=2026-01-01", ["badArgument"]),
        (f"{LIST}&set={'a' * 5000}", ["badArgument"]),
    ],
)
def test_mistakes(text: str, codes: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        read_request(pairs(text))
    assert [each.code for each in refused.value.errors] == codes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{LIST}&from=2026-02-30", "write a date that exists"),
        (f"{LIST}&until=2026-02-03T00:00:00+01:00", "in UTC, as YYYY-MM-DDThh:mm:ssZ"),
        ("", "by POST in a form (application/x-www-form-urlencoded)"),
    ],
)
def test_a_mistake_says_what_to_write(text: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        read_request(pairs(text))
    assert said in refused.value.errors[0].message


def test_an_answer_names_the_first_mistakes() -> None:
    with pytest.raises(Refused) as refused:
        read_request([("verb", "Identify"), *((f"x{number}", "") for number in range(1000))])
    assert len(refused.value.errors) == 20


def test_days_are_whole() -> None:
    request = read_request(pairs(f"{LIST}&from=2026-01-01&until=2026-01-01"))
    assert request.since == datetime(2026, 1, 1, tzinfo=UTC)
    assert request.until == datetime(2026, 1, 1, 23, 59, 59, tzinfo=UTC)
    assert read_request(pairs(f"{LIST}&until=9999-12-31")).until == datetime(9999, 12, 31, tzinfo=UTC)


@given(st.lists(st.tuples(st.sampled_from(["verb", "from", "set", "identifier", "x"]), st.text(max_size=20))))
def test_whatever_is_asked_is_a_request_or_refused(given: list[tuple[str, str]]) -> None:
    with suppress(Refused):
        read_request(given)
