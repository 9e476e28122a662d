"""`metaharvest sites`: the schedule. What a site may look like is decided in register.py."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.app import App, as_date, print_fields, print_json, print_table
from metaharvest.model import Level, Notify, Site, Unit
from metaharvest.text import one_line

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from metaharvest.model import Network
    from metaharvest.sites.registry import BrokenSite

Options = Mapping[str, Any]
_AS_SETTINGS = "as-settings"
_NONE = "none"


@click.group("sites")
def command() -> None:
    """Register sites and change the schedule."""


def _day(_context: click.Context, _parameter: click.Parameter, value: str | None) -> date | None:
    return as_date(value)


def _networks(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Network, ...] | None:
    """The networks; None where the option was not given, an empty tuple for `none`."""
    from metaharvest.config.settings import check_network

    parts = [part for value in values for part in value.replace(";", ",").split(",") if part.strip()]
    if [part.strip().lower() for part in parts] == ["none"]:
        return ()
    try:
        return tuple(check_network(part) for part in parts) or None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _choice(values: Iterable[str], *more: str) -> click.Choice[str]:
    return click.Choice([*map(str, values), *more])


def _options(required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options that `add` and `edit` share; the URL and the contacts are required of a new site."""

    def default(value: object) -> str:
        return f" [default: {value}]" if required else ""

    options = [
        click.option("--list-url", metavar="URL", required=required, help="Where the site's harvest list is."),
        click.option(
            "--contact",
            "contacts",
            metavar="EMAILS",
            multiple=True,
            required=required,
            help="Who gets the reports; several with commas between them, or by repeating the option.",
        ),
        click.option("--every", type=click.IntRange(1, 99), metavar="N", help=f"Harvest every N units.{default(1)}"),
        click.option("--unit", type=_choice(Unit), help=f"The unit of --every.{default('days')}"),
        click.option(
            "--next", "next_day", metavar="YYYY-MM-DD", callback=_day, help=f"The next harvest.{default('today')}"
        ),
        click.option("--notify", type=_choice(Notify), help=f"When the contacts get a report.{default('always')}"),
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

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@command.command("add")
@click.argument("name")
@_options(required=True)
@click.pass_obj
def add(app: App, /, name: str, **options: Any) -> None:
    """Register a site. NAME is yours to choose; reports and commands call the site by it."""
    from metaharvest.cli.queries import writing
    from metaharvest.sites.registry import add_site

    values = {"name": name, "datenextharvest": app.today(), **_columns(options, None)}
    with writing(app) as session:
        site = add_site(session, values)
        _require_allowed(app, site, values)
    click.echo(f"Registered {site.name}: {_when(site)}.")
    url = shlex.quote(str(_view(site, {}, app.today())["list_url"]))
    click.echo(f"To see what its first report would say: metaharvest check {url}")


@command.command("edit")
@click.argument("name")
@click.option("--name", "new_name", metavar="NAME", help="Give the site another name.")
@_options(required=False)
@click.pass_obj
def edit(app: App, /, name: str, new_name: str | None, **options: Any) -> None:
    """Change a site; what is not named stays as it is."""
    from metaharvest.cli.queries import writing
    from metaharvest.sites.registry import edit_site, find_site

    with writing(app) as session:
        changes = _columns(options, find_site(session, name))
        if new_name is not None:
            changes["name"] = new_name
        if not changes:
            raise click.UsageError("Nothing to change: name at least one option.")
        site = edit_site(session, name, changes)
        _require_allowed(app, site, changes)
    click.echo(f"Changed {site.name}: {_when(site)}.")


@command.command("enable")
@click.argument("name")
@click.pass_obj
def enable(app: App, name: str) -> None:
    """Harvest a site again, from its next date on."""
    from metaharvest.cli.queries import writing
    from metaharvest.sites.registry import switch_site

    with writing(app) as session:
        switch_site(session, name, True)
    click.echo(f"{name} is switched on.")


@command.command("disable")
@click.argument("name")
@click.pass_obj
def disable(app: App, name: str) -> None:
    """Leave a site out until it is enabled again; everything stays."""
    from metaharvest.cli.queries import writing
    from metaharvest.sites.registry import switch_site

    with writing(app) as session:
        switch_site(session, name, False)
    click.echo(f"{name} is switched off: it is not harvested until `metaharvest sites enable` switches it on.")


@command.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove(app: App, name: str, yes: bool) -> None:
    """Take a site off the schedule. Its history stays: runs, log, reports and documents."""
    from metaharvest.cli.queries import reading, writing
    from metaharvest.sites.registry import find_site, remove_site

    with reading(app) as session:
        find_site(session, name)
    if not yes and not sys.stdin.isatty():
        raise click.UsageError(f"Nobody is here to ask: add --yes to remove {name}.")
    if not yes:
        click.confirm(f"Take {name} off the schedule?", abort=True)
    with writing(app) as session:
        remove_site(session, name)
    click.echo(f"Removed {name} from the schedule. Its history stays: runs, log, reports, and its documents.")
    click.echo("Those documents belong to no site now: the next site that lists one of them takes it over.")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def list_sites(app: App, as_json: bool) -> None:
    """List the sites: when each is due, who is told."""
    from metaharvest.cli.queries import reading
    from metaharvest.sites.registry import read_sites

    with reading(app) as session:
        late = _overdue(session, app.today())
        sites = [_full_view(session, site, late, app.today()) for site in read_sites(session)]
    if as_json:
        print_json(sites)
        return
    if not sites:
        click.echo("No site is registered yet. `metaharvest sites add NAME --list-url URL --contact EMAIL` adds one.")
        return
    headings = ["site", "state", "next", "frequency", "contacts", "list"]
    print_table(headings, [[_cell(view[column]) for column in _COLUMNS_SHOWN] for view in sites])
    for view in sites:
        for problem in view["problems"]:
            click.echo(one_line(problem, 2000))


@command.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def show(app: App, name: str, as_json: bool) -> None:
    """Show everything that is registered of a site."""
    from metaharvest.cli.queries import reading
    from metaharvest.sites.registry import find_site

    with reading(app) as session:
        view = _full_view(session, find_site(session, name), _overdue(session, app.today()), app.today())
    if as_json:
        print_json(view)
        return
    problems = view.pop("problems")
    print_fields({label.replace("_", " "): _cell(value) for label, value in view.items()})
    for problem in problems:
        click.echo(one_line(problem, 2000))


_COLUMNS_SHOWN = ("name", "state", "next_harvest", "frequency", "contacts", "list_url")


def _cell(value: object) -> object:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value


def _columns(options: Options, before: Site | BrokenSite | None) -> dict[str, Any]:
    """The options that were given, by the columns that they stand for."""
    given = {
        "documentlisturl": options["list_url"],
        "contact_email": ", ".join(options["contacts"]) if options["contacts"] else None,
        "updatefrequency": options["every"],
        "unit": options["unit"],
        "datenextharvest": options["next_day"],
        "notify": options["notify"],
        "ldapdn": options["ldapdn"],
        "ldappwd": options["ldappwd"],
    }
    columns = {column: value for column, value in given.items() if value is not None}
    for column in ("ldapdn", "ldappwd"):
        if columns.get(column) == _NONE:
            columns[column] = None
    if any(options[name] is not None for name in ("package_id_mismatch", "networks", "ca_file")):
        columns["options"] = _site_options(options, before)
    return columns


def _site_options(options: Options, before: Site | BrokenSite | None) -> str | None:
    from metaharvest.model import SiteOptions
    from metaharvest.sites.registry import options_text

    own = before.options if isinstance(before, Site) else SiteOptions()
    if options["package_id_mismatch"] is not None:
        chosen = options["package_id_mismatch"]
        own = replace(own, package_id_mismatch=None if chosen == _AS_SETTINGS else Level(chosen))
    if options["networks"] is not None:
        own = replace(own, allow_networks=options["networks"])
    if options["ca_file"] is not None:
        own = replace(own, ca_file=None if options["ca_file"] in ("", _NONE) else Path(options["ca_file"]))
    return options_text(own)


def _require_allowed(app: App, site: Site, changes: Mapping[str, object]) -> None:
    """Raises ScheduleError where the settings do not allow what was changed, or it cannot be used on this machine."""
    from metaharvest.config.trust_store import BadAuthorities, read_authorities
    from metaharvest.errors import ScheduleError
    from metaharvest.fetch.local_files import is_file_url, refusal

    site = app.settings.furnished(site)
    if is_file_url(site.list_url) and {"documentlisturl", "name"} & set(changes):
        refused = refusal(site.list_url, site.file_folder)
        if refused:
            raise ScheduleError(f"{refused.message} {refused.remedy}")
    if site.options.ca_file and "options" in changes:
        try:
            read_authorities(site.options.ca_file)
        except BadAuthorities as error:
            path = site.options.ca_file
            raise ScheduleError(f"The certificate authorities in {path} cannot be used: {error}.") from error


def _when(site: Site) -> str:
    state = "" if site.enabled else "switched off; "
    return f"{state}next harvest {site.next_harvest or 'as soon as possible'}, then {_frequency(site)}"


def _frequency(site: Site) -> str:
    from metaharvest.reports.words import frequency

    return frequency(site.frequency, site.unit)


def _overdue(session: Session, today: date) -> dict[str, date]:
    """The sites that are overdue, as the reports and the doctor have it, by name: since when."""
    from metaharvest.sites.overdue import overdue_sites

    return {site.name: site.since for site in overdue_sites(session, today)}


def _full_view(session: Session, site: Site | BrokenSite, late: Mapping[str, date], today: date) -> dict[str, Any]:
    if isinstance(site, Site):
        return _view(site, late, today)
    return _broken_view(session, site)


def _view(site: Site, late: Mapping[str, date], today: date) -> dict[str, Any]:
    """A site as it is shown; credentials in its URL are left out."""
    from metaharvest.text import shown_url

    return {
        "name": site.name,
        "state": _state(site, late, today),
        "list_url": shown_url(site.list_url),
        "contacts": list(site.contacts),
        "frequency": _frequency(site),
        "every": site.frequency,
        "unit": site.unit.value,
        "next_harvest": site.next_harvest,
        "last_harvest": site.last_harvest,
        "notify": site.notify.value,
        "enabled": site.enabled,
        "package_id_mismatch": site.options.package_id_mismatch or _AS_SETTINGS,
        "allow_networks": [str(network) for network in site.options.allow_networks],
        "ca_file": str(site.options.ca_file) if site.options.ca_file else None,
        "ldapdn": site.ldap_name,
        "ldappwd": site.ldap_password,
        "problems": [],
    }


def _state(site: Site, late: Mapping[str, date], today: date) -> str:
    from metaharvest.sites.due import is_due

    if not site.enabled:
        return "off"
    if site.name in late:
        return f"overdue since {late[site.name]}"
    return "due" if is_due(site, today) else "waiting"


def _broken_view(session: Session, site: BrokenSite) -> dict[str, Any]:
    """A row that cannot be used, as it is in the table."""
    from sqlalchemy import text

    from metaharvest.config.secret_references import NOT_SHOWN, is_reference
    from metaharvest.text import shown_url

    row = dict(
        session.execute(text("SELECT * FROM harvest_site_schedule WHERE site_schedule_id = :id"), {"id": site.site_id})
        .mappings()
        .one()
    )
    return {
        "name": site.name,
        "state": "broken" if site.enabled else "broken, off",
        "list_url": shown_url(site.list_url),
        "contacts": [row["contact_email"]] if row["contact_email"] else [],
        "frequency": f"{row['updatefrequency']} {row['unit']}",
        "every": row["updatefrequency"],
        "unit": row["unit"],
        "next_harvest": row["datenextharvest"],
        "last_harvest": row["datelastharvest"],
        "notify": row["notify"],
        "enabled": site.enabled,
        "package_id_mismatch": _AS_SETTINGS,
        "allow_networks": [],
        "ca_file": None,
        "ldapdn": row["ldapdn"],
        "ldappwd": row["ldappwd"] if is_reference(row["ldappwd"]) else NOT_SHOWN,
        "options": row["options"],
        "problems": [finding.message for finding in site.findings],
    }
