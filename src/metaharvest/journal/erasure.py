"""Removes personal data from the journal: an address, or the text about one document.

The rows stay, so that the numbers of a run stay right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlalchemy import ColumnElement, func, or_, select, true, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from metaharvest.database.batches import batches
from metaharvest.database.console_models import ApiKey, SiteRegistration
from metaharvest.database.models import (
    AuditEntry,
    Base,
    DocumentTransfer,
    DocumentWithdrawal,
    HarvestDetailLog,
    HarvestLog,
    HarvestRequest,
    HarvestSiteRun,
    HarvestSiteSchedule,
    ReportDelivery,
    ReportOutbox,
)
from metaharvest.database.worker_models import Job
from metaharvest.errors import ScheduleError
from metaharvest.mail.redaction import REMOVED, address_pattern, without_address, without_document
from metaharvest.model.values import frozen
from metaharvest.sites.registry import raw_rows
from metaharvest.sites.rows import split_addresses
from metaharvest.text import one_line

FORGOTTEN = "(forgotten)"
"""The recipient of deliveries whose address was removed."""

_TEXTS: Sequence[InstrumentedAttribute[str | None]] = (
    HarvestLog.message,
    HarvestDetailLog.error_message,
    HarvestDetailLog.excerpt,
    HarvestDetailLog.remedy,
    HarvestSiteRun.failure_reason,
    ReportDelivery.last_error,
    DocumentTransfer.message,
    DocumentTransfer.transferred_by,
    DocumentWithdrawal.reason,
    DocumentWithdrawal.withdrawn_by,
    AuditEntry.actor,
    AuditEntry.subject,
    AuditEntry.before_values,
    AuditEntry.after_values,
    AuditEntry.reason,
    ApiKey.created_by,
    HarvestRequest.asked_by,
    HarvestRequest.sentence,
    Job.sentence,
    SiteRegistration.summary,
    SiteRegistration.mail_problem,
    SiteRegistration.decided_by,
    SiteRegistration.reason,
)
"""The columns in which an address may stand among other words."""

_AT_ONCE = 200


@frozen
class Forgotten:
    """The changes: the sites by name, and the numbers of deliveries, of reports and of rows with a text."""

    sites: tuple[str, ...]
    deliveries: int
    reports: int
    rows: int

    @property
    def is_nothing(self) -> bool:
        """True if the address was not found."""
        return not (self.sites or self.deliveries or self.reports or self.rows)


def forget_address(session: Session, address: str, start: str) -> Forgotten:
    """Remove an address from the schedule, the deliveries, the reports and the log.

    `start` is the beginning of a command line. Raises ScheduleError if the address is the only contact of a site; then
    nothing is changed.
    """
    sites = _forget_contact(session, address, start)
    deliveries = _forget_recipient(session, address)
    reports, pattern = 0, address_pattern(address)
    for report in _changed_reports(session, true(), lambda content: without_address(content, address)):
        report.subject = pattern.sub(REMOVED, report.subject)
        reports += 1
    return Forgotten(tuple(sites), deliveries, reports, sum(_rewrite(session, column, address) for column in _TEXTS))


def _forget_contact(session: Session, address: str, start: str) -> list[str]:
    """Remove the address from the contacts of all sites, also of sites with broken rows."""
    changed: dict[int, tuple[str, list[str]]] = {}
    for row in raw_rows(session):
        contacts = split_addresses(row["contact_email"])
        others = [each for each in contacts if each.casefold() != address.casefold()]
        if len(others) != len(contacts):
            changed[int(str(row["site_schedule_id"]))] = (one_line(str(row["name"])), others)
    alone = [name for name, others in changed.values() if not others]
    if alone:
        raise ScheduleError(
            f"{address} is the only contact of {', '.join(alone)}, and a site must have one. Nothing was changed. "
            f"Name another contact first: `{start} sites edit '{alone[0]}' --add-contact ADDRESS`"
        )
    for site_id, (_, others) in changed.items():
        its_row = HarvestSiteSchedule.site_schedule_id == site_id
        session.execute(update(HarvestSiteSchedule).where(its_row).values(contact_email=", ".join(others)))
    return sorted(name for name, _ in changed.values())


def _forget_recipient(session: Session, address: str) -> int:
    """Deliveries keep their status; a waiting delivery is not sent."""
    query = select(ReportDelivery).where(_is(ReportDelivery.recipient, address))
    rows = [row for row in session.scalars(query) if row.recipient.casefold() == address.casefold()]
    done = set(session.scalars(select(ReportDelivery.report_id).where(ReportDelivery.recipient == FORGOTTEN)))
    for row in rows:
        if row.report_id in done:
            session.delete(row)
            continue
        done.add(row.report_id)
        row.recipient = FORGOTTEN
        if row.status != "sent":
            row.status, row.last_attempt_at = "refused", None
            row.last_error = "The address was forgotten, so it is not tried any more."
    session.flush()
    return len(rows)


def _is(column: InstrumentedAttribute[str], address: str) -> ColumnElement[bool]:
    """Databases fold the case of ASCII letters alike; for other letters, all rows are read and compared later."""
    return func.lower(column) == address.lower() if address.isascii() else column.is_not(None)


def _changed_reports(
    session: Session, which: ColumnElement[bool], change: Callable[[bytes], bytes | None]
) -> Iterator[ReportOutbox]:
    """Change the content of these reports, one by one: each is written, and no longer in memory, before the next one.

    Yields each changed report.
    """
    query = select(ReportOutbox.report_id).where(which).order_by(ReportOutbox.report_id)
    for report_id in session.scalars(query).all():
        report = session.get_one(ReportOutbox, report_id)
        if content := change(report.content):
            report.content = content
            yield report
        session.flush()
        session.expunge(report)


def _rewrite(session: Session, column: InstrumentedAttribute[str | None], address: str) -> int:
    """Replace the address in a column; returns the number of changed rows."""
    pattern = address_pattern(address)
    table = Base.metadata.tables[column.class_.__tablename__]
    [key] = table.primary_key.columns
    part = address.rpartition("@")[0] if not address.isascii() else address
    named = func.lower(column).contains(part.lower(), autoescape=True)
    number = 0
    rows = session.execute(select(key, column).where(named)).all()
    for value, text in rows:
        changed = pattern.sub(REMOVED, text)
        if changed != text:
            session.execute(update(table).where(key == value).values({column.key: changed}))
            number += 1
    return number


@frozen
class ErasedText:
    """The numbers of log rows and of reports that no longer quote a document."""

    rows: int
    reports: int


def erase_document(session: Session, document_id: str, sentence: str) -> ErasedText:
    """Replace the quotations of a document in the log and the reports by `sentence`."""
    log, detail = HarvestLog, HarvestDetailLog
    its_logs = [
        row[0]
        for row in session.execute(select(log.harvest_log_id, log.document_id).where(log.document_id == document_id))
        # Compared here too: MariaDB ignores spaces at the end.
        if row[1] == document_id
    ]
    rows = 0
    site_runs = set[int]()
    for some in batches(its_logs, _AT_ONCE):
        quoting = select(log.site_run_id).where(log.harvest_log_id.in_(some), log.site_run_id.is_not(None)).distinct()
        site_runs |= {each for each in session.scalars(quoting) if each is not None}
        changed = update(log).where(log.harvest_log_id.in_(some)).values(message=sentence)
        rows += int(session.execute(changed).rowcount)  # type: ignore[attr-defined]
        found = update(detail).where(detail.harvest_log_id.in_(some))
        session.execute(found.values(error_message=sentence, excerpt=None, remedy=None))
    # The administrators' reports belong to no site run.
    its = or_(ReportOutbox.site_run_id.in_(site_runs), ReportOutbox.site_run_id.is_(None))
    reports = _changed_reports(session, its, lambda content: without_document(content, document_id, sentence))
    return ErasedText(rows, sum(1 for _ in reports))
