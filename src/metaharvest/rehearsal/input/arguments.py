"""The arguments of a check -> lists and documents: finds out the kind of each argument, and looks into folders.

An argument may be a URL, the name of a file or of a folder, or `-` for standard input. Nothing is fetched here: the
kind of a URL shows when it is fetched.
"""

from __future__ import annotations

import hashlib
import os
import re
import select
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from metaharvest.config.files import open_file
from metaharvest.errors import CannotBeChecked, ListError, PublishingError
from metaharvest.fetch.local_files import is_file_url, path_of
from metaharvest.fetch.url import literal_address, shown
from metaharvest.model import Finding, ListedDocument
from metaharvest.model.values import frozen
from metaharvest.publishing.contents import FolderOptions, choose, read_folder
from metaharvest.publishing.folder import FolderContents
from metaharvest.rehearsal.input.listed_files import FolderFiles, listed_files
from metaharvest.sources.harvest_list.source import read_list
from metaharvest.sources.roots import Root, read_root
from metaharvest.text import counted, one_line

STANDARD_INPUT = "standard input"
NO_PIPE = "Nothing comes through standard input: put a pipe in front, or name a file."
_STANDARD_INPUT_URL = "file:///dev/stdin"

_SUFFIXES = (".xml", ".eml")
"""The endings of the files in a folder that are looked at."""

_HOST = re.compile(
    r"(?P<host>localhost|\[[0-9a-f:.]+\]|\d{1,3}(\.\d{1,3}){3}|([\w-]+\.)+[^\W\d_]{2,24}|[\w-]+(?=:\d))"
    r"(?P<port>:\d{1,5})?(?P<rest>[/?].*)?",
    re.I,
)
_NO_DOMAINS = (".xml", ".eml", ".txt", ".html")
_PIECE = 1_048_576
_NOTHING = "Name a harvest list, a document, or a folder of them: a URL or a file."
_MOST_NOTES = 10
PIPE_SECONDS = 60.0
_MOST_PIPED = 1_073_741_824


@frozen
class LocalFile:
    """A file to check, with its name for people, and its root element. Relative URLs in it start at `base`, a URL.

    `pipe` is the URL of its pipe; then `path` is a copy. `refusal`: why no list can name it. `document`: the document
    id in its name, with `--from-names`.
    """

    path: Path
    shown: str
    root: Root
    base: str
    pipe: str = ""
    refusal: Finding | None = None
    document: tuple[str, int] | None = None

    @property
    def url(self) -> str:
        """Its file: URL."""
        return self.pipe or self.path.as_uri()


@frozen
class GivenUrl:
    """A URL, as it is shown; it leads to a harvest list or a document."""

    url: str
    shown: str


@frozen
class GivenList:
    """A harvest list in a file. `files` are its documents in the given folders, by the URL in the list.

    `folder` is the folder of these files, by its name for people, and `base_url` its address on the web; empty if
    unknown.
    """

    file: LocalFile
    files: Mapping[str, LocalFile] = field(default_factory=dict)
    folder: str = ""
    base_url: str = ""

    @property
    def shown(self) -> str:
        """Its name for people."""
        return self.file.shown


@frozen
class GivenDocuments:
    """Documents in files that no list names."""

    shown: str
    files: tuple[LocalFile, ...]


Given = GivenUrl | GivenList | GivenDocuments


@frozen
class Arguments:
    """Everything to be checked; `notes` are sentences about skipped files and assumptions.

    `local` are the local files that the result depends on, and the folders that were searched.
    """

    given: tuple[Given, ...]
    notes: tuple[str, ...] = ()
    local: tuple[Path, ...] = ()


@frozen
class _Folder:
    """A given folder: its absolute path, its name for people, and its contents."""

    path: Path
    shown: Path
    contents: FolderContents

    @property
    def files(self) -> FolderFiles:
        """Its documents, and other files that a list may name."""
        known = {each.file: (each.document_id, each.revision) for each in self.contents.documents}
        return known | dict.fromkeys(self.contents.refused, ("", None))


@dataclass(slots=True)
class _Found:
    """The result so far. `folders`: the folders that were read, according to `options`."""

    options: FolderOptions
    urls: dict[GivenUrl, None] = field(default_factory=dict)
    lists: list[LocalFile] = field(default_factory=list)
    documents: list[LocalFile] = field(default_factory=list)
    folders: list[_Folder] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: set[Path] = field(default_factory=set)


