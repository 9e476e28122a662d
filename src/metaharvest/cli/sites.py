"""`metaharvest sites`: the schedule. `metaharvest.sites` checks the values of a site."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import AS_JSON, Invocation, require_yes
from metaharvest.cli.printing import (
    Column,
    print_fields,
    print_json,
    print_line,
    print_table,
    rows_of,
    table_options,
    took,
    wide_option,
)
from metaharvest.cli.requests import print_asked
from metaharvest.cli.schedule_files import export_sites, import_metacat, import_sites
from metaharvest.cli.site_options import (
    LOST_LOGIN,
    allow_duplicate_option,
    registration_options,
    values_of,
    warn_of_far_date,
)
from metaharvest.errors import RequestError
from metaharvest.model import Site
from metaharvest.queries.json_keys import as_mapping
from metaharvest.text import clean, counted, shown_url

_SITES = {
    "name": Column("site"),
    "state": Column("state", 1),
    "last_harvest": Column("last harvest", 2),
    "last_status": Column("status", 3),
    "failing": Column("failing", 4),
    "trend": Column("trend", 7),
    "took": Column("took", 8),
    "next_harvest": Column("next", 5),
    "frequency": Column("frequency", 6),
    "groups": Column("groups", 11),
    "contacts": Column("contacts", 9),
    "list_url": Column("list", 10),
}


@click.group("sites")
def command() -> None:
    """Register sites and change the schedule."""


command.add_command(import_metacat)
command.add_command(export_sites)
command.add_command(import_sites)


@command.command("add")
@click.argument("name")
@registration_options(new=True)
@click.option("--unasked", is_flag=True, help="OAI-PMH: register it without asking the repository what it is.")
@allow_duplicate_option
def add(
    invocation: Invocation,
    /,
    name: str,
    sets: tuple[str, ...],
    unasked: bool,
    allow_duplicate: bool,
    **options: Any,
) -> None:
    """Register a site. You choose NAME; reports and commands use it.

    A site has a harvest list (--list-url), or is an OAI-PMH repository (--oai). The repository is queried: it must have
    the format and the set. Its own addresses become the contacts if none are named.

    A site has one set. Several --set register a site for each, NAME-SPEC; if one cannot be registered, none is.
    """
    harvester = invocation.harvester
    values = values_of({**options, "name": name})
    report = partial(_print_answer, with_contacts=options["contacts"] is None)
    done = services.sites.register(
        harvester, values, sets, unasked=unasked, allow_duplicate=allow_duplicate, report=report
    )
    for site in done.sites:
        click.echo(f"Registered {site.name}: {_when(site)}.")
        if options["next_harvest"] is not None:
            warn_of_far_date(site, harvester.today())
    if done.same_records:
        print_line(_same_records(done.same_records))
    first = done.sites[0]
    command = f"check {shlex.quote(shown_url(first.list_url))}"
    if first.options.oai is not None:
        command = f"run {' '.join(f'--site {shlex.quote(site.name)}' for site in done.sites)} --dry-run"
    whose = "its first report" if len(done.sites) == 1 else "their first reports"
    click.echo(f"To see what {whose} would say: {invocation.start} {command}")


def _same_records(others: Sequence[str]) -> str:
    return (
        f"Of the same repository, in the same format: {', '.join(others)}. A record that several of them list "
        "is one document, which is deleted when none of them lists it any more."
    )


def _print_answer(answer: services.sites.RepositoryAnswer, *, with_contacts: bool = False) -> None:
    """Print the description of a source repository; nothing if it cannot be harvested."""
    if (identity := answer.identity) is None:
        return
    print_line(f"{identity.name or 'The repository'} answers, in OAI-PMH {identity.version}.")
    for finding in answer.warnings:
        print_line(f"warning: {finding.with_remedy}", err=True)
    if answer.needs_full_lists:
        print_line(
            f"It does not name all deleted records (deletedRecord: {identity.deleted_record}): only a full list shows "
            f"which are gone. `metaharvest sites edit {shlex.quote(answer.site.name)} --full-every 30` has one each "
            "month."
        )
    if with_contacts and (contacts := answer.contacts):
        shown = contacts[: services.sites.MOST_CONTACTS]
        which = f", the first {len(shown)} of {len(contacts):,}" if len(contacts) > len(shown) else ""
        print_line(f"Contacts, as the repository names them{which}: {', '.join(shown)}.")


@command.command("edit")
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--group", metavar="GROUP", help="All sites of this group.")
@click.option("--name", "new_name", metavar="NAME", help="Give the site another name.")
@registration_options(new=False)
@click.option("--unasked", is_flag=True, help="OAI-PMH: do not check that the repository has the format and the set.")
@click.option(
    "--add-contact", "add_contacts", metavar="EMAIL", multiple=True, help="One more contact. May be repeated."
)
@click.option(
    "--remove-contact", "remove_contacts", metavar="EMAIL", multiple=True, help="One contact less. May be repeated."
)
@allow_duplicate_option
def edit(
    invocation: Invocation,
    /,
    names: tuple[str, ...],
    group: str | None,
    new_name: str | None,
    unasked: bool,
    allow_duplicate: bool,
    **options: Any,
) -> None:
    """Change a site, or several. Prints each value that changes, before and after.

    Several sites, or all of a group, are changed together: if one cannot be changed, none is.

    --contact replaces all contacts; --add-contact and --remove-contact add or remove one.

    An OAI-PMH repository is queried again if its base URL, the format or the set is changed: it must have the format
    and the set.
    """
    harvester = invocation.harvester
    values = values_of({**options, "name": new_name})
    edits = services.sites.edit(harvester, names, values, group=group, allow_duplicate=allow_duplicate)
    for edited in edits:
        _print_edit(edited)
        if any(options[name] is not None for name in ("next_harvest", "every", "unit")):
            warn_of_far_date(edited.site, harvester.today())
    for edited in [] if unasked else edits:
        if answer := services.sites.ask_again(harvester, edited):
            _print_answer(answer)
            for finding in answer.problems:
                print_line(f"warning: {finding.with_remedy}", err=True)
            if answer.problems:
                print_line(f"The next harvest of {edited.site.name} fails if that stays so.", err=True)


def _print_edit(edited: services.sites.Edited) -> None:
    site = edited.site
    if edited.changes:
        click.echo(f"Changed {site.name}: {_when(site)}.")
        for each in edited.changes:
            click.echo(clean(f"  {each.name.replace('_', ' ')}: {each.before} -> {each.after}"))
    else:
        click.echo(f"Nothing was changed: {site.name} has these values already.")
    if edited.lost_login:
        click.echo(LOST_LOGIN)
    if edited.has_other_files:
        click.echo(_AS_REPOSITORY if site.options.oai is not None else _AS_LIST)
    if edited.same_records:
        same = _same_records(edited.same_records)
        print_line(f"{same} Records that {site.name} no longer asks for stay in the target.")


_AS_REPOSITORY = "All of its records are listed and judged again then."
_AS_LIST = "What was left out is judged again then; what the repository has stays until its revision is raised."
"""The result for documents that were harvested before a change of their site's filter or normalising files."""


