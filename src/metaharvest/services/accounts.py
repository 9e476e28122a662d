"""The accounts of the console: who may sign in, links, sessions, users, and keys of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import timedelta
from urllib.parse import urlencode

from sqlalchemy.orm import Session

from metaharvest.accounts import api_keys, sessions, users
from metaharvest.accounts.api_keys import Call, Key
from metaharvest.accounts.audit import Decision, Values, changed
from metaharvest.accounts.sessions import SignedIn
from metaharvest.accounts.users import User
from metaharvest.config.field_types import check_email
from metaharvest.database.clock import database_now
from metaharvest.database.hashed_tokens import new_token
from metaharvest.errors import DatabaseUnavailable, RequestError, value_errors
from metaharvest.mail.notices import send_notice
from metaharvest.model.kinds import GRANTED, Role, role_of
from metaharvest.model.values import frozen
from metaharvest.services.harvester import Harvester
from metaharvest.sites.registry import sites_of_contact
from metaharvest.text import one_line

__all__ = ["Key", "User", "new_token"]

LINK_LIFE = timedelta(hours=24)
_MOST_LINKS = 5
"""The most links that are mailed to one address in an hour, so that nobody can fill a mailbox."""

SESSION_LIFE = timedelta(days=7)
_SEEN_EVERY = timedelta(minutes=5)
"""The age of last_seen_at after which a request writes it again."""

_LONGEST_NAME = 200
_LONGEST_KEY_NAME = 100
KEY_PREFIX = "mh_"
"""The beginning of each key of the API, by which people and scanners of secrets know it."""

FIRST_OPERATOR = "operator@localhost.localdomain"
"""The address of the operator for whom serve prints a link while there are no users."""


@frozen
class Visitor:
    """The person behind a request. `sites` are the sites of a contact: names by number.

    `by_proxy`: a trusted web server in front named the person.
    """

    address: str = ""
    name: str = ""
    role: Role = Role.PUBLIC
    sites: Mapping[int, str] = field(default_factory=dict)
    session_id: int | None = None
    by_proxy: bool = False

    def owns(self, name: str) -> bool:
        """True if the visitor is a contact of the site of this name."""
        return name in self.sites.values()


NOBODY = Visitor()


@frozen
class Identity:
    """A person at a provider of OpenID Connect; `address` is empty unless the provider verified it."""

    issuer: str
    subject: str
    address: str
    name: str


# -- who


def visitor_of_session(harvester: Harvester, token: str) -> Visitor:
    """The person whose browser has this token; NOBODY if the session has ended, or the address has no role any more."""
    now = harvester.now()
    with harvester.reading() as session:
        found = sessions.find_session(session, token, now)
        if found is None:
            return NOBODY
        visitor = _visitor(session, found.address)
    if visitor.role is Role.PUBLIC:
        return NOBODY
    if now - found.last_seen_at > _SEEN_EVERY:
        # A busy database must not delay the page.
        with suppress(DatabaseUnavailable), harvester.noting() as session:
            sessions.note_seen(session, found.session_id, now)
    return replace(visitor, session_id=found.session_id)


def visitor_of_address(harvester: Harvester, address: str) -> Visitor:
    """The person with this address: a user, a contact of sites, or NOBODY."""
    return harvester.read(_visitor, address.strip().lower())


def _visitor(session: Session, address: str) -> Visitor:
    user = users.find_user(session, address)
    if user and user.disabled_at:
        return NOBODY
    sites = sites_of_contact(session, address)
    if user:
        return Visitor(address, user.name, user.role, sites)
    return Visitor(address, "", Role.CONTACT, sites) if sites else NOBODY


# -- links and sessions


def mail_link(harvester: Harvester, address: str, url: str, to: str = "") -> bool:
    """Mail a link that signs a person in, if a user or a contact has the address; true if it was sent.

    `url` is the public address of the server, `to` a page of the console for afterwards. An address gets at most five
    links in an hour.
    """
    try:
        address = _checked_address(address)
    except RequestError:
        return False
    now, token = harvester.now(), new_token()
    with harvester.writing() as session:
        may_sign_in = _visitor(session, address).role is not Role.PUBLIC
        if not may_sign_in or sessions.links_since(session, address, now - timedelta(hours=1)) >= _MOST_LINKS:
            return False
        sessions.add_link(session, token, address, now, now + LINK_LIFE)
    name = one_line(harvester.settings.harvester.name)
    paragraphs = (
        f"This link signs you in to the console of {name}. It works once, within 24 hours:",
        f"{url}/console/link/{token}" + (f"?{urlencode({'next': to})}" if to else ""),
        "If you did not ask for it, ignore this mail: nothing happens without the link.",
    )
    return send_notice(harvester.settings, address, f"[{name}] Your link to sign in", paragraphs, now)


def new_link(harvester: Harvester, address: str) -> str:
    """The token of a new link that signs in the person with this address, once, within 24 hours."""
    token, now = new_token(), harvester.now()
    harvester.write(sessions.add_link, token, address.strip().lower(), now, now + LINK_LIFE)
    return token


def address_of_link(harvester: Harvester, token: str) -> str | None:
    """The address that a link would sign in; None if it is spent, expired or unknown. Nothing changes."""
    link = harvester.read(sessions.find_link, token, harvester.now())
    return link.address if link else None


def spend_link(harvester: Harvester, token: str, user_agent: str) -> str:
    """Spend a link; returns the token of the session that it opens.

    Raises RequestError if the link is spent, expired or unknown, or its address may no longer sign in.
    """
    now = harvester.now()
    with harvester.writing() as session:
        link = sessions.find_link(session, token, now)
        if link is None or not sessions.spend(session, link, now):
            raise RequestError("This link was used before, or it is older than 24 hours. Please ask for a new one.")
        if _visitor(session, link.address).role is Role.PUBLIC:
            raise RequestError(f"{one_line(link.address)} may no longer sign in here.")
        return _open(session, harvester, link.address, user_agent)


def open_session(harvester: Harvester, address: str, user_agent: str) -> str:
    """Open a session for an address that was proved in another way; returns its token."""
    return harvester.write(_open, harvester, address, user_agent)


def session_of_identity(harvester: Harvester, identity: Identity, user_agent: str) -> str | None:
    """Open a session for a person at a provider of OpenID Connect; returns its token, None if the person has no role.

    A user is known by issuer and subject; before the first sign-in by the verified address. A user who is bound to
    another subject is not found by the address: the provider may have given it to somebody else.
    """
    address = identity.address.strip().lower()
    with harvester.writing() as session:
        user = users.find_subject(session, identity.issuer, identity.subject)
        if user is None and address and users.find_user(session, address):
            if not users.bind_subject(session, address, identity.issuer, identity.subject):
                return None
            harvester.audit(session, _decision("users.bind", address, after={"issuer": identity.issuer}))
        elif user is not None:
            address = user.address
        if not address or _visitor(session, address).role is Role.PUBLIC:
            return None
        return _open(session, harvester, address, user_agent)


def _open(session: Session, harvester: Harvester, address: str, user_agent: str) -> str:
    """Open a session; returns its token."""
    token, now = new_token(), harvester.now()
    sessions.open_session(session, token, address, now, now + SESSION_LIFE, user_agent=one_line(user_agent, 300))
    return token


def sessions_of(harvester: Harvester, address: str) -> Sequence[SignedIn]:
    """The open sessions of this address, the last seen first."""
    return harvester.read(sessions.sessions_of, address, harvester.now())


def close_session(harvester: Harvester, session_id: int, address: str) -> bool:
    """End a session of this address; false if it has no such session."""
    return harvester.write(sessions.close_session, session_id, address)


# -- users


def list_users(harvester: Harvester) -> Sequence[User]:
    """All users in the order of their addresses."""
    return harvester.read(users.read_users)


def read_user(harvester: Harvester, address: str) -> User:
    """The user with this address. Raises RequestError if there is none."""
    return harvester.read(_found_user, address.strip().lower())


def add_user(harvester: Harvester, address: str, role: str, name: str = "") -> User:
    """Add a user. Raises RequestError if the address, the role or the name cannot be used."""
    address, granted, name = _checked_address(address), _checked_role(role), _checked_name(name)
    with harvester.writing() as session:
        if not users.add_user(session, address, name, granted, harvester.now()):
            raise RequestError.about("address", f"There is a user with the address {address} already.")
        harvester.audit(session, _decision("users.add", address, after={"role": granted.word, "name": name}))
        return _found_user(session, address)


def edit_user(
    harvester: Harvester,
    address: str,
    *,
    role: str | None = None,
    name: str | None = None,
    enabled: bool | None = None,
    unbind: bool = False,
) -> User:
    """Change a user; what is None stays. Disabling ends the sessions. All of it or nothing is changed.

    `unbind`: forget the issuer and subject, so that the next sign-in by OpenID Connect finds the user by the address.
    Raises RequestError; also if there are none.
    """
    address = address.strip().lower()
    with harvester.writing() as session:
        user = _found_user(session, address)
        if unbind:
            if not user.issuer:
                raise RequestError(f"{address} is not known to a provider of OpenID Connect.")
            users.unbind(session, address)
            harvester.audit(session, _decision("users.unbind", address, before={"issuer": user.issuer}))
        granted = user.role if role is None else _checked_role(role)
        disabled_at = user.disabled_at
        if enabled is not None:
            disabled_at = None if enabled else user.disabled_at or harvester.now()
        if granted is not Role.OPERATOR or disabled_at:
            _require_other_operator(session, user)
        users.edit_user(session, address, user.name if name is None else _checked_name(name), granted, disabled_at)
        if disabled_at:
            _end_access(session, address)
        edited = _found_user(session, address)
        before, after = changed(_values(user), _values(edited))
        if after:
            harvester.audit(session, _decision("users.edit", address, before, after))
        return edited


def remove_user(harvester: Harvester, address: str) -> None:
    """Remove a user, with the sessions and links. Raises RequestError."""
    address = address.strip().lower()
    with harvester.writing() as session:
        user = _found_user(session, address)
        _require_other_operator(session, user)
        users.remove_user(session, address)
        _end_access(session, address)
        harvester.audit(session, _decision("users.remove", address, before=_values(user)))


def first_link(harvester: Harvester) -> str | None:
    """The token of a link for the first operator, if there are no users yet; None if there are some.

    Only the embedded default has it: a SQLite file, which nobody else uses.
    """
    if not harvester.settings.database.url.startswith("sqlite"):
        return None
    with harvester.writing() as session:
        everyone = users.read_users(session)
        if any(user.address != FIRST_OPERATOR for user in everyone):
            return None
        if not everyone:
            users.add_user(session, FIRST_OPERATOR, "Operator", Role.OPERATOR, harvester.now())
    return new_link(harvester, FIRST_OPERATOR)


def forget_account(session: Session, address: str) -> int:
    """Remove the user with this address, its sessions and links, and answers of the API that name it.

    Returns the number of rows. Raises RequestError for the only operator.
    """
    address = address.lower()
    user = users.find_user(session, address)
    if user:
        _require_other_operator(session, user)
        users.remove_user(session, address)
    answers = api_keys.forget_answers_naming(session, address)
    return int(user is not None) + answers + _end_access(session, address)


def _values(user: User) -> Values:
    return {"role": user.role.word, "name": user.name, "state": "disabled" if user.disabled_at else "enabled"}


def _decision(action: str, subject: str, before: Values | None = None, after: Values | None = None) -> Decision:
    return Decision(action, action.partition(".")[0][:-1], subject, before=before, after=after)


def _end_access(session: Session, address: str) -> int:
    return sessions.close_sessions_of(session, address) + sessions.remove_links_of(session, address)


def _require_other_operator(session: Session, user: User) -> None:
    if user.role is Role.OPERATOR and not user.disabled_at and not users.other_operators(session, user.address):
        raise RequestError(f"{one_line(user.address)} is the only operator. Make another user an operator first.")


def _found_user(session: Session, address: str) -> User:
    user = users.find_user(session, address)
    if user is None:
        raise RequestError(f"There is no user with the address {one_line(address)}.")
    return user


def _checked_address(address: str) -> str:
    with value_errors("address"):
        checked = check_email(address).lower()
    if len(checked) > 320:
        raise RequestError("An address has at most 320 characters.")
    return checked


def _checked_name(name: str) -> str:
    checked = " ".join(name.split())
    if len(checked) > _LONGEST_NAME or one_line(checked, _LONGEST_NAME) != checked:
        raise RequestError(f"A name has at most {_LONGEST_NAME} printable characters.")
    return checked


def _checked_role(role: str) -> Role:
    found = role_of(role)
    if found is None:
        raise RequestError(f"'{one_line(role)}' is not a role: choose {', '.join(each.word for each in GRANTED)}.")
    return found


# -- keys of the API


def list_keys(harvester: Harvester) -> Sequence[Key]:
    """All keys, the newest first."""
    return harvester.read(api_keys.read_keys)


def add_key(harvester: Harvester, name: str, role: str, created_by: str, days: int | None) -> str:
    """Make a key that is valid for this number of days, or until it is revoked; returns its secret.

    The secret is stored nowhere. Raises RequestError.
    """
    name, granted, now = " ".join(name.split()), _checked_role(role), harvester.now()
    if not name or len(name) > _LONGEST_KEY_NAME or one_line(name) != name:
        raise RequestError.about("name", f"The name of a key has 1 to {_LONGEST_KEY_NAME} printable characters.")
    if days is not None and not 1 <= days <= 3650:
        raise RequestError.about("days", "A key is valid for 1 to 3,650 days.")
    secret = KEY_PREFIX + new_token()
    with harvester.writing() as session:
        if api_keys.has_key(session, name, now):
            taken = f"There is a valid key named '{name}' already. Revoke it first, or take another name."
            raise RequestError.about("name", taken)
        expires_at = None if days is None else now + timedelta(days=days)
        api_keys.add_key(session, name, secret, granted, one_line(created_by, 320), now, expires_at)
        after = {"role": granted.word, "expires_at": expires_at}
        harvester.audit(session, _decision("keys.add", name, after=after))
    return secret


def revoke_key(harvester: Harvester, key_id: int) -> None:
    """Revoke the key with this number. Raises RequestError if there is none that is not revoked."""
    with harvester.writing() as session:
        name = api_keys.revoke(session, key_id, harvester.now())
        if name is None:
            raise RequestError(f"There is no key with the number {key_id} that could be revoked.")
        harvester.audit(session, _decision("keys.revoke", name))


def key_of(harvester: Harvester, secret: str) -> Key | None:
    """The valid key with this secret; None if there is none."""
    now = harvester.now()
    key = harvester.read(api_keys.find_key, secret, now)
    if key is None:
        return None
    if key.last_used_at is None or now - key.last_used_at > _SEEN_EVERY:
        with suppress(DatabaseUnavailable), harvester.noting() as session:
            api_keys.note_used(session, key.key_id, now)
    return key


# -- calls of the API that must not be carried out twice


def begin_call(harvester: Harvester, key_id: int, name: str, fingerprint: str) -> Call:
    """The call with this Idempotency-Key: a new one, which the caller carries out and then ends, or the earlier one.

    `fingerprint` stands for the whole request. An earlier call is kept for a day; one without an answer, for ten
    minutes.
    """
    with harvester.writing() as session:
        return api_keys.begin_call(session, key_id, name, fingerprint, database_now(session))


def end_call(harvester: Harvester, call_id: int, status: int, answer: str) -> None:
    """Keep the answer to a call."""
    harvester.write(api_keys.end_call, call_id, status, answer)


def forget_call(harvester: Harvester, call_id: int) -> None:
    """Forget a call that was not carried out, so that it can be repeated."""
    harvester.write(api_keys.forget_call, call_id)
