"""What is to be done with the records of one page of a repository's list. Pure.

A record has no revision: it gets the next one of ours where its content differs from what was received last, or where
that is not in the target. What the target holds, and whose it is, is asked before, as it is for listed documents.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from metaharvest.harvest.decide import other_site_owns
from metaharvest.harvest.documents import Todo
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.ledger.records import Brought, KnownRecord
from metaharvest.model import Action, Deletions, Finding, Holding, Intent, ListedDocument, Outcome, OutcomeKind, SiteRun
from metaharvest.sources.base import ListedRecord
from metaharvest.targets.withdrawals import withdrawn

_BEGINS_WITH_YEAR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

OutcomeAndEntry = tuple[Outcome, LedgerEntry | None]
"""An outcome, and what the ledger has known of the document."""


@dataclass(frozen=True, slots=True)
class AccountedFor:
    """What has been accounted for already.

    `listing` is the number of the listing under way; the listings since `first`, that one not included, were begun in
    the same site run, and broken off. `before` are document ids of pages since the last checkpoint; `logged` are those
    whose outcomes an interrupted run has logged in this site run. `again`: what has not changed is checked as well.
    """

    listing: int
    first: int
    again: bool = False
    before: Collection[str] = ()
    logged: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What the other sites of the origin have `brought` of the records of a page, and which ones they list live.

    Those that are switched off list nothing. Nothing is brought for a site that changes records, or leaves some out.
    """

    brought: Mapping[str, Brought] = field(default_factory=dict)
    listed: Collection[str] = ()


@dataclass(slots=True)
class PagePlan:
    """What is to be done with a page.

    `listed` of its records are accounted for with it; so many are `unchanged`, of which `settled` are to be noted in
    the ledger, or name a record that the listing has named before (`duplicate`). So many have `moved`: the listing has
    named them before, with another datestamp. `ended` have their outcome, `chains` are to be brought in, and the target
    is to be told that those in `to_delete` were deleted.

    Those in `older` the ledger knows as they were later. No order of a list is promised: if one comes on a later page
    as it is now, it is in `settled`, or in `as_known` if it is deleted, and the older one is a duplicate. If none does,
    as from a repository that was restored from a backup, the record is asked for by itself when the list has ended, and
    accounted for then.
    """

    listed: int = 0
    unchanged: int = 0
    duplicate: int = 0
    moved: int = 0
    settled: list[OutcomeAndEntry] = field(default_factory=list)
    ended: list[OutcomeAndEntry] = field(default_factory=list)
    chains: list[list[Todo]] = field(default_factory=list)
    in_hand: dict[str, ListedRecord] = field(default_factory=dict)
    to_delete: list[tuple[ListedDocument, LedgerEntry | None]] = field(default_factory=list)
    older: list[KnownRecord] = field(default_factory=list)
    as_known: list[KnownRecord] = field(default_factory=list)


def plan_page(
    records: Sequence[ListedRecord],
    known: Mapping[str, KnownRecord],
    holdings: Mapping[str, Holding],
    used_up: Mapping[str, int],
    seen: AccountedFor,
    site_run: SiteRun,
    site_names: Mapping[int, str],
    elsewhere: Elsewhere | None = None,
) -> PagePlan:
    """What is to be done with these records, given what the ledger knows of them and what the target holds.

    `used_up`: the highest revisions that it had of others, which were deleted.
    """
    plan, elsewhere = PagePlan(), elsewhere or Elsewhere()
    newest: dict[str, ListedRecord] = {}
    for record in records:
        named = newest.setdefault(record.document.document_id, record)
        is_older = _is_older(record, _datestamp(named))
        if not (is_older or _is_gone_elsewhere(record, _datestamp(named), is_there=not named.deleted)):
            newest[record.document.document_id] = record
    for record in records:
        document_id = record.document.document_id
        entry = known.get(document_id)
        is_again = document_id in seen.before or _was_listed(entry, seen)
        is_in_doubt = entry is not None and entry.entry.is_in_doubt
        if record is not newest[document_id]:
            # Named again on this very page: the newest counts, or the last of those.
            plan.listed += 1
            plan.duplicate += 1
        elif _is_accounted_for(record, entry, seen):
            continue
        elif entry and is_again and _adds_nothing(record, entry):
            plan.listed += 1
            plan.duplicate += 1
        elif entry and _is_of_before(record, entry):
            plan.older.append(entry)
        else:
            if is_again and is_in_doubt:
                # The older one, which has waited for this.
                plan.listed += 1
                plan.duplicate += 1
            plan.moved += bool(is_again and entry and entry.datestamp not in (None, _datestamp(record)))
            revision = _next_revision(entry, holdings.get(document_id), used_up.get(document_id, 0))
            _decide(
                record, entry, holdings.get(document_id), revision, plan, site_run, site_names, elsewhere, seen.again
            )
    return plan


