"""The records of a repository: page by page to their outcomes, then what only the whole list can tell.

A page's records end before its checkpoint is kept: what a crash leaves is done again from there, and what was logged
already is not logged again. When the list has come to its end, deletions are told (deletions.py), and records that a
complete list does not name are missing.
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

from metaharvest.errors import BrokenOff, FetchError
from metaharvest.harvest.context import RunContext
from metaharvest.harvest.deletions import tell_deletions
from metaharvest.harvest.documents import SiteDocuments, Tally, harvest_documents
from metaharvest.harvest.page_end import ListSoFar, keep_page
from metaharvest.harvest.plan import retry_batches
from metaharvest.harvest.records import AccountedFor, Elsewhere, PagePlan, plan_page
from metaharvest.harvest.site_target import SiteTarget
from metaharvest.harvest.staging import Staging
from metaharvest.harvest.tasks import in_thread, side_by_side
from metaharvest.harvest.treating import is_checked_by_reading, outcome_told, told
from metaharvest.journal import checkpoints, listings, problems, splits
from metaharvest.journal.log_rows import LogRow
from metaharvest.journal.outcomes import OutcomeNote
from metaharvest.model import (
    FetchedDocument,
    Holding,
    ListedDocument,
    OriginalColumns,
    SiteRun,
)
from metaharvest.sites import records
from metaharvest.sites.ledger import GOOD
from metaharvest.sites.records import KnownRecord, ListingState
from metaharvest.sources.base import ListedRecord, Page, PagedListing, PagedSource

_AT_ONCE = 64
"""Records of a page that are checked and stored at a time: enough for the processes that check them."""


class ListBrokenOff(Exception):
    """A repository's list did not come to its end; `row` says so, the tally what came before."""

    def __init__(self, row: LogRow, tally: Tally) -> None:
        super().__init__(row.message)
        self.row = row
        self.tally = tally


class _InHand:
    """A source that has the records of the page at hand; others it asks the repository for."""

    def __init__(self, source: PagedSource) -> None:
        self._source = source
        self.records: dict[str, ListedRecord] = {}

    def original_columns(self, document_id: str) -> OriginalColumns:
        return self._source.original_columns(document_id)

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        return self.taken(document) or await self._source.fetch(document, patience)

    def taken(self, document: ListedDocument) -> FetchedDocument | None:
        """A record of the page, which is then no longer held here; None if it is not of the page."""
        record = self.records.pop(document.document_id, None)
        if record is None or record.content is None:
            return None
        return FetchedDocument(document, record.content, hashlib.sha256(record.content).hexdigest(), None)


async def in_repository(site_run: SiteRun, source: PagedSource, ctx: RunContext) -> PagedListing:
    """The repository's list from its last checkpoint on, or all of it if its records must be judged again.

    Raises FetchError, and ListError.
    """
    state = await _listing_state(site_run, ctx)
    resumed, full = _is_of(site_run, state), _is_full(state, ctx) or _is_to_judge_anew(site_run, state, ctx)
    if ctx.full and not resumed:
        await ctx.journal.write(site_run, partial(_ask_for_all, site_run))
    return await source.list_records(state.checkpoint, ctx.deadlines, full=full, resumed=resumed)


def _ask_for_all(site_run: SiteRun, session: Session) -> Iterable[LogRow]:
    checkpoints.ask_for_all(session, site_run.site.site_id)
    return ()


def _is_full(state: ListingState, ctx: RunContext) -> bool:
    """Whether a full list is asked for, now or by a run that was interrupted before it began."""
    return ctx.full or state.full


def _is_of(site_run: SiteRun, state: ListingState) -> bool:
    """Whether the listing was begun, or gone on with, in this site run, before that was interrupted."""
    return site_run.resumed and state.site_run_id == site_run.site_run_id


def _is_to_judge_anew(site_run: SiteRun, state: ListingState, ctx: RunContext) -> bool:
    """Whether the site's files do not say what they said when its records were judged.

    A site run that was interrupted ends as it began, with one outcome for each record: the next one judges anew.
    """
    return state.treatment != ctx.treatment.digest and not _is_of(site_run, state)


