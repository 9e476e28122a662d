"""Where the tests have their temporary files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_IN_MEMORY = Path("/dev/shm")
_ROOM = 4 * 1024**3
"""Bytes. Tests of commands, fetching and targets took 0.3 GB; the rest is for other programs of the machine."""


def keep_files_in_memory() -> None:
    """Have temporary files in memory, where nobody set TMPDIR and there is room: SQLite waits for a disk.

    The mount has to allow programs, as tests make some and run them.
    """
    if os.environ.get("TMPDIR") or not _IN_MEMORY.is_dir() or not os.access(_IN_MEMORY, os.W_OK):
        return
    found = os.statvfs(_IN_MEMORY)
    if found.f_bavail * found.f_frsize >= _ROOM and not found.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(_IN_MEMORY)
        tempfile.tempdir = None
