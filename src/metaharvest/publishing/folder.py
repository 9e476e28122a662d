"""Finds the documents in a folder, and the files that are skipped.

Hidden files, hidden folders and temporary files of editors are skipped. A link is followed only to a file within
the folder: the web server may not have files outside of it. An EML document with another ending, such as
`rain.xml.txt`, has a finding: Windows hides the ends of names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from metaharvest.config.files import open_file
from metaharvest.errors import PublishingError
from metaharvest.model import Finding, Level
from metaharvest.model.values import frozen
from metaharvest.publishing.documents import SiteDocument
from metaharvest.publishing.naming import fits
from metaharvest.sources.roots import read_root
from metaharvest.text import one_line

_LEFT_BEHIND = ("~", ".bak", ".old", ".orig", ".rej", ".save", ".swo", ".swp", ".tmp", ".part", "#")
"""The endings of files that editors and transfers leave behind."""

PATTERNS = ("*.xml", "*.eml")
_FIRST = 4096


@frozen
class Selection:
    """The files of a folder that may be listed, by patterns of their names; `never` is a file that is no document."""

    patterns: tuple[str, ...] = PATTERNS
    excluded: tuple[str, ...] = ()
    never: Path | None = None


@frozen
class FileFinding:
    """A finding about a file, by its path below the folder."""

    file: str
    finding: Finding


@dataclass(slots=True)
class FolderContents:
    """The files of a folder, by their paths below it, sorted: of these, `documents`, harvest `lists`, and others.

    `refused` are documents that cannot be listed, and `unreadable` files and folders that are not read, for the
    reasons in `findings`; a folder ends with a slash. `passed_over` are hidden files, files that editors left behind,
    and links to documents.
    """

    files: list[str] = field(default_factory=list)
    documents: list[SiteDocument] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    findings: list[FileFinding] = field(default_factory=list)

    def refuse(self, path: str, rule: str, message: str, remedy: str, level: Level = Level.ERROR) -> None:
        """Do not read this file, or this folder, whose path ends with a slash, for the reason in a finding."""
        self.unreadable.append(path)
        self.findings.append(_finding(path.rstrip("/"), rule, message, remedy, level))


def find_files(folder: Path, selection: Selection) -> FolderContents:
    """The files of a folder and of the folders in it. Raises PublishingError if it cannot be read."""
    found = FolderContents()
    if selection.never is not None:
        selection = replace(selection, never=Path(os.path.realpath(selection.never)))
    try:
        root = folder.resolve(strict=True)
        links = list(_walk(root, "", selection, found))
    except OSError as error:
        raise PublishingError(
            f"The folder {one_line(str(folder))} cannot be read: {error.strerror}. Name a folder of EML documents."
        ) from error
    known = set(found.files)
    for link in links:
        # A link to a file that is listed itself, such as latest.xml, is a second name for the same document.
        if os.path.relpath(os.path.realpath(root / link), root) in known:
            found.passed_over.append(link)
        else:
            found.files.append(link)
    found.files.sort()
    found.passed_over.sort()
    return found


def _walk(root: Path, below: str, selection: Selection, found: FolderContents) -> Iterator[str]:
    """Look through a folder; return the links to files of the folder. Raises OSError only for the top folder."""
    with os.scandir(root / below) as entries:
        sorted_entries = sorted(entries, key=lambda entry: entry.name)
    for entry in sorted_entries:
        relative = f"{below}{entry.name}"
        if fits(relative, selection.excluded):
            continue
        if entry.is_symlink():
            yield from _link(root, relative, selection, found)
        elif entry.is_dir():
            if not entry.name.startswith("."):
                yield from _folder_below(root, relative, selection, found)
        elif _is_wanted(relative, selection, found) and root / relative != selection.never:
            if entry.is_file():
                found.files.append(relative)
            else:
                message = "This is not a file, but a device, a pipe or a socket."
                found.refuse(relative, "build.unreadable", message, "Take it out of the folder.")
        elif not fits(relative, selection.patterns) and (misnamed := _misnamed(root, relative, selection)):
            found.findings.append(misnamed)


def _folder_below(root: Path, relative: str, selection: Selection, found: FolderContents) -> Iterator[str]:
    try:
        yield from _walk(root, f"{relative}/", selection, found)
    except OSError as error:
        message = f"The folder cannot be read: {error.strerror}."
        remedy = "Let the user who builds the list read it, or leave it out with --exclude."
        found.refuse(f"{relative}/", "build.unreadable", message, remedy)


def _link(root: Path, relative: str, selection: Selection, found: FolderContents) -> Iterator[str]:
    there = Path(os.path.realpath(root / relative))
    is_inside = there.is_relative_to(root)
    if there.is_dir():
        if not is_inside and not _name(relative).startswith("."):
            message = f"This is a link to the folder {one_line(str(there))}, which was not looked into."
            remedy = "Build from a folder that has the documents itself, or leave the link out with --exclude."
            found.refuse(f"{relative}/", "build.link", message, remedy, Level.WARNING)
    elif _is_wanted(relative, selection, found) and there != selection.never:
        if not there.is_file():
            message = f"This is a link to {one_line(str(there))}, where no file is."
            found.refuse(relative, "build.link", message, "Correct the link, or delete it.")
        elif not is_inside:
            message = f"This is a link out of the folder, to {one_line(str(there))}."
            remedy = "Put the file itself into the folder, so that it is what your web server serves."
            found.refuse(relative, "build.link", message, remedy)
        else:
            yield relative


def _misnamed(root: Path, relative: str, selection: Selection) -> FileFinding | None:
    """A finding about an EML document with a wrong ending. Only the default patterns are tried."""
    name = _name(relative)
    if selection.patterns != PATTERNS or name.startswith((".", "~$", "#")) or name.endswith(_LEFT_BEHIND):
        return None
    if not (root / relative).is_file() or not _is_eml(root / relative):
        return None
    stem, dot, ending = relative.rpartition(".")
    if dot and fits(stem, selection.patterns):
        message = f"This is an EML document, and the name of its file ends in .{one_line(ending, 40)}: it is not taken."
        remedy = (
            f"Rename it to {one_line(_name(stem), 100)}. Windows hides the ends of names: in its Explorer, choose "
            "View, Show, File name extensions first."
        )
        return _finding(relative, "build.ending", message, remedy)
    message = "This is an EML document, and the name of its file does not end in .xml or .eml: it is not taken."
    remedy = "To list it, give it a name that ends in .xml. To leave it out, use --exclude."
    return _finding(relative, "build.ending", message, remedy, Level.WARNING)


def _is_eml(path: Path) -> bool:
    try:
        with open_file(path) as file:
            if b"<" not in file.read(_FIRST):
                return False
            file.seek(0)
            return read_root(file).is_eml
    except OSError:
        return False


def _is_wanted(relative: str, selection: Selection, found: FolderContents) -> bool:
    """True if the name may be a document's; records a name that fits, but is hidden or was left behind."""
    name = _name(relative)
    hidden = name.startswith((".", "~$", "#"))
    left_behind = next((ending for ending in _LEFT_BEHIND if name.endswith(ending)), "")
    would_be = relative.removesuffix(left_behind) if left_behind else relative
    if not (fits(relative, selection.patterns) or (left_behind and fits(would_be, selection.patterns))):
        return False
    if hidden or left_behind:
        found.passed_over.append(relative)
        return False
    return True


def _name(relative: str) -> str:
    return relative.rpartition("/")[2]


def _finding(file: str, rule: str, message: str, remedy: str, level: Level = Level.ERROR) -> FileFinding:
    return FileFinding(file, Finding(rule, message, remedy, level))
