"""The outbox: reports wait here, a delivery row per recipient, until each has been handed over or refused for good.

What is queued is committed by the caller, in the transaction that makes the report due; what is delivered is committed
here, delivery by delivery, so that a crash repeats one at most, under the same Message-ID.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from metaharvest.database.models import ReportDelivery, ReportOutbox
from metaharvest.errors import MetaharvestError
from metaharvest.reports.mail import Attempt, Letter, backend_for
from metaharvest.reports.message import Report
from metaharvest.settings import Settings


@dataclass(frozen=True, slots=True)
class Deliveries:
    """How many deliveries were sent and refused this time, and how many are still waiting."""

    sent: int = 0
    waiting: int = 0
    refused: int = 0


def queue(session: Session, report: Report, run_id: int, site_run_id: int | None, now: datetime) -> int | None:
    """Put a report into the outbox, with a delivery for each recipient; its number there.

    None where a report of the same key is there already. Nothing is committed: that is the caller's transaction.
    """
    if session.scalar(select(ReportOutbox.report_id).where(ReportOutbox.idempotency_key == report.key)) is not None:
        return None
    row = ReportOutbox(
        idempotency_key=report.key,
        kind=report.kind,
        run_id=run_id,
        site_run_id=site_run_id,
        message_id=report.message_id,
        subject=report.subject,
        content=report.content,
        created_at=now,
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        if session.scalar(select(ReportOutbox.report_id).where(ReportOutbox.idempotency_key == report.key)) is None:
            raise
        return None
    session.add_all(
        ReportDelivery(report_id=row.report_id, recipient=each) for each in dict.fromkeys(report.recipients)
    )
    session.flush()
    return row.report_id


def resend(session: Session, report_id: int) -> None:
    """Put all deliveries of a report back to queued. MetaharvestError where there is no such report."""
    if session.get(ReportOutbox, report_id) is None:
        raise MetaharvestError(f"There is no report number {report_id}. `metaharvest reports` lists those there are.")
    session.execute(
        update(ReportDelivery)
        .where(ReportDelivery.report_id == report_id)
        .values(status="queued", attempts=0, last_error=None)
    )


def deliver(session_factory: Callable[[], Session], settings: Settings, now: datetime) -> Deliveries:
    """Try to hand over everything that is queued, oldest first, committing after each delivery.

    Never raises for what a mail server or a folder does: that is written down with the delivery. Where the server
    cannot be reached at all, the rest waits for the next time. Errors of the database pass through.
    """
    backend = backend_for(settings)
    sent = refused = 0
    try:
        for report_id in _waiting_reports(session_factory):
            letter, recipients = _read(session_factory, report_id)
            for parcel in backend.parcels(recipients):
                # Nothing of the database is held while a mail server takes its time.
                attempt = backend.send(letter, parcel)
                _note(session_factory, report_id, parcel, attempt, now)
                sent += len(parcel) if attempt.status == "sent" else 0
                refused += len(parcel) if attempt.status == "refused" else 0
                if attempt.stop:
                    return Deliveries(sent, _number_waiting(session_factory), refused)
    finally:
        backend.close()
    return Deliveries(sent, _number_waiting(session_factory), refused)


def _waiting_reports(session_factory: Callable[[], Session]) -> list[int]:
    query = (
        select(ReportDelivery.report_id)
        .where(ReportDelivery.status == "queued")
        .distinct()
        .order_by(ReportDelivery.report_id)
    )
    with session_factory() as session:
        return list(session.scalars(query))


def _number_waiting(session_factory: Callable[[], Session]) -> int:
    with session_factory() as session:
        return session.scalars(select(func.count()).where(ReportDelivery.status == "queued")).one()


def _read(session_factory: Callable[[], Session], report_id: int) -> tuple[Letter, list[str]]:
    """A report as a letter, and those who have not got it yet."""
    query = (
        select(ReportDelivery.recipient)
        .where(ReportDelivery.report_id == report_id, ReportDelivery.status == "queued")
        .order_by(ReportDelivery.delivery_id)
    )
    with session_factory() as session:
        report = session.get_one(ReportOutbox, report_id)
        return Letter(report.message_id, report.content, report.created_at), list(session.scalars(query))


def _note(
    session_factory: Callable[[], Session],
    report_id: int,
    recipients: tuple[str, ...],
    attempt: Attempt,
    now: datetime,
) -> None:
    """Write an attempt down: with its recipients, or with all that waits, where its reason concerns all of it."""
    statement = update(ReportDelivery).where(ReportDelivery.status == "queued")
    if not attempt.stop:
        statement = statement.where(ReportDelivery.report_id == report_id, ReportDelivery.recipient.in_(recipients))
    values = {"status": attempt.status, "last_error": attempt.error, "last_attempt_at": now}
    with session_factory() as session:
        session.execute(statement.values(attempts=ReportDelivery.attempts + 1, **values))
        session.commit()
