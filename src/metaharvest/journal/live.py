"""The live numbers of the sites of a run, for people who watch it: rows that last as long as the run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, update
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, SiteProgress
from metaharvest.database.rows import insert_rows
from metaharvest.model.mappings import picked
from metaharvest.model.requests import LivePhase
from metaharvest.model.values import frozen

_PROGRESS = Base.metadata.tables[SiteProgress.__tablename__]
_NUMBERS = ("phase", "listed", "done", "errors", "began_at", "updated_at")
_THIS = (
    update(_PROGRESS)
    .where(_PROGRESS.c.site_schedule_id == bindparam("this"))
    .values({name: bindparam(name) for name in _NUMBERS})
)


@frozen
class SiteNumbers:
    """The live numbers of a site: documents listed, done, and failed in this run. `is_new`: it has no row yet."""

    site_id: int
    site: str
    phase: LivePhase
    listed: int
    done: int
    errors: int
    began_at: datetime | None
    is_new: bool


def write(session: Session, run_id: int, numbers: Sequence[SiteNumbers], now: datetime) -> None:
    """Write the numbers of these sites. A new row replaces one of an earlier slice."""
    new = [each for each in numbers if each.is_new]
    if new:
        forget(session, [each.site_id for each in new])
        rows = [{"site_schedule_id": each.site_id, "site_name": each.site, **_columns(each, now)} for each in new]
        insert_rows(session.connection(), _PROGRESS, rows, {"run_id": run_id})
    known = [{"this": each.site_id, **_columns(each, now)} for each in numbers if not each.is_new]
    if known:
        session.connection().execute(_THIS, known)


def forget(session: Session, site_ids: Collection[int] | None = None) -> None:
    """Delete the live numbers of these sites, or all, as a run or a slice begins or ends."""
    statement = delete(SiteProgress)
    session.execute(statement if site_ids is None else statement.where(SiteProgress.site_schedule_id.in_(site_ids)))


def _columns(numbers: SiteNumbers, now: datetime) -> dict[str, object]:
    return {**picked(numbers, "phase=phase.value listed done errors began_at"), "updated_at": now}
