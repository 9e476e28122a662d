"""The progress of a sweep after each page; at its end, the records that were left out or are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from itertools import islice
from math import inf

from sqlalchemy.orm import Session

from metaharvest.errors import ListIncomplete
from metaharvest.harvest.context import SiteHarvest
from metaharvest.harvest.documents import Tally
from metaharvest.harvest.oai.deletions import other_owners
from metaharvest.harvest.oai.named_ids import NamedIds
from metaharvest.harvest.oai.plan import AccountedFor, PagePlan
from metaharvest.harvest.tasks import in_thread
from metaharvest.journal import oai_notes, splits
from metaharvest.journal.list_shrinkage import is_much
from metaharvest.journal.log_rows import LogRow
from metaharvest.journal.outcomes import write_settled
from metaharvest.ledger import records, sweeps
from metaharvest.ledger.records import Unnamed
from metaharvest.ledger.rows import delete_entries
from metaharvest.ledger.sweeps import Progress
from metaharvest.model import MAX_FINDINGS, SiteRun
from metaharvest.sources.base import Page, PagedListing


@dataclass(slots=True)
class SweepSoFar:
    """The progress of the sweep in this site run."""

    listing: PagedListing
    progress: Progress
    """The progress that is kept with each checkpoint."""
    first_sweep: int
    """The first sweep that began in this site run; all sweeps until the present one broke off."""
    tally: Tally
    """Counts of the documents of the site run."""
    pages: int = 0
    """The number of pages of this sweep."""
    received: int = 0
    """The number of its records."""
    announced: int | None = None
    """The number of records that the source repository announced."""
    ids: NamedIds = field(default_factory=NamedIds)
    """Document ids of the pages since the last checkpoint."""

    def count(self, page: Page, plan: PagePlan) -> None:
        """Count the records of a page, which have their outcomes."""
        tally = self.tally
        tally.listed, tally.unchanged = tally.listed + plan.listed, tally.unchanged + plan.unchanged
        tally.duplicates += plan.duplicate
        self.pages, self.received = self.pages + 1, self.received + len(page.records)
        self.ids.add_page({record.document.document_id for record in page.records})
        self.progress = replace(
            self.progress,
            checkpoint=page.checkpoint,
            unchanged=tally.unchanged,
            duplicate=tally.duplicates,
            moved=self.progress.moved + plan.moved,
        )

    def seen(self, logged: Collection[str]) -> AccountedFor:
        """The records that are accounted for; an interrupted run has `logged` some of them."""
        progress = self.progress
        return AccountedFor(progress.sweep_id, self.first_sweep, progress.rechecks, before=self.ids, logged=logged)

    def keep_page(self, session: Session, harvest: SiteHarvest, page: Page, plan: PagePlan) -> None:
        """Keep what the page says, and the progress if the sweep can go on from here. Raises NotWritten."""
        site_run, today = harvest.site_run, harvest.ctx.journal.today
        write_settled(session, site_run, plan.settled, harvest.target.in_journal, today)
        sweeps.note_deletions(session, site_run, plan.to_delete)
        sweeps.note_versions(session, plan.outdated, plan.deleted_again, today)
        if page.checkpoint is not None:
            sweeps.keep_progress(session, site_run, self.progress, self.ids)

    def forget_before(self, page: Page) -> None:
        """Forget the ids before a checkpoint: the ledger has them."""
        if page.checkpoint is not None:
            self.ids = NamedIds()


async def keep_end_of_list(harvest: SiteHarvest, page: Page, plan: PagePlan, so_far: SweepSoFar) -> None:
    """Keep the progress of the sweep after all windows; note the records that were left out or are missing.

    Raises ListIncomplete if the target does not answer.
    """
    site_run, today = harvest.site_run, harvest.ctx.journal.today
    rechecks = so_far.progress.rechecks
    # An error may hide the identifiers of some records: then none is known to be missing.
    is_complete = page.is_last and so_far.listing.is_complete and not any(each.is_error for each in page.findings)
    elsewhere = await in_thread(partial(_kept_elsewhere, harvest, so_far)) if is_complete else frozenset[str]()
    if page.is_last and page.left_out < inf:
        so_far.progress = replace(so_far.progress, rechecks=False)

    def keep(session: Session) -> Iterable[LogRow]:
        so_far.keep_page(session, harvest, page, plan)
        left_out = _left_out(session, site_run, page, so_far)
        if page.repeat is not None and 0 < left_out < inf:
            repetition = replace(so_far.progress, checkpoint=page.repeat, rechecks=rechecks)
            sweeps.keep_progress(session, site_run, repetition, ())
        rows = _left_out_rows(session, site_run, page, so_far, left_out)
        if not page.is_last:
            return rows
        # The repetition left out as many: the source repository counts something else.
        spared = 0 if page.repeat is None and left_out < inf else left_out
        if is_complete or so_far.listing.is_empty:
            rows += _unnamed_rows(session, site_run, so_far, spared, elsewhere, today)
        return [
            oai_notes.ended(so_far.received, so_far.pages),
            *rows,
            *_fewer_rows(session, site_run, page),
            *splits.sort(session, site_run.site, so_far.progress.sweep_id, today),
        ]

    await harvest.write(keep)


def _left_out(session: Session, site_run: SiteRun, page: Page, so_far: SweepSoFar) -> float:
    """The number of records that may have been left out of the list; infinite: unknown.

    If several runs read the list, the source knows only the records of the last run.
    """
    if not so_far.listing.goes_on:
        return page.left_out
    named, announced = _number_named(session, site_run, so_far), so_far.announced or 0
    is_known = announced > named and not any(finding.is_error for finding in page.findings)
    return max(page.left_out, announced - named if is_known else so_far.progress.moved)


def _left_out_rows(
    session: Session, site_run: SiteRun, page: Page, so_far: SweepSoFar, left_out: float
) -> list[LogRow]:
    """The row about the records that were left out; none if the page itself says so."""
    if not 0 < left_out < inf or any(finding.rule == oai_notes.LIST_SIZE for finding in page.findings):
        return []
    is_announced = so_far.announced == _number_named(session, site_run, so_far) + left_out
    announced, asks_again = so_far.announced if is_announced else None, page.repeat is not None
    return [oai_notes.left_out(int(left_out), announced, site_run.site.name, asks_again=asks_again)]


def _number_named(session: Session, site_run: SiteRun, so_far: SweepSoFar) -> int:
    return records.number_listed(session, site_run.site.site_id, so_far.progress.sweep_id)


def _fewer_rows(session: Session, site_run: SiteRun, page: Page) -> list[LogRow]:
    """The row about a source repository that has fewer records than at the last full list."""
    if page.in_all is None:
        return []
    known = records.number_live(session, site_run.site.site_id)
    return oai_notes.fewer(page.in_all, known, page.in_all_before, site_run.site.name)


def _kept_elsewhere(harvest: SiteHarvest, so_far: SweepSoFar) -> frozenset[str]:
    """Records that the list does not name, and that another site of the origin lists or a site of another origin owns.

    To be called in a thread. Raises ListIncomplete if the target does not answer.
    """
    site_run, target = harvest.site_run, harvest.target
    with harvest.ctx.reading() as session:
        unnamed = list(records.unnamed(session, site_run.site.site_id, so_far.progress.sweep_id))
        ids = [each.document_id for each in unnamed if each.has_copy and each.document_id not in so_far.ids]
        listed = records.listed_by(session, site_run.same_origin.enabled, ids)
    found = frozenset({*listed, *other_owners(ids, harvest)})
    if target.health.given_up:
        # Without the owners, no record is known to be missing: the next harvest requests the last page again.
        raise ListIncomplete(*target.health.given_up)
    return found


def _unnamed_rows(
    session: Session, site_run: SiteRun, so_far: SweepSoFar, left_out: float, elsewhere: Collection[str], today: date
) -> list[LogRow]:
    """Note the records that a complete list did not name. Returns the row about them, if any.

    A list that names nothing proves nothing: its records stay as they are. `left_out`: see _certain; `elsewhere`: see
    _kept_elsewhere.
    """
    unnamed = list(records.unnamed(session, site_run.site.site_id, so_far.progress.sweep_id))
    if so_far.listing.is_empty or not _number_named(session, site_run, so_far):
        return oai_notes.empty(site_run.site, sum(each.has_copy and each.missing_since is None for each in unnamed))
    return _note_unnamed(session, site_run.site.site_id, _certain(unnamed, left_out), elsewhere, today)


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

    A record that is `elsewhere` has no copy of this site.
    """
    missing = [each for each in unnamed if each.has_copy and each.document_id not in elsewhere]
    delete_entries(session, sorted({each.entry_id for each in unnamed} - {each.entry_id for each in missing}))
    if not missing:
        return []
    new = [each.entry_id for each in missing if each.missing_since is None]
    copies, named = records.number_of_copies(session, site_id), records.number_named(session, site_id)
    records.mark_missing(session, new, today)
    ids = [each.document_id for each in islice(missing, MAX_FINDINGS)]
    return [oai_notes.missing(ids, len(missing), copies, is_much(len(new), named))]
