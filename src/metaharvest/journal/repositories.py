"""The targets as reports name them."""

from __future__ import annotations

from metaharvest.errors import SettingsError
from metaharvest.reports import NamedRepository, Repositories
from metaharvest.targets.base import Target
from metaharvest.targets.lookup import Targets
from metaharvest.targets.nothing import NoTarget


def named_repositories(targets: Targets) -> Repositories:
    """The name of each site's own target, and of the common target of all others. Raises SettingsError."""
    own = {name: _of_site(targets, name) for name in targets.sites_with_their_own}
    return Repositories(_repository(targets.default), own)


def _of_site(targets: Targets, name: str) -> NamedRepository:
    try:
        return _repository(targets.of(name))
    except SettingsError:
        return NamedRepository("a repository that the settings name, and that cannot be used")


def _repository(target: Target) -> NamedRepository:
    return NamedRepository(target.describe(), keeps=not isinstance(target, NoTarget))
