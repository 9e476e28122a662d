"""The keys of the API: each has a role, and can expire and be revoked; and the calls with an Idempotency-Key.

A call that is repeated gets the answer of the first one. A process that is killed leaves a call without an answer.
After the lease of the call another process may carry it out.

https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from metaharvest.database.console_models import ApiCall, ApiKey
from metaharvest.database.hashed_tokens import hash_of
from metaharvest.model.kinds import Role, role_of
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen


@frozen
class Key:
    """A key of the API, without its secret."""

    key_id: int
    name: str
    role: Role
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    def is_valid(self, now: datetime) -> bool:
        """True if the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


def read_keys(session: Session) -> Sequence[Key]:
    """All keys, the newest first."""
    return [_key(row) for row in session.scalars(select(ApiKey).order_by(ApiKey.api_key_id.desc()))]


def find_key(session: Session, secret: str, now: datetime) -> Key | None:
    """The valid key with this secret."""
    row = session.scalars(select(ApiKey).where(ApiKey.key_hash == hash_of(secret))).one_or_none()
    key = _key(row) if row else None
    return key if key and key.is_valid(now) else None


def add_key(
    session: Session, name: str, secret: str, role: Role, created_by: str, now: datetime, expires_at: datetime | None
) -> None:
    """Store a key with this secret."""
    row = ApiKey(
        name=name,
        key_hash=hash_of(secret),
        role=role.word,
        created_by=created_by,
        created_at=now,
        expires_at=expires_at,
    )
    session.add(row)
    session.flush()


def revoke(session: Session, key_id: int, now: datetime) -> str | None:
    """Revoke the key with this number, and return its name; None if there is none, or it was revoked before."""
    query = update(ApiKey).where(ApiKey.api_key_id == key_id, ApiKey.revoked_at.is_(None)).values(revoked_at=now)
    if not session.connection().execute(query).rowcount:
        return None
    return session.scalar(select(ApiKey.name).where(ApiKey.api_key_id == key_id))


def has_key(session: Session, name: str, now: datetime) -> bool:
    """True if a valid key has this name."""
    query = select(ApiKey.api_key_id).where(
        ApiKey.name == name, ApiKey.revoked_at.is_(None), or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > now)
    )
    return session.scalars(query).first() is not None


def note_used(session: Session, key_id: int, now: datetime) -> None:
    """Store that a key was used now."""
    session.execute(update(ApiKey).where(ApiKey.api_key_id == key_id).values(last_used_at=now))


def _key(row: ApiKey) -> Key:
    return record_of(Key, row, key_id=row.api_key_id, role=role_of(row.role) or Role.PUBLIC)


# -- calls with an Idempotency-Key

_KEPT = timedelta(days=1)
_LEASE = timedelta(minutes=10)
"""The time for a call that is carried out: a multiple of what the slowest action takes, whose database waits."""


@frozen
class Call:
    """A call. `is_new`: the caller carries it out. Without a `status`, it has not ended."""

    call_id: int
    is_new: bool
    fingerprint: str
    status: int | None
    answer: str


def begin_call(session: Session, key_id: int, name: str, fingerprint: str, now: datetime) -> Call:
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


def end_call(session: Session, call_id: int, status: int, answer: str) -> None:
    """Store the answer."""
    session.execute(update(ApiCall).where(ApiCall.api_call_id == call_id).values(status=status, answer=answer))


def forget_call(session: Session, call_id: int) -> None:
    """Delete a call."""
    session.execute(delete(ApiCall).where(ApiCall.api_call_id == call_id))


def forget_answers_naming(session: Session, address: str) -> int:
    """Delete the calls with this address in their answer; returns their number."""
    names = func.lower(ApiCall.answer).contains(address.lower(), autoescape=True)
    return session.connection().execute(delete(ApiCall).where(names)).rowcount
