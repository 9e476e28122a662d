"""The sessions of the console, and the links that open them: mailed or printed. Both are stored as hashes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from metaharvest.database.console_models import ConsoleLink, ConsoleSession
from metaharvest.database.hashed_tokens import hash_of
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen


@frozen
class SignedIn:
    """A session, and the address it is for; see ConsoleSession."""

    session_id: int
    address: str
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    user_agent: str


def open_session(
    session: Session, token: str, address: str, now: datetime, expires_at: datetime, *, user_agent: str = ""
) -> None:
    """Open a session for this address; the browser gets the token. Delete the sessions that have expired."""
    session.execute(delete(ConsoleSession).where(ConsoleSession.expires_at <= now))
    row = ConsoleSession(
        token_hash=hash_of(token),
        address=address,
        created_at=now,
        last_seen_at=now,
        expires_at=expires_at,
        user_agent=user_agent,
    )
    session.add(row)
    session.flush()


def find_session(session: Session, token: str, now: datetime) -> SignedIn | None:
    """The session of this token; None if there is none, or it has expired."""
    query = select(ConsoleSession).where(ConsoleSession.token_hash == hash_of(token), ConsoleSession.expires_at > now)
    row = session.scalars(query).one_or_none()
    return record_of(SignedIn, row) if row else None


def sessions_of(session: Session, address: str, now: datetime) -> Sequence[SignedIn]:
    """The sessions of this address, the last seen first."""
    query = select(ConsoleSession).where(ConsoleSession.address == address, ConsoleSession.expires_at > now)
    return [record_of(SignedIn, row) for row in session.scalars(query.order_by(ConsoleSession.last_seen_at.desc()))]


def note_seen(session: Session, session_id: int, now: datetime) -> None:
    """Store that a session was used now."""
    session.execute(update(ConsoleSession).where(ConsoleSession.session_id == session_id).values(last_seen_at=now))


def close_session(session: Session, session_id: int, address: str) -> bool:
    """End this session, if it is one of this address; true if it was."""
    query = delete(ConsoleSession).where(ConsoleSession.session_id == session_id, ConsoleSession.address == address)
    return bool(session.connection().execute(query).rowcount)


def close_sessions_of(session: Session, address: str) -> int:
    """End all sessions of this address; returns their number."""
    query = delete(ConsoleSession).where(ConsoleSession.address == address)
    return session.connection().execute(query).rowcount


# -- links


@frozen
class Link:
    """A link that can be spent, and its address."""

    link_id: int
    address: str


def add_link(session: Session, token: str, address: str, now: datetime, expires_at: datetime) -> None:
    """Store a link; delete expired links."""
    session.execute(delete(ConsoleLink).where(ConsoleLink.expires_at <= now))
    session.add(ConsoleLink(token_hash=hash_of(token), address=address, created_at=now, expires_at=expires_at))
    session.flush()


def find_link(session: Session, token: str, now: datetime) -> Link | None:
    """The link of this token, if it is not spent and has not expired."""
    query = select(ConsoleLink).where(
        ConsoleLink.token_hash == hash_of(token), ConsoleLink.spent_at.is_(None), ConsoleLink.expires_at > now
    )
    row = session.scalars(query).one_or_none()
    return record_of(Link, row) if row else None


def spend(session: Session, link: Link, now: datetime) -> bool:
    """Spend the link; false if another request was quicker."""
    query = update(ConsoleLink).where(ConsoleLink.link_id == link.link_id, ConsoleLink.spent_at.is_(None))
    return bool(session.connection().execute(query.values(spent_at=now)).rowcount)


def links_since(session: Session, address: str, since: datetime) -> int:
    """The number of links that were made for this address since then."""
    query = select(func.count()).where(ConsoleLink.address == address, ConsoleLink.created_at > since)
    return session.scalar(query) or 0


def remove_links_of(session: Session, address: str) -> int:
    """Delete all links of this address; returns their number."""
    query = delete(ConsoleLink).where(ConsoleLink.address == address)
    return session.connection().execute(query).rowcount
