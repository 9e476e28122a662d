"""One site's documents, a thousand at a time: ask the target, decide, fetch, check, insert or update, log.

Documents are fetched and checked side by side, by threads that return values; the revisions of one document follow one
another. Memory is bounded by the documents in flight, not by those listed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Protocol
from urllib.parse import urlsplit

from metaharvest import ledger
from metaharvest.decide import decide
from metaharvest.errors import FetchError, TargetError
from metaharvest.journal import GROUP_SECONDS, Clock, Journal, SiteRun
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
    SiteRunKind,
)
from metaharvest.settings import Settings
from metaharvest.sources import Source
from metaharvest.staging import Staging
from metaharvest.targets import Target, Upload
from metaharvest.validation import Validator

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
    """What harvesting a site needs, made once a run. `site_names` are the registered sites by id."""

    settings: Settings
    journal: Journal
    target: Target
    validator: Validator
    workers: Executor
    progress: Progress
    clock: Clock
    site_names: Mapping[int, str]


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


def harvest_documents(site_run: SiteRun, staged: Staging, source: Source, tools: Tools) -> Tally:
    """Bring every staged document to its outcome; the numbers that go into the totals."""
    tally, server, last = Tally(), _Server(), None
    for batch in staged.batches():
        upto = batch[-1].document_id
        known, logged = tools.journal.known_between(site_run, last, upto)
        intents = _intents(batch, known, site_run, tools, server)
        _harvest_batch(intents, known, logged, site_run, source, tools, server, tally)
        last = upto
    known, logged = tools.journal.known_between(site_run, last, None)
    _harvest_batch([], known, logged, site_run, source, tools, server, tally)
    server.report(site_run, tools.journal)
    return tally


def _intents(
    batch: list[ListedDocument], known: Known, site_run: SiteRun, tools: Tools, server: _Server
) -> list[Intent]:
    """What is to be done with each document of a batch; where the target does not answer, nothing now."""
    document_ids = list(dict.fromkeys(document.document_id for document in batch))
    try:
        holdings: Mapping[str, Holding] = tools.target.holdings(document_ids) if not server.target_failed else {}
    except TargetError as error:
        server.target_failed = error.findings
        holdings = {}
    if not server.target_failed:
        return list(decide(batch, holdings, site_run.site.site_id, tools.site_names))
    return [Intent(document, Action.INSERT) for document in batch]


def _harvest_batch(
    intents: list[Intent],
    known: Known,
    logged: Logged,
    site_run: SiteRun,
    source: Source,
    tools: Tools,
    server: _Server,
    tally: Tally,
) -> None:
    journal, name = tools.journal, site_run.site.name
    todo = [intent for intent in intents if not _is_logged(intent, logged)]
    there = [intent for intent in todo if intent.action is Action.UNCHANGED and not _is_pending(intent, known)]
    listed = {(intent.document.document_id, intent.document.revision) for intent in intents}
    gone = [entry for key, entry in known.items() if key not in listed and entry.pending_sha256 is None]
    journal.set_unchanged(
        site_run,
        [(_settled(intent), known.get(_key(intent))) for intent in there],
        gone if site_run.kind is not SiteRunKind.RETRY else [],
    )
    tools.progress.documents_ended(name, len(intents) - len(todo) + len(there))
    work = _Work(site_run, source, tools, server, known)
    rest = [intent for intent in todo if intent.action is not Action.UNCHANGED or _is_pending(intent, known)]
    for intent, result in _side_by_side(rest, work, tools.workers, tools.settings.harvester.workers, journal):
        journal.record(site_run, result.outcome, result.fetched, known.get(_key(intent)))
        tools.progress.documents_ended(name, 1)
    tally.listed += len(intents) + sum(len(outcomes) for outcomes in logged.values())
    tally.unchanged += len(there)


def _is_logged(intent: Intent, logged: Logged) -> bool:
    """Whether a run that was interrupted logged this entry's outcome already; each logged outcome counts once."""
    outcomes = logged.get(_key(intent), [])
    for outcome in outcomes:
        if (outcome == OutcomeKind.DUPLICATE) == (intent.action is Action.DUPLICATE):
            outcomes.remove(outcome)
            return True
    return False


def _is_pending(intent: Intent, known: Known) -> bool:
    """Whether an earlier run began to upload this document and never learnt how that ended."""
    entry = known.get(_key(intent))
    return entry is not None and entry.pending_sha256 is not None


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
    intents: Iterable[Intent],
    work: Callable[[Intent], Result],
    workers: Executor,
    at_once: int,
    journal: Journal,
) -> Iterator[tuple[Intent, Result]]:
    """The results as they come; at most twice `at_once` documents are in flight, one revision of each at a time."""
    chains = (deque(chain) for _, chain in groupby(intents, key=lambda intent: intent.document.document_id))
    under_way: dict[Future[Result], tuple[Intent, deque[Intent]]] = {}

    def begin(chain: deque[Intent]) -> None:
        intent = chain.popleft()
        under_way[workers.submit(work, intent)] = (intent, chain)

    for chain in islice(chains, 2 * at_once):
        begin(chain)
    try:
        while under_way:
            done, _ = wait(under_way, timeout=GROUP_SECONDS, return_when=FIRST_COMPLETED)
            journal.flush_if_old()
            for future in done:
                intent, chain = under_way.pop(future)
                yield intent, future.result()
                if chain:
                    begin(chain)
                else:
                    for next_chain in islice(chains, 1):
                        begin(next_chain)
    finally:
        for future in under_way:
            future.cancel()
        wait(under_way)


class _Work:
    """What is done with one document, in a thread: fetch, check, and send to a target that is not the journal's own."""

    def __init__(self, site_run: SiteRun, source: Source, tools: Tools, server: _Server, known: Known) -> None:
        self._site_run = site_run
        self._source = source
        self._tools = tools
        self._server = server
        self._known = known

    def __call__(self, intent: Intent) -> Result:
        if _is_pending(intent, self._known) and (looked_up := self._looked_up(intent)):
            return Result(looked_up)
        if not intent.wants_fetch:
            return Result(_settled(intent))
        if self._server.target_failed or not self._server.answers(intent.document.url):
            self._server.defer(intent.document.url)
            return Result(Outcome(intent.document, OutcomeKind.DEFERRED, intent.target_revision))
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

    def _checked(self, intent: Intent, fetched: FetchedDocument) -> Result:
        options, settings = self._site_run.site.options, self._tools.settings.validation
        mismatch = options.package_id_mismatch or settings.package_id_mismatch
        verdict = self._tools.validator.check(fetched.content, fetched.document, mismatch)
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
        self._tools.journal.pend(self._site_run, fetched, outcome.target_revision)
        try:
            self._tools.target.upload(Upload(fetched, self._site_run.site.site_id, self._tools.clock()), None)
        except TargetError as error:
            return outcome.as_error(OutcomeKind.UPLOAD_ERROR, *error.findings)
        return outcome

    def _looked_up(self, intent: Intent) -> Outcome | None:
        """How a pending upload ended, as the target has it; None where it did not arrive and is to be sent again."""
        entry = self._known[_key(intent)]
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


class _Server:
    """Remembers, host by host, whether a site's servers still answer, and whether the target does."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._failures: dict[str, int] = {}
        self._deferred: dict[str, int] = {}
        self.target_failed: tuple[Finding, ...] = ()

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
        """One finding, with a number, for each server that was asked no more."""
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
