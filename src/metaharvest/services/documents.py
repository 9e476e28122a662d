"""The actions on documents in targets: copies into another target, transfers to another site, withdrawals.

A withdrawal is committed first: the targets delete the document, no harvest brings it back, and its content may be
erased. If a target refuses, repeat the same command.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from metaharvest.accounts.audit import Decision
from metaharvest.catalogue.current import content_of, held_between, held_documents
from metaharvest.database.batches import batches
from metaharvest.database.dialects import scrub
from metaharvest.database.engine import database_errors, run_lock, writers
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
from metaharvest.database.statements import place_of
from metaharvest.errors import MetaharvestError, TargetError
from metaharvest.harvest.context import Progress
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.journal.erasure import ErasedText, erase_document
from metaharvest.ledger.deletions import only_records
from metaharvest.ledger.rows import note_put_back, note_withdrawal, sites_with_deletion
from metaharvest.model import ListedDocument, Site
from metaharvest.model.values import frozen
from metaharvest.queries.sites import site_names
from metaharvest.replication.replicate import copy_documents
from metaharvest.replication.result import PROBLEMS, CopyOutcome, CopyRequest, CopyResult, NotCopied, ReportNotCopied
from metaharvest.services import pipeline
from metaharvest.services.harvester import Harvester
from metaharvest.sites.registry import find_site, forget_lists, read_site, read_sites, read_sites_of
from metaharvest.sources.harvest_list.source import scope_and_identifier
from metaharvest.sources.oai_pmh.records import RecordNames
from metaharvest.targets import owners
from metaharvest.targets.base import Deletion, Target
from metaharvest.targets.embedded import EmbeddedTarget
from metaharvest.targets.folder.session import FolderSession
from metaharvest.targets.lookup import Targets
from metaharvest.targets.naming import among, find_document, find_documents, possible_ids
from metaharvest.targets.owners import give, to_be_taken
from metaharvest.targets.transfers import Receiving, Taken
from metaharvest.text import clean, one_line

__all__ = ["PROBLEMS", "CopyOutcome", "CopyRequest", "CopyResult", "NotCopied", "ReportNotCopied"]

_AT_ONCE = 1000
_IN_A_TRANSACTION = 10_000
"""Documents of a transfer: on PostgreSQL, they take less than a second."""
_LEDGER = HarvestDocument
_LONGEST_NAME = 255


def copy(
    harvester: Harvester, request: CopyRequest, report: ReportNotCopied, progress: Progress, stop: StopSignal
) -> CopyResult:
    """Copy documents from one target into another, under the run lock; see `copy_documents` for the errors.

    `report` gets each revision that the target does not hold as the source has it.
    """
    done = copy_documents(harvester.engine, harvester.targets, request, harvester.now, progress, report, stop)
    if not request.is_dry_run:
        after = {"from": done.source, "site": request.site_name, "copied": done.ended.get(CopyOutcome.COPIED, 0)}
        harvester.write(harvester.audit, Decision("documents.copy", "target", request.target, after=after))
    return done


@frozen
class TransferRequest:
    """Documents by docid or document id, and whole scopes, for a site; `by` is the person, for the log.

    With `rehearse` nothing is changed.
    """

    names: tuple[str, ...]
    site: str
    by: str = ""
    scopes: tuple[str, ...] = ()
    rehearse: bool = False


@frozen
class Transfer:
    """A document in a transfer, with the named revision, if there is one.

    `former` is the name of its former registered site. `done` is false if that is the same site.
    """

    document_id: str
    revision: int | None
    former: str | None
    done: bool


def transfer(harvester: Harvester, wanted: TransferRequest) -> list[Transfer]:
    """Transfer all of these documents to that site, or none if one is unknown. A document of that site stays as it is.

    Each 10,000 documents are a transaction: changes of the catalogue must be committed soon, see `COMMIT_LAG`. If the
    database is lost in between, the same request transfers the rest.

    Their site's target holds them, or they belong to a site in any other target.

    Raises MetaharvestError with the unknown documents, ScheduleError if there is no such site, TargetError,
    DatabaseUnavailable.
    """
    target = harvester.targets.of(wanted.site)
    found = find_documents(target, wanted.names, _owned(harvester, wanted.names)) if wanted.names else {}
    for scope in wanted.scopes:
        found |= {each: None for each in _documents_of(harvester, target, scope) if each not in found}
    moved: list[Taken] = []
    site = harvester.read(find_site, wanted.site)
    for some in batches(list(found), _IN_A_TRANSACTION):
        with harvester.reading() if wanted.rehearse else harvester.writing() as session:
            site = find_site(session, wanted.site)
            taken_now = to_be_taken(session, some, site.site_id, site_names(session))
            if not wanted.rehearse:
                receiving = Receiving(site.site_id, site.name, clean(wanted.by), harvester.today(), harvester.now())
                give(session, target, taken_now, receiving)
                after = {"site": site.name}
                for each in taken_now:
                    about = "document", each.document_id, site.site_id
                    decision = Decision("documents.transfer", *about, before={"site": each.site}, after=after)
                    harvester.audit(session, decision)
        moved += taken_now
    taken = {each.document_id: each for each in moved}
    return [
        Transfer(each, revision, taken[each].site if each in taken else site.name, each in taken)
        for each, revision in found.items()
    ]


def _owned(harvester: Harvester, names: Sequence[str]) -> Collection[str]:
    """The documents that `names` may mean, and that the embedded target has, or a site owns in another target."""
    owned, asked = set[str](), possible_ids(names)
    with harvester.reading() as session:
        for batch in batches(asked, _AT_ONCE):
            owned |= {*owners.owners_of(session, batch), *held_documents(session, batch)}
    return owned


def _documents_of(harvester: Harvester, target: Target, scope: str) -> list[str]:
    """The documents of a scope for a transfer, by document id. Raises MetaharvestError, TargetError."""
    within = (f"{scope}.", f"{scope}/")
    with harvester.reading() as session:
        held = {*owners.owned_between(session, *within), *held_between(session, *within)}
    if not isinstance(target, EmbeddedTarget):
        try:
            held |= {each.document_id for each in target.held()}
        except TargetError as error:  # Metacat, for example, has no listing
            if error.findings[0].rule != "target.unsupported":
                raise
    found = [document_id for document_id in held if scope_and_identifier(document_id)[0] == scope]
    if not found:
        raise MetaharvestError(f"The target has no document of the scope '{one_line(scope)}'. Nothing was changed.")
    return sorted(found, key=place_of)


@frozen
class WithdrawalRequest:
    """The document to withdraw, the reason, and the person. `erase`: also its content.

    `target`: the name of the only target; None: all.
    """

    name: str
    reason: str = ""
    by: str = ""
    erase: bool = False
    target: str | None = None


@frozen
class AtTarget:
    """The result at a target. `deleted`: it had the document. `erased`: the number of revisions or files.

    `stays`: a sentence about the rest.
    """

    target: str
    deleted: bool = False
    erased: int = 0
    stays: str = ""


@frozen
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


def withdraw(harvester: Harvester, request: WithdrawalRequest) -> Withdrawn:
    """Withdraw a document. Raises MetaharvestError if it is unknown, LockHeld, TargetError, DatabaseUnavailable."""
    engine, today = harvester.engine, harvester.today()
    with run_lock(engine), database_errors(engine):
        found = _found(harvester, request)
        with writers(engine).begin() as session:
            _note(session, harvester, found, request)
            after = {"erased": request.erase, "target": request.target or "all"}
            harvester.audit(session, _about(found, "documents.withdraw", after, request.reason))
        at_targets = tuple([_delete(harvester, target, found, request.erase) for target in found.targets])
        erased, stays = None, ""
        if request.erase:
            sentence = f"{found.document_id} was withdrawn on {today}, and what was said of it was erased."
            with writers(engine).begin() as session:
                erased = erase_document(session, found.document_id, sentence)
            of_pipeline = ""
            if any(isinstance(each, EmbeddedTarget) for each in found.targets):
                of_pipeline = pipeline.forget(harvester, found.document_id)
            stays = " ".join(filter(None, (of_pipeline, scrub(engine))))
        return Withdrawn(found.document_id, at_targets, tuple(found.sites.values()), erased, stays)


def take_back(harvester: Harvester, request: WithdrawalRequest) -> Withdrawn:
    """Take a withdrawal back: the next harvest of a site that lists the document may bring it in again.

    A document whose record the source repository deleted stays deleted.
    """
    engine, today = harvester.engine, harvester.today()
    with run_lock(engine), database_errors(engine):
        with harvester.reading() as session:
            known = [each for each in possible_ids([request.name]) if session.get(DocumentWithdrawal, each)]
        if not known:
            raise MetaharvestError(f"No document '{one_line(request.name)}' is withdrawn: nothing was changed.")
        found = _found(harvester, WithdrawalRequest(known[0], target=request.target))
        with harvester.reading() as session:
            deleted = sites_with_deletion(session, found.document_id, list(found.sites))
            is_kept = any(map(only_records, read_sites_of(session, deleted).values()))
        if deleted and deleted == found.sites.keys() and not is_kept:
            stays = "the source repository deleted the record, so the document stays deleted"
            at_targets = tuple([AtTarget(target.describe(), stays=stays) for target in found.targets])
        else:
            at_targets = tuple([_restore(harvester, target, found) for target in found.targets])
        with writers(engine).begin() as session:
            session.execute(delete(DocumentWithdrawal).where(DocumentWithdrawal.document_id == found.document_id))
            note_put_back(session, found.document_id, list(found.sites), today)
            if found.sites:
                forget_lists(session, list(found.sites))
            by = f" by {request.by}" if request.by else ""
            _log(session, found, f"The withdrawal of {found.document_id} was taken back{by}.", harvester)
            harvester.audit(session, _about(found, "documents.readmit", {"target": request.target or "all"}))
        listing = tuple(name for site_id, name in found.sites.items() if site_id not in deleted)
        return Withdrawn(found.document_id, at_targets, listing)


def _about(found: _Found, action: str, after: dict[str, object], reason: str = "") -> Decision:
    return Decision(action, "document", found.document_id, found.site_id, after=after, reason=reason)


def _found(harvester: Harvester, request: WithdrawalRequest) -> _Found:
    """The document in the named target; or in the default one, the targets of its sites, and the embedded one."""
    asked, targets = possible_ids([request.name]), harvester.targets
    with harvester.reading() as session:
        rows = session.execute(
            select(_LEDGER.document_id, _LEDGER.site_schedule_id, HarvestSiteSchedule.name)
            .join(HarvestSiteSchedule, HarvestSiteSchedule.site_schedule_id == _LEDGER.site_schedule_id)
            .where(_LEDGER.document_id.in_(asked))
        ).all()
        rows = [row for row in rows if row[0] in asked]
        before = [each for each in asked if session.get(DocumentWithdrawal, each)]
    candidates = [targets.named(request.target)] if request.target else _targets_of([row[2] for row in rows], targets)
    elsewhere = {row[0] for row in rows} | set(before)
    document_id = _named(request.name, candidates, elsewhere)
    if not request.target:
        candidates = _without_unused(candidates, document_id, targets)
    owner = harvester.read(owners.owners_of, [document_id]).get(document_id)
    sites = {row[1]: row[2] for row in rows if row[0] == document_id}
    return _Found(document_id, candidates, _site_at(candidates, document_id) or owner, sites)


def _named(name: str, candidates: Sequence[Target], elsewhere: Collection[str]) -> str:
    """The document that `name` means. While a target is away, the ids `elsewhere` are enough."""
    problem = MetaharvestError(f"There is no document '{one_line(name)}'.")
    for target in candidates:
        try:
            return find_document(target, name, elsewhere)[0]
        except MetaharvestError as error:
            problem = error
    if (known := among(elsewhere, name)) is not None:
        return known[0]
    raise problem


def _site_at(candidates: Sequence[Target], document_id: str) -> int | None:
    """The site of the document at the first of these targets that has it, and is not away."""
    for target in candidates:
        with suppress(TargetError):
            if revisions := target.revisions(document_id):
                return revisions[0].site_id
    return None


def _targets_of(site_names: Sequence[str], targets: Targets) -> list[Target]:
    """The default target, the targets of these sites, and the embedded one: it is published in any case."""
    found = list({id(each): each for each in (targets.default, *(targets.of(name) for name in site_names))}.values())
    return found if any(isinstance(each, EmbeddedTarget) for each in found) else [*found, targets.named("embedded")]


def _without_unused(candidates: Sequence[Target], document_id: str, targets: Targets) -> list[Target]:
    """These targets without the embedded one, if no site's documents go there and it never had the document."""
    unused = targets.named("embedded")
    return [each for each in candidates if each is not unused or each is targets.default or each.revisions(document_id)]


