"""Rehearsals for strangers: of a source on the web, and of a file that they send, with its mechanical faults corrected.

They are bounded in time, bytes and number. Nothing is stored. An uploaded list is checked without its documents: they
could be any files of this machine.
"""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from metaharvest.errors import RequestError
from metaharvest.harvest.deadlines import stopped_after
from metaharvest.model import Finding, Level
from metaharvest.model.values import frozen
from metaharvest.publishing.corrections import Correction, corrected
from metaharvest.publishing.list_store import checked_list
from metaharvest.publishing.rows import file_name
from metaharvest.rehearsal import check, trial
from metaharvest.rehearsal.check import CheckOptions, GivenRun
from metaharvest.rehearsal.input.arguments import GivenList
from metaharvest.rehearsal.results import CheckedDocument
from metaharvest.reports.source_lines import source_line
from metaharvest.rules import title_of
from metaharvest.services.check_report import CheckReport
from metaharvest.services.harvester import Harvester
from metaharvest.sites.registrations import policy
from metaharvest.sources.roots import root_of
from metaharvest.text import counted, one_line, shown_url

MOST_FINDINGS = 200
SECONDS = 25.0
"""After this time a rehearsal begins nothing new: what is under way may take the time of one document."""

_AT_ONCE = 3
_PATIENCE = 10.0
_places = threading.BoundedSemaphore(_AT_ONCE)
_queue = threading.BoundedSemaphore(8)
"""The requests that wait for a place: each holds a thread, and the server needs threads for everybody else."""

_BUSY = "Others are checking their documents at the moment. Try again in a minute."

_UNREACHED = frozenset(
    {
        "http.address-not-public", "http.dns", "http.connection", "http.timeout-connect", "http.timeout-read",
        "http.deadline", "http.busy", "http.tls", "http.truncated", "http.empty", "http.protocol", "http.other",
        "http.proxy", "http.server-stopped", "harvest.site-deadline",
    }
)  # fmt: skip
"""Rules whose messages would say which computers and ports there are in the network of the harvester."""

UNREACHED = Finding(
    "http.connection",
    "No web server that everybody can reach answers at this address, or it does not answer in time.",
    "Open the address in a browser, from a network other than your own. It must have a valid certificate, and answer "
    "within a few seconds.",
)

MOST_BYTES = 10_485_760
_HEAD = 262_144
_DECLARED = re.compile(r"<\?xml\s[^<>]{0,300}?encoding\s*=\s*[\"']([\w.-]{1,40})[\"']")
_OF_PASTED = re.compile(
    r"iso-8859-\d+|windows-125\d|us-ascii|utf-16|shift_jis|gbk|gb2312|gb18030|big5|euc-jp|euc-kr|koi8-[ru]",
    re.IGNORECASE,
)
_ROUNDS = 3
"""Further faults show once the first ones are corrected."""

_WELL = "No faults were found: a harvest would accept this document."


@frozen
class TrialFinding:
    """A finding with the place where it is: document, line, column, and the line itself with the width before it."""

    rule: str
    title: str
    level: Level
    message: str
    remedy: str
    docid: str = ""
    place: str = ""
    line: int | None = None
    column: int | None = None
    text: str = ""
    before: int | None = None

    @property
    def is_error(self) -> bool:
        """True if it keeps a document, or the whole list, out."""
        return self.level is Level.ERROR


@frozen
class TrialReport:
    """The result of a rehearsal, for a page.

    `is_readable`: the list, or the repository, could be read. `is_document`: it is a document, and no list. `story` and
    `sentences` have the totals. `more`: the number of findings that are not shown. `contacts` are the addresses in the
    first documents.
    """

    story: str
    sentences: tuple[str, ...]
    findings: tuple[TrialFinding, ...]
    is_readable: bool
    is_document: bool = False
    more: int = 0
    contacts: tuple[str, ...] = ()

    @property
    def has_errors(self) -> bool:
        """True if a list cannot be read, or a document has errors."""
        return not self.is_readable or any(finding.is_error for finding in self.findings)


