"""The input of commands: the harvester that the settings file describes; values of common options."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.errors import RequestError
from metaharvest.text import one_line

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from metaharvest.model import Network
    from metaharvest.services.harvester import Harvester, RunLimits

ROWS = click.IntRange(1, 1_000_000_000)
"""The largest number of rows."""

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
        raise click.UsageError(str(error)) from error


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


def period(invocation: Invocation, begin: date | None, end: date | None) -> tuple[date, date]:
    """The first and the last day of a period; by default from 1 January to today."""
    last = end or invocation.harvester.today()
    first = begin or last.replace(month=1, day=1)
    if first > last:
        raise click.UsageError(f"--from {first} is after --to {last}.")
    return first, last


def day(_context: click.Context, _parameter: click.Parameter, text: str | None) -> date | None:
    """An option's value, written like 2026-11-20, as a date. Raises click.BadParameter."""
    if text is None:
        return None
    try:
        found = date.fromisoformat(text.strip())
    except ValueError:
        raise click.BadParameter(f"'{one_line(text)}' is not a date; write it like 2026-11-20") from None
    if not _DAYS[0] <= found <= _DAYS[1]:
        raise click.BadParameter(f"{found} is too far away; it must be from {_DAYS[0]} to {_DAYS[1]}")
    return found


def _networks(_context: click.Context, _parameter: click.Parameter, texts: Sequence[str]) -> tuple[Network, ...]:
    """An option's values, such as 10.1.0.0/16, as networks. Raises click.BadParameter."""
    from metaharvest.config.field_types import check_network

    try:
        return tuple(check_network(text) for text in texts)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


NETWORKS = click.option(
    "--allow-network",
    "networks",
    metavar="CIDR",
    multiple=True,
    callback=_networks,
    help="Addresses that are not public and may be asked, such as 127.0.0.0/8. May be repeated.",
)
"""An exception from the settings, for one command."""


def trimmed(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """A docid without the spaces of a copy from a table or a mail."""
    return None if text is None else text.strip()
