"""The exit codes of all commands. docs/operators.md lists the codes of `run`; the units in packaging/ follow them."""

from __future__ import annotations

from enum import IntEnum

from metaharvest.errors import (
    DatabaseError,
    FetchError,
    IndexUnavailable,
    ListError,
    LockHeld,
    MetaharvestError,
    NotTaken,
    RunLost,
    TargetError,
)


class ExitCode(IntEnum):
    """The end of a command. 69 and 75 come from sysexits.h (EX_UNAVAILABLE, EX_TEMPFAIL); 130 is 128 + SIGINT."""

    DONE = 0
    FAILED = 1
    """For `run`: an unexpected failure, perhaps without any mail. The help of other commands explains it."""
    USAGE = 2
    """Settings or usage: nothing was done."""
    SITE_FAILED = 3
    """`run`: done, but a site or a target failed as a whole or a deadline passed; the administrator's mail says so."""
    NOT_DELIVERED = 4
    """`run`: done, but a report could not be handed over to the mail server."""
    DATABASE = 69
    """The database cannot be used."""
    LOCKED = 75
    """Another run is under way: nothing was done."""
    INTERRUPTED = 130
    """Stopped by SIGTERM or Ctrl-C."""


def exit_code_of(error: MetaharvestError) -> ExitCode:
    """The exit code of a command that ends with `error`."""
    if isinstance(error, LockHeld):
        return ExitCode.LOCKED
    if isinstance(error, DatabaseError):
        return ExitCode.DATABASE
    is_failure = isinstance(error, RunLost | NotTaken | TargetError | FetchError | ListError | IndexUnavailable)
    return ExitCode.FAILED if is_failure else ExitCode.USAGE
