"""The remedy for a value fits the value: pairs of a value in a document and the right one."""

from __future__ import annotations

import pytest

from metaharvest.validation.advice import about_boolean, about_date, about_number, similar_of
from support.eml_documents import VALIDATOR, eml, listed

YEAR_DATE = {"date", "gYear"}


@pytest.mark.parametrize(
    ("value", "message", "remedy"),
    [
        (
            "1978-02-30",
            "February 1978 has 28 days",
            "Correct the day. If the day is not known, write the year alone: 1978.",
        ),
        ("2024-02-30", "February 2024 has 29 days", "Correct the day."),
        ("2020-04-31", "April 2020 has 30 days", "Correct the day."),
        ("2020-01-00", "January 2020 has 31 days", "Correct the day."),
        ("2020-13-01", "the month 13", "Did you mean 2020-01-13?"),
        ("2020-30-12", "the month 30", "Did you mean 2020-12-30?"),
        ("2020-00-00", "the month 0", "write the year alone: 2020."),
        ("2020-99-99", "the month 99", "Correct the month."),
        ("30.1.2020", "is not written as", "Write 2020-01-30."),
        ("2020/01/30", "is not written as", "Write 2020-01-30."),
        ("2020-1-5", "is not written as", "Write 2020-01-05."),
        ("20200130", "is not written as", "Write 2020-01-30."),
        ("1/30/2020", "is not written as", "Write 2020-01-30."),
        ("30 January 2020", "is not written as", "Write 2020-01-30."),
        ("Jan 30, 2020", "is not written as", "Write 2020-01-30."),
        ("January 30th 2020", "is not written as", "Write 2020-01-30."),
        ("2020-01-30T10:00:00", "is not written as", "Write 2020-01-30."),
        ("5/5/2020", "is not written as", "Write 2020-05-05."),
        ("3/4/2020", "is not written as", "Write it as YYYY-MM-DD or YYYY."),
        ("31.2.2020", "is not written as", "Write it as YYYY-MM-DD or YYYY."),
        ("2020-05", "is a month", "Write the whole day, as in 2020-05-01, or the year alone: 2020."),
        ("2020-5", "is a month", "as in 2020-05-01"),
        ("2020-12", "is a month", "as in 2020-12-01"),
        ("spring 2020", "is not written as", "Write it as YYYY-MM-DD or YYYY."),
        ("78", "is not written as", "Write it as YYYY-MM-DD or YYYY."),
        ("0000-01-01", "no such date", "Correct the numbers."),
    ],
)
def test_the_advice_says_what_is_wrong_with_a_date(value: str, message: str, remedy: str) -> None:
    said, output = about_date(value, YEAR_DATE)
    assert (message in said, remedy in output) == (True, True), (said, output)
    does_not_exist = "not written" not in said
    assert ("YYYY" in output) is (not does_not_exist and "Write it as" in output)


def test_other_dates_and_times() -> None:
    assert about_date("25:00:00", {"time"}) == (
        "is written as it should be, but there is no such date or time.", "Correct the numbers.",
    )  # fmt: skip
    assert about_date("10:00", {"time"})[1] == "Write it as hh:mm:ss."
    assert about_date("2020-02-30T10:00:00", {"dateTime"})[0].endswith("February 2020 has 29 days.")
    assert "year alone" not in about_date("2020-02-30", {"date"})[1]


@pytest.mark.parametrize(
    ("value", "is_whole", "remedy"),
    [
        ("12,5", False, "Write 12.5, with a point."),
        ("5 m", False, "Write 5, without 'm'."),
        ("45.5 N", False, "Write 45.5."),
        ("89.4°W", False, "Write -89.4: south and west are negative."),
        ("-89.4 W", False, "Write -89.4."),
        ("\u22125", False, "Write -5, with an ordinary minus sign."),
        ("1,200", True, "Write 1200, without a sign between the digits."),
        ("1,200,300", False, "Write 1200300, without a sign between the digits."),
        ("3.0", True, "Write 3."),
        ("3.5", True, "Write digits only."),
        ("many", True, "Write digits only."),
        ("45°30'12\"N", False, "Write digits, with a point for decimals, without a unit."),
    ],
)
def test_the_advice_says_how_to_write_a_number(value: str, is_whole: bool, remedy: str) -> None:
    assert about_number(value, is_whole=is_whole) == remedy


def test_a_unit_is_no_direction_except_in_coordinates() -> None:
    assert about_number("10 W", is_whole=False, is_degree=False) == "Write 10, without 'W'."
    assert about_number("5 s", is_whole=False, is_degree=False) == "Write 5, without 's'."


@pytest.mark.parametrize(
    ("value", "remedy"), [("yes", "Write true."), ("No", "Write false."), ("maybe", "Write true or false.")]
)
def test_the_advice_says_which_boolean_is_meant(value: str, remedy: str) -> None:
    assert about_boolean(value) == remedy


def test_a_value_of_a_list_is_suggested_if_it_is_similar() -> None:
    assert similar_of("Theme", ["place", "theme", "taxonomic"]) == "theme"
    assert similar_of("  taxonomical ", ["place", "theme", "taxonomic"]) == "taxonomic"
    assert similar_of("water", ["place", "theme"]) == ""


@pytest.mark.parametrize("padding", ["", " " * 1_100_000])
def test_the_document_gets_the_advice_whatever_its_size(padding: str) -> None:
    content = eml("2.2.0", first="<pubDate>1978-02-30</pubDate>" + padding)
    [finding] = VALIDATOR.check(content, listed("2.2.0")).findings
    assert finding.rule == "schema.bad-date"
    assert "1978-02-30', which is a day that does not exist: February 1978 has 28 days." in finding.message
    assert "YYYY" not in finding.remedy


def test_no_remedy_removes_what_each_document_needs() -> None:
    content = eml("2.2.0").replace(b"<contact><organizationName>Alder Creek</organizationName></contact>", b"")
    [finding] = VALIDATOR.check(content, listed("2.2.0")).findings
    assert finding.remedy == "Add contact at its end."


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ("<creator><individualName>Alder</individualName></creator>", "surName"),
        ("<keywordSet>water</keywordSet>", "keyword"),
    ],
)
def test_a_text_without_its_tags_is_one_finding(wrong: str, name: str) -> None:
    content = eml("2.2.0", first=wrong if "keyword" in wrong else "")
    if "creator" in wrong:
        content = content.replace(
            b'<creator id="creator-1"><organizationName>Alder Creek</organizationName></creator>', wrong.encode()
        )
    [finding] = VALIDATOR.check(content, listed("2.2.0")).findings
    assert finding.rule == "schema.unexpected-text"
    assert finding.message.endswith(f"; {name} is missing.")
    assert finding.remedy == f"Put the text into the element that is missing: <{name}>…</{name}>."


def test_an_empty_reference_is_reported_as_empty() -> None:
    content = eml("2.2.0").replace(
        b"<contact><organizationName>Alder Creek</organizationName>", b"<contact><references> </references>"
    )
    findings = VALIDATOR.check(content, listed("2.2.0")).findings
    assert all("id ''" not in finding.message for finding in findings)
    assert findings
