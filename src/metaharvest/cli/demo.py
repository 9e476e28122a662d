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

    from metaharvest.services.harvester import Harvester

_NIGHTS = {1: "the first harvest", 2: "a night with nothing new", 3: "sites have raised revisions and repaired errors"}


@click.command("demo")
@click.option("--nights", type=click.IntRange(1, 30), default=3, show_default=True, help="How many nights to play.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to put everything: a new or empty folder. Default: a new one in the temporary folder.",
)
@click.option("--serve", is_flag=True, help="Keep the sample sites up afterwards, until Ctrl-C, to try more commands.")
def command(nights: int, folder: Path | None, serve: bool) -> None:
    """Harvest a small network of sample sites, served on loopback: needs no configuration.

    It plays three nights: the first harvest, a night with nothing new, and one in which sites raised revisions and
    repaired errors. The last night is today. Everything is kept in a folder. With --serve the sample
    sites stay up, so that the folder's settings can be used for more harvests and rehearsals.
    """
    from metaharvest.cli.signals import stop_on_signal
    from metaharvest.demo.nights import new_installation, register_samples, write_pages
    from metaharvest.demo.samples import SampleNetwork

    folder = _empty_folder(folder)
    with new_installation(folder) as harvester:
        first_night = harvester.today() - timedelta(days=nights - 1)
        with SampleNetwork() as network:
            register_samples(harvester, network, first_night)
            for night in range(1, nights + 1):
                network.night = night
                click.secho(f"\nNight {night}: {_NIGHTS.get(night, 'and on it goes')}", bold=True)
                _harvest(harvester, first_night + timedelta(days=night - 1))
            pages = list(write_pages(harvester, folder / "html"))
            start = f"{called_as()} --config {shlex.quote(str(folder / 'metaharvest.toml'))}"
            _say_where(folder, pages, start)
            if not serve:
                click.echo("\nThe sample sites are no longer served; `demo --serve` keeps them up for more harvests.")
                return
            _say_what_to_try(start)
            with stop_on_signal("Stopped.") as stop:
                stop.wait()


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
    from metaharvest.queries.runs import run_record
    from metaharvest.services.runs import RunRequest

    with shown_progress() as progress:
        result = harvester.run(RunRequest(today), progress)
    with harvester.reading() as session:
        print_run(run_record(session, result.run_id))


def _say_what_to_try(start: str) -> None:
    click.echo(
        "\nThe sample sites are served until you press Ctrl-C. In another terminal, try:\n"
        f"  {start} run --force --dry-run     rehearses another night\n"
        f"  {start} run --site basalt-flats   harvests one site again\n"
        f"  {start} doctor                    says what is missing or overdue"
    )


def _say_where(folder: Path, pages: Sequence[Path], start: str) -> None:
    mail = shlex.quote(str(folder / "mail"))
    click.echo(
        f"\nEverything is in {folder}:\n"
        f"  mail/             {len(pages)} reports, as a mail program finds them (Maildir): mutt -f {mail}\n"
        f"  html/             the same reports for a browser; begin with {pages[-1].name if pages else 'any'}\n"
        f"  metaharvest.db    the journal and the documents (SQLite)\n"
        f"\nLook around:\n"
        f"  {start} runs\n"
        f"  {start} log --site basalt-flats\n"
        f"  {start} target list\n"
        "\nPublish it by OAI-PMH and on landing pages, at http://127.0.0.1:8000/oai, until you press Ctrl-C:\n"
        f"  {start} serve --public"
    )
