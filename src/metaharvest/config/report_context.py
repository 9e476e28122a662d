"""The settings and values that all reports share. The journal has them before the first report is made."""

from __future__ import annotations

from datetime import datetime

from metaharvest.config.settings import Settings
from metaharvest.config.target_settings import NamedTargets
from metaharvest.model import RunStatus
from metaharvest.model.values import frozen


@frozen
class ReportContext:
    """The shared values of all reports of one call: the settings, the targets, and the time they are made at.

    `is_rehearsal`: they are printed and not sent, and nothing in them has been done. `run_status`: the status
    with which the run ends, if it is still open.
    """

    settings: Settings
    named_targets: NamedTargets
    now: datetime
    is_rehearsal: bool = False
    run_status: RunStatus | None = None

    @property
    def limit(self) -> int:
        """The number of lines that a group shows."""
        return self.settings.reports.lines_per_group
