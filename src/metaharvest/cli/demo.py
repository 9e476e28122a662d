"""`metaharvest demo`: the whole story with no configuration, on the sample sites, served on loopback."""

from __future__ import annotations

import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.app import App
from metaharvest.errors import SettingsError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from metaharvest.config.settings import Settings
    from metaharvest.demo.samples import SampleNetwork

_SETTINGS = """\
# The settings of `metaharvest demo`. The sample sites are served only while it runs.
[harvester]
name = "Riverine Ecology Network"
administrators = ["steward@example.org"]

[mail]
backend = "maildir"
folder = "mail"
sender = "harvester@example.org"

[http]
contact_url = "https://example.org/harvester"
allow_networks = ["127.0.0.0/8"]
"""

_NIGHTS = {
    1: "the first harvest",
    2: "a night with nothing new",
    3: "sites have raised revisions and repaired errors",
}


@click.command("demo")
@click.option("--nights", type=click.IntRange(1, 30), default=3, show_default=True, help="How many nights to play.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to put everything: a new or empty folder. Default: a new one in the temporary folder.",
)
@click.pass_obj
def command(app: App, nights: int, folder: Path | None) -> int:
    """Harvest a small network of sample sites, served on loopback: needs no configuration.

    It plays three nights: the first harvest, a night with nothing new, and one in which sites raised revisions and
    repaired errors. Everything is kept in a folder, to be looked at.
    """
    from metaharvest.config.settings import load
    from metaharvest.database.engine import open_database, upgrade
    from metaharvest.demo.samples import SampleNetwork

    folder = _scratch(folder)
    (folder / "metaharvest.toml").write_text(_SETTINGS, encoding="utf-8")
    settings = load(folder / "metaharvest.toml", {})
    engine = open_database(settings)
    upgrade(engine)
    today = app.now().date()
    with SampleNetwork() as network:
        _register(engine, network, today)
        for night in range(1, nights + 1):
            network.night = night
            click.secho(f"\nNight {night}: {_NIGHTS.get(night, 'and on it goes')}", bold=True)
            _harvest(app, settings, engine, today + timedelta(days=night - 1))
    pages = _pages(engine, folder)
    engine.dispose()
    _say_where(folder, pages)
    return 0


def _scratch(folder: Path | None) -> Path:
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


def _register(engine: Engine, network: SampleNetwork, today: date) -> None:
    from metaharvest.database.engine import writers
    from metaharvest.demo.samples import SAMPLE_SITES
    from metaharvest.sites.registry import add_site

    with writers(engine).begin() as session:
        for site in SAMPLE_SITES:
            offset = site.next_offset_days
            add_site(
                session,
                {
                    "name": site.name,
                    "documentlisturl": network.list_url(site.name),
                    "contact_email": site.contact,
                    "updatefrequency": site.frequency,
                    "unit": site.unit.value,
                    "datenextharvest": None if offset is None else today + timedelta(days=offset),
                },
            )


def _harvest(app: App, settings: Settings, engine: Engine, today: date) -> None:
    from metaharvest.cli.progress import shown_progress
    from metaharvest.cli.summary import print_run
    from metaharvest.database.engine import readers
    from metaharvest.harvest.run import RunRequest, run_once
    from metaharvest.targets.embedded import EmbeddedTarget

    with shown_progress() as progress:
        target = EmbeddedTarget(readers(engine))
        ended = run_once(settings, engine, target, RunRequest(today), app.now, progress)
    with readers(engine)() as session:
        print_run(session, ended.run_id)


def _pages(engine: Engine, folder: Path) -> list[Path]:
    """The HTML part of every report as a file that a browser opens."""
    from email import message_from_bytes, policy

    from sqlalchemy import select

    from metaharvest.database.engine import readers
    from metaharvest.database.models import HarvestRun, HarvestSiteRun, ReportOutbox

    statement = (
        select(ReportOutbox, HarvestRun.harvest_date, HarvestSiteRun.site_name)
        .join(HarvestRun, HarvestRun.run_id == ReportOutbox.run_id)
        .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == ReportOutbox.site_run_id)
        .order_by(ReportOutbox.report_id)
    )
    pages = []
    (folder / "html").mkdir()
    with readers(engine)() as session:
        for report, day, site in session.execute(statement):
            body = message_from_bytes(report.content, policy=policy.default).get_body(("html",))
            page = folder / "html" / f"{day}-{site or 'administrator'}.html"
            page.write_text(body.get_content().replace("\r\n", "\n") if body else "", encoding="utf-8")
            pages.append(page)
    return pages


def _say_where(folder: Path, pages: list[Path]) -> None:
    config = folder / "metaharvest.toml"
    click.echo(
        f"\nEverything is in {folder}:\n"
        f"  mail/             {len(pages)} reports, as a mail program finds them (Maildir): mutt -f {folder / 'mail'}\n"
        f"  html/             the same reports for a browser; begin with {pages[-1].name if pages else 'any'}\n"
        f"  metaharvest.db    the journal and the documents (SQLite)\n"
        f"\nLook around:\n"
        f"  metaharvest --config {config} runs\n"
        f"  metaharvest --config {config} log --site basalt-flats\n"
        f"  metaharvest --config {config} target list"
    )
