"""Where a sweep begins or goes on, and what is kept when it has ended."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from metaharvest.model import OaiOptions
from metaharvest.sources.oai_pmh.probes import From, Probed
from metaharvest.sources.oai_pmh.progress import (
    SHORT_LIST,
    State,
    Sweep,
    asked_by,
    first_moment,
    next_sweep,
    state_after,
    state_from,
)
from metaharvest.sources.oai_pmh.protocol import Identity
from metaharvest.sources.oai_pmh.windows import Window

OPTIONS = OaiOptions("test")
ASKED = asked_by("http://repository.example.org/oai", OPTIONS)
NOW = "2026-01-21T03:00:00Z"
IDENTITY = Identity(
    "Test", "", "2.0", earliest="2026-01-01T00:00:00Z", granularity="YYYY-MM-DDThh:mm:ssZ", response_date=NOW
)
KNOWN = State(ASKED, watermark="2026-01-20T03:00:00Z", full_at="2026-01-11T03:00:00Z")
HOLE = Window("2026-01-05T00:00:00Z", "2026-01-05T00:00:01Z", one_by_one=True)
UNDER_WAY = Sweep(True, (Window(),), token="t", first="2026-01-19T03:00:00Z", received=10)


def after(state: State, sweep: Sweep, probed: Probed | None = None, *, is_empty: bool = False) -> State:
    return state_after(state, sweep, probed or Probed(), NOW, is_empty=is_empty)


def begun(state: State, *, full: bool = False, **options: object) -> Sweep:
    return next_sweep(state, replace(OPTIONS, **options), IDENTITY, full=full)  # type: ignore[arg-type]


# -- where it begins


def test_the_first_sweep_is_a_full_one() -> None:
    assert begun(State(ASKED)) == Sweep(True, (Window(),))


def test_changes_are_asked_for_with_an_overlap_of_five_minutes() -> None:
    assert begun(KNOWN) == Sweep(False, (Window("2026-01-20T02:55:00Z"),))


@pytest.mark.parametrize(
    ("shown", "ahead", "kept"),
    [
        ("2026-01-20T03:00:00Z", 0, "2026-01-20T03:00:00Z"),
        ("2026-01-20T03:00:00+01:00", -60, "2026-01-20T03:00:00+01:00"),
        ("2026-01-20T03:00:00+01:00", 60, "2026-01-20T01:00:00Z"),
        ("2026-01-20T03:00:00", 60, "2026-01-20T02:00:00"),
        ("no date", 60, "no date"),
    ],
)
def test_changes_are_asked_for_from_earlier_on_where_the_clock_is_ahead(shown: str, ahead: int, kept: str) -> None:
    assert first_moment(shown, timedelta(minutes=ahead)) == kept


@pytest.mark.parametrize(("every", "is_full"), [(None, False), (11, False), (10, True)])
def test_a_full_sweep_is_due_after_days(every: int | None, is_full: bool) -> None:
    assert begun(KNOWN, full_every=every).full is is_full


def test_a_full_sweep_that_a_person_asks_for_begins_at_the_beginning() -> None:
    assert begun(KNOWN, full=True) == Sweep(True, (Window(),))


def test_holes_are_tried_again_beside_the_changes_and_are_part_of_a_full_sweep() -> None:
    state = replace(KNOWN, holes=(HOLE,))
    assert begun(state).todo == (Window("2026-01-20T02:55:00Z"), HOLE)
    assert begun(state, full=True).todo == (Window(),)


# -- where it goes on


def test_a_sweep_goes_on_with_its_token() -> None:
    assert begun(replace(KNOWN, sweep=UNDER_WAY)) == UNDER_WAY


def test_changes_under_way_give_way_to_a_full_sweep() -> None:
    changes = replace(UNDER_WAY, full=False, token="")
    assert begun(replace(KNOWN, sweep=changes), full_every=10).full
    assert begun(replace(KNOWN, sweep=replace(changes, token="t")), full_every=10).token == "t"
    assert begun(replace(KNOWN, sweep=replace(changes, token="t")), full=True).token == ""


@pytest.mark.parametrize("change", [{"expires": "2026-01-20T00:00:00Z"}, {"token": ""}])
def test_a_window_that_was_begun_and_has_no_live_token_is_divided(change: dict[str, str]) -> None:
    sweep = begun(replace(KNOWN, sweep=replace(UNDER_WAY, **change)))  # type: ignore[arg-type]
    middle = "2026-01-11T01:30:00Z"
    assert sweep.todo == (Window(until=middle), Window(middle))
    assert (sweep.token, sweep.received, sweep.divided, sweep.is_resumed) == ("", 0, True, False)


def test_the_windows_that_have_ended_are_not_asked_for_again() -> None:
    sweep = replace(UNDER_WAY, todo=(Window("2026-01-02"), Window("2026-01-20")), token="", came=7)
    again = begun(replace(KNOWN, sweep=sweep))
    assert again.todo[-1] == Window("2026-01-20")
    assert (again.is_resumed, again.came) == (True, 7)


# -- what is kept


def test_the_watermark_is_the_first_date_of_the_sweep_and_moves_at_its_end() -> None:
    ended = after(KNOWN, UNDER_WAY.without_first(0))
    assert (ended.watermark, ended.full_at, ended.listed) == (UNDER_WAY.first, UNDER_WAY.first, 10)
    assert ended.sweep is None


def test_an_empty_full_sweep_moves_no_watermark() -> None:
    assert after(KNOWN, Sweep(True, ()), is_empty=True).watermark == ""
    assert after(KNOWN, Sweep(False, ()), is_empty=True).watermark == NOW


@pytest.mark.parametrize("was_off", [False, True])
@pytest.mark.parametrize(
    ("how", "is_off"), [(From.WELL, False), (From.EXCLUSIVE, False), (From.OFF, True), (From.IGNORED, True)]
)
def test_a_check_finds_out_that_lists_of_changes_leave_records_out(how: From, is_off: bool, was_off: bool) -> None:
    known = replace(KNOWN, from_is_off=was_off)
    ended = after(known, Sweep(False, (), first=NOW), Probed(how=how))
    assert (ended.from_is_off, ended.from_checked) == (is_off, NOW)
    assert after(known, Sweep(True, (), first=NOW)).from_is_off is was_off


def test_a_list_that_lacks_announced_records_is_asked_for_once_more() -> None:
    ended = replace(KNOWN, sweep=UNDER_WAY).to_repeat(UNDER_WAY, 5)
    assert (ended.watermark, ended.short, ended.sweep) == ("", 5, None)
    assert KNOWN.to_repeat(replace(UNDER_WAY, full=False), 5).watermark == KNOWN.watermark


@pytest.mark.parametrize(("came", "nights"), [(SHORT_LIST, 3), (SHORT_LIST + 1, 1)])
def test_a_list_that_perhaps_has_not_ended_is_asked_for_again(came: int, nights: int) -> None:
    state, sweep = State(ASKED), replace(Sweep(True, (), first=NOW), came=came, left_out=None)
    for _ in range(nights):
        state = after(state, sweep)
        assert (state.watermark, state.short) == ("", 0)
    assert bool(after(state, sweep).watermark) is (came > SHORT_LIST)


def test_a_hole_stays_until_it_can_be_listed() -> None:
    sweep = Sweep(True, (HOLE,), first=NOW).with_hole()
    ended = after(State(ASKED), sweep)
    assert (ended.holes, ended.watermark, ended.full_at) == ((HOLE,), NOW, NOW)
    assert after(ended, Sweep(False, (), first=NOW)).holes == ()


def test_what_a_window_left_out_adds_up_and_one_in_doubt_makes_all_unknown() -> None:
    sweep = Sweep(True, (Window(), Window(), Window())).without_first(2).without_first(1)
    assert sweep.left_out == 3
    assert sweep.without_first(None).left_out is None


# -- as JSON


@pytest.mark.parametrize("state", [KNOWN, replace(KNOWN, sweep=UNDER_WAY, holes=(HOLE,), newest=("2026", "oai:1"))])
def test_a_state_is_the_same_after_it_was_kept(state: State) -> None:
    kept = json.loads(json.dumps(state.as_checkpoint()))
    assert state_from(kept, ASKED) == replace(state, newest=list(state.newest))


def test_of_another_list_only_what_the_repository_says_of_itself_is_kept() -> None:
    kept = replace(KNOWN, identity={"name": "Test"}).as_checkpoint()
    other = asked_by("http://repository.example.org/oai", replace(OPTIONS, prefix="eml"))
    assert state_from(kept, other) == State(other, {"name": "Test"})


@pytest.mark.parametrize("broken", [{"sweep": {"what": 1}}, {"holes": [{"a": 1}]}])
def test_a_state_that_cannot_be_read_is_none(broken: dict[str, object]) -> None:
    assert state_from({**KNOWN.as_checkpoint(), **broken}, ASKED) == State(ASKED)


def test_a_checkpoint_of_release_0_1_keeps_its_watermark_and_its_shortfall() -> None:
    old = {
        "asked": list(ASKED),
        "watermark": KNOWN.watermark,
        "full_at": KNOWN.full_at,
        "short": {"": 4},
        "usually_short": {},
        "behind": {},
        "is_second": False,
        "progress": None,
    }
    assert state_from(old, ASKED) == replace(KNOWN, short=4)
    usual = {**old, "short": {}, "usually_short": {"": 7}, "ahead": 3600}
    assert state_from(usual, ASKED) == replace(
        KNOWN, usual=7, watermark="2026-01-20T02:00:00Z", full_at="2026-01-11T02:00:00Z"
    )
    assert state_from({**old, "from_is_off": True}, ASKED).from_is_off
    assert state_from({**old, "ahead": None}, ASKED) == State(ASKED)
    assert state_from({**old, "progress": {"full": False}}, ASKED).watermark == KNOWN.watermark
    assert state_from({**old, "progress": {"full": True}}, ASKED).watermark == ""
