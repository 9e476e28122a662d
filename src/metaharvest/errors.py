"""Every exception of the package.

    MetaharvestError
    ├── SettingsError          the settings file, an environment variable or an option is wrong
    ├── ScheduleError          a site cannot be registered or changed as asked
    ├── DatabaseError          the database cannot be used
    │   ├── DatabaseUnavailable    it cannot be opened, read or written
    │   └── SchemaMismatch         its tables are older or newer than this program
    ├── LockHeld               another run is under way
    ├── RunLost                this run is no longer the one that may write
    └── HarvestError           an expected failure on the way of a document; carries findings
        ├── FetchError             a URL could not be fetched whole
        │   └── NotAsked               its server was not asked
    │       └── NoConnectionFree       the harvester has all the connections to it that it allows itself
        ├── ListError              a harvest list is not valid
        └── TargetError            the target refused, or did not answer

Expected failures become values (outcomes with findings) where the story is told; surprises propagate. Each message is a
sentence, or a few, for the person who can do something about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metaharvest.model import Finding

if TYPE_CHECKING:
    from metaharvest.fetch.slots import Line


class MetaharvestError(Exception):
    """The base of every exception raised on purpose."""


class SettingsError(MetaharvestError):
    """The settings file, an environment variable or an option is wrong; each problem is one sentence."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ScheduleError(MetaharvestError):
    """A site cannot be registered or changed as asked."""


class DatabaseError(MetaharvestError):
    """The database cannot be used."""


class DatabaseUnavailable(DatabaseError):
    """The database cannot be opened, read or written."""


class SchemaMismatch(DatabaseError):
    """The tables are missing, older or newer than this program."""


class LockHeld(MetaharvestError):
    """Another run is under way on the same database."""


class RunLost(MetaharvestError):
    """Another run has taken over; this one may not write any more."""


class HarvestError(MetaharvestError):
    """An expected failure. `transient`: it may be gone the next time, so it is worth another try."""

    def __init__(self, *findings: Finding, transient: bool = False) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings
        self.transient = transient


class FetchError(HarvestError):
    """A URL could not be fetched whole. `seconds` is how long that took to find out.

    `retry_after`: for so many seconds the server wants to be left alone. `counted`: it was not reached at all, which is
    counted over all sites already.
    """

    def __init__(
        self,
        *findings: Finding,
        transient: bool = False,
        seconds: float | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(*findings, transient=transient)
        self.seconds = seconds
        self.retry_after = retry_after
        self.counted = False


class NotAsked(FetchError):
    """A URL was not asked for, as its server, which `host` names, wants to be left alone or cannot be reached.

    `host` is empty where it is for what is wrong on this side.
    `retry_after` is None where it is not to be asked for in this run at all.
    """

    def __init__(self, finding: Finding, host: str, *, seconds: float, retry_after: float | None = None) -> None:
        super().__init__(finding, transient=True, seconds=seconds, retry_after=retry_after)
        self.host = host


class NoConnectionFree(NotAsked):
    """A URL was not asked for, as all connections to its host were in use; `line` is where to wait for one."""

    def __init__(self, finding: Finding, line: Line, *, seconds: float) -> None:
        super().__init__(finding, line.host, seconds=seconds)
        self.line = line


class ListError(HarvestError):
    """A harvest list is not valid; nothing of it may be harvested."""


class TargetError(HarvestError):
    """The target refused a document, or did not answer."""
