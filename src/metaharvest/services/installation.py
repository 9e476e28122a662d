"""The installation itself: its settings file, its database, its dates, the addresses of persons, its health."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from metaharvest.config.field_types import check_email
from metaharvest.config.files import PRIVATE, make_folder
from metaharvest.config.paths import data_folder
from metaharvest.config.settings import Settings
from metaharvest.database.copying import CopiedTable
from metaharvest.database.copying import copy_database as copy_into
from metaharvest.database.engine import (
    SCHEMA_VERSION,
    database_errors,
    open_database,
    run_lock,
    schema_version,
    shown_database,
    upgrade,
)
from metaharvest.database.scrubbing import scrub
from metaharvest.errors import RequestError, SettingsError
from metaharvest.journal import erasure, repaired_dates
from metaharvest.journal.erasure import Forgotten
from metaharvest.monitoring.check import Check
from metaharvest.monitoring.doctor import examine
from metaharvest.services.harvester import Harvester

__all__ = ["Check", "CopiedTable", "examine"]


def write_settings(path: Path) -> bool:
    """Write a commented settings file, unless there is one; true if it was written. Raises SettingsError.

    It has a new token_key.
    """
    template = (data_folder("templates") / "metaharvest.toml").read_bytes()
    template = template.replace(b'token_key = ""', f'token_key = "{secrets.token_urlsafe(32)}"'.encode())
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


@dataclass(frozen=True, slots=True)
class PreparedDatabase:
    """A usable database, in a form for people; `former` is the earlier version of its tables, if it had any."""

    shown: str
    version: str
    former: str | None

    @property
    def is_new(self) -> bool:
        """True if its tables were created now."""
        return self.former is None

    @property
    def is_upgraded(self) -> bool:
        """True if its tables were older."""
        return self.former is not None and self.former < self.version


def prepare_database(settings: Settings) -> PreparedDatabase:
    """Create or upgrade the tables of the database. Raises SettingsError, DatabaseError, LockHeld."""
    with ExitStack() as stack:
        engine = open_database(settings)
        stack.callback(engine.dispose)
        prepared = PreparedDatabase(shown_database(engine), SCHEMA_VERSION, _version(engine))
        if prepared.is_upgraded:
            stack.enter_context(run_lock(engine))
        upgrade(engine)
    return prepared


def _version(engine: Engine) -> str | None:
    """The migration of the database's tables; None if there is no database, or no table in it."""
    if engine.dialect.name == "sqlite" and not Path(engine.url.database or "").exists():
        return None
    with database_errors(engine), engine.connect() as connection:
        return schema_version(connection)


def repair_dates(harvester: Harvester) -> dict[str, int]:
    """Move dates that a wrong clock left in the future to today, under the run lock; the number of rows of each kind.

    Raises LockHeld.
    """
    with run_lock(harvester.engine), harvester.writing() as session:
        return repaired_dates.repair_dates(session, harvester.now(), harvester.today())


def copy_database(
    harvester: Harvester, url: str, password: str = "", report: Callable[[CopiedTable], None] = lambda table: None
) -> list[CopiedTable]:
    """Copy everything into another, empty database, whose password is a secret reference; the copied tables.

    An interrupted copy continues. Raises the errors of `database.copying.copy_database`, SettingsError.
    """
    target = open_database(harvester.settings.with_database(url, password))
    try:
        return copy_into(harvester.engine, target, report)
    finally:
        target.dispose()


def checked_address(text: str) -> str:
    """An email address. Raises RequestError."""
    try:
        return check_email(text.strip())
    except ValueError as error:
        raise RequestError(f"{error}.") from error


def forget_address(harvester: Harvester, address: str, start: str = "metaharvest") -> tuple[Forgotten, list[str]]:
    """Remove an address from everything that is stored, under the run lock; the changes, and where it may remain.

    Raises ScheduleError, LockHeld. `start` is the beginning of a command line.
    """
    with run_lock(harvester.engine):
        with harvester.writing() as session:
            done = erasure.forget_address(session, address, start)
        stays = scrub(harvester.engine)
    return done, [*_elsewhere(harvester.settings, address), *([stays] if stays else [])]


def _elsewhere(settings: Settings, address: str) -> Iterator[str]:
    """The places where an address is, or may be, that no command of this program changes: a sentence each."""
    own = settings.harvester.administrators
    if address.casefold() in (each.casefold() for each in own):
        yield f"Still in the settings: take {address} out of administrators in [harvester], or it gets the next report."
    if address.casefold() in settings.mail.sender.casefold():
        yield "Still in the settings: sender in [mail]."
    if settings.mail.backend == "maildir":
        yield f"Not changed: the mail folder {settings.path(settings.mail.folder)}."
    yield (
        "Not changed: mails that were sent, backups, log files of the administrator's report, and documents, which may "
        "name people: `target withdraw DOCUMENT --erase` removes one."
    )
