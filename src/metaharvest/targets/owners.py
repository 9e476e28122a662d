"""The owner of each document in a target outside of the harvester's own database.

The owner is the site that first inserted or updated it there (or that it was transferred to). Another site that lists
it is refused, until the document is deleted there. A pending upload reserves the document for the site that began it,
until its result is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date
from typing import Literal

from sqlalchemy import bindparam, delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from metaharvest.catalogue import current, writing
from metaharvest.database.batches import batches
from metaharvest.database.engine import Sessions
from metaharvest.database.models import Base, DocumentOwner, HarvestDocument, HarvestSiteSchedule
from metaharvest.database.rows import insert_rows
from metaharvest.model import Action, Finding, Holding, ListedDocument, Site
from metaharvest.targets import transfers
from metaharvest.targets.base import (
    OF_ANOTHER_SITE,
    RECORD_OF_ANOTHER_SITE,
    HeldRevision,
    RemoteTarget,
    Target,
    TargetSession,
    Upload,
)
from metaharvest.targets.embedded import EmbeddedTarget
from metaharvest.targets.transfers import Receiving, Taken

_OWNERS = Base.metadata.tables[DocumentOwner.__tablename__]
_SITES = Base.metadata.tables[HarvestSiteSchedule.__tablename__]
_OWNED = select(_OWNERS.c.document_id, _OWNERS.c.site_schedule_id).where(
    _OWNERS.c.document_id.in_(bindparam("documents", expanding=True))
)


@contextmanager
def session_of(target: Target, site: Site | None, sessions: Sessions) -> Iterator[TargetSession]:
    """The target's session for a site; its holdings name the site of each document. Raises TargetError."""
    with target.session(site) as session:
        yield session if session.writes_in_journal else _OwnedSession(session, sessions)


def owners_of(session: Session, document_ids: Sequence[str]) -> Mapping[str, int]:
    """The site that each of these documents belongs to, registered or not."""
    return {str(row[0]): int(row[1]) for row in session.execute(_OWNED, {"documents": list(document_ids)})}


def owned_by_others(session: Session, document_ids: Sequence[str], site_ids: Collection[int]) -> set[str]:
    """The documents among these that belong to a registered site other than these sites."""
    theirs = _OWNED.join(_SITES, _SITES.c.site_schedule_id == _OWNERS.c.site_schedule_id)
    theirs = theirs.where(_OWNERS.c.site_schedule_id.not_in(site_ids))
    return {str(row[0]) for row in session.execute(theirs, {"documents": list(document_ids)})}


def owned_between(session: Session, first: str, end: str) -> list[str]:
    """The documents that belong to a site, with ids from `first` up to but without `end`."""
    within = (_OWNERS.c.document_id >= first, _OWNERS.c.document_id < end)
    return list(session.scalars(select(_OWNERS.c.document_id).where(*within).order_by(_OWNERS.c.document_id)))


def with_owners(held: Iterable[HeldRevision], sessions: Sessions) -> Iterator[HeldRevision]:
    """The revisions, each with the site of its document, if the target itself does not name it."""
    for some in batches(held):
        with sessions() as session:
            known = owners_of(session, list({each.document_id for each in some if each.site_id is None}))
        for each in some:
            yield replace(each, site_id=known[each.document_id]) if each.document_id in known else each


def set_owner(session: Session, document_ids: Sequence[str], site_id: int) -> None:
    """Set the owner of these documents."""
    before = owners_of(session, document_ids)
    changed = [document_id for document_id in dict.fromkeys(document_ids) if before.get(document_id) != site_id]
    if replaced := [document_id for document_id in changed if document_id in before]:
        session.execute(delete(DocumentOwner).where(DocumentOwner.document_id.in_(replaced)))
    rows = [{"document_id": document_id, "site_schedule_id": site_id} for document_id in changed]
    if rows:
        insert_rows(session.connection(), _OWNERS, rows)


def disown(session: Session, document_ids: Sequence[str], site_ids: Collection[int]) -> None:
    """Remove these sites as owners of these deleted documents: another site may publish them."""
    belongs = (DocumentOwner.document_id.in_(document_ids), DocumentOwner.site_schedule_id.in_(site_ids))
    session.execute(delete(DocumentOwner).where(*belongs))


