"""Whose fault a refusal is: pure decisions."""

from __future__ import annotations

from metaharvest.mail.delivery import Refusal, Refusals

ELM, FIR = Refusal(1, "elm@example.org", False), Refusal(2, "fir@example.org", False)
ADMIN = Refusal(3, "steward@example.org", True)


def test_a_refusal_is_final_as_soon_as_another_recipient_is_accepted() -> None:
    refusals = Refusals()
    refusals.refused([ELM])
    assert refusals.accepted() == [ELM]
    assert refusals.accepts
    assert refusals.close_round() == []


def test_refusals_of_several_recipients_stay_in_doubt_whatever_the_next_round_says() -> None:
    refusals = Refusals(unattended=True)
    refusals.refused([ELM])
    refusals.refused([FIR])
    assert refusals.close_round() == []
    assert refusals.accepted() == []


def test_one_refusal_alone_waits_for_the_next_round_of_a_run() -> None:
    refusals = Refusals(unattended=True)
    refusals.refused([ELM])
    assert refusals.close_round() == []
    assert refusals.accepted() == [ELM]


def test_one_refusal_alone_is_final_where_a_person_is_there() -> None:
    refusals = Refusals()
    refusals.refused([ELM])
    assert refusals.close_round() == [ELM]


def test_one_refusal_alone_is_not_final_if_the_round_broke_off() -> None:
    refusals = Refusals()
    refusals.refused([ELM])
    assert refusals.close_round(tried_all=False) == []


def test_the_refused_report_of_the_administrators_alone_is_never_final() -> None:
    refusals = Refusals()
    refusals.refused([ADMIN])
    assert refusals.close_round() == []