def _note(session: Session, harvester: Harvester, found: _Found, request: WithdrawalRequest) -> None:
    """Store the withdrawal. The ledgers of the document's sites no longer count it as held, and it is not retried."""
    row = session.get(DocumentWithdrawal, found.document_id)
    if row is None:
        site = found.sites.get(found.site_id or 0)
        today = harvester.today()
        row = DocumentWithdrawal(document_id=found.document_id, site=site, withdrawn_on=today, erased=False)
        session.add(row)
        row.withdrawn_at, row.withdrawn_by = harvester.now(), clean(request.by)[:_LONGEST_NAME]
        row.reason = clean(request.reason)
    elif request.reason:
        row.reason = clean(request.reason)
    row.erased = row.erased or request.erase
    note_withdrawal(session, found.document_id, list(found.sites), erase=request.erase)
    if found.sites:
        forget_lists(session, list(found.sites))
    by = f" by {row.withdrawn_by}" if row.withdrawn_by else ""
    erased = ", and its content erased" if request.erase else ""
    _log(session, found, f"{found.document_id} was withdrawn{by}{erased}. The reason: {row.reason}", harvester)


def _log(session: Session, found: _Found, message: str, harvester: Harvester) -> None:
    """Write a row into the newest run's log, if there is one.

    It has a revision, as a row without one means a transfer.
    """
    newest = select(HarvestRun.run_id).where(IS_HARVEST).order_by(HarvestRun.run_id.desc()).limit(1)
    run_id = session.scalar(newest)
    if run_id is None:
        return
    row = {"document_id": found.document_id, "revision": 0, "site_schedule_id": found.site_id, "message": message}
    same = {"run_id": run_id, "status": 0, "harvest_operation_code": "DocDeleted"}
    table = Base.metadata.tables[HarvestLog.__tablename__]
    insert_rows(
        session.connection(), table, [row], {**same, "harvest_date": harvester.today(), "logged_at": harvester.now()}
    )


