"""Finds the causes of errors in the tags of a document that is not well-formed, without their consequences.

libxml2 goes on after a missing tag, and reports each later end tag. This module reads the tags a second time, with a
stack. An end tag of an outer element shows which inner elements were never closed. An end tag that closes nothing is
left out. HTML in a text of EML is one finding.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from metaharvest.model.values import frozen
from metaharvest.text import one_line
from metaharvest.validation import html_text
from metaharvest.validation.schemas import eml_names

_MOST_CHARACTERS = 2_000_000
"""A longer document is read up to here."""

_MOST_FAULTS = 100
_MOST_SEARCHES = 500
_MOST_DUE = 20
_MOST_AHEAD = 2_000
"""The most tags that are read in advance."""

_LONG_TEXT = 10_000
_LONGEST_NAMES = 200
_SIMILAR = 0.75

_NAME = r"[^\W\d][\w.\-]*+(?::[^\W\d][\w.\-]*+|(?!))?+"
# bounded: what has no end matches to the end of the text, so that nothing is tried again
_TOKEN = re.compile(
    r"<!--(?:.*?-->|.*)"
    r"|<!\[CDATA\[(?:.*?\]\]>|.*)"
    r"|<\?(?:.*?\?>|.*)"
    r"|<![^>]*+>?+"
    rf"|<(?P<blank>[ \t]++|\\|(?!))?+(?P<slash>/?+)(?P<name>{_NAME})"
    r"(?P<rest>(?:\"[^\"<]*+\"|'[^'<]*+'|[^<>\"']|(?!))*+)(?P<end>>?+)",
    re.DOTALL,
)
_CLOSING = re.compile(rf"[^<]*+</({_NAME})")
_SECTIONS = {
    "<!--": ("A comment", "-->"),
    "<![CDATA[": ("A CDATA section", "]]>"),
    "<?": ("A processing instruction", "?>"),
}
_LEADING_NAME = re.compile(rf"/?{_NAME}")
_PAIR = re.compile(r"([\w:.\-]{1,100})=\"([^\"<]{1,500})\"")


@frozen
class TagFault:
    """A fault in the tags, with the place of its cause, in characters from the beginning.

    Other errors between `start` and `end` follow from it.
    """

    rule: str
    message: str
    remedy: str
    start: int
    end: int


@dataclass(slots=True)
class _Open:
    """A start tag whose end tag has not come yet. `has_parts`: it has elements that belong in no text."""

    name: str
    start: int
    end: int
    has_parts: bool = False


@dataclass(slots=True)
class _Html:
    """HTML in one element: the names of its tags in order, its start and its end."""

    holder: str
    start: int
    end: int
    names: dict[str, None] = field(default_factory=dict)


def tag_faults(text: str) -> list[TagFault]:
    """The faults of the tags, in the order of their places; empty if there is none, or it is unclear."""
    return _Reader(text).faults()


class _Reader:
    def __init__(self, text: str) -> None:
        self._is_whole = len(text) <= _MOST_CHARACTERS
        self._text = text = text[:_MOST_CHARACTERS]
        last = text.rfind("<")
        self._cut = last if last > text.rfind(">") else None
        """The place of a tag that breaks off at the end of the document. Another finding reports it."""
        self._stack: list[_Open] = []
        self._names: Counter[str] = Counter()
        self._faults: list[TagFault] = []
        self._html: dict[int, _Html] = {}
        self._free = 0
        self._is_eml = False
        self._takes_markdown = False
        self._just_closed: tuple[str, int] | None = None
        self._has_root = False
        self._searches = 0

    def faults(self) -> list[TagFault]:
        """Read the tags once. Returns the faults in the order of their places."""
        for token in _TOKEN.finditer(self._text):
            if len(self._faults) > _MOST_FAULTS:
                break
            if token["name"]:
                if token.start() == self._cut:
                    break
                self._tag(token)
                if self._has_root and not self._stack:
                    # Text after the root element is no matter of tags.
                    break
            elif opening := self._never_ends(token):
                what, ending = _SECTIONS[opening]
                line = self._line(token.start())
                message = f"{what}, which begins with {opening} in line {line:,}, is never closed."
                remedy = f"Close it with {ending}; if the file was cut short, upload it again."
                self._fault("xml.unclosed", message, remedy, token.start(), len(self._text))
                break
        else:
            if self._is_whole and self._cut is None:
                self._ended()
        return sorted([*self._faults, *map(self._html_fault, self._html.values())], key=lambda fault: fault.start)

    def _never_ends(self, token: re.Match[str]) -> str:
        """The first characters of a comment, CDATA section or processing instruction without an end; else empty."""
        if not self._is_whole or token.end() < len(self._text):
            return ""
        opening = next((each for each in _SECTIONS if token[0].startswith(each)), "")
        return opening if opening and not token[0].endswith(_SECTIONS[opening][1]) else ""

    def _tag(self, token: re.Match[str]) -> None:
        name, is_end = token["name"], bool(token["slash"]) or token["blank"] == "\\"
        rest = (token["rest"] or "").strip().rstrip("/")
        meant = "" if token["end"] or is_end else self._meant(name, token.end())
        if rest and "=" not in rest and (token["blank"] or not is_end) and not meant and not self._is_tag(token, name):
            self._less_than(token)
            return
        if self._is_eml and not self._free and html_text.is_html(name) and self._add_html(token, name):
            return
        if not token["end"]:
            if not self._is_broken(token, meant or name, is_end):
                return
            name = meant or name
        elif token["blank"]:
            wrong = "\\ in place of /" if token["blank"] == "\\" else "a blank"
            message = f"The tag {one_line(token[0], 100)} has {wrong} after <."
            self._fault("xml.bad-tag", message, f"Write {'</' if is_end else '<'}{name}>.", token.start(), token.end())
        if is_end:
            self._end(name, token)
        elif not (token["rest"] or "").rstrip().endswith("/"):
            self._start(name, token)

    def _less_than(self, token: re.Match[str]) -> None:
        message = f"A < stands where no tag begins: {one_line(token[0], 60)}"
        remedy = "Write &lt; in place of < where it means 'less than'; otherwise correct the tag."
        end = token.start() + len(token["name"])
        self._fault("xml.less-than", f"{message.rstrip('.')}.", remedy, token.start(), end)

    def _start(self, name: str, token: re.Match[str]) -> None:
        if not self._has_root:
            self._has_root = True
            self._is_eml = name.rpartition(":")[2] == "eml"
            self._takes_markdown = "eml-2.2" in token[0]
        if self._stack and name not in html_text.INNER:
            self._stack[-1].has_parts = True
        self._stack.append(_Open(name, token.start(), token.end()))
        self._names[name] += 1
        self._free += name in html_text.FREE
        self._just_closed = None

    def _pop(self) -> _Open:
        opened = self._stack.pop()
        self._names[opened.name] -= 1
        self._free -= opened.name in html_text.FREE
        return opened

    def _end(self, name: str, token: re.Match[str]) -> None:
        if self._stack and self._stack[-1].name == name:
            self._pop()
            self._just_closed = None
        elif self._names[name] and not self._stands_too_early(name, token.end()):
            self._close_others(name, token)
        else:
            self._closes_nothing(name, token)

    def _stands_too_early(self, name: str, end: int) -> bool:
        """True if the tags after this end tag fit better without it, so that it is one too many.

        An example is an element without its start tag inside of another one of the same name. The innermost element may
        end here under a wrong name.
        """
        due = [opened.name for opened in self._stack[: -_MOST_DUE - 1 : -1]]
        if name not in due:
            return False
        following = self._ends_after(end)
        inside = due.index(name) + 1
        without = max(_fitting(following, due), _fitting(following, due[1:]))
        with_it = _fitting(following, due[inside:])
        return without > with_it and without >= inside

    def _ends_after(self, end: int) -> list[str]:
        """The next end tags that close open elements, without the elements that begin after this place."""
        found: list[str] = []
        depth = 0
        for token in islice(_TOKEN.finditer(self._text, end), _MOST_AHEAD):
            if not token["name"] or (token["rest"] or "").rstrip().endswith("/"):
                continue
            if not token["slash"]:
                depth += 1
            elif depth:
                depth -= 1
            else:
                found.append(token["name"])
                if len(found) == _MOST_DUE:
                    break
        return found

    def _close_others(self, name: str, token: re.Match[str]) -> None:
        """An outer element ends here: report the elements within it as never closed."""
        left: list[_Open] = []
        while self._stack[-1].name != name:
            left.append(self._pop())
        self._pop()
        self._just_closed = (left[0].name, len(self._faults)) if len(left) == 1 else None
        outer: _Open | None = None
        for opened in reversed(left[-_MOST_FAULTS:]):
            if outer and outer.name == opened.name and "<" not in self._text[outer.end : opened.start]:
                self._without_slash(opened)
            else:
                self._never_closed(opened, f"</{name}>", token)
            outer = opened

    def _never_closed(self, opened: _Open, found: str, token: re.Match[str]) -> None:
        shown, line = one_line(opened.name, 100), self._line(opened.start)
        where = self._line(token.start())
        at = "in the same line" if where == line else f"in line {where:,}"
        message = f"<{shown}>, opened in line {line:,}, is never closed: {one_line(found, 100)} comes first, {at}."
        remedy = f"Write </{shown}> where this element ends, at the latest before {one_line(found, 100)} {at}."
        if text_end := self._text_end(opened):
            remedy = f"Write </{shown}> after the text of this element, which seems to end in line {text_end:,}."
        self._fault("xml.mismatched-tag", message, remedy, opened.start, token.end())

    def _text_end(self, opened: _Open) -> int | None:
        """The line in which the text of an element ends, if it begins with text and no text element follows."""
        text, _, following = self._text[opened.end : opened.end + _LONG_TEXT].partition("<")
        name = _LEADING_NAME.match(following)
        if not text.strip() or name is None or name[0] in html_text.INLINE:
            return None
        return self._line(opened.end + len(text.rstrip()) - 1)

    def _without_slash(self, opened: _Open) -> None:
        """Report a start tag directly after another one of the same name: an end tag was meant."""
        name = one_line(opened.name, 100)
        self._faults.pop()
        message = f"<{name}> stands where </{name}> seems to be meant: the / is missing."
        self._fault("xml.mismatched-tag", message, f"Write </{name}>.", opened.start, opened.end)

    def _closes_nothing(self, name: str, token: re.Match[str]) -> None:
        shown = one_line(name, 100)
        if self._just_closed is not None and self._just_closed[0] == name:
            # <b><i></b></i>: the tag that was reported as never closed is closed here, too late.
            number, self._just_closed = self._just_closed[1], None
            before = self._faults[number]
            message = f"</{shown}> comes too late: an element ends before the one that it is in."
            remedy = f"Move </{shown}> in front of the end tag before it."
            self._faults[number] = TagFault(before.rule, message, remedy, token.start(), token.end())
            return
        if self._stack and (self._is_misspelt(self._stack[-1].name, name) or self._ends_here(token.end())):
            opened = self._pop()
            right, line = one_line(opened.name, 100), self._line(opened.start)
            message = f"<{right}>, opened in line {line:,}, is closed as </{shown}>: the two names differ."
            remedy = f"{self._right_name(right, shown)} Upper and lower case letters are different."
            self._fault("xml.mismatched-tag", message, remedy, token.start(), token.end())
            return
        message = f"</{shown}> closes nothing: no <{shown}> is open here."
        remedy = f"Write <{shown}> where this element begins, or delete </{shown}>."
        self._fault("xml.mismatched-tag", message, remedy, token.start(), token.end())

    def _is_misspelt(self, opened: str, closed: str) -> bool:
        """True if the two names are meant as the same."""
        if opened.casefold() == closed.casefold() or opened.rpartition(":")[2] == closed.rpartition(":")[2]:
            return True
        if len(opened) + len(closed) > _LONGEST_NAMES or {opened, closed} <= self._known_names:
            return False
        return difflib.SequenceMatcher(None, opened, closed).ratio() >= _SIMILAR

    def _ends_here(self, end: int) -> bool:
        """True if the tags after an end tag of another name fit better if it ends the innermost element."""
        due = [opened.name for opened in self._stack[: -_MOST_DUE - 1 : -1]]
        following = self._ends_after(end)
        return _fitting(following, due[1:]) > _fitting(following, due)

    @property
    def _known_names(self) -> frozenset[str]:
        return eml_names() if self._is_eml else frozenset()

    def _right_name(self, opened: str, closed: str) -> str:
        """The right name where the two tags of an element differ."""
        for right, wrong in ((opened, closed), (closed, opened)):
            if right in self._known_names and wrong not in self._known_names and ":" not in wrong:
                return f"Write <{right}>…</{right}>: EML has no {wrong}."
        return f"Write the same name in both, <{opened}>…</{opened}> or <{closed}>…</{closed}>."

    def _is_tag(self, token: re.Match[str], name: str) -> bool:
        """True for a tag with an attribute without a value, false for a < in a text."""
        return bool(token["end"]) and not token["blank"] and self._closes_later(name, token.end())

    def _closes_later(self, name: str, end: int) -> bool:
        """True if an end tag of this name follows; false after very many searches."""
        self._searches += 1
        return self._searches <= _MOST_SEARCHES and self._text.find(f"</{name}>", end) >= 0

    def _meant(self, name: str, end: int) -> str:
        """The name of a start tag without >, which runs into the text: `para` of `<paraSome text`; empty if none."""
        if closing := _CLOSING.match(self._text, end):
            return closing[1] if name.startswith(closing[1]) else ""
        starts = (name[:length] for length in range(min(len(name), _LONGEST_NAMES), 1, -1))
        known = next((start for start in starts if start in self._known_names), "")
        return known if known and self._closes_later(known, end) else ""

    def _is_broken(self, token: re.Match[str], name: str, is_end: bool) -> bool:
        """Report a tag of this name that another one interrupts; false if it is no tag."""
        shown = one_line(name, 100)
        if self._text[token.end() : token.end() + 1] in ('"', "'"):
            # Such a value continues into the next attribute, as in `"a.1.1 system="`.
            lost = next((each for each in _PAIR.finditer(token[0]) if each[2].endswith("=") and " " in each[2]), None)
            start = token.start()
            message = f"A quotation mark is missing in the tag <{shown}>."
            remedy = 'Write attributes as name="value", with a quotation mark (") on either side of the value.'
            if lost is not None:
                start += lost.start()
                message = f"The value of {lost[1]} has no quotation mark at its end."
                remedy = f'Write {lost[1]}="…", with a quotation mark (") on either side of the value.'
            # From here on the parser takes texts for values, and values for texts.
            self._fault("xml.bad-tag", message, remedy, start, len(self._text))
            return True
        if not is_end and not self._closes_later(name, token.end()):
            self._less_than(token)
            return False
        tag = f"{'</' if is_end else '<'}{shown}"
        self._fault("xml.bad-tag", f"The tag {tag} has no > at its end.", f"Write {tag}>.", token.start(), token.end())
        return True

    def _add_html(self, token: re.Match[str], name: str) -> bool:
        """Take a tag for HTML in the text that it is in; false if it is in no text."""
        holder = next((opened for opened in reversed(self._stack) if opened.name not in html_text.INNER), None)
        if holder is None or (holder.has_parts and holder.name not in html_text.TEXTS):
            return False
        inside = self._html.setdefault(holder.start, _Html(holder.name, token.start(), token.end()))
        inside.end = token.end()
        inside.names[name] = None
        return True

    def _html_fault(self, found: _Html) -> TagFault:
        codes = html_text.codes_in(self._text[found.start : found.end])
        return TagFault(
            html_text.RULE,
            html_text.message(found.holder, found.names, codes),
            html_text.remedy(found.holder, found.names, codes, takes_markdown=self._takes_markdown),
            found.start,
            found.end,
        )

    def _ended(self) -> None:
        """The document has ended: report all open elements as never closed. libxml2 names only the innermost."""
        if not self._stack:
            return
        end = len(self._text)
        names = [one_line(opened.name, 100) for opened in reversed(self._stack)]
        innermost = self._stack[-1]
        line = self._line(innermost.start)
        message = f"The document ends too early: <{names[0]}>, opened in line {line:,}, is never closed."
        tags = "".join(f"</{name}>" for name in names)
        remedy = f"If the file was cut short, upload it again; if only the end tags are missing, add {tags} at the end."
        if len(names) == 1:
            remedy = f"Add {tags} at the end."
        elif len(names) > 6:
            remedy = "The file was cut short: upload it again."
        self._fault("xml.unclosed", message, remedy, end, end)

    def _fault(self, rule: str, message: str, remedy: str, start: int, end: int) -> None:
        self._faults.append(TagFault(rule, message, remedy, start, end))

    def _line(self, place: int) -> int:
        return self._text.count("\n", 0, place) + 1


def _fitting(found: list[str], due: list[str]) -> int:
    """The number of end tags that are the expected ones, from the first on."""
    pairs = enumerate(zip(found, due, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(found), len(due)))


def places_of(text: str, faults: list[TagFault]) -> Iterator[tuple[TagFault, int, int, int]]:
    """Each fault with the line and column of its place, and the line of its `end`; all from 1."""
    for fault in faults:
        before = text.rfind("\n", 0, fault.start)
        line = text.count("\n", 0, fault.start) + 1
        yield fault, line, fault.start - before, line + text.count("\n", fault.start, fault.end)
