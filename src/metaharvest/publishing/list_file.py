"""A harvest list as the file that a site keeps: its entries, the comments of people, and its memories of documents.

A change of a document's content raises its revision, so the former content must be remembered. The list does that in
processing instructions, which harvesters skip:

    <?metaharvest docid="alder.1.2" sha256="..."?>

says that alder.1.2 was listed with content of this SHA-256. In an entry it is about that entry; after the entries it
is about a document that is no longer listed. So one file has the promise to harvesters and the memory of it. The file
is replaced at once, and people can copy it, keep it under version control, and edit it by hand.

The harvest's own reader checks a list first. `read_list_file` reads what the harvest skips, too.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from xml.parsers import expat
from xml.sax.saxutils import escape, unescape

from metaharvest.model import ListedDocument
from metaharvest.model.namespaces import XSI
from metaharvest.model.values import frozen
from metaharvest.sources.harvest_list.elements import LIST_NAMESPACE
from metaharvest.sources.harvest_list.source import read_list, scope_and_identifier

TARGET = "metaharvest"
XML = "http://www.w3.org/XML/1998/namespace"

_PREFIXES = {XSI: "xsi", XML: "xml"}
_PAIR = re.compile(r'(?<![a-z0-9-])([a-z0-9-]+)="([^"]*)"\s*')
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DOCID = re.compile(r"([!-~]+)\.([0-9]{1,19})")
_MAX_PACKAGE_ID = 800
_IN = "  "


@frozen
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


@frozen
class Remark:
    """A comment, or an instruction for another program, inside of an entry or on the line of its end.

    It stands before the tag that is named by `before`, "/document" for an end tag, "" after the entry's end;
    `same_line`: on the line of what precedes it.
    """

    text: str
    before: str
    same_line: bool


@frozen
class Entry:
    """One entry: its document, its memory, and the notes above and inside of it."""

    document: ListedDocument
    memory: Memory | None = None
    above: tuple[str, ...] = ()
    notes: tuple[Remark, ...] = ()


@frozen
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


def read_list_file(content: bytes) -> ListFile:
    """The list in `content`. Raises ListError, with every problem, if it is not valid; file: URLs are allowed."""
    documents = list(read_list(io.BytesIO(content), files_allowed=True))
    return _Reader(documents).read(content)


def remembered(content: bytes) -> dict[str, Memory]:
    """The memories of a list's documents, by docid; empty for an unreadable list."""
    if b"<?metaharvest" not in content:
        return {}
    found: dict[str, Memory] = {}

    def instruction(target: str, data: str) -> None:
        memory = read_memory(data) if target == TARGET else None
        if memory is not None and memory.sha256:
            found[memory.docid] = memory

    parser = expat.ParserCreate()
    parser.ProcessingInstructionHandler = instruction
    with suppress(expat.ExpatError, LookupError, ValueError):
        parser.Parse(content, True)
    return found


@dataclass(slots=True)
class _Text:
    """A comment or instruction with its place. `apart`: an empty line follows it."""

    text: str
    same_line: bool
    apart: bool = False


class _Reader:
    """Reads the list a second time for its comments and processing instructions, with their places."""

    def __init__(self, documents: list[ListedDocument]) -> None:
        self._documents = iter(documents)
        self._entries: list[Entry] = []
        self._former: dict[str, Memory] = {}
        self._prolog: tuple[str, ...] = ()
        self._heading: tuple[str, ...] = ()
        self._ending: tuple[str, ...] = ()
        self._attributes: tuple[tuple[str, str], ...] = ()
        self._depth = 0
        self._between = ""
        self._pending: list[_Text] = []
        self._above: tuple[str, ...] = ()
        self._notes: list[Remark] = []
        self._memory: Memory | None = None

    def read(self, content: bytes) -> ListFile:
        """The list as a value."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CommentHandler = lambda text: self._note(f"<!--{text}-->")
        parser.ProcessingInstructionHandler = self._instruction
        parser.CharacterDataHandler = self._text
        parser.Parse(content, True)
        above_and_below = (self._prolog, self._attributes, self._heading, self._ending, self._taken())
        return ListFile(tuple(self._entries), self._former, *above_and_below)

    def _text(self, text: str) -> None:
        self._between += text
        if self._pending and self._between.count("\n") > 1:
            self._pending[-1].apart = True

    def _note(self, text: str) -> None:
        follows = self._depth > 0 and "\n" not in self._between
        self._between = ""
        if follows and self._pending:
            self._pending[-1].text += f" {text}"
        elif follows and self._depth == 1 and self._entries:
            last = self._entries[-1]
            self._entries[-1] = replace(last, notes=(*last.notes, Remark(text, "", same_line=True)))
        else:
            self._pending.append(_Text(text, follows))

    def _instruction(self, target: str, data: str) -> None:
        memory = read_memory(data) if target == TARGET and self._depth else None
        if memory is None:
            self._note(f"<?{target} {data}?>" if data else f"<?{target}?>")
            return
        if self._depth == 1:
            known = self._former.setdefault(memory.document_id, memory)
            self._former[memory.document_id] = max(known, memory, key=lambda each: each.revision)
        else:
            self._place_before("memory")
            self._memory = memory
        self._between = ""

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1:
            self._prolog = self._taken()
            self._attributes = tuple(
                (name, value) for name, value in attributes.items() if name.partition(" ")[0] in (XSI, XML)
            )
        elif self._depth == 2:
            if not self._entries:
                self._take_heading()
            self._above = self._taken()
            self._notes, self._memory = [], None
        else:
            self._place_before(name)
        self._between = ""

    def _end(self, name: str) -> None:
        self._depth -= 1
        if self._depth == 1:
            self._place_before("/document" if self._memory else "memory")
            document, memory = next(self._documents), self._memory
            if memory is not None and memory.document_id != document.document_id:
                # A person has copied an entry, and changed it to another document.
                memory = None
            self._entries.append(Entry(document, memory, self._above, tuple(self._notes)))
        elif self._depth == 0:
            self._ending = self._taken()
        elif name == "docid":
            self._place_before("/docid")
        self._between = ""

    def _place_before(self, tag: str) -> None:
        self._notes += [Remark(found.text, tag, found.same_line) for found in self._pending]
        self._pending.clear()

    def _take_heading(self) -> None:
        """The notes above an empty line before the first entry are about the list."""
        about_entry = len(list(takewhile(lambda found: not found.apart, reversed(self._pending))))
        here = len(self._pending) - about_entry
        self._heading = tuple(found.text for found in self._pending[:here])
        del self._pending[:here]

    def _taken(self) -> tuple[str, ...]:
        taken = tuple(found.text for found in self._pending)
        self._pending.clear()
        return taken
