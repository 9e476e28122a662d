"""The output of commands: JSON, names and values, tables, a page in the browser; safe for the terminal."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import click

from metaharvest.cli.invocation import AS_JSON, OutputForm
from metaharvest.text import clean, one_line

_MOST_CHARACTERS = 2000
"""The most characters of one cell, or one line."""

_SPOOLED_AT_ONCE = 1_000_000


def print_json(value: object) -> None:
    """Print one JSON document on stdout."""
    click.echo(json_text(value))


def print_json_rows(rows: Iterable[object]) -> None:
    """Print the list of these rows as one JSON document, in bounded memory: all of it, or nothing if one fails."""
    import tempfile

    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as spool:
        number = 0
        for number, row in enumerate(rows, start=1):
            spool.write("[\n" if number == 1 else ",\n")
            spool.write("  " + json_text(row).replace("\n", "\n  "))
        spool.write("\n]" if number else "[]")
        spool.seek(0)
        while part := spool.read(_SPOOLED_AT_ONCE):
            click.echo(part, nl=False)
    click.echo()


def print_csv(chunks: Generator[str, None, None]) -> None:
    """Print a table on stdout, in UTF-8; the generator is closed, also after a failure."""
    with closing(chunks):
        for chunk in chunks:
            click.echo(chunk.encode("utf-8", "replace"), nl=False)


def print_for_program(form: OutputForm, found: object, table: Callable[[], Generator[str, None, None]]) -> bool:
    """Print the result of a command as JSON, or its `table`; false, without output, if the form is text for people."""
    if form is OutputForm.CSV:
        print_csv(table())
    elif form is OutputForm.JSON and isinstance(found, Iterator):
        print_json_rows(found)
    elif form is OutputForm.JSON:
        print_json(found)
    return form is not OutputForm.TEXT


def json_text(value: object) -> str:
    """`value` as JSON, dates and times as in ISO 8601.

    In ASCII if stdout does not have every character; characters that control a terminal are escaped.
    """
    from metaharvest.queries.json_keys import as_json

    encoding = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    text = json.dumps(value, ensure_ascii=encoding != "utf-8", indent=2, default=as_json)
    return text if clean(text) == text else "".join(map(_escaped, text))


def print_fields(fields: Mapping[str, object]) -> None:
    """Print names and values, one a line, on stdout."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        click.echo(f"{name:<{width}}  {cell_text(value)}".rstrip())


def print_line(text: str, *, err: bool = False, indent: int = 0) -> None:
    """Print `text` on one line of stdout or stderr, cleaned; `indent`: the blanks before it."""
    click.echo(" " * indent + one_line(text, _MOST_CHARACTERS), err=err)


def stamp(moment: datetime | None) -> str:
    """A timestamp in tables, in UTC: `2026-11-20 03:00`."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def took(seconds: float | None) -> str:
    """A number of seconds in words; empty if it is unknown."""
    from metaharvest.reports.phrasing import duration

    return "" if seconds is None else duration(seconds)


def cell_text(value: object) -> str:
    """A value in a cell of a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return stamp(value)
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return "" if value is None else one_line(text, _MOST_CHARACTERS)


def _escaped(character: str) -> str:
    return character if clean(character) == character else json.dumps(character)[1:-1]


def new_page(name: str) -> Path:
    """A new, empty file for a page; it stays, as the program cannot know when the browser has read it."""
    import tempfile

    descriptor, file = tempfile.mkstemp(prefix=f"metaharvest-{name}-", suffix=".html")
    os.close(descriptor)
    return Path(file)


def opened(file: Path) -> str:
    """Open the page, and return a sentence about it; if there is no browser, the sentence names the file."""
    import webbrowser

    done = webbrowser.open(file.resolve().as_uri())
    said = "The page is open in your browser" if done else "No browser could be opened; the page is here"
    return f"{said}: {file.resolve()}"


