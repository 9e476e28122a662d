"""Tells the target what a repository says is deleted, when the list has come to its end, unless these are too many.

What is put off waits in the ledger for the next harvest, and so does what the target did not take.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy.orm import Session

from metaharvest.errors import TargetError
from metaharvest.harvest.context import RunContext
from metaharvest.harvest.moves import SameRepository
from metaharvest.harvest.records import other_owner, owned
from metaharvest.harvest.site_target import SiteTarget
from metaharvest.harvest.tasks import in_thread
from metaharvest.journal import listings
from metaharvest.journal.log_rows import LogRow
from metaharvest.journal.outcomes import OutcomeNote
from metaharvest.journal.unexpected import unexpected_error
from metaharvest.model import Deletions, Finding, Holding, Level, ListedDocument, Outcome, OutcomeKind, SiteRun
from metaharvest.reports.findings import MOVED
from metaharvest.sites import records
from metaharvest.sites.ledger import LedgerEntry

log = logging.getLogger(__name__)

_AT_ONCE = 1000
"""Documents that the target is asked about at a time."""

_IN_TURN = 100
"""Deletions that are told before others have their turn, and it is asked again which records other sites list."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The deletions that wait, the site's number of documents, and how many deletions somebody has confirmed.

    `in_target` are those of documents that the target has; `owners` the other sites that documents belong to by now, by
    document id.
    """

    entries: Sequence[LedgerEntry]
    in_target: Collection[str]
    owners: dict[str, str]
    held: int
    confirmed: int

    def still_confirmed(self, to_tell: Collection[str]) -> int:
        """How many of the confirmed ones wait still: those that came since were not put off before."""
        put_off = (each for each in self.entries if each.is_to_be_confirmed)
        return min(self.confirmed, sum(each.document_id in to_tell for each in put_off))


async def tell_deletions(site_run: SiteRun, target: SiteTarget, same: SameRepository, ctx: RunContext) -> int:
    """Tell the target which documents were deleted, unless they are too many; how many have their outcome now.

    It is told of none whose record another site of the repository lists: the document goes to that site. That too waits
    where they are too many, as a set may have a fault for a night.
    """
    site = site_run.site
    waiting = await in_thread(partial(_waiting, site_run, target, ctx))
    to_tell = {each.document_id for each in waiting.entries} - waiting.owners.keys()
    confirmed, why = waiting.still_confirmed(to_tell), None
    is_told = site.options.deletions is not Deletions.NOTE
    number = len(to_tell)
    are_too_many = number - confirmed > records.most_unconfirmed(site.options.max_loss, waiting.held)
    if is_told and are_too_many:
        why = listings.many_deletions(number, waiting.held, site.name)
        confirmed = 0  # or those that came since would take the places of confirmed ones that are listed again
    if confirmed != waiting.confirmed:
        await ctx.journal.write(site_run, partial(_keep_confirmed, site.site_id, confirmed))
    moved: dict[str, str] = {}
    for count, entry in enumerate(waiting.entries):
        if count % _IN_TURN == 0:
            # Asked just before they are told: the other site may be harvested at the same time, and targets are slow.
            portion = [each.document_id for each in waiting.entries[count : count + _IN_TURN]]
            portion = [document_id for document_id in portion if document_id in waiting.in_target]
            moved = {} if why else await same.hand_over(portion, waiting.owners)
            await asyncio.sleep(0)
        revision = entry.target_revision or entry.revision
        document = ListedDocument(entry.document_id, revision, entry.document_type, entry.url)
        is_to_be_confirmed = are_too_many or (confirmed > 0 and entry.is_to_be_confirmed)
        outcome = Outcome(document, OutcomeKind.DELETED, entry.target_revision, with_site=not is_to_be_confirmed)
        if name := moved.get(entry.document_id):
            is_new = waiting.owners.get(entry.document_id) != name
            outcome = replace(outcome, findings=(_moved(entry.document_id, name, is_new=is_new),))
        elif owner := waiting.owners.get(entry.document_id):
            finding = owned(document, owner)
            finding = replace(finding, message=f"{finding.message} It was not deleted.")
            outcome = outcome.as_error(OutcomeKind.UPLOAD_ERROR, finding)
        elif is_told:
            why = why or ctx.deadlines.heed() or next(iter(target.health.given_up), None)
            outcome = await _told(outcome, target) if why is None else replace(outcome, kind=OutcomeKind.DEFERRED)
        is_to_go = is_told and name is None and outcome.kind is OutcomeKind.DELETED
        deleting = target.in_journal if is_to_go else None
        await ctx.journal.record(OutcomeNote(site_run, outcome, None, entry, deleting))
        ctx.progress.documents_ended(site.name, 1)
    if why is not None:
        await ctx.journal.deferred(site_run, [why])
    return len(waiting.entries)


def _waiting(site_run: SiteRun, target: SiteTarget, ctx: RunContext) -> _Waiting:
    """To be called in a thread. The documents may have been given to other sites since their deletions were planned."""
    site_id = site_run.site.site_id
    with ctx.reading() as session:
        entries = records.to_delete(session, site_id, site_run.site_run_id)
        elsewhere = records.waiting_before_split(session, site_run.site, [each.document_id for each in entries])
        entries = [each for each in entries if each.document_id not in elsewhere]
        held = records.number_held(session, site_id)
        confirmed = records.listing_state(session, site_id).confirmed
    holdings: dict[str, Holding] = {}
    if site_run.site.options.deletions is not Deletions.NOTE:
        holdings = _holdings([each.document_id for each in entries], target)
    return _Waiting(entries, holdings.keys(), _other_owners(holdings, site_run, ctx), held, confirmed)


def other_owners(document_ids: Sequence[str], site_run: SiteRun, target: SiteTarget, ctx: RunContext) -> dict[str, str]:
    """The names of the other sites that documents belong to by now, by document id. To be called in a thread."""
    return _other_owners(_holdings(document_ids, target), site_run, ctx)


def _holdings(document_ids: Sequence[str], target: SiteTarget) -> dict[str, Holding]:
    found: dict[str, Holding] = {}
    for first in range(0, len(document_ids), _AT_ONCE):
        found |= target.holdings(document_ids[first : first + _AT_ONCE])
    return found


def _other_owners(holdings: Mapping[str, Holding], site_run: SiteRun, ctx: RunContext) -> dict[str, str]:
    found = {each: other_owner(holding, site_run, ctx.site_names) for each, holding in holdings.items()}
    return {document_id: owner for document_id, owner in found.items() if owner is not None}


def _moved(document_id: str, site_name: str, *, is_new: bool) -> Finding:
    since = " from now on" if is_new else ""
    return Finding(
        MOVED,
        f"The site '{site_name}' lists {document_id} still: nothing was deleted, and the document belongs to "
        f"'{site_name}'{since}.",
        f"Nothing is to be done if the record was to move. If it was deleted, the repository should say so where it is "
        f"asked for the sets of '{site_name}', too.",
        Level.WARNING,
    )


def _keep_confirmed(site_id: int, number: int, session: Session) -> Iterable[LogRow]:
    records.keep_listing_state(session, site_id, {"confirmed": number})
    return ()


async def _told(outcome: Outcome, target: SiteTarget) -> Outcome:
    """The outcome after the target was told; one in the journal's database is told with the outcome."""
    document_id = outcome.document.document_id
    if target.in_journal is not None:
        return outcome
    try:
        async with target.sending:
            await target.delete(document_id)
    except TargetError as error:
        return outcome.as_error(OutcomeKind.DEFERRED if error.transient else OutcomeKind.UPLOAD_ERROR, *error.findings)
    except Exception as error:  # costs this document alone, or its site would never get past it
        log.exception("The deletion of %s failed", outcome.document.docid)
        finding = unexpected_error(error, "The harvester itself failed on this document")
        return outcome.as_error(OutcomeKind.UPLOAD_ERROR, finding)
    return outcome
