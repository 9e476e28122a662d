"""Cursors: the place after which the next page of a list begins. Programs pass them on as they are. Pure."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from metaharvest.web.api.problems import Problem

_LONGEST = 2000
_LARGEST = 2**53


def cursor_of(*values: str | int | None) -> str:
    """The cursor that holds these values."""
    return urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def values_of(cursor: str, *types: type) -> Sequence[Any]:
    """The values of a cursor, which have these types, or are None. Raises Problem for any other text."""
    try:
        if len(cursor) > _LONGEST:
            raise ValueError
        found = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if not isinstance(found, list) or len(found) != len(types):
            raise ValueError
        for value, wanted in zip(found, types, strict=True):
            is_right = value is None or type(value) is wanted
            if not is_right or (isinstance(value, int) and not 0 <= value <= _LARGEST):
                raise ValueError
    except (ValueError, RecursionError) as error:
        raise Problem(400, "The cursor belongs to another list. Leave it out to begin with the first page.") from error
    return found


def number_of(cursor: str | None) -> int | None:
    """The number in a cursor that holds one number; None without a cursor. Raises Problem."""
    if cursor is None:
        return None
    number: int | None = values_of(cursor, int)[0]
    return number
