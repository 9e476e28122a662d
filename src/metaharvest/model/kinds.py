"""The closed sets of words that values are made of: levels, units, kinds, states, actions, outcomes, stages, roles."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum


class Level(StrEnum):
    """The level of a finding: an error keeps the document out, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Unit(StrEnum):
    """The unit of a site's update frequency."""

    DAYS = "days"
    WEEKS = "weeks"
    MONTHS = "months"


class Notify(StrEnum):
    """The occasions on which a site's contacts get a report."""

    ALWAYS = "always"
    ON_CHANGE = "on-change"
    ON_ERROR = "on-error"
    NEVER = "never"


class ValidationLevel(StrEnum):
    """The check of documents: well-formed; by the schema of their format as well; or accepted in any form.

    Without a level, documents are checked as EML.
    """

    STRICT = "strict"
    VERY_STRICT = "very-strict"
    LOOSE = "loose"


class Deletions(StrEnum):
    """What the target does with the document of a record that its source repository deleted."""

    DELETE = "tell"
    KEEP = "note"


AS_SETTINGS = "as-settings"
"""The value of a site's option that is taken from the settings."""


class FullText(StrEnum):
    """What the pipeline does with the files of a site: it keeps them, or their text only, or looks for none."""

    KEEP = "keep"
    TEXT = "text"
    NONE = "none"


class ListMethod(StrEnum):
    """The way to fetch the records of an OAI-PMH repository: by ListRecords, or by ListIdentifiers and GetRecord."""

    LIST_RECORDS = "list-records"
    LIST_IDENTIFIERS = "list-identifiers"


class SiteRunKind(StrEnum):
    """The reason why a site is harvested in this run."""

    SCHEDULED = "scheduled"
    NAMED = "named"
    RETRY = "retry"


class SiteRunStatus(StrEnum):
    """The state or the end of one site's part of a run."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    WITH_ERRORS = "with-errors"
    LIST_FAILED = "list-failed"
    INCOMPLETE = "incomplete"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    FAILED = "failed"


HARVESTED = (SiteRunStatus.SUCCEEDED.value, SiteRunStatus.WITH_ERRORS.value)
"""The ends of site runs that harvested the site, and of runs that harvested a site."""

NOT_HARVESTED = (
    SiteRunStatus.LIST_FAILED.value,
    SiteRunStatus.INCOMPLETE.value,
    SiteRunStatus.INTERRUPTED.value,
    SiteRunStatus.FAILED.value,
)
"""The ends of site runs that failed as a whole. A site run that a person stopped is in neither."""


class RunStatus(StrEnum):
    """The state or the end of a run; `imported`: nothing was harvested, it holds the log of another harvester."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    WITH_ERRORS = "with-errors"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    IMPORTED = "imported"


class Action(StrEnum):
    """The decision about a listed document, before anything is fetched."""

    INSERT = "insert"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    STALE = "stale"
    DUPLICATE = "duplicate"
    REFUSE = "refuse"
    """The document id belongs to another site."""
    LEAVE_OUT = "leave-out"
    """The document was withdrawn."""


class OutcomeKind(StrEnum):
    """The result for one listed document: a closed set, exactly one per listed document."""

    INSERTED = "inserted"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    FILTERED = "filtered"
    STALE = "stale"
    DUPLICATE = "duplicate"
    DEFERRED = "deferred"
    ACCESS_ERROR = "access-error"
    INVALID = "invalid"
    UPLOAD_ERROR = "upload-error"

    @property
    def is_error(self) -> bool:
        """True for the outcomes that need a correction."""
        return self in ERROR_OUTCOMES

    @property
    def column(self) -> str:
        """The name of this outcome's column in harvest_site_run."""
        return self.value.replace("-", "_")


class DocumentState(StrEnum):
    """The state of a document in the ledger: exactly one for each row of harvest_document."""

    HELD = "held"
    """The target has it as its site listed it last."""
    LEFT_OUT = "left-out"
    """It is not for the target: filtered, withdrawn, or of a lower revision than the target's."""
    FAILED = "failed"
    """It could not be fetched, checked or uploaded. next_attempt: the day of the next try, if one is planned."""
    DEFERRED = "deferred"
    """It was put off. next_attempt: the day of the next try; none: the next harvest of its site."""
    PENDING = "pending"
    """An upload of it was begun, and perhaps arrived: the target is asked."""
    PENDING_OLDER = "pending-older"
    """The same, and a list showed an older version meanwhile: when the target has answered, it is fetched."""
    OLDER = "older"
    """A list showed an older version than is known: it is fetched individually."""
    REAPPEARED = "reappeared"
    """It was deleted, and a list showed an older version of it: it is fetched individually."""
    TO_DELETE = "to-delete"
    """Its source repository deleted it, and the target has it still."""
    TO_CONFIRM = "to-confirm"
    """The same; its site would lose too many documents, so that a person has to confirm the deletion."""
    DELETED = "deleted"
    """Its source repository deleted it, and no deletion waits.

    The target has deleted it, never had it, has it from another site, or keeps it (the site has `deletions = note`).
    """
    MISSING = "missing"
    """The target has it, and a full list did not name it."""


WOULD_BE: Mapping[OutcomeKind, str] = {
    OutcomeKind.INSERTED: "would be inserted; nothing was uploaded",
    OutcomeKind.UPDATED: "would be updated; nothing was uploaded",
    OutcomeKind.DELETED: "would be deleted; nothing was deleted in the repository",
}
"""The words in the log for an outcome of a target that only looks at documents, and forgets them."""

FINE_OUTCOMES = (
    OutcomeKind.INSERTED,
    OutcomeKind.UPDATED,
    OutcomeKind.UNCHANGED,
    OutcomeKind.DELETED,
    OutcomeKind.FILTERED,
)
ERROR_OUTCOMES = frozenset({OutcomeKind.ACCESS_ERROR, OutcomeKind.INVALID, OutcomeKind.UPLOAD_ERROR})
ATTENTION_OUTCOMES = (OutcomeKind.STALE, OutcomeKind.DUPLICATE, OutcomeKind.DEFERRED)
"""The outcomes that are no errors, and need attention."""

LOG_LEVELS = ("error", "warning", "notice", "info", "debug")
"""The levels of operations in the log, the gravest first."""


class StageName(StrEnum):
    """The stages of this program, in their order."""

    CLEANING = "cleaning"
    FULL_TEXT = "full-text"
    EXTRACTION = "extraction"
    DUPLICATES = "duplicates"
    INDEX = "index"


OF_FILES = (StageName.FULL_TEXT, StageName.EXTRACTION)
"""The stages that find files, and read them."""


class StepState(StrEnum):
    """How far a document has come at a stage.

    `skipped`: the stage has nothing to do for the document. `gone`: the document is deleted or not public, and the
    stage has removed its results.
    """

    WAITING = "waiting"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    GONE = "gone"


class Role(IntEnum):
    """What a person may do: each role may do everything that the roles before it may.

    A contact acts for their own sites only; a viewer sees all sites; a steward changes sites and decides; an operator
    also makes users and keys. PUBLIC is everybody, without an account.
    """

    PUBLIC = 0
    CONTACT = 1
    VIEWER = 2
    STEWARD = 3
    OPERATOR = 4

    @property
    def word(self) -> str:
        """The role as it is stored and shown."""
        return self.name.lower()


GRANTED = (Role.VIEWER, Role.STEWARD, Role.OPERATOR)
"""The roles that a user or a key can be given."""


def role_of(word: str) -> Role | None:
    """The granted role with this word, or None."""
    return next((role for role in GRANTED if role.word == word), None)
