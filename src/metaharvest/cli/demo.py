"""`metaharvest demo`: the whole story with no configuration, on the sample sites, served on loopback."""

from __future__ import annotations

import shlex
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import called_as
from metaharvest.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metaharvest.app import Harvester

_NIGHTS = {1: "the first harvest", 2: "a night with nothing new", 3: "sites have raised revisions and repaired errors"}


@click.command("demo")
@click.option("--nights", type=click.IntRange(1, 30), default=3, show_default=True, help="How many nights to play.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to put everything: a new or empty folder. Default: a new one in the temporary folder.",
)
def command(nights: int, folder: Path | None) -> None:
    """Harvest a small network of sample sites, served on loopback: needs no configuration.

    It plays three nights: the first harvest, a night with nothing new, and one in which sites raised revisions and
    repaired errors. Everything is kept in a folder, to be looked at.
    """
    from metaharvest.demo.nights import new_installation, register_samples, write_pages
    from metaharvest.demo.samples import SampleNetwork

    folder = _empty_folder(folder)
    with new_installation(folder) as harvester:
        first_night = harvester.today()
        with SampleNetwork() as network:
            register_samples(harvester, network, first_night)
            for night in range(1, nights + 1):
                network.night = night
                click.secho(f"\nNight {night}: {_NIGHTS.get(night, 'and on it goes')}", bold=True)
                _harvest(harvester, first_night + timedelta(days=night - 1))
        pages = list(write_pages(harvester, folder / "html"))
    _say_where(folder, pages)


def _empty_folder(folder: Path | None) -> Path:
    """The folder, made if it is missing, or a new temporary one. Raises SettingsError if it cannot be used."""
    try:
        if folder is None:
            return Path(tempfile.mkdtemp(prefix="metaharvest-demo-"))
        folder.mkdir(parents=True, exist_ok=True)
        empty = not any(folder.iterdir())
    except OSError as error:
        raise SettingsError(
            f"The folder {folder or tempfile.tempdir} cannot be used: {error.strerror}. Name another one with --folder."
        ) from error
    if not empty:
        raise SettingsError(f"The folder {folder} is not empty: name a new one with --folder, or empty it.")
    return folder.resolve()


def _harvest(harvester: Harvester, today: date) -> None:
    from metaharvest.cli.progress import shown_progress
    from metaharvest.cli.runs import print_run
    from metaharvest.harvest.run import RunRequest
    from metaharvest.queries.runs import run_record

    with shown_progress() as progress:
        result = harvester.run(RunRequest(today), progress)
    with harvester.reading() as session:
        print_run(run_record(session, result.run_id))


def _say_where(folder: Path, pages: Sequence[Path]) -> None:
    mail = shlex.quote(str(folder / "mail"))
    start = f"{called_as()} --config {shlex.quote(str(folder / 'metaharvest.toml'))}"
    click.echo(
        f"\nEverything is in {folder}:\n"
        f"  mail/             {len(pages)} reports, as a mail program finds them (Maildir): mutt -f {mail}\n"
        f"  html/             the same reports for a browser; begin with {pages[-1].name if pages else 'any'}\n"
        f"  metaharvest.db    the journal and the documents (SQLite)\n"
        f"\nLook around:\n"
        f"  {start} runs\n"
        f"  {start} log --site basalt-flats\n"
        f"  {start} target list"
    )
