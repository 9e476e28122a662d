"""What people do with single reports: have one sent again, to its recipients or to another address, or drop it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.models import HarvestSiteRun, ReportDelivery, ReportOutbox
from metaharvest.errors import MetaharvestError
from metaharvest.model import Site
from metaharvest.reports.outbox import NO_LONGER
from metaharvest.sites.registry import read_site


@dataclass(frozen=True, slots=True)
class Resent:
    """To whom a report goes again, and who had it and gets these reports no longer."""

    recipients: tuple[str, ...]
    former: tuple[str, ...] = ()


def resend(session: Session, report_id: int, settings: Settings, to: Sequence[str] = ()) -> Resent:
    """Put a report back into the outbox: `to` these addresses, or to those who get such reports now.

    Without `to`, a corrected contact gets it, and an address that is no contact any more is not tried again. When it
    was first sent stays. Raises MetaharvestError if there is no such report, or nobody gets such reports now.
    """
    _require(session, report_id)
    known = session.scalars(select(ReportDelivery).where(ReportDelivery.report_id == report_id)).all()
    deliveries = {row.recipient.casefold(): row for row in known}
    recipients = tuple(dict.fromkeys(to or _entitled(session, report_id, settings)))
    wanted = {address.casefold() for address in recipients}
    former = [] if to else [row for key, row in deliveries.items() if key not in wanted]
    for row in former:
        if row.status == "queued":
            row.status, row.last_attempt_at, row.last_error = "refused", None, NO_LONGER
    for address in recipients:
        row = deliveries.get(address.casefold()) or ReportDelivery(report_id=report_id, recipient=address)
        session.add(row)
        row.status, row.attempts, row.last_error, row.last_attempt_at = "queued", 0, None, None
        row.by_hand = bool(to)
    session.flush()
    return Resent(recipients, tuple(row.recipient for row in former))


def drop(session: Session, report_id: int, why: str) -> int:
    """Have nobody else get this report: what waits is given up; how many deliveries. Raises MetaharvestError."""
    _require(session, report_id)
    waiting = (ReportDelivery.report_id == report_id) & (ReportDelivery.status == "queued")
    given_up = {"status": "refused", "last_attempt_at": None, "last_error": why}
    done = session.execute(update(ReportDelivery).where(waiting).values(**given_up))
    return int(done.rowcount)  # type: ignore[attr-defined]


def _require(session: Session, report_id: int) -> None:
    if report_id > 2**63 - 1 or session.get(ReportOutbox, report_id) is None:
        raise MetaharvestError(f"There is no report number {report_id}. `metaharvest reports` lists those there are.")


def _entitled(session: Session, report_id: int, settings: Settings) -> Sequence[str]:
    """Who gets such reports now. Raises MetaharvestError if that is nobody."""
    query = (
        select(HarvestSiteRun.site_schedule_id)
        .join(ReportOutbox, ReportOutbox.site_run_id == HarvestSiteRun.site_run_id)
        .where(ReportOutbox.report_id == report_id)
    )
    site_id = session.scalar(query)
    if site_id is None:
        entitled, why = settings.harvester.administrators, "No administrators are named in [harvester]"
    else:
        site = read_site(session, site_id)
        entitled = site.contacts if isinstance(site, Site) else ()
        is_gone = site is None
        why = "Its site is registered no longer" if is_gone else "The row of its site in the schedule cannot be read"
    if not entitled:
        name = f"say who is to have it: `metaharvest reports resend {report_id} --to ADDRESS`"
        raise MetaharvestError(f"{why}, so that nobody gets such reports now: {name}.")
    return entitled
