"""The order that a schema prescribes for child elements: read from the groups of xmlschema.

A group is a sequence, a choice or `all`, and has elements and other groups. A repeated group has no order, though each
repetition may have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def must_precede(model: Any, first: str, later: str) -> bool:
    """True if by this group of the schema `first` never follows `later`: false if it repeats, or is no sequence."""
    if model.max_occurs != 1:
        return False
    places = {name: part for part in reversed(model) for name in _names(part)}
    if first not in places or later not in places or first == later:
        return False
    if places[first] is places[later]:
        return must_precede(places[first], first, later)
    parts = list(model)
    return model.model == "sequence" and parts.index(places[first]) < parts.index(places[later])


def _names(part: Any) -> set[str]:
    """The names of the elements that a part of a group has."""
    elements = part.iter_elements() if hasattr(part, "model") else (part,)
    return {str(element.local_name) for element in elements if element.name}


def in_which_order(model: Any) -> str:
    """The schema's sentence about the order of the elements in a group."""
    kinds = set(_kinds(model))
    if "sequence" in kinds:
        return ", mostly in this order" if "any" in kinds else ", in this order"
    if "any" in kinds:
        return ", in any order"
    return " one of these" if "choice" in kinds else ""


def _kinds(model: Any, repeats: bool = False) -> Iterator[str]:
    """The kinds of the groups in a group that have several elements: `sequence`, `choice`, or `any` for any order."""
    repeats = repeats or model.max_occurs != 1
    if len(_names(model)) > 1:
        if model.model == "all" or repeats:
            yield "any"
        elif len(model) > 1:
            yield model.model
    for part in model:
        if hasattr(part, "model"):
            yield from _kinds(part, repeats)
