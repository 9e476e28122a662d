"""The request for a copy from one target into another, and its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from metaharvest.harvest.context import Progress
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.model import Finding, Holding
from metaharvest.model.actions import Remedy, todo
from metaharvest.model.values import frozen
from metaharvest.targets.base import HeldRevision, Target


class CopyOutcome(StrEnum):
    """The outcome of one revision: exactly one for each revision that was read."""

    COPIED = "copied"
    THERE = "there-already"
    """The target has the same bytes under this docid."""
    DIFFERENT = "different"
    """The target has other bytes under this docid, and keeps them."""
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    """The source did not return the bytes, or they do not match its own digest."""
    LEFT = "left"
    """Not attempted, or it is unknown if it arrived: the same command goes on with it."""

    @property
    def key(self) -> str:
        """Its name in JSON."""
        return self.value.replace("-", "_")


PROBLEMS = (CopyOutcome.DIFFERENT, CopyOutcome.REFUSED, CopyOutcome.UNREADABLE)
"""Outcomes that the same command does not repair."""


@frozen
class CopyRequest:
    """The request for a copy: names of targets (see `Targets.named`), one site's documents, a limit of revisions.

    A rehearsal (`is_dry_run`) asks both targets everything, and writes nothing.
    """

    source: str
    target: str
    site_name: str | None = None
    limit: int | None = None
    is_dry_run: bool = False


@frozen
class NotCopied:
    """A revision that the target does not have as the source has it, and the reason."""

    document_id: str
    revision: int
    ended: CopyOutcome
    finding: Finding

    @property
    def docid(self) -> str:
        """Document id and revision: `knb-lter-gce.109.6`."""
        return f"{self.document_id}.{self.revision}"


ReportNotCopied = Callable[[NotCopied], object]


@frozen
class CopyResult:
    """The result of a copy: the numbers of documents and revisions that were read, and the outcomes of these.

    `source` and `target` describe both targets in a few words. `size` is the size of the copied revisions, in bytes.
    `cut_short`: why there may be more to copy, for people; empty if everything was read, or as much as the request's
    limit allows (`reached_limit`). `all_read` is false if the source has more.
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
        """The number of revisions that were read."""
        return sum(self.ended.values())

    @property
    def is_well(self) -> bool:
        """True if the target has all revisions of the source, as the source has them."""
        return self.all_read and not self.cut_short and not any(map(self.ended.get, (*PROBLEMS, CopyOutcome.LEFT)))

    @property
    def refused(self) -> int:
        """The number of revisions that the target refuses permanently."""
        return self.ended.get(CopyOutcome.REFUSED, 0)

    @property
    def is_well_but_for_refused(self) -> bool:
        """True if the target has all revisions of the source, except for permanently refused ones."""
        return replace(self, ended={**self.ended, CopyOutcome.REFUSED: 0}).is_well


class CopyTally:
    """The progress of a copy, which decides if the copy goes on. Used in the event loop alone."""

    def __init__(self, request: CopyRequest, progress: Progress, report: ReportNotCopied, stop: StopSignal) -> None:
        self._name = f"{request.source} to {request.target}"
        self._room = request.limit
        self._progress = progress
        self._report = report
        self._stop = stop
        self._documents = 0
        self._size = 0
        self._cut_short = ""
        self._ended: Counter[CopyOutcome] = Counter()
        progress.site_began(self._name)

    def is_cut_short(self) -> bool:
        """True if nothing new may begin: the copy was stopped, or a target does not answer."""
        if self._stop.is_set() and not self._cut_short:
            self._cut_short = f"The copy was stopped. {_GO_ON}"
        return bool(self._cut_short)

    def is_over(self) -> bool:
        """True if the copy is cut short, or has reached its limit."""
        return self.is_cut_short() or self._room == 0

    def cut(self, target: Target, findings: Sequence[Finding], *, for_good: bool = False) -> None:
        """Begin nothing more, as a target stopped answering. `for_good`: it does not return the requested content."""
        if not self.is_cut_short():
            said = " ".join(finding.with_remedy for finding in findings)
            self._cut_short = f"{target.describe()}: {said}{'' if for_good else f' {_GO_ON}'}"

    def begin_one(self) -> bool:
        """Count one more revision towards the limit; False if the limit is reached."""
        if self.is_over():
            return False
        if self._room is not None:
            self._room -= 1
        return True

    def document(self) -> None:
        """Count a document that was read; `end` is called for each of its revisions."""
        self._documents += 1

    def end(
        self, revision: HeldRevision, ended: CopyOutcome, finding: Finding | None = None, size: int = 0
    ) -> CopyOutcome:
        """Note the outcome of a revision, and report the reason; `size`: bytes that were copied."""
        self._ended[ended] += 1
        self._size += size
        if finding is not None:
            self._report(NotCopied(revision.document_id, revision.revision, ended, finding))
        self._progress.documents_ended(self._name, 1)
        return ended

    def result(self, source: Target, target: Target, *, all_read: bool) -> CopyResult:
        """The result of the copy. `all_read` is false if the limit left the rest of the source unread."""
        reached_limit = self._room == 0 and not self._cut_short
        words = source.describe(), target.describe()
        ended = dict(self._ended)
        result = CopyResult(*words, self._documents, ended, self._size, self._cut_short, reached_limit, all_read)
        self._progress.documents_listed(self._name, result.read)
        self._progress.site_ended(self._name)
        return result


_GO_ON = "What was copied is there; the same command goes on with the rest."


def belongs_to(revision: HeldRevision, other: str) -> Finding:
    """The finding about a refused document: it belongs to the site `other`."""
    message = f"{revision.document_id} belongs to the site '{other}' in the new target."
    transfer = todo("documents.transfer", document=revision.document_id)
    remedy = Remedy("If it is not that site's, transfer it with {}, then copy it.", transfer)
    return Finding("target.other-site", message, remedy)


def no_target(site_name: str) -> Finding:
    """The finding about a refused document: its site has no target."""
    message = f"The settings give the site '{site_name}' no repository: its documents go nowhere."
    return Finding("target.settings", message, "Give the site another target, or name the target to copy into.")


def different(revision: HeldRevision) -> Finding:
    """The finding about a revision that was not sent: the target has other bytes under the docid."""
    message = f"The target has other bytes under {revision.docid}; they were left alone."
    remedy = (
        "Compare the two, and see which is right: a docid never changes its content. A change needs a new revision."
    )
    return Finding("copy.different", message, remedy)


def superseded(revision: HeldRevision, held: Holding) -> Finding:
    """The finding about a refused revision: the target has a higher one, and not this one."""
    message = f"The target has revision {held.revision} of {revision.document_id}, but not {revision.revision}."
    remedy = "No action is needed. An older revision cannot be put below a newer one."
    return Finding("copy.superseded", message, remedy)
