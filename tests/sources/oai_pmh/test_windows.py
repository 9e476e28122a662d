"""Windows of datestamps: what is asked for, and how a window is divided."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from metaharvest.sources.oai_pmh.windows import Failure, Step, Window, joined, next_step, window

EARLIEST, NOW = "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"


@pytest.mark.parametrize(
    ("begin", "until", "since", "seconds", "expected"),
    [
        (None, None, None, True, Window()),
        ("2026-01-05", None, None, True, Window("2026-01-05")),
        (None, None, "2026-01-05T10:00:00Z", True, Window("2026-01-05T10:00:00Z")),
        (None, None, "2026-01-05T10:00:00Z", False, Window("2026-01-05")),
        ("2026-01-07", None, "2026-01-05T10:00:00Z", True, Window("2026-01-07")),
        ("2026-01-01", None, "2026-01-05T10:00:00Z", True, Window("2026-01-05T10:00:00Z")),
        (None, "2026-02-01", "2026-01-05T10:00:00Z", True, Window("2026-01-05", "2026-02-01")),
    ],
)
def test_a_window_is_within_the_limits_of_the_site_and_has_one_granularity(
    begin: str | None, until: str | None, since: str | None, seconds: bool, expected: Window
) -> None:
    assert window(begin, until, since, seconds=seconds) == expected


def test_halves_meet_in_one_moment_and_keep_open_ends() -> None:
    middle = "2026-01-02T00:00:00Z"
    assert Window().halves(EARLIEST, NOW, seconds=True) == (Window(until=middle), Window(middle))


@pytest.mark.parametrize(
    ("whole", "seconds"),
    [
        (Window("2026-01-01", "2026-01-02"), True),
        (Window("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"), True),
        (Window("2026-01-02", None), False),
    ],
)
def test_two_days_or_two_seconds_are_not_divided(whole: Window, seconds: bool) -> None:
    assert whole.halves(EARLIEST, NOW, seconds=seconds) is None


def test_a_window_sent_in_days_is_divided_into_days() -> None:
    halves = Window("2026-01-01", "2026-01-05").halves(EARLIEST, NOW, seconds=True)
    assert halves == (Window("2026-01-01", "2026-01-03"), Window("2026-01-03", "2026-01-05"))


def test_a_repository_that_names_no_first_date_is_divided_from_1990_on() -> None:
    halves = Window().halves("", "2026-01-01", seconds=False)
    assert halves is not None
    assert halves[0].until == "2008-01-01"


@pytest.mark.parametrize("seconds", [True, False])
def test_every_moment_is_in_a_part_however_often_a_window_is_divided(seconds: bool) -> None:
    parts = [Window()]
    while halves := next(((each, each.halves(EARLIEST, NOW, seconds=seconds)) for each in parts[:40]), None):
        whole, two = halves
        if two is None or len(parts) > 30:
            break
        parts[parts.index(whole) : parts.index(whole) + 1] = two
    ends = [(each.begin or "", each.until or "9") for each in parts]
    assert (ends[0][0], ends[-1][1]) == ("", "9")
    assert all(one[1] == other[0] for one, other in pairwise(ends))


def test_halves_of_a_window_of_single_records_are_windows_of_single_records() -> None:
    halves = Window(one_by_one=True).halves(EARLIEST, NOW, seconds=True)
    assert halves is not None
    assert all(each.one_by_one for each in halves)


def test_windows_that_are_of_no_use_become_one() -> None:
    assert joined([Window("1", "2"), Window("2", "3")]) == Window("1", "3", one_by_one=True)
    assert joined([Window("8"), Window("1", "2")]) == Window("1", one_by_one=True)
    assert joined([Window("8", "9"), Window(None, "2")]) == Window(None, "9", one_by_one=True)


@pytest.mark.parametrize(("days", "is_far"), [(0, False), (-1, False), (-3, True), (9, False), (13, True)])
def test_a_datestamp_is_far_if_it_is_days_outside(days: int, is_far: bool) -> None:
    whole = Window("2026-01-10", "2026-01-20")
    stamp = f"{datetime(2026, 1, 10, tzinfo=UTC) + timedelta(days=days):%Y-%m-%d}"
    assert whole.is_far(stamp) is is_far
    assert not whole.is_far("no date")


def test_a_window_whose_end_is_before_its_beginning_is_empty() -> None:
    assert Window("2026-01-02", "2026-01-01").is_empty
    assert not Window("2026-01-01", "2026-01-01").is_empty
    assert not Window("2026-01-02").is_empty


def test_a_window_contains_another_one_if_both_of_its_ends_are_within() -> None:
    whole = Window("2026-01-10")
    assert whole.contains(Window("2026-01-10T00:00:00Z"))
    assert whole.contains(Window("2026-01-11", "2026-01-12"))
    assert not whole.contains(Window("2026-01-09", "2026-01-11"))
    assert not whole.contains(Window(None, "2026-01-11"))
    assert not Window("2026-01-10", "2026-01-12").contains(Window("2026-01-11"))
    assert Window().contains(Window())


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ("halves", Step.HALVE),
        ("halves few", Step.ONE_BY_ONE),
        ("halves one_by_one", Step.HALVE),
        ("halves token", Step.HALVE),
        ("halves token helps", Step.HALVE),
        ("", Step.ONE_BY_ONE),
        ("one_by_one", Step.HOLE),
        ("one_by_one helps", Step.HOLE),
        ("token", Step.ONE_BY_ONE),
        ("token helps", Step.REPEAT),
        ("token one_by_one", Step.HOLE),
        ("token one_by_one helps", Step.REPEAT),
    ],
)
def test_what_becomes_of_a_window_after_a_page_of_it_failed(said: str, step: Step) -> None:
    words = said.split()
    failure = Failure(
        token_refused="token" in words,
        is_one_by_one="one_by_one" in words,
        has_halves="halves" in words,
        has_few="few" in words,
        may_repeat_smallest="helps" in words,
    )
    assert next_step(failure) is step
