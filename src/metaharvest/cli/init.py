"""`metaharvest init`: writes a commented settings file if there is none, creates or upgrades the database."""

from __future__ import annotations

from pathlib import Path

import click

from metaharvest.cli.invocation import Invocation


@click.command("init")
@click.pass_obj
def command(invocation: Invocation) -> None:
    """Write a commented settings file if there is none, and create or upgrade the database.

    The file is the one named by --config, else metaharvest.toml here. An existing file stays as it is.
    """
    from metaharvest.config.settings import FILE_NAME, find_file, load
    from metaharvest.services import installation

    path = invocation.config or find_file() or Path(FILE_NAME)
    wrote = installation.write_settings(path)
    click.echo(f"Wrote the settings file {path}." if wrote else f"The settings file {path} is already there.")
    settings = load(path)
    database = installation.prepare_database(settings)
    if database.is_new:
        click.echo(f"Created the database {database.shown}.")
    elif database.is_upgraded:
        click.echo(f"Upgraded the database {database.shown} from {database.former} to {database.version}.")
    else:
        click.echo(f"The database {database.shown} is already there and up to date.")
    if wrote or database.is_new:
        _say_what_next(invocation, path, has_workers=bool(settings.workers.broker))
    elif not database.is_upgraded:
        click.echo("Nothing to do.")


def _say_what_next(invocation: Invocation, path: Path, *, has_workers: bool) -> None:
    start = invocation.start
    last = (
        "coordinate   lets workers harvest; put it into cron for every minute."
        if has_workers
        else "run      harvests; put it into cron for every night."
    )
    click.echo(
        f"\nWhat next:\n"
        f"  1. Fill in {path}: the name of your network, the administrators, how mail is sent.\n"
        f"  2. {start} sites add NAME --list-url URL --contact EMAIL\n"
        f"     or, for an OAI-PMH repository: {start} sites add NAME --oai BASEURL\n"
        f"  3. {start} doctor   says what is still missing.\n"
        f"  4. {start} {last}"
    )
