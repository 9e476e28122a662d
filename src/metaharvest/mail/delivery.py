"""The message of a delivery, its result, and the common interface of the mail backends, maildir.py and smtp.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Letter:
    """One message to be handed over, with its recipients."""

    message_id: str
    content: bytes
    created_at: datetime
    recipients: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """How an attempt ended: `sent`, `queued` (to be tried again) or `refused`.

    `stop`: there is no use in trying more letters this time.
    `there`: it counts as sent because this very message had arrived before.
    `put_off`: the server answered that it does not take mail for this recipient now.
    `by_server`: the server refused; otherwise it was known without asking it.
    """

    status: str
    error: str | None = None
    stop: bool = False
    there: bool = False
    put_off: bool = False
    by_server: bool = False


class MailBackend(Protocol):
    """Takes messages; `at_once`: the number that is handed over before the deliveries are marked in the database."""

    at_once: int

    def parcels(self, recipients: Sequence[str]) -> list[tuple[str, ...]]:
        """The recipients, grouped as they are served: a message each, or one for all."""

    def send(self, letters: Sequence[Letter]) -> list[Attempt]:
        """Hand over messages, at most `at_once`; return the result of each attempt, up to the first with `stop`.

        Errors of the other side raise nothing.
        """

    def probe(self) -> str | None:
        """Check whether messages could be handed over now, without sending any: None, or a sentence about the fault."""

    def close(self) -> None:
        """Close connections and files."""
