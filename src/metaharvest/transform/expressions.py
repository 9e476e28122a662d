"""Expressions from a person's file, XPath and regular ones: checked when the file is read, applied to a document.

Regular expressions are matched in bounded time: the library `regex` can be given a time limit. Paths are XPath 1.0.
Only the functions of XPath 1.0 itself are known, none of which reads a file or asks a server. libxml2 would report an
unknown function, prefix or variable only when a document leads it there: they are found beforehand.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from math import isinf, isnan
from typing import TYPE_CHECKING, Any, cast

from lxml import etree

from metaharvest.text import one_line

if TYPE_CHECKING:
    import regex


MAX_PATH = 2000
"""Characters of an XPath expression."""

_LITERAL = re.compile(r"\"[^\"]*\"|'[^']*'")
_PREFIXED = re.compile(r"(?<![\w.:-])([^\W\d][\w.-]*):(?=[\w*])")
_FUNCTION = re.compile(r"(?<![\w.:-])((?:[^\W\d][\w.-]*:)?[^\W\d][\w.-]*)\s*\(")
_VARIABLE = re.compile(r"\$\s*([^\W\d][\w.:-]*)")
# bounded: a path of the site's own file
_AXES = re.compile(r"[\w-]+\s*::")

_KNOWN = (
    "last position count id local-name namespace-uri name string concat starts-with contains substring-before "
    "substring-after substring string-length normalize-space translate boolean not true false lang number sum floor "
    "ceiling round node text comment processing-instruction and or div mod"
)
"""The functions of XPath 1.0, and other names that may precede a parenthesis."""

_string_of = etree.XPath("string()", smart_strings=False)

Namespaces = tuple[tuple[str, str], ...]
"""Prefixes, each with its namespace."""


class BadPath(Exception):
    """This is no usable XPath; the message has the reason."""


class NotEvaluated(Exception):
    """libxml2 could not evaluate an XPath on this document, such as one with too many nodes."""


def require_path(path: str, namespaces: Mapping[str, str]) -> None:
    """Raises BadPath if this is no XPath 1.0, or uses an unknown function, prefix or variable."""
    if len(path) > MAX_PATH:
        raise BadPath(f"it has more than {MAX_PATH:,} characters")
    try:
        compiled = _compiled(path, tuple(namespaces.items()))
    except (etree.XPathError, ValueError) as error:
        raise BadPath(one_line(str(error)).rstrip(".")) from None
    bare = _AXES.sub("", _LITERAL.sub("''", path))
    for variable in _VARIABLE.findall(bare):
        raise BadPath(f"there is no variable ${variable}")
    for function in _FUNCTION.findall(bare):
        if function not in _KNOWN.split():
            raise BadPath(f"there is no function {function}() in XPath 1.0")
    for prefix in _PREFIXED.findall(bare):
        if prefix not in namespaces and prefix != "xml":
            raise BadPath(f"the prefix {prefix} is not declared in selectionNamespaces")
    try:
        compiled(etree.Element("x"))
    except etree.XPathError as error:
        raise BadPath(one_line(str(error)).rstrip(".")) from None


_MAY_BE_ROOT = re.compile(r"/\s*(?:[)|\]]|$)|\.|parent|ancestor|self")
"""Paths that may find the root of the document; most cannot, and are not evaluated again for it."""


def evaluated(path: str, namespaces: Namespaces, root: etree._Element) -> Any:
    """The result of the path: a list of nodes, a number, a text, or true or false. Raises NotEvaluated.

    The root of the document, as `/` finds it, is given as its root element: they have the same text (XPath 1.0, 5.1).
    """
    tree = root.getroottree()
    try:
        found = _compiled(path, namespaces)(tree)
        if found == [] and _MAY_BE_ROOT.search(path) and _compiled(f"boolean({path})", namespaces)(tree):
            return [root]  # lxml leaves it out of the result
        return found
    except etree.XPathError as error:
        raise NotEvaluated(one_line(str(error)).rstrip(".")) from None


def is_true(result: Any) -> bool:
    """The result of XPath's boolean(): a number that is none is false."""
    return bool(result) and not (isinstance(result, float) and isnan(result))


def text_of(result: Any) -> str:
    """The text of a node, with all its descendants, or of a value, without white space at both ends.

    The text of a value is the result of XPath's string(); the text of a namespace node is its URI.
    """
    if isinstance(result, bool):
        return "true" if result else "false"
    if isinstance(result, float):
        return _number(result)
    if isinstance(result, tuple):
        return str(result[1] or "").strip()
    if not isinstance(result, etree._Element):
        return str(result).strip()
    return (cast(str, _string_of(result)) if len(result) else result.text or "").strip()


def _number(value: float) -> str:
    """A number as XPath 1.0 (section 4.2) writes it: never with an exponent."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if value.is_integer() else f"{Decimal(repr(value)):f}"


@lru_cache(500)
def _compiled(path: str, namespaces: Namespaces) -> etree.XPath:
    return etree.XPath(path, namespaces=dict(namespaces), regexp=False, smart_strings=True)


MAX_PATTERN = 2000
"""Characters of a regular expression."""

SECONDS = 2.0
"""The processor time that all regular expressions of a file may take for one document."""


class BadPattern(Exception):
    """This is no regular expression; the message has the reason."""


class TransformTooCostly(Exception):
    """The work on this document took too long, or was too much."""


class TimeLeft:
    """The time that is left for the regular expressions on one document."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._end = time.process_time() + seconds

    def left(self) -> float:
        """Seconds of processor time. Raises TransformTooCostly if there are none."""
        left = self._end - time.process_time()
        if left <= 0:
            raise TransformTooCostly
        return left


def require_pattern(pattern: str) -> None:
    """Raises BadPattern if this cannot be used as a regular expression."""
    import regex

    if len(pattern) > MAX_PATTERN:
        raise BadPattern(f"it has more than {MAX_PATTERN:,} characters")
    try:
        _compiled_pattern(pattern, False)
    except regex.error as error:
        raise BadPattern(one_line(str(error))) from None
    except (RecursionError, OverflowError, MemoryError, ValueError):
        raise BadPattern("it is nested too deeply, or repeats too much") from None


def matches(pattern: str, ignores_case: bool, text: str, time_left: TimeLeft) -> bool:
    """True if the pattern is found anywhere in the text. Raises TransformTooCostly."""
    try:
        return _compiled_pattern(pattern, ignores_case).search(text, timeout=time_left.left()) is not None
    except (TimeoutError, MemoryError):  # the library also gives up if it would need too much memory
        raise TransformTooCostly from None


@lru_cache(500)
def _compiled_pattern(pattern: str, ignores_case: bool) -> regex.Pattern[str]:
    import regex

    return regex.compile(pattern, regex.IGNORECASE if ignores_case else 0)
