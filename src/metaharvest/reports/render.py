"""Renders a view: with Jinja2 templates, or as a plain report if a template fails.

The templates are in the package; a folder in the settings (`reports.templates`) may replace any of them, file by file
under the same names: `email/site_report/body.html`. Everything in HTML is escaped. A template is a program: with
such a folder all templates run in Jinja2's sandbox (https://jinja.palletsprojects.com/en/stable/sandbox/), and
`template_check.py` tries them in a process with limits.
"""

from __future__ import annotations

import logging
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from html import escape
from importlib.util import cache_from_source
from pathlib import Path
from traceback import extract_tb
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, TemplateError, compiler
from jinja2.bccache import Bucket
from jinja2.exceptions import TemplateNotFound, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from metaharvest import __version__
from metaharvest.config.paths import data_folder
from metaharvest.config.settings import Settings
from metaharvest.mail.message import RenderedText
from metaharvest.model.actions import Todo, parts, todo
from metaharvest.reports.admin_view import AdminView
from metaharvest.reports.digest_view import DigestView
from metaharvest.reports.findings import FindingGroup, FindingLine
from metaharvest.reports.phrasing import View
from metaharvest.reports.site_view import SiteView
from metaharvest.rules import RULES, RULES_PAGE, anchor
from metaharvest.text import counted, one_line

WIDTH = 78
_BLANK_IN_COMMAND = "\0"
ENCODING = "utf-8-sig"
_OF_EVERY_RUN = ("email/site_report/", "email/admin_report/", "email/shared/")
TEMPLATE_FILES = ("subject.txt", "body.txt", "body.html")

_log = logging.getLogger(__name__)


def render(folder: str, view: View, settings: Settings) -> RenderedText:
    """The report from the templates `email/FOLDER/{subject.txt,body.txt,body.html}`.

    If a template fails, for any reason, the report is a plain one that says which template failed, and why.
    """
    environment = environment_for(settings)
    parts: dict[str, str] = {}
    name = ""
    try:
        for part in TEMPLATE_FILES:
            name = f"email/{folder}/{part}"
            parts[part] = environment.get_template(name).render(report=view)
    except Exception as error:  # noqa: BLE001 - a template is a program, perhaps of another person
        _log.warning("The report template %s failed.", name, exc_info=True)
        return plain_report(view, f"The report template {name} could not be used: {reason_of(error)}")
    return RenderedText(one_line(parts["subject.txt"].strip()), parts["body.txt"], parts["body.html"])


def make_ready(settings: Settings) -> None:
    """Compile the templates of the reports that every run has, so that rendering need not wait for them.

    Their errors are reported when they are rendered.
    """
    environment = environment_for(settings)
    for name in environment.list_templates(filter_func=lambda name: name.startswith(_OF_EVERY_RUN)):
        with suppress(Exception):
            environment.get_template(name)


def render_page(template: str, view: object, settings: Settings) -> str:
    """A page from one template. Raises the template's errors."""
    return environment_for(settings).get_template(template).render(report=view)


class CompiledTemplates(FileSystemBytecodeCache):
    """The compiled templates of this version, in a folder. A template is compiled again if its file cannot be used.

    To compile the templates of a run takes 0.1 to 0.2 s.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), f"template-%s.{sys.implementation.cache_tag}.bin")

    def get_source_checksum(self, source: str) -> str:
        """The checksum of the template's text, this version, and the date of Jinja's compiler."""
        compiler_date = Path(compiler.__file__).stat().st_mtime_ns
        return super().get_source_checksum(f"{__version__} {compiler_date} {source}")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a kept template. Unpickling a damaged file may raise any exception."""
        try:
            super().load_bytecode(bucket)
        except Exception:  # noqa: BLE001
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template, unless Python keeps no compiled modules. An error of the folder is ignored."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)


def environment_for(settings: Settings) -> Environment:
    """The environment for the templates that the settings name."""
    own = settings.reports.templates
    return _environment_of(settings.path(own) if own is not None else None, settings.reports.docs_url)


