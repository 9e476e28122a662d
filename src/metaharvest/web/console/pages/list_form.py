"""Make a harvest list: a table in the browser, filled from EML files or an old list, checked, and downloaded.

Each button sends the whole table, and the page comes back with the new one: nothing is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from starlette.responses import Response

from metaharvest.errors import ListError, RequestError
from metaharvest.services import list_making
from metaharvest.services.list_making import COLUMNS, CellProblem, Finding, Row
from metaharvest.text import counted, whole_number
from metaharvest.web.console.visit import Visit

MOST_BYTES = list_making.MOST_BYTES + 8 * 1_048_576
"""The files of one upload, and the table beside them."""

_NEW_ROWS = 5
_SHOWN_FINDINGS = 100
_ELEMENT = re.compile(r", as in <\w{1,30}>([^<>]{1,300})</\w{1,30}>")
"""The example of a remedy, which is written for people who write lists by hand."""

_EMPTY = Row("", "", "", "", "")


def show(visit: Visit) -> Response:
    """An empty table, and the forms that fill it."""
    return _page(visit, [])


def change(visit: Visit) -> Response:
    """What the pressed button does: add files, read a list, add or delete rows, check, download."""
    sent, pressed = _rows(visit), visit.form.text("do", "check")
    # The rows of former documents, which the page does not show, are behind the others.
    rows = sorted(sent, key=lambda row: row.is_former)
    with visit.mistakes():
        if pressed == "documents":
            return _with_documents(visit, rows)
        if pressed == "list":
            return _with_list(visit, rows)
        if pressed == "more":
            more = list_making.bounded([*rows, *[_EMPTY] * _NEW_ROWS])
            return _page(visit, more, said=f"{_NEW_ROWS} rows were added at the end.")
        if pressed.startswith("delete "):
            index = whole_number(pressed.removeprefix("delete ")) or 0
            return _page(visit, list_making.without(sent, index), said=f"Row {index} was deleted.")
        if problems := list_making.problems_in(rows):
            return _page(visit, rows, problems=problems)
        if pressed == "download":
            return visit.download(list_making.list_of(rows), "harvest-list.xml", "application/octet-stream")
        return _page(visit, rows, said="All rows are correct. Download the list, and put it on your web server.")
    return _page(visit, rows)


def _with_documents(visit: Visit, rows: Sequence[Row]) -> Response:
    """Raises RequestError."""
    files = [(each.name, each.content) for each in visit.form.files("files")]
    if not files:
        raise RequestError("Choose the EML files first: hold down Ctrl to choose several.")
    made = list_making.with_documents(rows, files, visit.form.text("base"))
    findings = [(each.file, each.finding) for each in made.findings]
    before = {row for row in rows if not row.is_empty}
    added = sum(not row.is_empty and row not in before for row in made.rows)
    said = f"{counted(added, 'row was', 'rows were')} added or changed."
    return _page(visit, made.rows, said=said, findings=findings)


def _with_list(visit: Visit, rows: Sequence[Row]) -> Response:
    """Raises RequestError."""
    files = visit.form.files("list")
    if not files:
        raise RequestError("Choose the file of the old list first.")
    if any(not row.is_empty for row in rows):
        raise RequestError("The table has rows already. Open this page again to begin with an old list.")
    try:
        read = list_making.rows_of_list(files[0].content)
    except ListError as error:
        visit.error = RequestError("The old list has mistakes: it was not read.")
        return _page(visit, rows, findings=[("The old list", each) for each in error.findings])
    return _page(visit, read, said=f"The old list has {counted(sum(not row.is_former for row in read), 'row')}.")


def _rows(visit: Visit) -> list[Row]:
    """The rows of the table that was sent; a column may be missing where a browser did not send it."""
    columns = [[value.strip() for value in visit.form.texts(name)] for name in (*COLUMNS, "memory")]
    most = max(map(len, columns))
    filled = (column + [""] * (most - len(column)) for column in columns)
    return [Row(*values) for values in zip(*filled, strict=True)]


def _page(
    visit: Visit,
    rows: Sequence[Row],
    *,
    said: str = "",
    problems: Iterable[CellProblem] = (),
    findings: Sequence[tuple[str, Finding]] = (),
) -> Response:
    found: dict[tuple[int, str], CellProblem] = {}
    for each in problems:
        found.setdefault((each.row, each.column), replace(each, remedy=_ELEMENT.sub(r", as in \1", each.remedy)))
    return visit.render(
        "list_form.html",
        422 if found or visit.error else 200,
        said=said,
        rows=[row for row in rows if not row.is_former] or [_EMPTY] * _NEW_ROWS,
        former=[row for row in rows if row.is_former],
        problems=found,
        findings=findings[:_SHOWN_FINDINGS],
        more_findings=max(0, len(findings) - _SHOWN_FINDINGS),
        types=list_making.TYPES,
        base=visit.form.text("base"),
    )
