"""Checks a file that a person pastes, uploads or names by a URL, and corrects mechanical faults.

Nothing is stored. An uploaded list is checked without its documents: they could be any files of this machine.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from metaharvest.errors import RequestError
from metaharvest.publishing.corrections import Correction, corrected
from metaharvest.publishing.list_store import checked_list
from metaharvest.publishing.rows import file_name
from metaharvest.services import trials
from metaharvest.services.harvester import Harvester
from metaharvest.services.trials import TrialFinding, TrialReport, trial_finding
from metaharvest.sites.registrations import policy
from metaharvest.sources.roots import root_of
from metaharvest.text import counted

MOST_BYTES = 10_485_760
"""The largest file that may be sent."""

_HEAD = 262_144
_DECLARED = re.compile(r"<\?xml\s[^<>]{0,300}?encoding\s*=\s*[\"']([\w.-]{1,40})[\"']")
_OF_PASTED = re.compile(
    r"iso-8859-\d+|windows-125\d|us-ascii|utf-16|shift_jis|gbk|gb2312|gb18030|big5|euc-jp|euc-kr|koi8-[ru]",
    re.IGNORECASE,
)
_ROUNDS = 3
"""Further faults show once the first ones are corrected."""

_WELL = "No faults were found: a harvest would accept this document."


@dataclass(frozen=True, slots=True)
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
    with trials.place():
        return _checked(harvester, content, name)


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
    tried = trials.try_source(harvester, {"name": "checked", "documentlisturl": address.url})
    if not tried.content or len(tried.content) > MOST_BYTES:
        return FileReport(address.url, _in_words(tried.report))
    with trials.place():
        return replace(_with_corrections(harvester, tried.content, address.url, tried.report), name=address.url)


def _checked(harvester: Harvester, content: bytes, name: str) -> FileReport:
    if root_of(content[:_HEAD]).is_list:
        return FileReport(name, _list_report(content, name))
    return _with_corrections(harvester, content, name, _report(harvester, content, name))


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
        report = trials.try_file(harvester, path)
        findings = tuple(_named(each, path, name) for each in report.findings)
        return replace(report, findings=findings, story=report.story.replace(str(path), name), sentences=())


def _named(finding: TrialFinding, path: Path, name: str) -> TrialFinding:
    """A finding with the name that the person knows, in the place of the name of the temporary file."""

    def renamed(text: str) -> str:
        return text.replace(path.as_uri(), name).replace(str(path), name)

    return replace(finding, place=name, message=renamed(finding.message), remedy=renamed(finding.remedy))


def _list_report(content: bytes, name: str) -> TrialReport:
    """The report about a list alone."""
    with tempfile.TemporaryDirectory(prefix="metaharvest-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "harvest-list.xml"
        path.write_bytes(content)
        found = checked_list(path, files_allowed=False)
        findings = tuple(trial_finding(each, path, name, each.docid) for each in found.findings[: trials.MOST_FINDINGS])
    story = f"{name} names {counted(len(found.documents), 'document')}." if found.is_valid else "The list is not valid."
    note = "The documents of the list were not fetched. Publish the list, and check its URL, to check them too."
    return TrialReport(
        story, (note,), findings, found.is_valid, more=max(0, len(found.findings) - trials.MOST_FINDINGS)
    )