@command.command("enable")
@click.argument("name")
def enable(invocation: Invocation, name: str) -> None:
    """Harvest a site again, from its next date on."""
    services.sites.switch(invocation.harvester, name, True)
    click.echo(f"{name} is switched on.")


@command.command("disable")
@click.argument("name")
def disable(invocation: Invocation, name: str) -> None:
    """Leave a site out until it is enabled again; all its data stay."""
    services.sites.switch(invocation.harvester, name, False)
    click.echo(f"{name} is switched off: it is not harvested until `metaharvest sites enable` switches it on.")


@command.command("harvest")
@click.argument("name")
@click.option("--everything", is_flag=True, help="The whole list again, not only its changes.")
@click.option("--failing", is_flag=True, help="Only the documents that fail now.")
@click.option(
    "--priority",
    type=click.IntRange(0, 100),
    default=0,
    show_default=True,
    metavar="N",
    help="The highest comes first.",
)
@AS_JSON
def harvest(invocation: Invocation, name: str, everything: bool, failing: bool, priority: int, as_json: bool) -> None:
    """Ask for the harvest of a site, due or not.

    The daemon, the next run, or `run --requested` harvests it; `run --site NAME` harvests it at once.
    """
    if everything and failing:
        raise click.UsageError("Use one of --everything and --failing.")
    scopes = services.requests.HarvestScope
    scope = scopes.EVERYTHING if everything else scopes.FAILING if failing else scopes.DUE
    print_asked(services.requests.ask_harvest(invocation.harvester, name, scope, priority=priority), as_json)


