"""Writes the results of spot checks: documents that were fetched again although their site lists them unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from sqlalchemy.orm import Session

from metaharvest.journal.log_rows import LogRow, Stamp, whose, write_log
from metaharvest.ledger.spot_check_rows import CHANGED, DueCheck, note_looks
from metaharvest.model import Finding, Level, ListVersion, SiteRun


class Seen(Enum):
    """The result: the bytes that the target has, other ones, or nothing, as it could not be fetched."""

    SAME = auto()
    OTHER = auto()
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class SpotCheck:
    """A spot check of a document. `version` is the server's name for the bytes that the target has."""

    due: DueCheck
    seen: Seen
    version: ListVersion


def write(session: Session, site_run: SiteRun, looks: Sequence[SpotCheck], stamp: Stamp) -> None:
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