@lru_cache(maxsize=8)
def _environment_of(own: Path | None, docs_url: str) -> Environment:
    """The environment keeps compiled templates, and compiles a file again if it has changed.

    `docs_url` is the address of the documentation as a site; the templates have its page of rules as `rules_page`.
    """
    folders = [data_folder("templates")] if own is None else [own, data_folder("templates")]
    kind = Environment if own is None else ImmutableSandboxedEnvironment
    # Beside the compiled modules. Templates of a folder in the settings are compiled to other code, which has limits.
    compiled = CompiledTemplates(Path(cache_from_source(__file__)).parent) if own is None else None
    environment = kind(
        loader=FileSystemLoader(folders, encoding=ENCODING),
        bytecode_cache=compiled,
        autoescape=lambda name: name is None or not name.endswith(".txt"),
        undefined=StrictUndefined,
        # Most templates are rendered once: to optimise them takes longer.
        optimized=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(wrapped=wrapped, underlined=underlined, comma="{:,}".format, marked=marked)
    environment.globals["action"] = todo
    environment.globals["rules_page"] = rules_page = f"{docs_url}/{RULES_PAGE}" if docs_url else ""
    environment.filters["page"] = lambda rule: f"{rules_page}#{anchor(rule)}" if rules_page and rule in RULES else ""
    environment.tests["web"] = lambda url: url.lower().startswith(("http://", "https://"))
    return environment


def wrapped(text: str, indent: int = 0, first: str = "") -> str:
    """`text` in lines of up to 78 characters, indented; `first` begins the first line.

    Long words (URLs) and commands stay whole, so that they can be pasted.
    """
    commands = [str(part) for part in parts(text) if isinstance(part, Todo)]
    for command in commands:
        text = text.replace(command, command.replace(" ", _BLANK_IN_COMMAND))
    lines = _wrapped(text, indent, first)
    return lines.replace(_BLANK_IN_COMMAND, " ") if commands else lines


def _wrapped(text: str, indent: int, first: str) -> str:
    space = " " * indent
    begin, further = space + first, space + " " * len(first)
    room = WIDTH - len(begin)
    if text and room > 0 and text.isprintable() and text == text.strip() and "  " not in text:
        return begin + f"\n{further}".join(_lines_of(text, room))
    return textwrap.fill(
        text, WIDTH, initial_indent=begin, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )


def _lines_of(text: str, room: int) -> Iterator[str]:
    """In the form of textwrap, for words with one blank between them; that is most texts, and ten times as fast."""
    start = 0
    while len(text) - start > room:
        end = text.rfind(" ", start, start + room + 1)
        if end < 0:
            end = text.find(" ", start + room)
        if end < 0:
            break
        yield text[start:end]
        start = end + 1
    yield text[start:]


def underlined(text: str, character: str = "=") -> str:
    """A heading for plain text."""
    heading = wrapped(text)
    return f"{heading}\n{character * min(max(len(line) for line in heading.splitlines() or ['']), WIDTH)}"


def marked(text: str) -> Markup:
    """`text` escaped for HTML; actions, and text between backticks, become code."""
    opening = """<code style="font-family:Consolas,Menlo,'DejaVu Sans Mono',monospace;font-size:93%">"""
    return Markup("").join(
        Markup(
            f"{opening}{escape(part.command)}</code>"
            if isinstance(part, Todo)
            else re.sub("`([^`]+)`", rf"{opening}\1</code>", escape(part))
        )
        for part in parts(text)
    )


def reason_of(error: Exception) -> str:
    """The fault of a template in words, with the line."""
    if isinstance(error, TemplateNotFound):
        return f"{one_line(str(error.name))} is not there."
    if isinstance(error, TemplateSyntaxError):
        return f"line {error.lineno}: {one_line(str(error.message))}"
    # Jinja2 makes tracebacks that name the templates and their lines.
    frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename.endswith((".txt", ".html"))]
    place = f"line {frames[-1].lineno} of {Path(frames[-1].filename).name}: " if frames else ""
    said = str(error) if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
    return place + one_line(said)


