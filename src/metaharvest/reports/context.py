"""The values that all reports share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from metaharvest.config.settings import Settings
from metaharvest.config.target_settings import NamedTargets


@dataclass(frozen=True, slots=True)
class ReportContext:
    """The shared values of all reports of one call: the settings, the targets, and the time they are made at.

    `is_rehearsal`: they are printed and not sent, and nothing in them has been done. `is_stopped`: a signal ends the
    run, which is still open.
    """

    settings: Settings
    named_targets: NamedTargets
    now: datetime
    is_rehearsal: bool = False
    is_stopped: bool = False

    @property
    def limit(self) -> int:
        """The number of lines that a group shows."""
        return self.settings.reports.lines_per_group


@dataclass(frozen=True, slots=True)
class TableNote:
    """The note about the table of all documents: a sentence, and a few words for use after `and 9 more`."""

    sentence: str = ""
    where: str = ""


NO_TABLE = TableNote()


@dataclass(frozen=True, slots=True)
class Total:
    """One number among the totals; `tone` is good, doubtful, bad or plain. `change`: to the last harvest, if known."""

    label: str
    number: int
    tone: str
    change: int = 0

    @property
    def changed(self) -> str:
        """The change as people write it: `+3`, `-2`; empty if there is none."""
        return f"{self.change:+,}" if self.change else ""
