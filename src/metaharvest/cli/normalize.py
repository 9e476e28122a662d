"""`metaharvest normalize`: tries a site's normalising in advance; needs no settings and no database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.filters import read_record, record_name, require_one_pipe, trial_arguments
from metaharvest.cli.printing import print_json, print_line
from metaharvest.text import clean, counted

if TYPE_CHECKING:
    from metaharvest.rehearsal.filter_trial import NormalizedRecord


@click.group("normalize")
def command() -> None:
    """Try the normalising of a site. No settings and no database are needed.

    \b
    Example: metaharvest normalize test normalize.xml record.xml
    """


@command.command("test")
@trial_arguments
def test(file: Path, records: tuple[str, ...], as_json: bool) -> int:
    """Show each RECORD in its received form, and after the normalising in FILE.

    RECORD is a file with a metadata document, or with records of a source repository, as for `filter test`. `-` is
    standard input.

    \b
    Example: metaharvest normalize test normalize.xml record.xml

    Exit codes: 0 all were tried; 1 one could not be normalised; 2 usage, or FILE cannot be used.
    """
    from metaharvest.rehearsal.filter_trial import try_normalization

    require_one_pipe(records)
    tried = []
    for each in try_normalization(file, map(read_record, records)):
        tried.append(each)
        if not as_json:
            _print(each)
    if as_json:
        print_json({"file": str(file), "records": [_mapping(each) for each in tried]})
    return 0 if all(each.is_deleted or not each.reason for each in tried) else 1


def _mapping(tried: NormalizedRecord) -> dict[str, object]:
    return {
        "file": tried.name,
        "record_identifier": tried.identifier or None,
        "before_text": tried.before or None,
        "after_text": tried.after or None,
        "elements_added": tried.added,
        "reason": tried.reason,
    }


def _print(tried: NormalizedRecord) -> None:
    if tried.reason:
        print_line(f"{record_name(tried)}: {tried.reason}")
        return
    elements = counted(tried.added, "element is", "elements are")
    print_line(f"{record_name(tried)}: {f'{elements} added.' if tried.added else 'nothing is added; the bytes stay.'}")
    click.echo(f"\nBefore:\n{clean(tried.before)}\n")
    if tried.added:
        click.echo(f"After:\n{clean(tried.after)}\n")
