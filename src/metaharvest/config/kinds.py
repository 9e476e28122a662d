"""The kinds of targets, sources, jobs and stages: of this program, and of other distributions that add some.

A distribution adds a kind by an entry point in the group `metaharvest.targets`, `metaharvest.sources`,
`metaharvest.jobs` or `metaharvest.stages`: its name is the kind, and its object makes the target or source, or is the
kind of jobs or the stage. `metaharvest.targets.lookup`, `metaharvest.sources.lookup`, `metaharvest.services.job_kinds`
and `metaharvest.pipeline.stage` describe it. A kind of this program cannot be replaced.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from metaharvest.model.values import frozen
from metaharvest.text import one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@frozen
class Kinds:
    """The kinds of one group of entry points. Entry points are read only for kinds that are not `built_in`."""

    group: str
    built_in: tuple[str, ...]

    def __contains__(self, kind: object) -> bool:
        """True if there is such a kind; nothing of another distribution is imported for that."""
        return kind in self.built_in or kind in _installed(self.group, tuple(sys.path))

    def names(self) -> list[str]:
        """All kinds, first the kinds of this program."""
        return [*self.built_in, *sorted(_installed(self.group, tuple(sys.path)).keys() - set(self.built_in))]

    def load(self, kind: str) -> Any:
        """The object of the entry point `kind`. Raises ValueError with a sentence if it is missing or broken."""
        entry_point = _installed(self.group, tuple(sys.path)).get(kind)
        if entry_point is None:
            raise ValueError(f"there is no such kind; known are {', '.join(self.names())}")
        try:
            return entry_point.load()
        except Exception as error:
            distribution = entry_point.dist.name if entry_point.dist else entry_point.value
            reason = one_line(f"{type(error).__name__}: {error}")
            raise ValueError(f"{distribution}, which adds this kind, cannot be loaded: {reason}") from error


TARGETS = Kinds("metaharvest.targets", ("embedded", "none", "dataone", "metacat", "folder"))
SOURCES = Kinds("metaharvest.sources", ("harvest-list", "oai-pmh"))
JOBS = Kinds("metaharvest.jobs", ("harvest_site", "close_run", "deliver", "pipeline"))
STAGES = Kinds("metaharvest.stages", ("cleaning", "full-text", "extraction", "duplicates", "index"))


@lru_cache(maxsize=8)
def _installed(group: str, _path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """The entry points of a group by name, read once for a search path: a large schedule asks for each of its rows."""
    from importlib.metadata import entry_points

    return {entry_point.name: entry_point for entry_point in entry_points(group=group)}
