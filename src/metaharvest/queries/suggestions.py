"""Suggests documents for a name that is no document id: a part of an id, an OAI identifier, a title."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, false, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from metaharvest.database.models import CatalogueDocument, HarvestDocument
from metaharvest.text import one_line

_Text = InstrumentedAttribute[str] | InstrumentedAttribute[str | None]

_MOST = 5
"""Suggested documents."""

_LEAST_LETTERS = 3
"""A shorter name occurs in nearly every document id."""

_MOST_COMPARED = 2000
"""Ids that are compared letter by letter."""

_MOST_SEARCHED = 50_000
"""Rows of a table that are searched for a part of an id or title: more take too long."""

_NEIGHBOURS = 50

_LEAST_LIKENESS = 0.6


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested document; `title` is empty if it is not known."""

    document_id: str
    title: str


def nearest_documents(session: Session, name: str) -> list[Suggestion]:
    """Up to five documents: with `name` in their id or title, otherwise with similar ids."""
    name = name.strip()[:300]
    if len(name) < _LEAST_LETTERS:
        return []
    others = (each for each in _nearest(session, name) if each.document_id != name)
    return list(islice(others, _MOST))


def did_you_mean(session: Session, name: str) -> str:
    """The same as a sentence, with a blank before it; empty if there is nothing to suggest."""
    found = nearest_documents(session, name)
    names = [one_line(each.document_id) + (f' ("{one_line(each.title, 60)}")' if each.title else "") for each in found]
    return f" Did you mean {' or '.join(filter(None, (', '.join(names[:-1]), names[-1])))}?" if names else ""


def _nearest(session: Session, name: str) -> Iterator[Suggestion]:
    seen = set()
    listed, held = _first(HarvestDocument), _first(CatalogueDocument)
    shortest = [func.length(listed.document_id), listed.document_id]
    of_ledger = select(listed.document_id, func.max(listed.title)).group_by(listed.document_id)
    inside = or_(has_id(listed.document_id, name), has_part(listed.title, name))
    is_meant = or_(has_id(held.document_id, name), has_part(held.title, name))
    kept = select(held.document_id, held.title).where(is_meant).limit(_MOST)
    for document_id, title in session.execute(of_ledger.where(inside).order_by(*shortest).limit(_MOST)):
        seen.add(document_id)
        yield Suggestion(document_id, title or "")
    for document_id, title in session.execute(kept):
        if document_id not in seen:
            seen.add(document_id)
            yield Suggestion(document_id, title)
    if seen:
        return
    # The beginning or the end of a mistyped name is most often right.
    parts = (has_id(listed.document_id, part) for part in (name[:_LEAST_LETTERS], name[-_LEAST_LETTERS:]))
    alike = session.execute(of_ledger.where(or_(*parts)).limit(_MOST_COMPARED))
    some: dict[str, str | None] = {row[0]: row[1] for row in alike}
    some |= dict(_neighbours(session, name))
    likeness = ((_likeness(name, document_id), document_id, title or "") for document_id, title in some.items())
    for _, document_id, title in sorted((each for each in likeness if each[0] >= _LEAST_LIKENESS), reverse=True):
        yield Suggestion(document_id, title)


def _first(table: type[HarvestDocument] | type[CatalogueDocument]) -> Any:
    """The document ids and titles of the first rows of a table, as columns."""
    [key] = table.__table__.primary_key
    return select(table.document_id, table.title).order_by(key).limit(_MOST_SEARCHED).subquery().c


def _neighbours(session: Session, name: str) -> Iterator[tuple[str, str | None]]:
    """The documents of the ledger before and after this name in the order of the ids, which begin like it."""
    if not name.isascii():
        return
    document_id = HarvestDocument.document_id
    query = select(document_id, HarvestDocument.title).limit(_NEIGHBOURS)
    before = query.where(document_id <= name).order_by(document_id.desc())
    after = query.where(document_id >= name).order_by(document_id)
    for some in (before, after):
        yield from ((row[0], row[1]) for row in session.execute(some).all())


def has_id(column: _Text, part: str) -> ColumnElement[bool]:
    """True if an id has this part. Ids are ASCII, and MariaDB compares such a column with nothing else."""
    return has_part(column, part) if part.isascii() else false()


def has_part(column: _Text, part: str) -> ColumnElement[bool]:
    """True if a text has this part, in any case of ASCII letters."""
    return func.lower(column).contains(part.lower(), autoescape=True)


def _likeness(name: str, document_id: str) -> float:
    """From 0 to 1; a docid is compared with its revision, and without."""
    head, _, tail = name.rpartition(".")
    names = [name, head] if head and tail.isdecimal() else [name]
    matcher = SequenceMatcher(b=document_id, autojunk=False)
    found = []
    for each in names:
        matcher.set_seq1(each)
        found.append(matcher.ratio() if matcher.quick_ratio() >= _LEAST_LIKENESS else 0.0)
    return max(found)
