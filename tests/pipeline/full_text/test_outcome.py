from __future__ import annotations

from datetime import date, timedelta

import pytest

from metaharvest.errors import FetchError, NotAsked
from metaharvest.model import Finding
from metaharvest.pipeline.full_text.walk import RULES, Reason, Refusal, closed, failure_of, keeps_files, refusal_of
from metaharvest.rules import RULES as ALL_RULES


def error(rule: str, *, status: int = 0, transient: bool = False, retry_after: float | None = None) -> FetchError:
    return FetchError(Finding(rule, "It is so.", "Do it."), status=status, transient=transient, retry_after=retry_after)


@pytest.mark.parametrize(
    ("failed", "reason"),
    [
        (error("http.robots"), Reason.BLOCKED),
        (error("http.blocked", status=403), Reason.BLOCKED),
        (error("http.status", status=403), Reason.BLOCKED),
        (error("http.status", status=401), Reason.LOGIN),
        (error("http.status", status=404), Reason.MISSING),
        (error("http.status", status=410), Reason.MISSING),
        (error("http.status", status=400), Reason.MISSING),
        (error("http.status", status=500), Reason.UNREACHABLE),
        (error("http.status", status=429, transient=True), Reason.UNREACHABLE),
        (error("http.status", status=503, transient=True), Reason.UNREACHABLE),
        (error("http.too-large", status=200), Reason.TOO_LARGE),
        (error("http.redirects"), Reason.LOOP),
        (error("http.dns", transient=True), Reason.UNREACHABLE),
        (error("http.tls"), Reason.UNREACHABLE),
        (error("http.scheme"), Reason.MISSING),
        (NotAsked(Finding("http.busy", "a.", "b."), "host", seconds=0.0), Reason.UNREACHABLE),
    ],
)
def test_the_reason_behind_a_failed_request(failed: FetchError, reason: Reason) -> None:
    assert refusal_of(failed).reason is reason


def test_every_reason_has_a_rule_and_is_tried_again() -> None:
    assert set(RULES) == set(Reason)
    for reason in Reason:
        failure = failure_of(Refusal(reason, "Because."))
        assert failure.rule in ALL_RULES
        assert failure.retry_after is not None
        assert failure.retry_after >= timedelta(days=1)


def test_a_server_may_ask_for_a_pause() -> None:
    refusal = refusal_of(error("http.status", status=429, transient=True, retry_after=7200))
    assert failure_of(refusal).retry_after == timedelta(hours=2)
    soon = refusal_of(error("http.status", status=429, transient=True, retry_after=5))
    assert failure_of(soon).retry_after == timedelta(hours=1)


@pytest.mark.parametrize(
    ("until", "days"), [("2026-12-08", 10), ("2020-01-01", 1), (None, 90), ("sometime", 90), ("2026-12-08T00:00", 10)]
)
def test_an_embargo_is_waited_for(until: str | None, days: int) -> None:
    assert failure_of(closed(until, date(2026, 11, 28))).retry_after == timedelta(days=days)


def test_files_stay_while_their_server_does_not_answer() -> None:
    assert [each for each in Reason if keeps_files(Refusal(each, ""))] == [Reason.UNREACHABLE]


def test_files_stay_if_the_server_answers_404_and_go_if_it_answers_410() -> None:
    kept = [error("http.status", status=404), error("http.empty", status=200)]
    assert all(keeps_files(refusal_of(each)) for each in kept)
    gone = [error("http.status", status=410), error("http.empty", status=410), error("http.blocked", status=404)]
    assert not any(keeps_files(refusal_of(each)) for each in gone)


def test_the_text_of_a_lost_file_stays_unless_its_record_is_closed() -> None:
    stays = {each for each in Reason if keeps_files(Refusal(each, ""), has_text_only=True)}
    assert stays == set(Reason) - {Reason.LICENCE}
