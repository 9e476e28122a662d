"""The harvest of a source repository: the story of a sweep, from its first page to its deletions.

begin_sweep()                  describe the source repository; go on with its sweep, or begin one
harvest_sweep()
    for each page:
        plan it                plan.py: records are new, changed, deleted, or the same
        bring its records in   documents.py, as the documents of lists
        keep the progress      after the outcomes of the page, or in the same transaction
    after the last page        sweep_end.py: records that were left out, or are missing
    retry failed records
    wait until the other sites of the origin have listed
    carry out deletions        deletions.py

Records that come again after a crash find their outcomes in the log of the site run. Unchanged records are not in the
log: their number is kept with the checkpoint, and the unchanged records after it are counted again. The requests to the
source repository, window by window, are in sources/oai_pmh/sweep.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
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
from metaharvest.harvest.oai.deletions import carry_out_deletions
from metaharvest.harvest.oai.plan import Elsewhere, PageContext, PagePlan, plan_page
from metaharvest.harvest.oai.sweep_end import SweepSoFar, keep_end_of_list
from metaharvest.harvest.tasks import in_thread, side_by_side
from metaharvest.journal import oai_notes, resumption, splits
from metaharvest.journal.log_rows import LogRow
from metaharvest.ledger import records, retries, sweeps
from metaharvest.ledger.entries import GOOD
from metaharvest.ledger.records import KnownRecord
from metaharvest.ledger.sweeps import Progress
from metaharvest.model import FetchedDocument, Holding, ListedDocument, OriginalColumns, SiteRun
from metaharvest.problems.follow import end_those_of_lists
from metaharvest.sources.base import DocumentSource, ListedRecord, Page, PagedListing, PagedSource

_AT_ONCE = 64
"""Records of a page that are checked and stored at a time: enough to keep the worker processes busy."""


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
    if ctx.full and not resumed:
        await ctx.journal.write(site_run, partial(_note_full_wanted, site_run))
    full = ctx.full or progress.full_wanted or rechecks
    return await source.list_records(progress.checkpoint, ctx.deadlines, full=full, resumed=resumed)


async def harvest_sweep(harvest: SiteHarvest, listing: PagedListing) -> Tally:
    """Bring the records of a list to their outcomes. Returns the numbers for the totals.

    Raises SweepIncomplete if the list breaks off, or has ended with holes. The next harvest goes on from the last
    checkpoint, or tries the holes. Reported deletions are carried out in any case, unless the time is up or the target
    is away.
    """
    ctx, target = harvest.ctx, harvest.target
    pages = await _Pages.begin(harvest, listing)
    incomplete: SweepIncomplete | None = None
    has_ended = True
    try:
        async with aclosing(listing.pages) as listed:
            async for page in listed:
                if why := ctx.deadlines.stop_reason() or next(iter(target.health.given_up), None):
                    raise ListIncomplete(why)
                if page.reports_end:
                    await pages.end_sweep(page)
                else:
                    await pages.harvest_page(page)
    except (ListIncomplete, FetchError) as error:
        row = oai_notes.broken_off(error.findings, pages.so_far.received, pages.so_far.announced)
        incomplete = SweepIncomplete(row, pages.so_far.tally)
        has_ended = isinstance(error, ListIncomplete) and error.has_ended
    await pages.documents.note_deferred()
    if incomplete is not None and (ctx.deadlines.stop_reason() or target.health.given_up):
        raise incomplete
    tally = pages.so_far.tally
    if has_ended:
        await _retry_failing(replace(harvest, source=pages.in_hand), tally)
    await _have_others_list(harvest, has_ended=has_ended)
    tally.listed += await carry_out_deletions(harvest)
    if incomplete is not None:
        raise incomplete
    return tally


class _Pages:
    """Brings the pages of a sweep to their outcomes. `so_far` says how far the sweep has come."""

    def __init__(self, harvest: SiteHarvest, so_far: SweepSoFar) -> None:
        self._harvest = harvest
        self.so_far = so_far
        self.in_hand = _InHand(harvest.source)
        phases = so_far.tally.phases
        own = replace(harvest, source=self.in_hand)
        self.documents = SiteDocuments(own, phases, self.in_hand.taken, _AT_ONCE)

    @classmethod
    async def begin(cls, harvest: SiteHarvest, listing: PagedListing) -> _Pages:
        """Go on with the sweep, or begin it; the log says so."""
        site_run, ctx = harvest.site_run, harvest.ctx
        before = await _progress(site_run, ctx)
        so_far = await _sweep_so_far(harvest, listing, before)
        is_first = before.checkpoint is None
        is_changed = not is_first and so_far.progress.treatment != before.treatment
        await harvest.write(partial(_note_begun, site_run, listing, is_changed, is_first, ctx.journal.today))
        return cls(harvest, so_far)

    async def harvest_page(self, page: Page) -> None:
        """Bring the records of a page to their outcomes, then keep the progress."""
        plan = await self._bring_in_page(page)

        def keep(session: Session) -> Iterable[LogRow]:
            self.so_far.keep_page(session, self._harvest, page, plan)
            return ()

        await self._harvest.write(keep)
        self.so_far.forget_before(page)

    async def end_sweep(self, page: Page) -> None:
        """Do the same with the page after all windows, and note the records that were left out or are missing."""
        await keep_end_of_list(self._harvest, page, await self._bring_in_page(page), self.so_far)
        self.so_far.forget_before(page)

    async def _bring_in_page(self, page: Page) -> PagePlan:
        """Bring the records of a page to their outcomes, and count them."""
        harvest, so_far = self._harvest, self.so_far
        so_far.announced = page.announced if page.announced is not None else so_far.announced
        plan = await in_thread(partial(self._plan, page))
        if page.findings:
            await harvest.write(lambda session: oai_notes.doubtful(levelled(page.findings, harvest.ctx.policy)))
        for outcome, known in plan.ended:
            await self.documents.note_ended(outcome, known)
        await self._bring_in(plan)
        so_far.count(page, plan)
        harvest.ctx.progress.documents_ended(harvest.site.name, len(page.records) - len(plan.chains))
        harvest.ctx.progress.documents_listed(harvest.site.name, max(so_far.received, so_far.announced or 0))
        return plan

    def _plan(self, page: Page) -> PagePlan:
        """Ask the ledger and the target about the records of a page, and plan it. To be called in a thread."""
        harvest, site_run = self._harvest, self._harvest.site_run
        target, ctx = harvest.target, harvest.ctx
        ids = list(dict.fromkeys(record.document.document_id for record in page.records))
        with ctx.reading() as session:
            known = records.known_records(session, site_run.site.site_id, ids)
            logged = resumption.logged_documents(session, site_run, ids) if site_run.resumed else frozenset()
        holdings = target.holdings(ids)
        elsewhere = self._elsewhere(page, known, holdings) if site_run.same_origin.others else Elsewhere()
        used_up = target.used_up([document_id for document_id in ids if document_id not in holdings])
        seen = self.so_far.seen(logged)
        if target.health.given_up:
            # Without the target's holdings nothing can be decided: the next harvest requests the page again.
            raise ListIncomplete(*target.health.given_up)
        context = PageContext(site_run, ctx.site_names, seen, known, holdings, used_up, elsewhere)
        return plan_page(page.records, context)

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
        """Bring the records of a page in; in parallel if they wait for checks or for the target."""
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


def _note_full_wanted(site_run: SiteRun, session: Session) -> Iterable[LogRow]:
    sweeps.note_full_wanted(session, site_run.site.site_id)
    return ()


def _is_same_run(site_run: SiteRun, progress: Progress) -> bool:
    """True if the last page of the sweep came in this very site run, before it was interrupted."""
    return site_run.resumed and progress.site_run_id == site_run.site_run_id


def _is_to_check_again(site_run: SiteRun, progress: Progress, ctx: RunContext) -> bool:
    """True if the site's filters, normalising or checks have changed since its records were checked.

    An interrupted site run ends with the checks that it began with; the next one checks all records again.
    """
    return progress.treatment != ctx.policy.digest and not _is_same_run(site_run, progress)


async def _sweep_so_far(harvest: SiteHarvest, listing: PagedListing, before: Progress) -> SweepSoFar:
    """The progress of the sweep as this run finds it. `before`: as it was kept."""
    site_run, ctx = harvest.site_run, harvest.ctx
    checks_again, is_same = _is_to_check_again(site_run, before, ctx), _is_same_run(site_run, before)
    is_full = ctx.full or before.full_wanted
    progress = Progress(
        sweep_id=before.sweep_id + (not listing.goes_on),
        treatment=ctx.policy.digest if checks_again and not listing.is_empty else before.treatment,
        rechecks=checks_again or before.rechecks or (is_full and ctx.policy.transforms),
        moved=before.moved if listing.goes_on else 0,
    )
    if not site_run.resumed:
        return SweepSoFar(listing, progress, progress.sweep_id, Tally())
    # A second full list names the records of the first one again, so its count begins with zero.
    keeps_count = is_same and (listing.goes_on or not listing.is_complete)
    unchanged, duplicates = (before.unchanged, before.duplicate) if keeps_count else (0, 0)
    logged = await harvest.read(lambda session: resumption.number_logged(session, site_run))
    tally = Tally(logged + unchanged + duplicates, unchanged, duplicates=duplicates)
    return SweepSoFar(listing, progress, before.sweep_id if keeps_count else progress.sweep_id, tally)


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
    return [*oai_notes.begun(site, listing.findings), *split, *([oai_notes.judged_again()] if is_changed else [])]


# -- after its last page


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
        again = replace(harvest, site_run=replace(site_run, resumed=False))
        retried = await harvest_documents(harvest, retry_batches(again, staged))
    tally.listed += retried.listed
    tally.unchanged += retried.unchanged


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
