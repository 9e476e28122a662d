"""The log rows about harvest lists: a list was read, it lost entries, or a spot check found another document behind it.

A document that is missing in a list is not deleted: a finding reports it, and people decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from enum import Enum, auto

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestLog
from metaharvest.journal import totals
from metaharvest.journal.log_rows import LogRow, Stamp, whose, write_log
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.ledger.spot_check_rows import CHANGED, DueCheck, note_looks
from metaharvest.model import MAX_FINDINGS, Finding, Level, ListedDocument, ListVersion, SiteRun
from metaharvest.model.values import frozen
from metaharvest.problems.attention import SHRANK
from metaharvest.sites.registry import forget_lists
from metaharvest.text import counted, shown_url


@frozen
class ListNote:
    """A fetched, valid list and the number of its documents; `unchanged`: it is the one of the last harvest.

    `findings` are warnings about its address.
    """

    site_run: SiteRun
    unchanged: bool
    listed: int
    findings: tuple[Finding, ...]
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
    compared = _read_before(session, [note.site_run for note in notes])
    write_log(session, [(row, whose(note.site_run)) for note in notes for row in note.rows()], stamp)
    changed = [note for note in notes if not note.unchanged]
    _compare(session, [note for note in changed if note.site_run.site_run_id not in compared], stamp)
    # From here on the ledger follows the new list: until all of it is done, it mirrors neither.
    if changed:
        forget_lists(session, [note.site_run.site.site_id for note in changed])


def _read_before(session: Session, site_runs: Sequence[SiteRun]) -> Collection[int]:
    """The resumed site runs, by number, whose list was read before they were interrupted: then it was compared."""
    resumed = [site_run.site_run_id for site_run in site_runs if site_run.resumed]
    if not resumed:
        return ()
    # The index of the log has the rows of lists before the rows of documents.
    of_list = (HarvestLog.site_run_id.in_(resumed), HarvestLog.document_id.is_(None))
    is_read = HarvestLog.harvest_operation_code == "ValidateHarvestListSuccess"
    read = session.scalars(select(HarvestLog.site_run_id).where(*of_list, is_read))
    return {site_run_id for site_run_id in read if site_run_id is not None}


def _compare(session: Session, notes: Sequence[ListNote], stamp: Stamp) -> None:
    """Log the changed lists that have lost many entries."""
    before = totals.last_listings(session, [note.site_run.site.site_id for note in notes]) if notes else {}
    for note in notes:
        last = before.get(note.site_run.site.site_id)
        # Removing duplicate entries does not count as loss.
        if last is not None and (row := shrank(note.listed, last.listed - last.duplicates)):
            write_log(session, [(row, whose(note.site_run))], stamp)


_LOST_MUCH = 0.2
_FEW = 5
"""A list has shrunk if it lost at least this part of its entries, and at least this number."""


def shrank(listed: int, before: int) -> LogRow | None:
    """The row about a list that names `listed` documents, fewer than at the last harvest; None if all is well."""
    if not is_much(before - listed, before):
        return None
    documents = counted(listed, "document")
    message = f"The list names {documents}; at the last harvest it named {before:,}."
    remedy = (
        "If the list was cut short by mistake, put the whole list back. The repository keeps what it has of the others."
    )
    return LogRow("ValidateHarvestListWarning", message, (Finding(SHRANK, message, remedy, Level.WARNING),))


def is_much(lost: int, before: int) -> bool:
    """True if a list that named `before` documents, and has `lost` this number, has shrunk."""
    return lost >= max(_FEW, _LOST_MUCH * before)


def unconfirmed(entry: LedgerEntry) -> LogRow:
    """The row about a pending upload of a revision that the list no longer names."""
    document = ListedDocument(entry.document_id, entry.revision, entry.document_type, entry.url)
    message = f"It is not known whether {document.docid} arrived, and it is listed no longer."
    return LogRow("UploadUnconfirmed", message, (), document)


def vanished(entries: Sequence[LedgerEntry], reported: int = 0, number: int = 0) -> LogRow:
    """The row about documents that the target has and the list no longer names.

    The first 100 of a list are named one by one, the others are counted. `reported`: the number that was reported
    before. `number`: the number of the documents, if `entries` has only the first ones.
    """
    number = number or len(entries)
    were = counted(number, "document is", "documents are")
    message = f"{were} listed no longer; the repository keeps what it has."
    findings = [_vanished(entry) for entry in entries[: max(MAX_FINDINGS - reported, 0)]]
    if len(findings) < number:
        findings.insert(0, Finding("list.vanished", message, _IF_BY_MISTAKE, Level.WARNING))
    return LogRow("ValidateHarvestListWarning", message, tuple(findings))


_IF_BY_MISTAKE = "If it was left out by mistake, put it back into the list. If it is to go, ask the administrator."


def _vanished(entry: LedgerEntry) -> Finding:
    held = entry.revision if entry.target_revision is None else entry.target_revision
    return Finding(
        "list.vanished",
        f"{entry.document_id} is listed no longer; the repository keeps it, at revision {held}.",
        _IF_BY_MISTAKE,
        Level.WARNING,
        docid=f"{entry.document_id}.{entry.revision}",
    )


class Seen(Enum):
    """The result: the bytes that the target has, other ones, or nothing, as it could not be fetched."""

    SAME = auto()
    OTHER = auto()
    NOTHING = auto()


@frozen
class SpotCheck:
    """A spot check of a document. `version` is the server's name for the bytes that the target has."""

    due: DueCheck
    seen: Seen
    version: ListVersion


def write_spot_checks(session: Session, site_run: SiteRun, looks: Sequence[SpotCheck], stamp: Stamp) -> None:
    """Log the documents that have changed or were put back; note in the ledger that these documents were checked.

    A document that could not be fetched is left out: nobody needs it in this run.
    """
    write_log(session, [(row, whose(site_run)) for look in looks for row in _rows(look)], stamp)
    note_looks(session, [(look.due, look.version) for look in looks], stamp.today)


def _rows(look: SpotCheck) -> Iterator[LogRow]:
    document = look.due.document
    if look.seen is Seen.OTHER:
        yield LogRow("ValidateDocWarning", f"{document.docid} was changed at its URL.", (_changed(look.due),), document)
    elif look.seen is Seen.SAME and look.due.was_changed:
        # problems/follow.py knows by this row that the document is corrected.
        yield LogRow("MetacatHasDoc", f"{document.docid} is again as the repository has it.", (), document)


def _changed(due: DueCheck) -> Finding:
    revision = due.document.revision
    return Finding(
        CHANGED,
        f"The document was changed, but is still listed as revision {revision}: the repository has other bytes of it.",
        f"Raise the revision to {revision + 1}, in the list and in the document's packageId: then the change comes in. "
        "If nothing was to change, put the document back as it was.",
        Level.WARNING,
    )
