"""`metaharvest check`: a rehearsal for site contacts: what would tomorrow's report say?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.app import App, print_json
from metaharvest.errors import DatabaseError
from metaharvest.fetch.local_files import is_file_url
from metaharvest.text import clean, shown_url

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session

    from metaharvest.harvest.dry_run import Stage
    from metaharvest.harvest.run import RunResult, SourceFor


@click.command("check")
@click.argument("harvest_list", metavar="URL-or-FILE")
@click.option(
    "--site", "as_site", metavar="NAME", help="Rehearse as this registered site (default: the one of the URL)."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--csv", "as_csv", is_flag=True, help="The table of documents, as CSV on stdout.")
@click.pass_obj
def command(app: App, harvest_list: str, as_site: str | None, as_json: bool, as_csv: bool) -> int:
    """Rehearse the harvest of a list, at its URL or in a file: what would tomorrow's report say?

    Every document is fetched and checked as at night; nothing is written, and no database is needed. Where there is
    one, it says what the repository has already, and which settings the site has.

    Exit codes: 0 all is well; 1 the list cannot be read, or documents have errors; 2 settings or usage.
    """
    from metaharvest.cli.progress import shown_progress
    from metaharvest.cli.summary import failed_as_a_whole, has_document_errors
    from metaharvest.database.engine import readers
    from metaharvest.harvest.dry_run import stage
    from metaharvest.harvest.run import RunRequest, run_once

    if not harvest_list:
        raise click.UsageError("Name the URL of a harvest list, or a file.")
    if _is_url(harvest_list):
        _require_list_url(harvest_list)
    if as_json and as_csv:
        raise click.UsageError("--json and --csv are two ways to print the same: use one of the two.")
    real = _database(app)
    with stage(app.settings, app.target if real else None, real) as play:
        name = _prepare_site(app, play, harvest_list, as_site)
        source = _source(harvest_list)
        with shown_progress() as progress:
            request = RunRequest(app.today(), (name,))
            ended = run_once(play.settings, play.engine, play.target, request, app.now, progress, source)
        with readers(play.engine)() as session:
            _tell(app, play, session, ended, as_json, as_csv)
            bad = failed_as_a_whole(session, ended.run_id) or has_document_errors(session, ended.run_id)
            return 1 if bad else 0


def _database(app: App) -> Engine | None:
    """The real database where there is one; a rehearsal does without."""
    try:
        return app.engine
    except DatabaseError as error:
        click.echo(clean(f"Rehearsing without a database, so every document counts as new. ({error})"), err=True)
        return None


def _prepare_site(app: App, play: Stage, harvest_list: str, as_site: str | None) -> str:
    """Put the site to rehearse on the stage: the registered one of this name or URL, or a new one; its name."""
    from metaharvest.database.engine import writers
    from metaharvest.model import Site
    from metaharvest.sites.registry import add_site, edit_site, find_site, read_sites

    url = harvest_list if _is_url(harvest_list) else None
    with writers(play.engine).begin() as session:
        registered = [site for site in read_sites(session) if isinstance(site, Site)]
        name = as_site or next((site.name for site in registered if site.list_url == url), None)
        if name is not None:
            changes: dict[str, object] = {"enabled": True}
            find_site(session, name)
            return edit_site(session, name, changes | ({"documentlisturl": url} if url else {})).name
        if url and is_file_url(url):
            raise click.UsageError(
                "A file: URL is harvested only for a site to which the settings allow it: name the site with --site; "
                "or give the file's name, without file:."
            )
        administrators = app.settings.harvester.administrators
        new = {
            "name": _unused_name(harvest_list, {site.name for site in read_sites(session)}),
            "documentlisturl": url or "http://localhost/rehearsal",
            "contact_email": administrators[0] if administrators else "contact@localhost.localdomain",
        }
        return add_site(session, new).name


def _unused_name(harvest_list: str, used: set[str]) -> str:
    name = shown_url(harvest_list).partition("://")[2].partition("/")[0] if _is_url(harvest_list) else ""
    name = name or Path(harvest_list).name
    name = "".join(c for c in name if c.isprintable())[:80] or "rehearsal"
    return name if name not in used else f"{name} (rehearsal)"


def _is_url(harvest_list: str) -> bool:
    return "://" in harvest_list or is_file_url(harvest_list)


def _require_list_url(url: str) -> None:
    from metaharvest.sites.registry import check_list_url

    try:
        check_list_url(url)
    except ValueError as error:
        raise click.UsageError(f"{error}.".replace("the list", "The list", 1)) from None


def _source(harvest_list: str) -> SourceFor:
    from metaharvest.sources.base import source_for
    from metaharvest.sources.harvest_list.source import FileListSource

    if _is_url(harvest_list):
        return source_for
    return lambda site, fetcher: FileListSource(Path(harvest_list), site, fetcher)


def _tell(app: App, play: Stage, session: Session, ended: RunResult, as_json: bool, as_csv: bool) -> None:
    from metaharvest import reports
    from metaharvest.cli.summary import findings_as_json, run_as_json, site_runs

    site_run_id = site_runs(session, ended.run_id)[0].site_run_id
    if as_json:
        print_json({**run_as_json(session, ended.run_id), "findings": findings_as_json(session, ended.run_id)})
    elif as_csv:
        for chunk in reports.documents_csv(session, site_run_id):
            click.echo(chunk, nl=False)
    else:
        report = reports.site_report(session, site_run_id, play.settings, play.target.describe(), app.now())
        click.echo(clean(f"{report.subject}\n\n{report.text}"))
        click.echo("This was a rehearsal: nothing was written, no mail was sent. --csv prints the table.")