@command.command("skip")
@click.argument("name")
@click.option("--undo", is_flag=True, help="Take it back: the next run harvests the site if it is due.")
@AS_JSON
def skip(invocation: Invocation, name: str, undo: bool, as_json: bool) -> None:
    """Leave a site out of the next run. It stays due: the run after that harvests it."""
    if not undo:
        print_asked(services.requests.skip_tonight(invocation.harvester, name), as_json)
        return
    cancelled = services.requests.harvest_tonight(invocation.harvester, name)
    if cancelled is None:
        raise RequestError(f"{name} is not left out of the next run.")
    if as_json:
        print_json({**as_mapping(cancelled), "is_new": False, "waits_for": cancelled.sentence})
    else:
        print_line(f"{name} is no longer left out of the next run.")


@command.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(invocation: Invocation, name: str, yes: bool) -> None:
    """Remove a site from the schedule. Its history stays: runs, log, reports and documents."""
    services.sites.find(invocation.harvester, name)
    require_yes(yes, f"Take {name} off the schedule?", f"--yes to remove {name}.")
    services.sites.remove(invocation.harvester, name)
    click.echo(f"Removed {name} from the schedule. Its history stays: runs, log, reports, and its documents.")
    click.echo(
        "Its documents now belong to no registered site: the first site that publishes a higher revision of one takes "
        "it over; `metaharvest target transfer` gives one to a site at once."
    )


@command.command("confirm")
@click.argument("name")
def confirm(invocation: Invocation, name: str) -> None:
    """Let the next harvest carry out all deletions that the source repository reports, in any number."""
    number = services.sites.confirm(invocation.harvester, name)
    if number is None:
        click.echo(f"There is nothing to confirm: deletions of {name} are only recorded.")
    elif not number:
        click.echo(f"Nothing of {name} waits to be confirmed.")
    else:
        click.echo(f"Confirmed: the next harvest of {name} deletes {counted(number, 'document')}.")


