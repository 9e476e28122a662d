"""The log of an interrupted run: the run that resumes it does no document twice."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestLog
from metaharvest.ledger.entries import Key
from metaharvest.model import OutcomeKind, SiteRun

LoggedOutcome = tuple[OutcomeKind, int | None]
"""An outcome as it was logged, with the revision that the target had then."""


def logged_outcomes(
    session: Session, site_run: SiteRun, after: str | None, upto: str | None
) -> dict[Key, list[LoggedOutcome]]:
    """The outcomes logged for this site run, of document ids above `after` and up to `upto`; None: no bound."""
    statement = select(
        HarvestLog.document_id, HarvestLog.revision, HarvestLog.outcome, HarvestLog.target_revision
    ).where(HarvestLog.site_run_id == site_run.site_run_id, HarvestLog.outcome.is_not(None))
    if after is not None:
        statement = statement.where(HarvestLog.document_id > after)
    if upto is not None:
        statement = statement.where(HarvestLog.document_id <= upto)
    logged: dict[Key, list[LoggedOutcome]] = {}
    for document_id, revision, outcome, target_revision in session.execute(statement):
        key = str(document_id), int(revision or 0)
        logged.setdefault(key, []).append((OutcomeKind(str(outcome)), target_revision))
    return logged


def number_logged(session: Session, site_run: SiteRun) -> int:
    """The number of outcomes that are logged in this site run."""
    query = select(func.count()).where(HarvestLog.site_run_id == site_run.site_run_id, HarvestLog.outcome.is_not(None))
    return session.scalar(query) or 0


def logged_documents(session: Session, site_run: SiteRun, document_ids: Sequence[str]) -> frozenset[str]:
    """The ids among these documents whose outcomes are logged in this site run."""
    query = select(HarvestLog.document_id).where(
        HarvestLog.site_run_id == site_run.site_run_id,
        HarvestLog.document_id.in_(document_ids),
        HarvestLog.outcome.is_not(None),
    )
    return frozenset(str(each) for each in session.scalars(query))
