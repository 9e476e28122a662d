"""Plans a site's documents, a batch at a time: ask the ledger and the target, decide, settle.

Documents that need no fetching are settled here: most documents are unchanged since the last harvest. Everything in
this module may run in a thread beside the event loop: it writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, groupby

from metaharvest.harvest.context import SiteHarvest
from metaharvest.harvest.decide import decide
from metaharvest.harvest.documents import WENT_IN, Todo, settled
from metaharvest.harvest.lists.staging import Staging
from metaharvest.journal.log_rows import LoggedOutcome, logged_outcomes
from metaharvest.ledger import entries, records, rows
from metaharvest.ledger.entries import Key, LedgerEntry
from metaharvest.ledger.records import Brought, KnownRecord
from metaharvest.model import Action, DocumentState, Holding, Intent, ListedDocument, Outcome, OutcomeKind, SiteRun
from metaharvest.model.values import frozen

Known = Mapping[Key, LedgerEntry]


@frozen
class Batch:
    """Documents to decide on, all revisions of each, in order, and the ledger's knowledge of them.

    `logged` are the outcomes that an interrupted run has logged already, in the batch's range of document ids.
    `unlisted` has the ledger's documents in that range that the list no longer has; `named`: the documents that the
    list names there, in any revision. `records`: the ledger's knowledge of the records of a source repository.
    """

    documents: Sequence[ListedDocument] = ()
    known: Known = field(default_factory=dict)
    logged: dict[Key, list[LoggedOutcome]] = field(default_factory=dict)
    unlisted: Sequence[LedgerEntry] = ()
    named: Collection[str] = ()
    records: Mapping[str, KnownRecord] = field(default_factory=dict)

    @property
    def left(self) -> dict[str, LedgerEntry]:
        """The documents that the list does not name any more, each by one revision, a good one if there is one."""
        left: dict[str, LedgerEntry] = {}
        for entry in self.unlisted:
            name = entry.document_id
            if name not in self.named and (name not in left or entry.outcome in entries.GOOD):
                left[name] = entry
        return left

    @property
    def to_look_up(self) -> list[str]:
        """The documents that did not succeed, although the target has or may have a revision of them."""
        return [
            name
            for name, entry in self.left.items()
            if entry.outcome not in entries.GOOD
            and (entry.target_revision is not None or entry.outcome == OutcomeKind.DEFERRED)
        ]


@frozen
class Plan:
    """The plan of a batch: `chains` holds the revisions to bring in, document by document, in order.

    `listed` documents are accounted for, `unchanged` of them are in the target already; `settled` entries go
    into the ledger. `ended` outcomes come with this plan.
    """

    listed: int
    unchanged: int
    ended: int
    settled: Sequence[tuple[Outcome, LedgerEntry | None]]
    chains: Sequence[Sequence[Todo]]
    unlisted: Sequence[LedgerEntry]
    vanished: Sequence[LedgerEntry]

    @property
    def to_fetch(self) -> int:
        """The number of documents to fetch."""
        return sum(todo.intent.wants_fetch for chain in self.chains for todo in chain)


def plans(batches: Iterable[Batch], harvest: SiteHarvest) -> Iterator[Plan]:
    """A plan for each batch."""
    site_run, target, ctx = harvest.site_run, harvest.target, harvest.ctx
    for batch in batches:
        holdings = target.holdings(list(dict.fromkeys(document.document_id for document in batch.documents)))
        holdings = {**holdings, **target.holdings(batch.to_look_up)}
        brought: Mapping[str, Brought] = {}
        if batch.records and site_run.same_origin.others:
            batch = above_those_of_others(batch, holdings, site_run)
            with ctx.reading() as session:
                brought = records.brought(session, site_run.same_origin.others, holdings)
        yield plan(batch, holdings, site_run, ctx.site_names, brought, is_away=bool(target.health.given_up))


def plan(
    batch: Batch,
    holdings: Mapping[str, Holding],
    site_run: SiteRun,
    site_names: Mapping[int, str],
    brought: Mapping[str, Brought],
    *,
    is_away: bool = False,
) -> Plan:
    """The plan of a batch, with the target's holdings; `is_away`: the target does not answer. Pure.

    `brought`: documents of the batch that other sites of the origin have brought.
    """
    same, documents = _split_same(batch, holdings, site_run) if holdings else (0, batch.documents)
    # If the target does not answer, its holdings count as empty: documents that would be fetched are deferred instead.
    are_records = site_run.site.options.oai is not None
    others = {site_id: name for site_id, name in site_names.items() if site_id not in site_run.same_origin.others}
    decided = decide(documents, holdings, site_run.site.site_id, others, are_records=are_records)
    if batch.records:
        decided = _beside_what_was_sent(decided, batch.records, brought, holdings)
    if is_away:
        decided = _as_far_as_known(decided, batch.known)
    intents = list(_as_begun(decided, batch) if site_run.resumed else decided)
    # All logged outcomes belong to this site run, even if the list no longer names the documents.
    logged = sum(len(outcomes) for outcomes in batch.logged.values())
    todos = [Todo(intent, batch.known.get(_key(intent))) for intent in _not_logged(intents, batch.logged)]
    there = [todo for todo in todos if todo.is_there]
    rest = groupby((todo for todo in todos if not todo.is_there), key=_document_id)
    return Plan(
        listed=same + len(todos) + logged,
        unchanged=same + len(there),
        ended=same + len(intents) - len(todos) + len(there),
        settled=[(settled(todo.intent), todo.known) for todo in there],
        chains=[list(revisions) for _, revisions in rest],
        unlisted=batch.unlisted,
        vanished=list(_vanished(batch, holdings, site_run)) if batch.unlisted else (),
    )


def _vanished(batch: Batch, holdings: Mapping[str, Holding], site_run: SiteRun) -> Iterator[LedgerEntry]:
    """The documents of this site in the target that the list does not name in any revision any more."""
    for name, entry in batch.left.items():
        holding = holdings.get(name)
        if entry.outcome in entries.GOOD:
            yield entry
        elif holding is not None and holding.site_id in (None, site_run.site.site_id):
            yield replace(entry, target_revision=holding.revision)


def staged_batches(harvest: SiteHarvest, staged: Staging) -> Iterator[Batch]:
    """The documents of a list that was read, and the ledger's further documents."""
    last = None
    for documents in chain(staged.batches(harvest.ctx.batch), [[]]):
        upto = documents[-1].document_id if documents else None
        listed = {(document.document_id, document.revision) for document in documents}
        named = {document.document_id for document in documents}
        known: dict[Key, LedgerEntry] = {}
        unlisted: list[LedgerEntry] = []
        for page in _ledger_pages(harvest, last, upto):
            if unlisted:
                yield Batch(unlisted=unlisted, named=named)
            keyed = [(_entry_key(entry), entry) for entry in page]
            known |= {key: entry for key, entry in keyed if key in listed}
            unlisted = [entry for key, entry in keyed if key not in listed]
        yield Batch(documents, known, _logged(harvest, last, upto), unlisted, named)
        last = upto


