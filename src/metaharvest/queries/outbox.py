"""The outbox: the reports with their recipients, and the state of each delivery."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.batches import grouped
from metaharvest.database.models import (
    IS_HARVEST,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
    ReportDelivery,
    ReportOutbox,
)
from metaharvest.database.statements import rows_with
from metaharvest.errors import MetaharvestError
from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.queries.records import columns_for, equalities, is_named
from metaharvest.queries.runs import site_number
from metaharvest.text import LARGEST_ID

_OF_LATE = timedelta(days=7)
_NEWEST_ATTEMPTS = 1000
_MOST_REASONS = 10


@frozen
class ReportFilter:
    """The selection of reports: of this site (under any of its names), kind, recipient, state.

    `undelivered`, `recipient` and `state` apply to the same delivery.
    `document`: reports about harvests whose log names this document id, or docid.
    """

    undelivered: bool = False
    site: str | None = None
    kind: str | None = None
    recipient: str | None = None
    state: str | None = None
    document: str | None = None


@frozen
class Delivery:
    """A report for one recipient; `status` is queued, sent or refused."""

    recipient: str
    status: str
    attempts: int
    last_error: str | None
    last_attempt_at: datetime | None
    first_sent_at: datetime | None


@frozen(kw_only=True)
class ReportRecord:
    """A report without its content."""

    report_id: int
    created_at: datetime
    kind: str
    run_id: int
    site_run_id: int | None
    subject: str
    message_id: str
    deliveries: tuple[Delivery, ...]


@frozen
class RenderedReport:
    """A report as it was sent, with the day of its run; `site` is None for the administrator's."""

    harvest_date: date
    site: str | None
    content: bytes


@frozen
class OutboxState:
    """The numbers of deliveries that wait: `failed` ones were tried without success, `fresh` ones were not tried yet.

    `failed_since` is the date of the oldest report with a waiting delivery; `refused` is the number of recipients who
    refused a report in the last seven days, `admins_refused` the same for reports to the administrators;
    `refused_since` and `admins_since` are the dates of the oldest refused reports.
    """

    failed: int
    failed_since: datetime | None
    fresh: int
    refused: int
    refused_since: datetime | None
    admins_refused: int
    admins_since: datetime | None


def newest_reports(
    session: Session, limit: int, which: ReportFilter | None = None, after: int | None = None
) -> list[ReportRecord]:
    """This number of reports, the newest first; the next page begins `after` the last report of this one.

    Raises MetaharvestError if there is no such site.
    """
    which = which or ReportFilter()
    report, delivery = ReportOutbox, ReportDelivery
    of_deliveries = equalities((delivery.status, which.state or None))
    if which.undelivered:
        of_deliveries.append(delivery.status != "sent")
    if which.recipient:
        of_deliveries.append(func.lower(delivery.recipient) == which.recipient.lower())
    its = equalities((report.kind, which.kind or None))
    if of_deliveries:
        its.append(report.report_id.in_(select(delivery.report_id).where(*of_deliveries)))
    if after is not None:
        its.append(report.report_id < after)
    if which.site:
        its_runs = select(HarvestSiteRun.site_run_id).filter_by(site_schedule_id=site_number(session, which.site))
        its.append(report.site_run_id.in_(its_runs))
    if which.document:
        about = select(HarvestLog.site_run_id).where(is_named(which.document), HarvestLog.site_run_id.is_not(None))
        its.append(report.site_run_id.in_(about))
    return _with_deliveries(session, _REPORTS.where(*its).order_by(report.report_id.desc()).limit(limit))


def newest_run(session: Session) -> int:
    """The number of the newest run. Raises MetaharvestError if there is none."""
    number = session.scalar(select(func.max(HarvestRun.run_id)).where(IS_HARVEST))
    if number is None:
        raise MetaharvestError("There was no run yet, so there is nothing to report.")
    return int(number)


def report_record(session: Session, report_id: int) -> ReportRecord:
    """The report of this number, as one of `newest_reports`. Raises MetaharvestError if there is none."""
    statement = _REPORTS.where(ReportOutbox.report_id == report_id)
    found = _with_deliveries(session, statement) if report_id <= LARGEST_ID else []
    if not found:
        raise MetaharvestError(f"There is no report {report_id}. {todo('reports.list')} lists the reports.")
    return found[0]


