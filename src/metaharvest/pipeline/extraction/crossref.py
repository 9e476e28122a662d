"""Crossref: the request for a reference, and the works in its answer.

The API: https://api.crossref.org/swagger-ui/index.html. The address in `mailto` is asked for by
https://www.crossref.org/documentation/retrieve-metadata/rest-api/access-and-authentication/.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from metaharvest.pipeline.cleaning.identifiers import as_doi
from metaharvest.pipeline.extraction.matching import Work

_LONGEST = 500
"""Characters of a reference that are sent."""

_ROWS = 3
"""Works that are asked for: the right one is hardly ever further down."""

_SELECTED = "DOI,title,subtitle,author,editor,published-print,issued,published-online"
"""The parts of a work that are read. The whole work has its own references, too, and may have a megabyte."""


def request_url(base: str, raw: str, mail: str) -> str:
    """The address of the request for a reference. `base` is such as https://api.crossref.org."""
    query = {"query.bibliographic": raw[:_LONGEST], "rows": str(_ROWS), "select": _SELECTED}
    query |= {"mailto": mail} if mail else {}
    return f"{base.rstrip('/')}/works?{urlencode(query)}"


def works_in(answer: str) -> Sequence[Work] | None:
    """The works in an answer; None if it is no answer of Crossref."""
    try:
        items = json.loads(answer)["message"]["items"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return (
        [work for each in items if isinstance(each, dict) and (work := _work(each))]
        if isinstance(items, list)
        else None
    )


def _work(item: Mapping[str, Any]) -> Work | None:
    doi = as_doi(str(item.get("DOI", "")))
    titles = tuple(str(title) for title in _list(item.get("title")))
    if doi is None or not titles:
        return None
    subtitles = _list(item.get("subtitle"))
    titles += tuple(f"{titles[0]}: {each}" for each in subtitles[:1])
    people = [*_list(item.get("author")), *_list(item.get("editor"))]
    names = [str(each.get("family") or each.get("name") or "") for each in people if isinstance(each, dict)]
    return Work(titles, _year(item), tuple(name for name in names if name), doi)


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _year(item: Mapping[str, Any]) -> int | None:
    for name in ("published-print", "issued", "published-online"):
        parts = item.get(name)
        dates = parts.get("date-parts") if isinstance(parts, dict) else None
        if (
            isinstance(dates, list)
            and dates
            and isinstance(dates[0], list)
            and dates[0]
            and isinstance(dates[0][0], int)
        ):
            return int(dates[0][0])
    return None
