"""The limits on requests: places are never lost, whenever waiting ends."""

from __future__ import annotations

import asyncio

from metaharvest.fetch.limits import FairLimiter, WaitedTooLong, Waiting


def test_a_place_that_comes_free_as_waiting_ends_is_not_lost() -> None:
    async def refused(limiter: FairLimiter, site_id: int) -> bool:
        try:
            await limiter.acquire(site_id, 60)
        except WaitedTooLong:
            return True
        limiter.release(site_id)
        return False

    async def run() -> list[bool]:
        waiting = Waiting()
        limiter = FairLimiter(4, waiting)
        held = [1, 1, 2, 3]
        for site_id in held:
            await limiter.acquire(site_id, 60)
        waiters = [asyncio.create_task(refused(limiter, site_id)) for site_id in (4, 5, 6)]
        await asyncio.sleep(0)
        waiting.end()
        while not all(waiter.cancelling() for waiter in waiters):
            await asyncio.sleep(0)
        for site_id in held:
            limiter.release(site_id)
        ended = await asyncio.gather(*waiters)
        for site_id in held:  # raises if any of the four places is not free
            await limiter.acquire(site_id, 0)
        return ended

    assert asyncio.run(run()) == [True, True, True]
