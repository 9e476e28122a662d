"""`metaharvest doctor`: tells in plain words what is missing, wrong or overdue; usable by monitoring.

What is looked at is in settings_checks.py and database_checks.py; here is how it is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from metaharvest.cli.app import App, print_json

if TYPE_CHECKING:
    from metaharvest.monitoring.settings_checks import Check


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--send-test-mail", is_flag=True, help="Send a test message to the administrators.")
@click.pass_obj
def command(app: App, as_json: bool, send_test_mail: bool) -> int:
    """Tell what is missing, wrong or overdue.

    Exit codes: 0 all well, or warnings only; 1 there is a problem. Nothing is changed, and no secret is shown.
    """
    checks = []
    for check in _checks(app, send_test_mail):
        checks.append(check)
        if not as_json:
            _print(check)
    problems = [check for check in checks if check.state == "PROBLEM"]
    warnings = [check for check in checks if check.state == "WARNING"]
    if as_json:
        rows = [{"check": check.name, "state": check.state, "message": check.message} for check in checks]
        print_json({"state": _overall(checks), "checks": rows})
    else:
        click.echo(f"\n{_conclusion(len(problems), len(warnings))}")
    return 1 if problems else 0


def _checks(app: App, send_test_mail: bool) -> Iterator[Check]:
    from metaharvest.errors import SettingsError
    from metaharvest.monitoring import database_checks, settings_checks

    try:
        settings = app.settings
    except SettingsError as error:
        yield from (settings_checks.problem("settings", sentence) for sentence in error.problems)
        return
    yield from settings_checks.checks(settings)
    yield from database_checks.checks(settings, app.now())
    if send_test_mail:
        yield from settings_checks.send_test_mail(settings, app.now())


def _print(check: Check) -> None:
    from metaharvest.text import one_line

    colour = {"OK": "green", "WARNING": "yellow", "PROBLEM": "red"}[check.state]
    click.echo(f"{click.style(f'{check.state:<7}', fg=colour)}  {check.name}: {one_line(check.message, 2000)}")


def _overall(checks: list[Check]) -> str:
    states = {check.state for check in checks}
    return next(state for state in ("PROBLEM", "WARNING", "OK") if state in states)


def _conclusion(problems: int, warnings: int) -> str:
    from metaharvest.reports.words import counted

    if problems:
        return f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}."
    return f"No problem, {counted(warnings, 'warning')}." if warnings else "All is well."
