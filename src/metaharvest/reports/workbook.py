"""Writes tables into one workbook (xlsx), a sheet each. No text becomes a formula or a link, however it begins."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from metaharvest.model.values import frozen
from metaharvest.text import clean

_MOST_ROWS = 1_048_575
"""The most rows of a sheet, beside the one with the headings."""

_MOST_CHARACTERS = 32_767
"""The most characters of a cell."""

_WIDEST = 60


@frozen
class Sheet:
    """A table: its name, the names of its columns, and its rows, which are read once."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[object]]


def write_workbook(path: Path, sheets: Iterable[Sheet]) -> Mapping[str, int]:
    """Write the workbook as a whole or not at all; return the number of rows of each sheet.

    Rows that a sheet has no room for are left out. Raises OSError.
    """
    from xlsxwriter import Workbook
    from xlsxwriter.exceptions import FileCreateError

    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        made = Path(folder) / path.name
        # Rows are written as they come: a sheet of a million rows is never in memory.
        options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "tmpdir": folder}
        book = Workbook(str(made), options)
        formats = {
            "heading": book.add_format({"bold": True}),
            "day": book.add_format({"num_format": "yyyy-mm-dd"}),
            "moment": book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        }
        written = {sheet.name: _write(book.add_worksheet(sheet.name), sheet, formats) for sheet in sheets}
        try:
            book.close()
        except FileCreateError as error:
            raise OSError(None, str(error)) from error
        made.replace(path)
    return written


def _write(into: Any, sheet: Sheet, formats: Mapping[str, Any]) -> int:
    into.freeze_panes(1, 1)
    for column, heading in enumerate(sheet.columns):
        into.set_column(column, column, min(max(12, len(heading) + 2), _WIDEST))
        into.write_string(0, column, heading, formats["heading"])
    number = 0
    for number, row in enumerate(sheet.rows, start=1):
        if number > _MOST_ROWS:
            return _MOST_ROWS
        for column, value in enumerate(row):
            _write_cell(into, number, column, value, formats)
    return number


def _write_cell(into: Any, row: int, column: int, value: object, formats: Mapping[str, Any]) -> None:
    if value is None:
        return
    if isinstance(value, bool):
        into.write_boolean(row, column, value)
    elif isinstance(value, int | float):
        into.write_number(row, column, value)
    elif isinstance(value, datetime):
        into.write_datetime(row, column, value.replace(tzinfo=None), formats["moment"])
    elif isinstance(value, date):
        into.write_datetime(row, column, value, formats["day"])
    else:
        text = ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        into.write_string(row, column, clean(text)[:_MOST_CHARACTERS])
