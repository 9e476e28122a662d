"""One site's documents, a thousand at a time: ask the target, decide, fetch, check, insert or update, log.

Documents are fetched and checked side by side, by threads that return values; the revisions of one document follow one
another. Memory is bounded by the documents in flight, not by those listed.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from metaharvest import ledger
from metaharvest.decide import decide
from metaharvest.errors import DatabaseError, FetchError, RunLost, TargetError
from metaharvest.journal import GROUP_SECONDS, Clock, Journal, SiteRun
from metaharvest.journal_group import surprise
from metaharvest.records import (
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
from metaharvest.settings import Settings
from metaharvest.sources import Source
from metaharvest.staging import BATCH, Staging
from metaharvest.targets import Target, Upload

if TYPE_CHECKING:
    from metaharvest.validation import Validator

log = logging.getLogger(__name__)

FAILURES_IN_A_ROW = 5
"""After so many passing failures of one server in a row it is asked no more in this site run."""

Known = Mapping[ledger.Key, ledger.LedgerEntry]
Logged = dict[ledger.Key, list[str]]


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
class Tools:
    """What harvesting a site needs, made once a run.

    `workers` fetch, and wait; `checkers` validate, as many as there are cores: more gain nothing, and each has compiled
    schemas of its own. `site_names` are the registered sites by id, `waiting` those with documents to try again. Once
    `stop` is set, no more documents are asked for.
    """

    settings: Settings
    journal: Journal
    target: Target
    validator: Validator
    workers: Executor
    checkers: Executor
    progress: Progress
    clock: Clock
    site_names: Mapping[int, str]
    waiting: Collection[int]
    stop: threading.Event


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
    logged: Logged


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
        if len(entries) == number:
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
    yield Batch((), {}, journal.logged_between(site_run, last, None))


def harvest_documents(site_run: SiteRun, batches: Iterable[Batch], source: Source, tools: Tools) -> Tally:
    """Bring every document to its outcome; the numbers that go into the totals."""
    tally, server = Tally(), _Server()
    work = _Work(site_run, source, tools, server)
    chains = _chains(batches, site_run, tools, server, tally)
    for todo, result in _side_by_side(chains, work, tools):
        tools.journal.record(site_run, result.outcome, result.fetched, todo.known)
        tools.progress.documents_ended(site_run.site.name, 1)
    server.report(site_run, tools.journal)
    return tally


@dataclass(frozen=True, slots=True)
class _Todo:
    """One document that is to have an outcome of its own, and what the ledger knows of it."""

    intent: Intent
    known: ledger.LedgerEntry | None

    @property
    def is_pending(self) -> bool:
        """Whether an earlier run began to upload this document and never learnt how that ended."""
        is_first = self.intent.action is not Action.DUPLICATE
        return is_first and self.known is not None and self.known.pending_sha256 is not None


def _chains(
    batches: Iterable[Batch], site_run: SiteRun, tools: Tools, server: _Server, tally: Tally
) -> Iterator[deque[_Todo]]:
    """What is to be done, document by document, revisions in order; what is unchanged is settled on the way."""
    for batch in batches:
        for _, group in groupby(_decided(batch, site_run, tools, server, tally), key=_document_id):
            yield deque(group)


def _document_id(todo: _Todo) -> str:
    return todo.intent.document.document_id


def _decided(batch: Batch, site_run: SiteRun, tools: Tools, server: _Server, tally: Tally) -> Iterator[_Todo]:
    """Ask the target, decide, settle the unchanged ones, count; the rest is to be done."""
    holdings = _holdings(batch, tools, server)
    same, documents = _same_as_before(batch, holdings, site_run) if holdings else (0, batch.documents)
    # Where the target does not answer, nothing is known to be held: what would be fetched is then put off instead.
    intents = list(decide(documents, holdings, site_run.site.site_id, tools.site_names))
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


def _holdings(batch: Batch, tools: Tools, server: _Server) -> Mapping[str, Holding]:
    if server.target_failed or not batch.documents:
        return {}
    try:
        return tools.target.holdings(list(dict.fromkeys(document.document_id for document in batch.documents)))
    except TargetError as error:
        server.target_failed = error.findings
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


def _is_logged(intent: Intent, logged: Logged) -> bool:
    """Whether a run that was interrupted logged this entry's outcome already; each logged outcome counts once."""
    outcomes = logged.get(_key(intent), [])
    for outcome in outcomes:
        if (outcome == OutcomeKind.DUPLICATE) == (intent.action is Action.DUPLICATE):
            outcomes.remove(outcome)
            return True
    return False


