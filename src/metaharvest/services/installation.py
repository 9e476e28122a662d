"""The installation itself: its settings file, its database, its dates, the addresses of persons, its health, its facts.

The facts are for the operator: the settings with the origin of each value, versions, the database.
"""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import BaseModel
from sqlalchemy import Engine, inspect

from metaharvest import __version__
from metaharvest.accounts.audit import Decision
from metaharvest.config.field_types import check_email
from metaharvest.config.files import PRIVATE, make_folder
from metaharvest.config.paths import data_folder
from metaharvest.config.secret_references import NOT_SHOWN, is_reference
from metaharvest.config.settings import SECTIONS, Settings, load
from metaharvest.database.copying import CopiedTable
from metaharvest.database.copying import copy_database as copy_into
from metaharvest.database.dialects import bare_version, scrub, size_in_bytes
from metaharvest.database.engine import (
    SCHEMA_VERSION,
    database_errors,
    open_database,
    run_lock,
    schema_version,
    shown_database,
    upgrade,
    writers,
)
from metaharvest.errors import LockHeld, SettingsError, value_errors
from metaharvest.jobs.claims import busy_workers
from metaharvest.journal import erasure, repaired_dates
from metaharvest.journal.erasure import Forgotten
from metaharvest.model.values import frozen
from metaharvest.monitoring import Check, problem
from metaharvest.monitoring.database_checks import check_database
from metaharvest.monitoring.settings_checks import check_settings, send_test_mail
from metaharvest.services.accounts import forget_account
from metaharvest.services.harvester import Harvester
from metaharvest.sites.registrations import store as registrations
from metaharvest.text import one_line, shown_url

__all__ = ["Check", "CopiedTable"]

_SECRET = ("password", "secret", "token", "ping_url", "broker")
"""Words in the names of settings whose values are secrets."""

_LIBRARIES = (
    "sqlalchemy", "alembic", "lxml", "pycurl", "pydantic", "jinja2", "starlette", "uvicorn", "psycopg", "pymysql",
    "pyarrow", "authlib",
)  # fmt: skip


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


@frozen
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
        former = None
        if engine.dialect.name != "sqlite" or Path(engine.url.database or "").exists():
            with database_errors(engine), engine.connect() as connection:
                former = schema_version(connection)
        prepared = PreparedDatabase(shown_database(engine), SCHEMA_VERSION, former)
        if prepared.is_upgraded:
            stack.enter_context(run_lock(engine, beside_workers=True))
            _require_idle_workers(engine)
        upgrade(engine)
    return prepared


def _require_idle_workers(engine: Engine) -> None:
    """Raises LockHeld if a worker works on a job. Tables of an older program may know no jobs."""
    if not inspect(engine).has_table("job"):
        return
    with database_errors(engine), writers(engine).begin() as session:
        if names := busy_workers(session):
            raise LockHeld(
                f"Workers are at work: {', '.join(names)}. Stop them first; each ends at its next checkpoint, and what "
                "is left waits for the new program."
            )


def repair_dates(harvester: Harvester) -> dict[str, int]:
    """Move dates that a wrong clock left in the future to today, under the run lock; the number of rows of each kind.

    Raises LockHeld.
    """
    with run_lock(harvester.engine), harvester.writing() as session:
        done = repaired_dates.repair_dates(session, harvester.now(), harvester.today())
        if done:
            harvester.audit(session, Decision("dates.repair", "installation", "dates in the future", after=done))
        return done


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
    with value_errors():
        return check_email(text.strip())


def forget_address(harvester: Harvester, address: str, start: str = "metaharvest") -> tuple[Forgotten, list[str]]:
    """Remove an address from everything that is stored, under the run lock; the changes, and where it may remain.

    Raises ScheduleError, LockHeld, RequestError for the only operator. `start` is the beginning of a command line.
    """
    with run_lock(harvester.engine):
        with harvester.writing() as session:
            accounts = forget_account(session, address)
            done = erasure.forget_address(session, address, start)
            requests = registrations.forget(session, address)
            done = replace(done, rows=done.rows + accounts + requests)
            # The audit does not name the person either.
            harvester.audit(session, Decision("contacts.forget", "person", "(address removed)", after=asdict(done)))
        stays = scrub(harvester.engine)
    return done, [*_elsewhere(harvester.settings, address), *([stays] if stays else [])]


