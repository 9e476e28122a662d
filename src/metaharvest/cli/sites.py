"""`metaharvest sites`: the schedule. What a site may look like is decided in `metaharvest.sites`."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.printing import print_fields, print_json, print_line
from metaharvest.cli.site_options import (
    AS_SETTINGS,
    allow_duplicate_option,
    changed_contacts,
    columns_of,
    give_origin,
    registration_options,
    warn_of_far_date,
)
from metaharvest.cli.sites_files import export_sites, import_sites
from metaharvest.cli.sites_import import import_metacat
from metaharvest.cli.tables import Column, print_table, table_options, wide_option
from metaharvest.model import Deletions, Site
from metaharvest.text import clean, one_line, shown_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from sqlalchemy.orm import Session

    from metaharvest.app import Harvester
    from metaharvest.model import Finding
    from metaharvest.queries.records import Record
    from metaharvest.sites.rows import BrokenSite
    from metaharvest.sources.oai_pmh.protocol import Identity

_NOT_REGISTERED = (
    "site", "site_id", "last_status", "last_run_id", "last_site_run_id", "failing", "failing_since", "failed_since",
    "failed_nights", "failure_reason", "took_seconds",
    "trend", "problems",
)  # fmt: skip
"""What of a site is not a value of its registration."""

_MOST_CONTACTS = 5
"""Addresses of a repository that become contacts if --contact is not given."""

_OF_REPOSITORIES = ("origin", "prefix", "set", "begin", "until", "method", "full_every", "post")
"""The options of a site that is an OAI-PMH repository."""


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
"""What `sites list` shows of a site, with the headings."""


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
@click.pass_obj
def add(invocation: Invocation, /, name: str, unasked: bool, allow_duplicate: bool, **options: Any) -> None:
    """Register a site. NAME is yours to choose; reports and commands call the site by it.

    A site has a harvest list (--list-url), or is an OAI-PMH repository (--oai), which is asked what it is, and whether
    it has the format and the set; the addresses that it gives are the contacts if none are named.

    A site has one set. Several --set register a site for each, NAME-SPEC; if one cannot be registered, none is.
    """
    from metaharvest.sites.allowed import require_allowed
    from metaharvest.sites.duplicates import require_new_source
    from metaharvest.sites.registry import add_site, new_site, read_sites

    harvester = invocation.harvester
    _require_not_past(options["datenextharvest"], harvester.today())
    if options["documentlisturl"] is None and options["base_url"] is None:
        raise click.UsageError("Give --list-url, where the site's harvest list is, or --oai for a repository.")
    with harvester.reading() as session:
        give_origin(options, None, read_sites(session))
    sites = [
        {"name": each, "datenextharvest": harvester.today(), **columns_of({**options, "set_spec": spec}, None)}
        for each, spec in _names_and_sets(name, options.pop("sets"))
    ]
    is_asked = options["base_url"] is not None and not unasked
    if options["contact_email"] is None and not is_asked:
        raise click.UsageError("Give --contact: the email addresses of those who get the reports.")
    if is_asked:
        asked = _asked(
            harvester, [new_site({"contact_email": "nobody@example.org", **each}) for each in sites], sites[0]
        )
        sites = [{**each, **asked} for each in sites]
    added: list[Site] = []
    with harvester.writing() as session:
        before = read_sites(session)
        for values in sites:
            added.append(site := add_site(session, values))
            require_allowed(harvester.settings, site, values)
            if not allow_duplicate:
                require_new_source(site, read_sites(session))
    for site in added:
        click.echo(f"Registered {site.name}: {_when(site)}.")
        if options["datenextharvest"] is not None:
            warn_of_far_date(site, harvester.today())
    if others := _of_the_same_records(added[0], before):
        print_line(_same_records(others))
    command = f"check {shlex.quote(shown_url(added[0].list_url))}"
    if added[0].options.oai is not None:
        command = f"run {' '.join(f'--site {shlex.quote(site.name)}' for site in added)} --dry-run"
    whose = "its first report" if len(added) == 1 else "their first reports"
    click.echo(f"To see what {whose} would say: {invocation.start} {command}")


def _names_and_sets(name: str, specs: Sequence[str]) -> list[tuple[str, str | None]]:
    """The sites that are registered for these sets: one for each."""
    from metaharvest.sites.options import name_for_set

    different = tuple(dict.fromkeys(specs))
    if len(different) > 1:
        return [(name_for_set(name, spec), spec) for spec in different]
    return [(name, next(iter(different), None))]


def _same_records(others: Sequence[str]) -> str:
    return (
        f"Of the same repository, in the same format: {', '.join(others)}. A record that several of them list "
        "is one document, which is deleted when none of them lists it any more."
    )


def _of_the_same_records(site: Site, sites: Iterable[Site | BrokenSite]) -> list[str]:
    """The names of other sites whose records have the same document ids."""
    if site.options.oai is None:
        return []
    ids = site.options.oai.origin, site.options.oai.prefix
    asked = ((each, each.options.oai) for each in sites if isinstance(each, Site) and each.site_id != site.site_id)
    return [each.name for each, oai in asked if oai is not None and (oai.origin, oai.prefix) == ids]


def _asked(harvester: Harvester, sites: Sequence[Site], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the repository of these sites says of itself that is registered where nothing else is given.

    Raises ScheduleError.
    """
    from metaharvest.errors import ScheduleError
    from metaharvest.sites.rows import split_addresses, usable_contacts

    more_sets = [spec for each in sites[1:] if each.options.oai and (spec := each.options.oai.set_spec)]
    identity, problems = _inspected(harvester, sites[0], more_sets)
    if identity is None:
        found = "\n".join(f"{finding.message} {finding.remedy}" for finding in problems)
        is_other = any(finding.rule == "oai.not-oai" for finding in problems)
        hint = " If this is the URL of a harvest list, give it with --list-url." if is_other else ""
        raise ScheduleError(f"{found}{hint}\nNothing was registered; --unasked registers it nevertheless.")
    if "contact_email" in given:
        return {}
    named = split_addresses(", ".join(identity.emails))
    # As repositories write them: `mailto:keeper@example.org`, `The Keeper <keeper@example.org>`.
    plain = (parseaddr(each)[1] or each for each in (re.sub("(?i)mailto:", "", each) for each in named))
    contacts = usable_contacts(", ".join(plain))
    if not contacts:
        quoted = ", ".join(f"'{one_line(each, 80)}'" for each in named[:3])
        instead = f" that can be used, but {quoted}" if named else ""
        raise ScheduleError(f"The repository names no email address{instead}. Give --contact: who gets the reports.")
    proposed = contacts[:_MOST_CONTACTS]
    which = f", the first {len(proposed)} of {len(contacts):,}" if len(contacts) > len(proposed) else ""
    print_line(f"Contacts, as the repository names them{which}: {', '.join(proposed)}.")
    return {"contact_email": ", ".join(proposed)}


