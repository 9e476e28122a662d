"""The mails with links, and about decisions, to people outside."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoorLetter:
    """The values of a mail: each template uses some. `network` is the name of the harvester."""

    network: str
    site: str
    url: str = ""
    address: str = ""
    link: str = ""
    days: int = 0
    proof: str = ""
    reason: str = ""
    schedule: str = ""
