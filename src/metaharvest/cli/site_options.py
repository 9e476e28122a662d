"""The options of `sites add` and `sites edit`: what is registered of a site."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import click

from metaharvest.cli.invocation import day
from metaharvest.cli.printing import print_line
from metaharvest.model import Deletions, Level, ListMethod, Notify, Site, Unit, ValidationLevel
from metaharvest.text import one_line, shown_url

if TYPE_CHECKING:
    from datetime import date

    from metaharvest.model import Network, OaiOptions, SiteOptions
    from metaharvest.sites.rows import BrokenSite

Options = Mapping[str, Any]
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
AS_SETTINGS = "as-settings"
_NONE = "none"

_OWN = (
    "package_id_mismatch", "networks", "ca_file", "validation", "filters", "normalize", "deletions", "max_loss",
    "add_groups", "remove_groups",
)  # fmt: skip
_OAI = ("prefix", "set_spec", "begin", "until", "method", "full_every", "origin", "post")
"""What is kept in the column `options`; the other options of `add` and `edit` have the names of columns."""


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


def _groups(_context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The names of groups; None if the option was not given."""
    from metaharvest.sites.options import check_group

    try:
        return tuple(check_group(name.strip()) for name in names) or None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_SEVERAL_SETS = ". May be repeated: each set is a site of its own, called NAME-SPEC"


def _one_set(_context: click.Context, _parameter: click.Parameter, specs: tuple[str, ...]) -> str | None:
    """The set; None if the option was not given. Raises click.BadParameter for several."""
    if len(specs) > 1:
        raise click.BadParameter("a site has one set: register another site for each of the others, by `sites add`.")
    return next(iter(specs), None)


def _choice(values: Iterable[str], *more: str) -> click.Choice[str]:
    return click.Choice([*map(str, values), *more])


