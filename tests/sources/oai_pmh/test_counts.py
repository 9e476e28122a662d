"""What follows from the number of records of a list."""

from __future__ import annotations

import pytest

from metaharvest.model import Level
from metaharvest.sources.oai_pmh.counts import MOST_STALE, Counts, SizeCheck, check_size
from metaharvest.sources.oai_pmh.protocol import ProtocolError, Token, root_of
from metaharvest.sources.oai_pmh.responses import Response

ROOT = root_of("{http://www.openarchives.org/OAI/2.0/}OAI-PMH")
assert ROOT is not None


def page(token: str | None, size: int | None = None, *, is_blank: bool = False) -> Response:
    return Response("ListRecords", ROOT, token=None if token is None else Token(token, size=size, is_blank=is_blank))  # type: ignore[arg-type]


def came(number: int, announced: int | None = None, **fields: int) -> Counts:
    counts = Counts(dict.fromkeys(range(number), 1), announced=announced, **fields)  # type: ignore[arg-type]
    counts.received, counts.highest = number, announced or 0
    return counts


def checked(counts: Counts, short: int | None = None, usual: int = 0, *, is_full: bool = True) -> SizeCheck:
    return check_size(counts, short=short, usual=usual, is_full=is_full)


# -- the announced number


@pytest.mark.parametrize("announced", [None, 300, 250, 10])
def test_all_is_well_where_as_many_came_or_more(announced: int | None) -> None:
    assert checked(came(300, announced)) == SizeCheck()


def test_a_list_that_lacks_one_in_a_hundred_is_a_warning_with_the_number() -> None:
    check = checked(came(297, 300))
    assert (check.left_out, check.short) == (3, 0)
    assert check.finding is not None
    assert check.finding.level is Level.WARNING
    assert "announced a list of 300 records (completeListSize) and sent 297." in check.finding.message


def test_a_list_that_lacks_more_is_an_error_the_first_time() -> None:
    check = checked(came(250, 300))
    assert (check.short, check.usual) == (50, 0)
    assert check.finding is not None
    assert check.finding.level is Level.ERROR


def test_the_same_shortfall_is_the_repositorys_way_to_count_and_stays_so() -> None:
    check = checked(came(250, 300), short=52)
    assert (check.short, check.usual, check.left_out) == (0, 50, 0)
    assert checked(came(30, 60), usual=50, is_full=False).short == 0
    assert checked(came(200, 300), usual=50).short == 100
    assert checked(came(300, 300), usual=50).usual == 0
    assert checked(came(3, 3), usual=50, is_full=False).usual == 50


def test_a_list_of_nothing_is_never_the_way_to_count() -> None:
    assert checked(came(0, 300), short=300).short == 300


def test_a_short_list_whose_last_token_is_missing_is_an_error_each_time() -> None:
    counts = came(250, 300)
    counts.lacks_token = True
    check = checked(counts, short=50, usual=50)
    assert check.short == 50
    assert check.finding is not None
    assert "Its last page has no resumptionToken" in check.finding.message


def test_records_that_move_while_the_list_is_read_may_leave_others_out() -> None:
    assert checked(came(300, moved=2)).left_out == 2


def test_a_number_that_falls_while_the_list_is_read_leaves_others_out() -> None:
    counts = came(24, 24)
    counts.highest = 25
    assert checked(counts).left_out == 1


# -- tokens


def test_a_token_that_comes_again_without_new_records_leads_nowhere() -> None:
    counts = Counts({})
    assert counts.follow(page("a"), "", 10, 10) is None
    assert counts.follow(page("b"), "a", 10, 10) is None
    wrong = counts.follow(page("a"), "b", 10, 0)
    assert wrong is not None
    assert "the same resumption token again" in wrong.message


def test_pages_without_new_records_lead_nowhere_after_a_few() -> None:
    counts = Counts({})
    said = [counts.follow(page(str(number)), str(number - 1), 5, 0) for number in range(MOST_STALE)]
    assert said[:-1] == [None] * (MOST_STALE - 1)
    assert said[-1] is not None


def test_a_size_that_is_smaller_than_what_came_is_the_size_of_something_else() -> None:
    counts = Counts(dict.fromkeys(range(20), 1))
    counts.follow(page("b", 10), "a", 10, 10)
    assert counts.announced is None


@pytest.mark.parametrize(
    ("last", "token", "size", "in_doubt"),
    [
        (10, None, None, True),
        (9, None, None, False),
        (10, "", None, False),
        (0, "", None, True),
        (10, None, 30, False),
    ],
    ids=["full-page", "short-page", "empty-token", "nothing", "announced"],
)
def test_an_end_without_an_empty_token_is_in_doubt_behind_full_pages(
    last: int, token: str | None, size: int | None, in_doubt: bool
) -> None:
    counts = Counts({}, announced=size)
    counts.follow(page("a", size), "", 10, 10)
    counts.follow(page("b", size), "a", 10, 10)
    counts.announced = size
    counts.follow(page(token), "b", last, last)
    assert counts.in_doubt is in_doubt


@pytest.mark.parametrize(("size", "level"), [(None, Level.ERROR), (10, Level.ERROR), (20, Level.WARNING)])
def test_an_error_at_the_end_is_graver_where_nobody_knows_the_number(size: int | None, level: Level) -> None:
    counts = Counts({}, announced=size)
    counts.follow(page("a", size), "", 10, 10)
    answer = Response("ListRecords", ROOT, errors=[ProtocolError("noRecordsMatch")])  # type: ignore[arg-type]
    counts.end_in_error(answer)
    assert [each.level for each in counts.notes] == [level]
    assert counts.in_doubt is (level is Level.ERROR)
