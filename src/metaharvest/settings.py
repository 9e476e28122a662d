"""The settings: one commented TOML file with environment variables over it, read and checked once, then passed in.

Every key can be set from the environment as `METAHARVEST_SECTION__KEY`; a list is given there comma-separated or as
JSON. Relative paths are relative to the settings file (without one, to the working directory). Secrets are references
(`env:NAME`, `file:PATH`), resolved when they are used and never shown.
"""

from __future__ import annotations

import ipaddress
import json
import os
import tomllib
from collections.abc import Mapping
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from metaharvest.errors import SettingsError
from metaharvest.records import Level, Network

FILE_NAME = "metaharvest.toml"
PREFIX = "METAHARVEST_"


def check_email(address: str) -> str:
    """`address` trimmed; ValueError with a sentence where it is not one plain email address."""
    text = address.strip()
    local, at, domain = text.rpartition("@")
    well_formed = at and local and domain and not any(c.isspace() or ord(c) < 32 or c in '<>,;()[]\\"' for c in text)
    if not well_formed or "@" in local or domain.startswith(".") or domain.endswith(".") or ".." in domain:
        raise ValueError(f"'{text}' is not an email address; write it like name@example.org")
    if parseaddr(text)[1] != text:
        raise ValueError(f"'{text}' is not an email address; write it like name@example.org")
    return text


def check_network(text: object) -> Network:
    """An address range like 127.0.0.0/8 (or a single address) as a network; ValueError with a sentence otherwise."""
    try:
        return ipaddress.ip_network(str(text).strip(), strict=False)
    except ValueError:
        raise ValueError(f"'{text}' is not an address range; write it like 127.0.0.0/8 or 2001:db8::/32") from None


def _check_zone(name: str) -> str:
    if name not in available_timezones():
        raise ValueError(f"'{name}' is not a time zone; write it like UTC or Europe/Berlin")
    return name


def _check_reference(value: str) -> str:
    if value and not value.startswith(("env:", "file:")):
        raise ValueError("a secret is never written here: name where it is, as env:NAME or file:PATH")
    return value


def _split(value: object) -> object:
    """A list given as one text (as in the environment), comma-separated or as JSON."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("["):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"'{text}' is not a JSON list: {error}") from None
    return [part.strip() for part in text.split(",") if part.strip()]


Email = Annotated[str, AfterValidator(check_email)]
Reference = Annotated[str, AfterValidator(_check_reference)]
Networks = Annotated[
    tuple[Annotated[Network, BeforeValidator(check_network)], ...],
    BeforeValidator(_split),
]
Texts = Annotated[tuple[str, ...], BeforeValidator(_split)]
Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HarvesterSettings(_Section):
    """Who runs this harvester, when days begin, how long the log is kept (days)."""

    name: Annotated[str, Field(min_length=1, max_length=100)] = "metaharvest"
    administrators: Annotated[tuple[Email, ...], BeforeValidator(_split)] = ()
    time_zone: Annotated[str, AfterValidator(_check_zone)] = "UTC"
    log_period_days: Annotated[int, Field(ge=1, le=36500)] = 90
    workers: Annotated[int, Field(ge=1, le=256)] = 8

    @property
    def zone(self) -> ZoneInfo:
        """The time zone in which days begin and end."""
        return ZoneInfo(self.time_zone)


class DatabaseSettings(_Section):
    """Where the harvester's own tables are; `password` is a reference."""

    url: str = "sqlite:///metaharvest.db"
    password: Reference = ""


class TargetSettings(_Section):
    """The repository that receives the documents."""

    kind: Literal["embedded"] = "embedded"


class MailSettings(_Section):
    """How reports leave: into a Maildir folder, or by SMTP. `timeout` is in seconds."""

    backend: Literal["maildir", "smtp"] = "maildir"
    folder: Path = Path("mail")
    host: str = "localhost"
    port: Annotated[int, Field(ge=1, le=65535)] = 25
    security: Literal["none", "starttls", "tls"] = "none"
    username: str = ""
    password: Reference = ""
    sender: Email = "metaharvest@localhost.localdomain"
    timeout: Seconds = 30
    ca_file: Path | None = None


class HttpSettings(_Section):
    """The network policy for everything that sites serve; times in seconds, sizes in bytes."""

    contact_url: str = ""
    connections_per_host: Annotated[int, Field(ge=1, le=64)] = 4
    connect_timeout: Seconds = 10
    read_timeout: Seconds = 30
    document_deadline: Seconds = 120
    list_deadline: Seconds = 1800
    max_document_bytes: Positive = 52_428_800
    max_list_bytes: Positive = 1_073_741_824
    max_redirects: Annotated[int, Field(ge=0, le=20)] = 5
    allow_networks: Networks = ()
    proxy: str = ""
    ca_file: Path | None = None


