"""Plans the records of one page of a source repository's list. Pure.

A record has no revision of its own. It gets the next one here if its content differs from the content received last, or
if that is not in the target. The caller asks the target before, as for listed documents.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from metaharvest.harvest.documents import Todo
from metaharvest.ledger.entries import LedgerEntry, after_deletion
from metaharvest.ledger.records import Brought, KnownRecord
from metaharvest.ledger.rows import Rows, Settled, settled_rows
from metaharvest.ledger.sweeps import row_deleted_again, row_to_delete, row_to_refetch
from metaharvest.model import (
    Action,
    Deletions,
    DocumentState,
    Holding,
    Intent,
    ListedDocument,
    Outcome,
    OutcomeKind,
    SiteRun,
    Withdrawal,
)
from metaharvest.model.values import frozen
from metaharvest.sources.base import ListedRecord
from metaharvest.targets.owners import other_site_owns
from metaharvest.targets.withdrawals import withdrawn

_BEGINS_WITH_YEAR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@frozen
class AccountedFor:
    """The records that are accounted for already."""

    sweep_id: int
    """The sweep under way."""
    first_sweep: int
    """The sweep that was under way when this site run was interrupted, or `sweep_id`.

    All sweeps from this one to the one before `sweep_id` broke off.
    """
    rechecks: bool = False
    """True if unchanged records are checked as well."""
    goes_on: bool = False
    """True if an earlier harvest, or an earlier part of this one, began the sweep."""
    before: Container[str] = ()
    """Document ids of the pages since the last checkpoint."""
    logged: Collection[str] = ()
    """Document ids whose outcomes are in the log of this site run, which was interrupted."""


@frozen
class Elsewhere:
    """The records of a page that other sites of the origin have `brought`, and the records that they list live.

    Disabled sites list nothing. For a site with filters or normalising, `brought` records have no digest.
    """

    brought: Mapping[str, Brought] = field(default_factory=dict)
    listed: Collection[str] = ()


@frozen
class PageContext:
    """The context of a page: facts about its documents, by document id.

    `known` are their rows in the site's ledger, `holdings` the revisions that the target has. `used_up` are the highest
    revisions of documents that were deleted in the target. `site_names` has all registered sites.
    """

    site_run: SiteRun
    site_names: Mapping[int, str]
    seen: AccountedFor
    known: Mapping[str, KnownRecord]
    holdings: Mapping[str, Holding]
    used_up: Mapping[str, int]
    elsewhere: Elsewhere = Elsewhere()


@dataclass(slots=True)
class PagePlan:
    """The plan of a page.

    The page may show an older version of a record. The newer one may come on a later page, as lists have no fixed
    order: then the older one is a duplicate. Otherwise the record is fetched individually at the end of the list, and
    accounted for then: the source repository may have been restored from a backup.
    """

    settled: list[Settled] = field(default_factory=list)
    """Outcomes that go into the ledger alone."""
    ended: list[Settled] = field(default_factory=list)
    """Outcomes that go into the ledger and the log."""
    chains: list[list[Todo]] = field(default_factory=list)
    """The documents that are brought in, with their content in `in_hand`."""
    in_hand: dict[str, ListedRecord] = field(default_factory=dict)
    """The records of these documents, by document id."""
    to_delete: list[tuple[ListedDocument, LedgerEntry | None]] = field(default_factory=list)
    """The documents whose deletions wait until the list has ended or broken off; they are accounted for then."""
    older_deletions: list[str] = field(default_factory=list)
    """The document ids among these whose known, live versions have newer datestamps: a later page may have them, too.

    OJS lists the deletion of an article that was published again: https://github.com/pkp/pkp-lib/issues/6625
    """
    outdated: list[KnownRecord] = field(default_factory=list)
    """The rows of which the page shows an older version."""
    deleted_again: list[KnownRecord] = field(default_factory=list)
    """The rows of deleted records of which an earlier page showed an older version, and this one the deletion."""
    same: list[ListedDocument] = field(default_factory=list)
    """This site's documents that are in the ledger as they are. Their sets and about containers may have changed."""
    noted: int = 0
    """The number of other records that are in the ledger as they are: deleted, or with a document of another site."""
    duplicate: int = 0
    """The number of versions that do not count."""
    moved: int = 0
    """The number of records that came earlier in the sweep with another datestamp."""

    @property
    def has_notes(self) -> bool:
        """True if the page may change rows beside the outcomes of records that are brought in."""
        return bool(self.settled or self.same or self.to_delete or self.outdated or self.deleted_again)

    @property
    def unchanged(self) -> int:
        """The number of records of which the target has the content, or the deletion."""
        return self.noted + len(self.same) + len(self.settled)

    @property
    def listed(self) -> int:
        """The number of records that are accounted for with this page."""
        return self.duplicate + self.unchanged + len(self.ended) + len(self.chains)

    def rows(self, site_run: SiteRun, today: date) -> Rows:
        """The rows of the ledger for this page, apart from documents whose outcomes are in the log too."""
        new, changed = settled_rows(site_run, self.settled, today)
        for document, entry in self.to_delete:
            (new if entry is None else changed).append(row_to_delete(site_run, document, entry))
        changed += [row_to_refetch(each.entry, today) for each in self.outdated]
        changed += [row_deleted_again(each.entry) for each in self.deleted_again]
        return new, changed


