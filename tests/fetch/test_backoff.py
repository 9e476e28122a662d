"""Further attempts within a run: whether there is one, when, and what the failure says then. Pure."""

from __future__ import annotations

import pytest

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, NotAsked, NotUsable
from metaharvest.fetch.backoff import Attempts, wait_after
from metaharvest.model import Finding

HTTP = HttpSettings(retries=2, retry_wait=1, retry_wait_limit=30)
FINDING = Finding("http.status", "It answered 503.", "Wait.")


def failed(**how: object) -> FetchError:
    return FetchError(FINDING, **{"transient": True, "seconds": 0.5, **how})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("failures", "asked", "least", "most"),
    [(1, None, 0, 1), (2, None, 0, 2), (1, 7, 7, 7), (2, 30, 30, 30), (1, 0, 0, 1)],
)
def test_the_wait_is_what_the_server_asks_for_or_a_random_part_of_a_doubling_bound(
    failures: int, asked: float | None, least: float, most: float
) -> None:
    wait = wait_after(failures, HTTP, asked)
    assert wait is not None
    assert least <= wait <= most


def test_the_bound_has_a_limit() -> None:
    http = HttpSettings(retries=10, retry_wait=1, retry_wait_limit=3)
    assert all((wait_after(10, http) or 0.0) <= 3 for _ in range(200))


@pytest.mark.parametrize(("failures", "asked"), [(3, None), (3, 1), (1, 30.1)])
def test_after_all_retries_or_for_a_server_that_asks_for_too_long_there_is_no_attempt(
    failures: int, asked: float | None
) -> None:
    assert wait_after(failures, HTTP, asked) is None


def test_a_failure_has_the_seconds_and_the_number_of_all_attempts() -> None:
    attempts = Attempts(HTTP, 60)
    first, wait = attempts.after(failed())
    assert (str(first), first.seconds, wait is None) == ("It answered 503.", 0.5, False)
    last = first
    for _ in range(HTTP.retries):
        last, wait = attempts.after(failed(status=503))
    assert wait is None
    assert last is attempts.failure
    assert str(last).startswith("It answered 503. It was tried 3 times over 0.")
    assert (last.seconds, last.status, last.transient) == (1.5, 503, True)


def test_a_failure_that_took_no_time_that_is_known_has_none() -> None:
    attempts = Attempts(HTTP, 60)
    attempts.after(failed())
    assert attempts.after(failed(seconds=None))[0].seconds is None


def test_a_lasting_failure_keeps_its_kind_and_is_the_last() -> None:
    failure, wait = Attempts(HTTP, 60).after(NotUsable(FINDING))
    assert (type(failure), wait) == (NotUsable, None)


def test_what_took_its_server_as_long_as_one_attempt_may_is_not_asked_for_again() -> None:
    attempts = Attempts(HTTP, 1)
    assert attempts.after(failed())[1] is not None
    assert attempts.after(failed())[1] is None


def test_a_server_that_asks_for_too_long_is_named_with_its_seconds() -> None:
    failure, wait = Attempts(HTTP, 60).after(failed(retry_after=7200))
    assert wait is None
    assert str(failure) == "It answered 503. The server wants to be left alone for 7,200 seconds (Retry-After)."


@pytest.mark.parametrize(("retry_after", "wait"), [(None, None), (5, 5), (31, None)])
def test_a_server_that_is_not_asked_costs_no_attempt(retry_after: float | None, wait: float | None) -> None:
    attempts = Attempts(HTTP, 60)
    refusal = NotAsked(FINDING, "example.org", seconds=0.0, retry_after=retry_after)
    assert attempts.after(refusal) == (refusal, wait)
    assert attempts.number == 0


def test_a_server_that_is_not_asked_after_a_failure_leaves_that_failure() -> None:
    attempts = Attempts(HTTP, 60)
    failure, _ = attempts.after(failed())
    assert attempts.after(NotAsked(FINDING, "example.org", seconds=0.0)) == (failure, None)
