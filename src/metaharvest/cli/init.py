"""`metaharvest init`: writes a commented settings file if there is none, creates or upgrades the database."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from metaharvest.config.settings import Settings


@click.command("init")
@click.pass_obj
def command(invocation: Invocation) -> None:
    """Write a commented settings file where there is none, and create or upgrade the database.

    The file is the one named by --config, else metaharvest.toml here. What is there already stays as it is.
    """
    from metaharvest.config.settings import FILE_NAME, find_file, load

    path = invocation.config or find_file() or Path(FILE_NAME)
    wrote = _write_settings(path)
    click.echo(f"Wrote the settings file {path}." if wrote else f"The settings file {path} is already there.")
    created, upgraded = _prepare_database(load(path))
    if wrote or created:
        _say_what_next(invocation, path)
    elif not upgraded:
        click.echo("Nothing to do.")


def _write_settings(path: Path) -> bool:
    """Write the file, unless there is one; whether it was written. Raises SettingsError."""
    import os

    from metaharvest.config.files import PRIVATE, make_folder
    from metaharvest.config.paths import data_folder
    from metaharvest.errors import SettingsError

    template = (data_folder("templates") / "metaharvest.toml").read_bytes()
    try:
        make_folder(path.parent)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE), "wb") as file:
            file.write(template)
    except FileExistsError:
        if path.exists():
            return False
        raise SettingsError(f"The settings file {path} cannot be written: something else is in its place.") from None
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be written: {error.strerror}.") from error
    return True


def _prepare_database(settings: Settings) -> tuple[bool, bool]:
    """Create or upgrade the tables and say so; whether they were created, and whether they were upgraded."""
    from metaharvest.database.engine import SCHEMA_VERSION, open_database, run_lock, shown_database, upgrade

    with ExitStack() as stack:
        engine = open_database(settings)
        stack.callback(engine.dispose)
        before, shown = _version(engine), shown_database(engine)
        is_old = before is not None and before < SCHEMA_VERSION
        if is_old:
            stack.enter_context(run_lock(engine))
        upgrade(engine)
    if before is None:
        click.echo(f"Created the database {shown}.")
    elif is_old:
        click.echo(f"Upgraded the database {shown} from {before} to {SCHEMA_VERSION}.")
    else:
        click.echo(f"The database {shown} is already there and up to date.")
    return before is None, is_old


def _version(engine: Engine) -> str | None:
    """The migration that the database's tables are at; None if there is no database, or no table in it."""
    from metaharvest.database.engine import database_errors, schema_version

    if engine.dialect.name == "sqlite" and not Path(engine.url.database or "").exists():
        return None
    with database_errors(engine), engine.connect() as connection:
        return schema_version(connection)


def _say_what_next(invocation: Invocation, path: Path) -> None:
    start = invocation.start
    click.echo(
        f"\nWhat next:\n"
        f"  1. Fill in {path}: the name of your network, the administrators, how mail is sent.\n"
        f"  2. {start} sites add NAME --list-url URL --contact EMAIL\n"
        f"     or, for an OAI-PMH repository: {start} sites add NAME --oai BASEURL\n"
        f"  3. {start} doctor   tells what is still missing.\n"
        f"  4. {start} run      harvests; put it into cron for every night."
    )