def _key(intent: Intent) -> ledger.Key:
    return intent.document.document_id, intent.document.revision


_SETTLED = {
    Action.UNCHANGED: OutcomeKind.UNCHANGED,
    Action.STALE: OutcomeKind.STALE,
    Action.DUPLICATE: OutcomeKind.DUPLICATE,
    Action.REFUSE: OutcomeKind.UPLOAD_ERROR,
}


def _settled(intent: Intent) -> Outcome:
    """The outcome of a document for which nothing has to be fetched."""
    return Outcome(intent.document, _SETTLED[intent.action], intent.target_revision, intent.findings)


def _side_by_side(
    chains: Iterator[deque[_Todo]], work: Callable[[_Todo], Result], tools: Tools
) -> Iterator[tuple[_Todo, Result]]:
    """The results as they come; so many documents at once as their host may be asked for, one revision of each."""
    under_way: dict[Future[Result], tuple[_Todo, deque[_Todo]]] = {}
    ended: SimpleQueue[Future[Result]] = SimpleQueue()

    def begin(revisions: deque[_Todo]) -> None:
        todo = revisions.popleft()
        future = tools.workers.submit(work, todo)
        under_way[future] = (todo, revisions)
        future.add_done_callback(ended.put)

    try:
        for revisions in islice(chains, tools.settings.http.connections_per_host):
            begin(revisions)
        while under_way:
            try:
                future = ended.get(timeout=GROUP_SECONDS)
            except Empty:
                tools.journal.flush_if_old()
                continue
            todo, revisions = under_way.pop(future)
            for following in islice(chains, 0 if revisions else 1):
                begin(following)
            yield todo, future.result()
            if revisions:
                # Only now, as the one before it is recorded: revisions go in in ascending order.
                begin(revisions)
    finally:
        for future in under_way:
            future.cancel()
        wait(under_way)


