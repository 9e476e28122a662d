"""The harvest of a source repository: the story of a sweep, from its first page to its deletions.

begin_sweep()                  describe the source repository; go on with its sweep, or begin one
harvest_sweep()
    for each page:
        plan it                plan.py: records are new, changed, deleted, or the same
        bring its records in   harvest/documents.py, as the documents of lists
        keep the progress      after the outcomes of the page, or in the same transaction
    at the end of the list     note the records that were left out, or are missing
    retry failed records
    wait until the other sites of the origin have listed
    carry out deletions        deletions.py
    check if the target still has the last documents

Records that come again after a crash find their outcomes in the log of the site run. Unchanged records are not in the
log: their number is kept with the checkpoint, and the unchanged records after it are counted again. The requests to the
source repository, window by window, are in sources/oai_pmh/sweep.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import date
from functools import partial
from math import inf

from sqlalchemy.orm import Session

from metaharvest.errors import FetchError, ListIncomplete
from metaharvest.harvest.context import RunContext, SiteHarvest
from metaharvest.harvest.documents import SiteDocuments, Tally, is_checked_by_reading, levelled
from metaharvest.harvest.lists.listed_documents import harvest_documents
from metaharvest.harvest.lists.plan import retry_batches
from metaharvest.harvest.lists.staging import Staging
from metaharvest.harvest.oai.deletions import carry_out_deletions, other_owners
from metaharvest.harvest.oai.plan import AccountedFor, Elsewhere, PageContext, PagePlan, plan_page
from metaharvest.harvest.tasks import in_thread, side_by_side
from metaharvest.journal import log_rows, oai_notes, splits
from metaharvest.journal.log_rows import LogRow
from metaharvest.ledger import deletions, records, retries, sweeps
from metaharvest.ledger.entries import GOOD
from metaharvest.ledger.records import KnownRecord, Unnamed
from metaharvest.ledger.rows import Rows, delete_entries, write_ledger
from metaharvest.ledger.sweeps import Progress
from metaharvest.model import (
    Checkpoint,
    FetchedDocument,
    Holding,
    ListedDocument,
    OriginalColumns,
    OutcomeKind,
    SiteRun,
)
from metaharvest.problems.follow import end_those_of_lists
from metaharvest.sources.base import DocumentSource, ListedRecord, Page, PagedListing, PagedSource
from metaharvest.sources.oai_pmh.versions import NamedIds

_AT_ONCE = 64
"""Records of a page that are checked and stored at a time: enough to keep the worker processes busy."""

_LAST = 20
"""The number of documents that the target is asked for after each list of changes: a DataONE node takes a second."""


class SweepIncomplete(Exception):
    """A sweep broke off, or has ended with holes: `row` says why, `tally` counts the documents until then."""

    def __init__(self, row: LogRow, tally: Tally) -> None:
        super().__init__(row.message)
        self.row = row
        self.tally = tally


async def begin_sweep(site_run: SiteRun, source: PagedSource, ctx: RunContext) -> PagedListing:
    """Go on with the sweep from its last checkpoint, or begin a full one if its records must be checked again.

    Raises FetchError, and ListError if the source repository does not begin a list.
    """
    progress = await _progress(site_run, ctx)
    resumed, rechecks = _is_same_run(site_run, progress), _is_to_check_again(site_run, progress, ctx)
    if ctx.full:
        await ctx.journal.write(site_run, partial(_note_full_wanted, site_run, resumed))
    full = ctx.full or progress.full_wanted or rechecks
    return await source.list_records(progress.checkpoint, ctx.deadlines, full=full, resumed=resumed)


async def harvest_sweep(harvest: SiteHarvest, listing: PagedListing) -> Tally:
    """Bring the records of a list to their outcomes. Returns the numbers for the totals.

    Raises SweepIncomplete if the list breaks off, or has ended with holes. The next harvest goes on from the last
    checkpoint, or tries the holes. Reported deletions are carried out even if the list broke off. They wait if the time
    is up, or the target is away.
    """
    ctx, target = harvest.ctx, harvest.target
    sweep = await _Sweep.begin(harvest, listing)
    incomplete: SweepIncomplete | None = None
    has_ended = True
    try:
        async with aclosing(listing.pages) as listed:
            async for page in listed:
                if why := ctx.deadlines.stop_reason() or next(iter(target.health.given_up), None):
                    raise ListIncomplete(why)
                if page.records or not page.reports_end:
                    # The progress of the last records is kept with the end of the list.
                    await sweep.harvest_page(replace(page, checkpoint=None) if page.reports_end else page)
                if page.reports_end:
                    await sweep.end_list(page)
    except (ListIncomplete, FetchError) as error:
        row = oai_notes.broken_off(error.findings, sweep.received, sweep.announced)
        incomplete = SweepIncomplete(row, sweep.tally)
        has_ended = isinstance(error, ListIncomplete) and error.has_ended
        await sweep.write_outcomes()
    await sweep.documents.note_deferred()
    if incomplete is not None and (ctx.deadlines.stop_reason() or target.health.given_up):
        raise incomplete
    tally = sweep.tally
    if has_ended:
        await _retry_failing(replace(harvest, source=sweep.in_hand), tally)
    await _have_others_list(harvest, has_ended=has_ended)
    tally.listed += await carry_out_deletions(harvest, () if has_ended else sweep.older_deletions)
    if incomplete is not None:
        raise incomplete
    if not (listing.is_complete or listing.is_empty):
        await _note_lost(harvest)
    return tally


class _Sweep:
    """A sweep in this site run: brings its pages to their outcomes, and keeps its progress.

    `first_sweep`: see AccountedFor. `tally` counts the documents of the site run, `received` the records of the sweep.
    `announced`: the number of records that the source repository announced; None: unknown.
    """

    def __init__(
        self, harvest: SiteHarvest, listing: PagedListing, progress: Progress, first_sweep: int, tally: Tally
    ) -> None:
        self._harvest = harvest
        self._listing = listing
        self._progress = progress
        self._first_sweep = first_sweep
        self.tally = tally
        self.received = self._pages = 0
        self.announced: int | None = None
        # The documents whose deletions wait for the rest of the list, if it breaks off: see PagePlan. The deletions of
        # earlier harvests are among them, except those that wait for a confirmation.
        self.older_deletions: set[str] = set()
        # Document ids of the pages since the last checkpoint.
        self._ids = NamedIds()
        # Document ids of the last page, if its outcomes may not be written yet.
        self._unwritten: frozenset[str] = frozenset()
        self.in_hand = _InHand(harvest.source)
        own = replace(harvest, source=self.in_hand)
        self.documents = SiteDocuments(own, tally.phases, self.in_hand.taken, _AT_ONCE)

    @classmethod
    async def begin(cls, harvest: SiteHarvest, listing: PagedListing) -> _Sweep:
        """Go on with the sweep, or begin it; the log says so."""
        site_run, ctx = harvest.site_run, harvest.ctx
        before = await _progress(site_run, ctx)
        progress = _progress_now(before, harvest, listing)
        first_sweep, tally = progress.sweep_id, Tally()
        if site_run.resumed:
            # A second full list names the records of the first one again, so its count begins with zero.
            keeps_count = _is_same_run(site_run, before) and (listing.goes_on or not listing.is_complete)
            unchanged, duplicates = (before.unchanged, before.duplicate) if keeps_count else (0, 0)
            logged = await harvest.read(lambda session: log_rows.number_logged(session, site_run))
            tally = Tally(logged + unchanged + duplicates, unchanged, duplicates=duplicates)
            first_sweep = before.sweep_id if keeps_count else progress.sweep_id
        is_first = before.checkpoint is None
        is_changed = not is_first and progress.treatment != before.treatment
        await harvest.write(partial(_note_begun, site_run, listing, is_changed, is_first, ctx.journal.today))
        entries = await harvest.read(
            lambda session: deletions.waiting_deletions(session, site_run.site, site_run.site_run_id)
        )
        sweep = cls(harvest, listing, progress, first_sweep, tally)
        sweep.older_deletions.update(each.document_id for each in entries if not each.is_to_be_confirmed)
        return sweep

    # -- a page

    async def harvest_page(self, page: Page) -> None:
        """Bring the records of a page to their outcomes, count them, and keep the progress."""
        harvest, name, tally = self._harvest, self._harvest.site.name, self.tally
        self.announced = page.announced if page.announced is not None else self.announced
        ids = list(dict.fromkeys(record.document.document_id for record in page.records))
        if not self._unwritten.isdisjoint(ids):
            await self.write_outcomes()
        plan, rows = await in_thread(partial(self._plan, page, ids))
        self.older_deletions.update(plan.older_deletions)
        await self._bring_in(plan)
        doubts = levelled(page.findings, harvest.ctx.policy)
        tally.listed, tally.unchanged = tally.listed + plan.listed, tally.unchanged + plan.unchanged
        tally.duplicates += plan.duplicate
        self.received, self._pages = self.received + len(page.records), self._pages + 1
        self._set_progress(page.checkpoint, moved=plan.moved)
        harvest.ctx.progress.documents_ended(name, len(page.records) - len(plan.chains))
        harvest.ctx.progress.documents_listed(name, max(self.received, self.announced or 0))
        if page.checkpoint is None and not (page.findings or plan.has_notes or self._unwritten):
            # Two pages in one transaction: each transaction waits for the disk.
            self._unwritten = frozenset(ids)
            return

        def keep(session: Session) -> Iterable[LogRow]:
            self._keep_page(session, plan, rows)
            return () if page.reports_end else oai_notes.doubtful(doubts)

        await harvest.write(keep)
        self._unwritten = frozenset()
        if page.checkpoint is not None:  # the ledger has the ids before it
            self._ids = NamedIds()

    async def write_outcomes(self) -> None:
        """Wait until the outcomes of all pages are written."""
        if self._unwritten:
            await self._harvest.write(lambda session: ())
            self._unwritten = frozenset()

    def _plan(self, page: Page, ids: Sequence[str]) -> tuple[PagePlan, Rows]:
        """Ask the ledger and the target about the records of a page. Returns its plan, and its rows of the ledger.

        To be called in a thread.
        """
        harvest, site_run, progress = self._harvest, self._harvest.site_run, self._progress
        target, ctx = harvest.target, harvest.ctx
        with ctx.reading() as session:
            known = records.known_records(session, site_run.site.site_id, ids)
            logged = log_rows.logged_documents(session, site_run, ids) if site_run.resumed else frozenset()
        # Before the holdings: the listing of a DataONE node names the documents that were deleted there, too.
        deleted = target.used_up([each for each, row in known.items() if row.entry.is_deleted])
        holdings = target.holdings(ids)
        elsewhere = self._elsewhere(page, known, holdings) if site_run.same_origin.others else Elsewhere()
        used_up = {**deleted, **target.used_up([each for each in ids if each not in holdings and each not in deleted])}
        if target.health.given_up:
            # Without the target's holdings nothing can be decided: the next harvest requests the page again.
            raise ListIncomplete(*target.health.given_up)
        goes_on, rechecks = self._listing.goes_on, progress.rechecks
        seen = AccountedFor(progress.sweep_id, self._first_sweep, rechecks, goes_on, before=self._ids, logged=logged)
        context = PageContext(site_run, ctx.site_names, seen, known, holdings, used_up, elsewhere)
        plan = plan_page(page.records, context)
        self._ids.add_page(set(ids))
        return plan, plan.rows(site_run, ctx.journal.today)

    def _elsewhere(self, page: Page, known: Mapping[str, KnownRecord], holdings: Mapping[str, Holding]) -> Elsewhere:
        """Records of a page that other sites of the origin have. For most records, this site's ledger is enough."""
        site_run, ctx = self._harvest.site_run, self._harvest.ctx
        deleted = [each.document.document_id for each in page.records if each.deleted]
        named = {each.document.document_id for each in page.records if not each.deleted}
        others = {each: holding for each, holding in holdings.items() if each in named and not _is_own(known, holding)}
        with ctx.reading() as session:
            listed = records.listed_by(session, site_run.same_origin.enabled, deleted)
            brought = records.brought(session, site_run.same_origin.others, others)
        if ctx.policy.transforms:
            brought = {each: replace(found, digest=None) for each, found in brought.items()}
        return Elsewhere(brought, listed)

    async def _bring_in(self, plan: PagePlan) -> None:
        """Bring the records of a page to their outcomes; in parallel if they wait for checks or for the target."""
        for outcome, known in plan.ended:
            await self.documents.note_ended(outcome, known)
        self.in_hand.records = plan.in_hand
        ctx = self._harvest.ctx
        to_check = sum(not is_checked_by_reading(each.document, ctx.policy) for each in plan.in_hand.values())
        ctx.checker.expect(to_check)
        if self._harvest.target.in_journal and not to_check:
            for revisions in plan.chains:
                await self.documents.turn()
                await self.documents.bring_in(revisions)
            return
        async with side_by_side() as tasks:
            for revisions in plan.chains:
                await self.documents.turn()
                tasks.create_task(self.documents.bring_in(revisions))

    def _set_progress(self, checkpoint: Checkpoint | None, *, moved: int = 0) -> None:
        """Set the progress after a page, or at the end of the list: the counts, and this checkpoint."""
        self._progress = replace(
            self._progress,
            checkpoint=checkpoint,
            unchanged=self.tally.unchanged,
            duplicate=self.tally.duplicates,
            moved=self._progress.moved + moved,
        )

    def _keep_page(self, session: Session, plan: PagePlan, rows: Rows) -> None:
        """Keep what the page says, and the progress if the sweep can go on from here. Raises NotWritten."""
        target = self._harvest.target
        write_ledger(session, *rows)
        # A deletion is no version of the record: the site that lists it live has brought its origin.
        settled = [outcome.document for outcome, _ in plan.settled if outcome.kind is OutcomeKind.UNCHANGED]
        unchanged = [*plan.same, *settled]
        if unchanged and target.in_journal is not None:
            target.in_journal.restamp(unchanged, session)
        if self._progress.checkpoint is not None:
            sweeps.keep_progress(session, self._harvest.site_run, self._progress, self._ids)

    # -- the end of the list

    async def end_list(self, end: Page) -> None:
        """Keep the progress of the sweep; note the records that were left out or are missing.

        The records of the page `end` have their outcomes. Raises ListIncomplete if the target does not answer.
        """
        harvest, rechecks = self._harvest, self._progress.rechecks
        self.announced = end.announced if end.announced is not None else self.announced
        harvest.ctx.progress.documents_listed(harvest.site.name, max(self.received, self.announced or 0))
        # An error may hide the identifiers of some records: then none is known to be missing.
        is_complete = end.is_last and self._listing.is_complete and not any(each.is_error for each in end.findings)
        elsewhere = await in_thread(self._kept_elsewhere) if is_complete else frozenset[str]()
        if end.is_last and end.left_out < inf:
            self._progress = replace(self._progress, rechecks=False)
        self._set_progress(end.checkpoint)

        def keep(session: Session) -> Iterable[LogRow]:
            site_run, today = harvest.site_run, harvest.ctx.journal.today
            if end.checkpoint is not None:
                sweeps.keep_progress(session, site_run, self._progress, self._ids)
            left_out = self._left_out(session, end)
            if end.repeat is not None and 0 < left_out < inf:
                repetition = replace(self._progress, checkpoint=end.repeat, rechecks=rechecks)
                sweeps.keep_progress(session, site_run, repetition, ())
            doubts = oai_notes.doubtful(levelled(end.findings, harvest.ctx.policy))
            rows = self._left_out_rows(session, end, left_out)
            if not end.is_last:
                return [*doubts, *rows]
            # This list is the repetition, and the number is known: the unnamed records are missing.
            spared = 0 if end.repeat is None and left_out < inf else left_out
            number = self._number_listed(session) if self._listing.goes_on else self.received
            if is_complete or self._listing.is_empty:
                rows += self._unnamed_rows(session, spared, elsewhere)
            return [
                *doubts,
                oai_notes.ended(number, None if self._listing.goes_on else self._pages),
                *rows,
                *self._fewer_rows(session, end),
                *splits.sort(session, site_run.site, self._progress.sweep_id, today),
            ]

        await harvest.write(keep)
        if end.checkpoint is not None:
            self._ids = NamedIds()

    def _left_out(self, session: Session, end: Page) -> float:
        """The number of records that may have been left out of the list; infinite: unknown.

        If several runs read the list, the source knows only the records of the last run.
        """
        if not self._listing.goes_on:
            return end.left_out
        named, announced = self._number_listed(session), self.announced or 0
        # If it is not the last page, the list has holes: each harvest requests their records.
        is_known = end.is_last and announced > named and not any(finding.is_error for finding in end.findings)
        return max(end.left_out, announced - named if is_known else self._progress.moved)

    def _left_out_rows(self, session: Session, end: Page, left_out: float) -> list[LogRow]:
        """The row about the records that were left out; none if the list itself says so."""
        if not 0 < left_out < inf or any(finding.rule == oai_notes.LIST_SIZE for finding in end.findings):
            return []
        is_announced = self.announced == self._number_listed(session) + left_out
        announced, asks_again = self.announced if is_announced else None, end.repeat is not None
        return [oai_notes.left_out(int(left_out), announced, self._harvest.site.name, asks_again=asks_again)]

    def _number_listed(self, session: Session) -> int:
        return records.number_listed(session, self._harvest.site.site_id, self._progress.sweep_id)

    def _fewer_rows(self, session: Session, end: Page) -> list[LogRow]:
        """The row about a source repository that has fewer records than at the last full list."""
        if end.in_all is None:
            return []
        known = records.number_live(session, self._harvest.site.site_id)
        return oai_notes.fewer(end.in_all, known, end.in_all_before, self._harvest.site.name)

    def _kept_elsewhere(self) -> frozenset[str]:
        """Records that the list does not name, and that a site of the origin lists or a site of another origin owns.

        To be called in a thread. Raises ListIncomplete if the target does not answer.
        """
        harvest, target = self._harvest, self._harvest.target
        with harvest.ctx.reading() as session:
            unnamed = records.unnamed(session, harvest.site.site_id, self._progress.sweep_id)
            ids = [each.document_id for each in unnamed if each.has_copy and each.document_id not in self._ids]
            listed = records.listed_by(session, harvest.site_run.same_origin.enabled, ids)
        found = frozenset({*listed, *other_owners(ids, harvest)})
        if target.health.given_up:
            # Without the owners, no record is known to be missing: the next harvest requests the last page again.
            raise ListIncomplete(*target.health.given_up)
        return found

    def _unnamed_rows(self, session: Session, left_out: float, elsewhere: Collection[str]) -> list[LogRow]:
        """Note the records that a complete list did not name. Returns the row about them, if any.

        A list that names nothing proves nothing: its records stay as they are. `left_out`: see _certain; `elsewhere`:
        see _kept_elsewhere.
        """
        site, today = self._harvest.site, self._harvest.ctx.journal.today
        unnamed = list(records.unnamed(session, site.site_id, self._progress.sweep_id))
        if self._listing.is_empty or not self._number_listed(session):
            return oai_notes.empty(site, sum(each.has_copy and each.missing_since is None for each in unnamed))
        return _note_unnamed(session, site.site_id, _certain(unnamed, left_out), elsewhere, today)


