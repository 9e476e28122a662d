"""Filters: they take or leave out documents of a site, by the nodes that an XPath finds and by their text.

A document that the filters match is taken. `match` is about the filters and about the nodes of each of them: `any`, one
is enough; `all`, none may be missing. A filter with a regular expression matches by the texts of the nodes, and does
not match without a node; a filter without one matches if there is a node. `invert` reverses a filter.
"""

from __future__ import annotations

import re
from pathlib import Path

from lxml import etree

from metaharvest.model import Finding, Level
from metaharvest.model.values import frozen
from metaharvest.text import counted, one_line
from metaharvest.transform.expressions import Namespaces, TimeLeft, evaluated, is_true, matches, text_of
from metaharvest.transform.files import RuleFile, line_of

_SHOWN = 80
_LOOKED_AT = 10_000
"""The characters of a text that are read to show a part of it: it may have megabytes."""

_SPACE = re.compile(r" {2,}|[^\S ]")


@frozen
class Filter:
    """One filter; `number` counts from 1, `line` is its place in the file."""

    number: int
    line: int | None
    xpath: str
    regexp: str | None
    ignore_case: bool
    invert: bool

    @property
    def name(self) -> str:
        """Its name for people: `Filter 2 (line 5)`."""
        return f"Filter {self.number}" + (f" (line {self.line})" if self.line else "")


@frozen
class Tried:
    """The result of a filter for a document: True if it matches, and the reason."""

    filter: Filter
    is_match: bool
    reason: str


@frozen
class Decision:
    """True if a document is taken, and the results of the filters that were evaluated: the last one decided."""

    is_taken: bool
    tried: tuple[Tried, ...]

    @property
    def reason(self) -> str:
        """In words: the result of the filter that decided, and that the others agree if all of them were needed."""
        last, number = self.tried[-1], len(self.tried)
        said = f"{last.filter.name}, {last.reason}."
        if number == 1 or any(each.is_match is not self.is_taken for each in self.tried):
            return said
        return f"{'Each' if self.is_taken else 'None'} of {number} filters matches. {said}"


@frozen
class Filters:
    """The filters of one file."""

    file: str
    needs_all: bool
    namespaces: Namespaces
    filters: tuple[Filter, ...]

    def decision(self, root: etree._Element, time_left: TimeLeft) -> Decision:
        """The decision about the document of this root element. Raises TransformTooCostly and NotEvaluated."""
        tried: list[Tried] = []
        for each in self.filters:
            found, reason = self._finds(each, root, time_left)
            if each.invert:
                found, reason = not found, f"{reason}, and the filter is inverted"
            tried.append(Tried(each, found, reason))
            if tried[-1].is_match is not self.needs_all:
                break
        return Decision(tried[-1].is_match, tuple(tried))

    def _finds(self, each: Filter, root: etree._Element, time_left: TimeLeft) -> tuple[bool, str]:
        path, result = one_line(each.xpath, _SHOWN), evaluated(each.xpath, self.namespaces, root)
        if not isinstance(result, list):
            if each.regexp is None:
                shown = f"'{one_line(result, _SHOWN)}'" if isinstance(result, str) else text_of(result)
                return is_true(result), f"{path} is {shown}"
            result = [result]
        if not result:
            return False, f"{path} finds nothing"
        if each.regexp is None:
            return True, f"{path} finds {counted(len(result), 'node')}"
        return self._match(each, each.regexp, result, time_left)

    def _match(self, each: Filter, regexp: str, nodes: list[object], time_left: TimeLeft) -> tuple[bool, str]:
        """True if one of the nodes matches, or each of them if all are needed; with the text that decided."""
        path, shown = one_line(each.xpath, _SHOWN), _as_matched(regexp)
        for node in nodes:
            text = text_of(node)
            is_match = matches(regexp, each.ignore_case, text, time_left)
            if is_match is not self.needs_all or len(nodes) == 1:
                among = f"of {len(nodes):,} nodes, " if len(nodes) > 1 else ""
                verb = "matches" if is_match else "does not match"
                return is_match, f"{path}: {among}'{_as_matched(text)}' {verb} {shown}"
        return self.needs_all, f"{path}: {'each' if self.needs_all else 'none'} of {len(nodes):,} nodes matches {shown}"


def _as_matched(text: str) -> str:
    """A text on one line, with white space that is no single blank written as in a regular expression."""
    rest = "…" if len(text) > _LOOKED_AT else ""
    return one_line(_SPACE.sub(_written, text[:_LOOKED_AT]) + rest, _SHOWN)


def _written(space: re.Match[str]) -> str:
    blanks = len(space[0])
    return f" {{{blanks}}}" if blanks > 1 else space[0].encode("unicode_escape").decode("ascii")


def left_out(filters: Filters, decision: Decision) -> Finding:
    """The finding about a document that was left out."""
    remedy = f"No action is needed; {filters.file} says which documents are taken."
    return Finding("filter.left-out", decision.reason, remedy, Level.WARNING)


def read_filters(path: Path) -> Filters:
    """The filters of this file. Raises TransformError with a finding for each mistake in it."""
    file = RuleFile(path, "filters")
    file.attributes(file.root, "match")
    file.only(file.root, "selectionNamespaces", "filter")
    match = file.one_of(file.root, "match", ("any", "all"))
    filters: list[Filter] = []
    for number, element in enumerate(file.elements(file.root, "filter"), start=1):
        file.attributes(element, "xpath", "regexp", "ignoreCase", "invert")
        file.only(element)
        ignore_case, invert = (file.truth(element, name) for name in ("ignoreCase", "invert"))
        xpath, regexp = file.path(element), file.pattern(element)
        filters.append(Filter(number, line_of(element), xpath, regexp, ignore_case, invert))
    if not filters:
        file.wrong(file.root, "there is no filter in it", "Add a filter, or take the file from the site.")
    file.require_right()
    return Filters(file.name, match == "all", file.frozen_namespaces(), tuple(filters))
