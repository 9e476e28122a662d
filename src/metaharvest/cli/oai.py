"""`metaharvest oai`: shows the responses of OAI-PMH repositories, rehearses their harvest, and finds others."""

from __future__ import annotations

import click

from metaharvest.cli.oai_friends import friends
from metaharvest.cli.oai_look import formats, get, identify, list_, same, sets
from metaharvest.cli.oai_validate import validate


@click.group("oai")
def command() -> None:
    """Look at OAI-PMH repositories. No settings and no database are needed.

    \b
    Example: metaharvest oai validate https://repository.example.org/oai
    """


for each in (identify, formats, sets, list_, get, same, validate, friends):
    command.add_command(each)
