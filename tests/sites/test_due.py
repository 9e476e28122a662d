"""Which sites are due, and when next."""

from datetime import date

import pytest

from metaharvest.model import Site, Unit
from metaharvest.sites.due import is_due, next_harvest

TODAY = date(2026, 11, 20)


def site(**values: object) -> Site:
    return Site(1, "site", "https://example.org/list.xml", ("a@example.org",), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "due"),
    [
        ({"next_harvest": date(2026, 11, 20)}, True),
        ({"next_harvest": date(2026, 11, 1)}, True),
        ({"next_harvest": date(2026, 11, 21)}, False),
        ({}, True),
        ({"last_harvest": date(2026, 11, 13), "unit": Unit.WEEKS}, True),
        ({"last_harvest": date(2026, 11, 14), "unit": Unit.WEEKS}, False),
        ({"last_harvest": date(2026, 10, 20), "unit": Unit.MONTHS}, True),
        ({"last_harvest": date(2026, 10, 21), "unit": Unit.MONTHS}, False),
    ],
)
def test_a_site_is_due_on_its_next_date_or_a_frequency_after_its_last(values: dict[str, object], due: bool) -> None:
    assert is_due(site(**values), TODAY) is due


@pytest.mark.parametrize(
    ("unit", "frequency", "scheduled", "set_for", "today", "expected"),
    [
        (Unit.DAYS, 1, "2026-11-20", None, "2026-11-20", "2026-11-21"),
        (Unit.DAYS, 99, "2026-11-20", None, "2026-11-20", "2027-02-27"),
        (Unit.WEEKS, 2, "2026-10-01", None, "2026-11-20", "2026-12-04"),
        (Unit.MONTHS, 1, "2026-01-31", None, "2026-01-31", "2026-02-28"),
        (Unit.MONTHS, 1, "2028-01-31", None, "2028-01-31", "2028-02-29"),
        (Unit.MONTHS, 1, "2026-02-28", 31, "2026-02-28", "2026-03-31"),
        (Unit.MONTHS, 1, "2026-02-28", None, "2026-02-28", "2026-03-28"),
        (Unit.MONTHS, 1, "2026-01-15", None, "2026-01-20", "2026-02-15"),
        (Unit.MONTHS, 1, "2026-01-31", 31, "2026-02-01", "2026-02-28"),
        (Unit.MONTHS, 3, "2026-03-15", None, "2026-02-20", "2026-05-15"),
        (Unit.MONTHS, 12, "2028-02-29", None, "2028-02-29", "2029-02-28"),
        (Unit.MONTHS, 1, "2026-05-10", 31, "2026-05-10", "2026-06-10"),
    ],
)
def test_the_next_date_is_today_plus_the_frequency_in_calendar_months_that_keep_their_day(
    unit: Unit, frequency: int, scheduled: str, set_for: int | None, today: str, expected: str
) -> None:
    registered = site(unit=unit, frequency=frequency, next_harvest=date.fromisoformat(scheduled), day_of_month=set_for)
    assert next_harvest(registered, date.fromisoformat(today)) == date.fromisoformat(expected)


def test_the_next_date_always_lies_ahead() -> None:
    for day in range(1, 29):
        for set_for in range(1, 32):
            registered = site(unit=Unit.MONTHS, next_harvest=date(2026, 1, set_for))
            today = date(2026, 2, day)
            assert today < next_harvest(registered, today)


def test_a_date_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(ValueError, match="9999"):
        next_harvest(site(unit=Unit.MONTHS, frequency=99), date(9999, 1, 1))
