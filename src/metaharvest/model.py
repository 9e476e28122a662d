"""The values that travel through a run, each frozen and named for its stage.

`Site` -> `ListedDocument` -> `Intent` -> `FetchedDocument` -> `Verdict` -> `Outcome`, and `Finding` for what is wrong
or doubtful on the way. No value is passed on half-filled and completed later. Nothing here reads a clock, a
file, a socket or a database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from itertools import islice
from pathlib import Path

MAX_FINDINGS = 100
"""How many findings one document or one list may have; the rest is told as a number."""

MAX_EXCERPT = 300
"""Characters of an offending excerpt that a finding carries."""

Network = IPv4Network | IPv6Network


class Level(StrEnum):
    """How grave a finding is: an error keeps the document out, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Unit(StrEnum):
    """The unit of a site's update frequency."""

    DAYS = "days"
    WEEKS = "weeks"
    MONTHS = "months"


class Notify(StrEnum):
    """When a site's contacts get a report."""

    ALWAYS = "always"
    ON_CHANGE = "on-change"
    ON_ERROR = "on-error"
    NEVER = "never"


class SiteRunKind(StrEnum):
    """Why a site is harvested in this run."""

    SCHEDULED = "scheduled"
    NAMED = "named"
    RETRY = "retry"


class SiteRunStatus(StrEnum):
    """How one site's part of a run stands, or ended."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    WITH_ERRORS = "with-errors"
    LIST_FAILED = "list-failed"
    INCOMPLETE = "incomplete"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class RunStatus(StrEnum):
    """How a run stands, or ended; `imported`: nothing was harvested, it holds the log of another harvester."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    WITH_ERRORS = "with-errors"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    IMPORTED = "imported"


class Action(StrEnum):
    """What is to be done with a listed document, decided before anything is fetched."""

    INSERT = "insert"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    STALE = "stale"
    DUPLICATE = "duplicate"
    REFUSE = "refuse"
    """The document id belongs to another site."""


class OutcomeKind(StrEnum):
    """How one listed document ended: a closed set, exactly one per listed document."""

    INSERTED = "inserted"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    STALE = "stale"
    DUPLICATE = "duplicate"
    DEFERRED = "deferred"
    ACCESS_ERROR = "access-error"
    INVALID = "invalid"
    UPLOAD_ERROR = "upload-error"

    @property
    def is_error(self) -> bool:
        """True for the outcomes that somebody has to mend."""
        return self in ERROR_OUTCOMES

    @property
    def column(self) -> str:
        """The name of this outcome's column in harvest_site_run."""
        return self.value.replace("-", "_")


ERROR_OUTCOMES = frozenset({OutcomeKind.ACCESS_ERROR, OutcomeKind.INVALID, OutcomeKind.UPLOAD_ERROR})
ATTENTION_OUTCOMES = frozenset({OutcomeKind.STALE, OutcomeKind.DUPLICATE, OutcomeKind.DEFERRED})

LOG_LEVELS = ("error", "warning", "notice", "info", "debug")
"""The levels of operations in the log, the gravest first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong (error) or doubtful (warning), in words for the person who can mend it.

    `rule` is an id listed in docs/rules.md. `line` and `column` count from 1. `docid` names the list's entry that a
    finding about a harvest list concerns, as it is written there, and is empty elsewhere.
    """

    rule: str
    message: str
    remedy: str = ""
    level: Level = Level.ERROR
    line: int | None = None
    column: int | None = None
    xpath: str = ""
    excerpt: str = ""
    docid: str = ""

    @property
    def is_error(self) -> bool:
        """True if this finding alone keeps a document or a list out."""
        return self.level is Level.ERROR


