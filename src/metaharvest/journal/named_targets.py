"""The targets as reports name them."""

from __future__ import annotations

from metaharvest.errors import SettingsError
from metaharvest.reports import NamedTarget, NamedTargets
from metaharvest.targets.base import Target
from metaharvest.targets.lookup import Targets
from metaharvest.targets.nothing import NoTarget


def named_targets(targets: Targets) -> NamedTargets:
    """The name of each site's own target, and of the common target of all others. Raises SettingsError."""
    own = {name: _of_site(targets, name) for name in targets.sites_with_their_own}
    return NamedTargets(_named_target(targets.default), own)


def _of_site(targets: Targets, name: str) -> NamedTarget:
    try:
        return _named_target(targets.of(name))
    except SettingsError:
        return NamedTarget("a repository that the settings name, and that cannot be used")


def _named_target(target: Target) -> NamedTarget:
    return NamedTarget(target.describe(), keeps=not isinstance(target, NoTarget))
