"""What the commands that read share: sessions, runs and sites by number or name, times as they are shown.

Imported inside functions only, so that `metaharvest --help` does not wait for the database's libraries.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.cli.app import App
from metaharvest.database.engine import database_errors, readers, writers
from metaharvest.database.models import HarvestRun, HarvestSiteRun
from metaharvest.errors import MetaharvestError
from metaharvest.sites.registry import read_sites


@contextmanager
def reading(app: App) -> Iterator[Session]:
    """A session to read with. Raises DatabaseUnavailable."""
    with database_errors(app.engine), readers(app.engine)() as session:
        yield session


@contextmanager
def writing(app: App) -> Iterator[Session]:
    """A transaction, committed at the end. Raises DatabaseUnavailable."""
    with database_errors(app.engine), writers(app.engine).begin() as session:
        yield session


def newest_run(session: Session) -> int | None:
    """The number of the newest run; None where there has been none."""
    return session.scalar(select(func.max(HarvestRun.run_id)))


def find_run(session: Session, run_id: int) -> HarvestRun:
    """The run of this number. Raises MetaharvestError where there is none."""
    run = session.get(HarvestRun, run_id) if 0 <= run_id < 2**63 else None
    if run is None:
        raise MetaharvestError(f"There is no run {run_id}. `metaharvest runs` lists those there are.")
    return run


def find_site_run(session: Session, site_run_id: int) -> HarvestSiteRun:
    """The site run of this number. Raises MetaharvestError where there is none."""
    site_run = session.get(HarvestSiteRun, site_run_id) if 0 <= site_run_id < 2**63 else None
    if site_run is None:
        raise MetaharvestError(
            f"There is no site run {site_run_id}. `metaharvest runs show RUN_ID` lists those of a run."
        )
    return site_run


def newest_site_run(session: Session, name: str) -> HarvestSiteRun:
    """The newest site run of the site of this name, registered or not any more. Raises MetaharvestError."""
    statement = (
        select(HarvestSiteRun)
        .where(HarvestSiteRun.site_name == name)
        .order_by(HarvestSiteRun.site_run_id.desc())
        .limit(1)
    )
    site_run = session.scalar(statement)
    if site_run is not None:
        return site_run
    known = sorted(set(session.scalars(select(HarvestSiteRun.site_name).distinct())))
    raise MetaharvestError(
        f"No run has harvested a site named '{name}'. Harvested were: {', '.join(known) or 'none yet'}."
    )


def site_names(session: Session) -> dict[int, str]:
    """The registered sites' names by number."""
    return {site.site_id: site.name for site in read_sites(session)}


def stamp(moment: datetime | None) -> str:
    """A timestamp as tables show it, in UTC: `2026-11-20 03:00`."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
