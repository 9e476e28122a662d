"""Plans the records of one page of a source repository's list. Pure.

A record has no revision of its own. It gets the next one here if its content differs from the content received last, or
if that is not in the target. The caller asks the target before, as for listed documents.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from metaharvest.harvest.decide import other_site_owns
from metaharvest.harvest.documents import Todo
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.ledger.records import Brought, KnownRecord
from metaharvest.ledger.states import DELETION_WAITS, after_deletion
from metaharvest.model import (
    Action,
    Deletions,
    DocumentState,
    Finding,
    Holding,
    Intent,
    ListedDocument,
    Outcome,
    OutcomeKind,
    SiteRun,
)
from metaharvest.sources.base import ListedRecord
from metaharvest.targets.withdrawals import withdrawn

_BEGINS_WITH_YEAR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

OutcomeAndEntry = tuple[Outcome, LedgerEntry | None]
"""An outcome, and the document's row in the ledger."""


@dataclass(frozen=True, slots=True)
class AccountedFor:
    """The records that are accounted for already.

    `listing` is the number of the listing under way. The listings from `first` until this one began in the same site
    run, and broke off. `before` are document ids of pages since the last checkpoint. `logged` are document ids whose
    outcomes an interrupted run has logged in this site run. `rechecks`: unchanged records are checked as well.
    """

    listing: int
    first: int
    rechecks: bool = False
    before: Collection[str] = ()
    logged: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The records of a page that other sites of the origin have `brought`, and those that they list live.

    Disabled sites list nothing. For a site with filters or normalising, `brought` records have no digest.
    """

    brought: Mapping[str, Brought] = field(default_factory=dict)
    listed: Collection[str] = ()


@dataclass(slots=True)
class PagePlan:
    """The plan of a page.

    `listed` counts the records that are accounted for with it. Of these, `unchanged` are in the target, `duplicate`
    came earlier in the listing, `moved` came earlier with another datestamp. `settled` outcomes go into the ledger
    alone, `ended` outcomes also into the log. `chains` are brought in, from the records `in_hand`. The documents in
    `to_delete` are deleted in the target at the end of the list.

    `older` are rows of which the page shows an older version. The newer one may come on a later page, as lists have no
    fixed order: then it is in `settled`, or in `as_known` if it is deleted, and the older one is a duplicate. Otherwise
    the record is fetched individually at the end of the list, and accounted for then: the source repository may have
    been restored from a backup.
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
    """The plan of these records, from their rows in the ledger and the target's holdings.

    `used_up`: the highest revisions of documents that were deleted in the target.
    """
    plan, elsewhere = PagePlan(), elsewhere or Elsewhere()
    newest: dict[str, ListedRecord] = {}
    for record in records:
        named = newest.setdefault(record.document.document_id, record)
        is_older = _is_older(record, _datestamp(named))
        if not (is_older or _has_left_a_set(record, _datestamp(named), is_there=not named.deleted)):
            newest[record.document.document_id] = record
    for record in records:
        document_id = record.document.document_id
        entry = known.get(document_id)
        is_again = document_id in seen.before or _was_listed(entry, seen)
        is_in_doubt = entry is not None and entry.entry.is_in_doubt
        if record is not newest[document_id]:
            # The page has the record several times: the newest datestamp counts, and of equal ones the last.
            plan.listed += 1
            plan.duplicate += 1
        elif _is_accounted_for(record, entry, seen):
            continue
        elif entry and is_again and _adds_nothing(record, entry):
            plan.listed += 1
            plan.duplicate += 1
        elif entry and _is_older_than_known(record, entry):
            plan.older.append(entry)
        else:
            if is_again and is_in_doubt:
                # The older version, which came earlier in this listing.
                plan.listed += 1
                plan.duplicate += 1
            plan.moved += bool(is_again and entry and entry.datestamp not in (None, _datestamp(record)))
            revision = _next_revision(entry, holdings.get(document_id), used_up.get(document_id, 0))
            _decide(
                record, entry, holdings.get(document_id), revision, plan, site_run, site_names, elsewhere, seen.rechecks
            )
    return plan


def _adds_nothing(record: ListedRecord, known: KnownRecord) -> bool:
    """True if the list has shown this version of the record, or a newer one."""
    return (
        (_is_as_received(record, known) and not known.entry.is_in_doubt)
        or _is_older(record, known.datestamp)
        or _has_left_a_set(record, known.datestamp, is_there=_is_named_live(known))
    )


def _next_revision(known: KnownRecord | None, holding: Holding | None, used_up: int) -> int:
    """The next revision: above all revisions that the target has, or had."""
    before = known.entry.target_revision if known else None
    return max(holding.revision if holding else 0, before or 0, used_up) + 1


def _is_accounted_for(record: ListedRecord, known: KnownRecord | None, seen: AccountedFor) -> bool:
    """True if this site run has its outcome already: it was interrupted, or began its list again."""
    if known is None or not _is_as_received(record, known):
        return False
    in_this_run = known.listing is not None and seen.first <= known.listing < seen.listing
    return in_this_run or known.entry.document_id in seen.logged


def _was_listed(known: KnownRecord | None, seen: AccountedFor) -> bool:
    return known is not None and known.listing == seen.listing


def _is_as_received(record: ListedRecord, known: KnownRecord | None) -> bool:
    """True if the record is as it was received last."""
    if known is None:
        return False
    if record.deleted or _is_known_as_deleted(known):
        return record.deleted and _is_known_as_deleted(known)
    return known.digest == _digest(record)


def _is_known_as_deleted(known: KnownRecord) -> bool:
    return known.is_said_to_be_deleted


def _is_named_live(known: KnownRecord) -> bool:
    """True if the known datestamp is of a live record. Of a record in doubt, it may be of a deletion that waited."""
    return not (_is_known_as_deleted(known) or known.entry.is_in_doubt)


