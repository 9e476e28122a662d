"""The outbox: reports wait here, a delivery row per recipient, until each has been handed over or refused for good.

An administrator can send one again, send all refused ones again, and drop one.

The caller commits queueing, in the transaction that makes the report due. Delivering is committed here: after each
message with SMTP, so that a crash repeats at most one; after several with a Maildir, which has none twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TypeVar

from sqlalchemy import (
    ColumnElement,
    Engine,
    Row,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.batches import batches, grouped
from metaharvest.database.engine import outbox_lock, writers
from metaharvest.database.models import IS_HARVEST, Base, HarvestRun, HarvestSiteRun, ReportDelivery, ReportOutbox
from metaharvest.database.rows import insert_numbered
from metaharvest.errors import LockHeld, MetaharvestError
from metaharvest.mail.delivery import Attempt, Letter, MailBackend, Refusal, Refusals
from metaharvest.mail.maildir import Maildir
from metaharvest.mail.message import Report
from metaharvest.mail.smtp import SmtpServer
from metaharvest.model import Site
from metaharvest.model.actions import todo
from metaharvest.model.mappings import picked
from metaharvest.model.values import frozen
from metaharvest.sites.registry import read_site, read_sites_of

PATIENCE = timedelta(days=2)
"""The time that mail may wait: a mail server was away over a night or two."""

_DELAYS = [timedelta(hours=hours) for hours in (0, 1, 2, 4, 8, 12)]
"""The next run tries a failed delivery again, and later runs after one, two, four, eight, twelve hours, so that hourly
runs do not try all day long. The first run of a day tries everything.
"""

_GIVEN_UP_AFTER = timedelta(days=4)
"""A recipient is given up if the server puts it off with the same answer as last time, this time after the report was
made: RFC 5321, section 4.5.4.1. A server that does not answer gives no reason for that. A server that refuses everybody
has the same time to be repaired.
"""

_LONGEST_ROUND = 3600.0
_AFTER_STOP = 60.0
"""Seconds for waiting reports, and after a signal to stop: the rest waits for the next run."""

_SITES_AT_ONCE = 1000

_Key = TypeVar("_Key", int, int | None)
"""The number of a site run; None for a report that belongs to no site run."""


@frozen
class _Parcel:
    """The message of a report to some of its recipients; `kind` is the report's."""

    report_id: int
    kind: str
    letter: Letter

    def refusals(self) -> list[Refusal]:
        """One refusal for each recipient, for a server that refuses this message."""
        of_theirs = self.kind != "site"
        return [Refusal(self.report_id, recipient, of_theirs) for recipient in self.letter.recipients]


@frozen
class DeliveringRun:
    """The run that delivers: its beginning, its day, and its refusals in doubt.

    Workers deliver between runs, too: their first delivery of a day is the first one after `midnight`.
    """

    began: datetime
    day: date
    refusals: Refusals = field(default_factory=lambda: Refusals(unattended=True))
    midnight: datetime | None = None


@frozen
class Deliveries:
    """The numbers of sent, refused and waiting deliveries.

    `there`: the number of sent ones that had arrived before and were not written again. `former`: the number that is
    not tried again, since their recipients no longer get these reports. `in_doubt`: the number of waiting ones that
    were refused by a server that accepted no recipient.
    """

    sent: int = 0
    waiting: int = 0
    refused: int = 0
    there: int = 0
    former: int = 0
    in_doubt: int = 0


def queue(session: Session, report: Report, run_id: int, site_run_id: int | None, now: datetime) -> int | None:
    """Put a report into the outbox, with a delivery for each recipient; return its number there.

    None if a report with the same key is there already. Nothing is committed: the caller does that.
    """
    same = select(ReportOutbox.report_id).where(ReportOutbox.idempotency_key == report.key)
    try:
        with session.begin_nested():
            is_new = bool(queue_all(session, {site_run_id: report}, run_id, now))
    except IntegrityError:
        if session.scalar(same) is None:
            raise
        is_new = False
    return session.scalar(same) if is_new else None


