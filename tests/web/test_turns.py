"""A bounded number of requests reads at a time, and one address cannot take all places."""

from __future__ import annotations

import asyncio
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


def test_requests_wait_in_their_order_in_threads_and_without_them() -> None:
    turns, came = Turns(1), list[str]()

    async def asked(address: str) -> None:
        async with turns.turn_without_thread(address, 10):
            came.append(address)
            await asyncio.sleep(0)

    def asked_in_thread(address: str) -> None:
        with turns.turn(address, 10):
            came.append(address)

    async def all_asked() -> None:
        async with turns.turn_without_thread("192.0.2.9", 9):
            tasks = []
            for number, address in enumerate(("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")):
                asking = asyncio.to_thread(asked_in_thread, address) if number == 1 else asked(address)
                tasks.append(asyncio.create_task(asking))
                while len(turns._waiting) < len(tasks):
                    await asyncio.sleep(0.001)
            tasks.pop().cancel()
            with pytest.raises(Busy):
                async with turns.turn_without_thread("192.0.2.5", 0.01):
                    pass
            await asyncio.sleep(0)
            assert ([each.client for each in turns._waiting], came) == (
                ["192.0.2.1", "192.0.2.2", "192.0.2.3"], []
            )  # fmt: skip
        await asyncio.gather(*tasks)

    asyncio.run(all_asked())
    assert came == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    assert (turns._waiting, turns._under_way) == ([], {})


def test_a_turn_of_another_address_is_not_behind_those_of_one_that_has_its_half() -> None:
    turns = Turns(2)

    async def asked() -> None:
        async with turns.turn_without_thread("192.0.2.1", 9):
            waiting = asyncio.create_task(turns.turn_without_thread("192.0.2.1", 10).__aenter__())
            await asyncio.sleep(0)
            async with turns.turn_without_thread("192.0.2.2", 1):
                waiting.cancel()

    asyncio.run(asked())
    assert (turns._waiting, turns._under_way) == ([], {})


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


def test_requests_of_one_address_that_wait_keep_no_other_address_out() -> None:
    turns = Turns(4)

    async def asked(address: str) -> None:
        async with turns.turn_without_thread(address, 10):
            await asyncio.sleep(0)

    async def all_asked() -> None:
        with turns.turn("192.0.2.1", 0), turns.turn("192.0.2.1", 0):
            waiting = [asyncio.create_task(asked("192.0.2.1")) for _ in range(120)]
            await asyncio.sleep(0)
            assert len(turns._waiting) == 50
            with turns.turn("192.0.2.2", 0), turns.turn("192.0.2.3", 0):
                others = [asyncio.create_task(asked(f"192.0.2.{number}")) for number in range(10, 70)]
                await asyncio.sleep(0)
                assert len(turns._waiting) == 100
        ended = await asyncio.gather(*waiting, *others, return_exceptions=True)
        assert [type(each) for each in ended].count(Busy) == 80

    asyncio.run(all_asked())
    assert (turns._waiting, turns._under_way) == ([], {})
