"""`metaharvest oai friends`: finds other source repositories, from the friends of one or from a list of base URLs."""

from __future__ import annotations

from pathlib import Path

import click

from metaharvest.cli.invocation import NETWORKS, Invocation, usage_errors
from metaharvest.cli.oai_asking import AS_JSON, PREFIX, repository_at
from metaharvest.cli.printing import print_json, print_line
from metaharvest.cli.tables import print_table
from metaharvest.model import Network
from metaharvest.text import one_line, shown_url


@click.command("friends")
@click.argument("source", metavar="URL|FILE")
@click.option("--add", is_flag=True, help="Register the new ones, switched off.")
@click.option("--contact", metavar="EMAILS", help="With --add: who gets the reports.")
@PREFIX
@NETWORKS
@AS_JSON
@click.pass_obj
def friends(
    invocation: Invocation,
    source: str,
    add: bool,
    contact: str | None,
    prefix: str,
    networks: tuple[Network, ...],
    as_json: bool,
) -> int:
    """Find other source repositories: the friends of the one at URL, or the base URLs in FILE, one a line or as XML.

    \b
    Example: metaharvest oai friends https://repository.example.org/oai
             metaharvest oai friends repositories.txt --add --contact steward@example.org
    """
    if add and not contact:
        raise click.UsageError("With --add, give --contact: the email addresses of the people who get the reports.")
    from metaharvest.services.source_repositories import register_repositories

    urls = _base_urls(invocation, source, networks)
    sites = register_repositories(invocation.harvester, urls, contact or "", prefix) if add else {}
    if as_json:
        print_json([{"base_url": shown_url(url), "site": sites.get(url)} for url in urls])
        return 0
    if not urls:
        print_line("No other repositories are named there.")
        return 0
    headings = ["base URL", "registered as"] if add else ["base URL"]
    print_table(headings, [(shown_url(url), sites.get(url, "is registered already"))[: len(headings)] for url in urls])
    if sites:
        print_line("They are switched off: `metaharvest oai validate URL` looks at one, `sites enable` switches it on.")
    return 0


def _base_urls(invocation: Invocation, source: str, networks: tuple[Network, ...]) -> tuple[str, ...]:
    from metaharvest.services.source_repositories import base_urls_in_file, usable

    path = Path(source)
    if "://" in source:
        with usage_errors():
            named = usable(repository_at(invocation, source, networks).friends())
    elif not path.is_file():
        raise click.UsageError(f"'{one_line(source)}' is no URL, and there is no such file.")
    else:
        named = usable(base_urls_in_file(path))
    for sentence in named.left_out:
        print_line(sentence, err=True)
    return named.base_urls