@dataclass(slots=True)
class _Case:
    """A record, its row in the ledger, and what the target has of its document.

    A withdrawn document has no `holding`. `last_revision` is the revision of the target; if it has none, the last one
    that the ledger knows.
    """

    record: ListedRecord
    document_id: str
    known: KnownRecord | None
    entry: LedgerEntry | None
    holding: Holding | None
    last_revision: int | None
    withdrawal: Withdrawal | None
    owner: str | None
    brought: Brought | None

    @classmethod
    def of(cls, record: ListedRecord, page: PageContext) -> _Case:
        document_id = record.document.document_id
        known, holding = page.known.get(document_id), page.holdings.get(document_id)
        entry = known.entry if known else None
        withdrawal = holding.withdrawn if holding else None
        holding = None if withdrawal else holding
        last_revision = holding.revision if holding else entry.target_revision if entry else None
        owner = other_owner(holding, page.site_run, page.site_names)
        brought = page.elsewhere.brought.get(document_id) if holding and owner is None else None
        return cls(record, document_id, known, entry, holding, last_revision, withdrawal, owner, brought)

    @property
    def is_pending(self) -> bool:
        """True if an upload of the document was begun, and its result is not known."""
        return self.entry is not None and self.entry.pending_sha256 is not None


def plan_page(records: Sequence[ListedRecord], page: PageContext) -> PagePlan:
    """The plan of the records of a page."""
    plan, newest = PagePlan(), _newest_versions(records)
    for record in records:
        if record is newest[record.document.document_id]:
            _plan_record(_Case.of(record, page), page, plan)
        else:
            plan.duplicate += 1
    return plan


# -- which version of a record counts


def _newest_versions(records: Sequence[ListedRecord]) -> dict[str, ListedRecord]:
    """The version of each record that counts: the one with the newest datestamp, and of equal ones the last."""
    newest = {record.document.document_id: record for record in records}
    if len(newest) == len(records):
        return newest  # as on almost all pages
    newest = {}
    for record in records:
        other = newest.setdefault(record.document.document_id, record)
        if not _is_outdated(record, _datestamp(other), is_live=not other.deleted):
            newest[record.document.document_id] = record
    return newest


def _plan_record(case: _Case, page: PageContext, plan: PagePlan) -> None:
    """Plan the record, unless its outcome, or a newer version, is known already."""
    known, record = case.known, case.record
    if known is None:
        _decide(case, page, plan)
        return
    if _is_accounted_for(record, known, page.seen):
        return
    was_listed = known.sweep_id == page.seen.sweep_id or case.document_id in page.seen.before
    if was_listed and page.seen.goes_on and _is_same(record, known):
        # An earlier harvest has counted it. This one counts it, too, as the list may not name it again.
        if page.site_run.resumed:
            return
        was_listed = False
    if was_listed and _adds_nothing(record, known):
        plan.duplicate += 1
    elif not record.deleted and not _is_as_received(record, known) and _is_older(record, known.datestamp):
        plan.outdated.append(known)
    else:
        # If a record must be fetched, its older version came earlier in this sweep.
        plan.duplicate += was_listed and known.entry.needs_refetch
        plan.moved += was_listed and known.datestamp not in (None, _datestamp(record))
        _decide(case, page, plan)


def _is_accounted_for(record: ListedRecord, known: KnownRecord, seen: AccountedFor) -> bool:
    """True if this site run has its outcome already: it was interrupted, or began its list again."""
    in_this_run = known.sweep_id is not None and seen.first_sweep <= known.sweep_id < seen.sweep_id
    return (in_this_run or known.entry.document_id in seen.logged) and _is_as_received(record, known)


def _adds_nothing(record: ListedRecord, known: KnownRecord) -> bool:
    """True if the list has shown this version of the record, or a newer one."""
    # If a record must be fetched, its known datestamp may be the one of a deletion that waited.
    is_live = not (known.is_said_to_be_deleted or known.entry.needs_refetch)
    return _is_same(record, known) or _is_outdated(record, known.datestamp, is_live=is_live)


