"""The facts about an installation for its operator: its settings and where each value is from, versions, database."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from pydantic import BaseModel

from metaharvest import __version__
from metaharvest.config.secret_references import NOT_SHOWN, is_reference
from metaharvest.config.settings import SECTIONS, Settings
from metaharvest.database.dialects import bare_version, size_in_bytes
from metaharvest.database.engine import SCHEMA_VERSION, shown_database
from metaharvest.services.harvester import Harvester
from metaharvest.text import one_line, shown_url

_SECRET = ("password", "secret", "token", "ping_url", "broker")
"""Words in the names of settings whose values are secrets."""

_LIBRARIES = (
    "sqlalchemy", "alembic", "lxml", "pycurl", "pydantic", "jinja2", "starlette", "uvicorn", "psycopg", "pymysql",
    "pyarrow", "authlib",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting as it may be shown: secrets are masked. `origin` is the place where its value is from."""

    section: str
    key: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class NamedVersion:
    """The version of the program, of Python, of a library; empty if it is not installed."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """The database: its address without password, the version of its server and of its tables, its size in bytes."""

    address: str
    kind: str
    server: str
    tables: str
    size: int


@dataclass(frozen=True, slots=True)
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
