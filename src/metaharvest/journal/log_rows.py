"""The rows of harvest_log and harvest_detail_log: their content (pure functions of values), and writing them.

A run that resumes an interrupted run reads its rows, so that it does no document twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from hashlib import blake2b

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.batches import grouped
from metaharvest.database.models import Base, HarvestDetailLog, HarvestLog
from metaharvest.database.operations import OPERATIONS
from metaharvest.database.rows import insert_numbered, insert_rows
from metaharvest.ledger.entries import Key
from metaharvest.model import WOULD_BE, Finding, ListedDocument, OriginalColumns, Outcome, OutcomeKind, SiteRun
from metaharvest.model.values import frozen
from metaharvest.problems.attention import MANY_DELETIONS
from metaharvest.targets.withdrawals import WITHDRAWN
from metaharvest.text import clean, shown_url

_LOG = Base.metadata.tables[HarvestLog.__tablename__]
_DETAILS = Base.metadata.tables[HarvestDetailLog.__tablename__]
_SAID_BY_THE_OUTCOME = "filter.left-out"
"""The rule of a finding that is not a problem: the message of the log row contains it, so that it needs no detail row.
"""

_PASSED_CHECKS = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.UPLOAD_ERROR)


@frozen
class Stamp:
    """The run that writes, with its day and time."""

    run_id: int
    today: date
    now: datetime


@frozen
class Whose:
    """The site and site run of a log row, and the values for the original's columns of document ids."""

    site_schedule_id: int | None
    site_run_id: int | None
    original_columns: Callable[[str], OriginalColumns] = lambda document_id: (None, None)


NO_SITE = Whose(None, None)


def whose(site_run: SiteRun) -> Whose:
    """For the rows of this site run."""
    return Whose(site_run.site.registered_id, site_run.site_run_id, site_run.original_columns)


@frozen
class LogRow:
    """The content of one log row, with the findings that become its detail rows."""

    code: str
    message: str
    findings: tuple[Finding, ...] = ()
    document: ListedDocument | None = None
    outcome: Outcome | None = None

    def columns(self) -> dict[str, object]:
        """The columns with its content; write_log() adds the time, the run and the site."""
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

    def details(self, log_id: int, whose: Whose) -> list[Mapping[str, object]]:
        """The detail rows, one a finding."""
        document = self.document
        scope, identifier = whose.original_columns(document.document_id) if document else (None, None)
        about = document.document_id if document else ""
        # The reasons for putting documents off are events, too: these are failing, each for itself.
        happened = self.code == "DocDeferred" and document is None
        return [
            {
                "harvest_log_id": log_id,
                "level": finding.level.value,
                "scope": scope,
                "identifier": identifier,
                "revision": document.revision if document else None,
                "document_id": about or clean(finding.docid) or None,
                "document_url": shown_url(document.url) if document else None,
                "document_type": document.document_type if document else None,
                "error_message": clean(finding.message),
                "rule": finding.rule,
                "line_number": finding.line,
                "column_number": finding.column,
                "xpath": clean(finding.xpath) or None,
                "excerpt": clean(finding.excerpt) or None,
                "remedy": clean(finding.remedy) or None,
                "fingerprint": None if happened and finding.rule != MANY_DELETIONS else fingerprint(finding, about),
            }
            for finding in self.findings
        ]


def write_log(session: Session, rows: Sequence[tuple[LogRow, Whose]], stamp: Stamp) -> None:
    """Write log rows and their detail rows, in this order."""
    if not rows:
        return
    when = {"run_id": stamp.run_id, "harvest_date": stamp.today, "logged_at": stamp.now}
    values = [
        {"site_schedule_id": about.site_schedule_id, "site_run_id": about.site_run_id, **row.columns()}
        for row, about in rows
    ]
    if not any(row.findings for row, _ in rows):
        insert_rows(session.connection(), _LOG, values, when)
        return
    ids = insert_numbered(session.connection(), _LOG, values, when)
    details = [detail for key, (row, about) in zip(ids, rows, strict=True) for detail in row.details(key, about)]
    insert_rows(session.connection(), _DETAILS, details)


def outcome_rows(outcome: Outcome, is_kept: bool = True) -> list[LogRow]:
    """The rows of one document, as the original wrote them: fetched, checked, and last the outcome.

    The last row has the outcome and the findings; warnings about a document that passed stay with the row of the check.
    `is_kept`: the target has it, if the document was to get there.
    """
    document, docid = outcome.document, outcome.document.docid
    rows: list[LogRow] = []
    came_with_list = document.origin is not None and outcome.seconds is None
    if outcome.size is not None and outcome.kind is not OutcomeKind.ACCESS_ERROR and not came_with_list:
        rows.append(LogRow("GetDocSuccess", f"{docid} was fetched: {outcome.size:,} bytes.", (), document))
    findings, warnings = outcome.findings, tuple[Finding, ...]()
    if outcome.size is not None and outcome.kind in _PASSED_CHECKS:
        warnings = findings and tuple(finding for finding in findings if not finding.is_error)
        code = "ValidateDocWarning" if warnings else "ValidateDocSuccess"
        message = f"{docid} is valid{', but doubtful' if warnings else ''}."
        rows.append(LogRow(code, message, warnings, document))
    if outcome.unconfirmed:
        rows.append(LogRow("UploadUnconfirmed", f"It is not known whether {docid} arrived.", (), document))
    if findings:
        early = (*warnings, *(finding for finding in findings if finding.rule == _SAID_BY_THE_OUTCOME))
        findings = tuple(finding for finding in findings if finding not in early)
    rows.append(LogRow(_code(outcome), _message(outcome, is_kept), findings, document, outcome))
    return rows


