"""`metaharvest filter` and `normalize`: try the files of a site in advance; need no settings and no database."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from metaharvest.cli.invocation import AS_JSON, Invocation, file_errors
from metaharvest.cli.printing import print_json, print_line
from metaharvest.model.mappings import picked
from metaharvest.text import clean, counted

if TYPE_CHECKING:
    from metaharvest.rehearsal.filter_trial import TriedRecord


_Command = TypeVar("_Command", bound=Callable[..., Any])

_MOST_BYTES = 1_073_741_824
_PIPE = "-"
_STATES = {True: ("TAKEN", "green"), False: ("LEFT OUT", "yellow"), None: ("UNDECIDED", "red")}
_DELETED = "DELETED", "cyan"


def _trial_arguments(command: _Command) -> _Command:
    file = click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
    path = click.Path(dir_okay=False, exists=True, allow_dash=True)
    records = click.argument("records", metavar="RECORD...", nargs=-1, required=True, type=path)
    return file(records(AS_JSON(command)))


@click.group("filter")
def filter_command() -> None:
    """Try the filters of a site. No settings and no database are needed.

    \b
    Example: metaharvest filter test filters.xml record.xml
    """


@filter_command.command("test")
@_trial_arguments
def filter_test(_invocation: Invocation, file: Path, records: tuple[str, ...], as_json: bool) -> int:
    """Show for each RECORD if the filters in FILE accept it, which filter decided, and why.

    RECORD is a file with a metadata document, or with records of a source repository: of these, the filters see the
    metadata, as in a harvest, and nothing of deleted ones. `-` is standard input.

    \b
    Example: metaharvest filter test filters.xml record.xml

    Exit codes: 0 all are taken; 1 one is left out, or it could not be decided; 2 usage, or FILE cannot be used.
    """
    from metaharvest.rehearsal.filter_trial import try_filters

    shown = _shown(file, try_filters(file, _documents(records)), as_json, _print_filtered, _filter_mapping)
    return 0 if all(each.is_taken or each.is_deleted for each in shown) else 1


def _documents(records: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """The documents with their names. Raises UsageError if standard input is named twice."""
    if records.count(_PIPE) > 1:
        raise click.UsageError("Standard input can be read once: name `-` once.")
    return map(_read_record, records)


def _shown(
    file: Path,
    tried: Iterable[TriedRecord],
    as_json: bool,
    print_record: Callable[[TriedRecord], None],
    mapping: Callable[[TriedRecord], dict[str, object]],
) -> list[TriedRecord]:
    """The tried records: each printed as soon as it was tried, or all as one JSON document."""
    shown = []
    for each in tried:
        shown.append(each)
        if not as_json:
            print_record(each)
    if as_json:
        print_json({"file": str(file), "records": list(map(mapping, shown))})
    return shown


def _read_record(record: str) -> tuple[str, bytes]:
    from metaharvest.config.files import read_file
    from metaharvest.rehearsal.input.arguments import NO_PIPE

    if record != _PIPE:
        with file_errors(path := Path(record)):
            return record, read_file(path, _MOST_BYTES)
    pipe: BinaryIO | None = getattr(sys.stdin, "buffer", None)
    if pipe is None or pipe.isatty():
        raise click.UsageError(NO_PIPE)
    return record, pipe.read()


def _filter_mapping(tried: TriedRecord) -> dict[str, object]:
    keys = "file=name record_identifier=identifier matches=is_taken filter reason"
    return picked(tried, keys) | {"record_identifier": tried.identifier or None}


def _print_filtered(tried: TriedRecord) -> None:
    state, colour = _DELETED if tried.is_deleted else _STATES[tried.is_taken]
    click.echo(f"{click.style(f'{state:<9}', fg=colour)}  ", nl=False)
    print_line(f"{_record_name(tried)}: {tried.reason}")


def _record_name(tried: TriedRecord) -> str:
    """The file of a record, and its identifier if it has one."""
    from metaharvest.rehearsal.input.arguments import STANDARD_INPUT

    name = STANDARD_INPUT if tried.name == _PIPE else tried.name
    return f"{name}, {tried.identifier}" if tried.identifier else name


# -- normalize


@click.group("normalize")
def normalize_command() -> None:
    """Try the normalising of a site. No settings and no database are needed.

    \b
    Example: metaharvest normalize test normalize.xml record.xml
    """


@normalize_command.command("test")
@_trial_arguments
def normalize_test(_invocation: Invocation, file: Path, records: tuple[str, ...], as_json: bool) -> int:
    """Show each RECORD in its received form, and after the normalising in FILE.

    RECORD is a file with a metadata document, or with records of a source repository, as for `filter test`. `-` is
    standard input.

    \b
    Example: metaharvest normalize test normalize.xml record.xml

    Exit codes: 0 all were tried; 1 one could not be normalised; 2 usage, or FILE cannot be used.
    """
    from metaharvest.rehearsal.filter_trial import try_normalization

    tried = try_normalization(file, _documents(records))
    shown = _shown(file, tried, as_json, _print_normalized, _normalized_mapping)
    return 0 if all(each.is_deleted or not each.reason for each in shown) else 1


def _normalized_mapping(tried: TriedRecord) -> dict[str, object]:
    keys = "file=name record_identifier=identifier before_text=before after_text=after"
    texts = {key: value or None for key, value in picked(tried, keys).items()}
    return {**texts, "elements_added": tried.added, "reason": tried.reason}


def _print_normalized(tried: TriedRecord) -> None:
    if tried.reason:
        print_line(f"{_record_name(tried)}: {tried.reason}")
        return
    elements = counted(tried.added, "element is", "elements are")
    print_line(f"{_record_name(tried)}: {f'{elements} added.' if tried.added else 'nothing is added; the bytes stay.'}")
    click.echo(f"\nBefore:\n{clean(tried.before)}\n")
    if tried.added:
        click.echo(f"After:\n{clean(tried.after)}\n")