def _elsewhere(settings: Settings, address: str) -> Iterator[str]:
    """The places where an address is, or may be, that no command of this program changes: a sentence each."""
    own = settings.harvester.administrators
    if address.casefold() in (each.casefold() for each in own):
        yield f"Still in the settings: take {address} out of administrators in [harvester], or it gets the next report."
    if address.casefold() == settings.mail.sender.casefold():
        yield "Still in the settings: sender in [mail]."
    if settings.mail.backend == "maildir":
        yield f"Not changed: the mail folder {settings.path(settings.mail.folder)}."
    yield (
        "Not changed: mails that were sent, backups, log files of the administrator's report, and documents, which may "
        "name people: `target withdraw DOCUMENT --erase` removes one."
    )


def examine(config: Path | None, clock: Callable[[], datetime], *, test_mail: bool = False) -> Iterator[Check]:
    """Every check of the installation with this settings file, one by one. Only a test mail changes anything."""
    try:
        settings = load(config)
    except SettingsError as error:
        yield from (problem("settings", sentence) for sentence in error.problems)
        return
    yield from check_settings(settings)
    yield from check_database(settings, clock())
    if test_mail:
        yield from send_test_mail(settings, clock())


# -- the facts for its operator


@frozen
class ShownSetting:
    """A setting as it may be shown: secrets are masked. `origin` is the place where its value is from."""

    section: str
    key: str
    value: str
    origin: str


@frozen
class NamedVersion:
    """The version of the program, of Python, of a library; empty if it is not installed."""

    name: str
    version: str


@frozen
class DatabaseFacts:
    """The database: its address without password, the version of its server and of its tables, its size in bytes."""

    address: str
    kind: str
    server: str
    tables: str
    size: int


@frozen
class InstallationFacts:
    """All facts. `targets` are the kinds of the targets by their names in the settings."""

    file: str
    settings: Sequence[ShownSetting]
    versions: Sequence[NamedVersion]
    database: DatabaseFacts
    targets: Sequence[tuple[str, str]]


def facts_about(harvester: Harvester) -> InstallationFacts:
    """The facts. Raises DatabaseError."""
    settings = harvester.settings
    with harvester.reading() as session:
        connection = session.connection()
        database = DatabaseFacts(
            shown_database(harvester.engine),
            connection.dialect.name,
            one_line(bare_version(connection), 200),
            SCHEMA_VERSION,
            size_in_bytes(connection),
        )
    file = str(settings.file.absolute()) if settings.file else ""
    return InstallationFacts(
        file, list(shown_settings(settings)), list(_versions()), database, list(_targets(settings))
    )


def shown_settings(settings: Settings) -> Iterator[ShownSetting]:
    """All settings of the sections, and the settings of named targets and sites in the file."""
    for section in SECTIONS:
        yield from _of_section(section, getattr(settings, section), settings.variables)
    for name, target in settings.targets.items():
        yield from _given_only(f"targets.{name}", target)
    for name, site in settings.sites.items():
        yield from _given_only(f"sites.{name}", site)


def _of_section(section: str, values: BaseModel, variables: Mapping[tuple[str, str], str]) -> Iterator[ShownSetting]:
    for key in type(values).model_fields:
        value = getattr(values, key)
        if isinstance(value, BaseModel):
            yield from _of_section(f"{section}.{key}", value, {})
        else:
            origin = "settings file" if key in values.model_fields_set else "default"
            origin = variables.get((section, key), origin)
            yield ShownSetting(section, key, shown_value(key, value), origin)


def _given_only(section: str, values: BaseModel) -> Iterator[ShownSetting]:
    return (each for each in _of_section(section, values, {}) if each.origin != "default")


def shown_value(key: str, value: object) -> str:
    """A value of this key without secrets: a reference to a secret is shown, a secret is not."""
    if value in (None, "", (), {}):
        return ""
    if any(word in key for word in _SECRET):
        return str(value) if is_reference(value) else NOT_SHOWN
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {shown_value(str(name), each)}" for name, each in value.items())
    if isinstance(value, (tuple, list, set, frozenset)):
        return ", ".join(shown_value(key, each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shown_url(str(value)) if "://" in str(value) else one_line(str(value), 500)


def _versions() -> Iterator[NamedVersion]:
    yield NamedVersion("metaharvest", __version__)
    yield NamedVersion("Python", platform.python_version())
    yield NamedVersion("system", platform.platform())
    for name in _LIBRARIES:
        try:
            yield NamedVersion(name, version(name))
        except PackageNotFoundError:
            yield NamedVersion(name, "")


def _targets(settings: Settings) -> Iterator[tuple[str, str]]:
    yield "target", settings.target.kind
    for name, target in settings.targets.items():
        yield f"targets.{name}", target.kind
    for name, site in settings.sites.items():
        if site.target is not None:
            yield f"sites.{name}", site.target.kind
