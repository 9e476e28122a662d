"""`metaharvest oai friends`: finds other source repositories, from the friends of one or from a list of base URLs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import NETWORKS, Invocation
from metaharvest.cli.oai_asking import AS_JSON, PREFIX, Question, options_of
from metaharvest.cli.printing import print_json, print_line
from metaharvest.cli.tables import print_table
from metaharvest.text import one_line, shown_url

if TYPE_CHECKING:
    from metaharvest.model import Network, Site

_MOST_BYTES = 67_108_864


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
    urls = _base_urls(invocation, source, networks)
    sites = _registered(invocation, urls, contact or "", prefix) if add else {}
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


def _base_urls(invocation: Invocation, source: str, networks: tuple[Network, ...]) -> list[str]:
    from metaharvest.config.files import open_file
    from metaharvest.sites.rows import no_base_url
    from metaharvest.sources.oai_pmh.friends import base_urls_in, is_url
    from metaharvest.sources.oai_pmh.inspection import inspect

    path = Path(source)
    if "://" in source:
        named = Question(invocation, source, networks, options_of()).ask(inspect).identity.friends
    elif not path.is_file():
        raise click.UsageError(f"'{one_line(source)}' is no URL, and there is no such file.")
    else:
        with open_file(path) as file:
            named = tuple(base_urls_in(file.read(_MOST_BYTES)))
    found = []
    for url in dict.fromkeys(named):
        if why := no_base_url(url) if is_url(url) else "it is no web address":
            print_line(f"'{one_line(shown_url(url), 200)}' is left out: {why}.", err=True)
        else:
            found.append(url)
    return found


def _registered(invocation: Invocation, urls: Sequence[str], contact: str, prefix: str) -> dict[str, str]:
    """Register the URLs that are not registered yet. Returns their names by URL. Raises ScheduleError."""
    from metaharvest.fetch.url import repository_key
    from metaharvest.model import OaiOptions, SiteOptions
    from metaharvest.sites.options import options_text
    from metaharvest.sites.origin_names import origin_for, origins
    from metaharvest.sites.registry import add_sites, new_site, read_sites

    harvester = invocation.harvester
    found: dict[str, str] = {}
    added: list[Site] = []
    with harvester.writing() as session:
        sites = list(read_sites(session))
        known, names = {repository_key(site.list_url) for site in sites}, {site.name for site in sites}
        given = origins(sites)
        for url in urls:
            if (key := repository_key(url)) in known:
                continue
            given[key] = origin = origin_for(url, given)
            name = next(name for name in _names(origin) if name not in names)
            values: dict[str, object] = {
                "name": name,
                "documentlisturl": url,
                "contact_email": contact,
                "source_kind": "oai-pmh",
                "enabled": False,
                "datenextharvest": harvester.today(),
                "options": options_text(SiteOptions(oai=OaiOptions(origin, prefix))),
            }
            added.append(new_site(values))
            known.add(key)
            names.add(name)
            found[url] = name
        add_sites(session, added)
    return found


def _names(origin: str) -> Sequence[str]:
    """Names for a site: its origin, also with a number behind it if a site has that name."""
    return [origin[:80], *(f"{origin[:80]}-{number}" for number in range(2, 1000))]
