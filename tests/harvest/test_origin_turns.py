"""The sites of one origin list one after another, and go on with their deletions when all have listed or ended."""

from __future__ import annotations

import asyncio
import time

import pytest

from metaharvest.harvest.deadlines import Deadlines, StopSignal
from metaharvest.harvest.origin_turns import OriginTurns


def test_sites_list_one_after_another_and_delete_when_all_have_listed() -> None:
    said: list[str] = []

    async def harvest(name: str, turns: OriginTurns) -> None:
        async with turns.turn() as turn:
            for step in ("begins", "ends"):
                said.append(f"{name} {step} its list")
                await asyncio.sleep(0)
            await turn.wait_for_others()
            for step in ("begins", "ends"):
                said.append(f"{name} {step} its deletions")
                await asyncio.sleep(0)

    async def run() -> None:
        turns = OriginTurns(3)
        await asyncio.gather(*(harvest(name, turns) for name in "abc"))

    asyncio.run(run())
    listed, deleted = said[:6], said[6:]
    assert listed == [f"{name} {step} its list" for name in "abc" for step in ("begins", "ends")]
    # The last one to list keeps its turn.
    assert deleted == [f"{name} {step} its deletions" for name in "cab" for step in ("begins", "ends")]


@pytest.mark.parametrize("end", ["fails", "ends early", "is cancelled"])
def test_a_site_that_never_comes_to_the_end_of_its_list_holds_up_no_other_one(end: str) -> None:
    ended: list[str] = []

    async def harvest_well(turns: OriginTurns) -> None:
        async with turns.turn() as turn:
            await turn.wait_for_others()
            ended.append("a")

    async def harvest_badly(turns: OriginTurns) -> None:
        async with turns.turn():
            if end == "fails":
                raise ValueError
            if end == "is cancelled":
                await asyncio.Event().wait()

    async def run() -> None:
        turns = OriginTurns(2)
        well, badly = asyncio.create_task(harvest_well(turns)), asyncio.create_task(harvest_badly(turns))
        await asyncio.sleep(0.01)
        badly.cancel()
        await asyncio.wait_for(asyncio.gather(well, badly, return_exceptions=True), 5)

    asyncio.run(run())
    assert ended == ["a"]


@pytest.mark.parametrize("waits_for", ["its first turn", "the others"])
def test_a_site_that_is_cancelled_as_it_waits_lets_the_others_go_on(waits_for: str) -> None:
    ended: list[str] = []

    async def harvest(name: str, turns: OriginTurns) -> None:
        async with turns.turn() as turn:
            await asyncio.sleep(0.02 if name == "b" else 0)
            await turn.wait_for_others()
            ended.append(name)

    async def run() -> None:
        turns = OriginTurns(3)
        tasks = [asyncio.create_task(harvest(name, turns)) for name in "abc"]
        await asyncio.sleep(0.01)
        tasks["abc".index("a" if waits_for == "the others" else "c")].cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)

    asyncio.run(run())
    assert sorted(ended) == (["b", "c"] if waits_for == "the others" else ["a", "b"])


def test_a_single_site_waits_for_nobody_and_listing_twice_counts_once() -> None:
    async def run() -> None:
        async with OriginTurns(1).turn() as turn:
            await asyncio.wait_for(turn.wait_for_others(), 1)
            await asyncio.wait_for(turn.wait_for_others(), 1)

    asyncio.run(run())


def test_the_time_for_which_a_site_waits_does_not_count_against_its_deadline() -> None:
    deadlines = Deadlines(StopSignal()).after_run(1000).after_site(100)
    other = Deadlines(StopSignal(), deadlines.moments[:1]).after_site(100)
    run, site = (each.at for each in deadlines.moments)
    with deadlines.site_waits():
        time.sleep(0.05)
    moved_run, moved_site = (each.at for each in deadlines.moments)
    assert moved_run == run
    assert site + 0.05 <= moved_site <= site + 5
    assert 99 < other.left() < 100
    with Deadlines(StopSignal()).site_waits():
        pass


@pytest.mark.parametrize(("ends", "unread"), [("well", []), ("early", ["b"]), ("failed", ["b"]), ("retry", [])])
def test_a_site_knows_whose_list_did_not_come_to_its_end(ends: str, unread: list[str]) -> None:
    async def run() -> list[str]:
        turns = OriginTurns(2)

        async def other() -> None:
            async with turns.turn("" if ends == "retry" else "b") as turn:
                if ends in ("well", "early"):
                    await turn.wait_for_others(to_the_end=ends == "well")

        async with turns.turn("a") as turn:
            others = asyncio.create_task(other())
            await turn.wait_for_others()
            await others
            return list(turn.unread)

    assert asyncio.run(run()) == unread
