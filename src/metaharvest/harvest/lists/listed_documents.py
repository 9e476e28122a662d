"""The documents of a harvest list, brought to their outcomes batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

from metaharvest.harvest.context import SiteHarvest
from metaharvest.harvest.documents import SiteDocuments, Tally
from metaharvest.harvest.lists.plan import Batch, Plan, ledger_batches, plans
from metaharvest.harvest.tasks import in_thread, side_by_side


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
    """Bring every document to its outcome. Returns the numbers for the totals."""
    tally, ctx = Tally(), harvest.ctx
    site = SiteDocuments(harvest, tally.phases)
    planned = plans(batches, harvest)

    async def next_plan() -> Plan | None:
        # Other sites must not wait for a target outside of the database.
        async with ctx.reading_turns if harvest.target.in_journal else nullcontext():
            return await in_thread(partial(next, planned, None))

    async with side_by_side() as tasks:
        while (plan := await next_plan()) is not None:
            if plan.unlisted:
                await ctx.journal.forget(harvest.site_run, plan.unlisted, plan.vanished, tally.vanished)
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
    return tally
