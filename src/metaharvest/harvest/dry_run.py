"""Rehearsals: the same run as tonight's, on a throw-away journal, with a target that keeps nothing.

What is written goes into a temporary folder and is deleted with it: no table, document, report or date of the real
harvest changes. Who runs on it, and reads it, is `metaharvest.app.Harvester`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from sqlalchemy import URL, Engine, insert, or_, select, text
from sqlalchemy.exc import DBAPIError

from metaharvest.config.secret_references import NOT_SHOWN, is_reference
from metaharvest.config.settings import Settings
from metaharvest.database.dialects import reason_of
from metaharvest.database.engine import Sessions, create_tables, open_url, readers, writers
from metaharvest.database.models import HarvestDocument
from metaharvest.errors import DatabaseUnavailable, NotAHarvestList
from metaharvest.fetch.local_files import is_file_url
from metaharvest.model import Site
from metaharvest.sites.registry import add_site, edit_site, find_site, raw_rows, read_sites, remove_site
from metaharvest.sites.rows import check_list_url
from metaharvest.sources.harvest_list.source import FileListSource
from metaharvest.sources.lookup import SourceFor
from metaharvest.targets.base import Target
from metaharvest.targets.lookup import Targets
from metaharvest.targets.nothing import ForgettingSession, NoTarget
from metaharvest.targets.owners import session_of
from metaharvest.text import shown_url

_COPIED_AT_ONCE = 1000
_LONGEST_NAME = 80


class RehearsalTarget:
    """Knows what the real target holds (nothing, if there is none), and forgets what it is given."""

    uploads_at_once = 1

    def __init__(self, real: Target | None, sessions: Sessions) -> None:
        self._real = real or NoTarget()
        self._is_real = real is not None
        self._sessions = sessions
        self.check = self._real.check
        self.held = self._real.held
        self.revisions = self._real.revisions
        self.content = self._real.content

    def describe(self) -> str:
        """The real target, with a word that nothing was written there."""
        if not self._is_real:
            return "no repository: a rehearsal, which took every document for new"
        return f"{self._real.describe()} (a rehearsal: nothing was written)"

    @contextmanager
    def session(self, site: Site | None) -> Iterator[ForgettingSession]:
        """A session that asks the real target, logged in as the site, and forgets what it is given."""
        with session_of(self._real, site, self._sessions) as real:
            yield ForgettingSession(real)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a rehearsal runs on: settings whose mail stays in a temporary folder, a database, the targets."""

    settings: Settings
    engine: Engine
    targets: Targets


