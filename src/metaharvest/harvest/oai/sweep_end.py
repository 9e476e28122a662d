"""The progress of a sweep after each page; at its end, the records that were left out or are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from itertools import islice
from math import inf

from sqlalchemy.orm import Session

from metaharvest.errors import BrokenOff
from metaharvest.harvest.context import SiteHarvest
from metaharvest.harvest.documents import Tally
from metaharvest.harvest.oai.deletions import other_owners
from metaharvest.harvest.oai.plan import AccountedFor, PagePlan
from metaharvest.harvest.tasks import in_thread
from metaharvest.journal import listings, splits
from metaharvest.journal.forensics import is_much
from metaharvest.journal.log_rows import LogRow
from metaharvest.ledger import records, sweeps
from metaharvest.ledger.rows import delete_entries
from metaharvest.ledger.sweeps import PageEnd
from metaharvest.model import MAX_FINDINGS, SiteRun
from metaharvest.sources.base import Page


@dataclass(slots=True)
class SweepSoFar:
    """How far the sweep has come in this site run. `ids` are document ids of the pages since the last checkpoint.

    `goes_on`: it goes on from an earlier harvest. `treatment` and `moved`: see ListingState.
    """

    seen: AccountedFor
    tally: Tally
    is_complete: bool
    is_empty: bool
    goes_on: bool
    treatment: str
    moved: int = 0
    pages: int = 0
    received: int = 0
    announced: int | None = None
    ids: set[str] = field(default_factory=set)

    def count(self, page: Page, plan: PagePlan) -> None:
        """Count the records of a page, which have their outcomes."""
        self.tally.listed += plan.listed
        self.tally.unchanged += plan.unchanged
        self.tally.duplicates += plan.duplicate
        self.moved += plan.moved
        self.pages, self.received = self.pages + 1, self.received + len(page.records)
        self.ids.update(record.document.document_id for record in page.records)

    def forget_before(self, page: Page) -> None:
        """Forget the ids before a checkpoint: the ledger has them."""
        if page.checkpoint is not None:
            self.ids = set()

    def page_end(self, page: Page, plan: PagePlan) -> PageEnd:
        """The progress that is kept with this page."""
        return PageEnd(
            page.checkpoint,
            self.seen.listing,
            sorted(self.ids) if page.checkpoint is not None else (),
            plan.to_delete,
            plan.older,
            plan.as_known,
            self.tally.unchanged,
            self.tally.duplicates,
            self.treatment,
            self.seen.rechecks and not (page.is_last and page.left_out < inf),
            self.moved,
        )


async def keep_last_page(harvest: SiteHarvest, page: Page, end: PageEnd, so_far: SweepSoFar) -> None:
    """Keep the progress of the sweep after all windows; note the records that were left out or are missing.

    Raises BrokenOff if the target does not answer.
    """
    site_run, today = harvest.site_run, harvest.ctx.journal.today
    # An error may hide the identifiers of some records: then none is known to be missing.
    is_complete = page.is_last and so_far.is_complete and not any(finding.is_error for finding in page.findings)
    elsewhere = await in_thread(partial(_kept_elsewhere, harvest, so_far)) if is_complete else None

    def keep(session: Session) -> Iterable[LogRow]:
        sweeps.write_page_end(session, site_run, end, today)
        if page.is_last:
            return _note_end(session, site_run, page, so_far, end, elsewhere, today)
        return _note_left_out(session, site_run, page, so_far, end, today)[0]

    await harvest.write(keep)


def _note_end(
    session: Session,
    site_run: SiteRun,
    page: Page,
    so_far: SweepSoFar,
    end: PageEnd,
    elsewhere: Collection[str] | None,
    today: date,
) -> list[LogRow]:
    """The rows of a list that has ended. `elsewhere`: see _kept_elsewhere; None if the list is not complete."""
    site = site_run.site
    rows, left_out = _note_left_out(session, site_run, page, so_far, end, today)
    if elsewhere is not None and records.number_listed(session, site.site_id, end.listing):
        # The repetition left out as many: the source repository counts something else.
        spared = 0 if page.repeat is None and left_out < inf else left_out
        rows += _note_missing(session, site_run, end.listing, elsewhere, spared, today)
    elif so_far.is_empty or elsewhere is not None:
        unnamed = records.unnamed(session, site.site_id, end.listing)
        known = sum(each.is_held and each.missing_since is None for each in unnamed)
        rows += listings.empty(site, known)
    if page.in_all is not None:
        known = records.number_live(session, site.site_id)
        rows += listings.fewer(page.in_all, known, page.in_all_before, site.name)
    rows += splits.sort(session, site, end.listing, today)
    return [listings.ended(so_far.received, so_far.pages), *rows]


def _note_left_out(
    session: Session, site_run: SiteRun, page: Page, so_far: SweepSoFar, end: PageEnd, today: date
) -> tuple[list[LogRow], float]:
    """Note the number of records that may have been left out of a list that has ended, and repeat the list.

    Returns the rows and the number.
    """
    named = records.number_listed(session, site_run.site.site_id, end.listing)
    left_out = max(page.left_out, _parted(so_far, page, named))
    if not 0 < left_out < inf:
        return [], left_out
    if page.repeat is not None:
        repetition = replace(
            end,
            checkpoint=page.repeat,
            document_ids=(),
            to_delete=(),
            older=(),
            as_known=(),
            again=so_far.seen.rechecks,
        )
        sweeps.write_page_end(session, site_run, repetition, today)
    if any(finding.rule == listings.LIST_SIZE for finding in page.findings):
        return [], left_out
    announced = so_far.announced if so_far.announced == named + left_out else None
    asks_again = page.repeat is not None
    return [listings.left_out(int(left_out), announced, site_run.site.name, asks_again=asks_again)], left_out


def _parted(so_far: SweepSoFar, page: Page, named: int) -> int:
    """The number of records that a list left out, if several runs read it: the source knows only those of the last run.

    `named`: the number of records with identifiers that came.
    """
    if not so_far.goes_on:
        return 0
    is_known = so_far.announced is not None and not any(finding.is_error for finding in page.findings)
    return (so_far.announced or 0) - named if is_known and (so_far.announced or 0) > named else so_far.moved


def _kept_elsewhere(harvest: SiteHarvest, so_far: SweepSoFar) -> frozenset[str]:
    """Records that the list does not name, and that another site of the origin lists or a site of another origin owns.

    To be called in a thread. Raises BrokenOff if the target does not answer.
    """
    site_run, target = harvest.site_run, harvest.target
    with harvest.ctx.reading() as session:
        unnamed = list(records.unnamed(session, site_run.site.site_id, so_far.seen.listing))
        ids = [each.document_id for each in unnamed if each.is_held and each.document_id not in so_far.ids]
        listed = records.listed_by(session, site_run.same_origin.enabled, ids)
    found = frozenset({*listed, *other_owners(ids, harvest)})
    if target.health.given_up:
        # Without the owners, no record is known to be missing: the next harvest requests the last page again.
        raise BrokenOff(*target.health.given_up)
    return found


def _note_missing(
    session: Session, site_run: SiteRun, listing: int, elsewhere: Collection[str], left_out: float, today: date
) -> list[LogRow]:
    """Mark the copies whose records a complete list did not name. Returns the row about them, if there are any.

    Rows without a copy, and rows of records that other sites have, are forgotten. The list may have `left_out` this
    number of records: if no more are unnamed, none becomes missing.
    """
    site_id = site_run.site.site_id
    unnamed = list(records.unnamed(session, site_id, listing))
    if sum(each.missing_since is None for each in unnamed) <= left_out:
        unnamed = [each for each in unnamed if each.missing_since is not None]
    gone = [each for each in unnamed if each.is_held and each.document_id not in elsewhere]
    delete_entries(session, sorted({each.entry_id for each in unnamed} - {each.entry_id for each in gone}))
    if not gone:
        return []
    new = [each.entry_id for each in gone if each.missing_since is None]
    known, is_shrunk = records.number_held(session, site_id), is_much(len(new), records.number_named(session, site_id))
    records.mark_missing(session, new, today)
    return [listings.missing([each.document_id for each in islice(gone, MAX_FINDINGS)], len(gone), known, is_shrunk)]