def _inspected(
    harvester: Harvester, site: Site, more_sets: Sequence[str] = ()
) -> tuple[Identity | None, Sequence[Finding]]:
    """Ask the repository what it is, and print it; None, and why, if the site cannot be harvested like this."""
    from metaharvest.errors import FetchError, ListError

    try:
        inspection = harvester.inspect(site, more_sets)
    except (FetchError, ListError) as error:
        return None, error.findings
    if inspection.problems:
        return None, inspection.problems
    identity = inspection.identity
    print_line(f"{identity.name or 'The repository'} answers, in OAI-PMH {identity.version}.")
    for finding in inspection.findings:
        if finding.rule in ("http.robots", "oai.from"):
            print_line(f"warning: {finding.message} {finding.remedy}", err=True)
    oai = site.options.oai
    if identity.deleted_record in ("no", "transient") and oai is not None and oai.full_every is None:
        print_line(
            f"It does not name all deleted records (deletedRecord: {identity.deleted_record}): only a full list shows "
            f"which are gone. `metaharvest sites edit {shlex.quote(site.name)} --full-every 30` has one each month."
        )
    return identity, ()


@dataclass(frozen=True, slots=True)
class _Edit:
    """A site before and after it was changed; `differences` are lines, `others` sites with the same records."""

    former: Site | BrokenSite
    site: Site
    differences: tuple[str, ...]
    others: Sequence[str]


