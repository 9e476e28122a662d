"""The targets of the settings, as reports name them. Frozen values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from metaharvest.text import joined, one_line


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A target in a few words. `keeps` is false if it only looks at documents, and forgets them."""

    words: str
    keeps: bool = True


@dataclass(frozen=True, slots=True)
class NamedTargets:
    """The targets by the names of their sites; `default` is the target of all others, and of the run as a whole."""

    default: NamedTarget
    of_sites: Mapping[str, NamedTarget] = field(default_factory=dict)

    def of(self, site_name: str) -> NamedTarget:
        """The target of the site of this name."""
        return self.of_sites.get(site_name, self.default)

    def describe(self, site_names: Iterable[str]) -> str:
        """The target, and those that some of these sites have for themselves."""
        own = [f"{name}: {self.of_sites[name].words}" for name in sorted(set(site_names) & set(self.of_sites))]
        return one_line("; ".join([self.default.words, *own]), 1000)

    def went_nowhere(self, site_names: Collection[str]) -> str:
        """A sentence about the sites without a target; empty if there are none."""
        names = sorted(name for name in set(site_names) if not self.of(name).keeps)
        if not names:
            return ""
        whose = "" if len(names) == len(set(site_names)) else f" of {one_line(joined(names), 300)}"
        return f"Nothing{whose} was uploaded: no repository is set, so documents were only fetched and checked."
