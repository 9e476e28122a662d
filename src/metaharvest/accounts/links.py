"""Links that sign people in: mailed or printed, and stored as hashes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from metaharvest.database.console_models import ConsoleLink
from metaharvest.database.hashed_tokens import hash_of
from metaharvest.model.mappings import record_of


@dataclass(frozen=True, slots=True)
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
