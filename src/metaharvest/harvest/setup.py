"""The parts of an installation with which it harvests."""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy import Engine

from metaharvest.config.settings import Settings
from metaharvest.errors import SettingsError
from metaharvest.harvest.limits import RunLimits
from metaharvest.journal.journal import Clock
from metaharvest.model.values import frozen
from metaharvest.sources.lookup import SourceFor
from metaharvest.targets.lookup import Targets
from metaharvest.targets.nothing import NoTarget


@frozen
class HarvestSetup:
    """The parts that each run has: `source` makes the source of a site, `limits` are for developers."""

    settings: Settings
    engine: Engine
    targets: Targets
    source: SourceFor
    clock: Clock
    limits: RunLimits

    def goes_nowhere(self, site_name: str) -> bool:
        """True if the site has no target: then its part of the run is a rehearsal."""
        with suppress(SettingsError):  # it is reported where the target is opened
            return isinstance(self.targets.of(site_name), NoTarget)
        return False
