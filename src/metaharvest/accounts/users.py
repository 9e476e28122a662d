"""The users of the console: people with a role over all sites."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from metaharvest.database.console_models import ConsoleUser
from metaharvest.model.kinds import Role, role_of
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen


@frozen
class User:
    """A user of the console. `disabled_at`: since then the user may not sign in.

    `issuer`: the provider of OpenID Connect at which the user is known by a subject; empty if there is none.
    """

    user_id: int
    address: str
    name: str
    role: Role
    created_at: datetime
    disabled_at: datetime | None
    issuer: str


def read_users(session: Session) -> Sequence[User]:
    """All users in the order of their addresses."""
    return [_user(row) for row in session.scalars(select(ConsoleUser).order_by(ConsoleUser.address))]


def find_user(session: Session, address: str) -> User | None:
    """The user with this address, which is in lower case; None if there is none."""
    row = session.scalars(select(ConsoleUser).where(ConsoleUser.address == address)).one_or_none()
    return _user(row) if row else None


def find_subject(session: Session, issuer: str, subject: str) -> User | None:
    """The user who is known to this issuer as `subject`."""
    query = select(ConsoleUser).where(ConsoleUser.issuer == issuer, ConsoleUser.subject == subject)
    row = session.scalars(query).one_or_none()
    return _user(row) if row else None


def bind_subject(session: Session, address: str, issuer: str, subject: str) -> bool:
    """Note that the user with this address is `subject` at the issuer; false if the user is another one there."""
    query = update(ConsoleUser).where(ConsoleUser.address == address, ConsoleUser.subject.is_(None))
    return bool(session.connection().execute(query.values(issuer=issuer, subject=subject)).rowcount)


def unbind(session: Session, address: str) -> None:
    """Forget the issuer and the subject of the user with this address."""
    query = update(ConsoleUser).where(ConsoleUser.address == address)
    session.execute(query.values(issuer=None, subject=None))


def add_user(session: Session, address: str, name: str, role: Role, now: datetime) -> bool:
    """Add a user, whose address is in lower case; false if there is one with this address."""
    try:
        with session.begin_nested():
            session.add(ConsoleUser(address=address, name=name, role=role.word, created_at=now))
    except IntegrityError:
        return False
    return True


def edit_user(session: Session, address: str, name: str, role: Role, disabled_at: datetime | None) -> None:
    """Store name, role and state of the user with this address."""
    values = {"name": name, "role": role.word, "disabled_at": disabled_at}
    session.execute(update(ConsoleUser).where(ConsoleUser.address == address).values(values))


def remove_user(session: Session, address: str) -> None:
    """Remove the user with this address."""
    session.execute(delete(ConsoleUser).where(ConsoleUser.address == address))


def other_operators(session: Session, address: str) -> int:
    """The number of users other than this one who are operators and may sign in.

    They stay operators until the end of the transaction: two operators cannot remove each other at the same moment.
    """
    query = select(ConsoleUser.address).where(ConsoleUser.role == Role.OPERATOR.word, ConsoleUser.disabled_at.is_(None))
    operators = session.scalars(query.order_by(ConsoleUser.user_id).with_for_update()).all()
    return sum(each != address for each in operators)


def _user(row: ConsoleUser) -> User:
    # An unknown word in the column gives no role.
    role = role_of(row.role) or Role.PUBLIC
    return record_of(User, row, role=role, issuer=row.issuer or "")
