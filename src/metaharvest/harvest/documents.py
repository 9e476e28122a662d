"""One site's documents, a thousand at a time: ask the target, decide, fetch, check, insert or update, log.

Documents are fetched and checked side by side, by threads that return values; the revisions of one document follow one
another. Memory is bounded by the documents in flight, and by the bytes of those that wait to be recorded, not by those
listed.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Protocol

from metaharvest.config.settings import Settings
from metaharvest.errors import DatabaseError, FetchError, NoConnectionFree, NotAsked, RunLost, TargetError
from metaharvest.fetch.backoff import Tries, may_be_waited_for
from metaharvest.fetch.servers import Servers
from metaharvest.harvest.deadlines import Ending
from metaharvest.harvest.decide import decide
from metaharvest.harvest.room import Room, Share
from metaharvest.harvest.side_by_side import Again, InLine, side_by_side
from metaharvest.harvest.staging import BATCH, Staging
from metaharvest.journal.journal import Clock, Journal, Logged, SiteRun
from metaharvest.journal.outcomes import unexpected_error
from metaharvest.model import (
    Action,
    FetchedDocument,
    Finding,
    Holding,
    Intent,
    Level,
    ListedDocument,
    Outcome,
    OutcomeKind,
)
from metaharvest.sites import ledger
from metaharvest.sources.base import Source
from metaharvest.targets.base import Target, Upload

if TYPE_CHECKING:
    from metaharvest.validation import Validator

log = logging.getLogger(__name__)

MOST_TOGETHER = 16
TOGETHER_SECONDS = 0.05
TOGETHER_BYTES = 1_000_000
"""So many documents are done one after the other by one thread, if they take no longer and are not larger than that."""

Known = Mapping[ledger.Key, ledger.LedgerEntry]
LoggedBefore = dict[ledger.Key, list[Logged]]


class Progress(Protocol):
    """Is told how a run gets on; the command line makes a picture of it."""

    def site_began(self, name: str) -> None:
        """A site's harvest began."""

    def documents_listed(self, name: str, listed: int) -> None:
        """The site's list was read."""

    def documents_ended(self, name: str, number: int) -> None:
        """So many more documents have their outcome."""

    def site_ended(self, name: str) -> None:
        """The site's harvest ended."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What harvesting a site needs, made once a run; `ending` also has the site's own deadline.

    `workers` fetch and check. `site_names` are the registered sites by id, `waiting` those with documents to try again.
    """

    settings: Settings
    journal: Journal
    target: Target
    validator: Validator
    workers: Executor
    progress: Progress
    clock: Clock
    site_names: Mapping[int, str]
    waiting: Collection[int]
    ending: Ending
    room: Room = field(default_factory=Room)


@dataclass(slots=True)
class Tally:
    """How many documents were listed, and how many of them the target had already."""

    listed: int = 0
    unchanged: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What a thread returns of one document; `fetched` where the journal is to put it into the target."""

    outcome: Outcome
    fetched: FetchedDocument | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents to decide on, all revisions of each, in order; what the ledger knows of them.

    `logged` are the outcomes that an interrupted run has logged already, in the batch's range of document ids.
    """

    documents: Sequence[ListedDocument]
    known: Known
    logged: LoggedBefore


def staged_batches(site_run: SiteRun, staged: Staging, journal: Journal) -> Iterator[Batch]:
    """The documents of a list that was read; what the ledger has beside them is listed no longer, and leaves it."""
    last = None
    for documents in chain(staged.batches(), [[]]):
        upto = documents[-1].document_id if documents else None
        known = journal.known(site_run, documents, last, upto)
        yield Batch(documents, known, journal.logged_between(site_run, last, upto))
        last = upto


def retry_batches(site_run: SiteRun, staged: Staging, journal: Journal) -> Iterator[Batch]:
    """The documents to be tried again; the rest of the ledger is of no concern."""
    last = None
    for documents in chain(staged.batches(), [[]]):
        upto = documents[-1].document_id if documents else None
        yield Batch(documents, journal.known_of(site_run, documents), journal.logged_between(site_run, last, upto))
        last = upto


