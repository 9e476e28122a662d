"""Transfers documents of a target to another site: many at once, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.targets import owners, transfers
from metaharvest.targets.base import Target
from metaharvest.targets.embedded import EmbeddedTarget
from metaharvest.targets.transfers import Receiving, Taken

_AT_ONCE = 1000


def to_be_taken(
    session: Session, target: Target, document_ids: Sequence[str], site_id: int, names: Mapping[int, str]
) -> list[Taken]:
    """The documents among these, held by the target, that do not belong to that site; each with its owner.

    `names` are the names of the registered sites: a document of any other site is free.
    """
    found: list[Taken] = []
    for some in batches(document_ids, _AT_ONCE):
        former = target.owners(some, session) if isinstance(target, EmbeddedTarget) else owners.owners_of(session, some)
        found += [_taken(document_id, former.get(document_id), names) for document_id in some]
    return [each for each in found if each.site_id != site_id]


def give(session: Session, target: Target, taken: Sequence[Taken], to: Receiving) -> None:
    """Transfer these documents of the target to that site, and record it."""
    for some in batches(taken, _AT_ONCE):
        document_ids = [each.document_id for each in some]
        # This locks the run's row: first that, then the catalogue's counter, as in the journal. The opposite order is a
        # deadlock.
        transfers.note(session, some, to)
        if isinstance(target, EmbeddedTarget):
            target.transfer(document_ids, to.site_id, session)
        else:
            owners.set_owner(session, document_ids, to.site_id)


def _taken(document_id: str, site_id: int | None, names: Mapping[int, str]) -> Taken:
    if site_id is None or site_id not in names:
        return Taken(document_id, None, None)
    return Taken(document_id, site_id, names[site_id])