def retry_batches(harvest: SiteHarvest, staged: Staging) -> Iterator[Batch]:
    """The documents to be tried again; the rest of the ledger stays unchanged."""
    last = None
    for documents in chain(staged.batches(harvest.ctx.batch), [[]]):
        upto = documents[-1].document_id if documents else None
        ids = list({document.document_id for document in documents})
        with harvest.ctx.reading() as session:
            entries = list(rows.entries_of(session, harvest.site.site_id, ids))
            are_records = harvest.site.options.oai is not None
            of_records = records.known_records(session, harvest.site.site_id, ids) if are_records else {}
        # The target may have older content of these: the new content is then their next revision.
        as_they_were = (DocumentState.OLDER, DocumentState.REAPPEARED)
        doubted = {each.document_id for each in entries if each.state in as_they_were}
        documents = [replace(each, revision=each.revision + (each.document_id in doubted)) for each in documents]
        known = {(each.document_id, each.revision + (each.document_id in doubted)): each for each in entries}
        yield Batch(documents, known, _logged(harvest, last, upto), records=of_records)
        last = upto


def ledger_batches(harvest: SiteHarvest) -> Iterator[Batch]:
    """The documents of an unchanged list, as the ledger has them."""
    last = None
    for page in _ledger_pages(harvest, None, None):
        documents = [ListedDocument(e.document_id, e.revision, e.document_type, e.url) for e in page]
        upto = page[-1].document_id
        yield Batch(documents, {_entry_key(entry): entry for entry in page}, _logged(harvest, last, upto))
        last = upto
    yield Batch(logged=_logged(harvest, last, None))