_GAP = 2
_LEAST_TEXT = 24
_MEASURED = 200
"""The first rows of a long table, which decide how wide its columns are."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)  # not @frozen: --help imports no model
class Column:
    """A column of a table. Of too many columns, those with the highest `rank` are left out first.

    Sentences `wrap` at their blanks; everything else stays on one line.
    """

    heading: str
    rank: int = 0
    wrap: bool = False


@dataclass(frozen=True, slots=True)
class Fitted:
    """The columns that fit, by their places in the table, with their widths; and the columns left out."""

    shown: tuple[int, ...]
    widths: tuple[int, ...]
    left_out: tuple[int, ...] = ()


def wide_option(command: _Command) -> _Command:
    """Add --wide to a command that prints tables."""
    text = "All columns, however wide the terminal is."
    return click.option("--wide", is_flag=True, expose_value=False, callback=_keep, help=text)(command)


def layout_options(command: _Command) -> _Command:
    """Add --wide and --columns to a command that prints one table."""
    text = "Only these columns, by their headings."
    return wide_option(click.option("--columns", metavar="A,B", expose_value=False, callback=_keep, help=text)(command))


def table_options(command: _Command) -> _Command:
    """Add --wide, --columns and --json to a command that prints one table."""
    return layout_options(AS_JSON(command))


def rows_of(found: Iterable[Any], keys: str, **words: Callable[[Any], object]) -> list[list[object]]:
    """The rows of a table: values by name, as `picked` has them, and some of them in other `words`."""
    from metaharvest.model.mappings import picked

    named = ((each, picked(each, keys)) for each in found)
    return [[words[key](each) if key in words else value for key, value in row.items()] for each, row in named]


def print_records(
    as_json: bool, found: object, headings: Sequence[str | Column], rows: Sequence[Sequence[object]], none: str
) -> None:
    """Print what was found as JSON, or as a table with these rows; `none` if there is no row."""
    if as_json:
        print_json(found)
    elif rows:
        print_table(headings, rows)
    else:
        print_line(none)


def print_table(headings: Sequence[str | Column], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, without control characters of a terminal. A heading without a Column ranks by its place.

    Raises UsageError for a column that the table does not have.
    """
    columns = [each if isinstance(each, Column) else Column(each, rank) for rank, each in enumerate(headings)]
    cells = [[cell_text(value) for value in row] for row in rows]
    chosen = _chosen(columns)
    if os.environ.get("FORCE_COLOR") or (sys.stdout is not None and sys.stdout.isatty()):
        _print_on_terminal(columns, cells, chosen)
    else:
        _print_into_pipe(columns, cells, chosen)


def _print_into_pipe(columns: Sequence[Column], cells: Sequence[Sequence[str]], chosen: Sequence[int]) -> None:
    """As on a terminal that is wide enough. A table of rich takes 0.4 s for the thousand sites of a run."""
    from rich.cells import set_cell_size

    fitted = fit(columns, cells, None, chosen)
    places = [*zip(fitted.shown, fitted.widths, strict=True)]
    table = ([column.heading for column in columns], *cells)
    lines = ((" " * _GAP).join(set_cell_size(row[place], width) for place, width in places) for row in table)
    # In one piece: otherwise each line would wake the reader of the pipe.
    click.echo("\n".join(lines))


