"""The names of a document's files, and the document that a file name means. Pure.

    knb-lter-gce.109, revision 6      knb-lter-gce/109/knb-lter-gce.109.6.xml      flat: knb-lter-gce.109.6.xml
    oai:ilLib:alliance:1234           ilLib/alliance/1234.xml                      flat: ilLib~alliance~1234.xml
      its second revision             ilLib/alliance/1234.2.xml                    flat: ilLib~alliance~1234.2.xml
    repo/oai_dc/oai:ilLib:a:1         repo/oai_dc=/ilLib/a/1.xml                   flat: repo~oai_dc=~ilLib~a~1.xml
    repo/oai_dc/urn:x                 repo/oai_dc=/other=/urn%3Ax.xml              flat: repo~oai_dc=~other=~urn%3Ax.xml
    anything else, revision 6         other=/anything%20else.6.xml                 flat: other=~anything%20else.6.xml

Letters, digits and `_ . - @ + ,` stay as they are, everything else becomes %XX of its UTF-8 bytes. So do a first dot or
hyphen, a last dot, and what would make a name that means something else: one that Windows reserves (`con`, `aux.txt`),
one of our own (`starting_at_5000`), a folder that ends like a file. A name therefore shows its document, whatever the
file system does with Unicode. A name that cannot be written out (too long, too deep), or that equals another document's
name if case does not count, has a digest: `ilLib/1234=5f70bf18a086007016e948b04aed3b82.1.xml`. A `=` or `~` in a
name is always ours. Names such as `starting_at_5000` are no part of the input or output of these functions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from urllib.parse import quote, unquote

from metaharvest.model.values import frozen
from metaharvest.text import LARGEST_ID

Layout = Literal["tree", "flat"]

SUFFIX = ".xml"

_LONGEST = 140
"""Characters of a name: file systems take 255 bytes, those that encrypt names 143."""

_LONGEST_STEM = _LONGEST - len(SUFFIX) - 20
"""A revision has at most nineteen digits, and a dot in front."""

_MOST_STARTED_AT = 10**15

_DEEPEST = 8
_LONGEST_PATH = 600
_LONGEST_CUT = 60

_NUMBER = "(?:0|[1-9][0-9]*)"
_NUMBERED = re.compile(rf"(.+)\.({_NUMBER})", re.DOTALL)
_RECORD = re.compile(r"([A-Za-z0-9._~-]+)/([^/]+)/([A-Za-z][A-Za-z0-9+.-]*:.*)", re.DOTALL)
"""The id of a source repository's record: the repository's name, the format, and an identifier, which is a URI."""

_LAST_NUMBER = re.compile(r"\.([0-9]+)\Z")
_HASHED = re.compile(r".*=([0-9a-f]{32})", re.DOTALL)
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", re.IGNORECASE)
_STARTING_AT = re.compile(r"starting_at_([0-9]+)\Z", re.IGNORECASE)
_OTHER = "other="


@frozen
class Place:
    """The place of a document's files: these folders below the base folder, with names that begin with `stem`.

    `bare_first`: its first revision has no number in its name. `hashed`: the names do not show the document.
    """

    layout: Layout
    folders: tuple[str, ...]
    stem: str
    bare_first: bool = False
    hashed: bool = False

    def file_name(self, revision: int) -> str:
        """The name of the file with this revision."""
        return f"{self.stem}{SUFFIX}" if self.bare_first and revision == 1 else f"{self.stem}.{revision}{SUFFIX}"

    @property
    def key(self) -> str:
        """A key that no other document may have: on some file systems, names that differ only in case are the same."""
        return "/".join((*self.folders, self.stem)).lower()


@frozen
class Named:
    """The parts of a file's path; `document_id` is None if the name has a `digest` instead."""

    revision: int
    layout: Layout
    document_id: str | None
    digest: str = ""


def digest_of(document_id: str) -> str:
    """The digest in the name of a document that cannot be written out."""
    return hashlib.sha256(document_id.encode(errors="surrogatepass")).hexdigest()[:32]


def place_of(document_id: str, layout: Layout, hashed: bool = False) -> Place:
    """The place for the files of a document; `hashed`: another document has its own name already."""
    plain = _written_out(document_id)
    fits = len(plain.folders) <= _DEEPEST and len(plain.key) <= _LONGEST_PATH
    fits = fits and all(len(folder) <= _LONGEST for folder in plain.folders)
    if layout == "flat":
        is_listed = not plain.bare_first and plain.folders != (_OTHER,)
        stem = plain.stem if is_listed else "~".join((*plain.folders, plain.stem))
        plain = replace(plain, layout="flat", folders=(), stem=stem)
    if fits and not hashed and len(plain.stem) <= _LONGEST_STEM:
        return plain
    stem = f"{plain.stem[:_LONGEST_CUT]}={digest_of(document_id)}"
    return Place(layout, tuple(map(_cut, plain.folders[:1])), stem, hashed=True)


