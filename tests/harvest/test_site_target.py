"""The target of a site: its refusals of single documents are answers."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from metaharvest.errors import TargetError
from metaharvest.harvest.site_target import SiteTarget, SiteTargetHealth, _UsedTarget
from metaharvest.model import Finding


class Refusing:
    """A target, and its session, that refuses each change: `transient` as the error of an outage."""

    uploads_at_once = 1
    writes_in_journal = False

    def __init__(self, *, transient: bool) -> None:
        self._transient = transient

    def delete(self, document_id: str) -> bool:
        raise TargetError(Finding("target.refused", "It is not allowed.", "Ask."), transient=self._transient)


@pytest.mark.parametrize(("transient", "is_given_up"), [(False, False), (True, True)])
def test_refused_deletions_do_not_give_a_target_up(transient: bool, is_given_up: bool) -> None:
    async def delete_ten() -> bool:
        refusing = cast(Any, Refusing(transient=transient))
        used = _UsedTarget(refusing)
        target = SiteTarget(refusing, used, SiteTargetHealth(used.health), cast(Any, None))
        for number in range(10):
            with pytest.raises(TargetError):
                await target.delete(f"alder.{number}")
        used.threads.shutdown()
        return bool(used.health.given_up)

    assert asyncio.run(delete_ten()) is is_given_up
