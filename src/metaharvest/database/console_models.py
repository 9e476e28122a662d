"""The tables of the console and the API, and the registrations of people outside."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import String

from metaharvest.database.base import KEY, TABLE, TEXT, Base


class ConsoleUser(Base):
    """A person with a role in the console: viewer, steward or operator. A contact of a site needs no row.

    `address` is in lower case. `issuer` and `subject` come from OpenID Connect, at the first sign-in that way.
    """

    __table_args__ = (UniqueConstraint("issuer", "subject", name="uq_console_user_subject"), TABLE)

    user_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    address: Mapped[str] = mapped_column(String(320), unique=True)
    name: Mapped[str] = mapped_column(String(200))
    role: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    issuer: Mapped[str | None] = mapped_column(String(255))
    subject: Mapped[str | None] = mapped_column(String(255))


class ConsoleSession(Base):
    """A browser that is signed in with an address, until `expires_at`. The hash of its cookie is stored.

    The role of the address is read at each request.
    """

    session_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    address: Mapped[str] = mapped_column(String(320), index=True)
    created_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    user_agent: Mapped[str] = mapped_column(String(300))


class ConsoleLink(Base):
    """A link that signs in the person with this address, once. Its hash is stored."""

    __table_args__ = (Index("ix_console_link_address", "address", "created_at"), TABLE)

    link_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    address: Mapped[str] = mapped_column(String(320))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    spent_at: Mapped[datetime | None]


class ApiKey(Base):
    """A key with which a program calls the API, in a role. Its hash is stored."""

    api_key_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    key_hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    created_by: Mapped[str] = mapped_column(String(320))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class ApiCall(Base):
    """A call of the API with an Idempotency-Key, and its answer. It is kept for a day."""

    __table_args__ = (UniqueConstraint("api_key_id", "idempotency_key", name="uq_api_call"), TABLE)

    api_call_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    api_key_id: Mapped[int] = mapped_column(KEY)
    idempotency_key: Mapped[str] = mapped_column(String(255))
    fingerprint: Mapped[str] = mapped_column(String(64))
    called_at: Mapped[datetime] = mapped_column(index=True)
    status: Mapped[int | None]
    answer: Mapped[str | None] = mapped_column(TEXT)


class SiteRegistration(Base):
    """A request of a person outside: a new site, or a change of a site that needs a proof or a steward's decision.

    sites/registrations/policy.py has kinds and states. `url` and `host` are the requested ones, `summary` is the
    result of the rehearsal. `address_token` was mailed to `address`, `source_token` to `source_mailed_to`: only their
    SHA-256 is stored. `list_token` is for a comment in the list, which everybody may read. `mailbox` is the address as
    it is counted. `address_mails` and `source_mails` count the mails with links, `mail_problem` says why the last mail
    was not sent. `source_contacts` are the addresses that the source names, as JSON. `list_looks` counts the requests
    for the comment. `reason` is the reason of a refusal, or the former
    address if the address changes.
    """

    registration_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(24), index=True)
    site_schedule_id: Mapped[int | None] = mapped_column(KEY, index=True)
    name: Mapped[str] = mapped_column(String(100))
    source_kind: Mapped[str] = mapped_column(String(32))
    url: Mapped[str] = mapped_column(TEXT)
    prefix: Mapped[str | None] = mapped_column(String(255))
    set_spec: Mapped[str | None] = mapped_column(TEXT)
    address: Mapped[str] = mapped_column(String(255))
    mailbox: Mapped[str] = mapped_column(String(255), index=True)
    frequency: Mapped[int]
    unit: Mapped[str] = mapped_column(String(16))
    host: Mapped[str] = mapped_column(String(255), index=True)
    asked_at: Mapped[datetime] = mapped_column(index=True)
    summary: Mapped[str | None] = mapped_column(TEXT)
    address_token: Mapped[str | None] = mapped_column(String(64), index=True)
    address_mails: Mapped[int] = mapped_column(default=0, server_default="0")
    address_proved_at: Mapped[datetime | None]
    list_token: Mapped[str | None] = mapped_column(String(64))
    list_looks: Mapped[int] = mapped_column(default=0, server_default="0")
    source_contacts: Mapped[str | None] = mapped_column(TEXT)
    source_token: Mapped[str | None] = mapped_column(String(64), index=True)
    source_mailed_to: Mapped[str | None] = mapped_column(String(255), index=True)
    source_mailed_at: Mapped[datetime | None]
    source_mails: Mapped[int] = mapped_column(default=0, server_default="0")
    source_proved_at: Mapped[datetime | None]
    source_proof: Mapped[str | None] = mapped_column(String(16))
    mail_problem: Mapped[str | None] = mapped_column(TEXT)
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[str | None] = mapped_column(String(255))
    reason: Mapped[str | None] = mapped_column(TEXT)
