"""The numbers that bound the memory and the pace of a run. Settings are for people; these are for developers."""

from __future__ import annotations

from dataclasses import field

from metaharvest.journal.writer import GroupLimits
from metaharvest.model.values import frozen


@frozen
class CheckLimits:
    """The limits that decide where documents are checked; see checker.py."""

    few: int = 100
    """Documents of a run that are checked before worker processes would be up."""

    small: int = 10_000
    """Bytes of a document whose check is certain to be short: only these are checked in the run's own process."""

    large: int = 1_000_000
    """Bytes from which a document goes to the thorough workers at once."""

    quick_seconds: float = 5.0
    """Seconds for one call of a quick worker; the documents of a longer call are checked one by one."""

    transform_seconds: float = 3.0
    """Processor time that a site's filters and normalising may take for one document."""

    patience: float = 30.0
    """Seconds that a call may exceed its time limit before its worker counts as hanging."""

    quick_workers: int | None = None
    """None: one for each core except the core of the run's own process, at least one and at most four."""


@frozen
class RunLimits:
    """The limits of one run."""

    sites_at_once: int = 32
    """Sites that are harvested in parallel; see FairLimiter for the sites of one host. harvester.workers limits the
    requests of all together.
    """

    site_seconds: float = 60.0
    """Seconds after which a site leaves its place to another, and goes on: slow servers hold up no other site. Up to
    four times as many sites may then be under way.
    """

    batch: int = 1000
    """Documents that are planned together: the number in one question to the target."""

    memory: int = 64_000_000
    """Bytes of fetched documents that may wait to be checked and stored; above it, no further one is fetched."""

    watch_seconds: float = 2.0
    """Seconds after which a run looks for the stops of people again, and writes its live numbers."""

    group: GroupLimits = field(default_factory=GroupLimits)
    check: CheckLimits = field(default_factory=CheckLimits)