_ENDS = {
    OutcomeKind.INSERTED: ("InsertDocSuccess", "was inserted"),
    OutcomeKind.UPDATED: ("UpdateDocSuccess", "was updated"),
    OutcomeKind.UNCHANGED: ("MetacatHasDoc", "is unchanged"),
    OutcomeKind.DELETED: ("DocDeleted", "was deleted in its repository"),
    OutcomeKind.FILTERED: ("DocFiltered", "was left out by a filter"),
    OutcomeKind.STALE: ("DocStale", "is behind the repository"),
    OutcomeKind.DUPLICATE: ("DocDuplicate", "is listed more than once"),
    OutcomeKind.DEFERRED: ("DocDeferred", "was put off to a later run"),
    OutcomeKind.ACCESS_ERROR: ("GetDocError", "could not be fetched"),
    OutcomeKind.INVALID: ("ValidateDocError", "is not acceptable"),
    OutcomeKind.UPLOAD_ERROR: ("UpdateDocError", "could not be stored"),
}
"""The operation code of each outcome, and its words in the message."""


def _code(outcome: Outcome) -> str:
    if outcome.kind is OutcomeKind.UPLOAD_ERROR and outcome.target_revision is None:
        return "InsertDocError"
    if outcome.kind.is_error and outcome.findings and not any(finding.is_error for finding in outcome.findings):
        return "ValidateDocWarning"
    return _ENDS[outcome.kind][0]


def _message(outcome: Outcome, is_kept: bool) -> str:
    _, ended = _ENDS[outcome.kind]
    said = ended if is_kept else WOULD_BE.get(outcome.kind, ended)
    if any(finding.rule == WITHDRAWN for finding in outcome.findings):
        said = "was left out"
    document = outcome.document
    # A record gets its revision from us, once it goes in.
    is_left_out_record = outcome.kind is OutcomeKind.FILTERED and document.origin is not None
    sentence = f"{document.document_id if is_left_out_record else document.docid} {said}."
    if outcome.kind in (OutcomeKind.INSERTED, OutcomeKind.UPDATED) or not outcome.findings:
        return sentence
    gravest = min(outcome.findings, key=lambda finding: not finding.is_error)
    return f"{sentence} {gravest.message}"


_EVENTS = (
    "http.robots", "list.shrank", "list.vanished", "list.same-content", "oai.repository-changed", "records.moved",
    "target.unconfirmed",
)  # fmt: skip
"""The rules of events that keep no document out: the next night does not repeat them, without a repair."""


def fingerprint(finding: Finding, document_id: str) -> str | None:
    """Identifies a finding over the nights: its document, its rule, its place in the document.

    `document_id` comes from its log row; empty if that has none. The line is no part of it: lines move when something
    else is corrected. None for an event, which no night repeats.
    """
    if finding.rule in _EVENTS and not finding.is_error:
        return None
    text = "\0".join((document_id or finding.docid, finding.rule, finding.xpath))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


LoggedOutcome = tuple[OutcomeKind, int | None]
"""An outcome as it was logged, with the revision that the target had then."""


def logged_outcomes(
    session: Session, site_run: SiteRun, after: str | None, upto: str | None
) -> dict[Key, list[LoggedOutcome]]:
    """The outcomes logged for this site run, of document ids above `after` and up to `upto`; None: no bound."""
    statement = select(
        HarvestLog.document_id, HarvestLog.revision, HarvestLog.outcome, HarvestLog.target_revision
    ).where(HarvestLog.site_run_id == site_run.site_run_id, HarvestLog.outcome.is_not(None))
    if after is not None:
        statement = statement.where(HarvestLog.document_id > after)
    if upto is not None:
        statement = statement.where(HarvestLog.document_id <= upto)
    return grouped(
        ((str(document_id), int(revision or 0)), (OutcomeKind(str(outcome)), target_revision))
        for document_id, revision, outcome, target_revision in session.execute(statement)
    )


def number_logged(session: Session, site_run: SiteRun) -> int:
    """The number of outcomes that are logged in this site run."""
    query = select(func.count()).where(HarvestLog.site_run_id == site_run.site_run_id, HarvestLog.outcome.is_not(None))
    return session.scalar(query) or 0


def logged_findings(session: Session, site_run: SiteRun) -> Sequence[tuple[str, str]]:
    """The rule and the message of each finding that is logged in this site run, and is not about a document."""
    query = (
        select(HarvestDetailLog.rule, HarvestDetailLog.error_message)
        .join(HarvestLog, HarvestLog.harvest_log_id == HarvestDetailLog.harvest_log_id)
        .where(HarvestLog.site_run_id == site_run.site_run_id, HarvestLog.document_id.is_(None))
    )
    return [(rule, message) for rule, message in session.execute(query)]


def logged_documents(session: Session, site_run: SiteRun, document_ids: Sequence[str]) -> frozenset[str]:
    """The ids among these documents whose outcomes are logged in this site run."""
    query = select(HarvestLog.document_id).where(
        HarvestLog.site_run_id == site_run.site_run_id,
        HarvestLog.document_id.in_(document_ids),
        HarvestLog.outcome.is_not(None),
    )
    return frozenset(str(each) for each in session.scalars(query))
