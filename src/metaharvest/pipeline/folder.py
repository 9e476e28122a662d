"""Errors of the folder of the pipeline, as sentences: a full disk is no fault of a document."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metaharvest.errors import StoreUnavailable
from metaharvest.text import one_line, shown_url

_OF_THE_FOLDER = frozenset(
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE),
        *(errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.EMFILE, errno.ENFILE),
    )
)


class StoreError(OSError):
    """An object store at a URL does not do what it should."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(errno.EIO, reason)
        self.place = place


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """Raises StoreUnavailable for an OSError of this folder, or of its disk. Other errors stay as they are."""
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_THE_FOLDER:
            raise
        raise unusable(folder, error) from error


def unusable(folder: Path | str, error: OSError) -> StoreUnavailable:
    """The error that says that the folder, or the store of files at a URL, cannot be used."""
    reason = one_line(error.strerror or str(error), 300)
    if isinstance(error, StoreError):
        return StoreUnavailable(
            f"The pipeline cannot use {shown_url(error.place)} ([pipeline] files): {reason}. Check the server, the "
            "bucket, and that the key may read and write there. Nothing is lost: the next run goes on."
        )
    place = f" ({one_line(str(error.filename), 300)})" if error.filename else ""
    return StoreUnavailable(
        f"The pipeline cannot use {folder}: {reason}{place}. Check that there is room, and that this user may write "
        "there; [pipeline] folder and files name other places. Nothing is lost: the next run goes on."
    )