def ledger_batches(site_run: SiteRun, journal: Journal) -> Iterator[Batch]:
    """The documents of a list that is the one of the last harvest, as the ledger has them."""
    last, number = None, BATCH
    while entries := journal.listed_before(site_run.site, last, number):
        is_last = len(entries) < number
        if not is_last:
            # The last document may have more revisions than were read: it is left for the next batch.
            whole = [entry for entry in entries if entry.document_id != entries[-1].document_id]
            if not whole:
                number *= 2
                continue
            entries = whole
        number = BATCH
        known = {(entry.document_id, entry.revision): entry for entry in entries}
        documents = [ListedDocument(e.document_id, e.revision, e.document_type, e.url) for e in entries]
        upto = entries[-1].document_id
        yield Batch(documents, known, journal.logged_between(site_run, last, upto))
        last = upto
        if is_last:
            break
    yield Batch((), {}, journal.logged_between(site_run, last, None))


def harvest_unchanged(site_run: SiteRun, source: Source, tools: RunContext) -> Tally:
    """The documents of a list that is the one of the last harvest: most nights the target has kept them all."""
    known, target = site_run.known_documents, tools.target
    if not site_run.resumed and target.writes_in_journal and known == target.kept(site_run.site.site_id):
        tools.progress.documents_ended(site_run.site.name, known)
        return Tally(known, known)
    return harvest_documents(site_run, ledger_batches(site_run, tools.journal), source, tools)


def harvest_documents(site_run: SiteRun, batches: Iterable[Batch], source: Source, tools: RunContext) -> Tally:
    """Bring every document to its outcome; the numbers that go into the totals."""
    tally, servers = Tally(), Servers(tools.settings.http)
    chains = _chains(batches, site_run, tools, servers, tally)
    at_once, flush = tools.settings.http.connections_per_host, tools.journal.flush_if_old
    with Share(tools.room) as share:
        work = _Work(site_run, source, tools, servers, share)
        for todo, result in side_by_side(
            chains, work, work.together, _following, tools.workers, at_once, tools.ending, flush
        ):
            tools.journal.record(site_run, result.outcome, result.fetched, todo.known)
            if result.fetched:
                share.give_back(len(result.fetched.content))
            tools.progress.documents_ended(site_run.site.name, 1)
    for finding in servers.put_off():
        tools.journal.deferred(site_run, [finding])
    return tally


@dataclass(frozen=True, slots=True)
class _Failed:
    """How often a document was tried in this run, and the outcome if it is not tried again."""

    tries: Tries
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class _Todo:
    """One document that is to have an outcome of its own; what the ledger, and this run, know of it.

    `in_line`: since when (time.monotonic) it has waited for a connection, why, and to which host.
    """

    intent: Intent
    known: ledger.LedgerEntry | None
    failed: _Failed | None = None
    in_line: tuple[float, Finding, str] | None = None

    @property
    def is_pending(self) -> bool:
        """Whether an earlier run began to upload this document and never learnt how that ended."""
        is_first = self.intent.action is not Action.DUPLICATE
        return is_first and self.known is not None and self.known.pending_sha256 is not None


def _chains(
    batches: Iterable[Batch], site_run: SiteRun, tools: RunContext, servers: Servers, tally: Tally
) -> Iterator[deque[_Todo]]:
    """What is to be done, document by document, revisions in order; what is unchanged is settled on the way."""
    for batch in batches:
        for _, group in groupby(_decided(batch, site_run, tools, servers, tally), key=_document_id):
            yield deque(group)


def _document_id(todo: _Todo) -> str:
    return todo.intent.document.document_id


def _decided(batch: Batch, site_run: SiteRun, tools: RunContext, servers: Servers, tally: Tally) -> Iterator[_Todo]:
    """Ask the target, decide, settle the unchanged ones, count; the rest is to be done."""
    holdings = _holdings(batch, tools, servers)
    same, documents = _same_as_before(batch, holdings, site_run) if holdings else (0, batch.documents)
    # Where the target does not answer, nothing is known to be held: what would be fetched is then put off instead.
    decided = decide(documents, holdings, site_run.site.site_id, tools.site_names)
    intents = list(_as_begun(decided, batch) if site_run.resumed else decided)
    # Counted before _is_logged strikes them off: all that was logged belongs to this site run, listed still or not.
    logged = sum(len(outcomes) for outcomes in batch.logged.values())
    todo = [_Todo(i, batch.known.get(_key(i))) for i in intents if not _is_logged(i, batch.logged)]
    there = [each for each in todo if each.intent.action is Action.UNCHANGED and not each.is_pending]
    settled = [(_settled(each.intent), each.known) for each in there]
    tools.journal.set_unchanged(site_run, settled)
    tally.listed += same + len(todo) + logged
    tally.unchanged += same + len(there)
    tools.progress.documents_ended(site_run.site.name, same + len(intents) - len(todo) + len(there))
    yield from (each for each in todo if each.intent.action is not Action.UNCHANGED or each.is_pending)


