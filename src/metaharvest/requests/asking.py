"""A person asks, or takes a request back. A repeated request is the same request."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestRequest, HarvestSiteRun
from metaharvest.model.requests import Actor, HarvestScope, RequestKind, RequestState
from metaharvest.model.values import frozen


@frozen(kw_only=True)
class NewRequest:
    """A request that a person makes. A stop without a site is for the whole run."""

    kind: RequestKind
    site_id: int | None = None
    site: str | None = None
    scope: HarvestScope | None = None
    run_id: int | None = None
    priority: int = 0

    @property
    def open_key(self) -> str:
        """The same text for the same request."""
        site = "run" if self.site_id is None else str(self.site_id)
        return ":".join(map(str, (self.kind, site, self.scope or self.run_id or "next")))


def ask(session: Session, new: NewRequest, actor: Actor, now: datetime) -> tuple[HarvestRequest, bool]:
    """The open request for this, and True if it is new.

    If the run that took a harvest has harvested the site already, the person gets a new request, even while it goes on.
    """
    its = select(HarvestRequest).where(HarvestRequest.open_key == new.open_key)
    if (found := session.scalar(its)) is not None:
        if not _has_result(session, found):
            return found, False
        found.open_key = None  # its run ends it
        session.flush()
    request = HarvestRequest(
        kind=new.kind.value,
        site_schedule_id=new.site_id,
        site_name=new.site,
        scope=new.scope.value if new.scope else None,
        priority=new.priority,
        asked_by=actor.name,
        asked_via=actor.via,
        asked_at=now,
        state=RequestState.WAITING.value,
        run_id=new.run_id,
        open_key=new.open_key,
    )
    try:
        with session.begin_nested():
            session.add(request)
            session.flush()
    except IntegrityError:
        # Another person asked at the same moment. A locking read sees the committed row on every database. The lock is
        # a shared one, as the failed insert holds such a lock on MariaDB: exclusive locks would be a deadlock.
        if (found := session.scalar(its.with_for_update(read=True))) is None:
            raise
        return found, False
    return request, True


def _has_result(session: Session, request: HarvestRequest) -> bool:
    """True if the run that has taken this request has harvested the site since then."""
    if request.kind != RequestKind.HARVEST.value or request.state != RequestState.TAKEN.value:
        return False
    row = HarvestSiteRun
    of_site = (row.run_id == request.run_id, row.site_schedule_id == request.site_schedule_id)
    its = (*of_site, row.ended_at >= request.taken_at)
    return session.scalar(select(row.site_run_id).where(*its).limit(1)) is not None


def cancel(session: Session, request_id: int, sentence: str, now: datetime) -> bool:
    """Take a request back that no run has taken; False if there is none."""
    waiting = (HarvestRequest.request_id == request_id, HarvestRequest.state == RequestState.WAITING.value)
    ended = {"state": RequestState.CANCELLED.value, "sentence": sentence, "ended_at": now, "open_key": None}
    return bool(session.execute(update(HarvestRequest).where(*waiting).values(**ended)).rowcount)  # type: ignore[attr-defined]