def queue_all(session: Session, reports: Mapping[_Key, Report], run_id: int, now: datetime) -> list[_Key]:
    """Put reports, by site run, into the outbox, as `queue` does with one; return those that were not there."""
    if not reports:
        return []
    there = set(session.scalars(_KEYS, {"keys": [report.key for report in reports.values()]}))
    new = {site_run_id: report for site_run_id, report in reports.items() if report.key not in there}
    if not new:
        return []
    rows = [
        {
            **picked(report, "idempotency_key=key kind message_id subject content"),
            "site_run_id": site_run_id,
            "run_id": run_id,
            "created_at": now,
        }
        for site_run_id, report in new.items()
    ]
    deliveries = [
        {"report_id": report_id, "recipient": each}
        for report_id, report in zip(insert_numbered(session.connection(), _OUTBOX, rows), new.values(), strict=True)
        for each in dict.fromkeys(report.recipients)
    ]
    if deliveries:
        session.connection().execute(insert(_DELIVERIES), deliveries)
    return list(new)


def stuck_mail(session: Session, now: datetime) -> Row[int, datetime] | None:
    """The number of `deliveries` that have waited longer than PATIENCE, and `since` when the first; or None."""
    number, since = func.count(ReportDelivery.delivery_id), func.min(ReportOutbox.created_at)
    waiting = (
        select(number.label("deliveries"), since.label("since"))
        .join(ReportOutbox, ReportOutbox.report_id == ReportDelivery.report_id)
        .where(ReportDelivery.status == "queued", ReportOutbox.created_at < now - PATIENCE)
    )
    found = session.execute(waiting).one()
    return found if found.deliveries else None


IS_REFUSED = and_(ReportDelivery.status == "refused", ReportDelivery.last_attempt_at.is_not(None))
"""A delivery that a mail server refused; not a dropped one, or one for a recipient who no longer gets reports."""

_OUTBOX = Base.metadata.tables[ReportOutbox.__tablename__]
_KEYS = select(_OUTBOX.c.idempotency_key).where(_OUTBOX.c.idempotency_key.in_(bindparam("keys", expanding=True)))
_DELIVERIES = Base.metadata.tables[ReportDelivery.__tablename__]


def backend_for(settings: Settings, is_hurried: Callable[[], bool] = lambda: True) -> MailBackend:
    """The mail backend that the settings name; it must be closed. `is_hurried`: see SmtpServer."""
    if settings.mail.backend == "maildir":
        return Maildir(settings.path(settings.mail.folder))
    return SmtpServer(settings, is_hurried)


