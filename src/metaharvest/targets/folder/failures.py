"""The failures of a folder and its index, as sentences for the administrator."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from metaharvest.errors import TargetError
from metaharvest.model import Finding
from metaharvest.model.actions import Remedy, todo
from metaharvest.text import one_line

REBUILD = Remedy("{} (with --target NAME or --site NAME, unless it is that of [target])", todo("targets.rebuild"))
"""The folder does not know which section of the settings names it."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM)
_NO_ROOM_BYTES = 100_000
_LATER = "The next run sends the documents again."


def failure(rule: str, message: str, remedy: str) -> TargetError:
    """A transient TargetError with one finding: it concerns the whole folder, not this document."""
    return TargetError(Finding(rule, message, remedy), transient=True)


@contextmanager
def in_sentences(base: Path) -> Iterator[None]:
    """Turn errors of the file system, and of the index, into TargetErrors about the folder `base`."""
    try:
        yield
    except OSError as error:
        raise _of_files(error, base) from error
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.Error as error:
        raise _of_index(error, base) from error
    except UnicodeDecodeError as error:
        # sqlite3 raises it for a damaged index.
        raise damaged(base, "is damaged: it has text that is not UTF-8") from error


def shown(path: Path | str) -> str:
    """A path in a sentence."""
    return one_line(str(path), 500)


def out_of_date(base: Path, what: str) -> TargetError:
    """The error about an index that does not agree with the files: `what` is the place."""
    remedy = Remedy("Put the files back, or rebuild the index: {}; what is then missing is harvested again.", REBUILD)
    return failure("target.folder-index", f"The index of the folder {shown(base)} is out of date: {what}.", remedy)


def damaged(base: Path, what: str) -> TargetError:
    """The error about an unusable index: `what` is the reason."""
    remedy = Remedy("Rebuild the index from the files: {}. No document is lost.", REBUILD)
    return failure("target.folder-index", f"The index of the folder {shown(base)} {what}.", remedy)


def linked(base: Path, path: str) -> TargetError:
    """The error about a link in the path of a file: links are not followed."""
    message = f"{shown(base / path)} is a symbolic link, or no folder or file as it should be: it is not followed."
    return TargetError(Finding("target.folder-link", message, "The administrator should move it out of the way."))


def _of_files(error: OSError, base: Path) -> TargetError:
    reason = one_line(error.strerror or str(error))
    if error.errno in _FULL:
        remedy = f"Make room there. {_LATER}"
        return failure("target.folder-full", f"There is no room left in the folder {shown(base)}: {reason}.", remedy)
    if error.errno == errno.EROFS:
        message = f"The folder {shown(base)} cannot be written: its file system is read-only."
        return failure("target.folder-refused", message, f"Mount it so that it can be written. {_LATER}")
    if error.errno in _REFUSED:
        remedy = f"Let the harvester's user (number {os.geteuid()}) write there. {_LATER}"
        message = f"The folder {shown(base)}, or something in it, cannot be written or read: {reason}."
        return failure("target.folder-refused", message, remedy)
    if error.errno in (errno.EEXIST, errno.ENOTDIR) and (file := _file_on_the_way(base)):
        message = f"The folder {shown(base)} cannot be used: {shown(file)} is a file, and no folder."
        remedy = f"Move it out of the way, or name another folder in the settings. {_LATER}"
        return failure("target.away", message, remedy)
    remedy = f"Check that its disk, or its server, is there. {_LATER}"
    return failure("target.away", f"The folder {shown(base)} cannot be used: {reason}.", remedy)


def _file_on_the_way(base: Path) -> Path | None:
    """The file in the place of a folder; None if there is none."""
    with suppress(OSError):
        return next((each for each in (base, *base.parents) if each.exists() and not each.is_dir()), None)
    return None


def _likely_cause(base: Path) -> int:
    """The likely reason why a SQLite file in the folder cannot be used; SQLite itself does not name it."""
    with suppress(OSError):
        found = os.statvfs(base)
        if found.f_flag & os.ST_RDONLY:
            return errno.EROFS
        if found.f_bavail * found.f_frsize < _NO_ROOM_BYTES:
            return errno.ENOSPC
        if not os.access(base / ".metaharvest", os.R_OK | os.W_OK | os.X_OK):
            return errno.EACCES
    return errno.EIO


def _of_index(error: sqlite3.Error, base: Path) -> TargetError:
    name, reason = getattr(error, "sqlite_errorname", ""), one_line(str(error)).rstrip(".")
    if name == "SQLITE_FULL":
        return _of_files(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), base)
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        is_read_only = _likely_cause(base) == errno.EROFS
        return _of_files(OSError(errno.EROFS if is_read_only else errno.EACCES, reason), base)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        remedy = f"See what else uses it for so long. {_LATER}"
        return failure("target.away", f"The index of the folder {shown(base)} is in use: {reason}.", remedy)
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")):
        return _of_files(OSError(_likely_cause(base), reason), base)
    return damaged(base, f"is damaged: {reason}")