def registration_options(new: bool) -> Decorator:
    """The options that `add` and `edit` share; `new`: their help names what holds if they are not given."""

    def default(value: object) -> str:
        return f" [default: {value}]" if new else ""

    options = [*_schedule_options(default), *_own_options(default), *_oai_options(default, new=new)]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _schedule_options(default: Callable[[object], str]) -> list[Decorator]:
    """Where the list is, when it is harvested, and who is told."""
    return [
        click.option("--list-url", "documentlisturl", metavar="URL", help="Where the site's harvest list is."),
        click.option("--oai", "base_url", metavar="BASEURL", help="Or the base URL of an OAI-PMH repository."),
        click.option(
            "--contact",
            "contact_email",
            metavar="EMAILS",
            multiple=True,
            callback=lambda _context, _parameter, emails: ", ".join(emails) if emails else None,
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
            type=_choice(Level, AS_SETTINGS),
            help=f"What a packageId is that is not the docid.{default(AS_SETTINGS)}",
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
            "--validation",
            type=_choice(ValidationLevel, _NONE),
            help="How documents are checked: strict (well-formed), very-strict (by the schema of their format) or "
            "loose; `none`: as EML, or, in an OAI-PMH repository, strict.",
        ),
        click.option("--filters", metavar="FILE", help="Which documents are taken: a file of filters; or `none`."),
        click.option("--normalize", metavar="FILE", help="What is added to documents: a file of mappings; or `none`."),
        click.option(
            "--deletions",
            type=_choice(Deletions),
            help=f"What is done about a record that its repository says is deleted.{default(Deletions.TELL)}",
        ),
        click.option(
            "--max-loss",
            type=click.IntRange(0, 100),
            metavar="PERCENT",
            help="How many of its documents may be deleted in one harvest without being confirmed: 20 in any case, but "
            f"none with 0.{default(10)}",
        ),
        click.option(
            "--add-to-group",
            "add_groups",
            metavar="GROUP",
            multiple=True,
            callback=_groups,
            help="Add the site to this group: any name; `sites list --group` lists its sites. May be repeated.",
        ),
        click.option(
            "--remove-from-group",
            "remove_groups",
            metavar="GROUP",
            multiple=True,
            callback=_groups,
            help="Remove the site from this group. May be repeated.",
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


def _oai_options(default: Callable[[object], str], *, new: bool) -> list[Decorator]:
    """What is asked of an OAI-PMH repository."""
    return [
        click.option(
            "--prefix",
            metavar="PREFIX",
            help=f"OAI-PMH: the metadataPrefix of the format; `none`: oai_dc.{default('oai_dc')}",
        ),
        click.option(
            "--set",
            "sets" if new else "set_spec",
            metavar="SPEC",
            multiple=True,
            callback=None if new else _one_set,
            help=f"OAI-PMH: only the records of this set{_SEVERAL_SETS if new else '; `none`: of all sets'}.",
        ),
        click.option("--from", "begin", metavar="DATE", help="OAI-PMH: the earliest datestamp to ask for; or `none`."),
        click.option("--until", metavar="DATE", help="OAI-PMH: the latest datestamp to ask for; or `none`."),
        click.option(
            "--method",
            type=_choice(ListMethod),
            help=f"OAI-PMH: how records are had.{default(ListMethod.LIST_RECORDS)}",
        ),
        click.option(
            "--full-every",
            metavar="DAYS",
            help="OAI-PMH: list everything again after this number of days, not only changes; or `none`.",
        ),
        click.option("--post/--get", default=None, help="OAI-PMH: send requests as forms (POST), or as usual."),
        click.option(
            "--origin",
            metavar="NAME",
            help="OAI-PMH: the repository's name in document ids, which stays when its address changes; `none`: made "
            f"from the base URL.{default('made from the base URL')}",
        ),
    ]


allow_duplicate_option = click.option(
    "--allow-duplicate",
    is_flag=True,
    help="Register a list, or a set of a repository, that another site has: for sites with targets of their own.",
)


def changed_contacts(
    given: str | None, before: Site | BrokenSite, added: tuple[str, ...], removed: tuple[str, ...]
) -> str:
    """The contacts of a site with one more or less. Raises UsageError."""
    from metaharvest.config.field_types import check_email
    from metaharvest.sites.rows import split_addresses

    if given is not None:
        raise click.UsageError("--contact replaces all contacts: use it alone, or --add-contact and --remove-contact.")
    contacts = list(before.contacts)
    for address in split_addresses(", ".join(removed)):
        if address.casefold() not in (each.casefold() for each in contacts):
            known = ", ".join(contacts) or "none"
            raise click.UsageError(f"{one_line(address)} is no contact of {before.name}. Its contacts: {known}.")
        contacts = [each for each in contacts if each.casefold() != address.casefold()]
    for address in split_addresses(", ".join(added)):
        try:
            checked = check_email(address)
        except ValueError as error:
            raise click.UsageError(f"{error}.") from error
        if checked.casefold() not in (each.casefold() for each in contacts):
            contacts.append(checked)
    if not contacts:
        raise click.UsageError(f"{before.name} would have no contact left: add another one with --add-contact.")
    return ", ".join(contacts)


def columns_of(options: Options, before: Site | BrokenSite | None) -> dict[str, Any]:
    """The options that were given, by the columns that they stand for. Raises UsageError."""
    others = (*_OWN, *_OAI, "base_url")
    columns = {name: value for name, value in options.items() if value is not None and name not in others}
    for column in ("ldapdn", "ldappwd"):
        if columns.get(column) == _NONE:
            columns[column] = None
    is_oai = before is not None and isinstance(before, Site) and before.options.oai is not None
    if options["base_url"] is not None:
        if options["documentlisturl"] is not None:
            raise click.UsageError("--list-url is for a harvest list, --oai for a repository: use one of the two.")
        if before is not None and not is_oai:
            raise click.UsageError("The site has a harvest list. Register the repository as a site of its own.")
        columns |= {"documentlisturl": options["base_url"], "source_kind": "oai-pmh"}
    elif options["documentlisturl"] is not None:
        if is_oai:
            raise click.UsageError("The site is an OAI-PMH repository: give its new address with --oai.")
        _require_no_question(options["documentlisturl"])
    given = [name for name in _OAI if options[name] not in (None, ())]
    if given and options["base_url"] is None and not is_oai:
        option = {"set_spec": "set", "begin": "from"}.get(given[0], given[0]).replace("_", "-")
        raise click.UsageError(f"--{option} is for OAI-PMH repositories, which are registered with --oai BASEURL.")
    if given or options["base_url"] is not None or any(options[name] is not None for name in _OWN):
        columns["options"] = _site_options(options, before)
    return columns


def _require_no_question(list_url: str) -> None:
    """Raises UsageError for a request of OAI-PMH, such as `https://example.org/oai?verb=Identify`."""
    from metaharvest.config.field_types import url_parts
    from metaharvest.sources.oai_pmh.protocol import VERBS

    parts = url_parts(list_url.strip())
    if parts and (verb := dict(parse_qsl(parts.query)).get("verb")) in VERBS:
        base = shown_url(list_url.strip().partition("?")[0])
        raise click.UsageError(
            f"--list-url is for a harvest list, and this is a question to an OAI-PMH repository (verb={verb}): use "
            f"--oai {base} instead."
        )


def _site_options(options: Options, before: Site | BrokenSite | None) -> str | None:
    from metaharvest.model import SiteOptions
    from metaharvest.sites.options import options_text

    own = before.options if isinstance(before, Site) else SiteOptions()
    if options["package_id_mismatch"] is not None:
        chosen = options["package_id_mismatch"]
        own = replace(own, package_id_mismatch=None if chosen == AS_SETTINGS else Level(chosen))
    if options["networks"] is not None:
        own = replace(own, allow_networks=options["networks"])
    if options["validation"] is not None:
        chosen = options["validation"]
        own = replace(own, validation=None if chosen == _NONE else ValidationLevel(chosen))
    if options["deletions"] is not None:
        own = replace(own, deletions=Deletions(options["deletions"]))
    if options["max_loss"] is not None:
        own = replace(own, max_loss=options["max_loss"])
    if options["add_groups"] is not None or options["remove_groups"] is not None:
        groups = {*own.groups, *(options["add_groups"] or ())} - set(options["remove_groups"] or ())
        own = replace(own, groups=tuple(sorted(groups)))
    files: dict[str, Any] = {
        name: None if options[name] in ("", _NONE) else Path(options[name])
        for name in ("ca_file", "filters", "normalize")
        if options[name] is not None
    }
    own = replace(own, **files)
    if options["base_url"] is not None or own.oai is not None:
        own = replace(own, oai=_oai(options, own))
    return options_text(own)


def give_origin(options: dict[str, Any], former: Site | BrokenSite | None, sites: Iterable[Site | BrokenSite]) -> None:
    """Choose an origin where one is needed and none is given, or `none`: one that no other repository has."""
    from metaharvest.sites.origins import origin_for, origins

    url = options["base_url"] or (former.list_url if former else "")
    is_there = isinstance(former, Site) and former.options.oai is not None
    is_new = options["base_url"] is not None and not is_there
    if options["origin"] in ("", _NONE) or (is_new and options["origin"] is None):
        given = origins(each for each in sites if former is None or each.name != former.name)
        options["origin"] = origin_for(url, given)


def _oai(options: Options, own: SiteOptions) -> OaiOptions:
    from metaharvest.model import OaiOptions

    default = OaiOptions(options["origin"] or "")  # see give_origin
    oai = own.oai or default
    texts: dict[str, Any] = {
        name: getattr(default, name) if options[name] in ("", _NONE) else options[name]
        for name in ("origin", "prefix", "set_spec", "begin", "until")
        if options[name] is not None
    }
    oai = replace(oai, **texts)
    if options["post"] is not None:
        oai = replace(oai, post=options["post"])
    if options["method"] is not None:
        oai = replace(oai, method=ListMethod(options["method"]))
    if options["full_every"] is not None:
        oai = replace(oai, full_every=_days(options["full_every"]))
    return oai


def _days(text: str) -> int | None:
    if text == _NONE:
        return None
    try:
        days = int(text)
    except ValueError:
        days = 0
    if not 1 <= days <= 9999:
        raise click.UsageError(f"--full-every is {text}; give a number of days, such as 30, or `none`.")
    return days


def warn_of_far_date(site: Site, today: date) -> None:
    """Warn if the next harvest is later than the site's frequency can make it: the year may be mistyped."""
    from metaharvest.sites.clock import is_too_far

    if site.next_harvest is not None and is_too_far(site, today):
        days = (site.next_harvest - today).days
        command = f"metaharvest sites edit {shlex.quote(site.name)} --next DATE"
        print_line(
            f"warning: {site.name}: the next harvest, {site.next_harvest}, is {days:,} days from today, "
            f"which is {today}. If the date is wrong, correct it: `{command}`.",
            err=True,
        )
