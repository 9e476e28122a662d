"""The message of a delivery, its result, and the common interface of the mail backends, maildir.py and smtp.py.

A refusal is caused by one address, or by the mail server. A server that refuses one recipient and accepts others does
not know that address. A server that accepts no recipient has a fault of its own (a broken directory of users, a full
disk, a login that is missing): its refusals are temporary, although RFC 5321, section 4.2.1, calls each of them
permanent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from metaharvest.model.values import frozen


@frozen
class Letter:
    """One message to hand over, with its recipients."""

    message_id: str
    content: bytes
    created_at: datetime
    recipients: tuple[str, ...]


@frozen
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


@frozen
class Refusal:
    """A server refused this recipient of this report; `to_administrators`: administrators get the report."""

    report_id: int
    recipient: str
    to_administrators: bool


@dataclass(slots=True)
class Refusals:
    """The refusals of one run, or of one delivery by hand, until their cause is known.

    `unattended`: a single refusal stays in doubt, since no person is there to send it again.
    """

    unattended: bool = False
    accepts: bool = False
    _in_doubt: list[Refusal] = field(default_factory=list)

    def accepted(self) -> list[Refusal]:
        """The server accepted a message: return the refusals so far, which are the faults of their addresses."""
        self.accepts = True
        final, self._in_doubt = self._in_doubt, []
        return final

    def refused(self, refusals: Sequence[Refusal]) -> None:
        """The server refused these recipients, and has accepted no recipient so far."""
        self._in_doubt += refusals

    def close_round(self, tried_all: bool = True) -> list[Refusal]:
        """The round has ended: return the refusals that are final. `tried_all`: all waiting messages were tried.

        Several refusals without an acceptance are the server's fault, in spite of its answers to the next reports. A
        single one stays in doubt, for the next round of the run. After a round that broke off it stays in doubt, too:
        the server may refuse the others as well.
        """
        alone = len({refusal.recipient.casefold() for refusal in self._in_doubt}) == 1
        if alone and not any(refusal.to_administrators for refusal in self._in_doubt):
            return self.accepted() if tried_all and not self.unattended else []
        self._in_doubt = []
        return []