def _holdings(batch: Batch, tools: RunContext, servers: Servers) -> Mapping[str, Holding]:
    if servers.target_failed or not batch.documents:
        return {}
    try:
        return tools.target.holdings(list(dict.fromkeys(document.document_id for document in batch.documents)))
    except TargetError as error:
        servers.target_failed = error.findings
        return {}


def _same_as_before(
    batch: Batch, holdings: Mapping[str, Holding], site_run: SiteRun
) -> tuple[int, list[ListedDocument]]:
    """How many documents are in every respect as the last harvest left them, and those that are not.

    Most documents of most nights: for them nothing is decided anew, and nothing written.
    """
    if batch.logged:
        return 0, list(batch.documents)
    same, others = 0, []
    for document_id, group in groupby(batch.documents, key=lambda document: document.document_id):
        revisions, holding = list(group), holdings.get(document_id)
        if holding and _is_same(revisions, batch.known, holding, site_run.site.site_id):
            same += len(revisions)
        else:
            others.extend(revisions)
    return same, others


def _is_same(revisions: Sequence[ListedDocument], known: Known, holding: Holding, site_id: int) -> bool:
    if revisions[-1].revision < holding.revision or holding.site_id not in (None, site_id):
        return False
    last = None
    for document in revisions:
        entry = known.get((document.document_id, document.revision))
        if entry is None or document.revision == last:
            return False
        last = document.revision
        if (
            entry.outcome != OutcomeKind.UNCHANGED
            or entry.target_revision != holding.revision
            or entry.pending_sha256 is not None
            or entry.url != document.url
            or entry.document_type != document.document_type
        ):
            return False
    return True


def _as_begun(intents: Iterable[Intent], batch: Batch) -> Iterator[Intent]:
    """The intents, where nothing is to be done with what the target held before the run that was interrupted.

    A revision above it that went in before the interruption does not change what is told of one that was there.
    """
    before: dict[str, int] = {}
    went_in = [(key, held) for key, logged in batch.logged.items() for kind, held in logged if kind in _WENT_IN]
    sent = [(key, entry.target_revision) for key, entry in batch.known.items() if entry.pending_sha256 is not None]
    for (document_id, _), held in (*went_in, *sent):
        if held is not None:
            before[document_id] = min(held, before.get(document_id, held))
    for intent in intents:
        held = before.get(intent.document.document_id)
        if intent.action is Action.UNCHANGED and held is not None and intent.document.revision <= held:
            yield replace(intent, target_revision=held)
        else:
            yield intent


def _is_logged(intent: Intent, logged: LoggedBefore) -> bool:
    """Whether a run that was interrupted logged this entry's outcome already; each logged outcome counts once."""
    outcomes = logged.get(_key(intent), [])
    for outcome in outcomes:
        if (outcome[0] is OutcomeKind.DUPLICATE) == (intent.action is Action.DUPLICATE):
            outcomes.remove(outcome)
            return True
    return False


def _key(intent: Intent) -> ledger.Key:
    return intent.document.document_id, intent.document.revision


_WENT_IN = (OutcomeKind.INSERTED, OutcomeKind.UPDATED)

_GO_ON = (*_WENT_IN, OutcomeKind.STALE, OutcomeKind.DUPLICATE)

_SETTLED = {
    Action.UNCHANGED: OutcomeKind.UNCHANGED,
    Action.STALE: OutcomeKind.STALE,
    Action.DUPLICATE: OutcomeKind.DUPLICATE,
    Action.REFUSE: OutcomeKind.UPLOAD_ERROR,
}


def _settled(intent: Intent) -> Outcome:
    """The outcome of a document for which nothing has to be fetched."""
    return Outcome(intent.document, _SETTLED[intent.action], intent.target_revision, intent.findings)


def _following(result: Result, todo: _Todo) -> _Todo:
    """The next revision of a document, which knows what the target holds since the one before has its outcome."""
    outcome = result.outcome
    held = outcome.document.revision if outcome.kind in _WENT_IN else outcome.target_revision
    return replace(todo, intent=replace(todo.intent, target_revision=held))


