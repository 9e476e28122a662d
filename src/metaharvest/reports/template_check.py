"""Tries templates with sample reports, which have a value in every field, or as few as possible.

A template is a program that may never end: those of a folder are tried in a process of its own, with limits.

As a program (`python -m metaharvest.reports.template_check`) it reads the settings that matter as JSON from standard
input, and prints a JSON list with a sentence for each template that fails.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, TemplateError
from jinja2.meta import find_referenced_templates
from jinja2.sandbox import ImmutableSandboxedEnvironment

from metaharvest.config.paths import data_folder
from metaharvest.config.settings import ReportsSettings, Settings
from metaharvest.model import OutcomeKind
from metaharvest.model.actions import todo
from metaharvest.reports.admin_view import AdminView, FailedSite, RuleProblem, SiteRow, Undelivered
from metaharvest.reports.digest_view import DigestView, SiteTrend, Week
from metaharvest.reports.document_lists import NamedDocument, NamedDocuments
from metaharvest.reports.findings import FindingGroup, FindingLine
from metaharvest.reports.letters import DoorLetter
from metaharvest.reports.parts import NO_TABLE, TableNote, Total
from metaharvest.reports.pipeline_notes import PipelineNote, Reason, StageLine
from metaharvest.reports.problem_history import FailingSite, RememberedProblems
from metaharvest.reports.render import ENCODING, TEMPLATE_FILES, environment_for, reason_of
from metaharvest.reports.site_view import SiteView
from metaharvest.reports.start_here import Step
from metaharvest.text import one_line

SECONDS = 30
"""Processor time."""

_MEMORY_BYTES = 2_000_000_000
"""Address space, which is more than the memory in use."""


def problems_of_templates(settings: Settings) -> list[str]:
    """A sentence for each template that fails. Templates of a folder get 30 seconds and 2 GB in another process."""
    if settings.reports.templates is None:
        return broken_templates(settings)
    given = {
        "templates": str(settings.path(settings.reports.templates)),
        "docs_url": settings.reports.docs_url,
        "seconds": SECONDS,
    }
    program = [sys.executable, "-m", __name__]
    these = f"The templates in {one_line(str(given['templates']), 1000)}"
    too_much = f"{these} take too long, or too much memory: {_REMEDY}"
    try:
        done = subprocess.run(program, input=json.dumps(given), capture_output=True, text=True, timeout=2 * SECONDS)
    except subprocess.TimeoutExpired:
        return [too_much]
    if done.returncode == 0:
        return [str(sentence) for sentence in json.loads(done.stdout)]
    reason = one_line(done.stderr.strip().rpartition("\n")[2], 300).rstrip(".")
    # The limits end the process by a signal, or by an error of Python.
    if done.returncode < 0 or reason.startswith("MemoryError"):
        return [too_much]
    return [f"{these} cannot be checked: {reason}."]


_REMEDY = "they must end within 30 seconds and 2 GB; look for a loop over very many values."


def main() -> None:
    """Check the templates in this process, as standard input asks."""
    given = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CPU, (given["seconds"], given["seconds"]))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    reports = ReportsSettings(templates=Path(given["templates"]), docs_url=given["docs_url"])
    print(json.dumps(broken_templates(Settings(reports=reports))))


def broken_templates(settings: Settings) -> list[str]:
    """A sentence for each template that fails, including those in the settings' folder.

    Each is compiled; if all can be, they are rendered with sample reports. A template runs here without a limit.
    """
    environment = environment_for(settings)
    names = environment.list_templates(filter_func=lambda name: name.startswith("email/"))
    problems = [failure for name in names if (failure := _failure(environment, name))]
    if problems:
        return problems
    for folder, views in SAMPLES.items():
        for part in TEMPLATE_FILES:
            name = f"email/{folder}/{part}"
            failures = (_failure(environment, name, view) for view in views)
            problems += [failure for failure in failures if failure][:1]
    return problems


def _failure(environment: Environment, name: str, view: object = None) -> str | None:
    """A sentence if the template cannot be compiled, or rendered with this report."""
    try:
        template = environment.get_template(name)
        if view is not None:
            template.render(report=view)
    except Exception as error:  # noqa: BLE001 - a template is a program, perhaps of another person
        return f"The template {name} cannot be used: {reason_of(error)}"
    return None


def unused_templates(folder: Path) -> list[str]:
    """The files in a folder of templates that replace none of the package's, and that no template there includes."""
    own = ImmutableSandboxedEnvironment(loader=FileSystemLoader(folder, encoding=ENCODING))
    used: set[str | None] = {*FileSystemLoader(data_folder("templates")).list_templates()}
    names = [name for name in own.list_templates() if not re.search(r"(^|/)\.|~$|(^|/)README", name)]
    assert own.loader is not None
    for name in names:
        try:
            used |= set(find_referenced_templates(own.parse(own.loader.get_source(own, name)[0])))
        except (TemplateError, OSError, UnicodeDecodeError):
            continue
    return [] if None in used else [name for name in names if name not in used]


