"""What was given to be checked -> lists and documents: finds out what each argument is, and looks into folders.

An argument may be a URL, the name of a file or of a folder, or `-` for what comes from standard input. Nothing is
fetched here: what is at a URL shows when it is fetched.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from metaharvest.config.files import open_file
from metaharvest.errors import CannotBeChecked, ListError
from metaharvest.fetch.local_files import is_file_url, path_of
from metaharvest.fetch.url import literal_address, shown
from metaharvest.sources.given.roots import Root, read_root
from metaharvest.sources.harvest_list.source import read_list
from metaharvest.text import one_line

STANDARD_INPUT = "standard input"
NO_PIPE = "Nothing comes through standard input: put a pipe in front, or name a file."
_STANDARD_INPUT_URL = "file:///dev/stdin"

_SUFFIXES = (".xml", ".eml")
"""The files of a folder that are looked at."""

_HOST = re.compile(
    r"(?P<host>localhost|\[[0-9a-f:.]+\]|\d{1,3}(\.\d{1,3}){3}|([\w-]+\.)+[^\W\d_]{2,24}|[\w-]+(?=:\d))"
    r"(?P<port>:\d{1,5})?(?P<rest>[/?].*)?",
    re.I,
)
_NO_DOMAINS = (".xml", ".eml", ".txt", ".html")
_PIECE = 1_048_576
_NOTHING = "Name a harvest list, a document, or a folder of them: a URL or a file."
_MOST_NOTES = 10
_MOST_PIPED = 1_073_741_824


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file to be checked, as people call it, with its root element. Relative URLs in it start at `base`, a URL.

    `pipe` is the URL of the pipe that it came through; `path` is a copy then.
    """

    path: Path
    shown: str
    root: Root
    base: str
    pipe: str = ""

    @property
    def url(self) -> str:
        """Its file: URL."""
        return self.pipe or self.path.as_uri()


@dataclass(frozen=True, slots=True)
class GivenUrl:
    """A URL, as it is shown; what is there is a harvest list or a document."""

    url: str
    shown: str


@dataclass(frozen=True, slots=True)
class GivenList:
    """A harvest list in a file."""

    file: LocalFile

    @property
    def shown(self) -> str:
        """What people call it."""
        return self.file.shown


@dataclass(frozen=True, slots=True)
class GivenDocuments:
    """Documents in files that no list names."""

    shown: str
    files: tuple[LocalFile, ...]


Given = GivenUrl | GivenList | GivenDocuments


@dataclass(frozen=True, slots=True)
class Arguments:
    """All that is to be checked; `notes` are sentences about what was understood or passed over.

    `local` are the files of this computer that it depends on, and the folders that were looked into.
    """

    given: tuple[Given, ...]
    notes: tuple[str, ...] = ()
    local: tuple[Path, ...] = ()