class _InHand:
    """A source with the records of the page in memory; it fetches all others from the source repository."""

    def __init__(self, source: DocumentSource) -> None:
        self._source = source
        self.records: dict[str, ListedRecord] = {}

    def original_columns(self, document_id: str) -> OriginalColumns:
        return self._source.original_columns(document_id)

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        return self.taken(document) or await self._source.fetch(document, patience)

    def taken(self, document: ListedDocument) -> FetchedDocument | None:
        """Take a record of the page out of memory; None if it is not there."""
        record = self.records.pop(document.document_id, None)
        if record is None or record.content is None:
            return None
        return FetchedDocument(document, record.content, hashlib.sha256(record.content).hexdigest(), None)


# -- how a sweep begins


async def _progress(site_run: SiteRun, ctx: RunContext) -> Progress:
    def read() -> Progress:
        with ctx.reading() as session:
            return sweeps.progress_of(session, site_run.site.site_id, ctx.policy.digest)

    return await in_thread(read)


def _note_full_wanted(site_run: SiteRun, resumed: bool, session: Session) -> Iterable[LogRow]:
    sweeps.note_full_wanted(session, site_run.site.site_id, resumed=resumed)
    return ()


def _is_same_run(site_run: SiteRun, progress: Progress) -> bool:
    """True if the last page of the sweep came in this very site run, before it was interrupted."""
    return site_run.resumed and progress.site_run_id == site_run.site_run_id


