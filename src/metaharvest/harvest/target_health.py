"""Whether the target still answers, for one site run: after a few failures in a row it is not asked any more."""

from __future__ import annotations

from metaharvest.model import Finding

FAILURES_IN_A_ROW = 5


class TargetHealth:
    """Counts failures in a row; `given_up` has the findings of the last one, once there were enough."""

    def __init__(self) -> None:
        self._failures = 0
        self.given_up: tuple[Finding, ...] = ()

    def failed(self, findings: tuple[Finding, ...]) -> None:
        """The target did not answer."""
        self._failures += 1
        if self._failures >= FAILURES_IN_A_ROW:
            self.give_up(findings)

    def give_up(self, findings: tuple[Finding, ...]) -> None:
        """The target did not answer a question about very many documents."""
        self.given_up = findings

    def answered(self) -> None:
        """The target took a document, refused one, or said whether it has one."""
        self._failures = 0
