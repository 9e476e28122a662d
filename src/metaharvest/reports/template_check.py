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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from jinja2 import Environment, FileSystemLoader, TemplateError
from jinja2.meta import find_referenced_templates
from jinja2.sandbox import ImmutableSandboxedEnvironment

from metaharvest.config.paths import data_folder
from metaharvest.config.settings import ReportsSettings, Settings
from metaharvest.model import OutcomeKind
from metaharvest.model.actions import todo
from metaharvest.reports.admin_view import AdminView
from metaharvest.reports.digest_view import DigestView
from metaharvest.reports.document_lists import NamedDocument, NamedDocuments
from metaharvest.reports.findings import FindingGroup
from metaharvest.reports.letters import DoorLetter
from metaharvest.reports.phrasing import Total, View
from metaharvest.reports.pipeline_notes import PipelineNote
from metaharvest.reports.render import ENCODING, TEMPLATE_FILES, environment_for, reason_of
from metaharvest.reports.site_view import SiteView
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


_TEXTS = {
    "address": "anna@example.org",
    "administrator": "steward@example.org",
    "bars": "▁█",
    "begins": "2026-11-16",
    "date": "2026-11-22",
    "docid": "alder.1.1",
    "last_harvest": "2026-11-15",
    "link": "https://harvest.example.org/console/register/address/0123456789abcdef",
    "name": "alder-creek-experimental-forest",
    "next_harvest": "2026-11-23",
    "page": "https://harvest.example.org/console/site/1.739212.0123456789abcdef",
    "proof": "<!-- metaharvest-proof: 0123456789abcdef -->",
    "recipient": "contact@example.org",
    "rule": "schema.unexpected-element",
    "since": "2026-11-20",
    "started": "2026-11-22 01:00:00 UTC",
    "state": "refused",
    "todo": f"{todo('sites.confirm', name='alder')} has the next harvest delete them.",
    "url": "https://alder.example.org/eml.xml",
}
"""Texts for fields of these names. A text for another field is its name."""

_MAY_BE_EMPTY = {
    "details", "docid", "error", "excerpt", "message", "page", "place", "reason", "rehearsal", "remedy", "url",
    "went_nowhere",
}  # fmt: skip
"""Names of required fields whose texts may be empty."""

_TONES = ("bad", "doubtful", "good")
_TOTALS = tuple(Total("new", number, tone, number) for number, tone in enumerate(("plain", *_TONES)))
_COUNTS = {kind.column: number for number, kind in enumerate(OutcomeKind)}

_Report = TypeVar("_Report")


def _sample(report: Callable[..., _Report], tone: str, *, is_full: bool = True) -> _Report:
    """A report, or a part of one, with a value in every field; if it is not full, with as few values as possible."""
    parameters = signature(report).parameters
    values = {
        name: _value(name, kind, tone, is_full)
        for name, kind in get_type_hints(report).items()
        if is_full or parameters[name].default is Parameter.empty
    }
    return report(**values)


def _value(name: str, kind: Any, tone: str, is_full: bool) -> Any:
    """A value of this kind for the field of this name. A list has a full part, and one that is not.

    A full number is larger than the length of a list, because reports show some parts, and the number of the others.
    """
    if isinstance(kind, UnionType) and not is_full:
        return None
    if isinstance(kind, UnionType):
        [kind] = set(get_args(kind)) - {NoneType}
    origin, kinds = get_origin(kind), get_args(kind)
    if origin is dict:
        return _COUNTS
    if origin is tuple and kinds[-1] is not Ellipsis:
        return tuple(_value(name, each, tone, is_full) for each in kinds)
    if origin is tuple and not is_full and name != "weeks":
        return ()
    if origin is tuple:
        # Reports show the last week by itself.
        order = (not is_full, is_full) if name == "weeks" else (True, False)
        parts = (_value(name.removesuffix("s"), kinds[0], tone, each) for each in order)
        return _TOTALS if kinds[0] is Total else tuple(parts)
    if kind is str:
        text = tone if name == "tone" else _TEXTS.get(name, name)
        return "" if name in _MAY_BE_EMPTY and not is_full else text
    if kind in (int, bool):
        return kind(3 * is_full)
    return _sample(kind, tone, is_full=is_full)


def _samples(report: Callable[..., _Report]) -> list[_Report]:
    return [_sample(report, tone, is_full=is_full) for tone in _TONES for is_full in (True, False)]


_SITES = _samples(SiteView)
_GROUP = _sample(FindingGroup, "bad")
_OF_LIST = replace(_GROUP.lines[0], docid="", place="", url="alder.example.org/eml.xml")
_OTHER_SITE = replace(
    _SITES[0],
    start_here=(),
    news=(replace(_GROUP, lines=(_OF_LIST,)),),
    unchanged=NamedDocuments(1, (NamedDocument("alder.1.1", _TEXTS["url"]),)),
    registered=(("Harvest list", _TEXTS["url"]), ("Enabled", "yes")),
)
"""A site report without first steps, with a problem of the list, a URL without scheme, and documents without notes."""

_RUNS = [replace(each, log_file="", log_file_error="") for each in _samples(AdminView)]
_PROBLEM = replace(_RUNS[0].problems[0], rule="target.settings")
"""A problem with a remedy for the administrator."""

_LETTERS = [_sample(DoorLetter, "good", is_full=is_full) for is_full in (True, False)]

SAMPLES: Mapping[str, Sequence[View | DoorLetter]] = {
    "site_report": [*_SITES, _OTHER_SITE, replace(_SITES[0], is_rehearsal=False)],
    "admin_report": [
        *_RUNS,
        replace(_RUNS[0], is_rehearsal=False, start_here=(), problems=(_PROBLEM,)),
        replace(_RUNS[0], log_file="/srv/reports/run-1.txt"),
        replace(_RUNS[0], log_file_error="No space left on device."),
        replace(_RUNS[-1], pipeline=PipelineNote("All is well.")),
    ],
    "digest_report": _samples(DigestView),
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