class _Work:
    """What is done with one document, in a thread: fetch, check, and send to a target that is not the journal's own."""

    def __init__(self, site_run: SiteRun, source: Source, tools: Tools, server: _Server) -> None:
        self._site_run = site_run
        self._source = source
        self._tools = tools
        self._server = server

    def __call__(self, todo: _Todo) -> Result:
        """The document's result. A surprise costs this document alone, or its site would never get past it."""
        try:
            return self._done(todo)
        except (DatabaseError, RunLost):
            raise
        except Exception as error:
            document = todo.intent.document
            log.exception("The harvest of %s failed", document.docid)
            finding = surprise(error, "The harvester itself failed on this document")
            unconfirmed = not self._tools.target.writes_in_journal
            outcome = Outcome(document, OutcomeKind.UPLOAD_ERROR, todo.intent.target_revision, (finding,))
            return Result(replace(outcome, unconfirmed=unconfirmed))

    def _done(self, todo: _Todo) -> Result:
        intent = todo.intent
        if not intent.wants_fetch and not todo.is_pending:
            return Result(_settled(intent))
        if self._tools.stop.is_set() or self._server.target_failed or not self._server.answers(intent.document.url):
            return self._deferred(todo)
        try:
            if todo.is_pending and (looked_up := self._looked_up(todo)):
                return Result(looked_up)
        except TargetError as error:
            self._server.target_did_not_answer(error.findings)
            return self._deferred(todo)
        try:
            fetched = self._source.fetch(intent.document)
        except FetchError as error:
            self._server.failed(intent.document.url, error.passing)
            return Result(
                Outcome(
                    intent.document,
                    OutcomeKind.ACCESS_ERROR,
                    intent.target_revision,
                    error.findings,
                    error.seconds,
                    passing=error.passing,
                )
            )
        self._server.failed(intent.document.url, passing=False)
        return self._checked(intent, fetched)

    def _deferred(self, todo: _Todo) -> Result:
        document = todo.intent.document
        if self._tools.stop.is_set():
            self._server.run_stopped = True
        else:
            self._server.defer(document.url)
        outcome = Outcome(document, OutcomeKind.DEFERRED, todo.intent.target_revision, unconfirmed=todo.is_pending)
        return Result(outcome)

    def _checked(self, intent: Intent, fetched: FetchedDocument) -> Result:
        options, settings = self._site_run.site.options, self._tools.settings.validation
        mismatch = options.package_id_mismatch or settings.package_id_mismatch
        check = self._tools.validator.check
        verdict = self._tools.checkers.submit(check, fetched.content, fetched.document, mismatch).result()
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
            return Result(outcome, fetched)
        return Result(self._sent(outcome, fetched))

    def _sent(self, outcome: Outcome, fetched: FetchedDocument) -> Outcome:
        """Send it; where the target did not say how that ended, the ledger goes on saying that it is pending."""
        self._tools.journal.pend(self._site_run, fetched, outcome.target_revision)
        upload = Upload(fetched, self._site_run.site.site_id, self._tools.clock())
        try:
            [action] = self._tools.target.upload([upload], None)
        except TargetError as error:
            if error.passing:
                self._server.target_did_not_answer(error.findings)
            failed = outcome.as_error(OutcomeKind.UPLOAD_ERROR, *error.findings)
            return replace(failed, passing=error.passing, unconfirmed=error.passing)
        return replace(outcome, kind=OutcomeKind.INSERTED if action is Action.INSERT else OutcomeKind.UPDATED)

    def _looked_up(self, todo: _Todo) -> Outcome | None:
        """How a pending upload ended, as the target has it; None where it did not arrive and is to be sent again."""
        entry, intent = todo.known, todo.intent
        assert entry is not None
        if self._tools.target.holds(entry.document_id, entry.revision, entry.pending_sha256 or ""):
            kind = OutcomeKind.INSERTED if entry.target_revision is None else OutcomeKind.UPDATED
            return Outcome(intent.document, kind, entry.target_revision, (_ARRIVED,), sha256=entry.pending_sha256)
        if intent.wants_fetch:
            return None
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


_STOPPED = Finding(
    "harvest.stopped",
    "The run was stopped before it came to its end; what was left was put off.",
    "Nothing is to be done: the next run goes on with it.",
    Level.WARNING,
)


class _Server:
    """Remembers, host by host, whether a site's servers still answer, and whether the target does."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._failures: dict[str, int] = {}
        self._deferred: dict[str, int] = {}
        self._target_failures = 0
        self.target_failed: tuple[Finding, ...] = ()
        self.run_stopped = False

    def target_did_not_answer(self, findings: tuple[Finding, ...]) -> None:
        """Count it; after a few times the target is asked no more."""
        with self._mutex:
            self._target_failures += 1
            if self._target_failures >= FAILURES_IN_A_ROW:
                self.target_failed = findings

    def answers(self, url: str) -> bool:
        with self._mutex:
            return self._failures.get(_host(url), 0) < FAILURES_IN_A_ROW

    def failed(self, url: str, passing: bool) -> None:
        """Count a passing failure; anything else says that the server is there."""
        host = _host(url)
        with self._mutex:
            if self._failures.get(host, 0) < FAILURES_IN_A_ROW:
                self._failures[host] = self._failures.get(host, 0) + 1 if passing else 0

    def defer(self, url: str) -> None:
        with self._mutex:
            self._deferred[_host(url)] = self._deferred.get(_host(url), 0) + 1

    def report(self, site_run: SiteRun, journal: Journal) -> None:
        """One finding, with a number, for each server that was asked no more, and for what else put documents off."""
        if self.run_stopped:
            journal.deferred(site_run, [_STOPPED])
        if self.target_failed:
            journal.deferred(site_run, self.target_failed)
            return
        for host, number in self._deferred.items():
            finding = Finding(
                "http.server-stopped",
                f"The server {host} failed {FAILURES_IN_A_ROW} times in a row and was not asked again: "
                f"{number:,} documents were put off to the next run.",
                "Look whether the server is up; the documents are tried again by themselves.",
                Level.WARNING,
            )
            journal.deferred(site_run, [finding])


def _host(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2].lower()
