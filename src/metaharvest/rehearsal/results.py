"""The results of a rehearsal, read from its temporary journal: the values behind the output of `check`.

A *part* is one harvest list, or the documents without a list. page.py (HTML), sarif.py, junit.py, and the
command line show it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestLog, HarvestSiteRun
from metaharvest.fetch.local_files import is_file_url, path_of
from metaharvest.model import FINE_OUTCOMES, NOT_HARVESTED, Finding, Level, OutcomeKind, SiteRunStatus
from metaharvest.model.actions import Remedy
from metaharvest.model.values import frozen
from metaharvest.reports import phrasing
from metaharvest.reports.phrasing import Counts, counts_of, docid_of
from metaharvest.text import counted, joined, one_line, shown_url

_ABOUT_LISTS = ("list.", "target.other-site")
"""Rules, or their beginnings, whose findings name a line of the list."""


@frozen
class PartName:
    """The name of a part for people, and the URL of its list; `is_list` is false for documents without a list."""

    shown: str
    url: str
    is_list: bool = True


@frozen
class Places:
    """Names of checked files, for people and for editors: the path of a file as the person wrote it, or a URL.

    `given` has the names of the arguments, by URL; `file_of` finds the file with the content of a URL.
    """

    given: Mapping[str, str]
    file_of: Callable[[str], Path | None]
    folder: Path

    def is_file(self, url: str) -> bool:
        """True if it is a file of this computer."""
        return is_file_url(url)

    def name(self, url: str) -> str:
        """Its name for people."""
        if url in self.given:
            return self.given[url]
        path = path_of(url) if self.is_file(url) else None
        if path is None:
            return shown_url(url)
        inside = path.relative_to(self.folder) if path.is_relative_to(self.folder) else path
        return one_line(str(inside), 1000)


@frozen
class CheckedDocument:
    """A document of a part, or, with an empty docid and no outcome, the findings about its list as a whole.

    `list_url` is the URL of the list, if there is one. `listed_docid` is empty if no list gives its docid. `message` is
    its result, for a document without findings.
    """

    docid: str
    listed_docid: str
    url: str
    list_url: str
    outcome: OutcomeKind | None
    findings: tuple[Finding, ...]
    message: str = ""

    @property
    def is_well(self) -> bool:
        """True if there is nothing to report about it."""
        return not self.findings and (self.outcome is None or self.outcome in FINE_OUTCOMES)

    def url_of(self, finding: Finding) -> str:
        """The URL of the file with a finding's line: the document, or its list."""
        return self.list_url if finding.rule.startswith(_ABOUT_LISTS) else self.url

    @property
    def reported_findings(self) -> tuple[Finding, ...]:
        """Its findings; if it is not well and has none, one with its result."""
        if self.findings or self.is_well or self.outcome is None:
            return self.findings
        level = Level.ERROR if self.outcome.is_error else Level.WARNING
        return (Finding(self.outcome.value, self.message, level=level),)


@frozen
class CheckedPart:
    """A part and its result, with the documents to report: its list as a whole first."""

    name: PartName
    site_run_id: int
    status: SiteRunStatus
    reason: str
    listed: int
    counts: Counts
    warnings: int
    documents: tuple[CheckedDocument, ...] = ()

    @property
    def reported(self) -> Iterator[tuple[CheckedDocument, Finding]]:
        """Each finding to report, with its document."""
        return ((document, finding) for document in self.documents for finding in document.reported_findings)

    @property
    def failed(self) -> bool:
        """True if it failed as a whole."""
        return self.status in NOT_HARVESTED

    @property
    def sentence(self) -> str:
        """Its result: `list.xml names 12 documents: 8 would be added and 4 are not valid.`"""
        if self.status is SiteRunStatus.LIST_FAILED:
            return f"{self.name.shown}: the harvest list could not be read, so nothing of it would be harvested."
        ends = joined(phrasing.ends_of(self.counts, is_rehearsal=True))
        number = counted(self.listed, "document")
        if self.name.is_list:
            opening = f"{self.name.shown} names {number}"
        elif self.listed == 1 and not self.failed:
            return f"{self.name.shown} {ends.removeprefix('1 ')}."
        else:
            opening = number if self.name.shown == "documents" else f"{self.name.shown}, {number}"
        trouble = f" {self.reason}" if self.failed and self.reason else ""
        return f"{opening}: {ends}.{trouble}" if ends else f"{opening}.{trouble}"


