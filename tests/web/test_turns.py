"""A bounded number of requests reads at a time, and one address cannot take all places."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from metaharvest.web.turns import Busy, Turns, client_of


def test_one_address_has_at_most_half_of_the_places() -> None:
    turns = Turns(4)
    with turns.turn("192.0.2.1", 0), turns.turn("192.0.2.1", 0):
        with pytest.raises(Busy), turns.turn("192.0.2.1", 0):
            pass
        with turns.turn("192.0.2.2", 0):
            pass
    with turns.turn("192.0.2.1", 0):
        pass


def test_all_addresses_together_have_the_number_of_the_setting() -> None:
    turns = Turns(3)
    with ExitStack() as under_way:
        for number in range(3):
            under_way.enter_context(turns.turn(f"192.0.2.{number}", 0))
        with pytest.raises(Busy), turns.turn("192.0.2.9", 0):
            pass
    with turns.turn("192.0.2.9", 0):
        pass


def test_a_single_place_is_for_anybody() -> None:
    turns = Turns(1)
    with turns.turn("192.0.2.1", 0), pytest.raises(Busy), turns.turn("", 0):
        pass
    with turns.turn("192.0.2.1", 0):
        pass


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1:2:3", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("unix:", "unix:", True),
    ],
)
def test_addresses_of_one_network_of_64_bits_belong_to_one_client(one: str, other: str, is_same: bool) -> None:
    assert (client_of(one) == client_of(other)) == is_same
