"""`metaharvest target check`: whether targets answer, as whom, and what we may do there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from metaharvest.cli.doctor import print_checks
from metaharvest.cli.invocation import Invocation

if TYPE_CHECKING:
    from metaharvest.model import Site


@click.command("check")
@click.option("--target", "name", metavar="NAME", help="`target`, `embedded`, or a section [targets.NAME].")
@click.option("--site", metavar="NAME", help="As this site: its own target or login, where it has one.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def check(invocation: Invocation, name: str | None, site: str | None, as_json: bool) -> int:
    """Tell whether the target answers, as whom it knows us, and what we may do there. Writes nothing.

    Without options: the targets that the harvest uses, and the logins that sites have of their own.

    Exit codes: 0 all well, or warnings only; 1 there is a problem; 2 settings or usage.
    """
    from metaharvest.monitoring.target_checks import check_target, check_targets
    from metaharvest.sites.registry import read_sites

    targets = invocation.harvester.targets
    if name is None and site is None:
        with invocation.harvester.reading() as session:
            sites = read_sites(session)
        return print_checks(check_targets(targets, sites), as_json)
    registered = None if site is None else _registered(invocation, site)
    if name is not None:
        what, find = f"target {name}" if name != "target" else name, partial(targets.named, name)
    else:
        what, find = "target", partial(targets.of, site or "")
    if registered is not None:
        what = f"{what} as {registered.name}"
    find()  # a name that means no target is a mistake of the caller
    return print_checks(check_target(what, find, registered), as_json)


def _registered(invocation: Invocation, name: str) -> Site:
    """The site of this name. Raises ScheduleError if there is none, or its row is broken."""
    from metaharvest.errors import ScheduleError
    from metaharvest.sites.registry import find_site
    from metaharvest.sites.rows import BrokenSite

    with invocation.harvester.reading() as session:
        site = find_site(session, name)
    if isinstance(site, BrokenSite):
        raise ScheduleError(" ".join(finding.message for finding in site.findings))
    return site