def other_sender(session: Session, document_id: str, site_ids: Collection[int]) -> str | None:
    """The name of another registered site that has this document, or is sending it; None if it is free."""
    owner = (
        select(_SITES.c.name)
        .join(_OWNERS, _OWNERS.c.site_schedule_id == _SITES.c.site_schedule_id)
        .where(_OWNERS.c.document_id == document_id, _OWNERS.c.site_schedule_id.not_in(site_ids))
    )
    if (name := session.scalar(owner)) is not None:
        return str(name)
    # Site by site, as the ledger is indexed: a query by document alone would read all of it.
    others = select(_SITES.c.site_schedule_id).where(_SITES.c.site_schedule_id.not_in(site_ids))
    sender = (
        select(_SITES.c.name)
        .join(HarvestDocument, HarvestDocument.site_schedule_id == _SITES.c.site_schedule_id)
        .where(
            HarvestDocument.site_schedule_id.in_(others),
            HarvestDocument.document_id == document_id,
            HarvestDocument.pending_sha256.is_not(None),
        )
    )
    return session.scalar(sender.limit(1))


def wait_for_senders(session: Session, document_id: str, site_id: int) -> None:
    """Let transactions that note the same new document as pending follow one another.

    Each inserts its owner, and deletes that row: the next one waits at the key until the transaction ends.
    """
    if not owners_of(session, [document_id]):
        with suppress(IntegrityError), session.begin_nested():
            session.execute(_OWNERS.insert().values(document_id=document_id, site_schedule_id=site_id))
            disown(session, [document_id], [site_id])


def to_be_taken(session: Session, document_ids: Sequence[str], site_id: int, names: Mapping[int, str]) -> list[Taken]:
    """The documents among these that another site owns, or no registered site. Each has its other owner.

    The embedded target and the targets outside of the database may have different owners. `names` are the names of the
    registered sites: a document of any other site is free.
    """
    found: list[Taken] = []
    for some in batches(document_ids):
        outside, embedded = owners_of(session, some), current.held_documents(session, some)
        for document_id in some:
            holding = embedded.get(document_id)
            registered = {outside.get(document_id, 0), (holding and holding.site_id) or 0} & names.keys()
            if others := sorted(registered - {site_id}):
                found.append(Taken(document_id, others[0], names[others[0]]))
            elif not registered:
                found.append(Taken(document_id, None, None))
    return found


def give(session: Session, target: Target, taken: Sequence[Taken], to: Receiving) -> None:
    """Transfer these documents to that site, whose target this is, and record it: in all targets that know them."""
    for some in batches(taken):
        document_ids = [each.document_id for each in some]
        # This locks the row of a run alone: first that, then the catalogue's counter, as in the journal. The opposite
        # order is a deadlock.
        transfers.note(session, some, to)
        writing.transfer(session, document_ids, to.site_id)
        outside = list(owners_of(session, document_ids)) if isinstance(target, EmbeddedTarget) else document_ids
        set_owner(session, outside, to.site_id)


def other_site_owns(
    document: ListedDocument, owner: str, taken: date | None = None, *, is_record: bool = False
) -> Finding:
    """The finding about a document that belongs to the site `owner`; `taken`: the day since when, if it was this one's.

    `is_record`: it is a record of a source repository, even if its origin is not known, as in the ledger.
    """
    message = f"{document.document_id} belongs to the site '{owner}'."
    if taken is not None:
        since = f"it has belonged to the site '{owner}' since {taken}"
        message = f"{document.document_id} was transferred from this site: {since}."
    remedy = OF_ANOTHER_SITE
    if is_record or document.origin is not None:
        remedy = RECORD_OF_ANOTHER_SITE
    elif taken is not None:
        remedy = f"Take it out of your list: '{owner}' publishes it now. If it is yours, ask the administrator for it."
    return Finding("target.other-site", message, remedy, line=document.line, docid=document.docid)


class _OwnedSession:
    """A session whose holdings name the site of each document."""

    writes_in_journal: Literal[False] = False

    def __init__(self, real: RemoteTarget, sessions: Sessions) -> None:
        self._real = real
        self._sessions = sessions

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        held = self._real.holdings(document_ids)
        with self._sessions() as session:
            owners = owners_of(session, list(held))
            taken = transfers.taken_from(session, list(held))
        return {
            document_id: replace(
                holding, site_id=owners.get(document_id, holding.site_id), taken_from=taken.get(document_id, ())
            )
            for document_id, holding in held.items()
        }

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        return self._real.used_up(document_ids)

    def upload(self, upload: Upload) -> Action:
        return self._real.upload(upload)

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        return self._real.holds(document_id, revision, sha256)

    def delete(self, document_id: str) -> bool:
        return self._real.delete(document_id)
