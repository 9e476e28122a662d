"""Files of this machine that file: URLs name (RFC 8089): read only below the folder that the settings allow a site.

The real path is judged: `..` and symbolic links that lead out of the folder are refused, in the same words whether
there is a file behind them or not. The judged path is then opened link by link, none of them followed, so that a change
of the folders in between has no effect. Devices, pipes and folders are not opened. All problems of a file become
FetchError.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

from metaharvest.errors import FetchError
from metaharvest.model import Finding
from metaharvest.text import one_line, shown_url

_URL = re.compile(r"file:(?://(?P<host>[^/?#]*)(?=/)|(?!//))(?P<path>/[^?#]*)", re.IGNORECASE)
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_FORBIDDEN = (errno.EACCES, errno.EPERM)
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
_CHUNK = 262_144

IF_TOO_LARGE = (
    "Check that the URL leads to the metadata and not to the data. If it is right, ask the harvester's administrator "
    "for a higher limit."
)
"""The remedy for a document or a list that is larger than the settings allow, from any source."""


def is_file_url(url: str) -> bool:
    """True if `url` names a file of this machine, or tries to."""
    return url.lstrip()[:5].lower() == "file:"


def copy(url: str, folder: Path | None, to: BinaryIO, limit: int) -> tuple[int, str]:
    """Copy the file at `url`, which must be below `folder` and not larger than `limit` bytes; its size and SHA-256.

    Raises FetchError, and OSError where `to` cannot be written.
    """
    path, home = _judged(url, folder)
    size, digest = 0, hashlib.sha256()
    with _opened(url, path, home) as file:
        while chunk := _read(url, file):
            size += len(chunk)
            if size > limit:
                message = f"The file {shown_url(url)} is larger than the {limit:,} bytes that are accepted."
                raise _error("http.too-large", message, IF_TOO_LARGE)
            digest.update(chunk)
            to.write(chunk)
    if not size:
        raise _error("http.empty", f"The file {shown_url(url)} is empty.", "Put the document back in its place.")
    return size, digest.hexdigest()


def path_of(url: str) -> Path | None:
    """The path that a file: URL names; None if it names none of this machine."""
    try:
        return _path(url)
    except FetchError:
        return None


def refusal(url: str, folder: Path | None) -> Finding | None:
    """The reason why the file at `url` may not be read, whether it exists or not; None if it may."""
    try:
        _judged(url, folder)
    except FetchError as error:
        return None if error.transient else error.findings[0]
    return None


def _judged(url: str, folder: Path | None) -> tuple[Path, Path]:
    """The real paths of the file and of its folder. Raises FetchError."""
    if folder is None:
        raise _not_allowed(url, "the settings allow this site none")
    named = _path(url)
    try:
        home = folder.resolve(strict=True)
    except OSError as error:
        message = f"The folder of {shown_url(url)} cannot be read now: {_reason(error)}."
        remedy = "The harvester's administrator has to check whether the disk is there, and file_folder is right."
        raise _error("file.unreadable", message, remedy, transient=True) from error
    # Not Path.resolve(), which raises for links that go in a circle.
    path = Path(os.path.realpath(named))
    if not path.is_relative_to(home):
        raise _not_allowed(url, "this one is, or leads, outside of the folder")
    return path, home


def _path(url: str) -> Path:
    """The path that a file: URL spells. Raises FetchError."""
    parts = _URL.fullmatch(url.strip())
    if parts is None:
        problem = "it must be an absolute path without `?` and `#`, which are written %3F and %23"
    elif (parts["host"] or "").lower() not in ("", "localhost"):
        problem = "it names another computer"
    elif b"\0" in (path := unquote_to_bytes(parts["path"])):
        problem = "it contains a character that no file name has"
    else:
        return Path(os.fsdecode(path))
    message = f"{shown_url(url)} is not the URL of a file that can be read: {problem}."
    raise _error("http.bad-url", message, "Write it like file:///srv/alder-creek/eml.xml.")


def _opened(url: str, path: Path, home: Path) -> BinaryIO:
    try:
        return os.fdopen(_descriptor(path, home), "rb", buffering=0)
    except IsADirectoryError:
        message = f"{shown_url(url)} is not a file: it is a folder, a device or a pipe."
        raise _error("file.not-a-file", message, "Name the file itself.") from None
    except OSError as error:
        raise _unreadable(url, error) from error


def _descriptor(path: Path, home: Path) -> int:
    """The opened file. Raises OSError; IsADirectoryError for everything that is no file."""
    *folders, name = path.relative_to(home).parts or (".",)
    here = os.open(home, _FOLDER)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        # Checked first, since merely opening a device may move something; and again, since another file may be there
        # now.
        _require_file(os.stat(name, dir_fd=here, follow_symlinks=False))
        descriptor = os.open(name, _FILE, dir_fd=here)
    finally:
        os.close(here)
    try:
        _require_file(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_file(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise IsADirectoryError


def _read(url: str, file: BinaryIO) -> bytes:
    try:
        return file.read(_CHUNK) or b""
    except OSError as error:
        raise _unreadable(url, error) from error


def _unreadable(url: str, error: OSError) -> FetchError:
    """The finding about a file that cannot be opened or read; a disk that fails may be well the next time."""
    if error.errno in _MISSING:
        remedy = "Put the file where the URL says, or correct the URL."
        return _error("file.missing", f"There is no file at {shown_url(url)}.", remedy)
    message = f"The file {shown_url(url)} cannot be read: {_reason(error)}."
    remedy = "Let the harvester's user read it, and the folders that it is in."
    return _error("file.unreadable", message, remedy, transient=error.errno not in _FORBIDDEN)


def _not_allowed(url: str, why: str) -> FetchError:
    return _error(
        "file.not-allowed",
        f"{shown_url(url)} is a file on the harvester's own machine, which reads files only below the folder that its "
        f"settings allow a site: {why}.",
        "Put the document on a web server and give its https:// URL; or the harvester's administrator allows the "
        'folder in the settings: file_folder in [sites."NAME"], with the name of the site.',
    )


def _error(rule: str, message: str, remedy: str, *, transient: bool = False) -> FetchError:
    return FetchError(Finding(rule, message, remedy), transient=transient, seconds=0.0)


def _reason(error: OSError) -> str:
    return one_line(error.strerror or str(error))
