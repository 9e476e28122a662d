"""What is doubtful about a list that is valid, seen beside the last one: it lost much, or it lost documents. Pure.

Nothing is deleted because a list names it no longer: somebody is told, and puts it back or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from metaharvest.journal.log_rows import LogRow
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.model import MAX_FINDINGS, Finding, Level
from metaharvest.reports.findings import SHRANK

_LOST_MUCH = 0.2
_FEW = 5
"""A list that lost so large a part of its entries, and no fewer than so many, shrank."""


def shrank(listed: int, before: int) -> LogRow | None:
    """The row about a list that names `listed` documents and named so many at the last harvest; None if all is well."""
    if not is_much(before - listed, before):
        return None
    documents = "1 document" if listed == 1 else f"{listed:,} documents"
    message = f"The list names {documents}; at the last harvest it named {before:,}."
    remedy = (
        "If the list was cut short by mistake, put the whole list back. The repository keeps what it has of the others."
    )
    return LogRow("ValidateHarvestListWarning", message, (Finding(SHRANK, message, remedy, Level.WARNING),))


def is_much(lost: int, before: int) -> bool:
    """Whether a list that named `before` documents, and has `lost` so many, shrank."""
    return lost >= max(_FEW, _LOST_MUCH * before)


def vanished(entries: Sequence[LedgerEntry], told: int) -> LogRow:
    """The row about documents that the repository has and the list names no longer.

    So many others of the same list are `told` already: 100 are told one by one, of the rest only the number.
    """
    were = "1 document is" if len(entries) == 1 else f"{len(entries):,} documents are"
    message = f"{were} listed no longer; the repository keeps what it has."
    findings = [_vanished(entry) for entry in entries[: max(MAX_FINDINGS - told, 0)]]
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
