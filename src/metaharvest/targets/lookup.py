"""Which target the settings name: one of this program, or one that another distribution adds.

An entry point in the group `metaharvest.targets` is called with the settings and the engine of the harvester's own
database, and returns a Target (see base.py); its name is what `[target] kind` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metaharvest.config.kinds import TARGETS
from metaharvest.errors import SettingsError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from metaharvest.config.settings import Settings
    from metaharvest.targets.base import Target


def target_for(settings: Settings, engine: Engine) -> Target:
    """The target of `[target] kind`. Raises SettingsError if there is no such kind, or it cannot be loaded."""
    kind = settings.target.kind
    if kind == "embedded":
        from metaharvest.database.engine import readers
        from metaharvest.targets.embedded import EmbeddedTarget

        return EmbeddedTarget(readers(engine))
    try:
        make = TARGETS.load(kind)
    except ValueError as error:
        raise SettingsError(f"{settings.place('target', 'kind')} = '{kind}' cannot be used: {error}.") from error
    target: Target = make(settings, engine)
    return target
