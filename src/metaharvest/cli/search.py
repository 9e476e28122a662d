"""`metaharvest search`: finds outputs by words, in the index that the pipeline makes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from html import unescape
from typing import Any

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import AS_JSON, Invocation
from metaharvest.cli.printing import print_json, print_line
from metaharvest.queries.json_keys import as_mapping
from metaharvest.text import counted, one_line

_WIDTH = 80
_INDENT = 4
_TAG = re.compile("</?mark>")
_COUNTED = {"site": "Sites", "type": "Types", "year": "Years", "language": "Languages", "licence": "Licences"}
_SHOWN_VALUES = 5
_MOST_CREATORS = 3


@click.command("search", context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.option("--site", metavar="NAME", multiple=True, help="Only outputs of this site. May be repeated.")
@click.option("--year", metavar="YEAR", default="", help="Only outputs of this year, or of years: 2010..2020, 2010..")
@click.option("--type", "kind", metavar="TYPE", multiple=True, help='Only outputs of this type, such as "dataset".')
@click.option(
    "--language", metavar="LANGUAGE", multiple=True, help="Only outputs in this language, such as en or English."
)
@click.option("--licence", metavar="SPDX", multiple=True, help="Only outputs with this licence, such as CC-BY-4.0.")
@click.option("--full-text", is_flag=True, help="Only outputs with a full text.")
@click.option(
    "--sort", type=click.Choice(["relevance", "year"]), default="relevance", show_default=True, help="The order."
)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, metavar="N", help="The first N.")
@click.option("--cursor", metavar="CURSOR", help="The next page: the cursor that the page before ends with.")
@AS_JSON
@click.pass_obj
def command(
    invocation: Invocation,
    words: tuple[str, ...],
    site: tuple[str, ...],
    year: str,
    kind: tuple[str, ...],
    language: tuple[str, ...],
    licence: tuple[str, ...],
    full_text: bool,
    sort: str,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Find outputs by their titles, authors, subjects, abstracts and full texts.

    All words have to be found, unless OR stands between them. NOT leaves outputs out. A field stands before its value:
    title:, author:, subject:, abstract:, fulltext:, site:, type:, language:, licence:, doi:, year:. docs/search.md
    explains it. Put phrases into quotation marks inside of the shell's own.

    \b
    Examples:
      metaharvest search beech phenology
      metaharvest search '"leaf area" author:Rivera NOT oak' --year 2010..2020
      metaharvest search title:soil --type dataset --json
    """
    if "-h" in words:  # As an option, it would be found in `-beech`, too.
        click.echo(click.get_current_context().get_help())
        return
    _refuse_unknown_options(words)
    values = {"site": site, "type": kind, "language": language, "licence": licence}
    values["full_text"] = ("yes",) if full_text else ()
    question = services.search.Question(" ".join(words), values, year, services.search.Sort(sort), limit, cursor)
    answer = services.search.OutputSearch(invocation.harvester).search(question)
    if as_json:
        print_json(as_mapping(answer))
    else:
        _print(answer)
        if answer.advice:
            print_line(answer.advice, err=True)


def _refuse_unknown_options(words: Sequence[str]) -> None:
    """Raises NoSuchOption for a word with two hyphens in front. One hyphen leaves outputs out of the answer."""
    ctx = click.get_current_context()
    if (unknown := next((each.partition("=")[0] for each in words if each.startswith("--")), None)) is not None:
        options = [name for each in ctx.command.params for name in each.opts]
        raise click.NoSuchOption(unknown, possibilities=get_close_matches(unknown, options), ctx=ctx)


def _print(answer: services.search.Answer) -> None:
    click.echo(counted(answer.total, "output"))
    for output in answer.outputs:
        click.echo()
        _print_output(output)
    if answer.outputs:
        click.echo()
        for name, heading in _COUNTED.items():
            if counts := answer.facets[name]:
                shown = [f"{value} {number:,}" for value, number in list(counts.items())[:_SHOWN_VALUES]]
                print_line(f"{heading}: {', '.join(shown)}{', …' if len(counts) > _SHOWN_VALUES else ''}")
    if answer.next_cursor:
        click.echo(f"The next page: the same command with --cursor {answer.next_cursor}")


def _print_output(output: Mapping[str, Any]) -> None:
    """An output on some lines: its title, where it comes from, the words in their places, its id."""
    _print_wrapped(output["title"] or "(no title)", 0)
    creators = output["creators"]
    shown = "; ".join(creators[:_MOST_CREATORS]) + (" et al." if len(creators) > _MOST_CREATORS else "")
    facts = [shown, output["year"], output["type"], output["site"], output["licence"]]
    _print_wrapped(" · ".join(str(each) for each in facts if each), _INDENT)
    for name in ("abstract", "text"):
        if name in output["highlights"]:
            _print_wrapped(unescape(_TAG.sub("", output["highlights"][name])), _INDENT)
    # An id stays on one line: people copy it.
    print_line(output["document_id"], indent=_INDENT)


def _print_wrapped(text: str, indent: int) -> None:
    from rich.console import Console
    from rich.text import Text

    # By the columns that letters take, which are two for an Asian one.
    for line in Text(one_line(text, 2000)).wrap(Console(width=_WIDTH), _WIDTH - indent):
        print_line(line.plain.rstrip(), indent=indent)
