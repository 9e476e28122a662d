"""The standing of a document: one sentence that says why it is, or is not, in the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from metaharvest.database.models import DocumentWithdrawal
from metaharvest.model import OutcomeKind
from metaharvest.queries.departures import departure
from metaharvest.queries.history import DocumentEvent, DocumentHistory, ListingSite
from metaharvest.queries.last_findings import GOOD
from metaharvest.queries.records import StoredFinding
from metaharvest.text import one_line

_FAILED = {
    OutcomeKind.ACCESS_ERROR.value: "could not be fetched",
    OutcomeKind.INVALID.value: "is not valid",
    OutcomeKind.UPLOAD_ERROR.value: "was not accepted",
    OutcomeKind.DEFERRED.value: "was put off to a later run",
}
_MESSAGE = 400


@dataclass(frozen=True, slots=True)
class Standing:
    """The sentence; `is_held`: the target has a revision; `is_well`: it is the one that its site lists.

    `findings` are from its last check, errors first. `is_withdrawn`: no harvest brings it back.
    """

    sentence: str
    is_held: bool
    is_well: bool
    is_withdrawn: bool
    findings: tuple[StoredFinding, ...]


def document_standing(session: Session, known: DocumentHistory) -> Standing:
    """The standing of the document with this history."""
    gone = departure(session, known.document_id)
    withdrawal = session.get(DocumentWithdrawal, known.document_id)
    is_withdrawn = withdrawal is not None and withdrawal.document_id == known.document_id
    return standing_of(known, gone, is_withdrawn)


def standing_of(known: DocumentHistory, gone: str, is_withdrawn: bool) -> Standing:
    """The standing from the history alone; `gone` is the sentence about the deletion, empty if there was none. Pure."""
    row = _main(known)
    findings = _last_findings(known.history, row)
    if gone or is_withdrawn:
        return Standing(f"It is not in the target. {gone}".rstrip(), False, False, is_withdrawn, findings)
    revisions = [each.revision for each in known.revisions if each.repository == "embedded"]
    revisions += [each.repository_revision for each in known.listed]
    held = max((each for each in revisions if each is not None), default=None)
    is_well = held is not None and row is not None and row.outcome in GOOD and not row.missing_since
    return Standing(_sentence(held, row, findings), held is not None, is_well, False, findings)


def _main(known: DocumentHistory) -> ListingSite | None:
    """The entry that decides: of a registered site, of the owner before others, the highest revision."""
    owners = {owner.site_id for owner in known.owners}
    rows = [row for row in known.listed if row.registered]
    return max(rows, key=lambda row: (row.site_id in owners, row.revision or 0), default=None)


def _last_findings(events: Sequence[DocumentEvent], row: ListingSite | None) -> tuple[StoredFinding, ...]:
    """The findings of the last event of this entry."""
    if row is None:
        return ()
    own = [each for each in events if each.site_id == row.site_id and each.revision == row.revision and each.outcome]
    found = own[-1].findings if own and (own[-1].outcome == row.outcome or row.outcome in GOOD) else ()
    return tuple(sorted(found, key=lambda each: each.level != "error"))


def _sentence(held: int | None, row: ListingSite | None, findings: Sequence[StoredFinding]) -> str:
    begins = "It is not in the target" if held is None else f"Revision {held} is in the target"
    if row is None:
        return f"{begins}: no site lists it." if held is None else f"{begins}, but no site lists it any longer."
    site = f"the site {row.site}"
    listed = "it" if row.revision is None else f"revision {row.revision}"
    if row.outcome in _FAILED:
        joint = ":" if held is None else ", but"
        its = "it" if held is None and row.revision is None else f"{listed} of {site}"
        since = f" since {row.failing_since}" if row.failing_since else ""
        return f"{begins}{joint} {its} {_FAILED[row.outcome]}{since}.{_reason(findings)}"
    if row.missing_since:
        return f"{begins}. A full list of {site} has not named it since {row.missing_since}."
    if row.outcome == OutcomeKind.FILTERED.value:
        return f"{begins}. {site[0].upper()}{site[1:]} lists {listed}, which is left out.{_reason(findings)}"
    if row.outcome == OutcomeKind.STALE.value:
        return f"{begins}. The list of {site} is older: it names {listed}."
    if row.outcome in GOOD:
        if held is None:
            return f"{begins}: the harvests of {site} are rehearsals. They found no error in {listed}."
        return f"{begins}, as {site} lists it."
    if row.outcome is None:
        return f"{begins}. {site[0].upper()}{site[1:]} lists {listed}; no harvest has decided about it yet."
    return f"{begins}. {site[0].upper()}{site[1:]} lists {listed}: {row.outcome}.{_reason(findings)}"


def _reason(findings: Sequence[StoredFinding]) -> str:
    return f" {one_line(findings[0].message, _MESSAGE)}" if findings else ""