class _Pace:
    """How many documents of a site one thread should get at a time: so many as take a few hundredths of a second.

    To hand over many small things costs more than to do them; but what takes long has to be done side by side, and may
    have to be broken off.
    """

    def __init__(self) -> None:
        self.together = 1

    def fetched(self, fetched: FetchedDocument) -> None:
        """Another document was fetched. They become more slowly, and fewer at once."""
        most = min(
            MOST_TOGETHER,
            int(TOGETHER_SECONDS / (fetched.seconds or 0.001)),
            TOGETHER_BYTES // (len(fetched.content) or 1),
        )
        self.together = max(1, min(most, self.together * 2))


class _Work:
    """What is done with documents, in threads: fetch, check, and send to a target that is not the journal's own."""

    def __init__(self, site_run: SiteRun, source: Source, tools: RunContext, servers: Servers, share: Share) -> None:
        self._share = share
        self._site_run = site_run
        self._source = source
        self._tools = tools
        self._servers = servers
        self._pace = _Pace()

    def together(self) -> int:
        """How many documents one thread should get: several where that takes next to no time."""
        return self._pace.together

    def __call__(self, todos: Sequence[_Todo]) -> Sequence[Result | Again[_Todo] | InLine[_Todo]]:
        """The results of the first documents, up to one that did not go in."""
        results: list[Result | Again[_Todo] | InLine[_Todo]] = []
        for todo in todos:
            results.append(result := self._guarded(todo))
            if not isinstance(result, Result) or result.outcome.kind not in _GO_ON:
                break
        return results

    def _guarded(self, todo: _Todo) -> Result | Again[_Todo] | InLine[_Todo]:
        """The document's result. A surprise costs this document alone, or its site would never get past it."""
        try:
            return self._done(todo)
        except (DatabaseError, RunLost):
            raise
        except Exception as error:
            document = todo.intent.document
            log.exception("The harvest of %s failed", document.docid)
            finding = unexpected_error(error, "The harvester itself failed on this document")
            unconfirmed = not self._tools.target.writes_in_journal
            outcome = Outcome(document, OutcomeKind.UPLOAD_ERROR, todo.intent.target_revision, (finding,))
            return Result(replace(outcome, unconfirmed=unconfirmed))

    def _done(self, todo: _Todo) -> Result | Again[_Todo] | InLine[_Todo]:
        intent, url = todo.intent, todo.intent.document.url
        if not intent.wants_fetch and not todo.is_pending:
            return Result(_settled(intent))
        if why := self._tools.ending.why():
            return self._deferred(todo, why, transient=False)
        if findings := self._servers.target_failed:
            return self._deferred(todo, findings[0], transient=False)
        if not self._servers.answers(url):
            return self._deferred(todo, self._servers.stopped(url), self._servers.host(url))
        if pause := self._servers.pause(url):
            return Again(time.monotonic() + pause, todo)
        if todo.in_line and time.monotonic() - todo.in_line[0] > self._tools.settings.http.list_deadline:
            return self._deferred(todo, *todo.in_line[1:])
        try:
            if todo.is_pending and (looked_up := self._looked_up(todo)):
                return Result(looked_up)
        except TargetError as error:
            self._servers.target_did_not_answer(error.findings)
            return self._deferred(todo, error.findings[0], transient=False)
        if not self._tools.room.is_left:
            return InLine(self._tools.room, todo)
        tries = todo.failed.tries if todo.failed else Tries()
        try:
            fetched = self._source.fetch(intent.document)
        except NoConnectionFree as error:
            since = todo.in_line[0] if todo.in_line else time.monotonic()
            return InLine(error.line, replace(todo, in_line=(since, error.findings[0], error.host)))
        except NotAsked as error:
            return self._not_asked(todo, error)
        except FetchError as error:
            return self._failed(todo, tries.and_one(error), error)
        self._servers.failed(url, transient=False)
        self._pace.fetched(fetched)
        return self._checked(intent, fetched)

    def _failed(self, todo: _Todo, tries: Tries, error: FetchError) -> Result | Again[_Todo]:
        """An access error, unless it is worth another try in this run."""
        intent, http = todo.intent, self._tools.settings.http
        if not error.counted:
            self._servers.failed(intent.document.url, error.transient)
        outcome = Outcome(
            intent.document,
            OutcomeKind.ACCESS_ERROR,
            intent.target_revision,
            tries.findings(error, http),
            tries.seconds if error.seconds is not None else None,
            transient=error.transient,
        )
        wait = tries.wait(error, http, http.document_deadline)
        if wait is None:
            return Result(outcome)
        return Again(time.monotonic() + wait, replace(todo, failed=_Failed(tries, outcome), in_line=None))

    def _not_asked(self, todo: _Todo, error: NotAsked) -> Result | Again[_Todo]:
        """Later, where its server wants to be left alone for a while only; in the next run where it is longer."""
        if error.retry_after is not None and may_be_waited_for(error, self._tools.settings.http):
            return Again(time.monotonic() + error.retry_after, replace(todo, in_line=None))
        return self._deferred(todo, error.findings[0], error.host)

    def _deferred(self, todo: _Todo, why: Finding, host: str = "", *, transient: bool = True) -> Result:
        """Put off, for the reason that is told once for all; what was tried has failed, as it did at the last try.

        `transient`: for a failure of its web server.
        """
        if todo.failed is not None:
            return Result(todo.failed.outcome)
        self._servers.defer(why, host)
        document = todo.intent.document
        outcome = Outcome(document, OutcomeKind.DEFERRED, todo.intent.target_revision, transient=transient)
        return Result(replace(outcome, unconfirmed=todo.is_pending))

    def _checked(self, intent: Intent, fetched: FetchedDocument) -> Result:
        options, settings = self._site_run.site.options, self._tools.settings.validation
        mismatch = options.package_id_mismatch or settings.package_id_mismatch
        verdict = fetched.verdict or self._tools.validator.check(fetched.content, fetched.document, mismatch)
        outcome = Outcome(
            intent.document,
            _wanted(intent) if verdict.acceptable else OutcomeKind.INVALID,
            intent.target_revision,
            verdict.findings,
            fetched.seconds,
            len(fetched.content),
            fetched.sha256,
        )
        if not verdict.acceptable:
            return Result(outcome)
        if self._tools.target.writes_in_journal:
            self._share.take(len(fetched.content))
            return Result(outcome, fetched)
        return Result(self._sent(outcome, fetched))

    def _sent(self, outcome: Outcome, fetched: FetchedDocument) -> Outcome:
        """Send it; where the target did not say how that ended, the ledger goes on saying that it is pending."""
        self._tools.journal.mark_pending(self._site_run, fetched, outcome.target_revision)
        upload = Upload(fetched, self._site_run.site.site_id, self._tools.clock())
        try:
            [action] = self._tools.target.upload([upload], None)
        except TargetError as error:
            if error.transient:
                self._servers.target_did_not_answer(error.findings)
            else:
                self._servers.target_answered()
            failed = outcome.as_error(OutcomeKind.UPLOAD_ERROR, *error.findings)
            return replace(failed, transient=error.transient, unconfirmed=error.transient)
        self._servers.target_answered()
        return replace(outcome, kind=OutcomeKind.INSERTED if action is Action.INSERT else OutcomeKind.UPDATED)

    def _looked_up(self, todo: _Todo) -> Outcome | None:
        """How a pending upload ended, as the target has it; None where it did not arrive and is to be sent again."""
        entry, intent = todo.known, todo.intent
        assert entry is not None
        is_there = self._tools.target.holds(entry.document_id, entry.revision, entry.pending_sha256 or "")
        self._servers.target_answered()
        if is_there:
            kind = OutcomeKind.INSERTED if entry.target_revision is None else OutcomeKind.UPDATED
            return Outcome(intent.document, kind, entry.target_revision, (_ARRIVED,), sha256=entry.pending_sha256)
        if intent.wants_fetch:
            return None
        if intent.action is not Action.UNCHANGED:
            return _settled(intent)
        return Outcome(intent.document, OutcomeKind.UPLOAD_ERROR, intent.target_revision, (_OTHER_CONTENT,))


_ARRIVED = Finding(
    "target.unconfirmed",
    "An earlier run was interrupted while it sent this document; the repository was asked, and has it.",
    "Nothing is to be done.",
    Level.WARNING,
)
_OTHER_CONTENT = Finding(
    "target.other-content",
    "An earlier run was interrupted while it sent this document; the repository now has this revision, or a higher "
    "one, with other content.",
    "The administrator should compare the two; to replace what the repository has, raise the revision.",
)


def _wanted(intent: Intent) -> OutcomeKind:
    return OutcomeKind.INSERTED if intent.action is Action.INSERT else OutcomeKind.UPDATED
