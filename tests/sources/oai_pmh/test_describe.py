"""What a repository says of itself is compared with what it said the last time, and with what a site asks for."""

from __future__ import annotations

import json

import pytest

from metaharvest.errors import FetchError
from metaharvest.model import Finding, Level
from metaharvest.sources.oai_pmh.describe import Description, changes, missing
from metaharvest.sources.oai_pmh.protocol import Identity, MetadataFormat, Set

IDENTITY = Identity("Frogs", "https://r.example.org/oai", "2.0", granularity="YYYY-MM-DD")
FORMATS = (MetadataFormat("oai_dc", "dc.xsd", "urn:dc"),)
SETS = (Set("a:b"), Set("c"))
BROKEN = FetchError(Finding("oai.cut-off", "It breaks off.", "Look."))


def described(*sets: Set) -> Description:
    return Description(IDENTITY, FORMATS, sets, has_all_sets=True)


def test_what_is_not_there_is_named_with_what_is_there() -> None:
    found = [finding.message for finding in missing(described(*SETS), "eml", ("a", "d"))]
    assert found == [
        "The repository has no metadata format 'eml'; there are 'oai_dc'.",
        "The repository has no set 'd'; there are 'a:b', 'c'.",
    ]


def test_no_set_is_missing_if_only_some_sets_are_known() -> None:
    assert list(missing(Description(IDENTITY, FORMATS, SETS), "oai_dc", ("d",))) == []


# DataCite makes a set of each query behind a ~: https://github.com/IQSS/dataverse/issues/10909
def test_a_query_as_a_set_is_not_missing() -> None:
    assert list(missing(described(*SETS), "oai_dc", ("~ZG9pOjEwLjUwNzI=", "c~ZG9pOjEwLjUwNzI="))) == []
    [finding] = missing(described(*SETS), "oai_dc", ("d~ZG9pOjEwLjUwNzI=",))
    assert finding.rule == "oai.no-set"


def test_sets_that_cannot_be_fetched_are_an_error_only_if_one_is_asked_for() -> None:
    description = Description(IDENTITY, FORMATS, no_sets=BROKEN)
    assert list(missing(description, "oai_dc", ())) == []
    warning = description.warning_of_sets()
    assert warning is not None
    assert (warning.rule, warning.level) == ("oai.cut-off", Level.WARNING)
    with pytest.raises(FetchError, match="It breaks off"):
        list(missing(description, "oai_dc", ("a",)))


def test_changes_are_named_and_sets_that_are_not_known_are_remembered() -> None:
    before = json.loads(json.dumps(described(*SETS).remembered({})))
    assert list(changes(before, described(*SETS).remembered(before))) == []
    unknown = Description(IDENTITY, FORMATS, no_sets=BROKEN).remembered(before)
    assert unknown["sets"] == ["a:b", "c"]
    [change] = changes(unknown, described(Set("c"), Set("d")).remembered(unknown))
    assert "list of sets changed since its last harvest: new: d; gone: a:b." in change.message


def test_very_many_sets_are_remembered_by_their_number_and_a_digest() -> None:
    many = [Set(f"set-{number}") for number in range(1_001)]
    before, now = described(*many).remembered({}), described(*many[1:], Set("other")).remembered({})
    assert str(before["sets"]).startswith("1,001 sets, ")
    [change] = changes(before, now)
    assert "it was '1,001 sets, " in change.message


def test_a_change_of_many_sets_names_twelve() -> None:
    before, now = described().remembered({}), described(*(Set(f"{number:02}") for number in range(20))).remembered({})
    [change] = changes(before, now)
    assert "new: 00, 01" in change.message
    assert "11 and 8 more" in change.message
