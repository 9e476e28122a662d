"""The policy of the coordinator."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from metaharvest.jobs.policy import MOST_ATTEMPTS, Waiting, assess, is_time, pause_after, priority_of, runs_too_long
from metaharvest.model import SiteRunKind
from metaharvest.model.jobs import Assessment

TODAY = date(2026, 11, 20)
BERLIN = ZoneInfo("Europe/Berlin")


def test_requests_come_first_then_retries_then_sites_that_are_due_the_longest_then_new_ones() -> None:
    scheduled = SiteRunKind.SCHEDULED
    in_order = [
        Waiting(SiteRunKind.NAMED, asked=100),
        Waiting(SiteRunKind.NAMED, asked=0),
        Waiting(SiteRunKind.RETRY),
        Waiting(scheduled, due_since=date(2020, 1, 1)),
        Waiting(scheduled, due_since=date(2026, 11, 1)),
        Waiting(scheduled, due_since=TODAY),
        Waiting(scheduled, due_since=date(2020, 1, 1), was_harvested=False),
    ]
    priorities = [priority_of(each, TODAY) for each in in_order]
    assert priorities == sorted(priorities, reverse=True)
    assert len(set(priorities)) == len(priorities)


def test_the_run_of_a_day_begins_at_its_time_in_the_zone_of_the_harvester_and_once() -> None:
    at_two = datetime(2026, 11, 20, 2, tzinfo=UTC)  # 03:00 in Berlin
    assert is_time(at_two, None, time(3), BERLIN)
    assert is_time(at_two, date(2026, 11, 19), time(3), BERLIN)
    assert not is_time(at_two, TODAY, time(3), BERLIN)
    assert not is_time(at_two - timedelta(minutes=1), None, time(3), BERLIN)


def test_a_slice_is_done_or_goes_on_and_a_failure_is_tried_again_until_all_attempts_are_used() -> None:
    assert assess(is_done=True, error="", attempts=1) is Assessment.DONE
    assert assess(is_done=False, error="", attempts=99) is Assessment.AGAIN
    assert assess(is_done=False, error="no", attempts=MOST_ATTEMPTS) is Assessment.AGAIN
    assert assess(is_done=False, error="no", attempts=MOST_ATTEMPTS + 1) is Assessment.FAILED
    assert assess(is_done=True, error="", attempts=MOST_ATTEMPTS + 1) is Assessment.FAILED


def test_a_job_that_is_given_up_while_the_database_is_away_is_given_up_later() -> None:
    ends = [assess(is_done=False, error="no", attempts=each, is_outage=True) for each in range(1, 10)]
    assert ends == [Assessment.AGAIN] * (MOST_ATTEMPTS + 3) + [Assessment.FAILED]
    assert assess(is_done=True, error="", attempts=MOST_ATTEMPTS + 2) is Assessment.FAILED


def test_the_pause_after_a_failure_doubles() -> None:
    assert [pause_after(each).total_seconds() for each in (1, 2, 3)] == [5, 10, 20]


def test_a_run_without_a_deadline_never_takes_too_long() -> None:
    began = datetime(2026, 11, 20, tzinfo=UTC)
    assert runs_too_long(began + timedelta(hours=20), began, 72_000)
    assert not runs_too_long(began + timedelta(hours=19), began, 72_000)
    assert not runs_too_long(began + timedelta(days=9), began, 0)
