"""What is written into harvest_log and harvest_detail_log: values -> columns. Pure; journal.py writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metaharvest.database.models import OPERATIONS
from metaharvest.model import Finding, ListedDocument, Outcome, OutcomeKind
from metaharvest.sources.base import original_columns
from metaharvest.text import clean, shown_url

_PASSED_CHECKS = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.UPLOAD_ERROR)


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row of the log to be, with the findings that become its detail rows."""

    code: str
    message: str
    findings: tuple[Finding, ...] = ()
    document: ListedDocument | None = None
    outcome: Outcome | None = None

    def columns(self) -> dict[str, object]:
        """What this row itself says: when, by which run and of which site is the journal's to add."""
        level, _ = OPERATIONS[self.code]
        document, outcome = self.document, self.outcome
        return {
            "status": 1 if level == "error" else 0,
            "message": clean(self.message),
            "harvest_operation_code": self.code,
            "document_id": document.document_id if document else None,
            "revision": document.revision if document else None,
            "document_url": shown_url(document.url) if document else None,
            "outcome": outcome.kind.value if outcome else None,
            "target_revision": outcome.target_revision if outcome else None,
            "seconds": outcome.seconds if outcome else None,
            "size": outcome.size if outcome else None,
        }

    def details(self, log_id: int) -> list[Mapping[str, object]]:
        """The detail rows, one a finding."""
        return [_detail(log_id, finding, self.document) for finding in self.findings]


def outcome_rows(outcome: Outcome) -> list[LogRow]:
    """The rows of one document, those that the original wrote: fetched, checked, and last how it ended.

    The last has the outcome and the findings; warnings about a document that passed stay with the row of the check.
    """
    document, docid = outcome.document, outcome.document.docid
    rows: list[LogRow] = []
    if outcome.size is not None and outcome.kind is not OutcomeKind.ACCESS_ERROR:
        rows.append(LogRow("GetDocSuccess", f"{docid} was fetched: {outcome.size:,} bytes.", (), document))
    warnings: tuple[Finding, ...] = ()
    if outcome.size is not None and outcome.kind in _PASSED_CHECKS:
        warnings = tuple(finding for finding in outcome.findings if not finding.is_error)
        code = "ValidateDocWarning" if warnings else "ValidateDocSuccess"
        message = f"{docid} is valid{', but doubtful' if warnings else ''}."
        rows.append(LogRow(code, message, warnings, document))
    if outcome.unconfirmed:
        rows.append(LogRow("UploadUnconfirmed", f"It is not known whether {docid} arrived.", (), document))
    rest = tuple(finding for finding in outcome.findings if finding not in warnings)
    rows.append(LogRow(_code(outcome), _message(outcome), rest, document, outcome))
    return rows


_CODES = {
    OutcomeKind.INSERTED: "InsertDocSuccess",
    OutcomeKind.UPDATED: "UpdateDocSuccess",
    OutcomeKind.UNCHANGED: "MetacatHasDoc",
    OutcomeKind.STALE: "DocStale",
    OutcomeKind.DUPLICATE: "DocDuplicate",
    OutcomeKind.DEFERRED: "DocDeferred",
    OutcomeKind.ACCESS_ERROR: "GetDocError",
    OutcomeKind.INVALID: "ValidateDocError",
    OutcomeKind.UPLOAD_ERROR: "UpdateDocError",
}
_SAID = {
    OutcomeKind.INSERTED: "was inserted",
    OutcomeKind.UPDATED: "was updated",
    OutcomeKind.UNCHANGED: "was there already",
    OutcomeKind.STALE: "is behind the repository",
    OutcomeKind.DUPLICATE: "is listed more than once",
    OutcomeKind.DEFERRED: "was put off to a later run",
    OutcomeKind.ACCESS_ERROR: "could not be fetched",
    OutcomeKind.INVALID: "is not acceptable",
    OutcomeKind.UPLOAD_ERROR: "could not be stored",
}


def _code(outcome: Outcome) -> str:
    if outcome.kind is OutcomeKind.UPLOAD_ERROR and outcome.target_revision is None:
        return "InsertDocError"
    return _CODES[outcome.kind]


def _message(outcome: Outcome) -> str:
    said = _SAID[outcome.kind]
    sentence = f"{outcome.document.docid} {said}."
    gravest = sorted(outcome.findings, key=lambda finding: not finding.is_error)
    if outcome.kind in (OutcomeKind.INSERTED, OutcomeKind.UPDATED) or not gravest:
        return sentence
    return f"{sentence} {gravest[0].message}"


def _detail(log_id: int, finding: Finding, document: ListedDocument | None) -> Mapping[str, object]:
    scope, identifier = original_columns(document.document_id) if document else (None, None)
    return {
        "harvest_log_id": log_id,
        "level": finding.level.value,
        "scope": scope,
        "identifier": identifier,
        "revision": document.revision if document else None,
        "document_id": document.document_id if document else clean(finding.docid) or None,
        "document_url": shown_url(document.url) if document else None,
        "document_type": document.document_type if document else None,
        "error_message": clean(finding.message),
        "rule": finding.rule,
        "line_number": finding.line,
        "column_number": finding.column,
        "xpath": clean(finding.xpath) or None,
        "excerpt": clean(finding.excerpt) or None,
        "remedy": clean(finding.remedy) or None,
    }
