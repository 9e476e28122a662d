"""The state of a folder: if it exists, if it is writable, and if the index agrees with the files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from metaharvest.config.paths import nearest_there
from metaharvest.errors import TargetError
from metaharvest.targets.base import Standing
from metaharvest.targets.folder.base_folder import BaseFolder, named
from metaharvest.targets.folder.failures import damaged, in_sentences, out_of_date, shown
from metaharvest.targets.folder.files import OURS
from metaharvest.targets.folder.index import Index
from metaharvest.targets.folder.marker import INDEX
from metaharvest.text import counted

_LITTLE_ROOM = 100_000_000
"""Bytes."""


def standings(folder: BaseFolder) -> Iterator[Standing]:
    """All facts about the folder; nothing is written."""
    try:
        with in_sentences(folder.path):
            yield from _room(folder)
            with folder.reading() as index:
                yield _unused(folder) if index is None else _used(folder, index)
    except TargetError as error:
        yield Standing("problem", " ".join(error.sentences))


def _room(folder: BaseFolder) -> Iterator[Standing]:
    there = nearest_there(folder.path)
    free = shutil.disk_usage(there).free
    if free < _LITTLE_ROOM:
        yield Standing("warning", f"There are only {free:,} bytes left in the folder {shown(folder.path)}.")
    wanted = ((there, os.W_OK | os.X_OK), (folder.path / OURS, os.W_OK | os.X_OK), (folder.path / INDEX, os.W_OK))
    unwritable = [path for path, mode in wanted if path.exists() and not os.access(path, mode)]
    if unwritable:
        yield Standing("problem", f"{shown(unwritable[0])} cannot be written by this user: nothing can be put there.")


def _unused(folder: BaseFolder) -> Standing:
    return Standing("ok", f"Nothing was put into the folder {shown(folder.path)} yet; the first document begins it.")


def _used(folder: BaseFolder, index: Index) -> Standing:
    if (integrity := index.integrity()) != "ok":
        raise damaged(folder.path, f"is damaged: {shown(integrity)}")
    documents, revisions, deleted = index.numbers()
    known, unknown, changed = 0, [], []
    for path, size, _ in folder.files.walk():
        row = index.at(path)
        if row is not None and row.state != "deleted":
            known += row.state == "held"
            if row.state == "held" and row.size != size:
                changed.append(path)
        elif named(path):
            unknown.append(path)
    odd = [
        *([f"it does not know {_some(unknown)}"] if unknown else []),
        *([f"{_some(changed)} changed"] if changed else []),
        *([f"{_missing(folder, index, revisions - known)} not there any more"] if known < revisions else []),
    ]
    if odd:
        raise out_of_date(folder.path, "; ".join(odd))
    holds = f"holds {counted(documents, 'document')} in {counted(revisions, 'file')}"
    apart = f", and {counted(deleted, 'file')} of deleted documents apart" if deleted else ""
    return Standing("ok", f"The folder {shown(folder.path)} {holds}{apart}.")


def _missing(folder: BaseFolder, index: Index, number: int) -> str:
    gone = (row.path for row in index.held() if row.state == "held" and folder.files.digest(row.path) is None)
    return _some([next(gone, "a file")], number) + (" is" if number == 1 else " are")


def _some(paths: list[str], number: int = 0) -> str:
    """The first of these paths, and the number of the others."""
    more = (number or len(paths)) - 1
    return shown(paths[0]) + (f" and {counted(more, 'other file')}" if more else "")
