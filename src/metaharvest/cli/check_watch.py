"""`metaharvest check --watch`: checks again whenever a file changes, and tells what is new and what is mended.

Files are looked at twice a second: that works on every file system, and for editors that put a new file in the place of
the old one. What is on web servers is fetched once.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from metaharvest.cli.signals import handled, stop_on_signal
from metaharvest.errors import CannotBeChecked
from metaharvest.text import clean, one_line

if TYPE_CHECKING:
    from metaharvest.cli.check_outputs import Outputs, Told
    from metaharvest.cli.invocation import Invocation
    from metaharvest.harvest.deadlines import StopSignal
    from metaharvest.model import Finding
    from metaharvest.rehearsal.check import CheckOptions
    from metaharvest.rehearsal.results import CheckedDocument, CheckedPart

_SECONDS = 0.5
"""How often files are looked at, as long as that takes next to no time."""

_SHARE = 20
"""To look at them takes at most this part of the time."""

_NAMED = 5
"""So many changed files are named."""

_Fingerprint = tuple[str, str, str, str, str, int]
_Findings = dict[_Fingerprint, tuple["CheckedPart", "CheckedDocument", "Finding"]]
_Stamps = dict[Path, tuple[int, int, int]]


def watch_for_changes(invocation: Invocation, arguments: Sequence[str], how: CheckOptions, outputs: Outputs) -> int:
    """Check, and check again whenever a file has changed, until Ctrl-C; the exit code.

    Raises CannotBeChecked if there is nothing to check, or nothing to watch; KeyboardInterrupt if the first check was
    not done.
    """
    from metaharvest.rehearsal.input.source import Copies

    with (
        handled(_stop, signal.SIGTERM),
        tempfile.TemporaryDirectory(prefix="metaharvest-", ignore_cleanup_errors=True) as folder,
    ):
        watched = _Watched(invocation, arguments, replace(how, copies=Copies(Path(folder), reused=True)), outputs)
        watched.check_first()
        with stop_on_signal("Stopped.") as stop:
            while changed := watched.wait_for_change(stop):
                watched.check_again(changed, stop)
        click.echo("Stopped.", err=True)
        return 0


def _stop(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


class _Watched:
    """What is watched, and what was found in it the last time."""

    def __init__(self, invocation: Invocation, arguments: Sequence[str], how: CheckOptions, outputs: Outputs) -> None:
        self._invocation = invocation
        self._arguments = arguments
        self._how = how
        self._outputs = outputs
        self._found: _Findings = {}
        self._paths: tuple[Path, ...] = ()
        self._stamps: _Stamps = {}

    def check_first(self) -> None:
        """Check everything, and tell all of it."""
        with ExitStack() as stack:
            told = self._checked(stack)
            if not self._paths:
                raise CannotBeChecked("There is nothing to watch: --watch looks at files and folders of this computer.")
            self._outputs.write(told)
        click.echo("Watching for changes; Ctrl-C ends it.", err=True)
        self._outputs = replace(self._outputs, opens=False)

    def check_again(self, changed: Sequence[Path], stop: StopSignal) -> None:
        """Check everything; tell what has changed with it, unless it was stopped."""
        before = self._found
        try:
            with ExitStack() as stack:
                told = self._checked(stack, stop)
                if not stop.is_set():
                    self._outputs.write_files(told)
                    self._tell(told, before, changed)
        except CannotBeChecked as error:
            # Perhaps somebody is just moving it.
            click.echo(clean(str(error)), err=True)

    def _checked(self, stack: ExitStack, stop: StopSignal | None = None) -> Told:
        """The rehearsal, and what of it is to be watched: changes that came meanwhile count as not seen."""
        began, seen = time.time_ns(), self._stamps
        how = replace(self._how, stop=stop)
        checked = stack.enter_context(self._invocation.harvester.check(self._arguments, how))
        told = self._outputs.told(checked)
        self._found = _findings(told)
        self._paths = (*checked.given.arguments.local, *_files(told.listed_files))
        now, stamps = time.time_ns(), _stamps(self._paths)
        self._stamps = {path: seen.get(path, stamps[path]) for path in stamps if not began <= stamps[path][0] <= now}
        return told

    def wait_for_change(self, stop: StopSignal) -> list[Path]:
        """The files that have changed, have come or are gone, as soon as there are any; none if it was stopped."""
        while not stop.is_set():
            began = time.monotonic()
            now = _stamps(self._paths)
            if now != self._stamps:
                changed = [path for path in (now | self._stamps) if now.get(path) != self._stamps.get(path)]
                self._stamps = now
                return changed
            time.sleep(max(_SECONDS, _SHARE * (time.monotonic() - began)))
        return []

    def _tell(self, told: Told, before: _Findings, changed: Sequence[Path]) -> None:
        """The findings that are new, those that are gone, and how it would end now."""
        from metaharvest.cli.check_outputs import printer_of

        printer = printer_of(told)
        names = [one_line(told.places.name(path.as_uri())) for path in changed]
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        printer.line(f"{time.strftime('%H:%M:%S')}  {', '.join(names[:_NAMED])}{more}", "bold cyan")
        for key, (part, document, finding) in self._found.items():
            if key not in before:
                printer.finding(part, document, finding)
        for key, (_, document, finding) in before.items():
            if key not in self._found:
                printer.line(f"Gone: {told.places.name(document.url)}  {finding.rule}  {finding.message}", "green")
        levels = Counter(finding.level.value for _, _, finding in self._found.values())
        errors, warnings = levels["error"], levels["warning"]
        printer.line(f"{told.story}. Errors: {errors:,}, warnings: {warnings:,}.", "bold red" if errors else "bold")


def _findings(told: Told) -> _Findings:
    """Every finding by what tells it from others, whichever line it is in.

    A docid that no list gives is none of that: it changes with those of other files.
    """
    found: _Findings = {}
    number: Counter[tuple[str, ...]] = Counter()
    for part, documents in told.parts:
        for document in documents:
            for finding in document.reported_findings:
                docid = document.docid if part.name.is_list else ""
                key = (document.url, docid, finding.rule, finding.xpath, finding.message)
                number[key] += 1
                found[(*key, number[key])] = (part, document, finding)
    return found


def _files(urls: Iterable[str]) -> Iterable[Path]:
    from metaharvest.fetch.local_files import path_of

    return (path for url in urls if (path := path_of(url)) is not None)


def _stamps(paths: Iterable[Path]) -> _Stamps:
    """When each of these files was changed, how large it is and which it is; of a folder, each file in it."""
    from metaharvest.rehearsal.input.arguments import is_looked_at

    stamps: _Stamps = {}
    for path in paths:
        if path.is_dir():
            for where, folders, names in os.walk(path):
                folders[:] = [name for name in folders if not name.startswith(".")]
                for name in filter(is_looked_at, names):
                    _add_stamp(Path(where, name), stamps)
        else:
            _add_stamp(path, stamps)
    return stamps


def _add_stamp(path: Path, stamps: _Stamps) -> None:
    with suppress(OSError):
        if path not in stamps:
            found = path.stat()
            stamps[path] = found.st_mtime_ns, found.st_size, found.st_ino