@command.command("list")
@click.option(
    "--state",
    type=click.Choice(["off", "due", "waiting", "overdue", "broken"]),
    help="Only sites in this state.",
)
@click.option("--kind", type=click.Choice(["harvest-list", "oai-pmh"]), help="Only sites of this kind.")
@click.option("--group", metavar="GROUP", help="Only sites of this group.")
@click.option("--failing", is_flag=True, help="Only sites with failing documents, or whose last harvest failed.")
@click.option("--overdue", is_flag=True, help="Only sites that are overdue, as with --state overdue.")
@click.option(
    "--not-harvested-for",
    type=click.IntRange(1, 100_000),
    metavar="DAYS",
    help="Only sites that are switched on, and had no successful harvest for this number of days, or ever.",
)
@table_options
def list_sites(invocation: Invocation, /, state: str | None, overdue: bool, as_json: bool, **options: Any) -> None:
    """List the sites: their state, their next harvest, the recipients of reports.

    `last harvest` is the day of the last success; `status` is the result of the last harvest.
    `trend` is the number of failed documents in each of the last harvests, the newest last.

    \b
    Examples:
      metaharvest sites list --not-harvested-for 30
      metaharvest sites list --failing --kind oai-pmh
    """
    if overdue and state not in (None, "overdue"):
        raise click.UsageError(f"A site that is {state} is not overdue: use one of --overdue and --state.")
    wanted = queries.sites.SiteFilter("overdue" if overdue else state, **options)
    today = invocation.harvester.today()
    known = invocation.harvester.read(queries.sites.registered_sites, today)
    sites = [services.json_documents.site_in_form(site) for site in known if wanted.takes(site, today)]
    if as_json:
        print_json([services.json_documents.site_document(site) for site in sites])
        return
    if known and not sites:
        click.echo("There is no such site.")
        return
    if not sites:
        click.echo("No site is registered yet. `metaharvest sites add NAME --list-url URL --contact EMAIL` adds one,")
        click.echo("`metaharvest sites add NAME --oai BASEURL` an OAI-PMH repository.")
        return
    rows = [{**as_mapping(site), **_in_words(site)} for site in sites]
    print_table(list(_SITES.values()), [[row[name] for name in _SITES] for row in rows])
    for site in sites:
        for problem in site.problems:
            print_line(problem)
        _print_failure(site)


@command.command("show")
@click.argument("name")
@wide_option
@AS_JSON
def show(invocation: Invocation, name: str, as_json: bool) -> None:
    """Show all registered values of a site, and the results of its last harvests."""
    harvester = invocation.harvester
    registered = harvester.read(queries.sites.registered_site, name, harvester.today())
    site = services.json_documents.site_in_form(registered)
    if as_json:
        print_json(services.json_documents.site_document(site))
        return
    print_fields({label.replace("_", " "): value for label, value in queries.sites.registered_values(site).items()})
    _print_harvests(invocation, site)
    _print_failure(site)
    for problem in site.problems:
        print_line(problem)


def _print_harvests(invocation: Invocation, site: queries.sites.RegisteredSite) -> None:
    if not site.trend:
        click.echo("\nNo run has harvested it yet.")
        return
    click.echo("\nThe last harvests:")
    headings = ["run", "date", "status", "listed", "new", "updated", "unchanged", "failing", "warnings", "took"]
    rows = rows_of(
        site.trend,
        "run_id harvest_date status listed inserted updated unchanged failing warnings took_seconds",
        status=lambda each: queries.trends.status_in_words(each.status, each.rehearsal),
        listed=lambda each: "-" if each.listed is None else each.listed,
        took_seconds=lambda each: took(each.took_seconds),
    )
    print_table(headings, rows)
    if site.failing:
        command = f"{invocation.start} documents --failing --site {shlex.quote(site.site)}"
        failing = counted(site.failing, "document is", "documents are")
        print_line(f"{failing} failing, the first since {site.failing_since}: {command}")


def _in_words(site: queries.sites.RegisteredSite) -> dict[str, object]:
    rehearsed = ", then rehearsed" if site.trend and site.trend[-1].rehearsal else ""
    return {
        "last_status": f"{site.last_status or 'none'}{rehearsed}",
        "failing": site.failing or "",
        "trend": queries.trends.in_words(site.trend),
        "took": took(site.took_seconds),
    }


def _print_failure(site: queries.sites.RegisteredSite) -> None:
    if site.failed_since is not None and site.enabled:
        nights = counted(site.failed_nights, "night")
        reason = (site.failure_reason or "no reason was noted").removeprefix(f"{site.site}: ")
        print_line(f"{site.site}: {site.last_status} since {site.failed_since} ({nights}): {reason}")


def _when(site: Site) -> str:
    from metaharvest.reports.phrasing import frequency

    state = "" if site.enabled else "switched off; "
    next_harvest = site.next_harvest or "as soon as possible"
    return f"{state}next harvest {next_harvest}, then {frequency(site.frequency, site.unit)}"
