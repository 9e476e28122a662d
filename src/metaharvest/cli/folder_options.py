"""The options that say which files of a folder are documents: `list build` and `check` have the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import options_as

if TYPE_CHECKING:
    from metaharvest.publishing.contents import FolderOptions


def _options(
    patterns: tuple[str, ...], excluded: tuple[str, ...], names: str | None, scope: str | None, revisions: str | None
) -> FolderOptions:
    from metaharvest.publishing.contents import FolderOptions, Revisions
    from metaharvest.publishing.folder import PATTERNS, Selection
    from metaharvest.publishing.naming import NamePattern

    if scope and not names:
        raise click.UsageError("--scope goes with --from-names: otherwise the packageIds have the scopes.")
    return FolderOptions(
        Selection(patterns or PATTERNS, excluded),
        NamePattern(names, scope or "") if names else None,
        Revisions(revisions) if revisions else None,
    )


folder_options = options_as(
    "options",
    _options,
    click.option(
        "--pattern",
        "patterns",
        metavar="GLOB",
        multiple=True,
        help="Names of the files that are documents. May be repeated. [default: *.xml and *.eml]",
    ),
    click.option(
        "--exclude", "excluded", metavar="GLOB", multiple=True, help="Files and folders to leave out. May be repeated."
    ),
    click.option(
        "--from-names",
        "names",
        metavar="PATTERN",
        help='Take the docids from the names of the files, as in "{scope}.{identifier}.{revision}.xml", and not from '
        "the packageIds. {revision} may be missing; * stands for anything.",
    ),
    click.option("--scope", help="With --from-names: the scope of all documents, where the names have none."),
    click.option(
        "--revisions",
        type=click.Choice(["newest", "all"]),
        help="Which to list of several revisions of a document, each in a file of its own. "
        "[default: the newest, and complain]",
    ),
)
"""Adds the options to a command, which gets them as one value: `options`, FolderOptions."""