def _is_same(record: ListedRecord, known: KnownRecord) -> bool:
    """True if the record is as it was received last, and need not be fetched."""
    return _is_as_received(record, known) and not known.entry.needs_refetch


def _is_as_received(record: ListedRecord, known: KnownRecord) -> bool:
    """True if the record is as it was received last."""
    if record.deleted or known.is_said_to_be_deleted:
        return record.deleted and known.is_said_to_be_deleted
    return known.digest == _digest(record)


def _is_outdated(record: ListedRecord, datestamp: str | None, *, is_live: bool) -> bool:
    """True if the record does not count, because the known version, which has this datestamp, does.

    Some source repositories report a record as deleted that has moved from one of their sets to another: then the same
    list has it live, with the very same datestamp.
    """
    has_left_a_set = record.deleted and is_live and bool(datestamp) and _datestamp(record) == datestamp
    return has_left_a_set or _is_older(record, datestamp)


def _is_older(record: ListedRecord, datestamp: str | None) -> bool:
    """True if the record is older than this datestamp. Lists have no fixed order."""
    own, other = _datestamp(record), datestamp or ""
    # Datestamps of one granularity sort as text if they begin with the year.
    is_before = own < other and len(own) == len(other)
    return is_before and all(map(_BEGINS_WITH_YEAR.match, (own, other)))


def _datestamp(record: ListedRecord) -> str:
    return record.document.origin.datestamp[:40] if record.document.origin else ""


def _digest(record: ListedRecord) -> str | None:
    """The digest of the content; None if the record has none."""
    return (record.document.origin.digest if record.document.origin else "") or None


def _has_content(record: ListedRecord, digest: str | None) -> bool:
    return digest is not None and digest == _digest(record)


# -- the fate of a record


def _decide(case: _Case, page: PageContext, plan: PagePlan) -> None:
    rechecks = page.seen.rechecks
    if case.record.deleted:
        _decide_deletion(case, page, plan)
    elif case.withdrawal is not None:
        _leave_out(case, case.withdrawal, page, plan)
    elif case.known and not rechecks and _is_in_target(case, case.known, page.site_run):
        _settle_as_known(case, case.known, page.site_run, plan)
    elif case.brought and not rechecks and not case.is_pending and _has_content(case.record, case.brought.digest):
        _settle_as_brought(case, case.brought, plan)
    else:
        _bring_in(case, page, plan)


def _decide_deletion(case: _Case, page: PageContext, plan: PagePlan) -> None:
    """Plan a record that the source repository deleted.

    The target deletes the document after the list, with all deletions of this harvest.
    """
    entry, known = case.entry, case.known
    deletes = page.site_run.site.options.deletions is not Deletions.KEEP
    is_elsewhere = case.document_id in page.elsewhere.listed
    document = case.record.document.as_revision((entry.revision if entry else case.last_revision) or 0)
    is_left = case.holding is not None and case.owner is None and not is_elsewhere
    if known and known.entry.is_deleted and not (deletes and is_left):
        # The deletion is known. If a document of this origin is left in the target, its deletion is planned again.
        plan.noted += 1
        plan.deleted_again += [known] if known.entry.needs_refetch else []
        return
    if (known is None and is_elsewhere) or (case.last_revision is None and not case.is_pending):
        # The target never got the document from this site: the deletion is no event for people.
        plan.settled.append((Outcome(document, OutcomeKind.DELETED, None), entry))
        return
    if deletes and (case.holding is not None or case.is_pending):
        # The target has the document, or may have it, as an upload was begun.
        plan.to_delete.append((document, _waiting_entry(case.record, known) if known else None))
        if known and not known.is_said_to_be_deleted and _is_older(case.record, known.datestamp):
            plan.older_deletions.append(case.document_id)
        return
    # The site keeps deleted documents, or the target no longer has this one.
    plan.ended.append((Outcome(document, OutcomeKind.DELETED, case.last_revision), entry))


def _waiting_entry(record: ListedRecord, known: KnownRecord) -> LedgerEntry:
    """The row of a record whose deletion waits. A deletion that waited before keeps its confirmation."""
    entry, is_known = known.entry, known.datestamp == _datestamp(record)
    state = after_deletion(entry.state, is_known=is_known)
    if state == entry.state:
        return entry
    if state is DocumentState.TO_CONFIRM:
        # This deletion waited for a confirmation before a list showed an older version: it does so again.
        return replace(entry, state=state, outcome=OutcomeKind.DEFERRED)
    return replace(entry, state=state, next_attempt=None)


