"""Opens and replaces files that settings, options and rows of the schedule name: regular files only.

A device may have no end, and a pipe no beginning: neither may hold up a run, or take all memory. Only the last folder
of a path is made: the others may be a typing error.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_PIECE = 1_048_576

TEMPORARY = ".metaharvest-{}.new"
"""The name of a file that will replace another one: beside it, as a rename works only within a file system; hidden, so
that it is not listed or served.
"""

PRIVATE = 0o600
"""The permissions of files with addresses, reports and settings: their owner may read and write them."""


def open_file(path: Path) -> BinaryIO:
    """A regular file, open for reading. Raises OSError, whose `strerror` says if something else is in its place."""
    try:
        # Checked first, since merely opening a device may move something; and again, since another file may be there
        # now.
        _require_regular(path.stat(), path)
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb")
    except ValueError as error:
        raise OSError(errno.EINVAL, "its name contains a character that no file name has", str(path)) from error
    try:
        _require_regular(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def read_file(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes. Raises OSError, as `open_file`."""
    with open_file(path) as file:
        # In pieces: one large read takes the memory first, however small the file is.
        pieces: list[bytes] = []
        left = limit
        while left >= 0 and (piece := file.read(_PIECE)):
            pieces.append(piece)
            left -= len(piece)
    if left < 0:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", str(path))
    return b"".join(pieces)


def create_private(path: Path) -> None:
    """Make an empty file that only this user may read and write; one that is there keeps its mode. Raises OSError."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))


def mode_of(path: Path) -> int:
    """The permissions of a file, or of a private file if it is not there; never fewer than a private file has."""
    try:
        return stat.S_IMODE(path.stat().st_mode) | PRIVATE
    except OSError:
        return PRIVATE


def is_open_to_all(path: Path) -> bool:
    """True if everybody on this machine may read a file or folder: its mode says so, and all folders above let in."""
    try:
        here = path.resolve(strict=True)
        return bool(here.stat().st_mode & stat.S_IROTH) and all(
            above.stat().st_mode & stat.S_IXOTH for above in here.parents
        )
    except OSError:
        return False


def replace_file(path: Path, content: bytes, *, keeps_mode: bool = False) -> None:
    """Write `content` to `path`, as a whole or not at all, even if the machine fails.

    `keeps_mode`: the file keeps its permissions and its owner, as far as possible; its folder is not synced, as the
    network drives of some sites cannot do that. Raises OSError if `path` is something other than a file.
    """
    require_folder(path.parent)
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link; name the file itself", str(path))
    if path.exists():
        _require_regular(path.lstat(), path)
    new = path.with_name(TEMPORARY.format(os.urandom(8).hex()))
    try:
        with new.open("xb") as file:
            if keeps_mode and path.exists():
                _set_mode(file.fileno(), path.stat())
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    if not keeps_mode:
        sync_folder(path.parent)


def _set_mode(descriptor: int, before: os.stat_result) -> None:
    with suppress(OSError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    # Windows' drives in WSL refuse it: https://github.com/microsoft/WSL/issues/41519
    with suppress(OSError):
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make the folder, if it is not there, in one that is. Raises OSError, which names the folder that is missing."""
    require_folder(folder.parent)
    folder.mkdir(mode, exist_ok=True)


def require_folder(folder: Path) -> None:
    """Raises OSError, which names the first folder that is missing on the way to this one."""
    missing = next((each for each in (*reversed(folder.parents), folder) if not os.access(each, os.F_OK)), None)
    if missing is not None:
        raise FileNotFoundError(errno.ENOENT, f"the folder {missing} is not there", str(missing))


def _require_regular(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a file, but a folder, a device or a pipe", str(path))