def _site(harvester: Harvester, found: _Found) -> Site | None:
    """The site whose login the target gets; None if it is no longer registered, or its row is broken."""
    site = harvester.read(read_site, found.site_id) if found.site_id else None
    return site if isinstance(site, Site) else None


def _delete(harvester: Harvester, target: Target, found: _Found, erase: bool) -> AtTarget:
    held = target.revisions(found.document_id)
    with target.session(_site(harvester, found)) as opened:
        if opened.writes_in_journal:
            is_there = bool(opened.holdings([found.document_id]))
            erased = 0
            with harvester.writing() as session:
                document = ListedDocument(found.document_id, held[0].revision if held else 0, "", "")
                if is_there:
                    opened.delete(Deletion(document, found.site_id or 0, harvester.now()), session)
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


def _restore(harvester: Harvester, target: Target, found: _Found) -> AtTarget:
    stays = ""
    if isinstance(target, EmbeddedTarget):
        with harvester.writing() as session:
            target.restore(found.document_id, session)
    else:
        with target.session(_site(harvester, found)) as opened:
            if isinstance(opened, FolderSession):
                opened.restore(found.document_id)
            elif not opened.writes_in_journal:
                stays = "what it deleted stays deleted: it takes the document again with a higher revision"
    return AtTarget(target.describe(), stays=stays)


def record_ids(session: Session, identifier: str) -> list[str]:
    """The document ids that a record of this OAI identifier would have at each registered source repository."""
    sites = [site for site in read_sites(session) if isinstance(site, Site)]
    names = [RecordNames(site.list_url, site.options.oai) for site in sites if site.options.oai is not None]
    return list(dict.fromkeys(each.document_id(identifier) for each in names))


def stored_record(harvester: Harvester, document_id: str, revision: int, sites: Sequence[str]) -> bytes | None:
    """The bytes of this revision: from the embedded target, or from the targets of `sites`; None if they are nowhere.

    Raises TargetError, DatabaseUnavailable.
    """
    content = harvester.read(content_of, document_id, revision)
    if content is not None:
        return content
    found = (harvester.targets.of(name).content(document_id, revision) for name in sites)
    return next((each for each in found if each is not None), None)