def _leave_out(case: _Case, withdrawal: Withdrawal, page: PageContext, plan: PagePlan) -> None:
    revision = case.entry.revision if case.entry else _next_revision(case, page)
    document = case.record.document.as_revision(revision)
    finding = replace(withdrawn(document, withdrawal), docid="")
    plan.ended.append((Outcome(document, OutcomeKind.FILTERED, None, (finding,)), case.entry))


def _is_in_target(case: _Case, known: KnownRecord, site_run: SiteRun) -> bool:
    """True if the target holds this very content, as the last harvest left it."""
    is_as_left = case.holding is not None and case.holding.revision == known.entry.target_revision
    is_ours = case.holding is not None and site_run.owns(case.holding.site_id)
    return is_as_left and is_ours and known.is_well and _has_content(case.record, known.digest)


def _settle_as_known(case: _Case, known: KnownRecord, site_run: SiteRun, plan: PagePlan) -> None:
    record, document, entry = case.record, case.record.document, known.entry
    in_ledger = (entry.outcome, entry.state, entry.url, entry.document_type, known.datestamp)
    as_listed = (OutcomeKind.UNCHANGED, DocumentState.HELD, document.url, document.document_type, _datestamp(record))
    document = document.as_revision(entry.revision)
    if in_ledger != as_listed:
        plan.settled.append((Outcome(document, OutcomeKind.UNCHANGED, entry.target_revision), entry))
    elif case.holding and case.holding.site_id not in (None, site_run.site.site_id):
        # The other site of the origin brings its sets: some repositories name only the set that was requested.
        plan.noted += 1
    else:
        plan.same.append(document)


def _settle_as_brought(case: _Case, brought: Brought, plan: PagePlan) -> None:
    document = case.record.document.as_revision(case.last_revision or 0)
    title = document.origin.title if document.origin else ""
    outcome = Outcome(document, OutcomeKind.UNCHANGED, case.last_revision, sha256=brought.sha256, title=title)
    plan.settled.append((outcome, case.entry))


def _bring_in(case: _Case, page: PageContext, plan: PagePlan) -> None:
    """Bring a record in as the next revision; refuse it if a site of another origin owns the document."""
    record, last, (document, entry) = case.record, case.last_revision, _next_version(case, page)
    if case.owner is not None:
        finding = replace(other_site_owns(document, case.owner, is_record=True), docid="")
        plan.ended.append((Outcome(document, OutcomeKind.UPLOAD_ERROR, last, (finding,)), entry))
    elif record.content is None:
        kind = OutcomeKind.ACCESS_ERROR if record.is_away else OutcomeKind.INVALID
        plan.ended.append((Outcome(document, kind, last, record.findings, transient=record.is_away), entry))
    else:
        action = Action.INSERT if case.holding is None else Action.UPDATE
        replaced = None if case.holding is None else last
        intent = Intent(document, action, replaced, record.findings, _sha256_in_target(case))
        plan.chains.append([Todo(intent, entry)])
        plan.in_hand[document.document_id] = record


def _next_version(case: _Case, page: PageContext) -> tuple[ListedDocument, LedgerEntry | None]:
    """The document with its next revision, and its row. A pending upload of the same content keeps its revision."""
    revision, entry = _next_revision(case, page), case.entry
    if case.known and entry is not None and case.is_pending:
        if case.known.digest == _digest(case.record):
            revision = entry.revision
        else:
            # The revision that was sent last may have arrived: its number is used up.
            revision = max(revision, entry.revision + 1)
            entry = replace(entry, pending_sha256=None)
    return case.record.document.as_revision(revision), entry


def _next_revision(case: _Case, page: PageContext) -> int:
    """The next revision: above all revisions that the target has, or had."""
    known = case.entry.target_revision if case.entry else None
    return max(case.last_revision or 0, known or 0, page.used_up.get(case.document_id, 0)) + 1


def _sha256_in_target(case: _Case) -> str | None:
    """The digest of what the target has; if the target does not say, as far as the ledger knows it."""
    if case.holding is None:
        return None
    sent = case.known.sent_as(case.holding) if case.known else None
    return case.holding.sha256 or sent or (case.brought.sha256 if case.brought else None)


# -- the owner of the document


def other_owner(holding: Holding | None, site_run: SiteRun, site_names: Mapping[int, str]) -> str | None:
    """The name of the registered site of another origin that owns the document; None if there is none."""
    if holding is None or holding.site_id is None or site_run.owns(holding.site_id):
        return None
    return site_names.get(holding.site_id)