def _adds_nothing(record: ListedRecord, known: KnownRecord) -> bool:
    """Whether another entry of the list has named the record as it is now."""
    return (
        (_is_as_received(record, known) and not known.entry.is_in_doubt)
        or _is_older(record, known.datestamp)
        or _is_gone_elsewhere(record, known.datestamp, is_there=_is_named_live(known))
    )


def _next_revision(known: KnownRecord | None, holding: Holding | None, used_up: int) -> int:
    """The next revision of ours: above all that the target has, or had."""
    before = known.entry.target_revision if known else None
    return max(holding.revision if holding else 0, before or 0, used_up) + 1


def _is_accounted_for(record: ListedRecord, known: KnownRecord | None, seen: AccountedFor) -> bool:
    """Whether this site run has its outcome already, from before it was interrupted or its list was begun anew."""
    if known is None or not _is_as_received(record, known):
        return False
    in_this_run = known.listing is not None and seen.first <= known.listing < seen.listing
    return in_this_run or known.entry.document_id in seen.logged


def _was_listed(known: KnownRecord | None, seen: AccountedFor) -> bool:
    return known is not None and known.listing == seen.listing


def _is_as_received(record: ListedRecord, known: KnownRecord | None) -> bool:
    """Whether the record is the one that was received last."""
    if known is None:
        return False
    if record.deleted or _is_known_as_deleted(known):
        return record.deleted and _is_known_as_deleted(known)
    return known.digest == _digest(record)


def _is_known_as_deleted(known: KnownRecord) -> bool:
    return known.to_delete or known.entry.outcome == OutcomeKind.DELETED


def _is_named_live(known: KnownRecord) -> bool:
    """Whether the datestamp is that of a live record; of one in doubt it may be that of a deletion that has waited."""
    return not (_is_known_as_deleted(known) or known.entry.is_in_doubt)


def _is_older(record: ListedRecord, datestamp: str | None) -> bool:
    """Whether the record is an earlier version than one of this datestamp; no order of a list is promised."""
    own, other = _datestamp(record), datestamp or ""
    # Datestamps of one granularity sort as their texts do, if they begin with the year.
    are_alike = len(own) == len(other) and _BEGINS_WITH_YEAR.match(own) and _BEGINS_WITH_YEAR.match(other)
    return bool(are_alike) and own < other


def _is_of_before(record: ListedRecord, known: KnownRecord) -> bool:
    """Whether an earlier list has named a later version of the record, which this one may still name."""
    return not record.deleted and not _is_as_received(record, known) and _is_older(record, known.datestamp)


def _is_gone_elsewhere(record: ListedRecord, datestamp: str | None, *, is_there: bool) -> bool:
    """Whether the record is said to be deleted, and the same list has it with this very datestamp.

    Some repositories say so of a record that has left one of their sets for another one.
    """
    return record.deleted and is_there and bool(datestamp) and _datestamp(record) == datestamp


def _datestamp(record: ListedRecord) -> str:
    return record.document.origin.datestamp[:40] if record.document.origin else ""


def _digest(record: ListedRecord) -> str | None:
    return (record.document.origin.digest if record.document.origin else "") or None


def _decide(
    record: ListedRecord,
    known: KnownRecord | None,
    holding: Holding | None,
    next_revision: int,
    plan: PagePlan,
    site_run: SiteRun,
    site_names: Mapping[int, str],
    elsewhere: Elsewhere,
    again: bool,
) -> None:
    entry = known.entry if known else None
    if holding is not None and holding.withdrawn is not None and not record.deleted:
        plan.listed += 1
        document = replace(record.document, revision=entry.revision if entry else next_revision)
        finding = replace(withdrawn(document, holding.withdrawn), docid="")
        plan.ended.append((Outcome(document, OutcomeKind.FILTERED, None, (finding,)), entry))
        return
    if holding is not None and holding.withdrawn is not None:
        holding = None
    held = holding.revision if holding else (entry.target_revision if entry else None)
    owner = other_owner(holding, site_run, site_names)
    if record.deleted:
        is_elsewhere = record.document.document_id in elsewhere.listed
        _decide_deletion(record, known, holding, plan, site_run, owner, is_elsewhere)
        return
    plan.listed += 1
    if known and not again and _is_there(record, known, holding, site_run):
        plan.unchanged += 1
        document = replace(record.document, revision=known.entry.revision)
        if not _is_noted(record, known):
            plan.settled.append((Outcome(document, OutcomeKind.UNCHANGED, held), entry))
        return
    brought = elsewhere.brought.get(record.document.document_id) if owner is None else None
    if brought and holding and not again and _is_as_brought(record, entry, brought):
        plan.unchanged += 1
        document = replace(record.document, revision=holding.revision)
        title = document.origin.title if document.origin else ""
        outcome = Outcome(document, OutcomeKind.UNCHANGED, holding.revision, sha256=brought.sha256, title=title)
        plan.settled.append((outcome, entry))
        return
    is_pending = known is not None and known.entry.pending_sha256 is not None and known.digest == _digest(record)
    revision = entry.revision if entry and is_pending else next_revision
    if entry and not is_pending and entry.pending_sha256 is not None:
        # It is not known whether the revision that was sent last arrived: its number is used up.
        revision = max(revision, entry.revision + 1)
        entry = replace(entry, pending_sha256=None)
    document = replace(record.document, revision=revision)
    if owner is not None:
        plan.ended.append((_refused(document, owner, held), entry))
    elif record.content is None:
        kind = OutcomeKind.ACCESS_ERROR if record.is_away else OutcomeKind.INVALID
        plan.ended.append((Outcome(document, kind, held, record.findings, transient=record.is_away), entry))
    else:
        intent = Intent(document, Action.INSERT, None, record.findings)
        if holding is not None:
            sha256 = holding.sha256 or (known.sent_as(holding) if known else None)
            sha256 = sha256 or (brought.sha256 if brought else None)
            intent = replace(intent, action=Action.UPDATE, target_revision=holding.revision, held_sha256=sha256)
        plan.chains.append([Todo(intent, entry)])
        plan.in_hand[document.document_id] = record


