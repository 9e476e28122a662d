"""Notes that a list was read: its log rows, and the doubts after a comparison with the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from metaharvest.journal import list_shrinkage, totals
from metaharvest.journal.log_rows import LogRow, Stamp, whose, write_log
from metaharvest.model import Finding, SiteRun
from metaharvest.sites.registry import forget_lists
from metaharvest.text import counted, shown_url


@dataclass(frozen=True, slots=True)
class ListNote:
    """A fetched, valid list and the number of its documents; `unchanged`: it is the one of the last harvest.

    `findings` are warnings about its address.
    """

    site_run: SiteRun
    unchanged: bool
    listed: int
    findings: tuple[Finding, ...] = ()
    size: int = 0

    @property
    def site_id(self) -> int:
        """The site whose list it is."""
        return self.site_run.site.site_id

    def refused(self, reason: str) -> ListNote | None:
        """The same without findings; None if there are none."""
        return replace(self, findings=()) if self.findings else None

    def put_off(self) -> ListNote:
        """It stores no document."""
        return self

    def rows(self) -> list[LogRow]:
        """The log rows about it."""
        rows = [
            LogRow("GetHarvestListSuccess", f"The harvest list {shown_url(self.site_run.site.list_url)} was fetched."),
            LogRow(
                "ValidateHarvestListSuccess", f"The harvest list is valid and names {counted(self.listed, 'document')}."
            ),
        ]
        if self.unchanged:
            rows.append(LogRow("HarvestListUnchanged", "The harvest list is the one of the last harvest."))
        rows += [LogRow("ValidateHarvestListWarning", finding.message, (finding,)) for finding in self.findings]
        return rows


def write(session: Session, notes: Sequence[ListNote], stamp: Stamp) -> None:
    """Write these notes."""
    write_log(session, [(row, whose(note.site_run)) for note in notes for row in note.rows()], stamp)
    changed = [note for note in notes if not note.unchanged]
    _compare(session, changed, stamp)
    # From here on the ledger follows the new list: until all of it is done, it mirrors neither.
    if changed:
        forget_lists(session, [note.site_run.site.site_id for note in changed])


def _compare(session: Session, notes: Sequence[ListNote], stamp: Stamp) -> None:
    """Log the changed lists that have lost many entries."""
    before = totals.last_listings(session, [note.site_run.site.site_id for note in notes]) if notes else {}
    for note in notes:
        last = before.get(note.site_run.site.site_id)
        if last is None or note.site_run.resumed:
            continue
        # Removing duplicate entries does not count as loss.
        if row := list_shrinkage.shrank(note.listed, last.listed - last.duplicates):
            write_log(session, [(row, whose(note.site_run))], stamp)
