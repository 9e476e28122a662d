"""One `document` element of a harvest list: whether it has what an entry needs, and the listed document it stands for.

It is filled in by list_parser.py; what the single values must look like is said by list_values.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from metaharvest.model import Finding, ListedDocument
from metaharvest.sources.harvest_list.syntax import shown
from metaharvest.sources.harvest_list.values import (
    XML_SPACE,
    BadValue,
    check_document_id,
    check_number,
    check_scope,
    check_type,
    check_url,
    without_password,
)
from metaharvest.text import one_line

PARTS = ("scope", "identifier", "revision")
"""The parts of a docid, in their order."""

ORDER = ("docid", *PARTS, "documentType", "documentURL")
"""The elements of an entry in the order of their start tags."""


@dataclass(slots=True)
class Entry:
    """What stood in an entry so far, by element, in its order: the lines of the start tags, and the texts as written.

    `line` and `offset` (in bytes) are where the entry begins; `findings` what was found in it while it was read.
    `files_allowed`: its documentURL may be a file: URL.
    """

    line: int
    offset: int
    files_allowed: bool = False
    lines: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def docid(self) -> str:
        """The entry's docid as far as it is known, as it is written; `?` for a part that is not there."""
        parts = [self.texts.get(name, "").strip(XML_SPACE) for name in PARTS]
        while parts and not parts[-1]:
            parts.pop()
        return one_line(".".join(part or "?" for part in parts), 200)

    @property
    def is_whole(self) -> bool:
        """Whether all elements are there, in their order."""
        return tuple(self.lines) == ORDER

    def listed(self) -> ListedDocument:
        """A whole entry as a listed document. Raises BadValue for the first value that cannot be used."""
        texts = self.texts
        return ListedDocument(
            check_document_id(check_scope(texts["scope"]), check_number("identifier", texts["identifier"])),
            check_number("revision", texts["revision"]),
            check_type(texts["documentType"]),
            check_url(texts["documentURL"], self.files_allowed),
            self.line,
        )

    def structure_findings(self, excerpt: str) -> Iterator[Finding]:
        """What is missing, and whether the rest is in the wrong order; `excerpt` shows the entry."""
        missing = [name for name in ORDER if name not in self.lines]
        if "docid" in missing:
            missing = [name for name in missing if name not in PARTS]
        for name in missing:
            remedy = f"Write <{name}>…</{name}> in every `{'docid' if name in PARTS else 'document'}`."
            yield Finding("list.missing", f"The entry has no `{name}`.", remedy, line=self.line, excerpt=excerpt)
        if list(self.lines) != [name for name in ORDER if name in self.lines]:
            yield Finding(
                "list.order",
                "The elements of this entry are in the wrong order.",
                "Write `docid` (with `scope`, `identifier`, `revision`), then `documentType`, then `documentURL`.",
                line=self.line,
                excerpt=excerpt,
            )

    def value_findings(self) -> Iterator[Finding]:
        """Every value that is there and cannot be used."""
        yield from self._value_finding("scope", check_scope)
        yield from self._value_finding("identifier", lambda text: check_number("identifier", text))
        yield from self._value_finding("revision", lambda text: check_number("revision", text))
        yield from self._value_finding("documentType", check_type)
        yield from self._value_finding("documentURL", lambda text: check_url(text, self.files_allowed))
        yield from self._document_id_finding()

    def _value_finding(self, name: str, check: Callable[[str], object]) -> Iterator[Finding]:
        if name not in self.texts:
            return
        try:
            check(self.texts[name])
        except BadValue as bad:
            yield self._bad(name, bad)

    def _document_id_finding(self) -> Iterator[Finding]:
        try:
            scope = check_scope(self.texts.get("scope", ""))
            identifier = check_number("identifier", self.texts.get("identifier", ""))
        except BadValue:
            return
        try:
            check_document_id(scope, identifier)
        except BadValue as bad:
            yield self._bad("scope", bad)

    def _bad(self, name: str, bad: BadValue) -> Finding:
        value = self.texts[name].strip(XML_SPACE)
        if "@" in value:
            value = without_password(value)
        excerpt = shown(f"<{name}>{value}</{name}>")
        return Finding(bad.rule, bad.message, bad.remedy, line=self.lines[name], excerpt=excerpt)
