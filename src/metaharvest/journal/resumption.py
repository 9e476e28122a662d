"""What an interrupted run has logged already: the run that goes on with it asks before it does a document again."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestLog
from metaharvest.model import OutcomeKind, SiteRun
from metaharvest.sites.ledger import Key

LoggedOutcome = tuple[OutcomeKind, int | None]
"""An outcome as it was logged, with the revision that the target held then."""


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
