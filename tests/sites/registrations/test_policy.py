"""The decisions about registrations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from metaharvest.errors import RequestError
from metaharvest.model import Unit
from metaharvest.sites.registrations import policy
from metaharvest.sites.registrations.policy import Counts, State

NOW = datetime(2026, 11, 20, tzinfo=UTC)
TOKEN = "x" * 43


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (f"<!-- metaharvest-proof: {TOKEN} -->", [TOKEN]),
        (f"<!-- metaharvest-proof:{TOKEN}-->", [TOKEN]),
        (f"<!-- one --><a/><!--\n two\n metaharvest-proof: {TOKEN}\n-->", [TOKEN]),
        (f"metaharvest-proof: {TOKEN}", []),
        (f"<!-- one --> metaharvest-proof: {TOKEN} <!-- two -->", []),
        ("<!-- metaharvest-proof: short -->", []),
        ("", []),
    ],
)
def test_a_proof_is_in_a_comment(text: str, tokens: list[str]) -> None:
    assert policy.proofs_in(text.encode()) == tokens
    assert policy.proofs_in(b"\xff\xfe" + text.encode("utf-16-le")) == tokens


def test_both_proofs_are_needed() -> None:
    proofs = {
        (address, source): policy.state_after(address, source) for address in (False, True) for source in (False, True)
    }
    assert [each for each, state in proofs.items() if state is State.WAITING_FOR_DECISION] == [(True, True)]


def test_only_requests_without_proofs_expire() -> None:
    later = NOW + policy.LIFETIME + timedelta(seconds=1)
    expired = [state for state in State if policy.is_expired(state, NOW, later)]
    assert expired == [State.ASKED, State.WAITING_FOR_PROOFS]
    assert not policy.is_expired(State.WAITING_FOR_PROOFS, NOW, NOW + policy.LIFETIME)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (Counts(1, 1, policy.ASKED_BY_ADDRESS + 1), "This address"),
        (Counts(1, policy.ASKED_OF_HOST + 1, 1), "about this web server"),
        (Counts(policy.ASKED_IN_ALL + 1, 1, 1), "Too many people"),
    ],
)
def test_each_limit_has_a_sentence(counts: Counts, said: str) -> None:
    policy.require_within_limits(Counts(policy.ASKED_IN_ALL, policy.ASKED_OF_HOST, policy.ASKED_BY_ADDRESS))
    with pytest.raises(RequestError, match=said):
        policy.require_within_limits(counts)


def test_an_address_is_counted_without_its_tag_and_its_case() -> None:
    assert policy.mailbox("Anna+1+2@Example.org") == policy.mailbox("anna@example.ORG") == "anna@example.org"


@pytest.mark.parametrize(("every", "unit"), [(1, Unit.DAYS), (99, Unit.DAYS), (52, Unit.WEEKS), (11, Unit.MONTHS)])
def test_a_site_may_be_harvested_from_daily_to_yearly(every: int, unit: Unit) -> None:
    policy.checked_frequency(every, unit)


@pytest.mark.parametrize(("every", "unit"), [(0, Unit.DAYS), (-1, Unit.DAYS), (100, Unit.DAYS), (53, Unit.WEEKS)])
def test_other_frequencies_are_refused(every: int, unit: Unit) -> None:
    with pytest.raises(RequestError, match="every day at most"):
        policy.checked_frequency(every, unit)


def test_a_site_may_be_harvested_every_12_months() -> None:
    policy.checked_frequency(12, Unit.MONTHS)
    with pytest.raises(RequestError, match="once in a year at least"):
        policy.checked_frequency(13, Unit.MONTHS)


@pytest.mark.parametrize("name", [".", "..", "- -"])
def test_a_name_without_letters_is_refused(name: str) -> None:
    with pytest.raises(RequestError, match="a letter or a digit"):
        policy.checked_name(name)