def _is_older(record: ListedRecord, datestamp: str | None) -> bool:
    """True if the record is older than this datestamp. Lists have no fixed order."""
    own, other = _datestamp(record), datestamp or ""
    # Datestamps of one granularity sort as text if they begin with the year.
    are_alike = len(own) == len(other) and _BEGINS_WITH_YEAR.match(own) and _BEGINS_WITH_YEAR.match(other)
    return bool(are_alike) and own < other


def _is_older_than_known(record: ListedRecord, known: KnownRecord) -> bool:
    """True if an earlier list showed a newer version of the record; it may come on a later page of this list."""
    return not record.deleted and not _is_as_received(record, known) and _is_older(record, known.datestamp)


def _has_left_a_set(record: ListedRecord, datestamp: str | None, *, is_there: bool) -> bool:
    """True if the record is reported as deleted, and the same list has it live with this very datestamp.

    Some source repositories report so a record that has moved from one of their sets to another.
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
    rechecks: bool,
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
    if known and not rechecks and _is_in_target(record, known, holding, site_run):
        plan.unchanged += 1
        document = replace(record.document, revision=known.entry.revision)
        if not _is_in_ledger(record, known):
            plan.settled.append((Outcome(document, OutcomeKind.UNCHANGED, held), entry))
        return
    brought = elsewhere.brought.get(record.document.document_id) if owner is None else None
    if brought and holding and not rechecks and _is_brought_by_other(record, entry, brought):
        plan.unchanged += 1
        document = replace(record.document, revision=holding.revision)
        title = document.origin.title if document.origin else ""
        outcome = Outcome(document, OutcomeKind.UNCHANGED, holding.revision, sha256=brought.sha256, title=title)
        plan.settled.append((outcome, entry))
        return
    is_pending = known is not None and known.entry.pending_sha256 is not None and known.digest == _digest(record)
    revision = entry.revision if entry and is_pending else next_revision
    if entry and not is_pending and entry.pending_sha256 is not None:
        # The revision that was sent last may have arrived: its number is used up.
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
    deletes = site_run.site.options.deletions is not Deletions.NOTE
    document = replace(record.document, revision=(entry.revision if entry else held) or 0)
    is_left = holding is not None and owner is None and not is_elsewhere
    if known and known.entry.is_deleted and not (is_left and deletes):
        plan.listed += 1
        plan.unchanged += 1
        if known.entry.is_in_doubt:
            plan.as_known.append(known)
    elif (held is None and not (entry and entry.pending_sha256)) or (known is None and is_elsewhere):
        # The target never had it from this site: nothing is to be deleted, and the record counts as unchanged.
        plan.listed += 1
        plan.unchanged += 1
        plan.settled.append((Outcome(document, OutcomeKind.DELETED, None), entry))
    elif (holding is None and not (entry and entry.pending_sha256)) or not deletes:
        plan.listed += 1
        plan.ended.append((Outcome(document, OutcomeKind.DELETED, held), entry))
    else:
        # It is accounted for at the end of the list, with all deletions of this harvest.
        plan.to_delete.append((document, _entry_of_waiting(record, known) if known else None))


def _entry_of_waiting(record: ListedRecord, known: KnownRecord) -> LedgerEntry:
    """The row of a record whose deletion waits. A deletion that waited before keeps its confirmation."""
    entry, is_known = known.entry, known.datestamp == _datestamp(record)
    waits = replace(entry, state=after_deletion(entry.state, is_known=is_known))
    if entry.state in DELETION_WAITS:
        return waits
    # One to be confirmed was put off before the list had another version.
    is_put_off = waits.is_to_be_confirmed
    return replace(waits, outcome=OutcomeKind.DEFERRED) if is_put_off else replace(waits, next_attempt=None)


def other_owner(holding: Holding | None, site_run: SiteRun, site_names: Mapping[int, str]) -> str | None:
    """The name of the registered site of another origin that owns the document; None if there is none."""
    if holding is None or holding.site_id is None or site_run.owns(holding.site_id):
        return None
    return site_names.get(holding.site_id)


def _refused(document: ListedDocument, owner: str, held: int | None) -> Outcome:
    return Outcome(document, OutcomeKind.UPLOAD_ERROR, held, (owned(document, owner),))


def owned(document: ListedDocument, owner: str) -> Finding:
    """The finding about a record whose document belongs to the site `owner`."""
    return replace(other_site_owns(document, owner, is_record=True), docid="")


def _is_in_target(record: ListedRecord, known: KnownRecord, holding: Holding | None, site_run: SiteRun) -> bool:
    """True if the target holds this very content, as the last harvest left it."""
    return (
        known.is_well
        and record.content is not None
        and known.digest == _digest(record)
        and holding is not None
        and holding.revision == known.entry.target_revision
        and site_run.owns(holding.site_id)
    )


def _is_brought_by_other(record: ListedRecord, entry: LedgerEntry | None, brought: Brought) -> bool:
    """True if another site of the origin has brought this very content, and no upload of this site is pending."""
    is_pending = entry is not None and entry.pending_sha256 is not None
    return (
        record.content is not None
        and brought.digest is not None
        and brought.digest == _digest(record)
        and not is_pending
    )


def _is_in_ledger(record: ListedRecord, known: KnownRecord) -> bool:
    """True if the row in the ledger is right already, so that nothing is to be written."""
    document, entry = record.document, known.entry
    return (
        entry.outcome == OutcomeKind.UNCHANGED
        and entry.url == document.url
        and entry.document_type == document.document_type
        and entry.state == DocumentState.HELD
        and document.origin is not None
        and known.datestamp == document.origin.datestamp
    )