@command.command("edit")
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--group", metavar="GROUP", help="All sites of this group.")
@click.option("--name", "new_name", metavar="NAME", help="Give the site another name.")
@registration_options(new=False)
@click.option("--unasked", is_flag=True, help="OAI-PMH: do not ask the repository whether it has what is asked for.")
@click.option("--add-contact", metavar="EMAIL", multiple=True, help="One more contact. May be repeated.")
@click.option("--remove-contact", metavar="EMAIL", multiple=True, help="One contact less. May be repeated.")
@allow_duplicate_option
@click.pass_obj
def edit(
    invocation: Invocation,
    /,
    names: tuple[str, ...],
    group: str | None,
    new_name: str | None,
    unasked: bool,
    **options: Any,
) -> None:
    """Change a site, or several. Prints each value that changes, before and after.

    Several sites, or all of a group, are changed together: if one cannot be changed, none is.

    --contact replaces all contacts; --add-contact and --remove-contact add or remove one.

    An OAI-PMH repository is asked what it is, and whether it has the format and the set, if its base URL or one of
    these is changed.
    """
    harvester = invocation.harvester
    _require_not_past(options["datenextharvest"], harvester.today())
    with harvester.writing() as session:
        chosen = _chosen(session, names, group)
        if new_name is not None and len(chosen) > 1:
            raise click.UsageError("--name gives one site another name: name that site alone.")
        edits = [_edit_one(harvester, session, name, new_name, dict(options)) for name in chosen]
    for edited in edits:
        _print_edit(edited)
        if options["datenextharvest"] is not None:
            warn_of_far_date(edited.site, harvester.today())
    for edited in [] if unasked else edits:
        _check_repository(harvester, edited)


def _chosen(session: Session, names: Sequence[str], group: str | None) -> list[str]:
    """The sites that are named, and the sites of the group. Raises UsageError if there are none."""
    from metaharvest.sites.registry import read_sites

    if not names and group is None:
        raise click.UsageError("Name a site, or several, or --group with the name of a group.")
    sites = [site for site in read_sites(session) if isinstance(site, Site)]
    of_group = [site.name for site in sites if group is not None and group in site.options.groups]
    if group is not None and not of_group:
        raise click.UsageError(f"No site belongs to the group '{one_line(group, 60)}'.")
    return list(dict.fromkeys([*names, *of_group]))


def _edit_one(
    harvester: Harvester, session: Session, name: str, new_name: str | None, options: dict[str, Any]
) -> _Edit:
    """Change one site; the caller commits. Raises ScheduleError and UsageError."""
    from metaharvest.queries.sites import registered_site
    from metaharvest.sites.allowed import require_allowed
    from metaharvest.sites.duplicates import require_new_source, source_key
    from metaharvest.sites.registry import edit_site, find_site, read_sites

    add_contact, remove_contact = options.pop("add_contact"), options.pop("remove_contact")
    allow_duplicate = options.pop("allow_duplicate")
    former = find_site(session, name)
    if add_contact or remove_contact:
        options["contact_email"] = changed_contacts(options["contact_email"], former, add_contact, remove_contact)
    before = registered_site(session, name, harvester.today())
    give_origin(options, former, read_sites(session))
    changes = columns_of(options, former)
    if new_name is not None:
        changes["name"] = new_name
    if not changes:
        raise click.UsageError("Nothing to change: name at least one option.")
    site = edit_site(session, name, changes)
    require_allowed(harvester.settings, site, changes, former.name)
    if not allow_duplicate and source_key(former) != source_key(site):
        require_new_source(site, read_sites(session))
    after = registered_site(session, site.name, harvester.today())
    is_other = isinstance(former, Site) and _asked_for(former) != _asked_for(site)
    others = _of_the_same_records(site, read_sites(session)) if is_other else []
    return _Edit(former, site, tuple(_differences(before, after)), others)


def _print_edit(edited: _Edit) -> None:
    former, site = edited.former, edited.site
    if edited.differences:
        click.echo(f"Changed {site.name}: {_when(site)}.")
        for line in edited.differences:
            click.echo(clean(f"  {line}"))
    else:
        click.echo(f"Nothing was changed: {site.name} has these values already.")
    if _has_login(former.list_url) and not _has_login(site.list_url):
        click.echo("The user name and password in its former URL were not kept: the new URL needs its own, if any.")
    if isinstance(former, Site) and _files(former) != _files(site):
        click.echo(_AS_REPOSITORY if site.options.oai is not None else _AS_LIST)
    if edited.others:
        print_line(f"{_same_records(edited.others)} Records that {site.name} no longer asks for stay in the target.")