def read_arguments(
    arguments: Sequence[str],
    folder: Path,
    stays_url: Callable[[str], bool],
    standard_input: BinaryIO | None,
    options: FolderOptions,
) -> Arguments:
    """The lists and documents in these arguments. The content of a pipe is copied into `folder`, and read from there.

    `stays_url` decides if a file: URL is read as the URL of a site; otherwise it is the name of a file. `options`: how
    folders are read. Raises CannotBeChecked for a missing file, or one that cannot be a list or a document.
    """
    if not arguments:
        raise CannotBeChecked(_NOTHING)
    found = _Found(options)
    for argument in arguments:
        _read_argument(argument, found, folder, stays_url, standard_input)
    lists = [_given_list(file, found) for file in found.lists]
    listed = {path for each in lists for path in _named_by(each)}
    from_folders = [file for each in found.folders for file in _documents_of(each, listed, found)]
    documents = [*found.documents, *from_folders]
    given: list[Given] = [*found.urls, *lists]
    if documents:
        name = one_line(arguments[0]) if len(arguments) == 1 else "documents"
        given.append(GivenDocuments(documents[0].shown if len(documents) == 1 else name, tuple(documents)))
    if not given:
        nothing = f"There is nothing to check in {one_line(', '.join(arguments))}"
        why = "no file that ends in .xml or .eml is EML or a harvest list."
        raise CannotBeChecked(" ".join([f"{nothing}: {why}", *found.notes]))
    for each in lists:
        if each.files:
            were = counted(len(each.files), "document is", "documents are")
            found.notes.append(
                f"{were} checked from the folder {each.folder}, not from the web addresses in {each.shown}."
            )
    files = (
        file.path for file in (*found.lists, *found.documents, *(each for one in lists for each in one.files.values()))
    )
    folders = (each.path for each in found.folders)
    return Arguments(tuple(given), tuple(found.notes), (*files, *(file.path for file in from_folders), *folders))


def _read_argument(
    argument: str, found: _Found, folder: Path, stays_url: Callable[[str], bool], standard_input: BinaryIO | None
) -> None:
    if argument in ("-", "/dev/stdin"):
        _add(_piped(standard_input, folder, STANDARD_INPUT, _STANDARD_INPUT_URL), found)
        return
    if not argument.strip():
        raise CannotBeChecked(_NOTHING)
    if is_file_url(argument) and not stays_url(argument):
        path = path_of(argument)
        if path is None:
            raise CannotBeChecked(f"{one_line(argument)} names no file of this computer. Give the file's name.")
    elif "://" in argument or is_file_url(argument):
        found.urls[GivenUrl(argument, one_line(shown(argument), 200))] = None
        return
    else:
        path = Path(argument)
    kind = _kind(path)
    if kind is None:
        url = _url_without_scheme(argument)
        if url is None:
            raise CannotBeChecked(
                f"There is no file or folder named {one_line(argument)}. A web address begins with https://."
            )
        found.notes.append(f"There is no file named {one_line(argument)}: it is taken for {url}.")
        found.urls[GivenUrl(url, url)] = None
    elif stat.S_ISDIR(kind):
        _add_folder(path, found)
    elif stat.S_ISFIFO(kind):
        with _opened_pipe(path) as pipe:
            _add(_piped(pipe, folder, one_line(argument), _absolute(path).as_uri()), found)
    elif stat.S_ISREG(kind):
        _add(_local_file(path), found)
    else:
        raise CannotBeChecked(f"{one_line(argument)} is not a file, but a device or a socket.")


def _opened_pipe(path: Path) -> BinaryIO:
    """A named pipe, opened once a program writes into it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise CannotBeChecked(f"{one_line(str(path))} cannot be read: {error.strerror}.") from error
    if not select.select([descriptor], [], [], PIPE_SECONDS)[0]:
        os.close(descriptor)
        raise CannotBeChecked(
            f"{one_line(str(path))} is a pipe, and nothing came through it within {PIPE_SECONDS:g} seconds."
        )
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb")


def _kind(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise CannotBeChecked(f"{one_line(str(path))} cannot be read: {error.strerror}.") from error


def _absolute(path: Path) -> Path:
    """The path from the root of the file system; links in it stay as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.resolve() follows links


def _local_file(path: Path, shown: str = "") -> LocalFile:
    absolute = _absolute(path)
    try:
        with open_file(path) as file:
            root = read_root(file)
    except OSError:
        root = Root()
    return LocalFile(absolute, shown or one_line(str(path)), root, absolute.as_uri())


