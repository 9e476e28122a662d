"""The numbers by which a run keeps to its memory and its pace. Settings are for people; these are for developers."""

from __future__ import annotations

from dataclasses import dataclass, field

from metaharvest.journal.writer import GroupLimits


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """Which documents are checked where; see checker.py."""

    few: int = 100
    """So many documents of a run are checked before worker processes would be up."""

    small: int = 10_000
    """Bytes up to which a document is certain to be checked soon: only such are checked in the run's own process."""

    large: int = 1_000_000
    """Bytes from which a document goes to the thorough workers at once."""

    quick_seconds: float = 5.0
    """What a quick worker may take for one call; the documents of a call that takes longer are checked one by one."""

    transform_seconds: float = 3.0
    """Processor time that a site's filters and normalising may take for one document."""

    patience: float = 30.0
    """Seconds beyond its time limit that a call is waited for, before its worker is taken for one that hangs."""

    quick_workers: int | None = None
    """None: one for each core but that of the run's own process, at least one and at most four."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of one run."""

    sites_at_once: int = 32
    """Sites that are harvested side by side; see FairLimiter for the sites of one host. harvester.workers limits the
    requests of all together."""

    site_seconds: float = 60.0
    """Seconds after which a site leaves its place to another, and goes on: servers that drag out what they send hold up
    no other site. With those that do there are at most four times as many sites under way."""

    batch: int = 1000
    """Documents that are planned together: as many as the target is asked about at a time."""

    memory: int = 64_000_000
    """Bytes of fetched documents that may wait to be checked and stored before no further one is asked for."""

    group: GroupLimits = field(default_factory=GroupLimits)
    check: CheckLimits = field(default_factory=CheckLimits)