def read(folders: Sequence[str], file_name: str) -> Named | None:
    """The document and revision of a file in these folders below the base folder; None for a file of others."""
    stem, suffix = file_name[: -len(SUFFIX)], file_name[-len(SUFFIX) :]
    if suffix != SUFFIX:
        return None
    numbered = _NUMBERED.fullmatch(stem)
    if numbered and int(numbered[2]) > LARGEST_ID:
        return None
    if numbered and (hashed := _HASHED.fullmatch(numbered[1])):
        return Named(int(numbered[2]), "tree" if folders else "flat", None, hashed[1])
    layout: Layout = "tree" if folders else "flat"
    for bare in (False, True):
        if not bare and not numbered:
            continue
        begin, revision = (stem, 1) if bare or not numbered else (numbered[1], int(numbered[2]))
        document_id = _document_id(folders or begin.split("~")[:-1], begin if folders else begin.rpartition("~")[2])
        if document_id is None:
            continue
        # Only a name that we would write ourselves is ours: other names may have many spellings.
        place = place_of(document_id, layout)
        if place.folders == tuple(folders) and not place.hashed and place.file_name(revision) == file_name:
            return Named(revision, layout, document_id)
    return None


def starts_at(folder: str) -> int | None:
    """The number in a name like `starting_at_5000`; None for other names, and for numbers that we never use."""
    found = _STARTING_AT.match(folder)
    return int(found[1]) if found and int(found[1]) <= _MOST_STARTED_AT else None


def _written_out(document_id: str) -> Place:
    """The place of a document in a tree, however long."""
    if record := _RECORD.fullmatch(document_id):
        origin, prefix, identifier = record.groups()
        place = _of_identifier(identifier) or Place("tree", (_OTHER,), _last(identifier), bare_first=True)
        return replace(place, folders=(_folder(origin), f"{_folder(prefix)}=", *place.folders))
    if plain := _of_identifier(document_id):
        return plain
    if listed := _NUMBERED.fullmatch(document_id):
        scope = _folder(listed[1])
        return Place("tree", (scope, listed[2]), f"{scope}.{listed[2]}")
    return Place("tree", (_OTHER,), _escaped(document_id))


def _of_identifier(identifier: str) -> Place | None:
    """The place of an OAI identifier of the usual scheme; None for others."""
    parts = identifier.split(":")
    if parts[0] != "oai" or len(parts) < 3:
        return None
    return Place("tree", tuple(map(_folder, parts[1:-1])), _last(parts[-1]), bare_first=True)


def _last(part: str) -> str:
    """The last part of an identifier as the beginning of a file name, of which a number at its end is no revision."""
    return _LAST_NUMBER.sub(r"%2E\1", _escaped(part))


def _document_id(folders: Sequence[str], stem: str) -> str | None:
    """The document whose names may begin like this; None if there is none."""
    try:
        if len(folders) > 2 and folders[1].endswith("="):
            rest = folders[2:]
            identifier = _read(stem) if list(rest) == [_OTHER] else ":".join(("oai", *map(_read, rest), _read(stem)))
            return f"{_read(folders[0])}/{_read(folders[1][:-1])}/{identifier}"
        if list(folders) == [_OTHER]:
            return _read(stem)
        if listed := _NUMBERED.fullmatch(stem):
            return f"{_read(listed[1])}.{listed[2]}"
        return ":".join(("oai", *map(_read, folders), _read(stem)))
    except UnicodeDecodeError:
        return None


def _escaped(part: str) -> str:
    """A part of a document id as a name, or the beginning of one."""
    if not part:
        return "%"
    name = quote(part, safe="@+,", errors="surrogatepass").replace("~", "%7E")
    if name.endswith("."):
        name = f"{name[:-1]}%2E"
    if name[0] in ".-" or _RESERVED.match(name) or _STARTING_AT.match(name):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    return name


def _folder(part: str) -> str:
    name = _escaped(part)
    return f"{name[: -len(SUFFIX)]}%2E{name[1 - len(SUFFIX) :]}" if name.lower().endswith(SUFFIX) else name


def _cut(folder: str) -> str:
    """A long folder name, cut, with a mark that makes it unique."""
    return folder if len(folder) <= _LONGEST else f"{folder[:_LONGEST_CUT]}="


def _read(name: str) -> str:
    return "" if name == "%" else unquote(name, errors="surrogatepass")
