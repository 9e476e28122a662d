"""Decides about the cause of a refusal: one address, or the mail server, which refuses all recipients for some hours.

A server that refuses one recipient and accepts others does not know that address. A server that accepts no recipient
has a fault of its own (a broken directory of users, a full disk, a login that is missing): its refusals are temporary,
although RFC 5321, section 4.2.1, calls each of them permanent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
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

    def close_round(self) -> list[Refusal]:
        """All waiting messages were tried: return the refusals that are final.

        Several refusals without an acceptance are the server's fault, in spite of its answers to the next reports. A
        single one stays in doubt, for the next round of the run.
        """
        alone = len({refusal.recipient.casefold() for refusal in self._in_doubt}) == 1
        if alone and not any(refusal.to_administrators for refusal in self._in_doubt):
            return [] if self.unattended else self.accepted()
        self._in_doubt = []
        return []