@dataclass(slots=True)
class _Found:
    """What was found so far. `others`: XML files of another kind, which folders have beside documents."""

    urls: list[GivenUrl] = field(default_factory=list)
    lists: list[LocalFile] = field(default_factory=list)
    documents: list[LocalFile] = field(default_factory=list)
    from_folders: list[LocalFile] = field(default_factory=list)
    others: list[LocalFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    seen: set[Path] = field(default_factory=set)


def read_arguments(
    arguments: Sequence[str], folder: Path, stays_url: Callable[[str], bool], standard_input: BinaryIO | None
) -> Arguments:
    """What these arguments are. What comes through a pipe is copied into `folder`, whence it is read.

    `stays_url` says of a file: URL whether it is read as the URL of a site; otherwise it is the name of a file. Raises
    CannotBeChecked for what is not there, and cannot be a list or a document.
    """
    if not arguments:
        raise CannotBeChecked(_NOTHING)
    found = _Found()
    for argument in arguments:
        _read_argument(argument, found, folder, stays_url, standard_input)
    documents = [*found.documents, *_not_listed(found.from_folders, found.lists)]
    if others := len(_not_listed(found.others, found.lists)):
        number = "1 XML file was" if others == 1 else f"{others:,} XML files were"
        found.notes.append(f"{number} passed over: neither EML nor a harvest list.")
    given: list[Given] = [*found.urls, *map(GivenList, found.lists)]
    if documents:
        given.append(GivenDocuments(_name_of(arguments, documents), tuple(documents)))
    if not given:
        raise CannotBeChecked(_nothing_in(arguments, len(found.others)))
    files = (file.path for file in (*found.lists, *found.documents, *found.from_folders))
    return Arguments(tuple(given), tuple(found.notes), (*files, *found.folders))


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
        _add_url(GivenUrl(argument, one_line(shown(argument), 200)), found)
        return
    else:
        path = Path(argument)
    kind = _kind(path)
    if kind is None:
        url = _url_without_scheme(argument)
        if url is None:
            raise CannotBeChecked(_missing(argument))
        found.notes.append(f"There is no file named {one_line(argument)}: it is taken for {url}.")
        _add_url(GivenUrl(url, url), found)
    elif stat.S_ISDIR(kind):
        _add_folder(path, found)
    elif stat.S_ISFIFO(kind):
        with path.open("rb") as pipe:
            _add(_piped(pipe, folder, one_line(argument), _absolute(path).as_uri()), found)
    elif stat.S_ISREG(kind):
        _add(_local_file(path), found)
    else:
        raise CannotBeChecked(f"{one_line(argument)} is not a file, but a device or a socket.")


def _kind(path: Path) -> int | None:
    """The mode of a file; None if there is none."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return None
    except OSError as error:
        raise CannotBeChecked(f"{one_line(str(path))} cannot be read: {error.strerror}.") from error


def _absolute(path: Path) -> Path:
    """The path from the root of the file system; links in it stay as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.resolve() follows links


def _local_file(path: Path, shown: str = "") -> LocalFile:
    """A file with its root element, as far as it can be read."""
    absolute = _absolute(path)
    try:
        with open_file(path) as file:
            root = read_root(file)
    except OSError:
        root = Root()
    return LocalFile(absolute, shown or one_line(str(path)), root, absolute.as_uri())


def _piped(pipe: BinaryIO | None, folder: Path, name: str, url: str) -> LocalFile:
    """What comes through a pipe, as a file; relative URLs in it start at the working directory."""
    if pipe is None or pipe.isatty():
        raise CannotBeChecked(NO_PIPE)
    path = copy_place(folder, url)
    with path.open("wb") as file:
        while piece := pipe.read(_PIECE):
            if file.write(piece) and file.tell() > _MOST_PIPED:
                raise CannotBeChecked(f"More than {_MOST_PIPED:,} bytes come through {name}: put them into a file.")
        if not file.tell():
            what = "see whether the command in front of the pipe prints a document or a list, or name a file"
            raise CannotBeChecked(f"Nothing came through {name}: {what}.")
    return replace(_local_file(path, name), base=f"{Path.cwd().as_uri()}/", pipe=url)


def copy_place(folder: Path, url: str) -> Path:
    """Where in `folder` a copy of what is at `url` belongs."""
    return folder / hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest()


def _add(file: LocalFile, found: _Found) -> None:
    """A file that was named, once; it is a list or else a document."""
    if file.path in found.seen:
        return
    found.seen.add(file.path)
    (found.lists if file.root.is_list else found.documents).append(file)


def _add_url(url: GivenUrl, found: _Found) -> None:
    if url not in found.urls:
        found.urls.append(url)


def _add_folder(folder: Path, found: _Found) -> None:
    """The lists and documents of a folder and of those below it."""
    found.folders.append(_absolute(folder))
    for path in _files_below(folder, found):
        absolute = _absolute(path)
        if absolute in found.seen:
            continue
        found.seen.add(absolute)
        file = _local_file(path)
        if file.root.is_list:
            found.lists.append(file)
        elif file.root.is_other:
            found.others.append(file)
        else:
            found.from_folders.append(file)


def _files_below(folder: Path, found: _Found) -> Iterator[Path]:
    """The files that may be lists or documents, in order; hidden ones, and links to folders, are left alone."""

    def unreadable(error: OSError) -> None:
        if len(found.notes) < _MOST_NOTES:
            found.notes.append(f"The folder {one_line(str(error.filename))} cannot be read: {error.strerror}.")

    for where, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if is_looked_at(name):
                yield Path(where, name)


def is_looked_at(name: str) -> bool:
    """Whether a file of this name in a folder may be a list or a document."""
    return name.lower().endswith(_SUFFIXES) and not name.startswith(".")


def _not_listed(documents: Iterable[LocalFile], lists: Iterable[LocalFile]) -> list[LocalFile]:
    """The documents that none of these lists names by a file of this computer."""
    documents = list(documents)
    listed: set[str] = set()
    if documents:
        for file in lists:
            listed |= _named_in(file)
    return [document for document in documents if document.url not in listed]


def _named_in(file: LocalFile) -> set[str]:
    """The files that a list names, as URLs; none if the list cannot be read."""
    try:
        with open_file(file.path) as opened:
            urls = {document.url for document in read_list(opened, files_allowed=True, base=file.base)}
    except (ListError, OSError):
        return set()
    paths = (path_of(url) for url in urls if is_file_url(url))
    return {path.as_uri() for path in paths if path is not None}


def _name_of(arguments: Sequence[str], documents: Sequence[LocalFile]) -> str:
    return documents[0].shown if len(documents) == 1 else one_line(arguments[0]) if len(arguments) == 1 else "documents"


def _url_without_scheme(argument: str) -> str | None:
    """The URL that somebody means who writes its host and path alone; None if it looks like the name of a file."""
    match = _HOST.fullmatch(argument)
    if match is None or match["host"].lower().endswith(_NO_DOMAINS):
        return None
    host, path = match["host"].lower(), match["rest"]
    if not path and not match["port"] and not host.startswith("www."):
        return None
    # A server of one's own network, or of this computer, seldom has a certificate.
    is_near = literal_address(host) or "." not in host
    return f"{'http' if is_near else 'https'}://{argument}"


def _missing(argument: str) -> str:
    return f"There is no file or folder named {one_line(argument)}. A web address begins with https://."


def _nothing_in(arguments: Sequence[str], others: int) -> str:
    where = one_line(", ".join(arguments))
    beside = f" ({others:,} XML files there are of other kinds)" if others else ""
    return f"There is nothing to check in {where}: no file that ends in .xml or .eml is EML or a harvest list{beside}."
