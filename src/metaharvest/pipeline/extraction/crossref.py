"""Finds works at Crossref for references without a match in the catalogue. Answers are kept for half a year.

The API: https://api.crossref.org/swagger-ui/index.html. The address in `mailto` is asked for by
https://www.crossref.org/documentation/retrieve-metadata/rest-api/access-and-authentication/.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import LookupAnswer
from metaharvest.database.rows import insert_rows
from metaharvest.database.statements import delete_with, rows_with
from metaharvest.pipeline.cleaning.identifiers import as_doi
from metaharvest.pipeline.extraction.citation import Reference
from metaharvest.pipeline.extraction.matching import Match, Work, by_title
from metaharvest.pipeline.extraction.services import ServiceAway, ServiceClient, ServiceRefused
from metaharvest.pipeline.stage import Context

KEPT = timedelta(days=180)
"""How long an answer is used: new works come to Crossref."""

MOST = 500
"""References of one document that Crossref is asked about."""

_LONGEST = 500
"""Characters of a reference that are sent."""

_ROWS = 3
"""Works that are asked for: the right one is hardly ever further down."""

_SELECTED = "DOI,title,subtitle,author,editor,published-print,issued,published-online"
"""The parts of a work that are read. The whole work has its own references, too, and may have a megabyte."""

_TABLE = Base.metadata.tables[LookupAnswer.__tablename__]
_KEY = _TABLE.c.request_sha256


class Crossref:
    """Crossref for the documents of a batch. `away` is why it was given up, after the first failure."""

    def __init__(self, context: Context, client: ServiceClient) -> None:
        self.away = ""
        self._context = context
        self._client = client
        self._new: dict[str, str] = {}

    def matches(self, references: Sequence[Reference]) -> tuple[list[Match | None], str]:
        """The work of Crossref that each reference names, and why Crossref is away if an answer is missing.

        After a failure, only answers that are kept are used.
        """
        settings = self._context.settings.pipeline
        urls = [_request_url(settings.crossref, each.raw, settings.mail) for each in references[:MOST]]
        keys = [hashlib.sha256(url.encode()).hexdigest() for url in urls]
        kept = self._kept(keys)
        found: list[Match | None] = [None] * len(references)
        away = ""
        for place, (url, key) in enumerate(zip(urls, keys, strict=True)):
            answer = kept.get(key) or self._new.get(key) or self._answer(url, key)
            away = away if answer else self.away
            works = _works_in(answer) if answer else None
            found[place] = by_title(references[place], works or (), "crossref")
        return found, away

    def taken(self) -> Mapping[str, str]:
        """The new answers since the last call, by the digest of the request."""
        new, self._new = self._new, {}
        return new

    def _answer(self, url: str, key: str) -> str | None:
        """The answer of Crossref; None if it gives none that can be used."""
        if self.away:
            return None
        try:
            answer = self._client.get(url)
        except ServiceRefused:
            return None
        except ServiceAway as away:
            self.away = str(away)
            return None
        if _works_in(answer) is None:
            self.away = f"The answer of {self._client.at(url)} is not one of Crossref."
            return None
        self._new[key] = answer
        return answer

    def _kept(self, keys: Sequence[str]) -> Mapping[str, str]:
        query = select(_KEY, _TABLE.c.answer).where(_TABLE.c.answered_at >= self._context.now() - KEPT)
        with self._context.reading() as session:
            return {row[0]: row[1] for row in rows_with(session, query, _KEY, dict.fromkeys(keys))}


def store(session: Session, answers: Mapping[str, str], now: datetime) -> None:
    """Keep answers, in the place of older ones."""
    delete_with(session, _KEY, answers)
    if rows := [{"request_sha256": key, "answer": answer} for key, answer in sorted(answers.items())]:
        insert_rows(session.connection(), _TABLE, rows, {"answered_at": now})


def delete_old(session: Session, now: datetime) -> None:
    """Delete the answers that are no longer used."""
    session.execute(delete(_TABLE).where(_TABLE.c.answered_at < now - KEPT))


# -- requests and answers


def _request_url(base: str, raw: str, mail: str) -> str:
    """The address of the request for a reference. `base` is such as https://api.crossref.org."""
    query = {"query.bibliographic": raw[:_LONGEST], "rows": str(_ROWS), "select": _SELECTED}
    query |= {"mailto": mail} if mail else {}
    return f"{base.rstrip('/')}/works?{urlencode(query)}"


def _works_in(answer: str) -> Sequence[Work] | None:
    """The works in an answer; None if it is no answer of Crossref."""
    try:
        items = json.loads(answer)["message"]["items"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(items, list):
        return None
    return [work for each in items if isinstance(each, dict) and (work := _work(each))]


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
    """The year of the first date that has one, in `{"date-parts": [[2019, 5, 1]]}`."""
    for name in ("published-print", "issued", "published-online"):
        date = item.get(name)
        parts = _list(date.get("date-parts")) if isinstance(date, dict) else ()
        year = next(iter(_list(next(iter(parts), None))), None)
        if isinstance(year, int):
            return year
    return None
