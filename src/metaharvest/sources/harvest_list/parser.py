"""Reads a harvest list piece by piece and checks everything about it, in bounded memory whatever it contains.

The parser is expat, which reads a stream without building a tree, knows the line of everything at any length, notices
a list that breaks off, and expands nothing by itself. What a syntax error means is said by list_syntax.py, what an
entry must look like by list_entry.py and list_values.py; where the list comes from is the business of harvest_list.py.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import BinaryIO
from xml.parsers import expat

from metaharvest.errors import ListError
from metaharvest.model import MAX_FINDINGS, Finding, ListedDocument
from metaharvest.sources.harvest_list.entry import ORDER, PARTS, Entry
from metaharvest.sources.harvest_list.syntax import (
    Place,
    SourceText,
    around,
    encoding_finding,
    entity_finding,
    syntax_finding,
)
from metaharvest.sources.harvest_list.values import XML_SPACE, BadValue
from metaharvest.text import one_line

LIST_NAMESPACE = "eml://ecoinformatics.org/harvestList"

MAX_PIECE = 1_048_576
"""Bytes that one tag, comment or processing instruction may have; the parser holds it in memory as a whole."""

MAX_TEXT = 8_000
"""Characters that one value may have."""

MAX_DEPTH = 64
"""How deep elements may be nested; a valid list needs four levels."""

MAX_ODDITIES = 100_000
"""After so many problems, or things that a list does not have, reading stops."""

_LEAVES = frozenset(ORDER) - {"docid"}
_CHILDREN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("", *ORDER), ()),
    "harvestList": ("document",),
    "document": ("docid", "documentType", "documentURL"),
    "docid": PARTS,
}
_SPELLING = {name.lower(): name for name in ("document", *ORDER)}
_OTHER_ROOTS = {
    "eml": "an EML document",
    "urlset": "a sitemap",
    "sitemapindex": "a sitemap index",
    "oai-pmh": "an answer of an OAI-PMH repository",
    "rss": "a news feed",
    "feed": "a news feed",
    "html": "an HTML page",
}
_SKIPPED = ""
_HARMLESS = frozenset(
    [f"http://www.w3.org/2001/XMLSchema-instance {name}" for name in ("schemaLocation", "type", "nil")]
    + [f"http://www.w3.org/XML/1998/namespace {name}" for name in ("lang", "space", "base", "id")]
)


class _Stop(Exception):
    """Reading on makes no sense, or would take too much memory."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class ListParser:
    """Takes the list's bytes with `feed`, gives its good entries with `documents`, and in the end all problems."""

    def __init__(self, file: BinaryIO, files_allowed: bool = False) -> None:
        self._source = SourceText(file)
        self._files_allowed = files_allowed
        self._kept: list[Finding] = []
        self._left_out = 0
        self._oddities = 0
        self._open: list[str] = []
        self._entry: Entry | None = None
        self._entries = 0
        self._texts: list[str] = []
        self._value_from = 0
        self._skipped_from = 0
        self._declared: set[tuple[str | None, str | None]] = set()
        self._root_uri: str | None = None
        self._inner_namespace = False
        self._ready: list[ListedDocument] = []
        self._fed = 0
        self._parser = self._new_parser()

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        # Expat 2.6 puts off reading what has no end yet, and then tells no place; how long that gets is bounded here.
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
        """Read on. False: something is so wrong that there is no reading on."""
        self._fed += len(data)
        try:
            self._parser.Parse(data, last)
            self._trim_text()
            if self._fed - self._parser.CurrentByteIndex > MAX_PIECE and not last:
                raise _Stop(self._here("list.too-large", *_TOO_LARGE))
        except _Stop as stop:
            self._give_up(stop.finding)
        except expat.ExpatError as error:
            inside, offset = self._open[-1] if self._open else "", self._parser.ErrorByteIndex
            self._give_up(syntax_finding(error, offset, self._source, inside, self._entries))
        except (LookupError, ValueError):
            # An unknown or multi-byte encoding in the XML declaration comes as one of these, before any element.
            if self._root_uri is not None:
                raise
            self._give_up(encoding_finding(self._source))
        else:
            return True
        return False

    def documents(self) -> Iterator[ListedDocument]:
        """The good entries that were read since the last call."""
        ready, self._ready = self._ready, []
        return iter(ready)

    def raise_for_problems(self) -> None:
        """Raise ListError with all findings, where there is one."""
        if self._left_out:
            self._kept.append(
                Finding(
                    "findings.more",
                    f"{self._left_out:,} more findings of this list are not shown.",
                    "Mend those shown first; many of the others may go with them.",
                )
            )
        if self._kept:
            raise ListError(*self._kept)

    # -- findings

    def _add(self, finding: Finding) -> None:
        self._odd()
        findings = self._kept if self._entry is None else self._entry.findings
        if len(findings) < MAX_FINDINGS:
            findings.append(finding)
        else:
            self._left_out += 1

    def _odd(self, name: str = "") -> None:
        """Count something that lists do not have; a long name counts more, since the parser never forgets a name."""
        self._oddities += 1 + len(name) // 100
        if self._oddities > MAX_ODDITIES:
            raise _Stop(
                self._here(
                    "list.too-many-problems",
                    f"Reading stopped here: more than {MAX_ODDITIES:,} things in this list are wrong or unusual.",
                    "Mend the problems that are shown; many of the others may go with them.",
                )
            )

    def _give_up(self, finding: Finding) -> None:
        """Keep what was found, and the reason why there is no reading on, which has to be seen in any case."""
        docid = self._entry.docid if self._entry else ""
        self._flush_entry()
        if len(self._kept) >= MAX_FINDINGS:
            self._kept.pop()
            self._left_out += 1
        self._kept.append(replace(finding, docid=docid))

    def _flush_entry(self) -> None:
        entry, self._entry = self._entry, None
        if entry is None or not entry.findings:
            return
        docid = entry.docid
        room = MAX_FINDINGS - len(self._kept)
        self._kept.extend(replace(finding, docid=docid) for finding in entry.findings[:room])
        self._left_out += max(0, len(entry.findings) - room)

    def _here(self, rule: str, message: str, remedy: str) -> Finding:
        """A finding about the place where the parser is."""
        parser = self._parser
        found = len(self._kept) + (len(self._entry.findings) if self._entry else 0)
        before, after = self._source.line(parser.CurrentByteIndex) if found < MAX_FINDINGS else ("", "")
        return Finding(
            rule,
            message,
            remedy,
            line=parser.CurrentLineNumber,
            column=parser.CurrentColumnNumber + 1,
            excerpt=around(before, after),
        )

    # -- what the parser meets

    def _doctype(self, name: str, system: str | None, public: str | None, internal_subset: bool) -> None:
        if name.lower() == "html":
            raise _Stop(self._here("list.html-page", "This is an HTML page, not a harvest list.", _ROOT_REMEDY))
        if internal_subset:
            raise _Stop(
                self._here(
                    "list.dtd",
                    "The list contains a document type definition (`<!DOCTYPE … [ … ]>`), which is never read.",
                    "Take the DOCTYPE out; a harvest list needs none.",
                )
            )

    def _skipped_entity(self, name: str, is_parameter_entity: bool) -> None:
        inside = self._open[-1] if self._open else ""
        here = self._here("list.entity", "", "")
        place = Place(here.line or 1, here.column or 1, here.excerpt)
        self._add(entity_finding(f"&{one_line(name, 40)};", inside, place))

    def _namespace_declaration(self, prefix: str | None, uri: str | None) -> None:
        declaration = (prefix, uri)
        if (prefix or uri) and declaration not in self._declared:
            self._odd(f"{prefix}{uri}")
            self._declared.add(declaration)

    def _start_root(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append(self._root(name))
        self._parser.StartElementHandler = self._start

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if attributes:
            self._check_attributes(name, attributes)
        parent, entry = self._open[-1], self._entry
        if name not in _CHILDREN[parent]:
            name = self._settle(name, parent)
        if entry is None and name:
            self._refuse_stray_text()
            self._entry = Entry(self._parser.CurrentLineNumber, self._parser.CurrentByteIndex, self._files_allowed)
        elif entry is not None and name in entry.lines:
            self._add(self._here("list.doubled", f"`{name}` is there twice in one entry.", "Keep one of the two."))
            name = _SKIPPED
        elif entry is not None and name:
            entry.lines[name] = self._parser.CurrentLineNumber
            self._value_from = len(self._texts)
        if not name and parent:
            self._skipped_from = len(self._texts)
        self._open.append(name)

    def _end(self, name: str) -> None:
        closed = self._open.pop()
        if closed in _LEAVES and self._entry is not None:
            self._end_value(closed, self._entry)
        elif closed == "document":
            self._refuse_stray_text()
            self._finish_entry()
        elif not self._open:
            self._end_root()
        elif closed == _SKIPPED and self._open[-1] != _SKIPPED:
            del self._texts[self._skipped_from :]

    def _end_root(self) -> None:
        self._refuse_stray_text()
        if not self._entries:
            self._add(
                self._here(
                    "list.empty",
                    "The list names no document; a harvest list names one at least.",
                    "Add a `document` element for every document, or ask the administrator to suspend your site.",
                )
            )

    # -- text: all of it is collected, since there is hardly any but the values, and looked at when something ends

    def _end_value(self, name: str, entry: Entry) -> None:
        texts = self._texts
        if len(texts) == self._value_from + 1:
            text = texts.pop()
        else:
            text = "".join(texts[self._value_from :])
            del texts[self._value_from :]
        entry.texts[name] = text[:MAX_TEXT]
        if len(text) > MAX_TEXT:
            message = f"The text of `{name}` is longer than {MAX_TEXT:,} characters."
            self._add(self._here("list.too-long", message, "Look whether its end tag is at the right place."))

    def _refuse_stray_text(self) -> None:
        text = "".join(self._texts).strip(XML_SPACE)
        self._texts.clear()
        if text:
            message = f"The text '{one_line(text, 60)}' stands between the elements."
            self._add(self._here("list.text", message, "Take it out."))

    def _trim_text(self) -> None:
        """Keep no more of a text that is still going on than is needed to judge it."""
        inside = self._open[-1] if self._open else ""
        if inside in _LEAVES:
            self._texts[self._value_from :] = ["".join(self._texts[self._value_from :])[: MAX_TEXT + 1]]
        elif inside == _SKIPPED:
            del self._texts[self._skipped_from :]
        else:
            self._texts[:] = ["".join(self._texts).strip(XML_SPACE)[:MAX_TEXT]]

    # -- which elements there are

    def _root(self, name: str) -> str:
        uri, _, local = name.rpartition(" ")
        self._root_uri = uri
        if local.lower() != "harvestlist":
            raise _Stop(self._wrong_root(uri, local))
        if local != "harvestList":
            message = f"The root element is spelled `{local}`; it must be `harvestList`."
            self._add(self._here("list.root", message, "Upper and lower case matter in XML: write `harvestList`."))
        if uri != LIST_NAMESPACE:
            is_in = f"in the namespace '{one_line(uri, 100)}'" if uri else "in no namespace"
            self._add(
                self._here(
                    "list.namespace",
                    f"The root element is {is_in}; it must be in '{LIST_NAMESPACE}'.",
                    f'Begin the list with <hrv:harvestList xmlns:hrv="{LIST_NAMESPACE}">.',
                )
            )
        return "harvestList"

    def _wrong_root(self, uri: str, local: str) -> Finding:
        what = _OTHER_ROOTS.get(local.lower())
        rule = "list.html-page" if local.lower() == "html" else "list.root"
        shown_name = one_line(local, 60)
        message = f"This is {what}, not a harvest list." if what else "This is not a harvest list."
        return self._here(
            rule, f"{message} Its root element is `{shown_name}`; it should be `harvestList`.", _ROOT_REMEDY
        )

    def _settle(self, name: str, parent: str) -> str:
        """The known name that an unexpected element must mean, or _SKIPPED; reports what is wrong with it."""
        if len(self._open) >= MAX_DEPTH:
            raise _Stop(
                self._here(
                    "list.too-deep",
                    f"Elements are nested more than {MAX_DEPTH} deep here; a harvest list has four levels.",
                    "Look whether end tags are missing.",
                )
            )
        self._odd(name)
        if parent == _SKIPPED:
            return _SKIPPED
        uri, _, local = name.rpartition(" ")
        children = _CHILDREN[parent]
        is_ours = not uri or uri in (LIST_NAMESPACE, self._root_uri)
        meant = _SPELLING.get(local.lower()) if is_ours else None
        if meant not in children:
            self._add(self._unexpected(local, parent, children))
            return _SKIPPED
        if uri and not self._inner_namespace:
            self._inner_namespace = True
            self._add(self._here("list.namespace", *_INNER_NAMESPACE))
        if meant != local:
            message = f"The element `{one_line(local, 60)}` must be spelled `{meant}`."
            self._add(self._here("list.element", message, f"Upper and lower case matter in XML: write `{meant}`."))
        return meant or _SKIPPED

    def _unexpected(self, local: str, parent: str, children: tuple[str, ...]) -> Finding:
        name = one_line(local, 60)
        if not children:
            return self._here(
                "list.element", f"`{parent}` contains an element `{name}`; it may contain text only.", "Take it out."
            )
        near = [] if name in _CHILDREN else difflib.get_close_matches(name, children, 1)
        expected = ", ".join(f"`{child}`" for child in children)
        return self._here(
            "list.element",
            f"The element `{name}` cannot stand in `{parent}`; what belongs there is {expected}.",
            f"If `{near[0]}` is meant, write so."
            if near
            else "Take it out, or put it at its right place; look whether an end tag is missing before it.",
        )

    def _check_attributes(self, name: str, attributes: dict[str, str]) -> None:
        """Attributes of XML itself and of XML Schema instances are harmless, all others are not part of the list."""
        local = one_line(name.rpartition(" ")[2], 60)
        for attribute in attributes:
            if attribute in _HARMLESS:
                continue
            self._odd(attribute)
            message = f"The element `{local}` has an attribute `{one_line(attribute.rpartition(' ')[2], 60)}`."
            self._add(self._here("list.attribute", message, "Take it out: the elements of a list have no attributes."))

    # -- a whole entry

    def _finish_entry(self) -> None:
        entry = self._entry
        assert entry is not None
        self._entries += 1
        if entry.findings or not entry.is_whole:
            self._refuse(entry)
        else:
            try:
                self._ready.append(entry.listed())
            except BadValue:
                self._refuse(entry)
        self._flush_entry()

    def _refuse(self, entry: Entry) -> None:
        excerpt = self._source.entry(entry.offset, self._parser.CurrentByteIndex)
        for finding in chain(entry.structure_findings(excerpt), entry.value_findings()):
            self._add(finding)


_ROOT_REMEDY = (
    "Check the list URL that is registered for your site, and what your server answers at it. A harvest list begins "
    f'with <hrv:harvestList xmlns:hrv="{LIST_NAMESPACE}">.'
)
_INNER_NAMESPACE = (
    "The elements inside `harvestList` are in the list's namespace; they must be in none.",
    f'Write <hrv:harvestList xmlns:hrv="{LIST_NAMESPACE}"> with the prefix on `harvestList` alone, or write '
    '<document xmlns=""> for every entry.',
)
_TOO_LARGE = (
    f"A tag or a comment begins here that is longer than {MAX_PIECE:,} bytes.",
    "Look whether a quotation mark, a `>` or the end of a comment (`-->`) is missing.",
)
