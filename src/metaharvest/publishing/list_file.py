"""A harvest list as the file that a site keeps: its entries, the comments of people, and its memories of documents.

A change of a document's content raises its revision, so the former content must be remembered. The list does that in
processing instructions, which harvesters skip:

    <?metaharvest docid="alder.1.2" sha256="..."?>

says that alder.1.2 was listed with content of this SHA-256. In an entry it is about that entry; after the entries it
is about a document that is no longer listed. So one file has the promise to harvesters and the memory of it. The file
is replaced at once, and people can copy it, keep it under version control, and edit it by hand.

list_reading.py reads such a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, unescape

from metaharvest.model import ListedDocument
from metaharvest.model.namespaces import XSI
from metaharvest.sources.harvest_list.elements import LIST_NAMESPACE
from metaharvest.sources.harvest_list.source import scope_and_identifier

TARGET = "metaharvest"
"""The target of the processing instructions with memories."""

XML = "http://www.w3.org/XML/1998/namespace"

_PREFIXES = {XSI: "xsi", XML: "xml"}
_PAIR = re.compile(r'(?<![a-z0-9-])([a-z0-9-]+)="([^"]*)"\s*')
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DOCID = re.compile(r"([!-~]+)\.([0-9]{1,19})")
_MAX_PACKAGE_ID = 800
_IN = "  "


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of a document when it was listed: its docid, and the SHA-256 of its bytes ("" if unknown).

    `package_id` is its packageId, if it differs from the docid.
    """

    document_id: str
    revision: int
    sha256: str = ""
    package_id: str = ""

    @property
    def docid(self) -> str:
        """Document id and revision."""
        return f"{self.document_id}.{self.revision}"

    @property
    def as_instruction(self) -> str:
        """The processing instruction for it."""
        pairs = {"docid": self.docid, "sha256": self.sha256, "package-id": self.package_id}
        data = " ".join(f'{name}="{escape(value, _QUOTED)}"' for name, value in pairs.items() if value)
        return f"<?{TARGET} {data}?>"


_QUOTED = {'"': "&quot;"}
_UNQUOTED = {"&quot;": '"'}


def memory_of(document: ListedDocument, sha256: str, package_id: str) -> Memory:
    """The memory of a document that is listed with these bytes and this packageId."""
    is_other = package_id != document.docid and package_id.isprintable() and len(package_id) <= _MAX_PACKAGE_ID
    return Memory(document.document_id, document.revision, sha256, package_id if is_other else "")


def read_memory(data: str) -> Memory | None:
    """The memory in the data of a processing instruction; None if the data are of another kind."""
    pairs = {name: unescape(value, _UNQUOTED) for name, value in _PAIR.findall(data)}
    docid = _DOCID.fullmatch(pairs.get("docid", ""))
    sha256 = pairs.get("sha256", "")
    if docid is None or not (sha256 == "" or _SHA256.fullmatch(sha256)):
        return None
    return Memory(docid[1], int(docid[2]), sha256, pairs.get("package-id", ""))


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment, or an instruction for another program, inside of an entry or on the line of its end.

    It stands before the tag that is named by `before`, "/document" for an end tag, "" after the entry's end;
    `same_line`: on the line of what precedes it.
    """

    text: str
    before: str
    same_line: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its document, its memory, and the notes above and inside of it."""

    document: ListedDocument
    memory: Memory | None = None
    above: tuple[str, ...] = ()
    notes: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class ListFile:
    """A whole list. `former` has the memories of documents that are no longer listed, by document id.

    The other texts are comments and instructions for other programs: before the root element (`prolog`), at the top of
    the list (`heading`), after its entries (`ending`), and after the root element (`epilog`). `attributes` are the root
    element's attributes, by namespace and name.
    """

    entries: tuple[Entry, ...] = ()
    former: dict[str, Memory] = field(default_factory=dict)
    prolog: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    heading: tuple[str, ...] = ()
    ending: tuple[str, ...] = ()
    epilog: tuple[str, ...] = ()


def place_of(document: ListedDocument) -> tuple[str, int, int]:
    """The place of a document in a sorted list: by scope, identifier and revision."""
    scope, identifier = scope_and_identifier(document.document_id)
    return scope or "", identifier or 0, document.revision


def in_order(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries of a sorted list; entries of the same docid keep their order."""
    return tuple(sorted(entries, key=lambda entry: place_of(entry.document)))


def written(list_file: ListFile) -> bytes:
    """The list's canonical text: UTF-8, one element a line, without dates or other values that change daily."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', *list_file.prolog, _root_tag(list_file.attributes)]
    if list_file.heading:
        # The empty line separates the heading from the first entry.
        lines += [*(f"{_IN}{note}" for note in list_file.heading), ""]
    for entry in list_file.entries:
        lines += _entry_lines(entry)
    former = sorted(list_file.former.values(), key=lambda memory: (memory.document_id, memory.revision))
    lines += [f"{_IN}{memory.as_instruction}" for memory in former]
    lines += [f"{_IN}{note}" for note in list_file.ending]
    lines += ["</hrv:harvestList>", *list_file.epilog]
    return ("\n".join(lines) + "\n").encode()


def _root_tag(attributes: tuple[tuple[str, str], ...]) -> str:
    parts = [f'xmlns:hrv="{LIST_NAMESPACE}"']
    named = [(*name.rpartition(" ")[::2], value) for name, value in sorted(attributes)]
    if any(uri == XSI for uri, _, _ in named):
        parts.append(f'xmlns:xsi="{XSI}"')
    parts += [f'{_PREFIXES[uri]}:{local}="{escape(value, _QUOTED)}"' for uri, local, value in named]
    return f"<hrv:harvestList {' '.join(parts)}>"


def _entry_lines(entry: Entry) -> list[str]:
    """The lines of an entry; each note is before its tag."""
    document = entry.document
    scope, identifier = scope_and_identifier(document.document_id)
    tags = (
        ("document", 1, "<document>"),
        ("docid", 2, "<docid>"),
        ("scope", 3, _element("scope", scope)),
        ("identifier", 3, _element("identifier", identifier)),
        ("revision", 3, _element("revision", document.revision)),
        ("/docid", 2, "</docid>"),
        ("documentType", 2, _element("documentType", document.document_type)),
        ("documentURL", 2, _element("documentURL", document.url)),
        ("memory", 2, entry.memory.as_instruction if entry.memory else ""),
        ("/document", 1, "</document>"),
        ("", 1, ""),
    )
    lines = [f"{_IN}{note}" for note in entry.above]
    for name, depth, text in tags:
        for note in (note for note in entry.notes if note.before == name):
            if note.same_line:
                lines[-1] += f" {note.text}"
            else:
                lines.append(f"{_IN * (depth + name.startswith('/'))}{note.text}")
        if text:
            lines.append(f"{_IN * depth}{text}")
    return lines


def _element(name: str, value: object) -> str:
    return f"<{name}>{escape(str(value))}</{name}>"