def deliver(
    session_factory: Callable[[], Session],
    settings: Settings,
    now: datetime,
    run: DeliveringRun | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Deliveries:
    """Try to hand over queued messages, oldest first, and commit after as many as the backend takes at once.

    With `run`, a delivery that this run has tried, or that failed shortly before, waits for a later run; without,
    everything is tried. A recipient who is no longer a contact, or an administrator, is left out. Errors of a mail
    server or a folder raise nothing: the delivery's row has them. If the server is unreachable, the others wait for the
    next time, as they do after an hour, or a minute after `is_stopped` says so. A refusal is final when the server
    accepts another recipient: see delivery.py. Errors of the database are raised.
    """
    due = _due(now, run) if run else true()
    former = _leave_out_former(session_factory, settings, run.began if run else now)
    backend = backend_for(settings, is_stopped)
    time_left = _TimeLeft(is_stopped)
    round_ = _Round(session_factory, backend, now, due, run.refusals if run else Refusals(), time_left)
    try:
        tried_all = round_.deliver()
    finally:
        backend.close()
    round_.settle(round_.refusals.close_round(tried_all))
    with session_factory() as session:
        waiting = number_waiting(session)
    return Deliveries(round_.sent, waiting, round_.refused, round_.there, former, round_.in_doubt)


def deliver_in_run(
    engine: Engine, settings: Settings, now: datetime, run: DeliveringRun, is_stopped: Callable[[], bool]
) -> Deliveries:
    """As `deliver`, under the lock of the outbox.

    If another process delivers, it delivers the reports that it has read; the next job or run delivers the others.
    """
    sessions = writers(engine)
    with sessions() as session:
        if not number_waiting(session):
            return Deliveries()
    try:
        with outbox_lock(engine):
            return deliver(sessions, settings, now, run, is_stopped)
    except LockHeld:
        with sessions() as session:
            return Deliveries(waiting=number_waiting(session))


class _TimeLeft:
    """The time limit of a round: a mail server that answers slowly must not hold the run lock for good."""

    def __init__(self, is_stopped: Callable[[], bool]) -> None:
        self._is_stopped = is_stopped
        self._ends = time.monotonic() + _LONGEST_ROUND

    def is_over(self) -> bool:
        """True if the round must end."""
        if self._is_stopped():
            self._ends = min(self._ends, time.monotonic() + _AFTER_STOP)
            self._is_stopped = lambda: False
        return time.monotonic() >= self._ends


@dataclass(slots=True)
class _Round:
    """One attempt for everything that is due, and its numbers so far."""

    session_factory: Callable[[], Session]
    backend: MailBackend
    now: datetime
    due: ColumnElement[bool]
    refusals: Refusals
    time_left: _TimeLeft
    sent: int = 0
    refused: int = 0
    there: int = 0
    in_doubt: int = 0
    tried: set[tuple[int, str]] = field(default_factory=set)

    def deliver(self) -> bool:
        """Hand over due messages; True if all were tried, before the backend said stop or the time was over."""
        at_once = self.backend.at_once
        query = select(ReportDelivery.report_id).where(ReportDelivery.status == "queued", self.due).distinct()
        with self.session_factory() as session:
            waiting = list(session.scalars(query.order_by(ReportDelivery.report_id)))
        for report_ids in batches(waiting, at_once):
            for parcels in batches(_parcels(self.session_factory, report_ids, self.due, self.backend), at_once):
                # No transaction is open while a slow mail server works.
                attempts = self.backend.send([parcel.letter for parcel in parcels])
                self._note(parcels, attempts)
                if any(attempt.stop for attempt in attempts) or self.time_left.is_over():
                    return False
        return True

    def settle(self, refusals: Sequence[Refusal]) -> None:
        """Make refusals final if their deliveries still wait."""
        if not refusals:
            return
        values = [{"report": refusal.report_id, "to": refusal.recipient} for refusal in refusals]
        with self.session_factory() as session:
            settled = sum(session.connection().execute(_SETTLED, row).rowcount for row in values)
            session.commit()
        self.refused += settled
        self.in_doubt = max(0, self.in_doubt - settled)

    def _note(self, parcels: Sequence[_Parcel], attempts: Sequence[Attempt]) -> None:
        """Update the deliveries of the recipients; after a stop, also the due deliveries that were not tried."""
        rows: list[dict[str, object]] = []
        overdue: list[dict[str, object]] = []
        for_rest: dict[str, object] = {}
        rest: ColumnElement[bool] = true()
        final: list[Refusal] = []
        for parcel, attempt in zip(parcels, attempts, strict=False):
            values: dict[str, object] = {"state": attempt.status, "error": attempt.error, "now": self.now}
            if attempt.stop:
                for_rest, rest = values, self._rest(parcel.report_id)
                continue
            its_rows = [{**values, "report": parcel.report_id, "to": each} for each in parcel.letter.recipients]
            self.tried.update((parcel.report_id, each) for each in parcel.letter.recipients)
            may_pass = attempt.put_off
            if attempt.status == "sent":
                final += self.refusals.accepted()
            elif attempt.by_server and not self.refusals.accepts:
                self.refusals.refused(parcel.refusals())
                self.in_doubt += len(its_rows)
                its_rows = [{**row, "state": "queued"} for row in its_rows]
                may_pass = True
            rows += its_rows
            if may_pass and self.now - parcel.letter.created_at >= _GIVEN_UP_AFTER:
                overdue += [{**row, "state": "refused"} for row in its_rows]
            self.sent += len(its_rows) if attempt.status == "sent" else 0
            self.refused += sum(row["state"] == "refused" for row in its_rows)
            self.there += len(its_rows) if attempt.there else 0
        with self.session_factory() as session:
            given_up = sum(session.connection().execute(_GIVEN_UP, row).rowcount for row in overdue)
            if rows:
                session.connection().execute(_ATTEMPTED_ONE, rows)
            if for_rest:
                session.connection().execute(_ATTEMPTED.where(self.due, rest), for_rest)
            session.commit()
        self.refused += given_up
        self.in_doubt = max(0, self.in_doubt - given_up)
        self.settle(final)

    def _rest(self, report_id: int) -> ColumnElement[bool]:
        """The deliveries from this report on that were not tried: others keep the answers of this round."""
        tried = [recipient for number, recipient in self.tried if number == report_id]
        its_rest = and_(_DELIVERIES.c.report_id == report_id, _DELIVERIES.c.recipient.not_in(tried))
        return or_(_DELIVERIES.c.report_id > report_id, its_rest)


def _leave_out_former(session_factory: Callable[[], Session], settings: Settings, before: datetime) -> int:
    """Stop trying former recipients, of reports made `before`; return the number of deliveries.

    They become `refused` without the time of an attempt, so that they are not reported as recent failures. Reports of a
    removed site are delivered as they were meant.
    """
    with session_factory() as session:
        rows = session.execute(_NOT_ARRIVED, {"before": before}).all()
        known: dict[int | None, Sequence[str]] = {None: settings.harvester.administrators}
        for numbers in batches(list({row.site_schedule_id for row in rows} - {None}), _SITES_AT_ONCE):
            # A broken row may have only some legible contacts.
            sites = read_sites_of(session, numbers).items()
            known |= {site_id: site.contacts for site_id, site in sites if isinstance(site, Site)}
        former = []
        for row in rows:
            addresses = {address.casefold() for address in known.get(row.site_schedule_id, ())}
            if addresses and row.recipient.casefold() not in addresses:
                answer = f" The last answer: {row.last_error}" if row.last_error else ""
                former.append({"delivery": row.delivery_id, "error": f"{NO_LONGER}{answer}"})
        left_out = sum(session.connection().execute(_LEFT_OUT, row).rowcount for row in former)
        session.commit()
    return left_out


def _due(now: datetime, run: DeliveringRun) -> ColumnElement[bool]:
    """The deliveries that a run tries: new ones, and those with a last attempt long enough ago, see _DELAYS."""
    last, attempts = ReportDelivery.last_attempt_at, ReportDelivery.attempts
    rested = [and_(attempts == number, last <= now - delay) for number, delay in enumerate(_DELAYS, 1)]
    rested.append(and_(attempts > len(_DELAYS), last <= now - _DELAYS[-1]))
    is_first_of_day = ~exists().where(HarvestRun.harvest_date == run.day, HarvestRun.started_at < run.began, IS_HARVEST)
    if run.midnight is not None:
        is_first_of_day = last < run.midnight
    # A time in the future comes from a wrong clock.
    return or_(attempts == 0, last.is_(None), last > now, and_(last < run.began, or_(is_first_of_day, *rested)))


def number_waiting(session: Session) -> int:
    """The number of deliveries that wait."""
    return session.scalars(select(func.count()).where(ReportDelivery.status == "queued")).one()


def _parcels(
    session_factory: Callable[[], Session], report_ids: Sequence[int], due: ColumnElement[bool], backend: MailBackend
) -> list[_Parcel]:
    """These reports as letters to the recipients with a due delivery."""
    parcels, which = [], {"reports": report_ids}
    with session_factory() as session:
        recipients = grouped((row[0], row[1]) for row in session.execute(_RECIPIENTS.where(due), which))
        for report_id, kind, message_id, content, created_at in session.execute(_LETTERS, which):
            for group in backend.parcels(recipients.get(report_id, [])):
                parcels.append(_Parcel(report_id, kind, Letter(message_id, content, created_at, group)))
    return parcels


_RECIPIENTS = (
    select(_DELIVERIES.c.report_id, _DELIVERIES.c.recipient)
    .where(_DELIVERIES.c.report_id.in_(bindparam("reports", expanding=True)), _DELIVERIES.c.status == "queued")
    .order_by(_DELIVERIES.c.delivery_id)
)
_LETTERS = (
    select(_OUTBOX.c.report_id, _OUTBOX.c.kind, _OUTBOX.c.message_id, _OUTBOX.c.content, _OUTBOX.c.created_at)
    .where(_OUTBOX.c.report_id.in_(bindparam("reports", expanding=True)))
    .order_by(_OUTBOX.c.report_id)
)
_ATTEMPTED = (
    update(_DELIVERIES)
    .where(_DELIVERIES.c.status == "queued")
    .values(status=bindparam("state"), last_error=bindparam("error"), last_attempt_at=bindparam("now"))
    .values(
        attempts=_DELIVERIES.c.attempts + 1,
        first_sent_at=case(
            (bindparam("state") == "sent", func.coalesce(_DELIVERIES.c.first_sent_at, bindparam("now"))),
            else_=_DELIVERIES.c.first_sent_at,
        ),
    )
)
_THIS = (_DELIVERIES.c.report_id == bindparam("report"), _DELIVERIES.c.recipient == bindparam("to"))
_ATTEMPTED_ONE = _ATTEMPTED.where(*_THIS)
NO_LONGER = "This address gets these reports no longer, so it is not tried again."
_NOT_ARRIVED = (
    select(
        HarvestSiteRun.site_schedule_id, ReportDelivery.delivery_id, ReportDelivery.recipient, ReportDelivery.last_error
    )
    .select_from(ReportDelivery)
    .join(ReportOutbox, ReportOutbox.report_id == ReportDelivery.report_id)
    .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == ReportOutbox.site_run_id)
    .where(
        or_(ReportDelivery.status == "queued", IS_REFUSED),
        ~ReportDelivery.by_hand,
        ReportOutbox.created_at <= bindparam("before", type_=_OUTBOX.c.created_at.type),
    )
)
_LEFT_OUT = (
    update(_DELIVERIES)
    .where(_DELIVERIES.c.delivery_id == bindparam("delivery"), _DELIVERIES.c.status != "sent")
    .values(status="refused", last_attempt_at=None, last_error=bindparam("error"))
)
_GIVEN_UP = _ATTEMPTED_ONE.where(_DELIVERIES.c.last_error == bindparam("error"))
_SETTLED = (
    update(_DELIVERIES)
    .where(*_THIS)
    .where(_DELIVERIES.c.status == "queued", _DELIVERIES.c.attempts > 0)
    .values(status="refused")
)


@frozen
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


@frozen
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
    query = query.where(IS_REFUSED, *([] if since is None else [ReportOutbox.created_at >= since]))
    refused = grouped((row.report_id, row) for row in session.scalars(query.order_by(ReportDelivery.report_id)))
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
    """The deliveries of a report by address, in lower case. Nobody else adds one until the end of the transaction."""
    report = select(ReportOutbox.report_id).where(ReportOutbox.report_id == report_id)
    session.execute(report.with_for_update()).all()
    known = session.scalars(select(ReportDelivery).where(ReportDelivery.report_id == report_id))
    return {row.recipient.casefold(): row for row in known}


def _queue(session: Session, report_id: int, address: str, deliveries: Mapping[str, ReportDelivery]) -> ReportDelivery:
    """Put the delivery to this address back into the outbox; a new one if there was none."""
    row = deliveries.get(address.casefold()) or ReportDelivery(report_id=report_id, recipient=address)
    session.add(row)
    row.status, row.attempts, row.last_error, row.last_attempt_at = "queued", 0, None, None
    return row


@frozen
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
        "refused": IS_REFUSED,
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
