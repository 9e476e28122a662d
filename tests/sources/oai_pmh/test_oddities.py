"""What is odd about a list is counted by kind, and each kind becomes one finding."""

from __future__ import annotations

import json

from metaharvest.model import Level
from metaharvest.rules import RULES
from metaharvest.sources.oai_pmh.oddities import _KINDS, Oddities


def test_a_finding_has_the_number_and_the_first_example() -> None:
    odd = Oddities()
    odd.note("datestamp", "oai:1: none")
    odd.note("datestamp", "oai:2: yesterday", 1_200)
    [finding] = odd.findings()
    assert (finding.rule, finding.level) == ("oai.datestamp", Level.WARNING)
    assert finding.message.startswith("1,201 of the list's records")
    assert "such as oai:1: none." in finding.message


def test_the_oddities_of_a_part_are_forgotten_if_it_is_read_again() -> None:
    odd = Oddities()
    odd.note("nameless", number=2)
    before = json.loads(json.dumps(odd.counted()))
    odd.note("nameless")
    odd.note("foreign", "oai:3 (b)")
    odd.restart(before)
    assert odd.counted() == {"nameless": (2, "")}
    odd.add(before)
    assert (odd.number("nameless"), odd.number("foreign")) == (4, 0)


def test_records_that_came_twice_count_only_in_a_whole_list() -> None:
    odd = Oddities()
    odd.note("twice")
    assert odd.findings(is_whole=False) == ()
    assert [finding.rule for finding in odd.findings()] == ["oai.duplicates"]


def test_days_are_a_finding_only_if_a_repository_promises_seconds() -> None:
    odd = Oddities()
    assert odd.finding("days") is None
    odd.note("days")
    assert odd.findings() == ()
    finding = odd.finding("days")
    assert finding is not None
    assert finding.rule == "oai.granularity"


def test_every_kind_has_a_sentence_a_remedy_and_a_known_rule() -> None:
    odd = Oddities()
    for kind in _KINDS:
        odd.note(kind, "Premature end of data")
        finding = odd.finding(kind)
        assert finding is not None
        assert finding.rule in RULES
        assert "{" not in finding.message
        assert finding.remedy