def _ledger_pages(harvest: SiteHarvest, after: str | None, upto: str | None) -> Iterator[list[LedgerEntry]]:
    """The site's ledger in this range of document ids, in pages, all revisions of a document together.

    Each page has a session of its own, which is closed before the page is used: its user may wait for the writer.
    """
    number = harvest.ctx.batch
    while True:
        with harvest.ctx.reading() as session:
            entries = rows.entries_between(session, harvest.site.site_id, after, upto, number)
        is_last = len(entries) < number
        # The last document may have more revisions than this page: it is left for the next page.
        page = entries if is_last else [each for each in entries if each.document_id != entries[-1].document_id]
        if page:
            yield page
            after = page[-1].document_id
        if is_last:
            return
        number = harvest.ctx.batch if page else number * 2


def _logged(harvest: SiteHarvest, after: str | None, upto: str | None) -> dict[Key, list[LoggedOutcome]]:
    if not harvest.site_run.resumed:
        return {}
    with harvest.ctx.reading() as session:
        return logged_outcomes(session, harvest.site_run, after, upto)


def _split_same(batch: Batch, holdings: Mapping[str, Holding], site_run: SiteRun) -> tuple[int, list[ListedDocument]]:
    """The number of documents that the last harvest left in exactly this state, and the other documents.

    Most documents of most nights are in this state: there is nothing to decide, and nothing to write.
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
            or entry.state != DocumentState.HELD
            or entry.target_revision != holding.revision
            or entry.url != document.url
            or entry.document_type != document.document_type
        ):
            return False
    return True


def _as_begun(intents: Iterable[Intent], batch: Batch) -> Iterator[Intent]:
    """The intents. Revisions that the target held before the interrupted run need nothing.

    A revision above them that went in before the interruption does not change their outcome.
    """
    before: dict[str, int] = {}
    went_in = [(key, held) for key, logged in batch.logged.items() for kind, held in logged if kind in WENT_IN]
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


def _beside_what_was_sent(
    intents: Iterable[Intent],
    of_records: Mapping[str, KnownRecord],
    of_others: Mapping[str, Brought],
    holdings: Mapping[str, Holding],
) -> Iterator[Intent]:
    """The intents, with the digests of the target's content of these records, if the target itself has no digests."""
    for intent in intents:
        document_id = intent.document.document_id
        known, brought, holding = of_records.get(document_id), of_others.get(document_id), holdings.get(document_id)
        if holding is not None and intent.held_sha256 is None:
            sha256 = known.sent_as(holding) if known else None
            intent = replace(intent, held_sha256=sha256 or (brought.sha256 if brought else None))
        yield intent


def above_those_of_others(batch: Batch, holdings: Mapping[str, Holding], site_run: SiteRun) -> Batch:
    """The batch, in which a record that another site of the origin brought meanwhile gets the next revision. Pure.

    So it is fetched, and compared with the target's content.
    """
    known = dict(batch.known)
    documents: list[ListedDocument] = []
    for document in batch.documents:
        key, holding = (document.document_id, document.revision), holdings.get(document.document_id)
        is_pending = key in known and known[key].pending_sha256 is not None
        if holding and holding.site_id in site_run.same_origin.others and not is_pending:
            document = replace(document, revision=max(document.revision, holding.revision + 1))
            if key in known:
                known[document.document_id, document.revision] = known.pop(key)
        documents.append(document)
    return replace(batch, documents=documents, known=known)


def _as_far_as_known(intents: Iterable[Intent], known: Known) -> Iterator[Intent]:
    """The intents, with the ledger's knowledge of the target's content if the target does not report it."""
    for intent in intents:
        if intent.target_revision is None and (entry := known.get(_key(intent))):
            intent = replace(intent, target_revision=entry.target_revision)
        yield intent


def _not_logged(intents: Iterable[Intent], logged: Mapping[Key, Sequence[LoggedOutcome]]) -> Iterator[Intent]:
    """The intents without the outcomes that an interrupted run has logged; each logged outcome counts once."""
    left = {key: list(outcomes) for key, outcomes in logged.items()}
    for intent in intents:
        outcomes = left.get(_key(intent), [])
        is_duplicate = intent.action is Action.DUPLICATE
        match = next((each for each in outcomes if (each[0] is OutcomeKind.DUPLICATE) == is_duplicate), None)
        if match is None:
            yield intent
        else:
            outcomes.remove(match)


def _key(intent: Intent) -> Key:
    return intent.document.document_id, intent.document.revision


def _entry_key(entry: LedgerEntry) -> Key:
    return entry.document_id, entry.revision


def _document_id(todo: Todo) -> str:
    return todo.intent.document.document_id
