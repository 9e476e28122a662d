"""Tables for spreadsheets, as CSV in chunks: log, documents, runs, changes between two runs, problems, decisions.

A table is read in a session of its own, while a caller takes its chunks. A caller that stops early closes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from metaharvest.queries.changes import CHANGE_COLUMNS, Changes, changes
from metaharvest.queries.decisions import DecisionRecord
from metaharvest.queries.documents import DocumentFilter, DocumentRow, document_rows
from metaharvest.queries.log import LogFilter, log_selection
from metaharvest.queries.problems import OpenProblem, ProblemCursor, RuleTotal, documents_of_rule
from metaharvest.queries.runs import run_record, run_summaries
from metaharvest.reports.tables import documents_csv, selected_log_csv, table_csv
from metaharvest.services.harvester import Harvester

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Record = TypeVar("_Record")
_Place = TypeVar("_Place")

_RUN = ("run_id", "harvest_date", "status", "started_at", "ended_at", "took_seconds")
_TOTALS = ("sites", "failed", "listed", "inserted", "updated", "unchanged", "attention", "errors")
_SITE = (
    "site", "site_run_id", "kind", "rehearsal", "status", "failure_reason", "started_at", "ended_at", "took_seconds",
    "listed", "inserted", "updated", "unchanged", "deleted", "filtered", "stale", "duplicate", "deferred",
    "access_error", "invalid", "upload_error", "warnings", "server_seconds", "waiting_seconds", "checking_seconds",
    "storing_seconds",
)  # fmt: skip
_STANDING = (
    "site", "docid", "document_id", "revision", "outcome", "repository_revision", "url", "document_type",
    "failing_since", "nights", "attempts", "next_attempt", "run_id", "harvest_date",
)  # fmt: skip
_FINDING = ("level", "rule", "line", "column", "xpath", "message", "excerpt", "remedy")
LISTED_COLUMNS = (*_STANDING, *_FINDING, "missing_since", "title")
_PROBLEM = ("site", "document_id", "title", "line", "message", "first_seen", "nights", "needs_attention")
CHANGES_COLUMNS = ("site", "site_id", *CHANGE_COLUMNS)
_RUNS_AT_ONCE = 500
_PROBLEMS_AT_ONCE = 10_000


def log_table(harvester: Harvester, wanted: LogFilter) -> Generator[str, None, None]:
    """The rows of the log, a line for each finding. Raises MetaharvestError for unknown names."""
    with harvester.reading() as session:
        selection = log_selection(session, wanted)
        yield from selected_log_csv(session, selection.rows, selection.findings, selection.transfers)


def documents_table(harvester: Harvester, site_run_id: int) -> Generator[str, None, None]:
    """The documents of a site run, as the contacts of the site get them."""
    with harvester.reading() as session:
        yield from documents_csv(session, site_run_id)


def listed_documents_table(harvester: Harvester, wanted: DocumentFilter) -> Generator[str, None, None]:
    """The listed documents of a selection, as `metaharvest documents --csv` writes them.

    Raises MetaharvestError for unknown names.
    """
    with harvester.reading() as session:
        yield from listed_csv(document_rows(session, wanted, harvester.today()))


def listed_csv(rows: Iterable[DocumentRow]) -> Generator[str, None, None]:
    """Listed documents, a line for each finding."""
    lines = (
        [*values_of(row, _STANDING), *values_of(finding, _FINDING), row.missing_since, row.title]
        for row in rows
        for finding in row.findings or [None]
    )
    return table_csv(LISTED_COLUMNS, lines)


def values_of(row: object, names: Sequence[str]) -> list[object]:
    """The values of these names; all None if there is no row."""
    return [None if row is None else getattr(row, name) for name in names]


def names_of(record: type[DataclassInstance]) -> Sequence[str]:
    """The names of the values of a read model."""
    return [each.name for each in fields(record)]


def records_csv(names: Sequence[str], records: Iterable[object]) -> Generator[str, None, None]:
    """The values of these names of each record, a line for each."""
    return table_csv(names, (values_of(each, names) for each in records))


def runs_table(harvester: Harvester) -> Generator[str, None, None]:
    """All runs with their totals, the newest first."""
    runs = _in_pages(
        lambda after: harvester.read(run_summaries, _RUNS_AT_ONCE, after), _RUNS_AT_ONCE, attrgetter("run_id")
    )
    return table_csv((*_RUN, *_TOTALS), ([*values_of(run, _RUN), *values_of(run.totals, _TOTALS)] for run in runs))


def sites_table(harvester: Harvester, run_id: int) -> Generator[str, None, None]:
    """The sites of a run. Raises MetaharvestError if there is no such run."""
    yield from records_csv(_SITE, harvester.read(run_record, run_id).sites)


def changes_table(harvester: Harvester, first: int, second: int) -> Generator[str, None, None]:
    """The documents that changed between two runs. Raises MetaharvestError as `changes` does."""
    yield from changes_csv(harvester.read(changes, first, second))


def changes_csv(found: Changes) -> Generator[str, None, None]:
    """The documents of these changes, each a line."""
    rows = (
        [site.site, site.site_id, *values_of(document, CHANGE_COLUMNS)]
        for site in found.sites
        for document in site.documents
    )
    return table_csv(CHANGES_COLUMNS, rows)


def problems_csv(found: Iterable[RuleTotal]) -> Generator[str, None, None]:
    """Open problems, a line for each rule."""
    return records_csv(names_of(RuleTotal), found)


def rule_table(harvester: Harvester, rule: str, site_id: int | None) -> Generator[str, None, None]:
    """The open problems of a rule, at all sites or at one: a line for each document or list."""

    def page(after: ProblemCursor | None) -> list[OpenProblem]:
        return harvester.read(documents_of_rule, rule, site_id=site_id, limit=_PROBLEMS_AT_ONCE, after=after)

    return records_csv(_PROBLEM, _in_pages(page, _PROBLEMS_AT_ONCE, attrgetter("cursor")))


def _in_pages(
    read: Callable[[_Place | None], Sequence[_Record]], at_once: int, place_of: Callable[[_Record], _Place]
) -> Iterator[_Record]:
    """All records; `read` has a page of at most `at_once` records after a place."""
    page = read(None)
    yield from page
    while len(page) == at_once:
        page = read(place_of(page[-1]))
        yield from page


def decisions_csv(found: Iterable[DecisionRecord]) -> Generator[str, None, None]:
    """The decisions as a table, a line for each; `before` and `after` are JSON objects."""
    names = names_of(DecisionRecord)
    return table_csv(names, ([_cell(value) for value in values_of(each, names)] for each in found))


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
