"""`metaharvest completion`: the lines for your shell that complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the lines for your shell that complete commands and options: put them into its start-up file.

    Example: metaharvest completion bash >> ~/.bashrc
    """
    from metaharvest.cli import cli

    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(cli, {}, "metaharvest", "_METAHARVEST_COMPLETE").source())