@contextmanager
def place() -> Iterator[None]:
    """One of the few places for rehearsals of this process. Raises RequestError if all stay taken, or many wait."""
    if not _places.acquire(blocking=False) and not _waited():
        raise RequestError(_BUSY)
    try:
        yield
    finally:
        _places.release()


def _waited() -> bool:
    if not _queue.acquire(blocking=False):
        return False
    try:
        return _places.acquire(timeout=_PATIENCE)
    finally:
        _queue.release()


@frozen
class Tried:
    """The report of a rehearsal; `content` is the document if it was one document without a list."""

    report: TrialReport
    content: bytes = b""


def try_source(harvester: Harvester, columns: Mapping[str, object]) -> Tried:
    """Rehearse the harvest of a source as a site with these columns. Raises RequestError, ScheduleError."""
    with place(), trial.prepared(harvester.settings, columns) as prepared:
        given = prepared.given
        report = _rehearsed(harvester, given)
        made, left_out = trial_report(report), prepared.left_out[0]
        files = [given.copies.file_of(document.url) for part in report.parts for document in part.documents]
        there = [path for path in files if path is not None and path.exists()]
        note = f"{counted(left_out, 'more document')} of the list would be harvested, and not checked here."
        sentences = (*made.sentences, *([note] if left_out else []))
        made = replace(made, contacts=trial.contacts_in(there), sentences=sentences)
        return Tried(made, there[0].read_bytes() if made.is_document and there else b"")


def try_file(harvester: Harvester, path: Path) -> TrialReport:
    """Rehearse the document in this file.

    Raises RequestError for a harvest list: it may name files of this machine.
    """
    settings, how = trial.bounded(harvester.settings), CheckOptions()
    with check.prepared(settings, None, None, None, [str(path)], how) as given:
        if any(isinstance(site.given, GivenList) for site in given.sites):
            raise RequestError("This is a harvest list, not a document. Upload it as a list.")
        return trial_report(_rehearsed(harvester, given))


def _rehearsed(harvester: Harvester, given: GivenRun) -> CheckReport:
    with stopped_after(SECONDS) as stop:
        return CheckReport(harvester.rehearse_check(given, trial.LIMITS, stop=stop), all_of_them=True)


def trial_report(report: CheckReport) -> TrialReport:
    """The report about a check in a form for a page of strangers."""
    reported = [(part.name.is_list, *each) for part in report.parts for each in part.reported]
    return TrialReport(
        story=report.story,
        sentences=tuple(report.summary),
        findings=tuple(_checked_finding(report, *each) for each in reported[:MOST_FINDINGS]),
        is_readable=not report.record.failed_as_a_whole,
        is_document=any(not part.name.is_list for part in report.parts),
        more=max(0, len(reported) - MOST_FINDINGS),
    )


def _checked_finding(report: CheckReport, in_list: bool, document: CheckedDocument, finding: Finding) -> TrialFinding:
    url = document.url_of(finding)
    shown = replace(UNREACHED, level=finding.level) if finding.rule in _UNREACHED else finding
    docid = document.listed_docid or finding.docid if in_list else ""
    return trial_finding(shown, report.places.file_of(url), report.places.name(url), docid)


def trial_finding(finding: Finding, file: Path | None, place: str, docid: str = "") -> TrialFinding:
    """The finding about a document with this docid, with the line of `file` that it is about."""
    line = source_line(file, finding)
    return TrialFinding(
        rule=finding.rule,
        title=title_of(finding.rule),
        level=finding.level,
        message=one_line(finding.message, 1000),
        remedy=one_line(str(finding.remedy), 1000),
        docid=one_line(docid, 200),
        place=place,
        line=finding.line,
        column=finding.column,
        text=line.text if line else one_line(finding.excerpt, 200),
        before=line.before if line else None,
    )


def unreadable(findings: Sequence[Finding], place: str) -> TrialReport:
    """The report about a source whose beginning could not be read."""
    shown = dict.fromkeys(UNREACHED if each.rule in _UNREACHED else each for each in findings)
    made = (trial_finding(each, None, shown_url(place)) for each in shown)
    plain = tuple(replace(each, line=None, column=None, text="") for each in made)
    return TrialReport("The source could not be read.", (), plain, is_readable=False)


