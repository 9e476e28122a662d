"""A site's last harvests in order: the status of each, the number of failed documents, the duration."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import IS_REAL, HarvestRun, HarvestSiteRun
from metaharvest.model import ERROR_OUTCOMES, OutcomeKind, SiteRunKind, SiteRunStatus
from metaharvest.queries.records import Record, columns

HARVESTS = 5
"""The number that is shown if there is little room."""

READ_A_LIST = (SiteRunStatus.SUCCEEDED.value, SiteRunStatus.WITH_ERRORS.value, SiteRunStatus.INCOMPLETE.value)

_FAILING = tuple(kind.column for kind in OutcomeKind if kind in ERROR_OUTCOMES or kind is OutcomeKind.DEFERRED)
_SHOWN = "site_run_id run_id rehearsal status listed inserted updated unchanged warnings"
_HARVEST = f"{_SHOWN} started_at ended_at {' '.join(_FAILING)}"

_QUERY = select(*columns(HarvestSiteRun, _HARVEST), HarvestRun.harvest_date).join(
    HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id
)


def last_real_harvest(session: Session, site_id: int) -> Record | None:
    """The last harvest of a site that was no rehearsal."""
    query = _QUERY.where(
        HarvestSiteRun.site_schedule_id == site_id, HarvestSiteRun.kind != SiteRunKind.RETRY.value, IS_REAL
    )
    row = session.execute(query.order_by(HarvestSiteRun.site_run_id.desc()).limit(1)).mappings().first()
    return None if row is None else _harvest(dict(row))


def harvests(session: Session, site_id: int, number: int = HARVESTS, upto: int | None = None) -> list[Record]:
    """The last harvests of a site, the oldest first, up to the site run `upto`; tries of single documents are none.

    Rehearsals are among them, and marked.
    """
    query = (
        _QUERY.where(HarvestSiteRun.site_schedule_id == site_id, HarvestSiteRun.kind != SiteRunKind.RETRY.value)
        .order_by(HarvestSiteRun.site_run_id.desc())
        .limit(number)
    )
    if upto is not None:
        query = query.where(HarvestSiteRun.site_run_id <= upto)
    return [_harvest(dict(row)) for row in session.execute(query).mappings()][::-1]


def harvest(session: Session, site_run_id: int) -> Record:
    """One site run that is there, as one of `harvests`."""
    query = _QUERY.where(HarvestSiteRun.site_run_id == site_run_id)
    return _harvest(dict(session.execute(query).mappings().one()))


def failing(site_run: Record) -> int:
    """The number of documents of a site run that were not accepted, or were put off."""
    return sum(site_run[column] for column in _FAILING)


def seconds_between(began: datetime, ended: datetime | None) -> float | None:
    """The duration; None if it has not ended."""
    return None if ended is None else round((ended - began).total_seconds(), 3)


def in_words(trend: Iterable[Record]) -> str:
    """The number of failed documents, harvest by harvest: `12 12 3`; `-` for a harvest that listed none.

    The number of a rehearsal is in brackets.
    """

    def number(each: Record) -> str:
        words = str(each["failing"]) if each["listed"] else "-"
        return f"({words})" if each["rehearsal"] else words

    return " ".join(map(number, trend))


def status_in_words(harvest: Record) -> str:
    """The status of a harvest, with a word about a rehearsal."""
    return f"{harvest['status']}, rehearsal" if harvest["rehearsal"] else str(harvest["status"])


def _harvest(row: Record) -> Record:
    """In the form for people: `listed` is None if no list was read."""
    read = row["listed"] or row["status"] in READ_A_LIST
    return {
        **{name: row[name] for name in _SHOWN.split()},
        "listed": row["listed"] if read else None,
        "harvest_date": row["harvest_date"],
        "failing": failing(row),
        "took_seconds": seconds_between(row["started_at"], row["ended_at"]),
    }
