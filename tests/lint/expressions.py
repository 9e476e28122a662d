"""Finds regular expressions that take more than linear time for some text. Pure functions.

An expression is costly if a text can be divided between two unbounded parts in many ways: `.*?x.*?y`, `\\s*(.*?)\\s*<`,
`(a+)+b`. A search is such a part itself: `\\s+x` begins again at each blank.

Each alternative is checked separately, as a row of atoms. A group that is repeated counts as two in a row. Sets of
characters have the 256 characters of Latin-1, and one character for all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice, product
from typing import Any

_BOUNDED = 1_000
"""A part with at most this many repetitions counts as bounded."""

_MOST_ROWS = 500
_OTHER = 256
_ALL = frozenset(range(_OTHER + 1))
_parser: Any = import_module("re._parser")
_WORD, _DIGIT, _SPACE = (
    frozenset(code for code in range(_OTHER) if re.match(pattern, chr(code))) for pattern in (r"\w", r"\d", r"\s")
)
_CATEGORIES = {
    "CATEGORY_DIGIT": _DIGIT,
    "CATEGORY_NOT_DIGIT": _ALL - _DIGIT,
    "CATEGORY_SPACE": _SPACE,
    "CATEGORY_NOT_SPACE": _ALL - _SPACE,
    "CATEGORY_WORD": _WORD | {_OTHER},
    "CATEGORY_NOT_WORD": _ALL - _WORD,
}


_SINGLE = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
"""Elements that take one character."""


@dataclass(frozen=True, slots=True)
class _Atom:
    """One character of `among`, with its repetitions. `keeps`: it gives nothing back (possessive).

    `is_start`, `is_end`: it takes no character, the text begins or ends there.
    """

    among: frozenset[int]
    least: int = 1
    unbounded: bool = False
    keeps: bool = False
    is_start: bool = False
    is_end: bool = False


_START = _Atom(frozenset(), 0, is_start=True)
_END = _Atom(frozenset(), is_end=True)


def why_costly(pattern: str | bytes, flags: int = 0, *, searched: bool, whole: bool = False) -> str:
    """The reason why this expression takes more than linear time, as the end of a sentence; empty if it does not.

    `searched`: it is looked for anywhere in a text, not only at one place. `whole`: it must match to the end.
    """
    tree = _parser.parse(pattern, flags)
    for row in islice(_rows(tree, tree.state.flags), _MOST_ROWS):
        atoms = [*row, _END] if whole else row
        if why := _costly_row(atoms, searched=searched):
            return why
    return ""


def loses_its_place(pattern: str | bytes, flags: int = 0) -> bool:
    """True if a possessive group may take characters although its last round fails: Python before 3.11.5 does so.

    A last alternative that always fails, `(?:...|(?!))*+`, takes such a Python back to the place of the round. See
    https://github.com/python/cpython/issues/106052.
    """
    return any(_may_lose(name, value) for name, value in _elements(_parser.parse(pattern, flags)))


def _may_lose(name: Any, value: Any) -> bool:
    if str(name) != "POSSESSIVE_REPEAT":
        return False
    [(kind, inner), *more] = value[2]
    if str(kind) == "SUBPATTERN" and inner[0] is None:
        [(kind, inner), *more] = inner[3]
    if more:
        return True
    if str(kind) != "BRANCH":
        return str(kind) not in _SINGLE
    last = inner[1][-1]
    ends = len(last) == 1 and (str(last[0][0]) == "FAILURE" or (str(last[0][0]) == "ASSERT_NOT" and not last[0][1][1]))
    return not ends and not all(len(each) == 1 and str(each[0][0]) in _SINGLE for each in inner[1])


def _elements(tree: Any) -> Iterator[tuple[Any, Any]]:
    """All elements of a parsed expression."""
    for name, value in tree:
        yield name, value
        kind = str(name)
        if kind == "BRANCH":
            inner = value[1]
        elif kind in ("SUBPATTERN", "MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT", "ASSERT", "ASSERT_NOT"):
            inner = [value[-1]]
        else:
            inner = [value] if kind == "ATOMIC_GROUP" else []
        for each in inner:
            yield from _elements(each)


def _costly_row(atoms: Sequence[_Atom], *, searched: bool) -> str:
    for at, atom in enumerate(atoms):
        if not atom.unbounded or not _may_fail(atoms[at + 1 :]):
            continue
        if searched and _fits(atoms[:at], atom.among) and not any(each.is_start for each in atoms[:at]):
            return "its search begins again inside of an unbounded part"
        for before in range(at):
            first = atoms[before]
            shared = first.among & atom.among
            between = atoms[before + 1 : at]
            # What stands between must fit into both: otherwise the second part ends where the first may begin again.
            if (
                first.unbounded
                and not first.keeps
                and shared
                and _fits(between, first.among)
                and _fits(between, atom.among)
            ):
                return "two unbounded parts can share the same characters"
    return ""


def _fits(atoms: Sequence[_Atom], among: frozenset[int]) -> bool:
    """True if a text of only these characters may match all of these atoms."""
    return all(atom.least == 0 or atom.among & among for atom in atoms if not atom.is_end)


def _may_fail(rest: Sequence[_Atom]) -> bool:
    return any(atom.is_end or atom.least > 0 for atom in rest)


def _rows(tree: Any, flags: int) -> Iterator[list[_Atom]]:
    """Each path through the alternatives, as a row of atoms."""
    parts = [list(islice(_ways(name, value, flags), _MOST_ROWS)) for name, value in tree]
    for way in islice(product(*parts), _MOST_ROWS):
        yield [atom for atoms in way for atom in atoms]


def _ways(name: Any, value: Any, flags: int) -> Iterator[list[_Atom]]:
    kind = str(name)
    if (among := _among(kind, value, flags)) is not None:
        yield [_Atom(among)]
    elif kind == "SUBPATTERN":
        yield from _rows(value[3], flags | value[1] & ~value[2])
    elif kind == "ATOMIC_GROUP":
        yield from ([replace(atom, keeps=True) for atom in row] for row in _rows(value, flags))
    elif kind == "BRANCH":
        for branch in value[1]:
            yield from _rows(branch, flags)
    elif kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        yield from _repeated(kind, value, flags)
    elif kind == "AT":
        yield _at(str(value), flags)
    elif kind in ("ASSERT", "ASSERT_NOT"):
        yield from _asserted(kind, value, flags)
    elif kind == "GROUPREF":
        yield [_Atom(_ALL, 0)]
    else:
        yield []


def _at(place: str, flags: int) -> list[_Atom]:
    if place in ("AT_END", "AT_END_STRING"):
        return [_END]
    is_start = place == "AT_BEGINNING_STRING" or (place == "AT_BEGINNING" and not flags & re.MULTILINE)
    return [_START] if is_start else []


def _asserted(kind: str, value: Any, flags: int) -> Iterator[list[_Atom]]:
    """What stands before: an expression cannot begin again where that is not so. What follows takes no characters."""
    direction, body = value
    rows = list(islice(_rows(body, flags), _MOST_ROWS)) if direction < 0 else [[]]
    if kind == "ASSERT":
        yield from rows
    else:
        excluded = frozenset[int]().union(*(row[0].among for row in rows if len(row) == 1))
        yield [_Atom(_ALL - excluded)] if excluded else []


def _repeated(kind: str, value: Any, flags: int) -> Iterator[list[_Atom]]:
    least, most, body = value
    keeps, unbounded = kind == "POSSESSIVE_REPEAT", int(most) > _BOUNDED
    for row in _rows(body, flags):
        if len(row) == 1 and not row[0].unbounded:
            yield [replace(row[0], least=least and row[0].least, unbounded=unbounded, keeps=keeps or row[0].keeps)]
            continue
        if least == 0:
            yield []
        again = row if unbounded or int(most) > 1 else []
        yield [replace(atom, keeps=keeps or atom.keeps) for atom in (*row, *again)]


def _among(kind: str, value: Any, flags: int) -> frozenset[int] | None:
    """The characters that one element takes; None if it is no single character."""
    if kind == "LITERAL":
        return _cased({min(value, _OTHER)}, flags)
    if kind == "NOT_LITERAL":
        return _ALL - _cased({value}, flags)
    if kind == "ANY":
        return _ALL if flags & re.DOTALL else _ALL - {ord("\n")}
    if kind != "IN":
        return None
    found: set[int] = set()
    negated = False
    for name, item in value:
        if str(name) == "NEGATE":
            negated = True
        elif str(name) == "LITERAL":
            found.add(min(item, _OTHER))
        elif str(name) == "RANGE":
            found.update(range(min(item[0], _OTHER), min(item[1], _OTHER) + 1))
        elif str(name) == "CATEGORY":
            found |= _CATEGORIES[str(item)]
    cased = _cased(found, flags)
    return _ALL - (cased - {_OTHER}) if negated else cased


def _cased(codes: set[int], flags: int) -> frozenset[int]:
    if not flags & re.IGNORECASE:
        return frozenset(codes)
    both = {ord(each) for code in codes if code < _OTHER for each in (chr(code).lower() + chr(code).upper())}
    return frozenset(codes | {min(code, _OTHER) for code in both})
