"""The documents of a harvest list, brought to their outcomes batch by batch."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

from metaharvest.harvest.context import SiteHarvest
from metaharvest.harvest.documents import SiteDocuments, Tally
from metaharvest.harvest.lists.plan import Batch, Plan, ledger_batches, plans
from metaharvest.harvest.tasks import in_thread, side_by_side
from metaharvest.journal import list_notes
from metaharvest.journal.log_rows import LogRow
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.model import MAX_FINDINGS

FORGOTTEN_AT_ONCE = 10_000
"""The number of unlisted entries that are deleted from the ledger in one transaction."""


async def harvest_unchanged(harvest: SiteHarvest) -> Tally:
    """Harvest a list that did not change since the last harvest: in most nights the target has all its documents."""
    known, in_journal = harvest.site_run.known_documents, harvest.target.in_journal
    if in_journal and not harvest.site_run.resumed:
        kept = await in_thread(partial(in_journal.kept, harvest.site.site_id))
        if kept == known:
            harvest.ctx.progress.documents_ended(harvest.site.name, known)
            return Tally(known, known)
    return await harvest_documents(harvest, ledger_batches(harvest))


async def harvest_documents(harvest: SiteHarvest, batches: Iterator[Batch]) -> Tally:
    """Bring every document to its outcome. Returns the numbers for the totals.

    The ledger keeps unlisted entries until all documents have outcomes: if the run is killed, the next run reports
    the documents that have left the list meanwhile.
    """
    tally, ctx = Tally(), harvest.ctx
    unlisted, notes, vanished = array("q"), list[LogRow](), list[LedgerEntry]()
    site = SiteDocuments(harvest, tally.phases)
    planned = plans(batches, harvest)

    async def next_plan() -> Plan | None:
        # Other sites must not wait for a target outside of the database.
        async with ctx.reading_turns if harvest.target.in_journal else nullcontext():
            return await in_thread(partial(next, planned, None))

    async with side_by_side() as tasks:
        while (plan := await next_plan()) is not None:
            unlisted.extend(entry.entry_id for entry in plan.unlisted)
            notes += [list_notes.unconfirmed(entry) for entry in plan.unlisted if entry.pending_sha256 is not None]
            vanished += plan.vanished[: MAX_FINDINGS - len(vanished)]
            tally.vanished += len(plan.vanished)
            await ctx.journal.set_unchanged(harvest.site_run, plan.settled)
            tally.listed += plan.listed
            tally.unchanged += plan.unchanged
            ctx.progress.documents_ended(harvest.site.name, plan.ended)
            ctx.checker.expect(plan.to_fetch)
            for revisions in plan.chains:
                await site.turn()
                tasks.create_task(site.bring_in(revisions))
    await site.note_deferred()
    if vanished:
        notes.append(list_notes.vanished(vanished, number=tally.vanished))
    for begin in range(0, len(unlisted), FORGOTTEN_AT_ONCE):
        await ctx.journal.forget(harvest.site_run, unlisted[begin : begin + FORGOTTEN_AT_ONCE], notes)
        notes = []
    return tally
