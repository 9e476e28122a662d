"""The options of `sites add` and `sites edit`: the registered values of a site."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import Decorator, day, networks_of, one_of, parsed, with_options
from metaharvest.cli.printing import print_line
from metaharvest.model import Deletions, FullText, Level, ListMethod, Network, Notify, Site, Unit, ValidationLevel
from metaharvest.model.kinds import AS_SETTINGS

LOST_LOGIN = "The user name and password in its former URL were not kept: the new URL needs its own, if any."
_NONE = "none"
_REMOVABLE = (
    "ldap_name", "ldap_password", "ca_file", "validation", "filters", "normalize", "prefix", "set_spec", "begin",
    "until", "origin",
)  # fmt: skip
_REMOVED_BY = {
    **dict.fromkeys(_REMOVABLE, (_NONE, "")),
    "full_every": (_NONE,),
    "package_id_mismatch": (AS_SETTINGS,),
    "full_text": (AS_SETTINGS,),
}
"""The values that can be removed, and the words that remove them."""

_TYPES: Mapping[str, Callable[[str], object]] = {
    "unit": Unit,
    "notify": Notify,
    "package_id_mismatch": Level,
    "validation": ValidationLevel,
    "deletions": Deletions,
    "full_text": FullText,
    "method": ListMethod,
    "ca_file": Path,
    "filters": Path,
    "normalize": Path,
}


def _networks(values: tuple[str, ...]) -> tuple[Network, ...] | None:
    """The networks; None if the option was not given, an empty tuple for `none`. Raises ValueError."""
    parts = [part for value in values for part in value.replace(";", ",").split(",") if part.strip()]
    if [part.strip().lower() for part in parts] == [_NONE]:
        return ()
    return networks_of(parts) or None


def _groups(names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The names of groups; None if the option was not given. Raises ValueError."""
    return tuple(services.sites.check_group(name.strip()) for name in names) or None


def _days(text: str) -> int | str:
    """The number of days, or `none`. Raises UsageError."""
    if text == _NONE:
        return text
    try:
        days = int(text)
    except ValueError:
        days = 0
    if not 1 <= days <= 9999:
        raise click.UsageError(f"--full-every is {text}; give a number of days, such as 30, or `none`.")
    return days


_SEVERAL_SETS = ". May be repeated: each set is a site of its own, called NAME-SPEC"
_one_set = one_of("a site has one set: register another site for each of the others, by `sites add`.")


def _choice(values: Iterable[str], *more: str) -> click.Choice[str]:
    return click.Choice([*map(str, values), *more])


def registration_options(new: bool) -> Decorator:
    """The options that `add` and `edit` share; `new`: their help names the defaults."""

    def default(value: object) -> str:
        return f" [default: {value}]" if new else ""

    return with_options(
        # The place of the list, the times of its harvests, and the recipients of reports.
        click.option("--list-url", metavar="URL", help="Where the site's harvest list is."),
        click.option("--oai", "base_url", metavar="BASEURL", help="Or the base URL of an OAI-PMH repository."),
        click.option(
            "--contact",
            "contacts",
            metavar="EMAILS",
            multiple=True,
            callback=parsed(lambda emails: emails or None),
            help="Who gets the reports; several with commas between them, or by repeating the option.",
        ),
        click.option(
            "--every",
            type=click.IntRange(1, 99),
            metavar="N",
            help=f"Harvest every N units.{default(1)}",
        ),
        click.option("--unit", type=_choice(Unit), help=f"The unit of --every.{default('days')}"),
        click.option(
            "--next", "next_harvest", metavar="YYYY-MM-DD", callback=day, help=f"The next harvest.{default('today')}"
        ),
        click.option(
            "--public/--not-public",
            default=None,
            help="Publish the documents of the site with `serve` and `export dataset`, or keep them out of both."
            f"{default('public')}",
        ),
        click.option("--notify", type=_choice(Notify), help=f"When the contacts get a report.{default('always')}"),
        # A site's own values in place of the settings.
        click.option(
            "--package-id-mismatch",
            type=_choice(Level, AS_SETTINGS),
            help=f"What a packageId is that is not the docid.{default(AS_SETTINGS)}",
        ),
        click.option(
            "--allow-network",
            "allow_networks",
            metavar="CIDR",
            multiple=True,
            callback=parsed(_networks),
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
            help=f"What happens to a record that its repository reports as deleted.{default(Deletions.DELETE)}",
        ),
        click.option(
            "--max-loss",
            type=click.IntRange(0, 100),
            metavar="PERCENT",
            help="How many of its documents may be deleted in one harvest without being confirmed: 20 in any case, but "
            f"none with 0.{default(10)}",
        ),
        click.option(
            "--full-text",
            type=_choice(FullText, AS_SETTINGS),
            help="What the pipeline does with the files of its outputs: keep them, keep only their text, or look for "
            f"none.{default(AS_SETTINGS)}",
        ),
        click.option(
            "--add-to-group",
            "add_groups",
            metavar="GROUP",
            multiple=True,
            callback=parsed(_groups),
            help="Add the site to this group: any name; `sites list --group` lists its sites. May be repeated.",
        ),
        click.option(
            "--remove-from-group",
            "remove_groups",
            metavar="GROUP",
            multiple=True,
            callback=parsed(_groups),
            help="Remove the site from this group. May be repeated.",
        ),
        click.option(
            "--ldapdn",
            "ldap_name",
            metavar="DN",
            help="The site's login at the target, if it has one of its own; or `none`.",
        ),
        click.option(
            "--ldappwd",
            "ldap_password",
            metavar="REFERENCE",
            help="Where its password is: env:NAME, file:PATH or keyring:SERVICE/USERNAME; or `none`.",
        ),
        # The requests to a source repository.
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
            callback=parsed(_days),
            help="OAI-PMH: list everything again after this number of days, not only changes; or `none`.",
        ),
        click.option("--post/--get", default=None, help="OAI-PMH: send requests as forms (POST), or as usual."),
        click.option(
            "--origin",
            metavar="NAME",
            help="OAI-PMH: the repository's name in document ids, which stays when its address changes; `none`: made "
            f"from the base URL.{default('made from the base URL')}",
        ),
    )


allow_duplicate_option = click.option(
    "--allow-duplicate",
    is_flag=True,
    help="Register a list, or a set of a repository, that another site has: for sites with targets of their own.",
)


def values_of(options: Mapping[str, Any]) -> services.sites.SiteValues:
    """The given options, as values of a site."""
    given: dict[str, Any] = {}
    for name, value in options.items():
        if value in _REMOVED_BY.get(name, ()):
            given[name] = None
        elif value is not None:
            given[name] = _TYPES[name](value) if name in _TYPES else value
    return services.sites.SiteValues(**given)


def warn_of_far_date(site: Site, today: date) -> None:
    """Warn if the next harvest is later than the site's frequency can make it: the year may be mistyped."""
    if site.next_harvest is not None and services.sites.is_too_far(site, today):
        days = (site.next_harvest - today).days
        command = f"metaharvest sites edit {shlex.quote(site.name)} --next DATE"
        print_line(
            f"warning: {site.name}: the next harvest, {site.next_harvest}, is {days:,} days from today, "
            f"which is {today}. If the date is wrong, correct it: `{command}`.",
            err=True,
        )
