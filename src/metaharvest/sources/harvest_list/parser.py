"""Reads a harvest list piece by piece and checks everything about it, in bounded memory whatever it contains.

The parser is expat. It reads a stream without building a tree, knows the line of everything at any length, notices a
truncated list, and expands no entities of a document type definition. A `ListEntry` is filled in, and checks that it is
complete. elements.py knows the elements, values.py checks each value, syntax.py explains a syntax error, and source.py
fetches the list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import BinaryIO, NoReturn
from xml.parsers import expat

from metaharvest.errors import ListError
from metaharvest.fetch.url import shown
from metaharvest.model import MAX_FINDINGS, Finding, ListedDocument
from metaharvest.rules import RULES
from metaharvest.sources.harvest_list.elements import (
    CHILDREN,
    DOCID_PARTS,
    ENTRY_ELEMENTS,
    HARMLESS_ATTRIBUTES,
    HTML_DOCTYPE,
    INNER_NAMESPACE,
    SKIPPED,
    VALUES,
    meant_child,
    misspelled,
    other_root,
    root_mistakes,
    unexpected_attribute,
    unexpected_child,
)
from metaharvest.sources.harvest_list.syntax import (
    SourceText,
    encoding_finding,
    entity_mistake,
    excerpt_around,
    list_excerpt,
    syntax_finding,
)
from metaharvest.sources.harvest_list.values import (
    XML_SPACE,
    BadValue,
    check_document_id,
    check_number,
    check_scope,
    check_type,
    check_url,
    document_id_of,
)
from metaharvest.text import character_in_words, counted, one_line


@dataclass(slots=True)
class ListEntry:
    """The part of an entry that was read.

    The entry begins at `line` and `offset` (in bytes). `files_allowed`: its documentURL may be a file: URL, and with
    `base` also relative to that. `lines` has the lines of its start tags, in their order, `texts` the values as
    written, `findings` the findings so far.
    """

    line: int
    offset: int
    files_allowed: bool = False
    base: str = ""
    lines: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def docid(self) -> str:
        """The entry's docid as written, as far as it is known; `?` for a missing part."""
        parts = [self.texts.get(name, "").strip(XML_SPACE) for name in DOCID_PARTS]
        while parts and not parts[-1]:
            parts.pop()
        return one_line(".".join(part or "?" for part in parts), 200)

    @property
    def is_whole(self) -> bool:
        """True if all elements are there, in the right order."""
        return tuple(self.lines) == ENTRY_ELEMENTS

    def listed(self) -> ListedDocument:
        """A whole entry as a listed document. Raises BadValue if a value cannot be used."""
        texts = self.texts
        return ListedDocument(
            document_id_of(texts["scope"], texts["identifier"]),
            check_number("revision", texts["revision"]),
            check_type(texts["documentType"]),
            check_url(texts["documentURL"], self.files_allowed, self.base),
            self.line,
        )

    def structure_findings(self, excerpt: str) -> Iterator[Finding]:
        """The findings about missing elements, and about a wrong order of the others; `excerpt` shows the entry."""
        missing = [name for name in ENTRY_ELEMENTS if name not in self.lines]
        if "docid" in missing:
            missing = [name for name in missing if name not in DOCID_PARTS]
        for name in missing:
            remedy = f"Write <{name}>…</{name}> in every `{'docid' if name in DOCID_PARTS else 'document'}`."
            yield Finding("list.missing", f"The entry has no `{name}`.", remedy, line=self.line, excerpt=excerpt)
        if list(self.lines) != [name for name in ENTRY_ELEMENTS if name in self.lines]:
            message = "The elements of this entry are in the wrong order."
            remedy = "Write `docid` (with `scope`, `identifier`, `revision`), then `documentType`, then `documentURL`."
            yield Finding("list.order", message, remedy, line=self.line, excerpt=excerpt)

    def value_findings(self) -> Iterator[Finding]:
        """The findings about values that are there and unusable."""
        yield from self._value_finding("scope", check_scope)
        yield from self._value_finding("identifier", partial(check_number, "identifier"))
        yield from self._value_finding("revision", partial(check_number, "revision"))
        yield from self._value_finding("documentType", check_type)
        yield from self._value_finding(
            "documentURL", partial(check_url, files_allowed=self.files_allowed, base=self.base)
        )
        with suppress(BadValue):
            scope = check_scope(self.texts.get("scope", ""))
            identifier = check_number("identifier", self.texts.get("identifier", ""))
            yield from self._value_finding("scope", lambda _: check_document_id(scope, identifier))

    def _value_finding(self, name: str, check: Callable[[str], object]) -> Iterator[Finding]:
        try:
            check(self.texts.get(name, ""))
        except BadValue as bad:
            if name in self.texts:
                value = self.texts[name].strip(XML_SPACE)
                excerpt = list_excerpt(f"<{name}>{shown(value) if '@' in value else value}</{name}>")
                yield Finding(*bad.mistake, line=self.lines[name], excerpt=excerpt)


