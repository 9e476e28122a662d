"""The audit as a table, and its values in words."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import fields

from metaharvest.queries.decisions import DecisionRecord
from metaharvest.reports import table_csv
from metaharvest.text import one_line


def decisions_csv(found: Iterable[DecisionRecord]) -> Generator[str, None, None]:
    """The decisions as a table, a line for each; `before` and `after` are JSON objects."""
    names = [each.name for each in fields(DecisionRecord)]
    return table_csv(names, ([_cell(getattr(each, name)) for name in names] for each in found))


def value_in_words(value: object, longest: int = 500) -> str:
    """A value of the audit in one line of at most `longest` characters."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    if isinstance(value, Mapping):
        value = json.dumps(value, ensure_ascii=False)
    return one_line(str(value), longest) if value not in (None, "") else "none"


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