def _print_on_terminal(columns: Sequence[Column], cells: Sequence[Sequence[str]], chosen: Sequence[int]) -> None:
    from rich.console import Console
    from rich.table import Column as RichColumn
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    fitted = fit(columns, cells, None if chosen or _kept("wide") else console.width, chosen)
    console.width = max(console.width, sum(fitted.widths) + _GAP * len(fitted.widths))
    table = Table(
        *(
            RichColumn(columns[place].heading, width=width, no_wrap=not columns[place].wrap, overflow="fold")
            for place, width in zip(fitted.shown, fitted.widths, strict=True)
        ),
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for row in cells:
        table.add_row(*(Text(row[place]) for place in fitted.shown))
    console.print(table)
    _print_left_out(columns, fitted)


def _print_left_out(columns: Sequence[Column], fitted: Fitted) -> None:
    if fitted.left_out:
        names = ", ".join(columns[place].heading for place in fitted.left_out if columns[place].heading)
        print_line(f"No room for: {names}. {_how_to_see_all()}")


def fit(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int | None, chosen: Sequence[int] = ()
) -> Fitted:
    """The columns that fit into `room` characters; all of them if it is None. The first is always shown."""
    from rich.cells import cell_len

    shown = list(chosen) or list(range(len(columns)))
    whole = [
        max([cell_len(column.heading), *(cell_len(row[place]) for row in cells)])
        for place, column in enumerate(columns)
    ]
    if room is None:
        return Fitted(tuple(shown), tuple(whole[place] for place in shown))
    least = [
        min(width, max(_LEAST_TEXT, cell_len(column.heading))) if column.wrap else width
        for column, width in zip(columns, whole, strict=True)
    ]
    left_out = list[int]()
    while len(shown) > 1 and _total(least, shown) > room:
        last = max(shown[1:], key=lambda place: (columns[place].rank, place))
        shown.remove(last)
        left_out.append(last)
    widths = [least[place] for place in shown]
    for number, place in enumerate(shown):
        more = min(whole[place] - least[place], room - sum(widths) - _GAP * (len(widths) - 1))
        widths[number] += max(more, 0)
    return Fitted(tuple(shown), tuple(widths), tuple(sorted(left_out)))


def print_lines(columns: Sequence[Column], rows: Iterator[Sequence[str]], none: str) -> None:
    """Print a long table without headings, a line for each row as it comes; `none` if there is no row.

    The columns are as wide as the first rows need. A terminal shows the beginning of sentences, others all of them.
    """
    from rich.console import Console

    console, first = Console(), list(islice(rows, _MEASURED))
    if not first:
        click.echo(none)
        return
    unnamed = [replace(column, heading="") for column in columns]
    fitted = fit(unnamed, first, console.width if console.is_terminal else None)
    for row in chain(first, rows):
        cells = [
            _beginning(row[place], width) if console.is_terminal and columns[place].wrap else f"{row[place]:<{width}}"
            for place, width in zip(fitted.shown, fitted.widths, strict=True)
        ]
        click.echo((" " * _GAP).join(cells).rstrip())
    _print_left_out(columns, fitted)


def _beginning(text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[place] for place in shown) + _GAP * (len(shown) - 1)


def _chosen(columns: Sequence[Column]) -> list[int]:
    """The places of the requested columns, in the order of the request. Raises UsageError."""
    places = {_plain(column.heading): place for place, column in enumerate(columns)}
    names = [name.strip() for name in (_kept("columns") or "").split(",") if name.strip()]
    unknown = [name for name in names if _plain(name) not in places]
    if unknown:
        known = ", ".join(column.heading for column in columns if column.heading)
        raise click.UsageError(f"There is no column '{one_line(unknown[0], 60)}'. The columns are: {known}.")
    return [places[_plain(name)] for name in names]


def _plain(heading: str) -> str:
    """A heading in the form that people may type: `last harvest`, `Last-Harvest`, `last_harvest`; without `(UTC)`."""
    return " ".join(heading.casefold().replace("(utc)", " ").replace("_", " ").replace("-", " ").split())


def _how_to_see_all() -> str:
    context = click.get_current_context(silent=True)
    names = {option.name for option in context.command.params} if context else set()
    if "columns" in names:
        return "--wide shows all columns, --columns A,B these."
    return "--wide shows all columns." if "wide" in names else "A pipe shows all columns: | less -S"


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep the value of an option of the layout. A command in a group has the options of the group, too."""
    if value:
        context.meta[_key(parameter.name)] = value


def _kept(name: str) -> Any:
    context = click.get_current_context(silent=True)
    return context.meta.get(_key(name)) if context else None


def _key(name: str | None) -> str:
    return f"{__name__}.{name}"
