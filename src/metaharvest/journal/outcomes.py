"""Writes a group of outcomes at once: documents into the target, log rows, detail rows, the ledger.

A group goes in with a handful of statements, in one savepoint. If the database or the target refuses something in
it, the group is written again one by one, so that a bad row fails alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import exc
from sqlalchemy.orm import Session

from metaharvest.config.secret_references import masked
from metaharvest.errors import TargetError
from metaharvest.journal.log_rows import Stamp, outcome_rows, whose, write_log
from metaharvest.journal.totals import Phases
from metaharvest.ledger.entries import LedgerEntry, Values, entry_values
from metaharvest.ledger.rows import Columns, forget_missing, ledger_key, note_unsent, update_by_key, write_ledger
from metaharvest.model import (
    Action,
    Deletions,
    FetchedDocument,
    Finding,
    Outcome,
    OutcomeKind,
    SiteRun,
)
from metaharvest.model.values import frozen
from metaharvest.targets import owners
from metaharvest.targets.base import Deletion, TransactionalTarget, Upload
from metaharvest.text import one_line

log = logging.getLogger(__name__)


@frozen
class Storing:
    """A document, its target, and the phases to which the time for it is added."""

    fetched: FetchedDocument
    target: TransactionalTarget
    phases: Phases


@frozen
class OutcomeNote:
    """An outcome for the journal, with its changes of the target in the same transaction.

    `deleting`: delete the document there; `restamping`: its record came again unchanged, but may have another
    datestamp. `stays`: its record was deleted, and the document was not.
    """

    site_run: SiteRun
    outcome: Outcome
    storing: Storing | None
    known: LedgerEntry | None
    deleting: TransactionalTarget | None = None
    restamping: TransactionalTarget | None = None
    stays: bool = False

    @property
    def size(self) -> int:
        """The number of bytes to be stored with it."""
        return len(self.storing.fetched.content) if self.storing else 0

    @property
    def is_kept(self) -> bool:
        """True unless its target only looks at documents."""
        target = self.storing.target if self.storing else self.deleting
        return target is None or target.keeps

    @property
    def site_id(self) -> int:
        """The site whose document it is."""
        return self.site_run.site.site_id

    def refused(self, reason: str) -> OutcomeNote | None:
        """The same as an upload error; if that is refused, with only the ledger's values; then None."""
        if self.outcome.kind is OutcomeKind.UPLOAD_ERROR and not self.outcome.findings:
            return None
        if self.storing is not None or self.deleting is not None or self.restamping is not None:
            return self.as_upload_error(_not_stored(reason))
        findings = () if self.outcome.kind is OutcomeKind.UPLOAD_ERROR else (_not_stored(reason),)
        held = self.known.target_revision if self.known else None
        outcome = Outcome(self.outcome.document, OutcomeKind.UPLOAD_ERROR, held, findings)
        return replace(self, outcome=replace(outcome, transient=self.outcome.transient))

    def put_off(self) -> OutcomeNote:
        """The same, deferred, if it stores a document."""
        if self.storing is None:
            return self
        held = self.known.target_revision if self.known else None
        return replace(self, outcome=Outcome(self.outcome.document, OutcomeKind.DEFERRED, held), storing=None)

    def as_upload_error(self, *findings: Finding) -> OutcomeNote:
        """The same, ended as an upload error."""
        findings = (*self.outcome.findings, *findings)
        refused = replace(self.outcome, kind=OutcomeKind.UPLOAD_ERROR, findings=findings)
        return replace(self, outcome=refused, storing=None, deleting=None, restamping=None)


def write(session: Session, entries: Sequence[OutcomeNote], stamp: Stamp) -> None:
    """Write the group. Raises what the database raises where it fails as a whole (away, full, read-only)."""
    began = time.monotonic()
    try:
        with session.begin_nested():
            _write_all(session, entries, stamp)
    except Exception as error:
        if is_lost(error):
            raise
        for entry in entries:
            _write_one(session, entry, stamp)
    for_each = (time.monotonic() - began) / len(entries)
    for entry in entries:
        if entry.storing is not None:
            entry.storing.phases.writing += for_each


def _write_all(session: Session, entries: Sequence[OutcomeNote], stamp: Stamp) -> None:
    outcomes = _stored(session, entries, stamp)
    for entry in entries:
        if entry.deleting is not None:
            ours = entry.site_run.site.site_id, stamp.now, entry.site_run.same_origin.others
            entry.deleting.delete(Deletion(entry.outcome.document, *ours), session)
    # By identity: a target of another distribution may have no hash.
    restamping = {id(target): target for entry in entries if (target := entry.restamping) is not None}
    for target in restamping.values():
        target.restamp([entry.outcome.document for entry in entries if entry.restamping is target], session)
    about = {id(entry.site_run): whose(entry.site_run) for entry in entries}
    write_log(
        session,
        [
            (row, about[id(entry.site_run)])
            for entry, outcome in zip(entries, outcomes, strict=True)
            for row in outcome_rows(outcome, entry.is_kept)
        ],
        stamp,
    )
    _own(session, entries)
    _write_ledger(session, entries, outcomes, stamp)