def _check_repository(harvester: Harvester, edited: _Edit) -> None:
    """Ask a repository whether it has what the site asks for now, if that has changed."""
    if not isinstance(edited.former, Site) or _wanted(edited.former) == _wanted(edited.site):
        return
    _, problems = _inspected(harvester, edited.site)
    for finding in problems:
        print_line(f"warning: {finding.message} {finding.remedy}", err=True)
    if problems:
        print_line(f"The next harvest of {edited.site.name} fails if that stays so.", err=True)


def _differences(before: Record, after: Record) -> Iterator[str]:
    """`every: 1 -> 2` for each value of the registration that has changed."""
    for label, value in _registration(before).items():
        changed = _registration(after).get(label)
        if _shown(value) != _shown(changed):
            yield f"{label.replace('_', ' ')}: {_shown(value)} -> {_shown(changed)}"


def _registration(site: Record) -> dict[str, object]:
    """The values of a registration. Each option of a repository is a value of its own."""
    derived = (*_NOT_REGISTERED, "frequency", "state", "options", "oai")
    values = {label: value for label, value in site.items() if label not in derived}
    return values | (_asked_values(site.get("oai")) or {f"oai_{label}": None for label in _OF_REPOSITORIES})


def _asked_values(asked: Record | None) -> dict[str, object]:
    """What is asked of a repository, for people: a site has one set, or none."""
    values = {"set" if label == "sets" else label: value for label, value in (asked or {}).items()}
    if asked:
        values["set"] = next(iter(asked["sets"]), None)
    return {f"oai_{label}": value for label, value in values.items()}


def _shown(value: object) -> str:
    if isinstance(value, (tuple, list)):
        value = ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return one_line(str(value), 500) if value not in (None, "") else "none"


def _asked_for(site: Site) -> tuple[object, ...]:
    """Which records a site asks its repository for, and what their documents are called; nothing of a harvest list."""
    oai = site.options.oai
    return () if oai is None else (oai.origin, oai.prefix, oai.set_spec, oai.begin, oai.until)


def _wanted(site: Site) -> tuple[object, ...]:
    """What a site asks a repository for, as far as that can be seen to be wrong; nothing of a harvest list."""
    oai = site.options.oai
    return () if oai is None else (site.list_url, oai.prefix, oai.set_spec, oai.post)


_AS_REPOSITORY = "All of its records are listed and judged again then."
_AS_LIST = "What was left out is judged again then; what the repository has stays until its revision is raised."
"""What becomes of documents that were harvested before, once other files of their site say what is done with them."""


def _has_login(url: str) -> bool:
    from metaharvest.config.field_types import url_parts

    parts = url_parts(url)
    return parts is not None and parts.username is not None


def _files(site: Site) -> tuple[Path | None, Path | None]:
    return site.options.filters, site.options.normalize


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
        "Those documents are those of a site that is registered no longer: the first site that publishes a higher "
        "revision of one takes it over; "
        "`metaharvest target transfer` gives one to a site at once."
    )


@command.command("confirm")
@click.argument("name")
@click.pass_obj
def confirm(invocation: Invocation, name: str) -> None:
    """Let the next harvest delete the documents that their repository says are deleted, however many they are."""
    from metaharvest.ledger.deletions import confirm_deletions
    from metaharvest.sites.registry import find_site

    with invocation.harvester.writing() as session:
        site = find_site(session, name)
        is_noted = isinstance(site, Site) and site.options.deletions is Deletions.NOTE
        number = 0 if is_noted else confirm_deletions(session, site.site_id)
    if is_noted:
        click.echo(f"Nothing is to be confirmed: deletions of {name} are only noted.")
        return
    if not number:
        click.echo(f"Nothing of {name} waits to be confirmed.")
        return
    documents = "1 document" if number == 1 else f"{number:,} documents"
    click.echo(f"Confirmed: the next harvest of {name} deletes {documents}.")


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
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def list_sites(
    invocation: Invocation,
    state: str | None,
    kind: str | None,
    group: str | None,
    failing: bool,
    overdue: bool,
    not_harvested_for: int | None,
    as_json: bool,
) -> None:
    """List the sites: how each stands, when it is due, who gets the reports.

    `last harvest` is the day of the last one that succeeded; `status` is how the last one ended, well or not.
    `trend` is how many documents failed in each of the last harvests, the newest last.

    \b
    Examples:
      metaharvest sites list --not-harvested-for 30
      metaharvest sites list --failing --kind oai-pmh
    """
    from metaharvest.queries.sites import SiteFilter, registered_sites

    if overdue and state not in (None, "overdue"):
        raise click.UsageError(f"A site that is {state} is not overdue: use one of --overdue and --state.")
    wanted = SiteFilter("overdue" if overdue else state, kind, group, failing, not_harvested_for)
    today = invocation.harvester.today()
    with invocation.harvester.reading() as session:
        known = registered_sites(session, today)
    sites = [_as_mapping(site) for site in known if wanted.takes(site, today)]
    if as_json:
        print_json(sites)
        return
    if known and not sites:
        click.echo("There is no such site.")
        return
    if not sites:
        click.echo("No site is registered yet. `metaharvest sites add NAME --list-url URL --contact EMAIL` adds one,")
        click.echo("`metaharvest sites add NAME --oai BASEURL` an OAI-PMH repository.")
        return
    rows = [{**site, **_in_words(site)} for site in sites]
    print_table(list(_SITES.values()), [[row[name] for name in _SITES] for row in rows])
    for site in sites:
        _print_problems(site)
        _print_failure(site)


