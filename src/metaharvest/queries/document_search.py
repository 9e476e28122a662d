"""Finds documents by the names that people know: docid, document id, OAI identifier, title, URL, file name.

Exact names, and rules, are found in an index. For titles, URLs and outcomes, the ledger is read from its beginning, for
a short time: the page says how far it has come, and the next page goes on there. For a name that is no document id,
documents are suggested: a part of an id, or of a title, may be meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from difflib import SequenceMatcher
from itertools import islice
from time import monotonic
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, false, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from metaharvest.database.batches import batches
from metaharvest.database.models import CatalogueDocument, HarvestDocument, SiteProblem
from metaharvest.database.statements import rows_with
from metaharvest.model.values import frozen
from metaharvest.queries.documents import (
    GOOD,
    LEDGER_ROWS,
    MOST_COUNTED,
    DocumentFilter,
    DocumentRow,
    Key,
    LastOutcome,
    LedgerRow,
    RowCount,
    as_of,
    conditions_of,
    count_rows,
    document_row,
    in_order,
    is_open_problem,
    last_outcomes,
    searched_sites,
)
from metaharvest.queries.records import columns, docid, is_after, parts_of_docid
from metaharvest.queries.sites import last_names
from metaharvest.text import one_line

LEAST_LETTERS = 3
"""A shorter part occurs in nearly every title and document id."""

_ledger, _held = HarvestDocument, CatalogueDocument
_PROBLEM = aliased(SiteProblem)
_OF_DOCUMENT = and_(_ledger.site_schedule_id == _PROBLEM.site_schedule_id, _ledger.document_id == _PROBLEM.document_id)
_AT_ONCE = 20_000
"""Rows that are read between two looks at the clock."""
_SECONDS = 0.06
_LONGEST = 300

_Text = InstrumentedAttribute[str] | InstrumentedAttribute[str | None]

_MOST = 5
"""Suggested documents."""

_MOST_COMPARED = 2000
"""Ids that are compared letter by letter."""

_MOST_SEARCHED = 50_000
"""Rows of a table that are searched for a part of an id or title: more take too long."""

_NEIGHBOURS = 50

_LEAST_LIKENESS = 0.6


@frozen
class SearchPage:
    """The documents that were found, exact names first. `next`: the search goes on after this row; None: it is done.

    `share` is the part of the ledger that was searched up to here, from 0 to 1. `count`: the documents on all pages.
    """

    documents: tuple[DocumentRow, ...]
    next: int | None
    share: float
    count: RowCount


def search_documents(
    session: Session,
    words: str,
    wanted: DocumentFilter,
    today: date,
    *,
    record_ids: Collection[str] = (),
    limit: int = 50,
    after: int = 0,
) -> SearchPage:
    """The documents that `words` name or describe, or all; the next page begins `after` the `next` of this one.

    `record_ids`: the document ids that records with the OAI identifier `words` have. Raises MetaharvestError for an
    unknown site.
    """
    words = words.strip()[:_LONGEST]
    today, site_ids = as_of(session, today), searched_sites(session, wanted)
    conditions = [*conditions_of(wanted, today)]
    if wanted.rule is not None:
        conditions.append(exists().where(*is_open_problem(wanted.rule, _PROBLEM), _OF_DOCUMENT))
    if site_ids is not None:
        conditions.append(_ledger.site_schedule_id.in_(site_ids))
    exact = _exact(session, words, record_ids, conditions) if words else []
    unlisted = _only_held(session, words, exact) if site_ids is None and wanted == DocumentFilter() else []
    if 0 < len(words) < LEAST_LETTERS:
        count = RowCount(len(exact) + len(unlisted))
        return SearchPage((*_documents(session, exact, today), *unlisted), None, 1.0, count)
    part = or_(
        has_id(_ledger.document_id, words), has_part(_ledger.title, words), has_part(_ledger.document_url, words)
    )
    whole = site_ids is not None
    seconds = None if whole else _SECONDS
    known = {row.harvest_document_id for row in exact}
    others = [*conditions, part, _ledger.harvest_document_id.not_in(known)]
    found, following, share = _search(session, others, limit, after, seconds)
    rows = sorted(found, key=in_order)
    count = RowCount(len(rows), following is None)
    if after or len(rows) == limit:
        count = _count(session, others, seconds)
    count = RowCount(max(count.number, len(rows)) + len(exact) + len(unlisted), count.is_all)
    if after:
        return SearchPage(tuple(_documents(session, rows, today)), following, share, count)
    return SearchPage((*_documents(session, [*exact, *rows], today), *unlisted), following, share, count)


@frozen
class RuleCursor:
    """The place of a document in the list of a rule: the next page begins after it."""

    site_id: int
    document_id: str


def documents_with_rule(
    session: Session,
    wanted: DocumentFilter,
    today: date,
    *,
    limit: int = 50,
    after: RuleCursor | None = None,
) -> tuple[list[DocumentRow], RuleCursor | None]:
    """The documents with open problems of the wanted rule, by site; the next page begins `after` the cursor.

    The documents of a site on one page are in their order. Each has only the findings of the rule. Raises
    MetaharvestError for an unknown site.
    """
    today, site_ids = as_of(session, today), searched_sites(session, wanted)
    problem = SiteProblem
    place = (problem.site_schedule_id, problem.document_id)
    conditions = is_open_problem(wanted.rule)
    if site_ids is not None:
        conditions.append(problem.site_schedule_id.in_(site_ids))
    if after is not None:
        conditions.append(is_after((problem.site_schedule_id, after.site_id), (problem.document_id, after.document_id)))
    names = session.execute(select(*place).where(*conditions).distinct().order_by(*place).limit(limit + 1)).all()
    rows: list[LedgerRow] = []
    for site_id in dict.fromkeys(name[0] for name in names[:limit]):
        own = [name[1] for name in names[:limit] if name[0] == site_id]
        its = (_ledger.site_schedule_id == site_id, _ledger.document_id.in_(own), *conditions_of(wanted, today))
        rows += sorted(session.execute(LEDGER_ROWS.where(*its)).all(), key=in_order)
    found = []
    for each in _documents(session, rows, today, is_about_rule=True):
        own_findings = tuple(finding for finding in each.findings if finding.rule == wanted.rule)
        if own_findings or not each.findings:
            found.append(replace(each, findings=own_findings))
    last = names[limit - 1] if len(names) > limit else None
    following = RuleCursor(last[0], last[1] or "") if last else None
    return found, following


def count_with_rule(session: Session, wanted: DocumentFilter, today: date) -> RowCount:
    """The number of documents that `documents_with_rule` has on all pages, each with all of its revisions."""
    site_ids = searched_sites(session, wanted)
    conditions = is_open_problem(wanted.rule, _PROBLEM)
    if site_ids is not None:
        conditions.append(_PROBLEM.site_schedule_id.in_(site_ids))
    query = select(_PROBLEM.site_schedule_id, _PROBLEM.document_id).join(_ledger, _OF_DOCUMENT).distinct()
    return count_rows(session, query.where(*conditions, *conditions_of(wanted, as_of(session, today))))


def _search(
    session: Session, conditions: Sequence[ColumnElement[bool]], limit: int, after: int, seconds: float | None
) -> tuple[list[LedgerRow], int | None, float]:
    """The rows after this one, up to `limit`; the row after which to go on; the share of the ledger up to there.

    Without `seconds`, all rows are searched in one statement: an index has the few that the conditions name.
    """
    query = LEDGER_ROWS.where(*conditions).order_by(_ledger.harvest_document_id)
    highest = session.scalar(select(func.max(_ledger.harvest_document_id))) or 0
    ends = monotonic() + (seconds or 0)
    found: list[LedgerRow] = []
    begin = after
    while begin < highest:
        end = highest if seconds is None else min(begin + _AT_ONCE, highest)
        within = (_ledger.harvest_document_id > begin, _ledger.harvest_document_id <= end)
        found += session.execute(query.where(*within).limit(limit + 1 - len(found))).all()
        if len(found) > limit:
            last = int(found[limit - 1].harvest_document_id)
            return found[:limit], last, last / highest
        begin = end
        if begin < highest and monotonic() >= ends:
            return found, begin, begin / highest
    return found, None, 1.0


def _count(session: Session, conditions: Sequence[ColumnElement[bool]], seconds: float | None) -> RowCount:
    """The number of rows of the ledger under these conditions, as far as half of the time allows; see `_search`."""
    if seconds is None:
        return count_rows(session, select(_ledger.harvest_document_id).where(*conditions))
    query = select(func.count()).select_from(_ledger).where(*conditions)
    highest = session.scalar(select(func.max(_ledger.harvest_document_id))) or 0
    ends = monotonic() + seconds / 2
    begin = number = 0
    while begin < highest and number <= MOST_COUNTED and monotonic() < ends:
        within = (_ledger.harvest_document_id > begin, _ledger.harvest_document_id <= begin + _AT_ONCE)
        number += session.scalar(query.where(*within)) or 0
        begin += _AT_ONCE
    return RowCount(min(number, MOST_COUNTED), begin >= highest and number <= MOST_COUNTED)


def _exact(
    session: Session, words: str, record_ids: Collection[str], conditions: Sequence[ColumnElement[bool]]
) -> list[LedgerRow]:
    """The rows whose document id, docid or OAI identifier this is."""
    revisions: dict[str, int | None] = dict.fromkeys([words, *record_ids])
    if words.isascii():
        of_item = select(_held.document_id).where(_held.item_identifier == words).limit(_LONGEST)
        revisions |= dict.fromkeys(session.scalars(of_item))
    if parts := parts_of_docid(words):
        revisions.setdefault(*parts)
    query = LEDGER_ROWS.where(*conditions).order_by(_ledger.document_id)
    found = rows_with(session, query, _ledger.document_id, [each for each in revisions if each.isascii()])
    # Compared here too: MariaDB ignores spaces at the end.
    named = [row for row in found if row.document_id in revisions]
    return [row for row in named if revisions[row.document_id] in (None, row.revision)]


def _only_held(session: Session, words: str, listed: Iterable[LedgerRow]) -> list[DocumentRow]:
    """Documents of this name in the embedded target that no site lists."""
    if not words.isascii():
        return []
    names = {words, *([parts[0]] if (parts := parts_of_docid(words)) else [])} - {row.document_id for row in listed}
    held = columns(_held, "document_id revision title deleted")
    rows = session.execute(select(*held).where(_held.document_id.in_(names))).all()
    return [
        DocumentRow(
            document_id=row.document_id,
            docid=docid(row.document_id, row.revision),
            revision=row.revision,
            title=row.title or None,
            outcome="deleted" if row.deleted else None,
            repository_revision=None if row.deleted else row.revision,
        )
        for row in rows
        if row.document_id in names
    ]


def _documents(
    session: Session, rows: Sequence[LedgerRow], today: date, *, is_about_rule: bool = False
) -> Iterator[DocumentRow]:
    """The documents of these rows; a document that went in has its warnings only if the search is for a rule."""
    names = last_names(session) if rows else {}
    last: dict[Key, LastOutcome] = {}
    for some in batches([row.document_id for row in rows if row.outcome not in GOOD or is_about_rule]):
        last |= last_outcomes(session, some)
    for row in rows:
        yield document_row(row, names, today, last)


# -- suggestions


@frozen
class Suggestion:
    """A suggested document; `title` is empty if it is not known."""

    document_id: str
    title: str


def nearest_documents(session: Session, name: str) -> list[Suggestion]:
    """Up to five documents: with `name` in their id or title, otherwise with similar ids."""
    name = name.strip()[:300]
    if len(name) < LEAST_LETTERS:
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
    parts = (has_id(listed.document_id, part) for part in (name[:LEAST_LETTERS], name[-LEAST_LETTERS:]))
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