def _is_to_check_again(site_run: SiteRun, progress: Progress, ctx: RunContext) -> bool:
    """True if the site's filters, normalising or checks have changed since its records were checked.

    An interrupted site run ends with the checks that it began with; the next one checks all records again.
    """
    return progress.treatment != ctx.policy.digest and not _is_same_run(site_run, progress)


def _progress_now(before: Progress, harvest: SiteHarvest, listing: PagedListing) -> Progress:
    """The progress at the start of the sweep, or of its part in this run. `before`: as it was kept."""
    ctx = harvest.ctx
    checks_again = _is_to_check_again(harvest.site_run, before, ctx)
    is_full = ctx.full or before.full_wanted
    return Progress(
        sweep_id=before.sweep_id + (not listing.goes_on),
        treatment=ctx.policy.digest if checks_again and not listing.is_empty else before.treatment,
        rechecks=checks_again or before.rechecks or (is_full and ctx.policy.transforms),
        moved=before.moved if listing.goes_on else 0,
    )


def _note_begun(
    site_run: SiteRun, listing: PagedListing, is_changed: bool, is_first: bool, today: date, session: Session
) -> Iterable[LogRow]:
    """The log rows about the start of a list.

    `is_changed`: the site's files have changed, so its records are checked again. `is_first`: its first list.
    """
    site = site_run.site
    if listing.is_other:
        records.note_other_request(session, site.site_id)
        end_those_of_lists(session, site.site_id, site_run.site_run_id, today)
    split = splits.begun(session, site) if is_first and site.options.split_from else []
    logged = log_rows.logged_findings(session, site_run) if site_run.resumed else ()
    findings = oai_notes.not_logged(listing.findings, logged)
    return [*oai_notes.begun(site, findings), *split, *([oai_notes.judged_again()] if is_changed else [])]


