"""Findings about internal errors of metaharvest, and about a full folder for temporary files."""

from __future__ import annotations

import errno
import sqlite3
import tempfile
import traceback

from metaharvest.config.secret_references import masked
from metaharvest.database.dialects import temporary_folder
from metaharvest.errors import NotWritten
from metaharvest.model import Finding
from metaharvest.text import one_line

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})


_MORE_MEMORY = (
    "The next run tries again. The administrator should give the harvester more memory, or find the large "
    "documents of this site."
)
_REFUSED = (
    "Only this is lost. The administrator should find out which value of this site is too long or too large for "
    "the database, and report it to the developers of metaharvest."
)


def is_no_room(error: Exception) -> bool:
    """True if a temporary file could not be written: the disk is full, or closed for writing."""
    return isinstance(error, sqlite3.OperationalError) or (isinstance(error, OSError) and error.errno in _NO_ROOM)


def is_no_memory(error: BaseException) -> bool:
    """True if the system gave no memory: for a value, a process, or a thread."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "start new thread" in str(error))


def internal_error(error: Exception, what: str) -> Finding:
    """The error, with the traceback for the developers; or a finding that there is no room for temporary files.

    `what` begins the sentence: "The harvester itself failed on this document".
    """
    if is_no_room(error):
        reason = one_line(getattr(error, "strerror", None) or str(error))
        folder = temporary_folder() if isinstance(error, sqlite3.Error) else tempfile.gettempdir()
        return Finding(
            "harvest.no-room",
            f"{what}: there is no room for its temporary files in {folder} ({reason}).",
            f"The administrator should make room in {folder}, or have TMPDIR name another folder. The "
            "next run tries again.",
        )
    if is_no_memory(error):
        message = f"{what}: there is not enough memory for it on this machine."
        return Finding("harvest.no-memory", message, _MORE_MEMORY)
    if isinstance(error, NotWritten):
        return Finding("harvest.not-written", f"{what}: the database refused the rows: {error}.", _REFUSED)
    return Finding(
        "harvest.surprise",
        f"{what}: {type(error).__name__}: {one_line(masked(str(error)))}",
        "The administrator should report this to the developers of metaharvest, with the traceback in the log.",
        excerpt=masked("".join(traceback.format_exception(error)))[-4000:],
    )
