"""Withdraws a document: the targets delete it, no harvest brings it back, and its content may be erased.

The withdrawal is committed first. If a target refuses, the same command can be given again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from sqlalchemy import Engine, delete, select
from sqlalchemy.orm import Session

from metaharvest.database.engine import database_errors, readers, run_lock, writers
from metaharvest.database.models import (
    IS_HARVEST,
    Base,
    DocumentWithdrawal,
    HarvestDocument,
    HarvestLog,
    HarvestRun,
    HarvestSiteSchedule,
)
from metaharvest.database.rows import insert_rows
from metaharvest.database.scrubbing import scrub
from metaharvest.errors import MetaharvestError
from metaharvest.journal.erasure import ErasedText, erase_document
from metaharvest.ledger.rows import ask_again, note_withdrawal
from metaharvest.model import ListedDocument, Site
from metaharvest.sites.registry import forget_lists, read_site
from metaharvest.targets import owners
from metaharvest.targets.base import Deletion, Target
from metaharvest.targets.embedded import EmbeddedTarget
from metaharvest.targets.folder.session import FolderSession
from metaharvest.targets.lookup import Targets
from metaharvest.targets.naming import find_document, possible_ids
from metaharvest.text import clean, one_line

_LEDGER = HarvestDocument
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class WithdrawalRequest:
    """Which document is withdrawn, why, and by whom. `erase`: also its content.

    `target`: the name of the only target; None: all.
    """

    name: str
    reason: str = ""
    by: str = ""
    erase: bool = False
    target: str | None = None


@dataclass(frozen=True, slots=True)
class AtTarget:
    """What a target did. `deleted`: it had the document. `erased`: the number of revisions or files.

    `stays`: a sentence about the rest.
    """

    target: str
    deleted: bool = False
    erased: int = 0
    stays: str = ""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The result of a withdrawal: at each target, in the ledgers of sites, in log and reports."""

    document_id: str
    at_targets: tuple[AtTarget, ...]
    sites: tuple[str, ...]
    erased: ErasedText | None = None
    stays: str = ""


@dataclass(slots=True)
class _Found:
    """The document, its targets, the number of the site that has it, and the sites that list it."""

    document_id: str
    targets: list[Target]
    site_id: int | None
    sites: dict[int, str] = field(default_factory=dict)


def withdraw(engine: Engine, targets: Targets, request: WithdrawalRequest, today: date, now: datetime) -> Withdrawn:
    """Withdraw a document. Raises MetaharvestError if it is unknown, LockHeld, TargetError, DatabaseUnavailable."""
    with run_lock(engine), database_errors(engine):
        found = _found(engine, targets, request)
        with writers(engine).begin() as session:
            _note(session, found, request, today, now)
        at_targets = tuple([_delete(engine, target, found, request.erase, now) for target in found.targets])
        erased, stays = None, ""
        if request.erase:
            sentence = f"{found.document_id} was withdrawn on {today}, and what was said of it was erased."
            with writers(engine).begin() as session:
                erased = erase_document(session, found.document_id, sentence)
            stays = scrub(engine)
        return Withdrawn(found.document_id, at_targets, tuple(found.sites.values()), erased, stays)


def take_back(engine: Engine, targets: Targets, request: WithdrawalRequest, today: date, now: datetime) -> Withdrawn:
    """Take a withdrawal back: the next harvest of a site that lists the document may bring it in again."""
    with run_lock(engine), database_errors(engine):
        with readers(engine)() as session:
            known = [each for each in possible_ids([request.name]) if session.get(DocumentWithdrawal, each)]
        if not known:
            raise MetaharvestError(f"No document '{one_line(request.name)}' is withdrawn: nothing was changed.")
        found = _found(engine, targets, WithdrawalRequest(known[0], target=request.target))
        at_targets = tuple([_restore(engine, target, found) for target in found.targets])
        with writers(engine).begin() as session:
            session.execute(delete(DocumentWithdrawal).where(DocumentWithdrawal.document_id == found.document_id))
            ask_again(session, found.document_id, list(found.sites), today)
            if found.sites:
                forget_lists(session, list(found.sites))
            by = f" by {request.by}" if request.by else ""
            _log(session, found, f"The withdrawal of {found.document_id} was taken back{by}.", today, now)
        return Withdrawn(found.document_id, at_targets, tuple(found.sites.values()))