def limited(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The first MAX_FINDINGS findings, and one that says how many were left out, as grave as the gravest of those."""
    iterator = iter(findings)
    kept = tuple(islice(iterator, MAX_FINDINGS))
    left_out = Counter(finding.level for finding in iterator)
    if not left_out:
        return kept
    message = f"{left_out.total():,} more findings of this document are not shown."
    remedy = "Mend those shown first; many of the others may go with them."
    return (*kept, Finding("findings.more", message, remedy, Level.ERROR if left_out[Level.ERROR] else Level.WARNING))


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """What one site may have of its own; None: as the settings say.

    `ca_file` has certificates to trust for this site alone, beside the others; a relative path as in the settings.
    """

    package_id_mismatch: Level | None = None
    allow_networks: tuple[Network, ...] = ()
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class ListVersion:
    """Which version of its list a site served: the server's own words for it, and the SHA-256 of its bytes."""

    etag: str | None
    last_modified: str | None
    sha256: str


@dataclass(frozen=True, slots=True)
class Site:
    """One registered source of documents: a checked row of harvest_site_schedule.

    `ldap_name` and `ldap_password`, a reference to a secret, are the site's login at a target that asks for one.
    `file_folder` is the folder below which the settings allow it file: URLs, as `Settings.applied_to` adds it.
    """

    site_id: int
    name: str
    list_url: str
    contacts: tuple[str, ...]
    frequency: int = 1
    unit: Unit = Unit.DAYS
    next_harvest: date | None = None
    last_harvest: date | None = None
    day_of_month: int | None = None
    source_kind: str = "harvest-list"
    notify: Notify = Notify.ALWAYS
    enabled: bool = True
    options: SiteOptions = field(default_factory=SiteOptions)
    list_version: ListVersion | None = None
    ldap_name: str | None = None
    ldap_password: str | None = None
    file_folder: Path | None = None


OriginalColumns = tuple[str, int] | tuple[None, None]
"""The original Harvester's columns scope and identifier; None if a source has none."""


@dataclass(frozen=True, slots=True)
class SiteRun:
    """One site's part of a run, as the journal opened it. `resumed`: an earlier run began it and logged some of it.

    `original_columns` gives those of a document id of this site. `known_list` is the version of the site's list that
    the ledger mirrors, `known_documents` how many documents it named; None: the list is to be read.
    """

    site_run_id: int
    site: Site
    kind: SiteRunKind
    original_columns: Callable[[str], OriginalColumns]
    resumed: bool = False
    known_list: ListVersion | None = None
    known_documents: int = 0


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """One document as its site lists it. `line` is its place in the list, if it came from one.

    `by_itself`: no list names it, so that there is no docid to compare its packageId with; `twin` is then another
    document with the same packageId.
    """

    document_id: str
    revision: int
    document_type: str
    url: str
    line: int | None = None
    by_itself: bool = False
    twin: str = ""

    @property
    def docid(self) -> str:
        """Document id and revision, as people write them: `knb-lter-gce.109.6`."""
        return f"{self.document_id}.{self.revision}"


@dataclass(frozen=True, slots=True)
class Holding:
    """What the target holds of one document: its highest revision. `site_id` is the site it belongs to, if known.

    `taken_from` are the sites from which an administrator has transferred it to another one, each with the day since
    which it belongs to the site that has it now.
    """

    document_id: str
    revision: int
    sha256: str | None = None
    site_id: int | None = None
    taken_from: tuple[tuple[int, date], ...] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """What is to be done with a listed document. `findings` say why, if nothing will be fetched.

    `held_sha256` is that of the highest revision that the target holds, if it is known.
    """

    document: ListedDocument
    action: Action
    target_revision: int | None = None
    findings: tuple[Finding, ...] = ()
    held_sha256: str | None = None

    @property
    def wants_fetch(self) -> bool:
        """True if the document has to be fetched."""
        return self.action in (Action.INSERT, Action.UPDATE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checks say of a fetched document: acceptable if no finding is an error."""

    findings: tuple[Finding, ...] = ()

    @property
    def acceptable(self) -> bool:
        """True if the document may go into the target."""
        return not any(finding.is_error for finding in self.findings)


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A document's bytes exactly as received. `seconds` is how long its server took."""

    document: ListedDocument
    content: bytes
    sha256: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one listed document ended.

    `seconds` is the time its server took, `size` its length in bytes; both None if nothing was fetched. `transient`
    marks a failure that may be gone the next time (a time-out, a 503), or what was put off for such failures of its
    server: it is tried again in the next run, for some nights. What was put off for other reasons always is.
    `unconfirmed`: an upload was begun, and it is not known whether it arrived; the target is asked before anything is
    sent again.
    """

    document: ListedDocument
    kind: OutcomeKind
    target_revision: int | None = None
    findings: tuple[Finding, ...] = ()
    seconds: float | None = None
    size: int | None = None
    sha256: str | None = None
    transient: bool = False
    unconfirmed: bool = False

    def as_error(self, kind: OutcomeKind, *findings: Finding) -> Outcome:
        """The same document, ended badly after all; what had been found before stays."""
        return replace(self, kind=kind, findings=(*self.findings, *findings))
