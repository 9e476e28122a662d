"""Datestamps: what is one, whose clock it shows, and where the next list of changes begins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from metaharvest.sources.oai_pmh.datestamps import (
    ahead_of,
    from_watermark,
    has_zone,
    is_proper,
    may_be_a_zone,
    moment,
    written,
)

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-11-20T12:00:00Z", NOON),
        (" 2026-11-20t12:00:00z ", NOON),
        ("2026-11-20T12:00:00.123Z", NOON),
        ("2026-11-20 12:00", NOON),
        ("2026-11-20T14:00:00+02:00", NOON),
        ("2026-11-20T07:00:00-0500", NOON),
        ("2026-11-20", NOON.replace(hour=0)),
        ("2026-02-30", None),
        ("2026-11-20T25:00:00Z", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("20 November 2026", None),
        ("", None),
    ],
)
def test_a_moment_is_read_in_the_ways_that_repositories_write_it(text: str, when: datetime | None) -> None:
    assert moment(text) == when


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("2026-11-20", True),
        ("2026-11-20T12:00:00Z", True),
        ("2026-11-20T12:00:00", False),
        ("2026-11-20T12:00:00.1Z", False),
        ("2026-13-20", False),
        ("", False),
    ],
)
def test_the_protocol_has_two_forms_of_a_datestamp(text: str, is_so: bool) -> None:
    assert is_proper(text) is is_so


def test_a_date_has_a_zone_if_it_names_one() -> None:
    assert [has_zone(text) for text in ("2026-11-20T12:00:00Z", "2026-11-20T12:00:00+01:00")] == [True, True]
    assert [has_zone(text) for text in ("2026-11-20T12:00:00", "2026-11-20", "soon")] == [False, False, False]


def test_a_moment_is_written_as_a_day_or_in_seconds() -> None:
    assert written(NOON, seconds=True) == "2026-11-20T12:00:00Z"
    assert written(NOON, seconds=False) == "2026-11-20"


@pytest.mark.parametrize(
    ("watermark", "seconds", "local", "begin"),
    [
        ("2026-11-20T12:00:00Z", True, False, "2026-11-20T11:55:00Z"),
        ("2026-11-20T12:00:00Z", False, False, "2026-11-19"),
        # Without a zone, it may be any hour of the day before or after.
        ("2026-11-20T12:00:00", True, False, "2026-11-19T12:00:00Z"),
        # Version 1.x counts days by the clock that it shows: in UTC this is the day before.
        ("2026-11-20T01:00:00+10:00", False, True, "2026-11-19"),
        ("0001-01-01", False, False, None),
        ("", True, False, None),
    ],
)
def test_a_list_of_changes_begins_before_the_end_of_the_last_one(
    watermark: str, seconds: bool, local: bool, begin: str | None
) -> None:
    assert from_watermark(watermark, seconds=seconds, local=local) == begin


def test_the_clock_of_an_answer_is_compared_with_that_of_its_web_server() -> None:
    sent = "Fri, 20 Nov 2026 12:00:00 GMT"
    assert ahead_of("2026-11-20T12:10:00Z", sent) == timedelta(minutes=10)
    assert ahead_of("2026-11-20T11:00:00Z", sent) == timedelta(hours=-1)
    assert [ahead_of(shown, sent) for shown in ("2026-11-20T13:00:00", "2026-11-20", "soon")] == [timedelta(0)] * 3
    assert ahead_of("2026-11-20T12:10:00Z", "soon") == timedelta(0)


@pytest.mark.parametrize(
    ("difference", "is_so"),
    [
        (timedelta(hours=2), True),
        (timedelta(hours=-5, seconds=-30), True),
        (timedelta(hours=5, minutes=45), True),
        (timedelta(minutes=7), False),
        (timedelta(0), False),
        (timedelta(hours=15), False),
    ],
)
def test_clocks_that_differ_by_quarters_of_an_hour_may_be_in_two_zones(difference: timedelta, is_so: bool) -> None:
    assert may_be_a_zone(difference) is is_so
