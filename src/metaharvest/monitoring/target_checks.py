"""The health checks of targets: does each answer, with which identity of ours, and with which rights."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import Empty, SimpleQueue

from metaharvest.config.secret_references import masked
from metaharvest.errors import SettingsError
from metaharvest.model import Site
from metaharvest.monitoring import Check, problem
from metaharvest.sites.rows import BrokenSite
from metaharvest.targets.base import Standing, Target
from metaharvest.targets.lookup import Targets
from metaharvest.text import one_line

LIMIT = 90.0
"""Seconds to wait for one target: its own time-outs are for each connection and each answer."""

_ENOUGH = 3
"""The number of logins without a difference, after which a target is not asked about further ones."""


def check_targets(targets: Targets, sites: Sequence[Site | BrokenSite], limit: float = LIMIT) -> Iterator[Check]:
    """The targets that the harvest uses: the target of all sites, targets of single sites, and logins of sites.

    A site's own login is reported if the target gives it another answer than the others. Targets that ask for no login
    of sites are not asked about each of them.
    """
    asked = _Asked(limit)
    registered = {site.name: site for site in sites if isinstance(site, Site)}
    own = targets.sites_with_their_own
    yield from asked.checks("target", lambda: targets.default, None)
    for name in own:
        yield from asked.checks(f"target of {name}", partial(targets.of, name), registered.get(name))
    for site in registered.values():
        if site.enabled and site.ldap_name and site.name not in own:
            yield from asked.checks(f"target as {site.name}", partial(targets.of, site.name), site)


def check_target(name: str, find: Callable[[], Target], site: Site | None) -> Iterator[Check]:
    """One target, logged in as this site or as its own settings say, under the name `name`."""
    yield from _Asked(LIMIT).checks(name, find, site)


class _Asked:
    """The targets that were asked: the answer of each without a site, and the ones that did not answer in time.

    Each is known by its `id`: a target of another distribution may have no hash.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._said = defaultdict[int, set[Standing]](set)
        self._indifferent = Counter[int]()
        self._done: set[int] = set()

    def checks(self, name: str, find: Callable[[], Target], site: Site | None) -> Iterator[Check]:
        """The answers of the target that `find` gives, under this name, without repeated ones."""
        try:
            target = find()
        except SettingsError as error:
            yield from (problem(name, sentence) for sentence in error.problems)
            return
        key = id(target)
        if key in self._done:
            return
        before, is_new = frozenset(self._said[key]), False
        for standing in self._standings(target, site):
            if standing not in before:
                is_new = True
                yield Check(name, standing.status.upper(), standing.sentence)
            if site is None or standing.status == "problem":
                self._said[key].add(standing)
        self._indifferent[key] += not is_new
        if self._indifferent[key] >= _ENOUGH:
            self._done.add(key)

    def _standings(self, target: Target, site: Site | None) -> Iterator[Standing]:
        """The answer of the target, from a thread that is abandoned after the time is up."""
        answers: SimpleQueue[Standing | None] = SimpleQueue()

        def ask() -> None:
            try:
                for standing in target.check(site):
                    answers.put(standing)
            except Exception as error:  # noqa: BLE001 - not our code, and reported
                answers.put(Standing("problem", f"It could not be asked: {one_line(masked(str(error)))}"))
            answers.put(None)

        threading.Thread(target=ask, name="target-check", daemon=True).start()
        until = time.monotonic() + self._limit
        try:
            while (answer := answers.get(timeout=max(0.0, until - time.monotonic()))) is not None:
                yield answer
        except Empty:
            self._done.add(id(target))
            yield Standing("problem", f"{target.describe()}: it has not answered within {self._limit:g} seconds.")
