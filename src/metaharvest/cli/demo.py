"""`metaharvest demo`: the whole story with no configuration, on the sample sites, served on loopback."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import Invocation, called_as
from metaharvest.cli.printing import print_line
from metaharvest.cli.runs import print_run
from metaharvest.cli.workers import print_jobs
from metaharvest.errors import SettingsError

if TYPE_CHECKING:
    from metaharvest.demo.samples import SampleNetwork

_HOST = "127.0.0.1"
BROKER = "amqp://guest:guest@127.0.0.1:5672//"
_WORD = "saltation"
"""A word in the full text of one paper of the library."""
_WORKERS = ("worker-1", "worker-2")
_NIGHTS = {1: "the first harvest", 2: "a night with nothing new", 3: "sites have raised revisions and repaired errors"}


@click.command("demo")
@click.option("--nights", type=click.IntRange(1, 30), default=3, show_default=True, help="How many nights to play.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to put everything: a new or empty folder. Default: a new one in the temporary folder.",
)
@click.option("--workers", is_flag=True, help="Let two workers harvest the last night; RabbitMQ must be there.")
@click.option("--serve", is_flag=True, help="Serve the console and the sample sites afterwards, until Ctrl-C.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="The port of the console, with --serve; 0: any free port.",
)
def command(_invocation: Invocation, nights: int, folder: Path | None, workers: bool, serve: bool, port: int) -> None:
    """Harvest a small network of sample sites, served on loopback: needs no configuration.

    It plays three nights: the first harvest, a night with nothing new, and one in which sites raised revisions and
    repaired errors. The last night is today. Then it harvests a library of papers, and finds one by a word of its full
    text. Everything is kept in a folder. With --serve the sample sites stay up, and
    so do the console and a daemon: the buttons of the console, and the commands with the folder's settings, harvest the
    sites again. With --workers, two worker processes and a coordinator harvest the last night, over RabbitMQ on this
    machine.
    """
    from metaharvest.cli.serve import require_libraries, serve_until_signal
    from metaharvest.cli.signals import stop_on_signal
    from metaharvest.demo.nights import new_installation, register_samples, write_pages
    from metaharvest.demo.samples import SampleNetwork

    if serve:
        require_libraries()
        _require_port(port)
    folder = _empty_folder(folder)
    url = f"http://{_HOST}:{port}" if serve and port else ""
    with new_installation(folder, url, BROKER if workers else "") as harvester:
        if workers:
            from metaharvest.workers.broker import application, wake

            wake(application(harvester))  # with a broker that cannot be used, nothing begins
        first_night = harvester.today() - timedelta(days=nights - 1)
        with SampleNetwork() as network:
            register_samples(harvester, network, first_night)
            for night in range(1, nights + 1):
                network.night = night
                click.secho(f"\nNight {night}: {_NIGHTS.get(night, 'and on it goes')}", bold=True)
                if workers and night == nights:
                    _harvest_by_workers(harvester, folder)
                else:
                    _harvest(harvester, first_night + timedelta(days=night - 1))
            pages = list(write_pages(harvester, folder / "html"))
            if not workers:
                _show_pipeline(harvester, network)
            start = f"{called_as()} --config {shlex.quote(str(folder / 'metaharvest.toml'))}"
            _say_where(folder, pages, start)
            if not serve:
                _say_how_to_serve(start)
                return
            _say_what_to_try(start)
            with stop_on_signal("Stopped."), _started(folder, "daemon", "daemon", "--at", "03:00"):
                serve_until_signal(harvester, _HOST, port, with_console=True)


def _require_port(port: int) -> None:
    """Raises SettingsError if the port cannot be used, before the three nights are played."""
    try:
        socket.create_server((_HOST, port)).close()
    except OSError as error:
        # Python adds the address to the words of the system.
        reason = str(error.strerror).partition(" (while")[0]
        raise SettingsError(f"Port {port} cannot be used: {reason}. Choose another one with --port.") from error


@contextmanager
def _started(folder: Path, name: str, *words: str) -> Iterator[None]:
    """A process of this program with the folder's settings, whose output is in NAME.log; it ends with the context."""
    command = [sys.executable, "-m", "metaharvest", "--config", str(folder / "metaharvest.toml"), *words]
    with (
        (folder / f"{name}.log").open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


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


def _harvest(harvester: services.harvester.Harvester, today: date, *names: str) -> None:
    from metaharvest.cli.progress import shown_progress

    with shown_progress() as progress:
        result = harvester.run(services.runs.RunRequest(today, names), progress)
    print_run(harvester.read(queries.runs.run_record, result.run_id))


def _show_pipeline(harvester: services.harvester.Harvester, network: SampleNetwork) -> None:
    """Harvest the library of papers, run the pipeline, and find a paper by a word of its full text."""
    from metaharvest.cli.pipeline import print_totals
    from metaharvest.demo.nights import register_library
    from metaharvest.demo.samples import LIBRARY

    click.secho("\nThe pipeline: from a record to a paper that can be found", bold=True)
    try:
        services.pipeline.require_libraries()
    except SettingsError as error:
        click.echo(f"It is left out. {error}")
        return
    register_library(harvester, network)
    _harvest(harvester, harvester.today(), LIBRARY.name)
    print_totals(services.pipeline.run(harvester))
    search = services.search.OutputSearch(harvester)
    for found in search.search(services.search.Question(_WORD)).outputs:
        document_id = found["document_id"]
        click.echo(f"\nThe word {_WORD} is in the full text of: {found['title']} ({found['year']})")
        for pair in harvester.read(queries.works.work_of, document_id).pairs:
            other = pair.second if pair.first.document_id == document_id else pair.first
            print_line(f"{pair.answer}: {other.title} ({other.year}). {pair.reason}", indent=2)
        for each in search.recommend(document_id, 2):
            print_line(f"related: {each['title']} ({each['year']}). Both have: {', '.join(each['shares'])}", indent=2)


def _harvest_by_workers(harvester: services.harvester.Harvester, folder: Path) -> None:
    """Let worker processes harvest the sites that are due today, and show their jobs."""
    with ExitStack() as stack:
        for name in _WORKERS:
            stack.enter_context(_started(folder, name, "worker", "--name", name))
        run_id = services.jobs.coordinate(harvester).run_id or 0
        click.echo(f"The workers {' and '.join(_WORKERS)} harvest.")
        while harvester.read(queries.jobs.is_under_way):
            time.sleep(0.5)
    print_jobs(harvester.read(queries.jobs.jobs, queries.jobs.JobFilter(run_id=run_id), 50))
    print_run(harvester.read(queries.runs.run_record, run_id))


def _say_what_to_try(start: str) -> None:
    click.echo(
        "\nThe sample sites and the console are served until you press Ctrl-C. The buttons of the console harvest the "
        "sites again.\nIn another terminal, try:\n"
        f"  {start} run --force --dry-run     rehearses another night\n"
        f"  {start} run --site basalt-flats   harvests one site again\n"
        f"  {start} doctor                    says what is missing or overdue\n"
    )


def _say_how_to_serve(start: str) -> None:
    click.echo(
        f"\nOpen the console on all of this, at http://{_HOST}:8000/console/, until you press Ctrl-C; the command\n"
        "prints a link that signs you in. It also publishes the documents, by OAI-PMH and on landing pages:\n"
        f"  {start} serve\n"
        "\nThe sample sites are no longer served; `demo --serve` keeps them up, and the console harvests them again."
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
        f"  {start} target list"
    )
