"""Replaces a file as a whole: a reader, for example a web server, finds the old one or the new one."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_NEW_FILE = 0o666


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` at `path`; the file keeps its permissions and, as far as possible, its owner.

    If `path` is a link, the linked file is replaced. Raises OSError; then the old file is untouched.
    """
    there = Path(os.path.realpath(path))
    if there.exists() and not there.is_file():
        raise OSError(errno.EINVAL, "it is not a file, but a folder, a device or a pipe", str(there))
    # Beside it, as a rename works only within a file system; hidden, so that it is not listed or served.
    new = there.with_name(f".metaharvest-{secrets.token_hex(8)}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _NEW_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with suppress(FileNotFoundError):
                _as_before(descriptor, there.stat())
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        new.replace(there)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _as_before(descriptor: int, before: os.stat_result) -> None:
    with suppress(OSError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
