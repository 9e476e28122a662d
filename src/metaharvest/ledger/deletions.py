"""Deletions that source repositories report, and that wait until the target deletes the documents."""

from __future__ import annotations

from operator import attrgetter

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import Base, HarvestDocument, HarvestLog, HarvestSiteSchedule, SiteCheckpoint
from metaharvest.ledger.entries import DELETION_WAITS, LedgerEntry
from metaharvest.ledger.records import BEFORE_SPLIT
from metaharvest.ledger.rows import ENTRY
from metaharvest.ledger.sweeps import keep_columns
from metaharvest.model import Deletions, DocumentState, OutcomeKind, Site
from metaharvest.sites.registry import read_sites_of
from metaharvest.sites.rows import BrokenSite

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_CHECKPOINTS = Base.metadata.tables[SiteCheckpoint.__tablename__]
_WAITS = _LEDGER.c.state.in_(DELETION_WAITS)


DEFAULT_MAX_LOSS = 10
"""The percentage of a site's documents that one harvest may delete without a confirmation."""

ALWAYS_DELETED = 20
"""This number of deletions never needs a confirmation, except at a site that may lose none."""

_IS_TO_BE_CONFIRMED = (_LEDGER.c.state == DocumentState.TO_CONFIRM.value,)


def most_unconfirmed(max_loss: int | None, copies: int) -> int:
    """The number of its documents that a site may lose at once without a confirmation.

    The target has this number of `copies` of its documents. `max_loss` 0: none.
    """
    if max_loss == 0:
        return 0
    return max(ALWAYS_DELETED, copies * (DEFAULT_MAX_LOSS if max_loss is None else max_loss) // 100)


def waiting_deletions(session: Session, site: Site, site_run_id: int) -> list[LedgerEntry]:
    """The deletions that wait at this site.

    Deletions that were refused in this site run, before it was interrupted, wait for the next one. A deletion that also
    waits at the site that this one was split from is carried out there.
    """
    refused = select(HarvestLog.document_id).where(
        HarvestLog.site_run_id == site_run_id,
        HarvestLog.document_id.is_not(None),
        HarvestLog.outcome == OutcomeKind.UPLOAD_ERROR.value,
    )
    here = (_LEDGER.c.site_schedule_id == site.site_id, _WAITS, _LEDGER.c.document_id.not_in(refused))
    query = select(*ENTRY).where(*here)
    first = site.options.split_from
    if first is not None and first != site.name:
        query = query.where(_LEDGER.c.document_id.not_in(_waiting_before_split(first)))
    # Sorted here: SQLite would read all records of the site in their order.
    return sorted((LedgerEntry(*row) for row in session.connection().execute(query)), key=attrgetter("document_id"))


def _waiting_before_split(first: str) -> Select[str]:
    """The documents whose deletions wait at the site that was split, since before that."""
    other = aliased(HarvestDocument)
    its_site = HarvestSiteSchedule.site_schedule_id == other.site_schedule_id
    is_so = (HarvestSiteSchedule.name == first, other.listing == BEFORE_SPLIT, other.state.in_(DELETION_WAITS))
    return select(other.document_id).join(HarvestSiteSchedule, its_site).where(*is_so)


def confirm_deletions(session: Session, site_id: int) -> int:
    """Let the next harvest delete the documents that were put off. Returns their number."""
    number = deletions_to_confirm(session, site_id)
    if number:
        keep_columns(session, site_id, {"confirmed": number})
    return number


def deletions_to_confirm(session: Session, site_id: int) -> int:
    """The number of deletions that wait because they are too many, confirmed or not.

    Deletions that wait for another reason, such as the list of another site or the target, do not count.
    """
    here = _LEDGER.c.site_schedule_id == site_id
    return session.scalar(select(func.count()).where(here, *_IS_TO_BE_CONFIRMED)) or 0


def deletions_unconfirmed(session: Session) -> dict[str, int]:
    """The number of deletions that a person can confirm, by the name of the site, in the order of names.

    Sites that are switched off, or that only record deletions, are left out.
    """
    rows = (
        select(_LEDGER.c.site_schedule_id, func.count(), func.coalesce(func.max(_CHECKPOINTS.c.confirmed), 0))
        .outerjoin(_CHECKPOINTS, _CHECKPOINTS.c.site_schedule_id == _LEDGER.c.site_schedule_id)
        .where(*_IS_TO_BE_CONFIRMED)
        .group_by(_LEDGER.c.site_schedule_id)
    )
    numbers = {row[0]: row[1] - row[2] for row in session.execute(rows) if row[1] > row[2]}
    sites = sorted(read_sites_of(session, numbers).items(), key=lambda each: each[1].name.casefold())
    return {site.name: numbers[site_id] for site_id, site in sites if site.enabled and not only_records(site)}


def only_records(site: Site | BrokenSite) -> bool:
    """True if the deletions of this site are only recorded: nobody confirms them."""
    return isinstance(site, Site) and site.options.deletions is Deletions.KEEP
