"""The input of commands: the harvester that the settings file describes; values of common options."""

from __future__ import annotations

import getpass
import inspect
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from enum import Enum
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from metaharvest.config.secret_references import masked
from metaharvest.errors import RequestError
from metaharvest.text import clean, one_line

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from metaharvest.model import Network
    from metaharvest.publishing.contents import FolderOptions
    from metaharvest.services.harvester import Harvester, RunLimits

_Value = TypeVar("_Value")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

ROWS = click.IntRange(1, 1_000_000_000)
NUMBER = click.IntRange(1, 2**53)
"""The number of a row, as JSON and every database can hold it."""

_DAYS = (date(1970, 1, 1), date(9000, 1, 1))
"""The days on which a harvest is possible; the ends of the calendar have no day before or after."""


class Invocation:
    """The input of every command. `config` is the settings file, if one was named; main() describes the others."""

    def __init__(self, config: Path | None, limits: RunLimits | None = None, engine: Engine | None = None) -> None:
        self.config = config
        self.limits = limits
        self.engine = engine

    @cached_property
    def harvester(self) -> Harvester:
        """The harvester of the settings file, with valid settings. Raises SettingsError."""
        from metaharvest.config.settings import load
        from metaharvest.model.requests import Actor
        from metaharvest.services.harvester import Harvester

        return Harvester(load(self.config), engine=self.engine, limits=self.limits, actor=Actor(login()))

    def again(self, config: Path | None = None) -> Invocation:
        """The same invocation, which reads the settings file again."""
        return Invocation(config or self.config, self.limits, self.engine)

    @property
    def start(self) -> str:
        """The beginning of a command line with the same settings file."""
        return f"{called_as()} --config {shlex.quote(str(self.config))}" if self.config else called_as()

    def close(self) -> None:
        """Close the database, if it was opened."""
        if "harvester" in vars(self):
            self.harvester.close()


@contextmanager
def usage_errors() -> Iterator[None]:
    """Raises UsageError if a service raises RequestError."""
    try:
        yield
    except RequestError as error:
        raise click.UsageError(clean(masked(str(error)))) from error


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Raises click.FileError for an OSError about the file at `path`."""
    try:
        yield
    except OSError as error:
        raise click.FileError(str(path), error.strerror) from error


def require_yes(yes: bool, question: str, to_add: str) -> None:
    """Ask the person at the terminal, unless the option `yes` says yes already; only a yes lets the command go on.

    `to_add` says what to add to the command if nobody is there.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"Nobody is here to ask: add {to_add}")
    click.confirm(question, abort=True)


def called_as() -> str:
    """The name of this program for command lines to paste: its bare name only if that finds this program."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("metaharvest", "__main__.py"):
        return f"{shlex.quote(sys.executable)} -m metaharvest"
    found = shutil.which("metaharvest")
    is_found = found is not None and called.exists() and called.samefile(found)
    return "metaharvest" if is_found or called.name != "metaharvest" else shlex.quote(sys.argv[0])


def login() -> str:
    """The user name of the person at this terminal, also behind sudo; empty if the machine has none."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return ""


def parsed(parse: Callable[[Any], _Value]) -> Callable[[click.Context, click.Parameter, Any], _Value | None]:
    """The callback of an option: parses its value, if there is one. A ValueError becomes click.BadParameter."""

    def callback(_context: click.Context, _parameter: click.Parameter, value: Any) -> _Value | None:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return callback


def one_of(complaint: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], str | None]:
    """The callback of an option that is repeated in other commands: its value, if there is one.

    Several values raise click.BadParameter with this complaint.
    """

    def the_one(values: tuple[str, ...]) -> str | None:
        if len(values) > 1:
            raise ValueError(complaint)
        return next(iter(values), None)

    return parsed(the_one)


def _day(text: str) -> date:
    try:
        found = date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"'{one_line(text)}' is not a date; write it like 2026-11-20") from None
    if not _DAYS[0] <= found <= _DAYS[1]:
        raise ValueError(f"{found} is too far away; it must be from {_DAYS[0]} to {_DAYS[1]}")
    return found