async def harvest_repository(
    site_run: SiteRun, listing: PagedListing, source: PagedSource, target: SiteTarget, ctx: RunContext
) -> Tally:
    """Bring the records of a list to their outcomes. Returns the numbers for the totals.

    Raises ListBrokenOff where the list does not come to its end: the next harvest goes on from the last checkpoint.
    Reported deletions are carried out in each case.
    """
    state = await _listing_state(site_run, ctx)
    so_far = await _begun(site_run, listing, state, ctx)
    is_changed = state.checkpoint is not None and so_far.treatment != state.treatment
    is_first = state.checkpoint is None
    await ctx.journal.write(site_run, partial(_note_begun, site_run, listing, is_changed, is_first, ctx.journal.today))
    in_hand = _InHand(source)
    site = SiteDocuments(site_run, in_hand, target, so_far.tally.phases, ctx, in_hand.taken, _AT_ONCE)
    broken_off: ListBrokenOff | None = None
    try:
        async with aclosing(listing.pages) as pages:
            async for page in pages:
                if why := ctx.deadlines.heed() or next(iter(target.health.given_up), None):
                    raise BrokenOff(why)
                so_far.announced = page.announced if page.announced is not None else so_far.announced
                await _harvest_page(page, so_far, in_hand, site, site_run, target, ctx)
    except (BrokenOff, FetchError) as error:
        row = listings.broken_off(error.findings, so_far.received, so_far.announced)
        broken_off = ListBrokenOff(row, so_far.tally)
        if ctx.deadlines.heed() or target.health.given_up:
            await site.tell_deferred()
            raise broken_off from error
    await site.tell_deferred()
    if broken_off is None:
        await _retry_failing(site_run, so_far, in_hand, target, ctx)
    await _have_others_list(site_run, ctx)
    so_far.tally.listed += await tell_deletions(site_run, target, ctx)
    if broken_off is not None:
        raise broken_off
    return so_far.tally


async def _have_others_list(site_run: SiteRun, ctx: RunContext) -> None:
    """Wait until the other sites of the origin that are due have listed: a record may have moved to one of them."""
    if site_run.same_origin.others:
        await ctx.journal.write(site_run, lambda session: ())  # so that they know all that this site has
    with ctx.deadlines.site_waits():
        await ctx.turn.listed()


def _note_begun(
    site_run: SiteRun, listing: PagedListing, is_changed: bool, is_first: bool, today: date, session: Session
) -> Iterable[LogRow]:
    """`is_changed`: the site's files have changed, so its records are judged again. `is_first`: it had no list yet."""
    site = site_run.site
    if listing.is_other:
        checkpoints.ask_for_others(session, site.site_id)
        problems.end_those_of_lists(session, site.site_id, site_run.site_run_id, today)
    split = splits.begun(session, site) if is_first and site.options.split_from else []
    return [*listings.begun(site, listing.findings), *split, *([listings.judged_anew()] if is_changed else [])]


async def _listing_state(site_run: SiteRun, ctx: RunContext) -> ListingState:
    def read() -> ListingState:
        with ctx.reading() as session:
            return records.listing_state(session, site_run.site.site_id, ctx.treatment.digest)

    return await in_thread(read)


async def _begun(site_run: SiteRun, listing: PagedListing, state: ListingState, ctx: RunContext) -> ListSoFar:
    """Where the listing goes on, or begins: its number, and what this site run has accounted for already."""
    number = state.listing if listing.is_begun else state.listing + 1
    anew = _is_to_judge_anew(site_run, state, ctx)
    again = anew or state.again or (_is_full(state, ctx) and ctx.treatment.transforms)
    treatment = ctx.treatment.digest if anew and not listing.is_empty else state.treatment
    moved = state.moved if listing.is_begun else 0
    how = listing.is_complete, listing.is_empty, listing.is_begun, treatment, moved
    if not site_run.resumed:
        return ListSoFar(AccountedFor(number, number, again), Tally(), *how)
    is_same = _is_of(site_run, state)
    first = state.listing if is_same else number
    unchanged, duplicate = (state.unchanged, state.duplicate) if is_same else (0, 0)

    def logged() -> int:
        with ctx.reading() as session:
            return checkpoints.number_logged(session, site_run)

    listed = await in_thread(logged) + unchanged + duplicate
    return ListSoFar(AccountedFor(number, first, again), Tally(listed, unchanged, duplicates=duplicate), *how)


