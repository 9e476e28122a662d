"""`metaharvest doctor`: reports in plain words what is missing, wrong or overdue; usable by monitoring."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.printing import print_json
from metaharvest.text import counted, one_line

if TYPE_CHECKING:
    from metaharvest.services.installation import Check

_COLOURS = {"OK": "green", "WARNING": "yellow", "PROBLEM": "red"}
"""The words by state, the gravest last."""


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--send-test-mail", is_flag=True, help="Send a test message to the administrators.")
@click.pass_obj
def command(invocation: Invocation, as_json: bool, send_test_mail: bool) -> int:
    """Report what is missing, wrong or overdue.

    Exit codes: 0 all well, or warnings only; 1 there is a problem. Nothing is changed, and no secret is shown.
    """
    from metaharvest.services.harvester import utc_now
    from metaharvest.services.installation import examine

    return print_checks(examine(invocation.config, utc_now, test_mail=send_test_mail), as_json)


def print_checks(checks: Iterable[Check], as_json: bool) -> int:
    """Print each check at once, and then the overall result; returns the exit code."""
    states = []
    rows = []
    for check in checks:
        states.append(check.state)
        rows.append({"check": check.name, "state": check.state, "message": check.message})
        if not as_json:
            _print(check)
    if as_json:
        gravest = next((state for state in reversed(_COLOURS) if state in states), "OK")
        print_json({"state": gravest, "checks": rows})
    else:
        click.echo(f"\n{_conclusion(states.count('PROBLEM'), states.count('WARNING'))}")
    return 1 if "PROBLEM" in states else 0


def _print(check: Check) -> None:
    state = click.style(f"{check.state:<7}", fg=_COLOURS[check.state])
    click.echo(f"{state}  {check.name}: {one_line(check.message, 2000)}")


def _conclusion(problems: int, warnings: int) -> str:
    if problems:
        return f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}."
    return f"No problem, {counted(warnings, 'warning')}." if warnings else "All is well."
