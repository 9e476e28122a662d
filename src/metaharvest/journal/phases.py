"""The time of a site run's documents, phase by phase."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Phases:
    """Sums over the documents of one site run, in seconds; added to during the harvest.

    `server`: the site's server answers; `waiting`: for shared resources: connections to its host, places among all
    documents, memory; `checking`: also waiting for a free worker; `sending`: to a target outside of the harvester's
    database; `writing`: documents, log rows and ledger, without the commit that a group shares. The event loop adds to
    all but `writing`; only the writer's thread adds to that.
    """

    server: float = 0.0
    waiting: float = 0.0
    checking: float = 0.0
    sending: float = 0.0
    writing: float = 0.0

    def columns(self) -> dict[str, float]:
        """The columns of harvest_site_run."""
        storing = self.sending + self.writing
        sums = {"server": self.server, "waiting": self.waiting, "checking": self.checking, "storing": storing}
        return {f"{phase}_seconds": round(seconds, 3) for phase, seconds in sums.items()}


UNKNOWN = dict.fromkeys(Phases().columns())
"""The columns of a site run without measurements."""
