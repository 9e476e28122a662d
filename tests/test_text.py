"""Text from outside, made safe to show; numbers and references in it."""

from __future__ import annotations

import time

import pytest

from metaharvest.text import counted, one_line, only_xml, some_of, unescaped, whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("100", 100),
        ("101", None),
        ("0" * 10_000 + "7", 7),
        ("9" * 10_000, None),
        ("", None),
        ("-1", None),
        ("+1", None),
        (" 1", None),
        ("1.0", None),
        ("1_0", None),
        ("\u0661", None),
        ("\u00b2", None),
    ],
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert whole_number(text, 100) == number


def test_references_to_numbers_that_are_too_long_stay() -> None:
    assert unescaped("a &lt; b &#65;") == "a < b A"
    long = f"&lt; &#{'1' * 5000};"
    assert unescaped(long) == long


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("asked at https://user:secret@example.org/oai", "asked at https://example.org/oai"),
        ("https://user@example.org/oai", "https://example.org/oai"),
        ("https://user:sec/ret@example.org/oai", "https://example.org/oai"),
        (
            "ftp://user:secret@example.org and <a href='http://u:p@e.org/'>",
            "ftp://example.org and <a href='http://e.org/'>",
        ),
        ("http://example.org/?to=a@example.org", "http://example.org/?to=a@example.org"),
        (
            "write to a@example.org, see http://example.org:8080/",
            "write to a@example.org, see http://example.org:8080/",
        ),
    ],
)
def test_no_login_of_a_url_is_shown(said: str, shown: str) -> None:
    assert one_line(said) == shown


def test_a_long_text_with_many_urls_takes_little_time() -> None:
    began = time.process_time()
    one_line("http://u:p@" * 500_000, 100)
    one_line("://" * 1_000_000 + "@", 100)
    one_line("://a:" * 1_000_000 + "@", 100)
    assert time.process_time() - began < 20


def test_characters_that_xml_lacks_are_replaced() -> None:
    text = "a\tb\0c\x0b\ud800\ufffe\u00e9\U0001f438"
    assert only_xml(text) == "a\tb\ufffdc\ufffd\ufffd\ufffd\u00e9\U0001f438"
    assert only_xml(text, "") == "a\tbc\u00e9\U0001f438"


def test_many_names_are_shortened() -> None:
    assert (some_of([]), some_of(["a"]), some_of(["a", "b"], 2)) == ("", "a", "a, b")
    assert some_of(["a"] * 1203, 2) == "a, a and 1,201 more"


def test_a_number_and_its_noun_agree() -> None:
    assert [counted(number, "record") for number in (0, 1, 1204)] == ["0 records", "1 record", "1,204 records"]
    assert counted(1, "entry names", "entries name") == "1 entry names"
    assert counted(2, "entry names", "entries name") == "2 entries name"