def plain_report(view: View, notice: str) -> RenderedText:
    """The essentials without any template: the story, the totals, the findings; `notice` says why it is plain."""
    about = f"{view.site}: {view.story}" if isinstance(view, SiteView) else view.story
    lines = [
        wrapped(notice),
        wrapped("This is a plain report with the essentials. Its administrator can correct the template."),
        "",
        wrapped(f"{about} ({view.date})"),
        wrapped(view.sentence),
        "",
        *(f"{total.number:>12,}  {total.label}" for total in view.totals),
        "",
        *_plain(view),
        wrapped(view.table.sentence),
    ]
    text = "\n".join(lines).rstrip() + "\n"
    head = '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"></head>'
    page = f"{head}<body><pre>{escape(text)}</pre></body></html>\n"
    return RenderedText(f"[{view.network}] {about} ({view.date})", text, page)


def _plain(view: View) -> Iterator[str]:
    if isinstance(view, DigestView):
        yield from _plain_digest(view)
    if isinstance(view, SiteView | AdminView):
        yield from (wrapped(f"{step.what} {step.todo}", 0, f"{at}. ") for at, step in enumerate(view.start_here, 1))
        yield from _plain_site(view) if isinstance(view, SiteView) else _plain_run(view)


def _plain_digest(view: DigestView) -> Iterator[str]:
    for site in view.sites:
        came = ", ".join(str(week.went_in) for week in site.weeks)
        failed = f"{counted(site.last.broken, 'harvest')} and {counted(site.last.failed, 'document')} failed"
        yield wrapped(f"{site.name}: {came}; {failed}")
    for failing in view.failing:
        yield wrapped(f"Still failing since {failing.since}: {failing.name}, {failing.rules}")


def _plain_site(view: SiteView) -> Iterator[str]:
    yield from [wrapped(view.reason)] if view.reason else []
    yield from _plain_groups((*view.attention, *view.warnings))
    for heading, remembered in (("Still broken", view.still_unseen), ("Fixed", view.fixed)):
        yield from (
            wrapped(f"{heading}: {each.title} ({each.count:,}) {', '.join(each.documents)}") for each in remembered
        )
    for label, names in (("Corrected", view.mended), ("New", view.inserted), ("Updated", view.updated)):
        yield from (f"{label}: {row.docid} {row.url}" for row in names.rows)
        yield from [f"{label}: {names.more:,} more"] if names.more else []
    yield f"Next harvest: {view.next_harvest}"


def _plain_run(view: AdminView) -> Iterator[str]:
    for row in view.sites:
        yield wrapped(f"{row.name}: {row.status}; {row.listed:,} listed. {row.details}".rstrip())
    for failure in view.failures:
        yield wrapped(f"{failure.name}: {failure.reason}")
        yield from _plain_groups(failure.groups)
    yield from (wrapped(sentence) for sentence in (*view.troubles, *view.waits))
    for problem in view.problems:
        yield wrapped(", ".join(filter(None, (f"{problem.site}: {problem.title}", problem.counted))))
        yield from _plain_lines([problem.example])
    for site in view.failing:
        yield wrapped(f"Still failing since {site.since}: {site.name}, {site.rules}")
    for mail in view.undelivered:
        yield wrapped(f"{mail.state}: {mail.recipient}, {mail.subject}: {mail.error}")


def _plain_groups(groups: Iterable[FindingGroup]) -> Iterator[str]:
    for group in groups:
        yield wrapped(f"{group.title} ({group.count:,})")
        yield from _plain_lines(group.lines)
        yield from [wrapped(group.message, 2)] if group.message else []
        yield from [wrapped(f"What to do: {group.remedy}", 2)] if group.remedy else []
        yield from [f"  and {group.more:,} more"] if group.more else []


def _plain_lines(lines: Iterable[FindingLine]) -> Iterator[str]:
    for line in lines:
        yield wrapped(" ".join(filter(None, (line.docid, line.place, line.url))), 2)
        texts: list[Any] = [line.message, f"What to do: {line.remedy}" if line.remedy else "", line.since]
        yield from (wrapped(part, 4) for part in texts if part)