def _write_one(session: Session, entry: OutcomeNote, stamp: Stamp) -> None:
    """Write one outcome; if it is refused, the same as an upload error; if that is refused too, nothing of it.

    A document without any row leaves its site run incomplete, which the reports say.
    """
    try:
        with session.begin_nested():
            _write_all(session, [entry], stamp)
    except TargetError as error:
        _write_one(session, entry.as_upload_error(*error.findings), stamp)
    except Exception as error:
        if is_lost(error):
            raise
        log.exception("The outcome of %s could not be written", entry.outcome.document.docid)
        if less := entry.refused(one_line(masked(str(getattr(error, "orig", None) or error)))):
            _write_one(session, less, stamp)


def is_lost(error: Exception) -> bool:
    """True if the database is away, full or read-only; False if it refuses one row."""
    return isinstance(error, exc.OperationalError | exc.InterfaceError | exc.InternalError)


def _stored(session: Session, entries: Sequence[OutcomeNote], stamp: Stamp) -> list[Outcome]:
    """The outcomes, after what was fetched has been put into the target: inserted or updated, as it turned out."""
    targets: dict[int, TransactionalTarget] = {}
    uploads: dict[int, list[Upload]] = {}
    for entry in entries:
        if entry.storing:
            ours = entry.site_run.site.site_id, stamp.now, entry.site_run.same_origin.others
            upload = Upload(entry.storing.fetched, *ours, title=entry.outcome.title)
            targets[id(entry.storing.target)] = entry.storing.target
            uploads.setdefault(id(entry.storing.target), []).append(upload)
    actions = {key: iter(target.upload(uploads[key], session)) for key, target in targets.items()}
    kinds = (_KINDS[next(actions[id(each.storing.target)])] if each.storing else each.outcome.kind for each in entries)
    return [
        entry.outcome if entry.outcome.kind is kind else replace(entry.outcome, kind=kind)
        for entry, kind in zip(entries, kinds, strict=True)
    ]


def store_each(session: Session, uploads: Sequence[Upload], target: TransactionalTarget) -> list[tuple[Finding, ...]]:
    """Put these into the target, each alone if not all go in. Returns the findings of each refusal; none: stored."""
    try:
        with session.begin_nested():
            target.upload(uploads, session)
            return [()] * len(uploads)
    except Exception as error:
        if is_lost(error):
            raise
        if len(uploads) > 1:
            return [why for upload in uploads for why in store_each(session, [upload], target)]
        if isinstance(error, TargetError):
            return [error.findings]
        log.exception("%s could not be stored", uploads[0].fetched.document.docid)
        return [(_not_stored(one_line(masked(str(getattr(error, "orig", None) or error)))),)]


def _own(session: Session, entries: Sequence[OutcomeNote]) -> None:
    """Register the owners of documents in a target outside of this database: deleted documents have none.

    A deleted document no longer counts as missing at other sites of the origin.
    """
    arrived: dict[tuple[int, frozenset[int]], list[str]] = {}
    gone: dict[tuple[int, frozenset[int]], list[str]] = {}
    for entry in entries:
        site, document_id = entry.site_run.site, entry.outcome.document.document_id
        ours = site.site_id, entry.site_run.same_origin.others
        if entry.storing is None and entry.outcome.kind in _KINDS.values():
            arrived.setdefault(ours, []).append(document_id)
        elif entry.outcome.kind is OutcomeKind.DELETED and not (
            entry.stays or site.options.deletions is Deletions.KEEP
        ):
            gone.setdefault(ours, []).append(document_id)
    for (site_id, others), document_ids in arrived.items():
        # A document that was transferred to another site while it was sent belongs to that site.
        transferred = owners.owned_by_others(session, document_ids, [site_id, *others])
        owners.set_owner(session, [each for each in document_ids if each not in transferred], site_id)
    for (site_id, others), document_ids in gone.items():
        owners.disown(session, document_ids, [site_id, *others])
        if others:
            forget_missing(session, others, document_ids)


_KINDS = {Action.INSERT: OutcomeKind.INSERTED, Action.UPDATE: OutcomeKind.UPDATED}


def _write_ledger(session: Session, entries: Sequence[OutcomeNote], outcomes: Sequence[Outcome], stamp: Stamp) -> None:
    new: list[Columns] = []
    changed: list[Columns] = []
    for entry, outcome in zip(entries, outcomes, strict=True):
        if outcome.kind is OutcomeKind.DUPLICATE:
            continue
        values = entry_values(entry.known, outcome, stamp.today)
        if values is None:
            continue
        if entry.known is not None:
            changed.append({"harvest_document_id": entry.known.entry_id, **values})
        elif not _update_by_key(session, entry, values):
            new.append({**ledger_key(entry.site_run, entry.outcome.document), **values})
    write_ledger(session, new, changed)
    for entry, outcome in zip(entries, outcomes, strict=True):
        if outcome.unconfirmed:
            note_unsent(session, entry.site_run, outcome)


def _update_by_key(session: Session, entry: OutcomeNote, values: Values) -> bool:
    """Update a row that was not there when the outcome was decided: the row of a pending upload."""
    if entry.storing is not None or (entry.outcome.sha256 is None and not entry.outcome.unconfirmed):
        return False
    return update_by_key(session, entry.site_run, entry.outcome.document, values)


def _not_stored(reason: str) -> Finding:
    return Finding(
        "target.not-stored",
        f"The repository's database refused the document: {reason}",
        "The administrator should look into this; the document itself passed every check.",
    )