def site_of_report(session: Session, report_id: int) -> int | None:
    """The number of the site that a report is about; None if it is about no site, or is not there."""
    if not 0 <= report_id <= LARGEST_ID:
        return None
    query = select(HarvestSiteRun.site_schedule_id).join(
        ReportOutbox, ReportOutbox.site_run_id == HarvestSiteRun.site_run_id
    )
    return session.scalar(query.where(ReportOutbox.report_id == report_id))


def report_content(session: Session, report_id: int) -> bytes:
    """The whole message of a report that is there, byte for byte."""
    return session.execute(select(ReportOutbox.content).where(ReportOutbox.report_id == report_id)).scalar_one()


def rendered_reports(session: Session) -> Iterator[RenderedReport]:
    """All reports as they were sent, in the order in which they were written."""
    statement = (
        select(HarvestRun.harvest_date, HarvestSiteRun.site_name, ReportOutbox.content)
        .join(HarvestRun, HarvestRun.run_id == ReportOutbox.run_id)
        .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == ReportOutbox.site_run_id)
        .order_by(ReportOutbox.report_id)
    )
    return (RenderedReport(*row) for row in session.execute(statement))


def reasons_not_delivered(session: Session, since: datetime) -> list[str]:
    """The reasons why reports wait, or were refused since then: each once, the newest first, no more than ten."""
    refused = (ReportDelivery.status == "refused") & (ReportDelivery.last_attempt_at >= since)
    statement = (
        select(ReportDelivery.last_error)
        .where(or_(ReportDelivery.status == "queued", refused), ReportDelivery.last_error.is_not(None))
        .order_by(ReportDelivery.last_attempt_at.desc())
        .limit(_NEWEST_ATTEMPTS)
    )
    return list(dict.fromkeys(str(reason) for reason in session.scalars(statement)))[:_MOST_REASONS]


def number_refused(session: Session) -> int:
    """The number of refused deliveries that were neither sent again nor dropped."""
    refused = (ReportDelivery.status == "refused") & ReportDelivery.last_attempt_at.is_not(None)
    return int(session.scalars(select(func.count()).where(refused)).one())


def outbox_state(session: Session, now: datetime) -> OutboxState:
    """The deliveries that wait, and those that were refused in the last seven days."""
    queued = ReportDelivery.status == "queued"
    refused = (ReportDelivery.status == "refused") & (ReportDelivery.last_attempt_at >= now - _OF_LATE)
    number, since = select(func.count(ReportDelivery.delivery_id)), select(func.min(ReportOutbox.created_at))
    recipients, to_admins = select(func.count(ReportDelivery.recipient.distinct())), ReportOutbox.kind != "site"
    statement = select(
        number.where(queued, ReportDelivery.attempts > 0).label("failed"),
        since.join(ReportDelivery).where(queued).label("failed_since"),
        number.where(queued, ReportDelivery.attempts == 0).label("fresh"),
        recipients.where(refused).label("refused"),
        since.join(ReportDelivery).where(refused).label("refused_since"),
        recipients.join(ReportOutbox).where(refused, to_admins).label("admins_refused"),
        since.join(ReportDelivery).where(refused, to_admins).label("admins_since"),
    )
    return OutboxState(**session.execute(statement).one()._mapping)


_REPORTS = select(*columns_for(ReportRecord, ReportOutbox))


def _with_deliveries(session: Session, statement: Select[Any]) -> list[ReportRecord]:
    reports, report_id = session.execute(statement).all(), ReportDelivery.report_id
    query = select(report_id, *columns_for(Delivery, ReportDelivery)).order_by(ReportDelivery.delivery_id)
    rows = rows_with(session, query, report_id, [report.report_id for report in reports])
    deliveries = grouped((number, Delivery(*values)) for number, *values in rows)
    return [ReportRecord(**each._mapping, deliveries=tuple(deliveries.get(each.report_id, ()))) for each in reports]
