"""The table of registrations: the only module that reads and writes its rows. The caller commits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import Session

from metaharvest.database.console_models import SiteRegistration
from metaharvest.database.hashed_tokens import hash_of
from metaharvest.errors import RequestError
from metaharvest.model import Unit
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen
from metaharvest.sites.registrations.policy import DAY, HOUR, LIFETIME, Counts, Kind, Proof, State, mailbox

OPEN = (State.ASKED, State.WAITING_FOR_PROOFS, State.WAITING_FOR_DECISION)


@frozen
class Registration:
    """A request of a person outside, without the tokens of its links.

    `list_token`: a comment with it in the list proves the source; empty for a source repository. `mail_problem`: why
    the last mail about it was not sent.
    """

    registration_id: int
    kind: Kind
    state: State
    site_id: int | None
    name: str
    source_kind: str
    url: str
    prefix: str | None
    set_spec: str | None
    address: str
    every: int
    unit: Unit
    host: str
    asked_at: datetime
    summary: str
    address_mails: int
    address_proved_at: datetime | None
    source_contacts: tuple[str, ...]
    source_mailed_to: str | None
    source_mailed_at: datetime | None
    source_mails: int
    source_proved_at: datetime | None
    source_proof: Proof | None
    mail_problem: str
    list_looks: int
    list_token: str
    decided_at: datetime | None
    decided_by: str
    reason: str


def add(session: Session, **columns: object) -> int:
    """Add a request with these columns; its number."""
    row = SiteRegistration(**columns, mailbox=mailbox(str(columns["address"])))
    session.add(row)
    session.flush()
    return row.registration_id


def change(session: Session, registration_id: int, /, before: Iterable[State] = OPEN, **columns: object) -> bool:
    """Change columns of a request; false if its state is none of `before`, as another person was faster."""
    table = SiteRegistration
    if "source_contacts" in columns:
        columns["source_contacts"] = json.dumps(columns["source_contacts"])
    changed = session.connection().execute(
        update(table)
        .where(table.registration_id == registration_id, table.state.in_([each.value for each in before]))
        .values(columns)
    )
    return changed.rowcount == 1


def count_mail(session: Session, found: Registration, counter: str, **columns: object) -> bool:
    """Count a mail in `address_mails` or `source_mails`; false if another request has counted one since `found`."""
    table = SiteRegistration
    number = getattr(table, counter)
    changed = session.connection().execute(
        update(table)
        .where(table.registration_id == found.registration_id, table.state == State.WAITING_FOR_PROOFS.value)
        .where(number == getattr(found, counter))
        .values({counter: number + 1, **columns})
    )
    return changed.rowcount == 1


def remove(session: Session, registration_id: int) -> None:
    """Delete a request that reached a limit."""
    session.execute(delete(SiteRegistration).where(SiteRegistration.registration_id == registration_id))


def counts(session: Session, host: str, address: str, now: datetime) -> Counts:
    """The numbers of recent requests: by this address and about this host in a day, by all in an hour."""
    table = SiteRegistration
    return Counts(
        _number(session, table.kind == Kind.SITE.value, table.asked_at > now - HOUR),
        _number(session, table.kind.in_((Kind.SITE, Kind.MOVE)), table.host == host, table.asked_at > now - DAY),
        _number(session, table.mailbox == mailbox(address), table.asked_at > now - DAY),
    )


def mailed_to(session: Session, address: str, now: datetime) -> int:
    """The number of requests whose source got a mail at this address in a day; `mailbox` says which are the same."""
    table = SiteRegistration
    query = select(table.source_mailed_to).where(table.source_mailed_at > now - DAY)
    return sum(mailbox(each) == mailbox(address) for each in session.scalars(query) if each)


def _number(session: Session, *conditions: ColumnElement[bool]) -> int:
    return session.scalars(select(func.count()).select_from(SiteRegistration).where(*conditions)).one()


def expire(session: Session, now: datetime) -> None:
    """Let requests expire whose proofs have not come in time, and delete requests whose source could not be read."""
    table = SiteRegistration
    old = table.asked_at < now - LIFETIME
    session.execute(delete(table).where(table.state == State.ASKED.value, table.asked_at < now - DAY))
    session.execute(
        update(table)
        .where(table.state == State.WAITING_FOR_PROOFS.value, old)
        .values(state=State.EXPIRED.value, address_token=None, source_token=None, list_token=None)
    )


def find(session: Session, registration_id: int) -> Registration:
    """The request of this number. Raises RequestError."""
    row = session.get(SiteRegistration, registration_id, populate_existing=True)
    if row is None:
        raise RequestError(f"There is no registration with the number {registration_id}.")
    return _registration(row)


def with_address_token(session: Session, token: str) -> Registration | None:
    """The request whose token was mailed to its own address; None if there is none."""
    return _found(session, SiteRegistration.address_token == hash_of(token))


def with_source_token(session: Session, token: str) -> Registration | None:
    """The request whose token was mailed to an address of its source; None if there is none."""
    return _found(session, SiteRegistration.source_token == hash_of(token))


def listed(session: Session, states: Iterable[State], after: int = 0, limit: int = 100) -> list[Registration]:
    """The requests in these states, oldest first, after the number `after`."""
    table = SiteRegistration
    query = select(table).where(table.state.in_([each.value for each in states]), table.registration_id > after)
    return [_registration(row) for row in session.scalars(query.order_by(table.registration_id).limit(limit))]


def of_site(session: Session, site_id: int, kind: Kind, states: Iterable[State]) -> list[Registration]:
    """The requests of a site of one kind in these states, newest first."""
    table = SiteRegistration
    here = table.site_schedule_id == site_id, table.kind == kind.value
    query = select(table).where(*here, table.state.in_([each.value for each in states]))
    return [_registration(row) for row in session.scalars(query.order_by(table.registration_id.desc()))]


def end_pauses(session: Session, site_id: int) -> bool:
    """End the stored pauses that contacts of a site have made; false if there are none."""
    table = SiteRegistration
    of_site = table.site_schedule_id == site_id, table.kind == Kind.PAUSE.value, table.state == State.ACCEPTED.value
    ended = session.connection().execute(update(table).where(*of_site).values(state=State.EXPIRED.value))
    return ended.rowcount > 0


def forget(session: Session, address: str) -> int:
    """Delete the requests of an address, and remove it from other requests that name it; the number of both."""
    table = SiteRegistration
    same = address.casefold()
    number = 0
    # Compared here: lower() of SQLite changes only A to Z.
    for row in session.scalars(select(table)):
        if row.address.casefold() == same:
            number += 1
            if row.kind != Kind.PAUSE.value:
                session.delete(row)
                continue
            # A pause stays without its address, so that other contacts can end it.
            row.address, row.mailbox = "", ""
        if row.source_mailed_to is not None and row.source_mailed_to.casefold() == same:
            row.source_mailed_to, row.source_token = None, None
            number += 1
        contacts = json.loads(row.source_contacts or "[]")
        left = [each for each in contacts if each.casefold() != same]
        if left != contacts:
            row.source_contacts = json.dumps(left)
            number += 1
    session.flush()
    return number


def _found(session: Session, condition: ColumnElement[bool]) -> Registration | None:
    row = session.scalars(select(SiteRegistration).where(condition)).first()
    return None if row is None else _registration(row)


def _registration(row: SiteRegistration) -> Registration:
    return record_of(
        Registration,
        row,
        kind=Kind(row.kind),
        state=State(row.state),
        site_id=row.site_schedule_id,
        every=row.frequency,
        unit=Unit(row.unit),
        summary=row.summary or "",
        source_contacts=tuple(json.loads(row.source_contacts or "[]")),
        source_proof=Proof(row.source_proof) if row.source_proof else None,
        mail_problem=row.mail_problem or "",
        list_token=row.list_token or "",
        decided_by=row.decided_by or "",
        reason=row.reason or "",
    )