def _found(engine: Engine, targets: Targets, request: WithdrawalRequest) -> _Found:
    """The document in the named target, or in the default one and the targets of the sites that list it."""
    asked = possible_ids([request.name])
    with readers(engine)() as session:
        rows = session.execute(
            select(_LEDGER.document_id, _LEDGER.site_schedule_id, HarvestSiteSchedule.name)
            .join(HarvestSiteSchedule, HarvestSiteSchedule.site_schedule_id == _LEDGER.site_schedule_id)
            .where(_LEDGER.document_id.in_(asked))
        ).all()
        rows = [row for row in rows if row[0] in asked]
        before = [each for each in asked if session.get(DocumentWithdrawal, each)]
    candidates = [targets.named(request.target)] if request.target else _targets_of([row[2] for row in rows], targets)
    elsewhere = {row[0] for row in rows} | set(before)
    document_id, problem = "", MetaharvestError(f"There is no document '{one_line(request.name)}'.")
    for target in candidates:
        try:
            document_id = document_id or find_document(target, request.name, elsewhere)[0]
        except MetaharvestError as error:
            problem = error
    if not document_id:
        raise problem
    with readers(engine)() as session:
        owner = owners.owners_of(session, [document_id]).get(document_id)
    held = next((each.site_id for target in candidates for each in target.revisions(document_id)), None)
    return _Found(document_id, candidates, held or owner, {row[1]: row[2] for row in rows if row[0] == document_id})


def _targets_of(site_names: Sequence[str], targets: Targets) -> list[Target]:
    found: list[Target] = []
    for target in (targets.default, *(targets.of(name) for name in site_names)):
        if not any(target is each for each in found):
            found.append(target)
    return found


def _note(session: Session, found: _Found, request: WithdrawalRequest, today: date, now: datetime) -> None:
    """Store the withdrawal. The ledgers of the document's sites no longer count it as held, and it is not retried."""
    row = session.get(DocumentWithdrawal, found.document_id)
    if row is None:
        site = found.sites.get(found.site_id or 0)
        row = DocumentWithdrawal(document_id=found.document_id, site=site, withdrawn_on=today, erased=False)
        session.add(row)
        row.withdrawn_at, row.withdrawn_by = now, clean(request.by)[:_LONGEST_NAME]
        row.reason = clean(request.reason)
    elif request.reason:
        row.reason = clean(request.reason)
    row.erased = row.erased or request.erase
    note_withdrawal(session, found.document_id, list(found.sites), erase=request.erase)
    if found.sites:
        forget_lists(session, list(found.sites))
    by = f" by {row.withdrawn_by}" if row.withdrawn_by else ""
    erased = ", and its content erased" if request.erase else ""
    _log(session, found, f"{found.document_id} was withdrawn{by}{erased}. The reason: {row.reason}", today, now)


def _log(session: Session, found: _Found, message: str, today: date, now: datetime) -> None:
    """Write a row into the newest run's log, if there is one.

    It has a revision, as a row without one means a transfer.
    """
    newest = select(HarvestRun.run_id).where(IS_HARVEST).order_by(HarvestRun.run_id.desc()).limit(1)
    run_id = session.scalar(newest.with_for_update())
    if run_id is None:
        return
    row = {"document_id": found.document_id, "revision": 0, "site_schedule_id": found.site_id, "message": message}
    same = {"run_id": run_id, "status": 0, "harvest_operation_code": "DocDeleted"}
    table = Base.metadata.tables[HarvestLog.__tablename__]
    insert_rows(session.connection(), table, [row], {**same, "harvest_date": today, "logged_at": now})


def _site(engine: Engine, found: _Found) -> Site | None:
    """The site whose login the target gets; None if it is no longer registered, or its row is broken."""
    with readers(engine)() as session:
        site = read_site(session, found.site_id) if found.site_id else None
    return site if isinstance(site, Site) else None


def _delete(engine: Engine, target: Target, found: _Found, erase: bool, now: datetime) -> AtTarget:
    held = target.revisions(found.document_id)
    with target.session(_site(engine, found)) as opened:
        if opened.writes_in_journal:
            is_there = bool(opened.holdings([found.document_id]))
            erased = 0
            with writers(engine).begin() as session:
                document = ListedDocument(found.document_id, held[0].revision if held else 0, "", "")
                if is_there:
                    opened.delete(Deletion(document, found.site_id or 0, now), session)
                if erase and isinstance(target, EmbeddedTarget):
                    erased = target.erase(found.document_id, session)
            return AtTarget(target.describe(), is_there, erased)
        is_there = opened.delete(found.document_id)
        if not erase:
            return AtTarget(target.describe(), is_there)
        if isinstance(opened, FolderSession):
            return AtTarget(target.describe(), is_there, opened.erase(found.document_id))
        stays = "it keeps the bytes of what it deletes: ask its operator to remove them" if held or is_there else ""
        return AtTarget(target.describe(), is_there, 0, stays)


def _restore(engine: Engine, target: Target, found: _Found) -> AtTarget:
    if isinstance(target, EmbeddedTarget):
        with writers(engine).begin() as session:
            target.restore(found.document_id, session)
        return AtTarget(target.describe())
    with target.session(_site(engine, found)) as opened:
        if isinstance(opened, FolderSession):
            opened.restore(found.document_id)
            return AtTarget(target.describe())
        if opened.writes_in_journal:
            return AtTarget(target.describe())
    stays = "what it deleted stays deleted: it takes the document again with a higher revision"
    return AtTarget(target.describe(), stays=stays)