@contextmanager
def rehearsal(settings: Settings, given: Target | None, real: Engine | None) -> Iterator[Rehearsal]:
    """All that a rehearsal needs; with `real`, the schedule of that database and what waits to be tried again.

    `given` stands in for the targets of the settings. Without `real` there are none.

    Raises DatabaseUnavailable, which names the folder for temporary files, if there is no room for it.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="metaharvest-", ignore_cleanup_errors=True))
            engine = open_url(URL.create("sqlite", database=str(Path(folder) / "rehearsal.db")))
            stack.callback(engine.dispose)
            create_tables(engine)
            if real is not None:
                _copy(real, engine)
        except (DBAPIError, OSError) as error:
            raise _no_room(reason_of(error)) from error
        mail = settings.mail.model_copy(update={"backend": "maildir", "folder": Path(folder) / "mail"})
        reports = settings.reports.model_copy(update={"admin": "mail"})
        # People wait for a rehearsal: they are shown the first failure.
        http = settings.http.model_copy(update={"retries": 0})
        quiet = settings.model_copy(update={"mail": mail, "reports": reports, "http": http})
        try:
            yield Rehearsal(quiet, engine, _targets(settings, given, real, engine))
        except DatabaseUnavailable as error:
            if folder not in str(error):
                raise
            raise _no_room(reason_of(error.__cause__ or error)) from error


def _targets(settings: Settings, given: Target | None, real: Engine | None, scratch: Engine) -> Targets:
    if real is None:
        return Targets(settings, scratch, RehearsalTarget(None, readers(scratch)))
    sessions = readers(real)
    return Targets(settings, real, given, lambda target: RehearsalTarget(target, sessions))


def _no_room(reason: str) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"The temporary files of a rehearsal cannot be written in {tempfile.gettempdir()}: {reason}. "
        "Make room there, or have TMPDIR name another folder."
    )


@contextmanager
def rehearsed_site(scratch: Rehearsal, harvest_list: str, site_name: str | None) -> Iterator[str]:
    """The name of the site as which a list is to be rehearsed. Afterwards the schedule is again as it really stands."""
    with readers(scratch.engine)() as session:
        before = {str(row["site_schedule_id"]): row for row in raw_rows(session)}
    name = _site_to_rehearse(scratch, harvest_list, site_name)
    yield name
    with writers(scratch.engine).begin() as session:
        row = before.get(str(find_site(session, name).site_id))
        if row is None:
            remove_site(session, name)
        else:
            session.execute(_RESTORED, {key: row[key] for key in ("site_schedule_id", "documentlisturl", "enabled")})


_RESTORED = text(
    "UPDATE harvest_site_schedule SET documentlisturl = :documentlisturl, enabled = :enabled "
    "WHERE site_schedule_id = :site_schedule_id"
)


def _site_to_rehearse(scratch: Rehearsal, harvest_list: str, site_name: str | None) -> str:
    """Make sure that the schedule has the site as which a list is to be rehearsed, switched on; its name.

    That is the site of this name; without one, the site with this list URL; without one, a new site. Raises
    NotAHarvestList if the list is no URL that may be harvested, and no file; ScheduleError for an unknown name.
    """
    url = list_url_of(harvest_list)
    with writers(scratch.engine).begin() as session:
        sites = read_sites(session)
        registered = (site.name for site in sites if isinstance(site, Site) and site.list_url == url)
        name = site_name or next(registered, None)
        if name is not None:
            find_site(session, name)
            return edit_site(session, name, {"enabled": True} | ({"documentlisturl": url} if url else {})).name
        if url and is_file_url(url):
            raise NotAHarvestList(
                "A file: URL is harvested only for a site to which the settings allow it: name the site with --site; "
                "or give the file's name, without file:."
            )
        administrators = scratch.settings.harvester.administrators
        new = {
            "name": _unused_name(harvest_list, {site.name for site in sites}),
            "documentlisturl": url or "http://localhost/rehearsal",
            "contact_email": administrators[0] if administrators else "contact@localhost.localdomain",
        }
        return add_site(session, new).name


def list_url_of(harvest_list: str) -> str | None:
    """The list's URL; None if it is in a file. Raises NotAHarvestList."""
    if not harvest_list:
        raise NotAHarvestList("Name the URL of a harvest list, or a file.")
    if not _is_url(harvest_list):
        return None
    try:
        check_list_url(harvest_list)
    except ValueError as error:
        raise NotAHarvestList(f"{error}.".replace("the list", "The list", 1)) from None
    return harvest_list


def list_source(harvest_list: str) -> SourceFor | None:
    """The source of a list that is in a file; None if it is at a URL."""
    if _is_url(harvest_list):
        return None
    return lambda site, fetcher: FileListSource(Path(harvest_list), site, fetcher)


def _is_url(harvest_list: str) -> bool:
    return "://" in harvest_list or is_file_url(harvest_list)


def _unused_name(harvest_list: str, used: set[str]) -> str:
    name = shown_url(harvest_list).partition("://")[2].partition("/")[0] if _is_url(harvest_list) else ""
    name = name or Path(harvest_list).name
    name = "".join(c for c in name if c.isprintable())[:_LONGEST_NAME] or "rehearsal"
    return name if name not in used else f"{name} (rehearsal)"


def _copy(real: Engine, scratch: Engine) -> None:
    """Copy the schedule as it stands, broken rows too, and the ledger's rows of what failed."""
    failed = select(HarvestDocument.__table__).where(
        or_(HarvestDocument.next_attempt.is_not(None), HarvestDocument.failing_since.is_not(None))
    )
    with readers(real)() as session, scratch.begin() as connection:
        for row in raw_rows(session):
            columns = ", ".join(row)
            insertion = text(f"INSERT INTO harvest_site_schedule ({columns}) VALUES (:{', :'.join(row)})")
            plain = {name: value.isoformat() if isinstance(value, date) else value for name, value in row.items()}
            if not is_reference(plain["ldappwd"]):
                plain["ldappwd"] = NOT_SHOWN
            connection.execute(insertion, plain)
        rows = session.execute(failed.execution_options(yield_per=_COPIED_AT_ONCE)).mappings()
        for chunk in rows.partitions(_COPIED_AT_ONCE):
            connection.execute(insert(HarvestDocument), [dict(row) for row in chunk])
