"""An example for the help of every command that has none in its own text."""

from __future__ import annotations

import click

EXAMPLES = {
    "demo": "metaharvest demo",
    "init": "metaharvest init",
    "sites": "metaharvest sites list",
    "sites add": "metaharvest sites add Alder --list-url https://alder.example.org/list.xml --contact im@example.org",
    "sites list": "metaharvest sites list --json",
    "sites show": 'metaharvest sites show "Alder Creek"',
    "sites edit": 'metaharvest sites edit "Alder Creek" --every 2 --unit weeks',
    "sites enable": 'metaharvest sites enable "Alder Creek"',
    "sites disable": 'metaharvest sites disable "Alder Creek"',
    "sites harvest": 'metaharvest sites harvest "Alder Creek"',
    "sites skip": 'metaharvest sites skip "Alder Creek"',
    "sites remove": 'metaharvest sites remove "Alder Creek"',
    "sites import-metacat": "metaharvest sites import-metacat --csv harvest_site_schedule.csv --dry-run",
    "sites confirm": 'metaharvest sites confirm "Alder Creek"',
    "run": 'metaharvest run --site "Alder Creek" --dry-run',
    "check": "metaharvest check https://alder.example.org/list.xml",
    "runs": "metaharvest runs --limit 7",
    "runs show": "metaharvest runs show 12",
    "runs now": "metaharvest runs now",
    "runs stop": 'metaharvest runs stop --site "Alder Creek"',
    "runs remove": "metaharvest runs remove 12",
    "requests cancel": "metaharvest requests cancel 3",
    "registrations show": "metaharvest registrations show 3",
    "registrations accept": "metaharvest registrations accept 3",
    "registrations refuse": 'metaharvest registrations refuse 3 --reason "The site is registered already."',
    "registrations mail": "metaharvest registrations mail 3",
    "reports": "metaharvest reports --undelivered",
    "reports show": "metaharvest reports show 12",
    "reports deliver": "metaharvest reports deliver",
    "target": "metaharvest target list",
    "target list": "metaharvest target list --json",
    "target show": "metaharvest target show knb-lter-gce.109",
    "target get": "metaharvest target get knb-lter-gce.109.6 -o document.xml",
    "target check": "metaharvest target check --json",
    "target copy": "metaharvest target copy embedded target --dry-run",
    "target rebuild": "metaharvest target rebuild",
    "pipeline run": "metaharvest pipeline run --stage cleaning",
    "pipeline failures": "metaharvest pipeline failures --stage full-text",
    "pipeline rebuild-index": "metaharvest pipeline rebuild-index",
    "pipeline retry": "metaharvest pipeline retry full-text",
    "works": "metaharvest works look",
    "database": "metaharvest database copy --to sqlite:///copy.db",
    "database repair-dates": "metaharvest database repair-dates",
    "doctor": "metaharvest doctor --send-test-mail",
}
"""The words of a command -> an example of a command line."""


def add_examples(command: click.Command, words: str) -> None:
    """Add examples to the help of the command with these words, and of all its own commands."""
    if words in EXAMPLES and "Example" not in (command.help or ""):
        command.epilog = f"Example: {EXAMPLES[words]}"
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            add_examples(each, f"{words} {name}")
