"""The check for costly expressions and memberships finds the costly ones, and no others."""

from __future__ import annotations

import re
import time

import pytest

from lint.expressions import loses_its_place, why_costly
from lint.foreign_text import found_in

COSTLY = [
    (r"<x>\s*(.*?)\s*</x>", "search"),
    (r"a.*?x.*?y", "match"),
    (r".*x.*y", "match"),
    (r"(a+)+b", "match"),
    (r"(?:a*)*b", "match"),
    (r"(?:\w+\s?)*!", "match"),
    (r"\s*\s*x", "match"),
    (r"[a-z]*[a-m]+1", "match"),
    (r"(\w+)(\d+)", "fullmatch"),
    (r"\s+$", "search"),
    (r"\s+x", "search"),
    (r"<a>.*?</a>", "search"),
    (r"[^<]*<", "search"),
    (r"(?i)A*B*a*c", "match"),
    (r"a+(?:b?)a+c", "match"),
    (r"(?:x|a+)(?:y|a+)z", "match"),
    (r"a{0,5000}a{0,5000}b", "match"),
    (r"(?s)(.+)-(.+)-", "fullmatch"),
]
LINEAR = [
    (r"<x>([^<]*)</x>", "search"),
    (r"[a-z]+(?:[.-][a-z]+)*", "fullmatch"),
    (r"(.+)\.([0-9]+)", "fullmatch"),
    (r"\s*([a-z]+)\s*", "fullmatch"),
    (r"(?:a++)+b", "match"),
    (r"(?>a+)a*b", "match"),
    (r"^\s+x", "search"),
    (r"\A\s+x", "search"),
    (r"(?<=/)[^/]+:", "search"),
    (r"(?<![a-z])[a-z]+:", "search"),
    (r"a{0,200}b{0,200}c", "match"),
    (r"\s+", "search"),
    (r"[^a-z]+", "search"),
    (r"x.*", "match"),
    (r"<a[^>]*>.*", "match"),
    (r"&#?[^;&<]*;", "search"),
    (rb"<\?xml[^<>]*\?>", "match"),
]


def is_costly(pattern: str | bytes, method: str) -> bool:
    why = why_costly(pattern, searched=method not in ("match", "fullmatch"), whole=method == "fullmatch")
    return bool(why)


@pytest.mark.parametrize(("pattern", "method"), COSTLY)
def test_costly_expressions_are_found(pattern: str, method: str) -> None:
    assert is_costly(pattern, method)


@pytest.mark.parametrize(("pattern", "method"), LINEAR)
def test_linear_expressions_are_left_alone(pattern: str | bytes, method: str) -> None:
    assert not is_costly(pattern, method)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"<x>\s*(.*?)\s*</x>", "<x>" + " " * 600), (r"(a+)+b", "a" * 22), (r".*x.*y", "x" * 3_000)],
)
def test_what_is_found_does_take_long(pattern: str, text: str) -> None:
    """Twice the text takes more than twice the time, by far."""
    expression = re.compile(pattern, re.DOTALL)
    took = []
    for text_of_it in (text[: len(text) // 2], text):
        began = time.process_time()
        expression.match(text_of_it)
        took.append(time.process_time() - began)
    assert took[1] > 2.5 * took[0]


def lines_of(source: str) -> list[int]:
    return [each.line for each in found_in(source)]


def test_how_an_expression_is_used_decides() -> None:
    compiled = "import re\nA = re.compile(r'\\s+x')\nB = re.compile(r'\\s+x')\n"
    source = f"{compiled}A.match('')\nB.search('')\nre.sub(r'a+b', '', 't')\n"
    assert lines_of(source) == [3, 6]


def test_expressions_that_are_put_together_are_read() -> None:
    compiled = "A = re.compile(rf'{N}{N}x')\nB = re.compile(('a+' + N).encode())\n"
    source = f"import re\nN = '[0-9]+'\n{compiled}A.match('')\nB.match('')\n"
    assert lines_of(source) == [3]


def test_an_exemption_says_why() -> None:
    source = "import re\n{}A = re.compile(r'\\s+x')\n"
    assert lines_of(source.format("")) == [2]
    assert lines_of(source.format("# bounded: 100 characters\n")) == []
    assert lines_of(source.format("# bounded:\n")) == [3]


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("known = list(names)\n    return [each for each in texts if each in known]", True),
        ("known = []\n    for each in texts:\n        if each not in known:\n            known.append(each)", True),
        ("for each in texts:\n        if each in given:\n            return each", True),
        ("known = set(names)\n    return [each for each in texts if each in known]", False),
        ("known = list(names)\n    return texts in known", False),
        ("known = list(names)\n    return [each for each in KINDS if each in known]", False),
        ("known = list(names)\n    return [each for each in texts if '' in known]", False),
        (
            "known = list(names)\n    # bounded: three names\n    return [each for each in texts if each in known]",
            False,
        ),
    ],
)
def test_memberships_in_lists(body: str, is_found: bool) -> None:
    assert bool(lines_of(f"def f(texts, names, a, given: list[str]):\n    {body}\n")) is is_found


@pytest.mark.parametrize(
    "pattern",
    [r"(?:-\w++)*+x", r"(?:a|-\w++)?+x", r"(?:(?!-->).)*+-->", r"(?:%[0-9A-F]{2}|[a-z]){0,3}+", r"(?P<x>a|-\w+)++"],
)
def test_possessive_groups_that_lose_their_place_are_found(pattern: str) -> None:
    assert loses_its_place(f"<{pattern}")
    assert loses_its_place(f"(?:a|<{pattern})*")


@pytest.mark.parametrize(
    "pattern", [r"[a-z]*+x", r"(?:-\w++|(?!))*+x", r"(?:[^\W\d]|[-.])++x", r"(?>(?:-\w++)*)x", r"(?:-\w+)*x", r"x?+"]
)
def test_possessive_groups_that_keep_their_place_are_not_found(pattern: str) -> None:
    assert not loses_its_place(pattern)


def test_the_message_says_how_a_possessive_group_keeps_its_place() -> None:
    [found] = found_in('import re\nX = re.compile(r"(?:-[a-z]++)*+x")\nX.match("")\n')
    assert "`|(?!)` as its last alternative" in found.message
