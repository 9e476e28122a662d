"""`metaharvest sites`: the schedule. What a site may look like is decided in `metaharvest.sites`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.invocation import Invocation, day
from metaharvest.cli.printing import print_fields, print_json, print_line, print_table
from metaharvest.cli.sites_import import import_metacat
from metaharvest.model import Level, Notify, Site, Unit
from metaharvest.text import shown_url

if TYPE_CHECKING:
    from datetime import date

    from metaharvest.model import Network
    from metaharvest.queries.records import Record
    from metaharvest.sites.rows import BrokenSite

Options = Mapping[str, Any]
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_AS_SETTINGS = "as-settings"
_OWN = ("package_id_mismatch", "networks", "ca_file")
"""What is kept in the column `options`; the other options of `add` and `edit` have the names of columns."""

_NOT_REGISTERED = (
    "site", "site_id", "last_status", "last_run_id", "last_site_run_id", "failing", "failing_since", "took_seconds",
    "trend", "problems",
)  # fmt: skip
"""What of a site is not a value of its registration."""

_NONE = "none"


@click.group("sites")
def command() -> None:
    """Register sites and change the schedule."""


command.add_command(import_metacat)


def _networks(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Network, ...] | None:
    """The networks; None if the option was not given, an empty tuple for `none`."""
    from metaharvest.config.field_types import check_network

    parts = [part for value in values for part in value.replace(";", ",").split(",") if part.strip()]
    if [part.strip().lower() for part in parts] == [_NONE]:
        return ()
    try:
        return tuple(check_network(part) for part in parts) or None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _choice(values: Iterable[str], *more: str) -> click.Choice[str]:
    return click.Choice([*map(str, values), *more])


def _options(required: bool) -> Decorator:
    """The options that `add` and `edit` share; the URL and the contacts are required of a new site."""

    def default(value: object) -> str:
        return f" [default: {value}]" if required else ""

    options = [*_schedule_options(required, default), *_own_options(default)]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _schedule_options(required: bool, default: Callable[[object], str]) -> list[Decorator]:
    """Where the list is, when it is harvested, and who is told."""
    return [
        click.option(
            "--list-url", "documentlisturl", metavar="URL", required=required, help="Where the site's harvest list is."
        ),
        click.option(
            "--contact",
            "contact_email",
            metavar="EMAILS",
            multiple=True,
            callback=lambda _context, _parameter, emails: ", ".join(emails) if emails else None,
            required=required,
            help="Who gets the reports; several with commas between them, or by repeating the option.",
        ),
        click.option(
            "--every",
            "updatefrequency",
            type=click.IntRange(1, 99),
            metavar="N",
            help=f"Harvest every N units.{default(1)}",
        ),
        click.option("--unit", type=_choice(Unit), help=f"The unit of --every.{default('days')}"),
        click.option(
            "--next", "datenextharvest", metavar="YYYY-MM-DD", callback=day, help=f"The next harvest.{default('today')}"
        ),
        click.option("--notify", type=_choice(Notify), help=f"When the contacts get a report.{default('always')}"),
    ]


def _own_options(default: Callable[[object], str]) -> list[Decorator]:
    """What a site may have of its own instead of what the settings say."""
    return [
        click.option(
            "--package-id-mismatch",
            type=_choice(Level, _AS_SETTINGS),
            help=f"What a packageId is that is not the docid.{default(_AS_SETTINGS)}",
        ),
        click.option(
            "--allow-network",
            "networks",
            metavar="CIDR",
            multiple=True,
            callback=_networks,
            help="Addresses that are not public and may be harvested for this site, such as 10.1.0.0/16. "
            "May be repeated; `none` takes all away.",
        ),
        click.option(
            "--ca-file",
            metavar="FILE",
            help="Certificates (PEM) to trust for this site alone; a relative path starts at the settings file. "
            "`none` takes it back.",
        ),
        click.option(
            "--ldapdn", metavar="DN", help="The site's login at the target, if it has one of its own; or `none`."
        ),
        click.option(
            "--ldappwd",
            metavar="REFERENCE",
            help="Where its password is: env:NAME, file:PATH or keyring:SERVICE/USERNAME; or `none`.",
        ),
    ]


@command.command("add")
@click.argument("name")
@_options(required=True)
@click.pass_obj
def add(invocation: Invocation, /, name: str, **options: Any) -> None:
    """Register a site. NAME is yours to choose; reports and commands call the site by it."""
    from metaharvest.sites.allowed import require_allowed
    from metaharvest.sites.registry import add_site

    harvester = invocation.harvester
    _require_not_past(options["datenextharvest"], harvester.today())
    values = {"name": name, "datenextharvest": harvester.today(), **_columns(options, None)}
    with harvester.writing() as session:
        site = add_site(session, values)
        require_allowed(harvester.settings, site, values)
    click.echo(f"Registered {site.name}: {_when(site)}.")
    url = shlex.quote(shown_url(site.list_url))
    click.echo(f"To see what its first report would say: {invocation.start} check {url}")


@command.command("edit")
@click.argument("name")
@click.option("--name", "new_name", metavar="NAME", help="Give the site another name.")
@_options(required=False)
@click.pass_obj
def edit(invocation: Invocation, /, name: str, new_name: str | None, **options: Any) -> None:
    """Change a site; what is not named stays as it is."""
    from metaharvest.sites.allowed import require_allowed
    from metaharvest.sites.registry import edit_site, find_site

    harvester = invocation.harvester
    _require_not_past(options["datenextharvest"], harvester.today())
    with harvester.writing() as session:
        changes = _columns(options, find_site(session, name))
        if new_name is not None:
            changes["name"] = new_name
        if not changes:
            raise click.UsageError("Nothing to change: name at least one option.")
        site = edit_site(session, name, changes)
        require_allowed(harvester.settings, site, changes)
    click.echo(f"Changed {site.name}: {_when(site)}.")


@command.command("enable")
@click.argument("name")
@click.pass_obj
def enable(invocation: Invocation, name: str) -> None:
    """Harvest a site again, from its next date on."""
    _switch(invocation, name, True)
    click.echo(f"{name} is switched on.")


@command.command("disable")
@click.argument("name")
@click.pass_obj
def disable(invocation: Invocation, name: str) -> None:
    """Leave a site out until it is enabled again; everything stays."""
    _switch(invocation, name, False)
    click.echo(f"{name} is switched off: it is not harvested until `metaharvest sites enable` switches it on.")


def _switch(invocation: Invocation, name: str, enabled: bool) -> None:
    from metaharvest.sites.registry import switch_site

    with invocation.harvester.writing() as session:
        switch_site(session, name, enabled)


@command.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove(invocation: Invocation, name: str, yes: bool) -> None:
    """Take a site off the schedule. Its history stays: runs, log, reports and documents."""
    from metaharvest.sites.registry import find_site, remove_site

    with invocation.harvester.reading() as session:
        find_site(session, name)
    if not yes and not sys.stdin.isatty():
        raise click.UsageError(f"Nobody is here to ask: add --yes to remove {name}.")
    if not yes:
        click.confirm(f"Take {name} off the schedule?", abort=True)
    with invocation.harvester.writing() as session:
        remove_site(session, name)
    click.echo(f"Removed {name} from the schedule. Its history stays: runs, log, reports, and its documents.")
    click.echo(
        "Those documents belong to no site now: the first site that publishes a higher revision of one takes it over; "
        "`metaharvest target transfer` gives one to a site at once."
    )


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def list_sites(invocation: Invocation, as_json: bool) -> None:
    """List the sites: how each stands, when it is due, who is told.

    `trend` is how many documents failed in each of the last harvests, the newest last.
    """
    from metaharvest.queries.sites import registered_sites

    with invocation.harvester.reading() as session:
        sites = [_as_mapping(site) for site in registered_sites(session, invocation.harvester.today())]
    if as_json:
        print_json(sites)
        return
    if not sites:
        click.echo("No site is registered yet. `metaharvest sites add NAME --list-url URL --contact EMAIL` adds one.")
        return
    shown = ("name", "state", "last_status", "failing", "trend", "took", "next_harvest", "frequency")
    headings = ["site", "state", "last harvest", "failing", "trend", "took", "next", "frequency", "contacts", "list"]
    rows = [{**site, **_in_words(site)} for site in sites]
    print_table(headings, [[row[column] for column in (*shown, "contacts", "list_url")] for row in rows])
    for site in sites:
        _print_problems(site)


@command.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def show(invocation: Invocation, name: str, as_json: bool) -> None:
    """Show everything that is registered of a site, and how its last harvests went."""
    from metaharvest.queries.sites import registered_site

    with invocation.harvester.reading() as session:
        site = _as_mapping(registered_site(session, name, invocation.harvester.today()))
    if as_json:
        print_json(site)
        return
    registered = {label: value for label, value in site.items() if label not in _NOT_REGISTERED}
    print_fields({label.replace("_", " "): value for label, value in registered.items()})
    _print_harvests(invocation, site)
    _print_problems(site)


def _print_harvests(invocation: Invocation, site: Record) -> None:
    if not site["trend"]:
        click.echo("\nNo run has harvested it yet.")
        return
    click.echo("\nThe last harvests:")
    headings = ["run", "date", "status", "listed", "new", "updated", "there", "failing", "warnings", "took"]
    shown = ("run_id", "harvest_date", "status", "listed", "inserted", "updated", "unchanged", "failing", "warnings")
    print_table(headings, [[*(each[name] for name in shown), _took(each["took_seconds"])] for each in site["trend"]])
    if site["failing"]:
        command = f"{invocation.start} documents --failing --site {shlex.quote(site['name'])}"
        failing = "1 document is" if site["failing"] == 1 else f"{site['failing']:,} documents are"
        print_line(f"{failing} failing, the first since {site['failing_since']}: {command}")


def _in_words(site: Record) -> Record:
    from metaharvest.queries.trends import in_words

    return {
        "last_status": site["last_status"] or "none",
        "failing": site["failing"] or "",
        "trend": in_words(site["trend"]),
        "took": _took(site["took_seconds"]),
    }


def _took(seconds: float | None) -> str:
    from metaharvest.reports.words import duration

    return "" if seconds is None else duration(seconds)


def _print_problems(site: Record) -> None:
    for problem in site["problems"]:
        print_line(problem)


def _require_not_past(next_harvest: date | None, today: date) -> None:
    """Raises UsageError: a site that has been due since a day in the past would be told as overdue."""
    if next_harvest is not None and next_harvest < today:
        raise click.UsageError(f"--next: {next_harvest} is past; give today, {today}, or a later day.")


def _columns(options: Options, before: Site | BrokenSite | None) -> dict[str, Any]:
    """The options that were given, by the columns that they stand for."""
    columns = {name: value for name, value in options.items() if value is not None and name not in _OWN}
    for column in ("ldapdn", "ldappwd"):
        if columns.get(column) == _NONE:
            columns[column] = None
    if any(options[name] is not None for name in _OWN):
        columns["options"] = _site_options(options, before)
    return columns


def _site_options(options: Options, before: Site | BrokenSite | None) -> str | None:
    from metaharvest.model import SiteOptions
    from metaharvest.sites.rows import options_text

    own = before.options if isinstance(before, Site) else SiteOptions()
    if options["package_id_mismatch"] is not None:
        chosen = options["package_id_mismatch"]
        own = replace(own, package_id_mismatch=None if chosen == _AS_SETTINGS else Level(chosen))
    if options["networks"] is not None:
        own = replace(own, allow_networks=options["networks"])
    if options["ca_file"] is not None:
        own = replace(own, ca_file=None if options["ca_file"] in ("", _NONE) else Path(options["ca_file"]))
    return options_text(own)


def _when(site: Site) -> str:
    from metaharvest.reports.words import frequency

    state = "" if site.enabled else "switched off; "
    next_harvest = site.next_harvest or "as soon as possible"
    return f"{state}next harvest {next_harvest}, then {frequency(site.frequency, site.unit)}"


def _as_mapping(site: Record) -> Record:
    """A site as it is printed: how often it is harvested in words, what it leaves to the settings."""
    from metaharvest.reports.words import frequency

    words = site["frequency"] if "options" in site else frequency(site["every"], site["unit"])
    return {**site, "frequency": words, "package_id_mismatch": site["package_id_mismatch"] or _AS_SETTINGS}
