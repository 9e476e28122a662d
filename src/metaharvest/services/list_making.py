"""Makes a harvest list in a form: rows from files and an old list, edited by the person. Nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence

from metaharvest.errors import PublishingError, RequestError
from metaharvest.model import Finding
from metaharvest.model.actions import todo
from metaharvest.publishing import rows as made
from metaharvest.publishing.rows import COLUMNS, CellProblem, MadeRows, Row
from metaharvest.services import trials
from metaharvest.validation.schemas import VERSIONS

__all__ = ["COLUMNS", "CellProblem", "Finding", "Row", "problems_in"]

MOST_ROWS = 500
MOST_FORMER = 1000
MOST_FILES = 500
MOST_BYTES = 20_971_520
MOST_FILE_BYTES = 10_485_760
"""The most rows that a browser shows well, and former documents beside them; the most files of one upload, bytes of all
of them, and bytes of each."""

_LONGEST_VALUE = 4_000

TYPES = tuple(reversed(VERSIONS))


def rows_of_list(content: bytes) -> tuple[Row, ...]:
    """The rows of an old list. Raises ListError with all its mistakes, RequestError for a large one."""
    if len(content) > MOST_FILE_BYTES:
        raise RequestError(f"The list is larger than 10 MiB. Make it with {todo('lists.build')}.")
    with trials.place():
        return bounded(made.rows_of_list(content))


def with_documents(rows: Sequence[Row], files: Sequence[tuple[str, bytes]], base_url: str) -> MadeRows:
    """The rows with these documents, each a name and its bytes; `base_url` is their folder on the web.

    Raises RequestError if they are too many or too large, or if the address cannot be used.
    """
    base = base_url.strip()
    if not base or base.lower().startswith("file:"):
        raise RequestError.about(
            "base", "Where is the folder of these documents on the web? Give its https:// address."
        )
    if len(files) > MOST_FILES:
        raise RequestError(f"These are {len(files):,} files. Send {MOST_FILES} at a time.")
    if large := next((name for name, content in files if len(content) > MOST_FILE_BYTES), None):
        raise RequestError(f"{made.file_name(large)} is larger than 10 MiB. Add its row by hand.")
    if sum(len(content) for _, content in files) > MOST_BYTES:
        raise RequestError("The files are larger than 20 MiB together. Send fewer at a time.")
    with trials.place():
        try:
            new = made.with_documents(bounded(rows), files, base)
        except PublishingError as error:
            raise RequestError.about("base", str(error)) from error
    bounded(new.rows)
    return new


def without(rows: Sequence[Row], number: int) -> tuple[Row, ...]:
    """The rows without this one, counted from 1; the list remembers its document. Raises RequestError."""
    if not 1 <= number <= len(rows):
        raise RequestError("There is no such row.")
    return made.without(bounded(rows), number - 1)


def problems_in(rows: Sequence[Row]) -> list[CellProblem]:
    """All mistakes in the rows, by row and column. Raises RequestError if they are too many."""
    return made.problems_in(bounded(rows))


def list_of(rows: Sequence[Row]) -> bytes:
    """The canonical list of these rows. Raises RequestError if there are mistakes in them, or they are too many."""
    problems = problems_in(rows)
    if problems:
        first = problems[0]
        raise RequestError(f"Row {first.row}: {first.message} {first.remedy}")
    return made.list_of(rows)


def bounded(rows: Sequence[Row]) -> tuple[Row, ...]:
    """These rows. Raises RequestError if they are too many, or a value is too long."""
    former = sum(row.is_former for row in rows)
    if former > MOST_FORMER:
        raise RequestError(
            f"{former:,} documents have left the list, and this page remembers {MOST_FORMER:,}. {todo('lists.build')} "
            "makes such lists."
        )
    if len(rows) - former > MOST_ROWS:
        raise RequestError(
            f"The table would have {len(rows) - former:,} rows, and {MOST_ROWS} fit on this page. "
            f"{todo('lists.build')} makes longer lists."
        )
    for number, row in enumerate(rows, start=1):
        if any(len(getattr(row, column)) > _LONGEST_VALUE for column in (*COLUMNS, "memory")):
            raise RequestError(f"Row {number} has a value of more than {_LONGEST_VALUE:,} characters.")
    return tuple(rows)
