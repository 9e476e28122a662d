"""Deletes documents whose records a source repository reports as deleted, after the list has ended or broken off.

Too many deletions at once wait in the ledger until a person confirms them. Deletions that the target did not carry out
wait for the next harvest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial

from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.errors import TargetError
from metaharvest.harvest.context import SiteHarvest
from metaharvest.harvest.oai.plan import other_owner
from metaharvest.harvest.site_target import SiteTarget
from metaharvest.harvest.tasks import in_thread
from metaharvest.journal import oai_notes
from metaharvest.journal.internal_errors import internal_error
from metaharvest.journal.log_rows import LogRow
from metaharvest.journal.outcomes import OutcomeNote
from metaharvest.ledger import deletions, records, sweeps
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.model import Deletions, Finding, Level, ListedDocument, Outcome, OutcomeKind, SiteOptions
from metaharvest.model.values import frozen
from metaharvest.problems.attention import MOVED
from metaharvest.targets.owners import other_site_owns

log = logging.getLogger(__name__)

_AT_ONCE = 1000
"""Documents in one question to the target."""

_IN_TURN = 100
"""Deletions after which other tasks have their turn."""


@frozen
class Waiting:
    """The deletions that wait, and facts about their documents."""

    entries: Sequence[LedgerEntry]
    """The rows of the documents in the ledger."""
    listed: Mapping[str, str]
    """The site of the origin that lists the record live, by document id."""
    owners: Mapping[str, str]
    """The site of another origin that owns the document, by document id."""
    copies: int
    """The number of documents of the site that the target has."""
    confirmed: int
    """The number of deletions that a person has confirmed."""


class Fate(Enum):
    """The fate of a deletion that waits."""

    DELETE = auto()
    KEEP = auto()
    """The document stays in the target, and the deletion is recorded."""
    PUT_OFF = auto()
    """The deletion waits for a confirmation."""
    REFUSE = auto()
    """The document is of another origin, which is an error."""


@frozen
class DeletionPlan:
    """The fate of each deletion. `confirmed`: the number that stays so; `too_many`: the number that is put off."""

    fates: Sequence[tuple[LedgerEntry, Fate]]
    confirmed: int
    too_many: int


def plan_deletions(waiting: Waiting, options: SiteOptions) -> DeletionPlan:
    """The fates of the deletions that wait. Pure.

    The document stays if the site keeps deleted documents, or another site of the origin lists the record live. The
    deletion is refused if a site of another origin owns the document. All others are put off if they are too many.
    """
    keeps, stay = options.deletions is Deletions.KEEP, {*waiting.owners, *waiting.listed}
    lost = [each for each in waiting.entries if each.document_id not in stay]
    # Deletions that came since the confirmation were not put off before.
    confirmed = min(waiting.confirmed, sum(each.is_to_be_confirmed for each in lost))
    most = deletions.most_unconfirmed(options.max_loss, waiting.copies)
    are_too_many = not keeps and len(lost) - confirmed > most

    def fate_of(document_id: str) -> Fate:
        if keeps:
            return Fate.KEEP
        if document_id in waiting.owners:
            return Fate.REFUSE
        if document_id in waiting.listed:
            return Fate.KEEP
        return Fate.PUT_OFF if are_too_many else Fate.DELETE

    fates = [(each, fate_of(each.document_id)) for each in waiting.entries]
    # More wait than a person has confirmed: the confirmation ends, or it would hold for other deletions later.
    return DeletionPlan(fates, 0, len(lost)) if are_too_many else DeletionPlan(fates, confirmed, 0)


async def carry_out_deletions(harvest: SiteHarvest, not_yet: Collection[str] = ()) -> int:
    """Delete documents in the target, as planned. Returns the number of deletions that waited.

    The deletions of the documents `not_yet` go on waiting: the list broke off, and its rest may have these documents.
    The deletions that remain wait if the target is away, or the time is up. All wait if the list of another site of the
    origin did not come to its end: the records may have moved there.
    """
    site_run, target, ctx = harvest.site_run, harvest.target, harvest.ctx
    waiting = await in_thread(partial(_waiting, harvest, not_yet))
    plan = plan_deletions(waiting, harvest.site.options)
    if plan.confirmed != waiting.confirmed:
        await harvest.write(partial(_keep_confirmed, harvest.site.site_id, plan.confirmed))
    why = _why_all_wait(plan, waiting.copies, harvest)
    for count, (entry, fate) in enumerate(plan.fates):
        if count % _IN_TURN == 0:
            await asyncio.sleep(0)
        outcome = _outcome_of(entry, plan)
        if fate is Fate.DELETE:
            why = why or ctx.deadlines.stop_reason() or next(iter(target.health.given_up), None)
            outcome = replace(outcome, kind=OutcomeKind.DEFERRED) if why else await _delete_in_target(outcome, target)
        else:
            outcome = _outcome_without_deletion(outcome, fate, waiting)
        deleting = target.in_journal if fate is Fate.DELETE and outcome.kind is OutcomeKind.DELETED else None
        note = OutcomeNote(site_run, outcome, None, entry, deleting, stays=fate is Fate.KEEP)
        await ctx.journal.record(note)
        ctx.progress.documents_ended(harvest.site.name, 1)
    if why is not None:
        await ctx.journal.deferred(site_run, [why])
    return len(waiting.entries)


def _why_all_wait(plan: DeletionPlan, copies: int, harvest: SiteHarvest) -> Finding | None:
    """Why no document is deleted in this harvest; None if there is no such reason."""
    to_delete = sum(fate is Fate.DELETE for _, fate in plan.fates)
    if plan.too_many:
        return oai_notes.many_deletions(plan.too_many, copies, harvest.site.name)
    if to_delete and (unread := harvest.ctx.turn.unread):
        return oai_notes.deletions_wait(to_delete, unread)
    return None


def _outcome_without_deletion(outcome: Outcome, fate: Fate, waiting: Waiting) -> Outcome:
    """The outcome of a deletion that the target does not carry out now."""
    document_id = outcome.document.document_id
    if fate is Fate.PUT_OFF:
        return replace(outcome, kind=OutcomeKind.DEFERRED)
    if fate is Fate.REFUSE:
        finding = other_site_owns(outcome.document, waiting.owners[document_id], is_record=True)
        finding = replace(finding, message=f"{finding.message} It was not deleted.", docid="")
        return replace(outcome, kind=OutcomeKind.UPLOAD_ERROR, findings=(finding,))
    name = waiting.listed.get(document_id)
    return replace(outcome, findings=(_moved(document_id, name),)) if name else outcome


def _outcome_of(entry: LedgerEntry, plan: DeletionPlan) -> Outcome:
    """The outcome if the deletion is carried out.

    If it is deferred, it waits for the next harvest, or for a confirmation.
    """
    revision = entry.target_revision or entry.revision
    document = ListedDocument(entry.document_id, revision, entry.document_type, entry.url)
    is_to_be_confirmed = plan.too_many > 0 or (plan.confirmed > 0 and entry.is_to_be_confirmed)
    return Outcome(document, OutcomeKind.DELETED, entry.target_revision, needs_confirmation=is_to_be_confirmed)


def _waiting(harvest: SiteHarvest, not_yet: Collection[str]) -> Waiting:
    """Read the deletions that wait, and the owners of their documents as of now. To be called in a thread."""
    site_run, site, ctx = harvest.site_run, harvest.site, harvest.ctx
    with ctx.reading() as session:
        entries = deletions.waiting_deletions(session, site, site_run.site_run_id)
        entries = [each for each in entries if each.document_id not in not_yet]
        copies = records.number_of_copies(session, site.site_id) if entries else 0
        confirmed = sweeps.confirmed_deletions(session, site.site_id)
        ids = [each.document_id for each in entries]
        deletes = site.options.deletions is not Deletions.KEEP
        listed_by = records.listed_by(session, site_run.same_origin.enabled, ids) if deletes else {}
    # The numbers of sites are negative in a rehearsal.
    listed = {document_id: ctx.site_names[abs(min(sites))] for document_id, sites in listed_by.items()}
    owners = other_owners(ids, harvest) if deletes else {}
    return Waiting(entries, listed, owners, copies, confirmed)


def other_owners(document_ids: Sequence[str], harvest: SiteHarvest) -> dict[str, str]:
    """The names of the sites of other origins that own documents, by document id. To be called in a thread."""
    found: dict[str, str] = {}
    for batch in batches(document_ids, _AT_ONCE):
        for document_id, holding in harvest.target.holdings(batch).items():
            if owner := other_owner(holding, harvest.site_run, harvest.ctx.site_names):
                found[document_id] = owner
    return found


def _moved(document_id: str, site_name: str) -> Finding:
    return Finding(
        MOVED,
        f"The site '{site_name}' still lists {document_id}: nothing was deleted.",
        f"No action is needed if the record was moved on purpose. If it was deleted, the repository should "
        f"report that in the list of '{site_name}', too.",
        Level.WARNING,
    )


def _keep_confirmed(site_id: int, number: int, session: Session) -> Iterable[LogRow]:
    sweeps.keep_columns(session, site_id, {"confirmed": number})
    return ()


async def _delete_in_target(outcome: Outcome, target: SiteTarget) -> Outcome:
    """The outcome after the request to the target. The embedded target deletes when the outcome is written."""
    document_id = outcome.document.document_id
    if target.in_journal is not None:
        return outcome
    try:
        async with target.sending:
            await target.delete(document_id)
    except TargetError as error:
        kind = OutcomeKind.DEFERRED if error.transient else OutcomeKind.UPLOAD_ERROR
        return replace(outcome, kind=kind, findings=error.findings)
    except Exception as error:  # an error costs this document alone, or its site would never get past it
        log.exception("The deletion of %s failed", outcome.document.docid)
        finding = internal_error(error, "The harvester itself failed on this document")
        return replace(outcome, kind=OutcomeKind.UPLOAD_ERROR, findings=(finding,))
    return outcome
