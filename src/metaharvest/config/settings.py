"""The settings: one commented TOML file with environment variables over it, read and checked once, then passed in.

Every key but a site's can be set from the environment as `METAHARVEST_SECTION__KEY`; a list is given there
comma-separated or as JSON. Relative paths are relative to the settings file (without one, to the working directory).
Secrets are references (see secrecy.py), resolved when they are used and never shown.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, quote, urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from metaharvest.config.paths import at_home
from metaharvest.config.secret_references import HOW, NOT_SHOWN, check_reference, is_reference, resolve_secret
from metaharvest.errors import SettingsError
from metaharvest.model import Level, Network, Site
from metaharvest.text import one_line

FILE_NAME = "metaharvest.toml"
PREFIX = "METAHARVEST_"
PING_PLACES = ("{status}", "{exit_code}", "{up_or_down}")
"""What is filled in where it stands in [monitoring] ping_url."""

_PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")

_DATABASE_PASSWORD = re.compile(r"[\w+]+://[^:/]*:(?P<password>[^@]*)@")
"""As SQLAlchemy reads a URL."""


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


def _check_sender(address: str) -> str:
    if not address.rpartition("@")[0].isascii():
        raise ValueError("every mail server must take it, so before the @ it must be in ASCII letters")
    return address


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


def _check_database_url(url: str) -> str:
    parts = _DATABASE_PASSWORD.match(url)
    named = [name for name, _ in parse_qsl(url.partition("?")[2]) if "passw" in name.lower()]
    if named or (parts and parts["password"]):
        raise ValueError(f"a password is never written here: take it out of the URL, and in password {HOW}")
    return url


def _check_proxy(url: str) -> str:
    if ":" in url.rpartition("@")[0].rpartition("://")[2]:
        # No example with a user: it would be masked.
        raise ValueError(
            f"a password is never written here: leave the user name alone before the @, and in proxy_password {HOW}"
        )
    if url and not _is_proxy(url):
        raise ValueError("it must be written like http://proxy.example.org:3128")
    return url


def _is_proxy(url: str) -> bool:
    """Whether this is the URL of a proxy of a kind that libcurl knows."""
    try:
        parts = urlsplit(url)
        possible = parts.hostname and parts.port != 0
    except ValueError:
        return False
    rest = parts.path.strip("/") or parts.query or parts.fragment
    return bool(possible and not rest and parts.scheme in _PROXY_SCHEMES) and not re.search(r"[\s\x00-\x1f\x7f]", url)


def check_ping_address(url: str) -> str:
    """A monitor's URL; ValueError with a sentence that does not show it, where it is none."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("it must be a web address that begins with https:// or http://")
    for place in re.findall(r"\{[^{}]*\}", url):
        if place not in PING_PLACES:
            raise ValueError(f"there is no {place} to fill in; there are {', '.join(PING_PLACES)}")
    return url


def _check_ping_url(value: str) -> str:
    if is_reference(value):
        return value
    if "://" in value:
        return check_ping_address(value)
    raise ValueError(f"it must be a web address, or {HOW}")


def _check_path(path: Path) -> Path:
    at_home(path)
    return path


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
LocalPath = Annotated[Path, AfterValidator(_check_path)]
Reference = Annotated[str, AfterValidator(check_reference)]
PingUrl = Annotated[str, AfterValidator(_check_ping_url)]
Networks = Annotated[
    tuple[Annotated[Network, BeforeValidator(check_network)], ...],
    BeforeValidator(_split),
]
Texts = Annotated[tuple[str, ...], BeforeValidator(_split)]
Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]
SecondsOrNone = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class HarvesterSettings(_Section):
    """Who runs this harvester, when days begin, how long the log is kept (days), and a run may take (seconds)."""

    name: Annotated[str, Field(min_length=1, max_length=100)] = "metaharvest"
    administrators: Annotated[tuple[Email, ...], BeforeValidator(_split)] = ()
    time_zone: Annotated[str, AfterValidator(_check_zone)] = "UTC"
    log_period_days: Annotated[int, Field(ge=1, le=36500)] = 90
    workers: Annotated[int, Field(ge=1, le=256)] = 8
    run_deadline: SecondsOrNone = 72_000
    site_deadline: SecondsOrNone = 21_600

    @property
    def zone(self) -> ZoneInfo:
        """The time zone in which days begin and end."""
        return ZoneInfo(self.time_zone)


class DatabaseSettings(_Section):
    """Where the harvester's own tables are; `password` is a reference."""

    url: Annotated[str, AfterValidator(_check_database_url)] = "sqlite:///metaharvest.db"
    password: Reference = ""


class TargetSettings(_Section):
    """The repository that receives the documents."""

    kind: Literal["embedded"] = "embedded"


