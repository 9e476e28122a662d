"""Compares a valid list with the last one: it may have lost many entries, or single documents. Pure.

A document that is missing in a list is not deleted: a finding reports it, and people decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from metaharvest.journal.log_rows import LogRow
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.model import MAX_FINDINGS, Finding, Level
from metaharvest.problems.attention import SHRANK
from metaharvest.text import counted

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


def vanished(entries: Sequence[LedgerEntry], reported: int) -> LogRow:
    """The row about documents that the target has and the list no longer names.

    The first 100 of a list are named one by one, the others are counted. `reported`: the number that was reported
    before.
    """
    were = counted(len(entries), "document is", "documents are")
    message = f"{were} listed no longer; the repository keeps what it has."
    findings = [_vanished(entry) for entry in entries[: max(MAX_FINDINGS - reported, 0)]]
    if len(findings) < len(entries):
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
