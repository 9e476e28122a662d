"""What becomes of the values of a Metacat Harvester's schedule."""

from __future__ import annotations

from datetime import date

import pytest

from metaharvest.takeover.metacat_rows import converted, read_day

TODAY = date(2026, 11, 22)
GOOD = {
    "documentlisturl": "http://alder.example.org/list.xml",
    "contact_email": "a@example.org",
    "datenextharvest": "2026-12-01",
    "updatefrequency": "1",
    "unit": "days",
}


def test_a_row_with_nothing_odd_is_kept_as_it_is() -> None:
    made = converted({**GOOD, "ldapdn": "uid=alder,o=LTER", "datelastharvest": "2026-11-01"}, TODAY)
    assert made.problems == made.changes == []
    assert made.values == {
        "documentlisturl": "http://alder.example.org/list.xml",
        "contact_email": "a@example.org",
        "updatefrequency": 1,
        "unit": "days",
        "ldapdn": "uid=alder,o=LTER",
        "datelastharvest": date(2026, 11, 1),
        "datenextharvest": date(2026, 12, 1),
    }
    assert not made.password


@pytest.mark.parametrize(
    ("number", "unit", "expected", "told"),
    [
        ("2", "weeks", (2, "weeks"), ""),
        (" 2 ", " weeks ", (2, "weeks"), ""),
        ("2.0", "weeks", (2, "weeks"), ""),
        ("3", "Weeks", (3, "weeks"), "the unit 'Weeks' became weeks; the Metacat Harvester counted it as days"),
        ("3", "MONTHS", (3, "months"), "counted it as days"),
        ("3", "DAYS", (3, "days"), "the unit 'DAYS' became days"),
        ("3", "week", (3, "weeks"), "the unit 'week' became weeks"),
        ("3", "fortnights", (3, "days"), "the unit is 'fortnights', which counted as days: it is days now"),
        ("3", None, (3, "days"), "the unit is empty"),
        ("0", "months", (1, "days"), "the frequency is 0, by which every run harvested it: it is every day now"),
        ("-5", "months", (1, "days"), "the frequency is -5"),
        (None, "weeks", (1, "days"), "the frequency is empty"),
        ("364", "days", (52, "weeks"), "every 364 days became every 52 weeks"),
        ("400", "days", (57, "weeks"), "every 400 days became every 57 weeks"),
        ("120", "weeks", (28, "months"), "every 120 weeks became every 28 months"),
        ("1000", "months", (99, "months"), "every 1000 months became every 99 months"),
    ],
)
def test_how_often_a_site_is_harvested(
    number: str | None, unit: str | None, expected: tuple[int, str], told: str
) -> None:
    made = converted({**GOOD, "updatefrequency": number, "unit": unit}, TODAY)
    assert made.problems == []
    assert (made.values["updatefrequency"], made.values["unit"]) == expected
    assert bool(made.changes) == bool(told)
    assert told in "; ".join(made.changes)


@pytest.mark.parametrize("number", ["often", "1e999", "nan"])
def test_a_frequency_that_is_no_number_is_a_problem(number: str) -> None:
    [problem] = converted({**GOOD, "updatefrequency": number}, TODAY).problems
    assert problem == f"UPDATEFREQUENCY is '{number}'; it must be a whole number from 1 to 99."


@pytest.mark.parametrize(
    ("text", "expected", "told"),
    [
        ("a@example.org;b@example.org", "a@example.org, b@example.org", ""),
        (" a@example.org ; ,, b@example.org ;", "a@example.org, b@example.org", ""),
        ("a@example.org, a@example.org", "a@example.org", ""),
        ("a@example.org, nobody", "a@example.org", "the contact 'nobody' was left out"),
    ],
)
def test_contacts(text: str, expected: str, told: str) -> None:
    made = converted({**GOOD, "contact_email": text}, TODAY)
    assert made.values["contact_email"] == expected
    assert bool(made.changes) == bool(told)
    assert told in "; ".join(made.changes)


@pytest.mark.parametrize(
    ("text", "problem"), [(None, "CONTACT_EMAIL is empty."), (" ; ", "CONTACT_EMAIL is empty."), ("nobody", "'nobody'")]
)
def test_a_row_without_a_contact_is_a_problem_and_the_command_that_registers_it_is_told(
    text: str | None, problem: str
) -> None:
    made = converted({**GOOD, "contact_email": text, "ldapdn": "uid=x"}, TODAY)
    assert problem in made.problems[0]
    assert made.add_command("mh --config 'a b'") == (
        "mh --config 'a b' sites add NAME --list-url http://alder.example.org/list.xml --contact EMAIL "
        "--every 1 --unit days --ldapdn uid=x"
    )


@pytest.mark.parametrize("url", [None, "ftp://alder.example.org/list.xml", "alder.example.org", "http:///list.xml"])
def test_a_list_that_cannot_be_harvested_is_a_problem(url: str | None) -> None:
    assert len(converted({**GOOD, "documentlisturl": url}, TODAY).problems) == 1


@pytest.mark.parametrize(
    ("last", "planned", "expected", "told"),
    [
        ("2026-11-01", "2026-11-22", ("2026-11-01", "2026-11-22"), ""),
        (None, None, (None, None), ""),
        ("2026-11-21", None, ("2026-11-21", None), ""),
        ("2026-11-01 00:00:00.0", "2026-12-01T00:00:00", ("2026-11-01", "2026-12-01"), ""),
        ("01-NOV-26", "01-DEC-2026", ("2026-11-01", "2026-12-01"), ""),
        (
            "2026-11-01",
            "2026-11-02",
            ("2026-11-01", "2026-11-22"),
            "the next harvest is today: it was due on 2026-11-02",
        ),
        ("2026-11-01", None, ("2026-11-01", "2026-11-22"), "the next harvest is today: it was due on 2026-11-02"),
        (None, "0000-00-00", (None, "2026-11-22"), "the next harvest is today: '0000-00-00' is not a date"),
        ("infinity", "2026-12-01", (None, "2026-12-01"), "the last harvest was left out: 'infinity' is not a date"),
        (
            "2031-01-01",
            "2026-12-01",
            (None, "2026-12-01"),
            "the last harvest was left out: 2031-01-01 is in the future",
        ),
    ],
)
def test_dates(last: str | None, planned: str | None, expected: tuple[str | None, ...], told: str) -> None:
    made = converted({**GOOD, "datelastharvest": last, "datenextharvest": planned}, TODAY)
    dates = made.values["datelastharvest"], made.values["datenextharvest"]
    assert tuple(each and each.isoformat() for each in dates) == expected
    assert bool(made.changes) == bool(told)
    assert told in "; ".join(made.changes)


def test_a_password_is_not_taken_and_not_shown() -> None:
    made = converted({**GOOD, "ldapdn": "uid=alder", "ldappwd": "hunter2"}, TODAY)
    assert made.password
    assert "hunter2" not in repr(made)
    assert made.changes == ["the password in LDAPPWD was not taken over: it is in clear"]
    assert not converted({**GOOD, "ldappwd": "hunter2"}, TODAY).password


def test_a_day_is_read_as_databases_write_it() -> None:
    assert read_day("2026-11-20 23:59:59+00") == date(2026, 11, 20)
    assert read_day("") is None
    assert read_day("20.11.2026") is None