@command.command("show")
@click.argument("name")
@wide_option
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
    registered |= _asked_values(registered.pop("oai"))
    print_fields({label.replace("_", " "): value for label, value in registered.items()})
    _print_harvests(invocation, site)
    _print_failure(site)
    _print_problems(site)


def _print_harvests(invocation: Invocation, site: Record) -> None:
    from metaharvest.queries.trends import status_in_words

    if not site["trend"]:
        click.echo("\nNo run has harvested it yet.")
        return
    click.echo("\nThe last harvests:")
    headings = ["run", "date", "status", "listed", "new", "updated", "unchanged", "failing", "warnings", "took"]
    shown = ("run_id", "harvest_date", "status", "listed", "inserted", "updated", "unchanged", "failing", "warnings")
    listed = [
        {**each, "status": status_in_words(each), "listed": "-" if each["listed"] is None else each["listed"]}
        for each in site["trend"]
    ]
    print_table(headings, [[*(each[name] for name in shown), _took(each["took_seconds"])] for each in listed])
    if site["failing"]:
        command = f"{invocation.start} documents --failing --site {shlex.quote(site['name'])}"
        failing = "1 document is" if site["failing"] == 1 else f"{site['failing']:,} documents are"
        print_line(f"{failing} failing, the first since {site['failing_since']}: {command}")


def _in_words(site: Record) -> Record:
    from metaharvest.queries.trends import in_words

    rehearsed = ", then rehearsed" if site["trend"] and site["trend"][-1]["rehearsal"] else ""
    return {
        "last_status": f"{site['last_status'] or 'none'}{rehearsed}",
        "failing": site["failing"] or "",
        "trend": in_words(site["trend"]),
        "took": _took(site["took_seconds"]),
    }


def _took(seconds: float | None) -> str:
    from metaharvest.reports.words import duration

    return "" if seconds is None else duration(seconds)


def _print_failure(site: Record) -> None:
    """Since when the site fails as a whole, and why."""
    if site["failed_since"] is not None and site["enabled"]:
        nights = "1 night" if site["failed_nights"] == 1 else f"{site['failed_nights']:,} nights"
        reason = (site["failure_reason"] or "no reason was noted").removeprefix(f"{site['name']}: ")
        print_line(f"{site['name']}: {site['last_status']} since {site['failed_since']} ({nights}): {reason}")


def _print_problems(site: Record) -> None:
    for problem in site["problems"]:
        print_line(problem)


def _require_not_past(next_harvest: date | None, today: date) -> None:
    """Raises UsageError for a day in the past: the site would be reported as overdue."""
    if next_harvest is not None and next_harvest < today:
        raise click.UsageError(f"--next: {next_harvest} is past; give today, {today}, or a later day.")


def _when(site: Site) -> str:
    from metaharvest.reports.words import frequency

    state = "" if site.enabled else "switched off; "
    next_harvest = site.next_harvest or "as soon as possible"
    return f"{state}next harvest {next_harvest}, then {frequency(site.frequency, site.unit)}"


def _as_mapping(site: Record) -> Record:
    """A site as it is printed: how often it is harvested in words, what it leaves to the settings."""
    from metaharvest.reports.words import frequency

    words = site["frequency"] if "options" in site else frequency(site["every"], site["unit"])
    return {**site, "frequency": words, "package_id_mismatch": site["package_id_mismatch"] or AS_SETTINGS}