class ValidationSettings(_Section):
    """What the checks are to be strict about, and which document types beside EML are accepted."""

    package_id_mismatch: Level = Level.WARNING
    other_document_types: Texts = ()


class ReportsSettings(_Section):
    """How long reports get. In bytes: over `gzip_csv_over` the table is gzipped, over `drop_csv_over` left out."""

    lines_per_group: Positive = 50
    admin: Literal["mail", "log-file"] = "mail"
    log_folder: Path = Path("reports")
    templates: Path | None = None
    gzip_csv_over: Positive = 262_144
    drop_csv_over: Positive = 10_485_760


class Settings(_Section):
    """The whole of it. `folder` is where relative paths start; `file` is None where there was no settings file."""

    harvester: HarvesterSettings = HarvesterSettings()
    database: DatabaseSettings = DatabaseSettings()
    target: TargetSettings = TargetSettings()
    mail: MailSettings = MailSettings()
    http: HttpSettings = HttpSettings()
    validation: ValidationSettings = ValidationSettings()
    reports: ReportsSettings = ReportsSettings()
    folder: Path = Path()
    file: Path | None = None

    def path(self, path: Path) -> Path:
        """`path` as an absolute path, relative ones starting at the settings file's folder."""
        return (self.folder / path.expanduser()).resolve()


SECTIONS = tuple(name for name in Settings.model_fields if name not in ("folder", "file"))


def load(file: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read and check the settings. Without `file`: metaharvest.toml here, then in the user's configuration folder.

    Raises SettingsError with a sentence for each problem: file (or variable), key, value and what would be right.
    """
    path = file if file is not None else find_file()
    values = _read(path) if path else {}
    origins: dict[tuple[str, ...], str] = {}
    for variable, text in environ.items():
        section, separator, key = variable.removeprefix(PREFIX).lower().partition("__")
        if variable.startswith(PREFIX) and separator and section in SECTIONS:
            values.setdefault(section, {})
            if isinstance(values[section], dict):
                values[section][key] = text
                origins[(section, key)] = variable
    folder = path.resolve().parent if path else Path.cwd()
    try:
        return Settings.model_validate({**values, "folder": folder, "file": path})
    except ValidationError as error:
        where = str(path) if path else "the settings"
        raise SettingsError(*(_sentence(dict(problem), where, origins) for problem in error.errors())) from None


def find_file() -> Path | None:
    """The settings file that is used when none is named, or None."""
    import platformdirs

    for candidate in (Path(FILE_NAME), platformdirs.user_config_path("metaharvest") / FILE_NAME):
        if candidate.is_file():
            return candidate
    return None


def resolve_secret(reference: str, folder: Path) -> str:
    """The secret behind `env:NAME` or `file:PATH` (relative to `folder`); empty for no reference.

    Raises SettingsError where it is not there.
    """
    kind, _, where = reference.partition(":")
    if not reference:
        return ""
    if kind == "env":
        if where not in os.environ:
            raise SettingsError(f"The secret {reference} is not there: set the environment variable {where}.")
        return os.environ[where]
    try:
        return (folder / Path(where).expanduser()).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The secret {reference} cannot be read: {error}.") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise SettingsError(
            f"The settings file {path} is not there. Write one with `metaharvest --config {path} init`."
        ) from None
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"The settings file {path} is not UTF-8 text: save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            f'The settings file {path} is not valid TOML: {error}. Texts need quotes, as in name = "value".'
        ) from error


_PLAIN = {
    "model_type": "it must be a section of its own, headed by its name in square brackets",
    "int_parsing": "it must be a whole number",
    "int_type": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "float_parsing": "it must be a number",
    "float_type": "it must be a number",
    "string_type": "it must be a text in quotes",
    "tuple_type": 'it must be a list, like ["one", "two"]',
}


def _sentence(problem: dict[str, Any], where: str, origins: Mapping[tuple[str, ...], str]) -> str:
    """One problem that pydantic found, as a sentence."""
    location = tuple(str(part) for part in problem["loc"])
    section, key = location[0], location[1] if len(location) > 1 else ""
    variable = origins.get((section, key))
    place = f"{variable} in the environment" if variable else f"{where}: [{section}] {key}".rstrip()
    if problem["type"] == "extra_forbidden":
        known = Settings.model_fields if not key else Settings.model_fields[section].annotation.model_fields  # type: ignore[union-attr]
        names = [name for name in known if name not in ("folder", "file")]
        return f"{place}: there is no such {'key' if key else 'section'}. Known are: {', '.join(names)}."
    value = "(not shown)" if "password" in key else repr(problem.get("input"))
    message = _PLAIN.get(str(problem["type"]), str(problem["msg"]).removeprefix("Value error, "))
    message = message[:1].lower() + message[1:] if not message.startswith("'") else message
    return f"{place} = {value}: {message}."
