"""The message of a delivery, its result, and the common interface of the mail backends, maildir.py and smtp.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Letter:
    """One message to hand over, with its recipients."""

    message_id: str
    content: bytes
    created_at: datetime
    recipients: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of an attempt: `sent`, `queued` (to be tried again) or `refused`.

    `stop`: further attempts make no sense this time.
    `there`: it counts as sent because this very message had arrived before.
    `put_off`: the server answered that it does not take mail for this recipient now.
    `by_server`: the server refused; otherwise the refusal needed no server.
    """

    status: str
    error: str | None = None
    stop: bool = False
    there: bool = False
    put_off: bool = False
    by_server: bool = False


class MailBackend(Protocol):
    """Takes messages; `at_once`: the number that is handed over before the database marks the deliveries."""

    at_once: int

    def parcels(self, recipients: Sequence[str]) -> list[tuple[str, ...]]:
        """The recipients in groups: each group gets one message."""

    def send(self, letters: Sequence[Letter]) -> list[Attempt]:
        """Hand over messages, at most `at_once`; return the result of each attempt, up to the first with `stop`.

        Errors of the other side raise nothing.
        """

    def probe(self) -> str | None:
        """Check, without sending, that messages can be handed over: None, or a sentence about the fault."""

    def close(self) -> None:
        """Close connections and files."""