def _piped(pipe: BinaryIO | None, folder: Path, name: str, url: str) -> LocalFile:
    """The content of a pipe, as a file; relative URLs in it start at the working directory."""
    if pipe is None or pipe.isatty():
        raise CannotBeChecked(NO_PIPE)
    path = copy_place(folder, url)
    with path.open("wb") as file:
        while piece := pipe.read(_PIECE):
            if file.write(piece) and file.tell() > _MOST_PIPED:
                raise CannotBeChecked(f"More than {_MOST_PIPED:,} bytes come through {name}: put them into a file.")
        if not file.tell():
            what = "check whether the command in front of the pipe prints a document or a list, or name a file"
            raise CannotBeChecked(f"Nothing came through {name}: {what}.")
    return replace(_local_file(path, name), base=f"{Path.cwd().as_uri()}/", pipe=url)


def copy_place(folder: Path, url: str) -> Path:
    """The place in `folder` for a copy of the content of `url`."""
    return folder / hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest()


def _add(file: LocalFile, found: _Found) -> None:
    """Add a named file once, as a list or a document."""
    if file.path in found.seen:
        return
    found.seen.add(file.path)
    (found.lists if file.root.is_list else found.documents).append(file)


def _add_folder(folder: Path, found: _Found) -> None:
    """Add a folder and its subfolders, read as `list build` reads them. Raises CannotBeChecked if it cannot be read."""
    absolute = _absolute(folder)
    try:
        contents = read_folder(absolute, found.options, lambda file: (absolute / file).as_uri())
    except PublishingError as error:
        raise CannotBeChecked(str(error)) from None
    for name in contents.lists:
        if (absolute / name) not in found.seen:
            found.seen.add(absolute / name)
            found.lists.append(_local_file(absolute / name, one_line(str(folder / name))))
    if contents.passed_over:
        shown_names = one_line(", ".join(contents.passed_over[:_MOST_NOTES]), 1000)
        more = len(contents.passed_over) - _MOST_NOTES
        names = f"{shown_names} and {more:,} more" if more > 0 else shown_names
        found.notes.append(f"Passed over, as hidden files, copies of editors or links to files of the folder: {names}.")
    found.folders.append(_Folder(absolute, folder, contents))


def _documents_of(folder: _Folder, listed: set[Path], found: _Found) -> Iterable[LocalFile]:
    """The documents of a folder that no list names, each with the reason why no list can name it."""
    contents = folder.contents
    choice = choose(contents.documents, found.options.revisions, lambda each: folder.path / each.file in listed)
    refusals: dict[str, Finding] = {}
    for each in (*contents.findings, *choice.findings):
        if not each.finding.is_error:
            found.notes.append(f"{one_line(str(folder.shown / each.file))}: {each.finding.with_remedy}")
        elif each.finding.rule.startswith("build."):
            refusals.setdefault(each.file, each.finding)
    by_name = {each.file: (each.document_id, each.revision or 0) for each in contents.documents}
    files = {*by_name, *contents.refused, *refusals}
    for name in sorted(files):
        path = folder.path / name
        if path in listed or path in found.seen:
            continue
        found.seen.add(path)
        file = _local_file(path, one_line(str(folder.shown / name)))
        document = by_name.get(name) if found.options.names else None
        yield replace(file, refusal=refusals.get(name), document=document)


def _given_list(file: LocalFile, found: _Found) -> GivenList:
    entries = _entries_of(file)
    for folder in found.folders:
        base, found_files = listed_files(entries, folder.files)
        if found_files:
            files = {
                url: _local_file(folder.path / name, one_line(str(folder.shown / name)))
                for url, name in found_files.items()
            }
            return GivenList(file, files, one_line(str(folder.shown)), base.text if base else "")
    return GivenList(file)


def _named_by(given: GivenList) -> Iterable[Path]:
    """The files in the list, by URLs on the web or by file: URLs."""
    yield from (file.path for file in given.files.values())
    paths = (path_of(each.url) for each in _entries_of(given.file) if is_file_url(each.url))
    yield from (path for path in paths if path is not None)


def is_looked_at(name: str) -> bool:
    """True if a file of this name in a folder may be a list or a document."""
    return name.lower().endswith(_SUFFIXES) and not name.startswith(".")


def _entries_of(file: LocalFile) -> list[ListedDocument]:
    """The documents that a list names; none if the list cannot be read."""
    try:
        with open_file(file.path) as opened:
            return list(read_list(opened, files_allowed=True, base=file.base))
    except (ListError, OSError):
        return []


def _url_without_scheme(argument: str) -> str | None:
    """The URL of an argument that has only the host and the path; None if it looks like the name of a file."""
    match = _HOST.fullmatch(argument)
    if match is None or match["host"].lower().endswith(_NO_DOMAINS):
        return None
    host, path = match["host"].lower(), match["rest"]
    if not path and not match["port"] and not host.startswith("www."):
        return None
    # A server of one's own network, or of this computer, seldom has a certificate.
    is_near = literal_address(host) or "." not in host
    return f"{'http' if is_near else 'https'}://{argument}"
