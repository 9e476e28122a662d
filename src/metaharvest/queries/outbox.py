"""The outbox: which reports were written to whom, whether they arrived, and what waits there too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session, defer

from metaharvest.database.models import HarvestRun, HarvestSiteRun, ReportDelivery, ReportOutbox
from metaharvest.errors import MetaharvestError
from metaharvest.queries.records import record_of

PATIENCE = timedelta(days=2)
"""Mail may wait for so long: a mail server was away over a night or two."""

_OF_LATE = timedelta(days=7)
_REPORTS_AT_ONCE = 500
"""Reports whose deliveries one statement asks for."""

_LARGEST_ID = 2**63 - 1
_NEWEST_ATTEMPTS = 1000
_MOST_REASONS = 10


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One recipient of a report: `status` is queued, sent or refused."""

    recipient: str
    status: str
    attempts: int
    last_error: str | None
    last_attempt_at: datetime | None


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """A report in the outbox, without its content. `kind` is site or admin."""

    report_id: int
    created_at: datetime
    kind: str
    run_id: int
    site_run_id: int | None
    subject: str
    message_id: str
    deliveries: tuple[DeliveryRecord, ...]


@dataclass(frozen=True, slots=True)
class RenderedReport:
    """A report as it was sent: the day of its run, its site (None: the administrator's), the whole message."""

    harvest_date: date
    site_name: str | None
    content: bytes


@dataclass(frozen=True, slots=True)
class OutboxState:
    """How many deliveries wait: `failed` were tried in vain, `fresh` have not been tried.

    `failed_since` is when the oldest report was written of which a delivery waits.

    `refused` is how many recipients refused a report in the last seven days.
    """

    failed: int
    failed_since: datetime | None
    fresh: int
    refused: int


@dataclass(frozen=True, slots=True)
class StuckMail:
    """How many deliveries wait too long, and since when the first of them does."""

    deliveries: int
    since: datetime


def newest_reports(session: Session, limit: int, *, undelivered: bool = False) -> list[ReportRecord]:
    """So many reports, the newest first; with `undelivered` only those that somebody has not got."""
    statement = select(ReportOutbox).options(defer(ReportOutbox.content))
    if undelivered:
        missing = select(ReportDelivery.report_id).where(ReportDelivery.status != "sent")
        statement = statement.where(ReportOutbox.report_id.in_(missing))
    statement = statement.order_by(ReportOutbox.report_id.desc()).limit(limit)
    return _with_deliveries(session, session.scalars(statement).all())


def report_record(session: Session, report_id: int) -> ReportRecord:
    """The report of this number. Raises MetaharvestError if there is none."""
    statement = select(ReportOutbox).options(defer(ReportOutbox.content)).where(ReportOutbox.report_id == report_id)
    report = session.scalar(statement) if report_id <= _LARGEST_ID else None
    if report is None:
        raise MetaharvestError(f"There is no report {report_id}. `metaharvest reports` lists those there are.")
    return _with_deliveries(session, [report])[0]


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
    return (RenderedReport(day, site, content) for day, site, content in session.execute(statement))


def reasons_not_delivered(session: Session) -> list[str]:
    """Why reports wait or were refused: each reason once, the newest first, no more than ten."""
    statement = (
        select(ReportDelivery.last_error)
        .where(ReportDelivery.status != "sent", ReportDelivery.last_error.is_not(None))
        .order_by(ReportDelivery.last_attempt_at.desc())
        .limit(_NEWEST_ATTEMPTS)
    )
    return list(dict.fromkeys(str(reason) for reason in session.scalars(statement)))[:_MOST_REASONS]


def outbox_state(session: Session, now: datetime) -> OutboxState:
    """What waits in the outbox, and what was refused of late."""

    def number(*conditions: ColumnElement[bool]) -> int:
        return session.scalar(select(func.count(ReportDelivery.delivery_id)).where(*conditions)) or 0

    queued = ReportDelivery.status == "queued"
    since = session.scalar(select(func.min(ReportOutbox.created_at)).join(ReportDelivery).where(queued))
    of_late = ReportDelivery.last_attempt_at >= now - _OF_LATE
    return OutboxState(
        failed=number(queued, ReportDelivery.attempts > 0),
        failed_since=since,
        fresh=number(queued, ReportDelivery.attempts == 0),
        refused=number(ReportDelivery.status == "refused", of_late),
    )


def stuck_mail(session: Session, now: datetime) -> StuckMail | None:
    """What has waited in the outbox for longer than PATIENCE, if anything."""
    query = (
        select(func.count(ReportDelivery.delivery_id), func.min(ReportOutbox.created_at))
        .join(ReportOutbox, ReportOutbox.report_id == ReportDelivery.report_id)
        .where(ReportDelivery.status == "queued", ReportOutbox.created_at < now - PATIENCE)
    )
    number, since = session.execute(query).one()
    return StuckMail(number, since) if number else None


def _with_deliveries(session: Session, reports: Sequence[ReportOutbox]) -> list[ReportRecord]:
    deliveries: dict[int, list[DeliveryRecord]] = {report.report_id: [] for report in reports}
    report_ids = list(deliveries)
    for start in range(0, len(report_ids), _REPORTS_AT_ONCE):
        statement = (
            select(ReportDelivery)
            .where(ReportDelivery.report_id.in_(report_ids[start : start + _REPORTS_AT_ONCE]))
            .order_by(ReportDelivery.delivery_id)
        )
        for row in session.scalars(statement):
            deliveries[row.report_id].append(record_of(DeliveryRecord, row))
    return [record_of(ReportRecord, row, deliveries=tuple(deliveries[row.report_id])) for row in reports]
