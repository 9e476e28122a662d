"""Which order a schema prescribes for the elements in another one: read from the groups that xmlschema makes of it.

A group is a sequence, a choice or `all`, and has elements and other groups. What repeats has no order, though each time
through may have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def must_precede(model: Any, first: str, later: str) -> bool:
    """Whether by this group of the schema `first` never stands after `later`: not if it repeats, or is no sequence."""
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
    """What the schema says of the order of the elements in a group."""
    kinds = set(_kinds(model))
    if "sequence" in kinds:
        return ", mostly in this order" if "any" in kinds else ", in this order"
    if "any" in kinds:
        return ", in any order"
    return " one of these" if "choice" in kinds else ""


def _kinds(model: Any, repeats: bool = False) -> Iterator[str]:
    """Of the groups in a group that have several elements: `sequence`, `choice`, or `any` for those in any order."""
    repeats = repeats or model.max_occurs != 1
    if len(_names(model)) > 1:
        if model.model == "all" or repeats:
            yield "any"
        elif len(model) > 1:
            yield model.model
    for part in model:
        if hasattr(part, "model"):
            yield from _kinds(part, repeats)