def _decide_deletion(
    record: ListedRecord,
    known: KnownRecord | None,
    holding: Holding | None,
    plan: PagePlan,
    site_run: SiteRun,
    owner: str | None,
    is_elsewhere: bool,
) -> None:
    """`is_elsewhere`: another site of the origin lists the record live."""
    entry = known.entry if known else None
    held = holding.revision if holding else (entry.target_revision if entry else None)
    is_told = site_run.site.options.deletions is not Deletions.NOTE
    document = replace(record.document, revision=(entry.revision if entry else held) or 0)
    is_left = holding is not None and owner is None and not is_elsewhere
    if known and known.entry.outcome == OutcomeKind.DELETED and not (is_left and is_told):
        plan.listed += 1
        plan.unchanged += 1
        if known.entry.is_in_doubt:
            plan.as_known.append(known)
    elif (held is None and not (entry and entry.pending_sha256)) or (known is None and is_elsewhere):
        # The target never had it from here: there is nothing to delete, and it is noted without being counted so.
        plan.listed += 1
        plan.unchanged += 1
        plan.settled.append((Outcome(document, OutcomeKind.DELETED, None), entry))
    elif (holding is None and not (entry and entry.pending_sha256)) or not is_told:
        plan.listed += 1
        plan.ended.append((Outcome(document, OutcomeKind.DELETED, held), entry))
    else:
        # It is accounted for when all deletions of this harvest are known, and whose documents they are by then.
        plan.to_delete.append((document, _as_it_waits(record, known) if known else None))


def _as_it_waits(record: ListedRecord, known: KnownRecord) -> LedgerEntry:
    """What the ledger is to say of a record whose deletion waits to be told; a confirmation of it holds still."""
    if known.to_delete:
        return known.entry
    if known.entry.is_in_doubt and known.datestamp == _datestamp(record):
        return replace(known.entry, outcome=OutcomeKind.DEFERRED)  # it was put off before the list had another version
    return replace(known.entry, next_attempt=None)


def other_owner(holding: Holding | None, site_run: SiteRun, site_names: Mapping[int, str]) -> str | None:
    """The name of a registered site of another origin that the document belongs to; None if there is none."""
    if holding is None or holding.site_id is None or site_run.owns(holding.site_id):
        return None
    return site_names.get(holding.site_id)


def _refused(document: ListedDocument, owner: str, held: int | None) -> Outcome:
    return Outcome(document, OutcomeKind.UPLOAD_ERROR, held, (owned(document, owner),))


def owned(document: ListedDocument, owner: str) -> Finding:
    """What is said of a record whose document belongs to the site `owner`."""
    return replace(other_site_owns(document, owner, is_record=True), docid="")


def _is_there(record: ListedRecord, known: KnownRecord, holding: Holding | None, site_run: SiteRun) -> bool:
    """Whether this very content is in the target, as the last harvest left it."""
    return (
        known.is_well
        and record.content is not None
        and known.digest == _digest(record)
        and holding is not None
        and holding.revision == known.entry.target_revision
        and site_run.owns(holding.site_id)
    )


def _is_as_brought(record: ListedRecord, entry: LedgerEntry | None, brought: Brought) -> bool:
    """Whether another site of the origin has brought this very content; nothing of this site's own is under way."""
    is_pending = entry is not None and entry.pending_sha256 is not None
    return (
        record.content is not None
        and brought.digest is not None
        and brought.digest == _digest(record)
        and not is_pending
    )


def _is_noted(record: ListedRecord, known: KnownRecord) -> bool:
    """Whether the ledger says all of this already, so that nothing is to be written."""
    document, entry = record.document, known.entry
    return (
        entry.outcome == OutcomeKind.UNCHANGED
        and entry.url == document.url
        and entry.document_type == document.document_type
        and entry.next_attempt is None
        and known.missing_since is None
        and document.origin is not None
        and known.datestamp == document.origin.datestamp
    )