# -- after its last page


def _certain(unnamed: Sequence[Unnamed], left_out: float) -> Sequence[Unnamed]:
    """The records among these that are missing, although the list may have left out `left_out` records.

    If it may have left out all of the records that are newly unnamed, only records that were missing before count.
    """
    if sum(each.missing_since is None for each in unnamed) > left_out:
        return unnamed
    return [each for each in unnamed if each.missing_since is not None]


def _note_unnamed(
    session: Session, site_id: int, unnamed: Sequence[Unnamed], elsewhere: Collection[str], today: date
) -> list[LogRow]:
    """Mark the copies of these records as missing, and delete the other rows. Returns the row about the copies, if any.

    A document in `elsewhere` belongs to another site: only the row goes.
    """
    missing = [each for each in unnamed if each.has_copy and each.document_id not in elsewhere]
    delete_entries(session, sorted({each.entry_id for each in unnamed} - {each.entry_id for each in missing}))
    if not missing:
        return []
    marked = records.mark_missing(session, site_id, missing, today)
    return [oai_notes.missing([each.document_id for each in missing], marked)]


async def _retry_failing(harvest: SiteHarvest, tally: Tally) -> None:
    """Retry failed records, and fetch records with older versions in the list.

    Records that have an outcome in this site run are left out.
    """
    site_run = harvest.site_run

    def stage(session: Session) -> None:
        staged.fill(retries.failing(session, site_run.site.site_id, site_run.site_run_id))

    with Staging() as staged:
        await harvest.read(stage)
        if not staged.count:
            return
        # These records have no outcome in this site run.
        again = replace(harvest, site_run=replace(site_run, resumed=False))
        retried = await harvest_documents(harvest, retry_batches(again, staged))
    tally.listed += retried.listed
    tally.unchanged += retried.unchanged