_URL = "https://alder.example.org/eml.xml"
_LINE = FindingLine(
    "alder.1.1", _URL, "line 3", "<title/>", "It has no title.", "Add one.", "since 2026-11-20", "Stream chemistry"
)
_GROUPS = (
    FindingGroup(
        "schema.unexpected-element", "Not valid", True, 2, (_LINE,), "Correct it.", "Two elements are missing."
    ),
    FindingGroup("eml.system-differs", "Doubtful", False, 1, (replace(_LINE, url="", place="", excerpt="", since=""),)),
)
_NAMED = NamedDocuments(2, (NamedDocument("alder.2.1", _URL, "kept at revision 3", "Stream chemistry"),))
_TABLE = TableNote("The attached table has every document.", "in the attached table")
_TOTALS = (Total("listed", 5, "plain"), Total("with errors", 2, "bad", 1), Total("new", 1, "good"))
_REMEMBERED = (RememberedProblems("eml.system-differs", "Ids twice", 3, ("alder.1", "alder.2"), "since 2026-11-20"),)
_COUNTS = {kind.column: number for number, kind in enumerate(OutcomeKind)}
_STEPS = (
    Step(
        "alder-creek: 25 deletions wait.",
        f"{todo('sites.confirm', name='alder-creek')} has the next harvest delete them.",
    ),
)

_View = TypeVar("_View", SiteView, AdminView)


def _emptied(view: _View, tone: str) -> _View:
    """The same without all optional values."""
    nothing: dict[str, Any] = {each.name: () for each in fields(view) if isinstance(getattr(view, each.name), tuple)}
    nothing |= {each.name: NamedDocuments(0) for each in fields(view) if getattr(view, each.name) is _NAMED}
    nothing |= {"reason": "", "rehearsal": ""} if isinstance(view, SiteView) else {}
    note: dict[str, Any] = {"files": None} if isinstance(view, SiteView) else {"pipeline": PipelineNote("All is well.")}
    return replace(view, **nothing, tone=tone, table=NO_TABLE, went_nowhere="", **note)