class MailSettings(_Section):
    """How reports leave: into a Maildir folder, or by SMTP. `timeout` is in seconds."""

    backend: Literal["maildir", "smtp"] = "maildir"
    folder: LocalPath = Path("mail")
    host: str = "localhost"
    port: Annotated[int, Field(ge=1, le=65535)] = 25
    security: Literal["none", "starttls", "tls"] = "none"
    username: str = ""
    password: Reference = ""
    sender: Annotated[Email, AfterValidator(_check_sender)] = "metaharvest@localhost.localdomain"
    timeout: Seconds = 30
    ca_file: LocalPath | None = None


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
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    retry_wait: SecondsOrNone = 1
    retry_wait_limit: SecondsOrNone = 60
    allow_networks: Networks = ()
    proxy: Annotated[str, AfterValidator(_check_proxy)] = ""
    proxy_password: Reference = ""
    ca_file: LocalPath | None = None


class ValidationSettings(_Section):
    """What the checks are to be strict about, and which document types beside EML are accepted."""

    package_id_mismatch: Level = Level.WARNING
    other_document_types: Texts = ()


class ReportsSettings(_Section):
    """How long reports get. In bytes: over `gzip_csv_over` the table is gzipped, over `drop_csv_over` left out."""

    lines_per_group: Positive = 50
    admin: Literal["mail", "log-file"] = "mail"
    log_folder: LocalPath = Path("reports")
    templates: LocalPath | None = None
    gzip_csv_over: Positive = 262_144
    drop_csv_over: Positive = 10_485_760


class MonitoringSettings(_Section):
    """Whom to tell at the end of each run: a URL, or a reference to it, since such URLs hold a token."""

    ping_url: PingUrl = ""


def _check_folder(value: object) -> object:
    if not value:
        raise ValueError("it must be the path of a folder")
    return value


class SiteSettings(_Section):
    """What only the administrator of this machine may give to a site, by the site's name."""

    file_folder: Annotated[LocalPath | None, BeforeValidator(_check_folder)] = None


class Settings(_Section):
    """The whole of it. `folder` is where relative paths start; `file` is None where there was no settings file."""

    harvester: HarvesterSettings = HarvesterSettings()
    database: DatabaseSettings = DatabaseSettings()
    target: TargetSettings = TargetSettings()
    mail: MailSettings = MailSettings()
    http: HttpSettings = HttpSettings()
    validation: ValidationSettings = ValidationSettings()
    reports: ReportsSettings = ReportsSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    sites: dict[str, SiteSettings] = {}
    folder: Path = Path()
    file: Path | None = None

    def path(self, path: Path) -> Path:
        """`path` as an absolute path, relative ones starting at the settings file's folder. Raises SettingsError."""
        try:
            return (self.folder / at_home(path)).resolve()
        except (ValueError, RuntimeError, OSError) as error:
            raise SettingsError(f"The path {one_line(str(path))} cannot be used: {one_line(str(error))}.") from error

    def file_folder(self, name: str) -> Path | None:
        """The folder below which the site of this name may be harvested from file: URLs."""
        own = self.sites.get(name)
        return self.path(own.file_folder) if own and own.file_folder else None

    def network_policy(self) -> HttpSettings:
        """The section [http] ready for use: an absolute `ca_file`, `proxy` with its password.

        Raises SettingsError where either cannot be used.
        """
        changes: dict[str, object] = {}
        if self.http.ca_file is not None:
            from metaharvest.config.trust_store import configured_authorities

            changes["ca_file"] = ca_file = self.path(self.http.ca_file)
            configured_authorities(ca_file)
        if self.http.proxy_password:
            user, at, host = self.http.proxy.rpartition("@")
            if not at:
                raise SettingsError(
                    "[http] proxy_password is set, but proxy names no user: "
                    "write the user name and an @ between http:// and the proxy's host."
                )
            secret = resolve_secret(self.http.proxy_password, self.folder)
            changes["proxy"] = f"{user}:{quote(secret, safe='')}@{host}"
        return self.http.model_copy(update=changes)

    def furnished(self, site: Site) -> Site:
        """`site` with what these settings say of it: its folder for file: URLs, absolute paths, its options."""
        own = site.options
        options = replace(
            own,
            ca_file=self.path(own.ca_file) if own.ca_file else None,
            package_id_mismatch=own.package_id_mismatch or self.validation.package_id_mismatch,
        )
        return replace(site, options=options, file_folder=self.file_folder(site.name))


SECTIONS = tuple(name for name in Settings.model_fields if name not in ("sites", "folder", "file"))
"""Those that can be set from the environment; the names of sites would not survive as names of variables."""


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
    section_class: Any = Settings.model_fields[section].annotation if section in Settings.model_fields else None
    if section == "sites" and key:
        section_class = SiteSettings
        place = f'{where}: [sites."{key}"] {location[2] if len(location) > 2 else ""}'.rstrip()
    if problem["type"] == "extra_forbidden":
        if len(location) == 1:
            return f"{place}: there is no such section. Known are: {', '.join((*SECTIONS, 'sites'))}."
        return f"{place}: there is no such key. Known are: {', '.join(section_class.model_fields)}."
    value = NOT_SHOWN if "password" in key or key in ("url", "proxy", "ping_url") else repr(problem.get("input"))
    message = _PLAIN.get(str(problem["type"]), str(problem["msg"]).removeprefix("Value error, "))
    message = message[:1].lower() + message[1:] if not message.startswith("'") else message
    return f"{place} = {value}: {message}."