def parts(session: Session, run_id: int, names: Mapping[str, PartName], *, all_of_them: bool) -> list[CheckedPart]:
    """The parts of a rehearsal, in the order of `names`, which has them by the names of their sites.

    With `all_of_them`: documents without findings as well, but not the ones that the target has already.
    """
    runs = session.scalars(select(HarvestSiteRun).where(HarvestSiteRun.run_id == run_id))
    found = {site_run.site_name: site_run for site_run in runs}
    made = [_part(session, found[site_name], name) for site_name, name in names.items() if site_name in found]
    return [replace(each, documents=tuple(_documents(session, each, all_of_them=all_of_them))) for each in made]


def _part(session: Session, site_run: HarvestSiteRun, name: PartName) -> CheckedPart:
    if name.is_list and site_run.listed == 1 and _is_document(session, site_run, name.url):
        name = PartName(name.shown, name.url, False)
    return CheckedPart(
        name,
        site_run.site_run_id,
        SiteRunStatus(site_run.status),
        one_line(site_run.failure_reason or "", 1000),
        site_run.listed,
        counts_of(site_run),
        site_run.warnings,
    )


def _is_document(session: Session, site_run: HarvestSiteRun, url: str) -> bool:
    here = HarvestLog.site_run_id == site_run.site_run_id, HarvestLog.document_url == shown_url(url)
    return bool(session.scalar(select(func.count()).where(*here)))


def local_documents(session: Session, run_id: int, site_names: Collection[str]) -> list[str]:
    """The file: URLs of the documents of these sites, as far as the log has them."""
    log = HarvestLog
    query = (
        select(log.document_url)
        .join(HarvestSiteRun, HarvestSiteRun.site_run_id == log.site_run_id)
        .where(HarvestSiteRun.run_id == run_id, HarvestSiteRun.site_name.in_(site_names))
        .where(log.outcome.is_not(None), log.document_url.like("file:%"))
    )
    return [str(url) for url in session.scalars(query)]


def _documents(session: Session, part: CheckedPart, *, all_of_them: bool) -> Iterator[CheckedDocument]:
    log, detail = HarvestLog, HarvestDetailLog
    condition = or_(log.outcome.is_not(None), detail.detail_log_id.is_not(None))
    fine = [kind.value for kind in FINE_OUTCOMES]
    if not all_of_them:
        condition = or_(log.outcome.not_in(fine), detail.detail_log_id.is_not(None))
    order = (log.document_id, log.revision) if part.name.is_list else (log.document_url,)
    query = (
        select(log, detail)
        .outerjoin(detail, detail.harvest_log_id == log.harvest_log_id)
        .where(log.site_run_id == part.site_run_id, condition)
        .order_by(log.document_id.is_not(None), *order, log.harvest_log_id, detail.detail_log_id)
        .execution_options(yield_per=500)
    )
    outcomes = _outcomes(session, part) if not all_of_them else {}
    for key, rows in groupby(session.execute(query), key=lambda row: _key(row[0])):
        logs, details = zip(*((row[0], row[1]) for row in rows), strict=True)
        yield _document(key, logs, [each for each in details if each is not None], part, outcomes)


_Key = tuple[str, str]


def _key(log: HarvestLog) -> _Key:
    return docid_of(log.document_id, log.revision), log.document_url or ""


def _outcomes(session: Session, part: CheckedPart) -> dict[_Key, str]:
    """The outcomes of documents that went in with a warning: their warnings are on log rows of their own."""
    if not part.warnings:
        return {}
    log = HarvestLog
    warned = select(log.document_id).where(
        log.site_run_id == part.site_run_id, log.harvest_operation_code == "ValidateDocWarning"
    )
    query = select(log).where(
        log.site_run_id == part.site_run_id, log.outcome.is_not(None), log.document_id.in_(warned)
    )
    return {_key(row): str(row.outcome) for row in session.scalars(query)}


def _document(
    key: _Key,
    logs: tuple[HarvestLog, ...],
    details: list[HarvestDetailLog],
    part: CheckedPart,
    outcomes: Mapping[_Key, str],
) -> CheckedDocument:
    docid, url = key
    ended = next((log for log in logs if log.outcome), None)
    value = ended.outcome if ended else outcomes.get(key)
    message = one_line(ended.message, 1000) if ended and not details else ""
    return CheckedDocument(
        one_line(docid, 1000),
        one_line(docid, 1000) if part.name.is_list else "",
        url or part.name.url,
        part.name.url if part.name.is_list else url,
        OutcomeKind(value) if value else None,
        tuple(_finding(row, "" if docid else row.document_id or "") for row in details),
        message,
    )


def _finding(row: HarvestDetailLog, docid: str) -> Finding:
    return Finding(
        row.rule,
        row.error_message,
        Remedy(row.remedy or ""),
        Level(row.level),
        row.line_number,
        row.column_number,
        row.xpath or "",
        row.excerpt or "",
        docid,
    )
