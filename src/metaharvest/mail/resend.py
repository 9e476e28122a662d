"""The actions of an administrator on reports: send one again, send all refused ones again, drop one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.models import HarvestSiteRun, ReportDelivery, ReportOutbox
from metaharvest.errors import MetaharvestError
from metaharvest.mail.outbox import NO_LONGER, is_refused
from metaharvest.model import Site
from metaharvest.model.actions import todo
from metaharvest.sites.registry import read_site


@dataclass(frozen=True, slots=True)
class Resent:
    """The recipients of a report that is sent again, and earlier ones who no longer get these reports."""

    recipients: tuple[str, ...]
    former: tuple[str, ...] = ()


def resend(session: Session, report_id: int, settings: Settings, to: Sequence[str] = ()) -> Resent:
    """Put a report back into the outbox: `to` these addresses, or to the present recipients of such reports.

    Without `to`, a corrected contact gets it, and an address that is no longer a contact is not tried again. The date
    of the first sending stays. Raises MetaharvestError if there is no such report, or it has no recipients now.
    """
    _require(session, report_id)
    deliveries = _deliveries(session, report_id)
    recipients = tuple(dict.fromkeys(to or entitled(session, report_id, settings)))
    wanted = {address.casefold() for address in recipients}
    former = [] if to else [row for key, row in deliveries.items() if key not in wanted]
    for row in former:
        if row.status == "queued":
            row.status, row.last_attempt_at, row.last_error = "refused", None, NO_LONGER
    for address in recipients:
        _queue(session, report_id, address, deliveries).by_hand = bool(to)
    session.flush()
    return Resent(recipients, tuple(row.recipient for row in former))


@dataclass(frozen=True, slots=True)
class ResentRefused:
    """The number of reports and deliveries that are sent again, and the numbers of reports without recipients."""

    reports: int
    deliveries: int
    without_recipient: tuple[int, ...]


def resend_refused(session: Session, settings: Settings, since: datetime | None) -> ResentRefused:
    """Put refused deliveries of all reports written at `since` or later back into the outbox.

    Recipients who have the report do not get it again. A corrected contact gets it in place of the refused address.
    Deliveries that were dropped by hand stay so.
    """
    query = select(ReportDelivery).join(ReportOutbox, ReportOutbox.report_id == ReportDelivery.report_id)
    query = query.where(is_refused(), *([] if since is None else [ReportOutbox.created_at >= since]))
    refused: dict[int, list[ReportDelivery]] = {}
    for row in session.scalars(query.order_by(ReportDelivery.report_id)):
        refused.setdefault(row.report_id, []).append(row)
    number, without = 0, []
    for report_id, rows in refused.items():
        by_hand = [row.recipient for row in rows if row.by_hand]
        try:
            present = list(entitled(session, report_id, settings))
        except MetaharvestError:
            present = []
        if not by_hand and not present:
            without.append(report_id)
            continue
        number += _resend_missing(session, report_id, rows, [*by_hand, *present])
    session.flush()
    return ResentRefused(len(refused) - len(without), number, tuple(without))


def _resend_missing(session: Session, report_id: int, refused: Sequence[ReportDelivery], to: Sequence[str]) -> int:
    """Queue a report for the addresses that do not have it; return their number. The other refusals are settled."""
    deliveries = _deliveries(session, report_id)
    wanted = {address.casefold(): address for address in to}
    for row in refused:
        if row.recipient.casefold() not in wanted:
            row.last_attempt_at, row.last_error = None, NO_LONGER
    missing = [each for key, each in wanted.items() if key not in deliveries or deliveries[key].status == "refused"]
    for address in missing:
        _queue(session, report_id, address, deliveries)
    return len(missing)


def _deliveries(session: Session, report_id: int) -> dict[str, ReportDelivery]:
    """The deliveries of a report by address, in lower case."""
    known = session.scalars(select(ReportDelivery).where(ReportDelivery.report_id == report_id))
    return {row.recipient.casefold(): row for row in known}


def _queue(session: Session, report_id: int, address: str, deliveries: Mapping[str, ReportDelivery]) -> ReportDelivery:
    """Put the delivery to this address back into the outbox; a new one if there was none."""
    row = deliveries.get(address.casefold()) or ReportDelivery(report_id=report_id, recipient=address)
    session.add(row)
    row.status, row.attempts, row.last_error, row.last_attempt_at = "queued", 0, None, None
    return row


@dataclass(frozen=True, slots=True)
class Dropped:
    """The dropped deliveries of a report: some waited, some were refused. `arrived`: the others."""

    waiting: int
    refused: int
    arrived: int


def drop(session: Session, report_id: int, why: str) -> Dropped:
    """Drop the deliveries of this report that wait or were refused. Raises MetaharvestError."""
    _require(session, report_id)
    its = ReportDelivery.report_id == report_id
    numbers = {
        "waiting": ReportDelivery.status == "queued",
        "refused": is_refused(),
        "arrived": ReportDelivery.status == "sent",
    }
    found = {name: session.scalars(select(func.count()).where(its, of)).one() for name, of in numbers.items()}
    given_up = {"status": "refused", "last_attempt_at": None, "last_error": why}
    session.execute(update(ReportDelivery).where(its, numbers["waiting"] | numbers["refused"]).values(**given_up))
    return Dropped(**found)


def _require(session: Session, report_id: int) -> None:
    if report_id > 2**63 - 1 or session.get(ReportOutbox, report_id) is None:
        raise MetaharvestError(f"There is no report number {report_id}. {todo('reports.list')} lists the reports.")


def entitled(session: Session, report_id: int, settings: Settings) -> Sequence[str]:
    """The present recipients of such reports. Raises MetaharvestError if there are none."""
    query = (
        select(HarvestSiteRun.site_schedule_id)
        .join(ReportOutbox, ReportOutbox.site_run_id == HarvestSiteRun.site_run_id)
        .where(ReportOutbox.report_id == report_id)
    )
    site_id = session.scalar(query)
    if site_id is None:
        recipients, why = settings.harvester.administrators, "No administrators are named in [harvester]"
    else:
        site = read_site(session, site_id)
        recipients = site.contacts if isinstance(site, Site) else ()
        is_gone = site is None
        why = "Its site is registered no longer" if is_gone else "The row of its site in the schedule cannot be read"
    if not recipients:
        resend = todo("reports.resend", report_id=report_id)
        raise MetaharvestError(f"{why}, so that nobody gets such reports now. Name a recipient: {resend}.")
    return recipients
