"""One `document` element of a harvest list: checks that it is complete, and makes a listed document of it.

parser.py fills it in while it reads; values.py checks each value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from metaharvest.fetch.url import shown
from metaharvest.model import Finding, ListedDocument
from metaharvest.sources.harvest_list.elements import DOCID_PARTS, ENTRY_ELEMENTS
from metaharvest.sources.harvest_list.syntax import list_excerpt
from metaharvest.sources.harvest_list.values import (
    XML_SPACE,
    BadValue,
    check_document_id,
    check_number,
    check_scope,
    check_type,
    check_url,
)
from metaharvest.text import one_line


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
            check_document_id(check_scope(texts["scope"]), check_number("identifier", texts["identifier"])),
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