day = parsed(_day)
"""An option's value, written like 2026-11-20, as a date."""

trimmed = parsed(str.strip)
"""A docid without the spaces of a copy from a table or a mail."""


def networks_of(texts: Iterable[str]) -> tuple[Network, ...]:
    """Texts such as 10.1.0.0/16, as networks. Raises ValueError."""
    from metaharvest.config.field_types import check_network

    return tuple(map(check_network, texts))


NETWORKS = click.option(
    "--allow-network",
    "networks",
    metavar="CIDR",
    multiple=True,
    callback=parsed(networks_of),
    help="Addresses that are not public and may be asked, such as 127.0.0.0/8. May be repeated.",
)
"""An exception from the settings, for one command."""

AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


def alone(command: Callable[..., Any]) -> Callable[..., Any]:
    """Run this function of a group, with the Invocation, only if no command in the group is called."""

    @click.pass_context
    def call(context: click.Context, /, **values: Any) -> None:
        if context.invoked_subcommand is None:
            command(context.obj, **values)

    return call


class OutputForm(Enum):
    """The form of a command's output."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


def json_or_csv(about_csv: str) -> Decorator:
    """Add --json and --csv to a command, which gets `form`. Both at once are a UsageError."""
    return options_as("form", _form, AS_JSON, click.option("--csv", "as_csv", is_flag=True, help=about_csv))


def _form(as_json: bool, as_csv: bool) -> OutputForm:
    if as_json and as_csv:
        raise click.UsageError("Use one of --json and --csv.")
    return OutputForm.JSON if as_json else OutputForm.CSV if as_csv else OutputForm.TEXT


def options_as(name: str, make: Callable[..., object], *options: Decorator) -> Decorator:
    """Add options to a command, which gets them as one argument, `name`: `make` makes it from their values, by name."""
    names = list(inspect.signature(make).parameters)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_value(*arguments: Any, **values: Any) -> Any:
            made = make(**{each: values.pop(each) for each in names})
            return command(*arguments, **values, **{name: made})

        return with_options(*options)(with_value)

    return decorate


def with_options(*options: Decorator) -> Decorator:
    """Add these options to a command, in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _folders(
    patterns: tuple[str, ...], excluded: tuple[str, ...], names: str | None, scope: str | None, revisions: str | None
) -> FolderOptions:
    from metaharvest.publishing.contents import FolderOptions, Revisions
    from metaharvest.publishing.folder import PATTERNS, Selection
    from metaharvest.publishing.naming import NamePattern

    if scope and not names:
        raise click.UsageError("--scope goes with --from-names: otherwise the packageIds have the scopes.")
    return FolderOptions(
        Selection(patterns or PATTERNS, excluded),
        NamePattern(names, scope or "") if names else None,
        Revisions(revisions) if revisions else None,
    )


FOLDERS = options_as(
    "options",
    _folders,
    click.option(
        "--pattern",
        "patterns",
        metavar="GLOB",
        multiple=True,
        help="Names of the files that are documents. May be repeated. [default: *.xml and *.eml]",
    ),
    click.option(
        "--exclude", "excluded", metavar="GLOB", multiple=True, help="Files and folders to leave out. May be repeated."
    ),
    click.option(
        "--from-names",
        "names",
        metavar="PATTERN",
        help='Take the docids from the names of the files, as in "{scope}.{identifier}.{revision}.xml", and not from '
        "the packageIds. {revision} may be missing; * stands for anything.",
    ),
    click.option("--scope", help="With --from-names: the scope of all documents, where the names have none."),
    click.option(
        "--revisions",
        type=click.Choice(["newest", "all"]),
        help="Which to list of several revisions of a document, each in a file of its own. "
        "[default: the newest, and complain]",
    ),
)
"""Which files of a folder are documents: a command gets `options`, FolderOptions."""