async def _note_lost(harvest: SiteHarvest) -> None:
    """If the target has lost documents that this site brought last, let the next harvest ask for all records.

    A list of changes does not name them again. The target lacks them if it was restored from a backup, or is another
    one than before.
    """
    site_id, target = harvest.site.site_id, harvest.target
    brought = await harvest.read(lambda session: dict(records.held_by(session, site_id, _LAST)))
    held = await in_thread(partial(target.holdings, list(brought)))
    if target.health.given_up:
        return
    if lost := records.lacking(brought, held):
        await harvest.write(partial(_keep_lost, site_id, lost))


def _keep_lost(site_id: int, lost: Sequence[str], session: Session) -> Iterable[LogRow]:
    sweeps.note_full_wanted(session, site_id, resumed=False)
    records.note_lost(session, site_id, lost)
    return [oai_notes.lost(lost)]


async def _have_others_list(harvest: SiteHarvest, *, has_ended: bool) -> None:
    """Wait until the other due sites of the origin have listed: a record may have moved to one of them.

    `has_ended`: this site's own list came to its end.
    """
    if harvest.site_run.same_origin.others:
        await harvest.write(lambda session: ())  # so that they find all outcomes of this site
    with harvest.ctx.deadlines.site_waits():
        await harvest.ctx.turn.wait_for_others(to_the_end=has_ended)


def _is_own(known: Mapping[str, KnownRecord], holding: Holding) -> bool:
    """True if the target holds the revision that this site brought, or found there, at last."""
    entry = known[holding.document_id].entry if holding.document_id in known else None
    return entry is not None and entry.outcome in GOOD and entry.target_revision == holding.revision
