"""One call of the command: the settings file that was named, and the harvester that it describes."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metaharvest.app import Harvester
    from metaharvest.harvest.limits import RunLimits


class Invocation:
    """What every command is given. `config` is the settings file, if one was named; `limits`: see main()."""

    def __init__(self, config: Path | None, limits: RunLimits | None = None) -> None:
        self.config = config
        self.limits = limits

    @cached_property
    def harvester(self) -> Harvester:
        """The harvester of the settings file, whose settings are right. Raises SettingsError."""
        from metaharvest.app import Harvester
        from metaharvest.config.settings import load

        return Harvester(load(self.config), limits=self.limits)

    def close(self) -> None:
        """Close the database, if it was opened."""
        if "harvester" in vars(self):
            self.harvester.close()