_REASON = Reason("full-text.no-link", "The record leads to no file", 2, "Add one.", "full-text", ("Stream chemistry",))
_PIPELINE = PipelineNote(
    "2 of 5 records lead to no file.", (StageLine("full-text", "3 done, 0 waiting, 2 failed"),), (_REASON,), 1
)
_SITE = SiteView(
    network="Sample network",
    site="alder",
    date="2026-11-22",
    story="2 documents with errors",
    tone="bad",
    sentence="Two documents have errors.",
    reason="The list was not read to its end.",
    start_here=_STEPS,
    listed=5,
    totals=_TOTALS,
    attention=_GROUPS,
    news=_GROUPS,
    still=_GROUPS,
    still_unseen=_REMEMBERED,
    warnings=_GROUPS,
    new_warnings=_GROUPS,
    old_warnings=_GROUPS,
    standing_warnings=_REMEMBERED,
    fixed=_REMEMBERED,
    has_history=True,
    mended=_NAMED,
    inserted=_NAMED,
    updated=_NAMED,
    deleted=_NAMED,
    unchanged=_NAMED,
    next_harvest="2026-11-23",
    time_spent="The harvest took 2 s.",
    rehearsal=todo("lists.check", url=_URL).command,
    registered=(("Harvest list", _URL), ("Harvested", "every day")),
    recipients=("contact@example.org",),
    administrators=("steward@example.org", "second@example.org"),
    target="the embedded repository",
    site_run=1,
    table=_TABLE,
    went_nowhere="Nothing was uploaded.",
    page="https://harvest.example.org/console/site/1.739212.0123456789abcdef",
    files=_PIPELINE,
)
_RUN = AdminView(
    network="Sample network",
    date="2026-11-22",
    story="1 site failed",
    tone="bad",
    sentence="One site could not be harvested.",
    start_here=_STEPS,
    totals=_TOTALS,
    sites=tuple(
        SiteRow("alder", "done", tone, 5, _COUNTS, 1, 2, "2 with errors", "2 s", "2026-11-23")
        for tone in ("bad", "doubtful", "good")
    ),
    failures=(FailedSite("birch", "The list is not there.", False, _GROUPS), FailedSite("cedar", "", True, _GROUPS)),
    troubles=("A report could not be made.",),
    more_troubles=1,
    problems=(RuleProblem("alder", "Not valid", "schema.unexpected-element", 2, _LINE),),
    more_problems=1,
    undelivered=(Undelivered("contact@example.org", "alder: 2 errors", "waits", 2, "No answer.", "2026-11-20"),),
    more_undelivered=1,
    asked=("anna@example.org asked for a harvest of alder.",),
    more_asked=1,
    waits=("alder has been due since 2026-11-20, and no run has harvested it.",),
    more_waits=1,
    failing=(FailingSite("alder", 2, "2026-11-14", 7, "Not valid (2)", "2026-11-15"),),
    more_failing=1,
    run=1,
    version="1.0",
    host="harvester.example.org",
    target="the embedded repository",
    started="2026-11-22 01:00:00 UTC",
    duration="2 s",
    recipients=("steward@example.org",),
    administrators=("steward@example.org",),
    table=_TABLE,
    went_nowhere="Nothing was uploaded.",
    pipeline=_PIPELINE,
)

_DIGEST = DigestView(
    network="Sample network",
    date="2026-11-22",
    story="the week: 5 new or updated, 1 site failing",
    tone="doubtful",
    sentence="2 sites had 14 harvests in the last seven days.",
    totals=_TOTALS,
    sites=(
        SiteTrend(
            "alder",
            tuple(Week("2026-11-16", 7, number % 3, number, number % 2, 12 * number) for number in range(8)),
            "▁█",
        ),
    ),
    failing=_RUN.failing,
    more_failing=1,
    recipients=("steward@example.org",),
)

_LETTER = DoorLetter(
    network="Sample network",
    site="alder",
    url="https://alder.example.org/harvest-list.xml",
    address="anna@alder.example.org",
    link="https://harvest.example.org/console/register/address/0123456789abcdef",
    days=14,
    proof="<!-- metaharvest-proof: 0123456789abcdef -->",
    reason="The documents belong to another network.",
    schedule="every week",
)
_LETTERS = (_LETTER, replace(_LETTER, link="", proof=""))

SAMPLES: Mapping[str, Sequence[SiteView | AdminView | DigestView | DoorLetter]] = {
    "site_report": (_SITE, *(_emptied(_SITE, tone) for tone in ("good", "doubtful"))),
    "admin_report": (
        _RUN,
        replace(_RUN, log_file="/srv/reports/run-1.txt"),
        replace(_RUN, log_file_error="No space left on device."),
        _emptied(_RUN, "good"),
    ),
    "digest_report": (_DIGEST, replace(_DIGEST, sites=(), failing=(), more_failing=0, tone="good")),
    "address_changed": _LETTERS,
    "address_confirmation": _LETTERS,
    "registration_accepted": _LETTERS,
    "registration_link": _LETTERS,
    "registration_refused": _LETTERS,
    "source_proof": _LETTERS,
}
"""Folder of templates -> reports."""


if __name__ == "__main__":
    main()
