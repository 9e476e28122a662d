"""`metaharvest list`: makes harvest lists, changes, checks and compares them; needs no settings and no database."""

from __future__ import annotations

import click

from metaharvest.cli.list_build import build
from metaharvest.cli.list_edit import add, bump, remove
from metaharvest.cli.list_look import diff, validate


@click.group("list")
def command() -> None:
    """Make harvest lists, change, check and compare them. No settings and no database are needed.

    \b
    Example: metaharvest list build /srv/www/eml --base-url https://www.example.org/eml/ --write
    """


for each in (build, add, remove, bump, validate, diff):
    command.add_command(each)