async def _harvest_page(
    page: Page,
    so_far: ListSoFar,
    in_hand: _InHand,
    site: SiteDocuments,
    site_run: SiteRun,
    target: SiteTarget,
    ctx: RunContext,
) -> None:
    """Bring the records of a page to their outcomes, and keep how far the listing has come."""
    plan = await in_thread(partial(_plan, page, so_far, site_run, target, ctx))
    if page.findings:
        await ctx.journal.write(site_run, lambda session: listings.doubtful(told(page.findings, ctx.treatment)))
    for outcome, known in plan.ended:
        await ctx.journal.record(OutcomeNote(site_run, outcome_told(outcome, ctx.treatment), None, known))
    await ctx.journal.set_unchanged(site_run, plan.settled, target.in_journal)
    in_hand.records = plan.in_hand
    await _bring_in(plan, site, target, ctx)
    so_far.count(page, plan)
    ctx.progress.documents_ended(site_run.site.name, len(page.records) - len(plan.chains))
    ctx.progress.documents_listed(site_run.site.name, max(so_far.received, so_far.announced or 0))
    await keep_page(page, plan, so_far, site_run, target, ctx)


async def _bring_in(plan: PagePlan, site: SiteDocuments, target: SiteTarget, ctx: RunContext) -> None:
    """Bring the records of a page in: side by side, if they wait for checks or for the target."""
    to_check = sum(not is_checked_by_reading(each.document, ctx.treatment) for each in plan.in_hand.values())
    ctx.checker.expect(to_check)
    if target.in_journal and not to_check:
        for revisions in plan.chains:
            await site.turn()
            await site.bring_in(revisions)
        return
    async with side_by_side() as tasks:
        for revisions in plan.chains:
            await site.turn()
            tasks.create_task(site.bring_in(revisions))


def _plan(page: Page, so_far: ListSoFar, site_run: SiteRun, target: SiteTarget, ctx: RunContext) -> PagePlan:
    """What is to be done with the page, after the ledger and the target were asked. To be called in a thread."""
    ids = list(dict.fromkeys(record.document.document_id for record in page.records))
    with ctx.reading() as session:
        known = records.known_records(session, site_run.site.site_id, ids)
        logged = checkpoints.logged_documents(session, site_run, ids) if site_run.resumed else frozenset()
    holdings = target.holdings(ids)
    elsewhere = _elsewhere(page, known, holdings, site_run, ctx) if site_run.same_origin.others else Elsewhere()
    used_up = target.used_up([document_id for document_id in ids if document_id not in holdings])
    seen = replace(so_far.seen, before=so_far.ids, logged=logged)
    if target.health.given_up:
        # Nothing is known to be held: nothing is decided, and the page is asked for again.
        raise BrokenOff(*target.health.given_up)
    return plan_page(page.records, known, holdings, used_up, seen, site_run, ctx.site_names, elsewhere)


def _elsewhere(
    page: Page, known: Mapping[str, KnownRecord], holdings: Mapping[str, Holding], site_run: SiteRun, ctx: RunContext
) -> Elsewhere:
    """What the other sites of the origin have of a page; of most records of most nights, this site knows it itself."""
    deleted = [each.document.document_id for each in page.records if each.deleted]
    named = {each.document.document_id for each in page.records if not each.deleted}
    held = {each: holding for each, holding in holdings.items() if each in named and not _is_own(known, holding)}
    with ctx.reading() as session:
        listed = records.listed_by(session, site_run.same_origin.enabled, deleted)
        brought = records.brought(session, site_run.same_origin.others, held)
    if ctx.treatment.transforms:
        brought = {each: replace(found, digest=None) for each, found in brought.items()}
    return Elsewhere(brought, listed)


def _is_own(known: Mapping[str, KnownRecord], holding: Holding) -> bool:
    """True if the target holds what this site brought last, or has found there."""
    entry = known[holding.document_id].entry if holding.document_id in known else None
    return entry is not None and entry.outcome in GOOD and entry.target_revision == holding.revision


async def _retry_failing(
    site_run: SiteRun, so_far: ListSoFar, source: _InHand, target: SiteTarget, ctx: RunContext
) -> None:
    """Try again what could not be had or handed over, and ask for what a list has named as it was before.

    That is what has no outcome in this site run: the list names what changed.
    """

    def stage() -> None:
        with ctx.reading() as session:
            staged.fill(records.failing(session, site_run.site.site_id, site_run.site_run_id))

    with Staging() as staged:
        await in_thread(stage)
        if not staged.count:
            return
        batches = retry_batches(replace(site_run, resumed=False), staged, ctx)
        tally = await harvest_documents(site_run, batches, source, target, ctx)
    so_far.tally.listed += tally.listed
    so_far.tally.unchanged += tally.unchanged