@frozen
class FileReport:
    """The report about one file.

    `corrected` has the bytes after `corrections`, None if nothing could be corrected; `left` are its findings.
    """

    name: str
    report: TrialReport
    corrected: bytes | None = None
    corrections: tuple[Correction, ...] = ()
    left: tuple[TrialFinding, ...] = ()


def check_file(harvester: Harvester, content: bytes, name: str = "document.xml") -> FileReport:
    """The report about a file that a person sends. Raises RequestError if it is empty, or too large."""
    name = file_name(name)
    if not content.strip():
        raise RequestError("There is nothing to check: paste a document, or choose a file.")
    if len(content) > MOST_BYTES:
        raise RequestError(f"{name} is larger than 10 MiB. Put it on a web server, and give its URL.")
    with place():
        if root_of(content[:_HEAD]).is_list:
            return FileReport(name, _list_report(content, name))
        return _with_corrections(harvester, content, name, _report(harvester, content, name))


def check_text(harvester: Harvester, text: str) -> FileReport:
    """The report about a pasted text, as if it were a file in the encoding that it declares. Raises RequestError."""
    text = text.lstrip()
    declared = _DECLARED.match(text)
    encoding = declared[1] if declared and _OF_PASTED.fullmatch(declared[1]) else "utf-8"
    try:
        content = text.encode(encoding)
    except (UnicodeError, LookupError):
        content = text.encode("utf-8", "replace")
    return check_file(harvester, content, "the pasted text")


def check_url(harvester: Harvester, url: str) -> FileReport:
    """The report about a list or a document on the web. Raises RequestError."""
    address = policy.checked_url(url)
    tried = try_source(harvester, {"name": "checked", "documentlisturl": address.url})
    if not tried.content or len(tried.content) > MOST_BYTES:
        return FileReport(address.url, _in_words(tried.report))
    with place():
        return replace(_with_corrections(harvester, tried.content, address.url, tried.report), name=address.url)


def _with_corrections(harvester: Harvester, content: bytes, name: str, report: TrialReport) -> FileReport:
    done: list[Correction] = []
    last = report
    for _ in range(_ROUNDS):
        made = corrected(content, {each.rule for each in last.findings})
        if not made.corrections:
            break
        content, done = made.content, [*done, *made.corrections]
        last = _report(harvester, content, name)
    if not done:
        return FileReport(name, _in_words(report))
    return FileReport(name, report, content, tuple(done), last.findings)


def _in_words(report: TrialReport) -> TrialReport:
    """The report with a plain sentence about a document without faults; the totals count one document."""
    return replace(report, story=_WELL) if report.is_document and not report.findings else report


def _report(harvester: Harvester, content: bytes, name: str) -> TrialReport:
    # A correction may have made a list of it, and a list may name files of this machine.
    if root_of(content[:_HEAD]).is_list:
        return _list_report(content, name)
    with tempfile.TemporaryDirectory(prefix="metaharvest-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "document.xml"
        path.write_bytes(content)
        report = try_file(harvester, path)
        findings = tuple(_named(each, path, name) for each in report.findings)
        return replace(report, findings=findings, story=report.story.replace(str(path), name), sentences=())


def _named(finding: TrialFinding, path: Path, name: str) -> TrialFinding:
    """A finding with the name that the person knows, in the place of the name of the temporary file."""

    def renamed(text: str) -> str:
        return text.replace(path.as_uri(), name).replace(str(path), name)

    return replace(finding, place=name, message=renamed(finding.message), remedy=renamed(finding.remedy))


def _list_report(content: bytes, name: str) -> TrialReport:
    with tempfile.TemporaryDirectory(prefix="metaharvest-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "harvest-list.xml"
        path.write_bytes(content)
        found = checked_list(path, files_allowed=False)
        findings = tuple(trial_finding(each, path, name, each.docid) for each in found.findings[:MOST_FINDINGS])
    story = f"{name} names {counted(len(found.documents), 'document')}." if found.is_valid else "The list is not valid."
    note = "The documents of the list were not fetched. Publish the list, and check its URL, to check them too."
    return TrialReport(story, (note,), findings, found.is_valid, more=max(0, len(found.findings) - MOST_FINDINGS))
