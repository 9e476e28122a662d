"""What a copy from one target into another is asked for, and what it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from metaharvest.harvest.context import Progress
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.model import Finding, Holding
from metaharvest.targets.base import HeldRevision, Target


class CopyOutcome(StrEnum):
    """How one revision ended: a closed set, exactly one for each revision that was read."""

    COPIED = "copied"
    THERE = "there-already"
    """The target has the same bytes under this docid."""
    DIFFERENT = "different"
    """The target has other bytes under this docid, and keeps them."""
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    """The source did not give its bytes, or not those that it says it has."""
    LEFT = "left"
    """Not attempted, or it is not known whether it arrived: the same command goes on with it."""

    @property
    def key(self) -> str:
        """Its name in JSON."""
        return self.value.replace("-", "_")


PROBLEMS = (CopyOutcome.DIFFERENT, CopyOutcome.REFUSED, CopyOutcome.UNREADABLE)
"""What the same command does not mend."""


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """What is asked of a copy: names of targets (see `Targets.named`); one site's documents; at most so many revisions.

    A rehearsal (`is_dry_run`) asks both targets everything, and writes nothing.
    """

    source: str
    target: str
    site_name: str | None = None
    limit: int | None = None
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class NotCopied:
    """A revision that is not in the target as the source has it, and why."""

    document_id: str
    revision: int
    ended: CopyOutcome
    finding: Finding

    @property
    def docid(self) -> str:
        """Document id and revision: `knb-lter-gce.109.6`."""
        return f"{self.document_id}.{self.revision}"


Told = Callable[[NotCopied], object]


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What a copy came to: so many documents with so many revisions were read, and how each of these ended.

    `source` and `target` are those targets in a few words. `size` is that of the copied revisions, in bytes.
    `cut_short`: why there may be more to copy than was read, for people; empty if all was read, or as much as the
    request's limit allows (`reached_limit`). `all_read` is false if the source has more than was read.
    """

    source: str
    target: str
    documents: int
    ended: Mapping[CopyOutcome, int]
    size: int
    cut_short: str
    reached_limit: bool
    all_read: bool = True

    @property
    def read(self) -> int:
        """How many revisions were read."""
        return sum(self.ended.values())

    @property
    def is_well(self) -> bool:
        """Whether all that the source has is in the target, as the source has it."""
        return self.all_read and not self.cut_short and not any(map(self.ended.get, (*PROBLEMS, CopyOutcome.LEFT)))

    @property
    def refused(self) -> int:
        """The number of revisions that the target refuses permanently."""
        return self.ended.get(CopyOutcome.REFUSED, 0)

    @property
    def is_well_but_for_refused(self) -> bool:
        """True if the target has all revisions of the source, but for permanently refused ones."""
        return replace(self, ended={**self.ended, CopyOutcome.REFUSED: 0}).is_well


class CopyTally:
    """What a copy has come to so far, and whether it is to go on. Used in the event loop alone."""

    def __init__(self, request: CopyRequest, progress: Progress, told: Told, stop: StopSignal) -> None:
        self._name = f"{request.source} to {request.target}"
        self._room = request.limit
        self._progress = progress
        self._told = told
        self._stop = stop
        self._documents = 0
        self._size = 0
        self._cut_short = ""
        self._all_read = True
        self._ended: Counter[CopyOutcome] = Counter()
        progress.site_began(self._name)

    def is_cut_short(self) -> bool:
        """Whether nothing more is to be begun: it was stopped, or a target does not answer."""
        if self._stop.is_set() and not self._cut_short:
            self._cut_short = f"The copy was stopped. {_GO_ON}"
        return bool(self._cut_short)

    def is_over(self) -> bool:
        """The same, or as much was copied as was asked for."""
        return self.is_cut_short() or self._room == 0

    def cut(self, target: Target, findings: Sequence[Finding], *, for_good: bool = False) -> None:
        """A target stopped answering: begin nothing more. `for_good`: it does not give what it is asked for."""
        if not self.is_cut_short():
            said = " ".join(f"{finding.message} {finding.remedy}".rstrip() for finding in findings)
            self._cut_short = f"{target.describe()}: {said}{'' if for_good else f' {_GO_ON}'}"

    def begin_one(self) -> bool:
        """Count one more revision towards the limit; False if none may be copied any more."""
        if self.is_over():
            return False
        if self._room is not None:
            self._room -= 1
        return True

    def leave_rest(self) -> None:
        """The source has more, which is not read: as much was copied as was asked for."""
        self._all_read = False

    def document(self) -> None:
        """One more document was read; `end` is called for each of its revisions."""
        self._documents += 1

    def end(
        self, revision: HeldRevision, ended: CopyOutcome, finding: Finding | None = None, size: int = 0
    ) -> CopyOutcome:
        """Note how a revision ended, and tell why; `size`: bytes that were copied."""
        self._ended[ended] += 1
        self._size += size
        if finding is not None:
            self._told(NotCopied(revision.document_id, revision.revision, ended, finding))
        self._progress.documents_ended(self._name, 1)
        return ended

    def result(self, source: Target, target: Target) -> CopyResult:
        """What it came to."""
        reached_limit = self._room == 0 and not self._cut_short
        words = source.describe(), target.describe()
        ended = dict(self._ended)
        result = CopyResult(*words, self._documents, ended, self._size, self._cut_short, reached_limit, self._all_read)
        self._progress.documents_listed(self._name, result.read)
        self._progress.site_ended(self._name)
        return result


_GO_ON = "What was copied is there; the same command goes on with the rest."


def belongs_to(revision: HeldRevision, other: str) -> Finding:
    """Refused: the document belongs to the site `other`."""
    message = f"{revision.document_id} belongs to the site '{other}' where it is to be copied to."
    remedy = "If it is not that site's, transfer it with `metaharvest target transfer`, then copy it."
    return Finding("target.other-site", message, remedy)


def no_target(site_name: str) -> Finding:
    """Refused: there is no repository for it."""
    message = f"The settings give the site '{site_name}' no repository: its documents go nowhere."
    return Finding("target.settings", message, "Give the site another target, or name the target to copy into.")


def different(revision: HeldRevision) -> Finding:
    """Left alone: the target has something else under the docid."""
    message = f"The target has other bytes under {revision.docid}; they were left alone."
    remedy = (
        "Compare the two, and see which is right: a docid never changes its content. A change needs a new revision."
    )
    return Finding("copy.different", message, remedy)


def superseded(revision: HeldRevision, held: Holding) -> Finding:
    """Refused: the target has a higher revision, and not this one."""
    message = f"The target has revision {held.revision} of {revision.document_id}, but not {revision.revision}."
    remedy = "Nothing is to be done, unless the older revision is needed: it can no longer be put below the other."
    return Finding("copy.superseded", message, remedy)
