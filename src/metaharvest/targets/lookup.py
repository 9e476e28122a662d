"""The target that the settings name for a site: one of this program, or one that another distribution adds.

An entry point in the group `metaharvest.targets` is called with settings and the engine of the harvester's own
database, and returns a Target (see base.py) or raises SettingsError; `kind` in the settings is its name. The section
`settings.target` is its own: the section of the site, or of [targets.NAME], if it is made for one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from metaharvest.config.kinds import TARGETS
from metaharvest.config.secret_references import masked
from metaharvest.config.target_settings import NamedTarget, NamedTargets
from metaharvest.errors import MetaharvestError, SettingsError
from metaharvest.text import one_line

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from metaharvest.config.settings import Settings
    from metaharvest.config.target_settings import TargetSettings
    from metaharvest.targets.base import Target

log = logging.getLogger(__name__)


class Targets:
    """The targets of the settings, each made at its first use; `given` replaces all of them.

    `wrap` is put around each, for rehearsals.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        given: Target | None = None,
        wrap: Callable[[Target], Target] = lambda target: target,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._given = given
        self._wrap = wrap
        self._made: list[tuple[TargetSettings, Target]] = []

    @property
    def sites_with_their_own(self) -> list[str]:
        """The names of the sites with a target of their own in the settings; none in a rehearsal of all sites."""
        if self._settings.target.kind == "none":
            return []
        return [name for name, site in self._settings.sites.items() if site.target]

    @property
    def default(self) -> Target:
        """The target of [target]. Raises SettingsError."""
        return self._target(self._settings.target, "target")

    def of(self, site_name: str) -> Target:
        """The target of the site of this name. Raises SettingsError."""
        return self._target(self._settings.target_of(site_name), f'sites."{site_name}".target')

    def named(self, name: str) -> Target:
        """The target of [targets.NAME]; `target` means [target], `embedded` the embedded one. Raises SettingsError."""
        if name in self._settings.targets:
            return self._target(self._settings.targets[name], f'targets."{name}"')
        if name == "target":
            return self.default
        if name == "embedded":
            return self._target(type(self._settings.target)(), "target")
        known = ", ".join(("target", "embedded", *self._settings.targets))
        raise SettingsError(f"There is no target '{name}'. Known are: {known}. Others are sections [targets.NAME].")

    def name_all(self) -> NamedTargets:
        """The names of the common target, and of each site's own one. Raises SettingsError."""
        return NamedTargets(
            _name_of(self.default), {name: self._name_of_site(name) for name in self.sites_with_their_own}
        )

    def _name_of_site(self, site_name: str) -> NamedTarget:
        try:
            return _name_of(self.of(site_name))
        except SettingsError:
            return NamedTarget("a repository that the settings name, and that cannot be used")

    def _target(self, wanted: TargetSettings, header: str) -> Target:
        """The target of these settings, which come from the section `header`."""
        for known, made in self._made:
            if known == wanted:
                return made
        is_default = wanted == self._settings.target
        settings = self._settings if is_default else self._settings.with_target(wanted, header)
        target = self._wrap(self._given or target_for(settings, self._engine))
        self._made.append((wanted, target))
        return target


def _name_of(target: Target) -> NamedTarget:
    from metaharvest.targets.nothing import NoTarget

    return NamedTarget(target.describe(), keeps=not isinstance(target, NoTarget))


def target_for(settings: Settings, engine: Engine) -> Target:
    """The target of `settings.target`. Raises SettingsError if there is no such kind, or it cannot be made."""
    kind = settings.target.kind
    if kind == "embedded":
        from metaharvest.database.engine import readers
        from metaharvest.targets.embedded import EmbeddedTarget

        return EmbeddedTarget(readers(engine))
    if kind == "none":
        from metaharvest.targets.nothing import NoTarget

        return NoTarget()
    if kind == "metacat":
        from metaharvest.targets.metacat.target import MetacatTarget

        return MetacatTarget(settings)
    if kind == "folder":
        from metaharvest.targets.folder.target import FolderTarget

        own = settings.target
        assert own.folder is not None  # every target of this kind has one
        return FolderTarget(settings.path(own.folder), own.layout, own.files_per_folder, engine)
    if kind == "dataone":
        from metaharvest.targets.dataone.target import DataOneTarget

        return DataOneTarget(settings, engine)
    cannot_be_used = f"{settings.place('target', 'kind')} = '{kind}' cannot be used"
    try:
        make = TARGETS.load(kind)
    except ValueError as error:
        raise SettingsError(f"{cannot_be_used}: {error}.") from error
    try:
        target: Target = make(settings, engine)
    except MetaharvestError:
        raise
    except Exception as error:
        # A mistake of the distribution that adds it: its developer needs the traceback.
        log.exception("The target of the kind %s could not be made", kind)
        raise SettingsError(f"{cannot_be_used}: {type(error).__name__}: {one_line(masked(str(error)))}.") from error
    return target
