"""The parts of an installation with which it harvests."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Engine

from metaharvest.config.settings import Settings
from metaharvest.harvest.limits import RunLimits
from metaharvest.journal.journal import Clock
from metaharvest.sources.lookup import SourceFor
from metaharvest.targets.lookup import Targets


@dataclass(frozen=True, slots=True)
class HarvestSetup:
    """The parts that each run has: `source` makes the source of a site, `limits` are for developers."""

    settings: Settings
    engine: Engine
    targets: Targets
    source: SourceFor
    clock: Clock
    limits: RunLimits
