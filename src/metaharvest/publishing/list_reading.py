"""Reads a harvest list before a change: the parts that the harvest reads, and the parts that it skips.

The harvest's own reader checks the list first; this module reads only a list that it accepts.
"""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from xml.parsers import expat

from metaharvest.model import ListedDocument
from metaharvest.model.namespaces import XSI
from metaharvest.publishing.list_file import TARGET, XML, Entry, ListFile, Memory, Remark, read_memory
from metaharvest.sources.harvest_list.source import read_list


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
            self._end_entry()
        elif self._depth == 0:
            self._ending = self._taken()
        elif name == "docid":
            self._place_before("/docid")
        self._between = ""

    def _end_entry(self) -> None:
        document, memory = next(self._documents), self._memory
        if memory is not None and memory.document_id != document.document_id:
            # A person has copied an entry, and changed it to another document.
            memory = None
        self._entries.append(Entry(document, memory, self._above, tuple(self._notes)))

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
