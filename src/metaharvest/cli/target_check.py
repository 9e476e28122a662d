"""`metaharvest target check`: the state of targets, our identity and our rights there."""

from __future__ import annotations

import click

from metaharvest.cli.doctor import print_checks
from metaharvest.cli.invocation import Invocation


@click.command("check")
@click.option("--target", "name", metavar="NAME", help="`target`, `embedded`, or a section [targets.NAME].")
@click.option("--site", metavar="NAME", help="As this site: its own target or login, where it has one.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def check(invocation: Invocation, name: str | None, site: str | None, as_json: bool) -> int:
    """Check if the target answers, and show our identity and our rights there. Writes nothing.

    Without options: the targets that the harvest uses, and the logins that sites have of their own.

    Exit codes: 0 all well, or warnings only; 1 there is a problem; 2 settings or usage.
    """
    from metaharvest.services import targets

    return print_checks(targets.check(invocation.harvester, name, site), as_json)
