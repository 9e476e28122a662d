"""One site's documents: fetch, check, store, each to exactly one outcome.

Each document has a task of its own; tasks run in parallel, the revisions of one document follow one another. Records
that need no check and go into the embedded target have none, and follow one another. Memory is bounded by the documents
under way, and by the bytes that wait to be stored, not by the length of the list.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from metaharvest.errors import DatabaseError, FetchError, NotAsked, NotUsable, RunLost, TargetError
from metaharvest.fetch.backoff import Attempts
from metaharvest.fetch.health import ServerHealth
from metaharvest.fetch.limits import MemoryBudget
from metaharvest.harvest.checks.checker import CheckerLost, FiltersGivenUp
from metaharvest.harvest.context import SiteHarvest
from metaharvest.journal.internal_errors import internal_error
from metaharvest.journal.outcomes import OutcomeNote, Storing
from metaharvest.journal.totals import Phases
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.model import (
    Action,
    FetchedDocument,
    Finding,
    Intent,
    Level,
    ListedDocument,
    Outcome,
    OutcomeKind,
    ValidationLevel,
    Verdict,
)
from metaharvest.model.requests import LivePhase
from metaharvest.model.values import frozen
from metaharvest.sources.attempts import in_attempts
from metaharvest.targets.base import Upload
from metaharvest.validation.processing_policy import ProcessingPolicy

log = logging.getLogger(__name__)

UNDER_WAY_PER_CONNECTION = 7
"""Documents of a site that are under way for each connection to its host: others are checked or stored meanwhile."""

WENT_IN = (OutcomeKind.INSERTED, OutcomeKind.UPDATED)

MOST_WAITING = 100
"""Documents of a site that may wait for another attempt. At this number, no new document is begun."""


@dataclass(slots=True)
class Tally:
    """The numbers of documents that were listed, that the target had already, and that are no longer listed.

    `duplicates` counts the ones without a log row of their own. `phases`: the times of fetching, checking and storing.
    """

    listed: int = 0
    unchanged: int = 0
    vanished: int = 0
    duplicates: int = 0
    phases: Phases = field(default_factory=Phases)


@frozen
class Todo:
    """One document that needs an outcome of its own, with its entry in the ledger."""

    intent: Intent
    known: LedgerEntry | None

    @property
    def is_pending(self) -> bool:
        """True if an earlier run began to upload this document, and did not learn the result."""
        is_first = self.intent.action is not Action.DUPLICATE
        return is_first and self.known is not None and self.known.pending_sha256 is not None

    @property
    def is_there(self) -> bool:
        """True if the target has it already, so that nothing must be done."""
        return self.intent.action is Action.UNCHANGED and not self.is_pending

    def after(self, outcome: Outcome) -> Todo:
        """The same for the next revision, after a revision with this outcome, which has changed the target."""
        if outcome.kind not in WENT_IN:
            return replace(self, intent=replace(self.intent, target_revision=outcome.target_revision))
        held = replace(self.intent, target_revision=outcome.document.revision, held_sha256=outcome.sha256)
        return replace(self, intent=held)


class SiteDocuments:
    """Brings the documents of one site run in. `turn()` is awaited before each bring_in().

    Documents that are `in_hand` came with the list, and are not fetched: `at_once` of them may be under way.
    """

    def __init__(
        self,
        harvest: SiteHarvest,
        phases: Phases,
        in_hand: Callable[[ListedDocument], FetchedDocument | None] = lambda document: None,
        at_once: int = 0,
    ) -> None:
        ctx = harvest.ctx
        connections = ctx.settings.http.connections_per_host
        self.servers = ServerHealth(ctx.settings.http)
        self._site_run = harvest.site_run
        self._source = harvest.source
        self._target = harvest.target
        self._phases = phases
        self._ctx = ctx
        self._asking = asyncio.Semaphore(connections)
        self._in_hand = in_hand
        # The documents of one site that take long to check must not take the memory of all.
        self._unchecked = MemoryBudget(ctx.fetcher.memory.limit // 4)
        self._under_way = asyncio.Semaphore(max(connections * UNDER_WAY_PER_CONNECTION, at_once))
        self._waiting = asyncio.Semaphore(MOST_WAITING)

    async def note_deferred(self) -> None:
        """Note why documents were deferred."""
        for reason in self.servers.reasons_to_defer():
            await self._ctx.journal.deferred(self._site_run, [reason])

    async def note_ended(self, outcome: Outcome, known: LedgerEntry | None) -> None:
        """Note the outcome of a document that is not brought in."""
        outcome = with_levels(outcome, self._ctx.policy)
        await self._ctx.journal.record(OutcomeNote(self._site_run, outcome, None, known))

    async def turn(self) -> None:
        """Wait until another document may be begun."""
        await self._under_way.acquire()

    async def bring_in(self, revisions: Sequence[Todo]) -> None:
        """Bring the revisions of one document to their outcomes, one after the other, in ascending order.

        If it is unknown whether a revision arrived, or if it may still arrive, no higher one is sent.
        """
        try:
            last: Outcome | None = None
            waits = False
            for todo in revisions:
                last = await self._bring_in_one(todo.after(last) if last else todo, waits)
                waits = waits or last.unconfirmed
        finally:
            self._under_way.release()

    async def _bring_in_one(self, todo: Todo, waits: bool) -> Outcome:
        """Bring in one document. An unexpected error costs this document alone, or its site would never get past it."""
        fetched: FetchedDocument | None = None
        try:
            outcome, fetched = await self._outcome_of(todo, waits)
        except (DatabaseError, RunLost):
            raise
        except Exception as error:
            log.exception("The harvest of %s failed", todo.intent.document.docid)
            outcome = replace(_internal_failure(todo.intent, error), unconfirmed=todo.is_pending)
        outcome = with_levels(outcome, self._ctx.policy)
        in_journal = self._target.in_journal
        storing = Storing(fetched, in_journal, self._phases) if fetched and in_journal else None
        note = OutcomeNote(self._site_run, outcome, storing, todo.known)
        if outcome.kind is OutcomeKind.UNCHANGED and outcome.document.origin is not None:
            note = replace(note, restamping=in_journal)
        await self._ctx.journal.record(note)
        self._ctx.progress.documents_ended(self._site_run.site.name, 1)
        if outcome.kind.is_error:
            self._ctx.progress.document_failed(self._site_run.site.name)
        return outcome

    async def _outcome_of(self, todo: Todo, waits: bool) -> tuple[Outcome, FetchedDocument | None]:
        """The outcome of the document; with it the document, if the journal must put it into the target."""
        if not todo.intent.wants_fetch and not todo.is_pending:
            return settled(todo.intent), None
        if waits:
            return self._deferred(todo, WAITS), None
        in_hand = None if todo.is_pending else self._in_hand(todo.intent.document)
        if in_hand and self._target.in_journal and is_checked_by_reading(in_hand.document, self._ctx.policy):
            return self._read_with_list(todo.intent, in_hand)
        fetched = in_hand or await self._fetched(todo)
        if isinstance(fetched, Outcome):
            return fetched, None
        return await self._checked(todo, fetched)

    def _read_with_list(self, intent: Intent, record: FetchedDocument) -> tuple[Outcome, FetchedDocument | None]:
        """The outcome of a record that needs no further check, and is stored by the journal: nothing waits for it."""
        outcome, record = outcome_of_verdict(intent, record, _verdict_of_reading(record.document))
        if outcome.kind is not wanted(intent):
            return outcome, None
        self._ctx.fetcher.memory.take(len(record.content))
        return outcome, record

    # -- fetch

    async def _fetched(self, todo: Todo) -> FetchedDocument | Outcome:
        """The document, after repeated attempts if needed; or its outcome, if it cannot or need not be fetched."""
        http, deadlines = self._ctx.settings.http, self._ctx.deadlines
        attempts = Attempts(http, http.document_deadline)
        ask = partial(self._fetched_once, todo, attempts)
        try:
            return await in_attempts(ask, http, deadlines, attempts=attempts, pause=self._back_off)
        except NotAsked as error:
            if why := deadlines.stop_reason():
                return self._deferred(todo, why)
            return self._deferred(todo, error.findings[0], error.host, transient=True)
        except FetchError as error:
            return access_error(todo.intent, error)

    async def _fetched_once(self, todo: Todo, attempts: Attempts) -> FetchedDocument | Outcome:
        """The same in one attempt, whose time is noted; `attempts` are the earlier ones. Raises FetchError."""
        async with self._asking:
            await self._unchecked.room()
            failed = access_error(todo.intent, attempts.failure) if attempts.number and attempts.failure else None
            if no_fetch := await self._outcome_without_fetch(todo, failed):
                return no_fetch
            began, seconds, url = time.monotonic(), 0.0, todo.intent.document.url
            try:
                with self._ctx.progress.in_phase(self._site_run.site.name, LivePhase.FETCHING):
                    fetched = await self._source.fetch(todo.intent.document, self._ctx.deadlines.left())
                seconds = fetched.seconds or 0.0
                self.servers.answered(url)
                return fetched
            except FetchError as error:
                seconds = error.seconds or 0.0
                self.servers.failed_with(url, error)
                raise
            finally:
                self._phases.server += seconds
                self._phases.waiting += max(time.monotonic() - began - seconds, 0.0)

    async def _outcome_without_fetch(self, todo: Todo, failed: Outcome | None) -> Outcome | None:
        """The outcome of a document that is not fetched; `failed`: the outcome of its last attempt.

        Raises NotAsked if its server has a pause or is given up.
        """
        if why := self._ctx.deadlines.stop_reason() or next(iter(self._target.health.given_up), None):
            return failed or self._deferred(todo, why)
        self.servers.require_well(todo.intent.document.url)
        try:
            self._ctx.checker.require_filters(self._site_run.site_run_id)
        except FiltersGivenUp as error:
            return failed or self._deferred(todo, error.findings[0])
        return await self._looked_up(todo) if todo.is_pending else None

    async def _looked_up(self, todo: Todo) -> Outcome | None:
        """The outcome of a pending upload, as the target has it; None if it did not arrive, and must be sent again."""
        entry, intent = todo.known, todo.intent
        assert entry is not None
        try:
            is_there = await self._target.holds(entry.document_id, entry.revision, entry.pending_sha256 or "")
        except TargetError as error:
            return self._deferred(todo, error.findings[0])
        if is_there:
            kind = OutcomeKind.INSERTED if entry.target_revision is None else OutcomeKind.UPDATED
            return Outcome(intent.document, kind, entry.target_revision, (ARRIVED,), sha256=entry.pending_sha256)
        if intent.wants_fetch:
            return None
        if intent.action is not Action.UNCHANGED:
            return settled(intent)
        return Outcome(intent.document, OutcomeKind.UPLOAD_ERROR, intent.target_revision, (OTHER_CONTENT,))

    async def _back_off(self, seconds: float) -> None:
        """Wait before the next attempt; meanwhile others have their turn, unless very many wait already."""
        if self._waiting.locked():
            await self._ctx.deadlines.sleep(seconds)
            return
        async with self._waiting:
            self._under_way.release()
            await self._ctx.deadlines.sleep(seconds)
        await self._under_way.acquire()

    def _deferred(self, todo: Todo, why: Finding, server: str = "", *, transient: bool = False) -> Outcome:
        """Put off to a later run, for a reason that is reported once for all. `transient`: its web server failed."""
        self.servers.defer(why, server)
        outcome = Outcome(todo.intent.document, OutcomeKind.DEFERRED, todo.intent.target_revision, transient=transient)
        return replace(outcome, unconfirmed=todo.is_pending)

    # -- check, store

    async def _checked(self, todo: Todo, fetched: FetchedDocument) -> tuple[Outcome, FetchedDocument | None]:
        """The outcome of a fetched document. Its bytes count as occupied until it is dropped or stored."""
        intent = todo.intent
        if fetched.findings:
            intent = replace(intent, findings=(*intent.findings, *fetched.findings))
        memory, site_id = self._ctx.fetcher.memory, self._site_run.site.site_id
        size = unchecked = len(fetched.content)
        memory.take(size, site_id)
        self._unchecked.take(size)
        is_kept = False
        began = time.monotonic()
        try:
            try:
                with self._ctx.progress.in_phase(self._site_run.site.name, LivePhase.CHECKING):
                    outcome, fetched = await self._outcome_of_check(intent, fetched)
                if len(fetched.content) != size:
                    memory.take(len(fetched.content) - size, site_id)
                    size = len(fetched.content)
            except FiltersGivenUp as error:
                return self._deferred(todo, error.findings[0]), None
            finally:
                self._phases.checking += time.monotonic() - began
                self._unchecked.give_back(unchecked)
            if outcome.kind is not wanted(intent):
                return outcome, None
            if self._target.in_journal:
                is_kept = True
                memory.give_back(size, site_id)
                memory.take(size)
                return outcome, fetched
            began = time.monotonic()
            async with self._target.sending:
                if self._target.health.given_up:
                    return self._deferred(todo, self._target.health.given_up[0]), None
                with self._ctx.progress.in_phase(self._site_run.site.name, LivePhase.STORING):
                    outcome = await self._sent(todo, outcome, fetched)
            self._phases.sending += time.monotonic() - began
            return outcome, None
        finally:
            if not is_kept:
                memory.give_back(size, site_id)

    async def _outcome_of_check(self, intent: Intent, fetched: FetchedDocument) -> tuple[Outcome, FetchedDocument]:
        """The outcome, and the document as it goes into the target. Raises FiltersGivenUp."""
        document, policy = fetched.document, self._ctx.policy
        try:
            if document.origin is not None and is_checked_by_reading(document, policy):
                verdict = _verdict_of_reading(document)
            else:
                site_run_id, how = self._site_run.site_run_id, policy_for(document, policy)
                verdict = await self._ctx.checker.check(site_run_id, fetched.content, document, how)
        except CheckerLost as error:
            outcome = Outcome(
                intent.document, OutcomeKind.ACCESS_ERROR, intent.target_revision, error.findings, transient=True
            )
            return outcome, fetched
        return outcome_of_verdict(intent, fetched, verdict)

    async def _sent(self, todo: Todo, outcome: Outcome, fetched: FetchedDocument) -> Outcome:
        """Send it. If the target does not report the result, it stays pending in the ledger."""
        try:
            await self._ctx.journal.mark_pending(self._site_run, fetched, outcome.target_revision, todo.known)
        except TargetError as error:
            return refused(outcome, error)
        try:
            action = await self._target.upload(Upload(fetched, self._site_run.site.site_id, self._ctx.clock()))
        except TargetError as error:
            if error.transient:
                return replace(self._deferred(todo, error.findings[0]), unconfirmed=True)
            return refused(outcome, error)
        except Exception as error:
            log.exception("The upload of %s failed", todo.intent.document.docid)
            return replace(_internal_failure(todo.intent, error), unconfirmed=True)
        return replace(outcome, kind=OutcomeKind.INSERTED if action is Action.INSERT else OutcomeKind.UPDATED)


# -- outcomes and findings of documents. Pure


def outcome_of_verdict(intent: Intent, fetched: FetchedDocument, verdict: Verdict) -> tuple[Outcome, FetchedDocument]:
    """The outcome of a checked document, and the document as it goes into the target."""
    size, received, is_acceptable = len(fetched.content), fetched.sha256, verdict.acceptable
    if verdict.content is not None:
        fetched = normalized(fetched, verdict.content)
    kind = wanted(intent) if is_acceptable else OutcomeKind.INVALID
    findings = (*intent.findings, *verdict.findings, *same_content(intent, fetched))
    if verdict.filtered is not None:
        kind, findings = OutcomeKind.FILTERED, (left_with_what_stays(verdict.filtered, intent), *intent.findings)
    elif fetched.document.origin is not None and is_acceptable and intent.held_sha256 == fetched.sha256:
        return held_already(intent, fetched), fetched
    outcome = Outcome(
        fetched.document,
        kind,
        intent.target_revision,
        findings,
        fetched.seconds,
        size,
        received if fetched.document.origin is None else fetched.sha256,
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        title=verdict.title,
    )
    return outcome, fetched


def _verdict_of_reading(record: ListedDocument) -> Verdict:
    """The verdict about a record that was checked when it was read."""
    return Verdict(title=record.origin.title if record.origin else "")


def access_error(intent: Intent, error: FetchError) -> Outcome:
    """The outcome of a document whose last attempt ended with `error`."""
    return Outcome(
        intent.document,
        OutcomeKind.INVALID if isinstance(error, NotUsable) else OutcomeKind.ACCESS_ERROR,
        intent.target_revision,
        error.findings,
        error.seconds,
        transient=error.transient,
    )


def _internal_failure(intent: Intent, error: Exception) -> Outcome:
    """The outcome of a document on which the harvester itself failed."""
    finding = internal_error(error, "The harvester itself failed on this document")
    return Outcome(intent.document, OutcomeKind.UPLOAD_ERROR, intent.target_revision, (finding,))


def refused(outcome: Outcome, error: TargetError) -> Outcome:
    """The outcome of a document that the target refused."""
    return replace(outcome, kind=OutcomeKind.UPLOAD_ERROR, findings=(*outcome.findings, *error.findings))


def settled(intent: Intent) -> Outcome:
    """The outcome of a document that is not fetched."""
    return Outcome(intent.document, _SETTLED[intent.action], intent.target_revision, intent.findings)


_SETTLED = {
    Action.UNCHANGED: OutcomeKind.UNCHANGED,
    Action.STALE: OutcomeKind.STALE,
    Action.DUPLICATE: OutcomeKind.DUPLICATE,
    Action.REFUSE: OutcomeKind.UPLOAD_ERROR,
    Action.LEAVE_OUT: OutcomeKind.FILTERED,
}


def normalized(fetched: FetchedDocument, content: bytes) -> FetchedDocument:
    """The document with the bytes for the target; it keeps the received bytes too."""
    return replace(fetched, content=content, sha256=sha256(content).hexdigest(), received=fetched.content)


def held_already(intent: Intent, fetched: FetchedDocument) -> Outcome:
    """The outcome of a changed record whose document the target has already: it gets no new revision."""
    held = intent.target_revision
    document = replace(fetched.document, revision=fetched.document.revision if held is None else held)
    return Outcome(document, OutcomeKind.UNCHANGED, held, intent.findings, sha256=fetched.sha256)


def left_with_what_stays(filtered: Finding, intent: Intent) -> Finding:
    """The finding about a document that a filter left out: an earlier revision stays in the target."""
    if intent.target_revision is None:
        return filtered
    return replace(
        filtered, message=f"{filtered.message} The central repository keeps revision {intent.target_revision}."
    )


def same_content(intent: Intent, fetched: FetchedDocument) -> tuple[Finding, ...]:
    """The finding about a document whose new revision is the old one, byte for byte."""
    if intent.held_sha256 is None or intent.held_sha256 != fetched.sha256:
        return ()
    message = f"Revision {fetched.document.revision} has exactly the bytes of revision {intent.target_revision}."
    remedy = "Raise the revision only if the document changes. If it should have changed, check the file."
    return (Finding("list.same-content", message, remedy, Level.WARNING),)


def wanted(intent: Intent) -> OutcomeKind:
    """The outcome of a document that goes in as intended."""
    return OutcomeKind.INSERTED if intent.action is Action.INSERT else OutcomeKind.UPDATED


ARRIVED = Finding(
    "target.unconfirmed",
    "An earlier run was interrupted while it sent this document; the central repository has it.",
    "No action is needed.",
    Level.WARNING,
)
"""The finding about a pending upload that arrived."""

WAITS = Finding(
    "target.lower-revision",
    "It is unknown whether a lower revision arrived in the central repository, so that no higher one was sent.",
    "No action is needed: the next run checks whether it arrived, and goes on.",
    Level.WARNING,
)
"""The finding about a revision that waits for a lower one."""

OTHER_CONTENT = Finding(
    "target.other-content",
    "An earlier run was interrupted while it sent this document; the central repository now has this revision, or a "
    "higher one, with other content.",
    "The administrator should compare the two. To replace the one in the central repository, raise the revision.",
)
"""The finding about a pending upload that is not sent again."""


def policy_for(document: ListedDocument, policy: ProcessingPolicy) -> ProcessingPolicy:
    """The policy for this document: a record need not be EML if the site has no level of its own."""
    if document.origin is None or policy.level is not None:
        return policy
    return replace(policy, level=ValidationLevel.STRICT)


def is_checked_by_reading(document: ListedDocument, policy: ProcessingPolicy) -> bool:
    """True if a record needs no further check: it has a canonical form, so it is well-formed."""
    is_strict = policy.level in (None, ValidationLevel.STRICT)
    return document.origin is not None and bool(document.origin.digest) and is_strict and not policy.transforms


def levelled(findings: Iterable[Finding], policy: ProcessingPolicy) -> tuple[Finding, ...]:
    """The findings about errors of the site; on the level loose, they are warnings."""
    if policy.level is not ValidationLevel.LOOSE:
        return tuple(findings)
    return tuple(replace(finding, level=Level.WARNING) for finding in findings)


def with_levels(outcome: Outcome, policy: ProcessingPolicy) -> Outcome:
    """The outcome with the levels of its findings, if the document could not be fetched, or is not acceptable."""
    if outcome.kind not in (OutcomeKind.ACCESS_ERROR, OutcomeKind.INVALID):
        return outcome
    return replace(outcome, findings=levelled(outcome.findings, policy))
