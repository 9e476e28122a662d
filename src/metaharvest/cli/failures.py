"""One JSON object on stdout for a command that fails, in place of the document that a program asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import click

from metaharvest.cli.printing import print_json
from metaharvest.errors import (
    DatabaseError,
    IndexUnavailable,
    LockHeld,
    MetaharvestError,
    NoIndex,
    RunLost,
    ScheduleError,
    SettingsError,
    TargetError,
)

_KINDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (click.FileError, "file"),
    (click.ClickException, "usage"),
    ((click.Abort, KeyboardInterrupt), "interrupted"),
    (SettingsError, "settings"),
    (ScheduleError, "schedule"),
    (LockHeld, "locked"),
    ((DatabaseError, RunLost), "database"),
    (TargetError, "target"),
    ((NoIndex, IndexUnavailable), "index"),
    (MetaharvestError, "request"),
    (OSError, "file"),
)
"""The first match counts."""


def print_error_object(arguments: Sequence[str], error: BaseException, exit_code: int, message: str) -> int:
    """Print the object if the command has --json; returns the exit code."""
    if "--json" in arguments:
        with suppress(OSError):
            print_json({"error": {"kind": _kind(error), "message": message, "exit_code": exit_code}})
    return exit_code


def _kind(error: BaseException) -> str:
    return next((name for kinds, name in _KINDS if isinstance(error, kinds)), "unexpected")
