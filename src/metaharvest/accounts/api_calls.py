"""Calls of the API with an Idempotency-Key: a call that is repeated gets the answer of the first one.

A process that is killed leaves a call without an answer. After the lease of the call another process may carry it out.

https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from metaharvest.database.console_models import ApiCall

_KEPT = timedelta(days=1)
_LEASE = timedelta(minutes=10)
"""The time for a call that is carried out: a multiple of what the slowest action takes, whose database waits."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call. `is_new`: the caller carries it out. Without a `status`, it has not ended."""

    call_id: int
    is_new: bool
    fingerprint: str
    status: int | None
    answer: str


def begin(session: Session, key_id: int, name: str, fingerprint: str, now: datetime) -> Call:
    """Begin a call, or find the earlier one of this key and this name. Calls of more than a day ago are forgotten.

    An earlier call that has no answer when its lease ends is begun again: its process has died. `now` is by the clock
    of the database.
    """
    session.execute(delete(ApiCall).where(ApiCall.called_at < now - _KEPT))
    session.execute(delete(ApiCall).where(ApiCall.status.is_(None), ApiCall.called_at < now - _LEASE))
    new = ApiCall(api_key_id=key_id, idempotency_key=name, fingerprint=fingerprint, called_at=now)
    try:
        with session.begin_nested():
            session.add(new)
    except IntegrityError:
        row = session.scalars(select(ApiCall).filter_by(api_key_id=key_id, idempotency_key=name)).one()
        return Call(row.api_call_id, False, row.fingerprint, row.status, row.answer or "")
    return Call(new.api_call_id, True, fingerprint, None, "")


def end(session: Session, call_id: int, status: int, answer: str) -> None:
    """Store the answer."""
    session.execute(update(ApiCall).where(ApiCall.api_call_id == call_id).values(status=status, answer=answer))


def forget(session: Session, call_id: int) -> None:
    """Delete a call."""
    session.execute(delete(ApiCall).where(ApiCall.api_call_id == call_id))


def forget_answers_naming(session: Session, address: str) -> int:
    """Delete the calls with this address in their answer; returns their number."""
    names = func.lower(ApiCall.answer).contains(address.lower(), autoescape=True)
    return session.connection().execute(delete(ApiCall).where(names)).rowcount