_WHOLE_DOCID = re.compile(r"(?P<scope>[\w.-]{1,100})\.(?P<identifier>\d{1,18})\.(?P<revision>\d{1,18})", re.ASCII)
"""A docid in one piece."""

_TAG_MISMATCH = expat.errors.codes[expat.errors.XML_ERROR_TAG_MISMATCH]

MAX_PIECE = 1_048_576
"""Bytes that one tag, comment or processing instruction may have; the parser holds all of it in memory."""

MAX_TEXT = 8_000
"""Characters that one value may have."""

MAX_DEPTH = 64
"""How deep elements may be nested; a valid list needs four levels."""

MAX_ODDITIES = 100_000
"""The number of problems and oddities after which reading stops."""


class _Stop(Exception):
    """Further reading makes no sense, or would take too much memory."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class ListParser:
    """Takes the list's bytes with `feed`; gives its good entries with `documents`, and at the end all problems.

    `file` is the list itself, for excerpts. `files_allowed`: entries may have file: URLs.
    `base`: the URL of the list's own file, if they may also be relative to it.
    """

    def __init__(self, file: BinaryIO, files_allowed: bool = False, base: str = "") -> None:
        self._source = SourceText(file)
        self._files_allowed = files_allowed
        self._base = base
        self._kept: list[Finding] = []
        self._left_out = 0
        self._oddities = 0
        self._open: list[str] = []
        self._entry: ListEntry | None = None
        self._entries = 0
        self._texts: list[str] = []
        self._value_from = 0
        self._skipped_from = 0
        self._declared: set[tuple[str | None, str | None]] = set()
        self._root_uri: str | None = None
        self._has_inner_namespace = False
        self._has_open_entries = False
        self._ready: list[ListedDocument] = []
        self._fed = 0
        self._parser = self._new_parser()

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        # Expat 2.6 delays unfinished tags, and then gives no position; their length is limited here anyway.
        if hasattr(parser, "SetReparseDeferralEnabled"):
            parser.SetReparseDeferralEnabled(False)
        parser.XmlDeclHandler = lambda version, encoding, standalone: self._source.declare(encoding)
        parser.StartDoctypeDeclHandler = self._doctype
        parser.SkippedEntityHandler = self._skipped_entity
        parser.StartNamespaceDeclHandler = self._namespace_declaration
        parser.StartElementHandler = self._start_root
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._texts.append
        return parser

    def feed(self, data: bytes, *, last: bool = False) -> bool:
        """Parse the next piece. False if a problem prevents further reading."""
        self._fed += len(data)
        try:
            self._parser.Parse(data, last)
            self._trim_text()
            if self._fed - self._parser.CurrentByteIndex > MAX_PIECE and not last:
                message = f"A tag or a comment begins here that is longer than {MAX_PIECE:,} bytes."
                remedy = "Check whether a quotation mark, a `>` or the end of a comment (`-->`) is missing."
                self._stop("list.too-large", message, remedy)
        except _Stop as stop:
            self._end_with(stop.finding)
        except expat.ExpatError as error:
            inside, offset = self._open[-1] if self._open else "", self._parser.ErrorByteIndex
            is_mismatch = error.code == _TAG_MISMATCH
            if is_mismatch and inside == "document" and self._entry is not None:
                self._end_with(self._not_closed(self._entry, "the list ends", error.lineno))
            elif not (is_mismatch and self._entry is None and self._has_open_entries):
                self._end_with(syntax_finding(error, offset, self._source, inside, self._entries))
        except (LookupError, ValueError):
            # Raised for an unknown or multi-byte encoding in the XML declaration, which is before any element.
            if self._root_uri is not None:
                raise
            self._end_with(encoding_finding(self._source))
        else:
            return True
        return False

    def documents(self) -> Iterator[ListedDocument]:
        """The good entries since the last call."""
        ready, self._ready = self._ready, []
        return iter(ready)

    def raise_for_problems(self) -> None:
        """Raise ListError with all findings, if there are any."""
        if self._left_out:
            more = counted(self._left_out, "more finding of this list is", "more findings of this list are")
            message = f"{more} not shown."
            remedy = "Correct these first: many of the others may disappear with them."
            self._kept.append(Finding("findings.more", message, remedy))
        if self._kept:
            raise ListError(*self._kept)

    # -- findings: an open entry keeps its findings until its docid is known

    def _report(self, rule: str, message: str, remedy: str) -> None:
        """Keep a finding about the place where the parser is."""
        self._keep(self._here(rule, message, remedy))

    def _stop(self, rule: str, message: str, remedy: str) -> NoReturn:
        """End the reading with a finding about the place where the parser is."""
        raise _Stop(self._here(rule, message, remedy))

    def _here(self, rule: str, message: str, remedy: str) -> Finding:
        found = len(self._kept) + (len(self._entry.findings) if self._entry else 0)
        before, after = self._source.line(self._parser.CurrentByteIndex) if found < MAX_FINDINGS else ("", "")
        line, column = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        return Finding(rule, message, remedy, line=line, column=column, excerpt=excerpt_around(before, after))

    def _keep(self, finding: Finding) -> None:
        self._count_oddity()
        findings = self._kept if self._entry is None else self._entry.findings
        if len(findings) < MAX_FINDINGS:
            findings.append(finding)
        else:
            self._left_out += 1

    def _count_oddity(self, name: str = "") -> None:
        """Count an oddity. A long name counts more: expat keeps every name until the end."""
        self._oddities += 1 + len(name) // 100
        if self._oddities > MAX_ODDITIES:
            message = f"Reading stopped here: more than {MAX_ODDITIES:,} things in this list are wrong or unusual."
            remedy = "Correct the problems that are shown: many of the others may go with them."
            self._stop("list.too-many-problems", message, remedy)

    def _end_with(self, finding: Finding) -> None:
        """Keep the findings so far, and `finding`, the reason why reading ended, which is always shown."""
        docid = self._entry.docid if self._entry else ""
        self._close_entry()
        if len(self._kept) >= MAX_FINDINGS:
            self._kept.pop()
            self._left_out += 1
        self._kept.append(replace(finding, docid=docid))

    # -- the parser's events

    def _doctype(self, name: str, system: str | None, public: str | None, internal_subset: bool) -> None:
        if name.lower() == "html":
            self._stop(*HTML_DOCTYPE)
        if internal_subset:
            message = "The list contains a document type definition (`<!DOCTYPE … [ … ]>`), which is never read."
            self._stop("list.dtd", message, RULES["list.dtd"].remedy)

    def _skipped_entity(self, name: str, is_parameter_entity: bool) -> None:
        self._report(*entity_mistake(f"&{one_line(name, 40)};", self._open[-1] if self._open else ""))

    def _namespace_declaration(self, prefix: str | None, uri: str | None) -> None:
        if (prefix or uri) and (prefix, uri) not in self._declared:
            self._count_oddity(f"{prefix}{uri}")
            self._declared.add((prefix, uri))

    def _start_root(self, name: str, attributes: dict[str, str]) -> None:
        self._root_uri, _, local = name.rpartition(" ")
        other = other_root(local)
        if other:
            self._stop(*other)
        for mistake in root_mistakes(self._root_uri, local):
            self._report(*mistake)
        self._open.append("harvestList")
        self._parser.StartElementHandler = self._start

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        for attribute in attributes:
            if attribute not in HARMLESS_ATTRIBUTES:
                self._count_oddity(attribute)
                self._report(*unexpected_attribute(name, attribute))
        parent, entry = self._open[-1], self._entry
        if name not in CHILDREN[parent]:
            name = self._known_name(name, parent)
        if entry is not None and name == "document":
            self._leave_open(entry)
            entry = None
        if entry is None and name == "document":
            self._refuse_stray_text()
            place = self._parser.CurrentLineNumber, self._parser.CurrentByteIndex
            self._entry = ListEntry(*place, self._files_allowed, self._base)
        elif entry is None:
            name = SKIPPED
        elif name in entry.lines:
            self._report("list.doubled", f"`{name}` is there twice in one entry.", "Keep one of the two.")
            name = SKIPPED
        elif name:
            entry.lines[name] = self._parser.CurrentLineNumber
            self._value_from = len(self._texts)
        if not name and parent:
            self._skipped_from = len(self._texts)
        self._open.append(name)

    def _known_name(self, name: str, parent: str) -> str:
        """The known name that an unexpected element must mean, or SKIPPED; reports the mistake."""
        if len(self._open) >= MAX_DEPTH:
            message = f"Elements are nested more than {MAX_DEPTH} deep here; a harvest list has four levels."
            self._stop("list.too-deep", message, "Check whether end tags are missing.")
        self._count_oddity(name)
        if parent == SKIPPED:
            return SKIPPED
        uri, _, local = name.rpartition(" ")
        meant = meant_child(uri, local, parent, self._root_uri)
        if meant is None and meant_child(uri, local, "harvestList", self._root_uri):
            return "document"
        if meant is None:
            self._report(*unexpected_child(local, parent))
            return SKIPPED
        if uri and not self._has_inner_namespace:
            self._has_inner_namespace = True
            self._report(*INNER_NAMESPACE)
        if meant != local:
            self._report(*misspelled(local, meant))
        return meant

    def _leave_open(self, entry: ListEntry) -> None:
        """Report a missing end tag: another entry begins inside of this one. The other entries are checked."""
        self._close_entry()
        self._texts.clear()
        # Of nested empty entries, only the first is reported.
        if entry.lines or not self._has_open_entries:
            finding = self._not_closed(entry, "the next one begins", self._parser.CurrentLineNumber)
            self._keep(replace(finding, docid=entry.docid))
        self._has_open_entries = True

    def _not_closed(self, entry: ListEntry, what: str, line: int) -> Finding:
        message = f"The entry that begins in line {entry.line} is not closed: {what} in line {line}."
        is_shown = len(self._kept) < MAX_FINDINGS
        excerpt = self._source.entry(entry.offset, self._parser.CurrentByteIndex) if is_shown else ""
        remedy = "Close it with `</document>` before that line."
        return Finding("list.not-well-formed", message, remedy, line=entry.line, excerpt=excerpt)

    def _end(self, name: str) -> None:
        closed = self._open.pop()
        if closed in VALUES and self._entry is not None:
            self._end_value(closed, self._entry)
        elif closed == "document":
            self._refuse_stray_text()
            if self._entry is not None:
                self._end_entry(self._entry)
        elif not self._open:
            self._end_root()
        elif closed == SKIPPED and self._open[-1] != SKIPPED:
            del self._texts[self._skipped_from :]

    def _end_root(self) -> None:
        self._refuse_stray_text()
        if not self._entries:
            message = "The list names no document; a harvest list names one at least."
            remedy = "Add a `document` element for every document, or ask the administrator to suspend your site."
            self._report("list.empty", message, remedy)

    # -- text: all of it is collected, since lists have little except the values, and checked when an element ends

    def _end_value(self, name: str, entry: ListEntry) -> None:
        if len(self._texts) == self._value_from + 1:
            text = self._texts.pop()
        else:
            text = "".join(self._texts[self._value_from :])
            del self._texts[self._value_from :]
        entry.texts[name] = text[:MAX_TEXT]
        if len(text) > MAX_TEXT:
            message = f"The text of `{name}` is longer than {MAX_TEXT:,} characters."
            self._report("list.too-long", message, RULES["list.too-long"].remedy)

    def _refuse_stray_text(self) -> None:
        text = "".join(self._texts).strip(XML_SPACE)
        self._texts.clear()
        if not text:
            return
        message, remedy = f"The text '{one_line(text, 60)}' stands between the elements", "Take it out."
        if not any(map(str.isprintable, text)):
            message = f"There is {character_in_words(text[0])} between the elements"
            remedy = "Delete it, or write an ordinary space: editors show no difference."
        elif parts := _WHOLE_DOCID.fullmatch(text):
            values = "".join(f"<{name}>{parts[name]}</{name}>" for name in DOCID_PARTS)
            remedy = f"Write {values} in its place, inside of `docid`."
        if (entry := self._entry) is None:
            self._report("list.text", f"{message}.", remedy)
        else:
            # The text is somewhere in the entry, the parser at its end.
            excerpt = self._source.entry(entry.offset, self._parser.CurrentByteIndex)
            self._keep(Finding("list.text", f"{message} of this entry.", remedy, line=entry.line, excerpt=excerpt))

    def _trim_text(self) -> None:
        """Keep only as much of an unfinished text as is needed to judge it."""
        inside = self._open[-1] if self._open else ""
        if inside in VALUES:
            self._texts[self._value_from :] = ["".join(self._texts[self._value_from :])[: MAX_TEXT + 1]]
        elif inside == SKIPPED:
            del self._texts[self._skipped_from :]
        else:
            self._texts[:] = ["".join(self._texts).strip(XML_SPACE)[:MAX_TEXT]]

    # -- a whole entry

    def _end_entry(self, entry: ListEntry) -> None:
        self._entries += 1
        if entry.findings or not entry.is_whole:
            self._refuse_entry(entry)
        else:
            try:
                self._ready.append(entry.listed())
            except BadValue:
                self._refuse_entry(entry)
        self._close_entry()

    def _refuse_entry(self, entry: ListEntry) -> None:
        excerpt = self._source.entry(entry.offset, self._parser.CurrentByteIndex)
        for finding in chain(entry.structure_findings(excerpt), entry.value_findings()):
            self._keep(finding)

    def _close_entry(self) -> None:
        """Move the findings of the open entry, if there is one, to the others, with its docid."""
        entry, self._entry = self._entry, None
        if entry is None or not entry.findings:
            return
        docid, room = entry.docid, MAX_FINDINGS - len(self._kept)
        self._kept.extend(replace(finding, docid=docid) for finding in entry.findings[:room])
        self._left_out += max(0, len(entry.findings) - room)
