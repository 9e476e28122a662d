"""The settings: one commented TOML file with environment variables over it, read and checked once, then passed in.

Every key, except the keys of a site, can be set from the environment as `METAHARVEST_SECTION__KEY`; a list is given
there comma-separated or as JSON. Relative paths are relative to the settings file (without one, to the working
directory). Secrets are references (see `secret_references.py`), resolved when they are used and never shown.
`field_types.py` checks single values.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import time
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from metaharvest.config import field_types
from metaharvest.config.files import read_file
from metaharvest.config.kinds import STAGES
from metaharvest.config.paths import at_home
from metaharvest.config.secret_references import NOT_SHOWN, url_with_password
from metaharvest.config.target_settings import LOCAL_KINDS, TargetsByName, TargetSettings, with_target_defaults
from metaharvest.errors import SettingsError
from metaharvest.model import Level, Site
from metaharvest.model.actions import todo
from metaharvest.model.kinds import OF_FILES
from metaharvest.text import one_line

FILE_NAME = "metaharvest.toml"
PREFIX = "METAHARVEST_"
"""The beginning of the environment variables that are settings."""


_MAY_HOLD_SECRETS = ("url", "proxy", "ping_url", "broker", "search", "token", "token_key", "oidc_client_secret")

_MOST_BYTES = 16_777_216
"""The largest size of a settings file, in bytes: one that names ten thousand sites has half a megabyte."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class HarvesterSettings(_Section):
    """The operator of this harvester, the begin of days, the age of purged log rows; `workers`: documents in flight.

    `run_deadline`, `site_deadline`: seconds, 0: no limit. `look_again`: the number of documents per site and night that
    the target has already and that are compared with it; 0: none.
    """

    name: Annotated[str, Field(min_length=1, max_length=100)] = "metaharvest"
    administrators: field_types.Emails = ()
    time_zone: field_types.ZoneName = "UTC"
    log_period_days: Annotated[int, Field(ge=1, le=36500)] = 90
    workers: Annotated[int, Field(ge=1, le=1024)] = 128
    run_deadline: field_types.SecondsOrNone = 72_000
    site_deadline: field_types.SecondsOrNone = 21_600
    look_again: Annotated[int, Field(ge=0, le=100)] = 5

    @property
    def zone(self) -> ZoneInfo:
        """The time zone in which days begin and end."""
        return ZoneInfo(self.time_zone)


class DatabaseSettings(_Section):
    """The place of the harvester's own tables; `password` is a secret reference."""

    url: field_types.DatabaseUrl = "sqlite:///metaharvest.db"
    password: field_types.SecretReference = ""


class MailSettings(_Section):
    """The way of reports: into a Maildir folder, or by SMTP. `timeout` is in seconds."""

    backend: Literal["maildir", "smtp"] = "maildir"
    folder: field_types.LocalPath = Path("mail")
    host: str = "localhost"
    port: Annotated[int, Field(ge=1, le=65535)] = 25
    security: Literal["none", "starttls", "tls"] = "none"
    username: str = ""
    password: field_types.SecretReference = ""
    sender: field_types.Sender = "metaharvest@localhost.localdomain"
    timeout: field_types.FiniteSeconds = 30
    ca_file: field_types.LocalPath | None = None


class HttpSettings(_Section):
    """The network policy for everything that sites serve; times in seconds, sizes in bytes."""

    contact_url: str = ""
    connections_per_host: Annotated[int, Field(ge=1, le=64)] = 4
    connect_timeout: field_types.FiniteSeconds = 10
    read_timeout: field_types.Seconds = 30
    document_deadline: field_types.FiniteSeconds = 120
    list_deadline: field_types.Seconds = 1800
    max_document_bytes: field_types.Positive = 52_428_800
    max_list_bytes: field_types.Positive = 1_073_741_824
    max_list_records: field_types.Positive = 20_000_000
    max_run_bytes: field_types.Positive = 20_000_000_000
    max_redirects: Annotated[int, Field(ge=0, le=20)] = 5
    obey_robots: bool = False
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    retry_wait: field_types.SecondsOrNone = 1
    retry_wait_limit: field_types.SecondsOrNone = 60
    allow_networks: field_types.Networks = ()
    door_networks: field_types.Networks = ()
    proxy: field_types.ProxyUrl = ""
    proxy_password: field_types.SecretReference = ""
    ca_file: field_types.LocalPath | None = None


class ValidationSettings(_Section):
    """The strictness of the checks, and formats beside EML; `time_limit`: seconds each, 0: no limit.

    `memory_limit`: MB of each process that checks documents; 0: no limit.
    """

    package_id_mismatch: Level = Level.WARNING
    other_document_types: field_types.Texts = ()
    time_limit: field_types.SecondsOrNone = 60
    memory_limit: Annotated[int, Field(ge=0, le=1_000_000)] = 1000


class ReportsSettings(_Section):
    """The length of reports, the administrator's addresses and days; tables above `gzip_csv_over` bytes are gzipped.

    `remind_days`: a site with `notify = on-change` gets the open problems again after this number of days; 0: never.
    `docs_url`: the address of the documentation as a site, so that reports link each rule to its page.
    """

    lines_per_group: field_types.Positive = 50
    remind_days: Annotated[int, Field(ge=0, le=366)] = 7
    admin: Literal["mail", "log-file"] = "mail"
    admin_notify: Literal["always", "attention"] = "always"
    digest: Literal["never", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] = "never"
    log_folder: field_types.LocalPath = Path("reports")
    templates: field_types.LocalPath | None = None
    docs_url: field_types.WebAddress = ""
    gzip_csv_over: field_types.Positive = 262_144
    drop_csv_over: field_types.Positive = 10_485_760


class MonitoringSettings(_Section):
    """The monitor that gets the end of each run: its URL, or a secret reference, as such a URL may hold a token.

    `metrics_file` is written after each run, for Prometheus, also after one that could not begin.
    """

    ping_url: field_types.PingUrl = ""
    metrics_file: field_types.LocalPath | None = None


class WebSettings(_Section):
    """The addresses, names and limits of `serve`.

    `url` is the address at which people outside reach it; if it is empty, the address of the process. `domain` is the
    domain in identifiers. `token_key` signs resumption tokens; it may be a reference. `hidden` are names of sites and
    origins that are not published. `page_bytes` is the size of documents in a page. `replica_lag` is the number of
    seconds by which the database may be behind the database of the harvest. `trusted_header` has the address of the
    person in requests that come from `trusted_networks`. `oidc_issuer` is a provider of OpenID Connect; the secret of
    the client is a reference. `oidc_label` is the name of the provider on the page to sign in.
    """

    url: field_types.WebAddress = ""
    domain: field_types.Domain = ""
    token_key: str = ""
    hidden: field_types.Texts = ()
    friends: field_types.WebAddresses = ()
    rights: field_types.WebAddress = ""
    branding: field_types.WebAddress = ""
    page_records: Annotated[int, Field(ge=1, le=10_000)] = 200
    page_bytes: field_types.Positive = 4_194_304
    replica_lag: field_types.SecondsOrNone = 0
    lists_at_once: Annotated[int, Field(ge=1, le=1000)] = 4
    proxies: field_types.Networks = ()
    trusted_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]*$", max_length=100)] = ""
    trusted_networks: field_types.Networks = ()
    oidc_issuer: field_types.WebAddress = ""
    oidc_client_id: str = ""
    oidc_client_secret: field_types.SecretReference = ""
    oidc_label: Annotated[str, Field(max_length=60)] = "OpenID Connect"


class WorkersSettings(_Section):
    """The workers of many machines: the address of their broker (RabbitMQ), which may be a reference.

    `run_at` is the time of day, in the harvester's time zone, from which on the coordinator opens the run of the day.
    `slice` is the number of seconds after which a worker ends its work on a site at the next checkpoint. `jobs` is the
    number of jobs that a worker has at a time; slow ones do not count.
    """

    broker: field_types.Broker = ""
    run_at: field_types.TimeOfDay = time(0)
    slice: Annotated[float, Field(ge=1, le=600)] = 600
    jobs: Annotated[int, Field(ge=1, le=128)] = 32


class PipelineSettings(_Section):
    """The ingestion pipeline; `enabled`: it runs at the end of each run.

    `folder` is the folder of files, texts and the index; `files` is a URL of fsspec for the files, "" for the folder.
    `full_text`: the pipeline looks for files; `keep_files`: it keeps them, unless a site says otherwise. `largest_file`
    is in bytes. `crossref` and `grobid` are the addresses of services, `mail` is the address in requests to Crossref.
    `search` is the address of an OpenSearch server, `search_password` a reference to the password of the user in it;
    without one, the index is in the folder. `seconds` limits the pipeline at the end of a run; 0: no limit.
    """

    enabled: bool = False
    folder: field_types.OwnFolder = Path("pipeline")
    files: str = ""
    full_text: bool = True
    keep_files: bool = True
    largest_file: field_types.Positive = 104_857_600
    crossref: field_types.WebAddress = ""
    grobid: field_types.WebAddress = ""
    mail: field_types.OptionalEmail = ""
    search: field_types.SearchServer = ""
    search_password: field_types.SecretReference = ""
    seconds: field_types.SecondsOrNone = 14_400

    def stage_names(self) -> Sequence[str]:
        """The stages that run, in their order: without full texts, the stages of files do not."""
        return [each for each in STAGES.names() if self.full_text or each not in OF_FILES]


class SiteSettings(_Section):
    """The rights of a site that only the administrator of this machine gives, by the site's name; `target`: its own."""

    file_folder: field_types.LocalFolder = None
    target: TargetSettings | None = None


class Settings(_Section):
    """All sections. Relative paths start at `folder`; `file` is None if there was no settings file.

    `variables` are the environment variables, or options, that gave a setting, by section and key. `is_found`:
    the file was found in the working folder, and nobody named it: another person may have written it.
    """

    harvester: HarvesterSettings = HarvesterSettings()
    database: DatabaseSettings = DatabaseSettings()
    target: TargetSettings = TargetSettings()
    mail: MailSettings = MailSettings()
    http: HttpSettings = HttpSettings()
    validation: ValidationSettings = ValidationSettings()
    reports: ReportsSettings = ReportsSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    web: WebSettings = WebSettings()
    workers: WorkersSettings = WorkersSettings()
    pipeline: PipelineSettings = PipelineSettings()
    sites: dict[str, SiteSettings] = {}
    targets: TargetsByName = {}
    folder: Path = Path()
    file: Path | None = None
    is_found: bool = False
    variables: dict[tuple[str, str], str] = {}

    def place(self, section: str, key: str) -> str:
        """The place of a setting, for a sentence about a mistake in it."""
        variable = self.variables.get((section, key))
        if variable is None:
            return f"[{section}] {key}"
        return variable if variable.startswith(("--", "[")) else f"{variable} in the environment"

    def with_database(self, url: str, password: str) -> Settings:
        """These settings with another database, as the options --to and --password name it. Raises SettingsError."""
        options = {"url": "--to", "password": "--password"}
        try:
            database = DatabaseSettings(url=url, password=password)
        except ValidationError as error:
            said = [
                (options[str(each["loc"][0])], each["msg"].removeprefix("Value error, ")) for each in error.errors()
            ]
            raise SettingsError(*(f"{option}: {message}." for option, message in said)) from None
        variables = {**self.variables, **{("database", key): option for key, option in options.items()}}
        return self.model_copy(update={"database": database, "variables": variables})

    def with_target(self, target: TargetSettings, header: str) -> Settings:
        """These settings with the target of the section `header` in the place of [target], also where that is named.

        Messages name [target] for the keys that a site's section has from [target].
        """
        inherits = header.startswith("sites") and target.kind == self.target.kind
        own = {
            ("target", key): f"[{header}] {key}"
            for key in type(target).model_fields
            if not (inherits and getattr(target, key) == getattr(self.target, key))
        }
        return self.model_copy(update={"target": target, "variables": {**self.variables, **own}})

    def path(self, path: Path) -> Path:
        """`path` as an absolute path; a relative one starts at `folder`. Raises SettingsError."""
        try:
            return (self.folder / at_home(path)).resolve()
        except (ValueError, RuntimeError, OSError) as error:
            raise SettingsError(f"The path {one_line(str(path))} cannot be used: {one_line(str(error))}.") from error

    def written_path(self, path: Path) -> Path:
        """As path(), for a file that is written: where it is a link, it stays one. Raises SettingsError."""
        return self.path(path.parent) / path.name

    @property
    def is_local(self) -> bool:
        """True if the database and all targets are files here, so that no other computer receives a secret."""
        targets = (self.target, *self.targets.values(), *(site.target for site in self.sites.values() if site.target))
        return self.database.url.startswith("sqlite") and all(target.kind in LOCAL_KINDS for target in targets)

    def with_split_sites(self, first: Mapping[str, str]) -> Settings:
        """These settings, in which sites that were split from others have the sections of those, by name."""
        own = {name: self.sites[other] for name, other in first.items() if other in self.sites}
        return self.model_copy(update={"sites": {**own, **self.sites}}) if own else self

    def target_of(self, name: str) -> TargetSettings:
        """The target of the site of this name: its own, or [target]. A rehearsal by [target] is one of all sites."""
        own = self.sites.get(name)
        return own.target if own and own.target and self.target.kind != "none" else self.target

    def file_folder(self, name: str) -> Path | None:
        """The folder below which the site of this name may be harvested from file: URLs."""
        own = self.sites.get(name)
        return self.path(own.file_folder) if own and own.file_folder else None

    def network_policy(self) -> HttpSettings:
        """The section [http] ready for use: `ca_file` as an absolute path, `proxy` with its password.

        Raises SettingsError if one of them cannot be used.
        """
        changes: dict[str, object] = {}
        if self.http.ca_file is not None:
            from metaharvest.config.trust_store import configured_authorities

            changes["ca_file"] = self.path(self.http.ca_file)
            configured_authorities(self.path(self.http.ca_file), self.place("http", "ca_file"))
        changes["proxy"] = self.proxy()
        return self.http.model_copy(update=changes)

    def proxy(self) -> str:
        """The proxy of [http] with its password; empty if there is none. Raises SettingsError."""
        which = f"{self.place('http', 'proxy_password')} is set, but proxy"
        return url_with_password(self.http.proxy, self.http.proxy_password, self.folder, which)

    def search_server(self) -> str:
        """The address of the search server with its password; "" for an index in the folder. Raises SettingsError."""
        which = f"{self.place('pipeline', 'search_password')} is set, but search"
        return url_with_password(self.pipeline.search, self.pipeline.search_password, self.folder, which)

    def applied_to(self, site: Site) -> Site:
        """`site` with values of these settings: its folder for file: URLs, absolute paths, defaults of its options."""
        own = site.options
        ca_file, filters, normalize = (
            self.path(path) if path else None for path in (own.ca_file, own.filters, own.normalize)
        )
        mismatch = own.package_id_mismatch or self.validation.package_id_mismatch
        options = replace(own, ca_file=ca_file, filters=filters, normalize=normalize, package_id_mismatch=mismatch)
        stored = site.stored_options or own
        return replace(site, options=options, stored_options=stored, file_folder=self.file_folder(site.name))


SECTIONS = tuple(
    name
    for name in Settings.model_fields
    if name not in ("sites", "targets", "folder", "file", "is_found", "variables")
)
"""The sections that can be set from the environment: names of sites cannot always be part of a variable's name."""


def load(file: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read and check the settings. Without `file`: metaharvest.toml here, then in the user's configuration folder.

    Raises SettingsError with a sentence for each problem: file (or variable), key, value and the right form.
    """
    path = file or find_file()
    values = _read(path) if path else {}
    variables = _add_environment(values, environ)
    folder = path.resolve().parent if path else Path.cwd()
    is_found = file is None and path == Path(FILE_NAME)
    try:
        values = with_target_defaults(values)
        others = {"folder": folder, "file": path, "is_found": is_found, "variables": variables}
        return Settings.model_validate({**values, **others})
    except ValidationError as error:
        where = str(path or "the settings")
        raise SettingsError(*(_sentence(dict(problem), where, variables) for problem in error.errors())) from None


def find_file() -> Path | None:
    """The settings file that is used when none is named, or None."""
    return next((candidate for candidate in _candidates() if candidate.is_file()), None)


def where_looked() -> str:
    """The places where a settings file is looked for if none is named, in words."""
    return " and ".join(str(candidate.absolute()) for candidate in _candidates())


def _candidates() -> tuple[Path, ...]:
    import platformdirs

    return Path(FILE_NAME), platformdirs.user_config_path("metaharvest") / FILE_NAME


def _add_environment(values: dict[str, Any], environ: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Put the settings of the environment into `values`; return the variable of each, by section and key."""
    variables: dict[tuple[str, str], str] = {}
    for variable, text in environ.items():
        section, separator, key = variable.removeprefix(PREFIX).lower().partition("__")
        known = variable.startswith(PREFIX) and separator and section in SECTIONS
        if known and isinstance(values.setdefault(section, {}), dict):
            values[section][key] = text
            variables[section, key] = variable
    return variables


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_file(path, _MOST_BYTES).decode("utf-8-sig"))
    except FileNotFoundError:
        problem = (
            f"The settings file {path.absolute()} is not there. If there is an installation, name its settings file "
            f"with --config. If there is none yet: {todo('installation.make_from', file=str(path))} makes one."
        )
        raise SettingsError(problem) from None
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"The settings file {path} is not UTF-8 text: save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        is_double = any(words in str(error) for words in ("Cannot overwrite", "twice"))
        remedy = 'Texts need quotes, as in name = "value".'
        if is_double:
            remedy = "The same key, or the same section, is there a second time: delete one of the two."
        raise SettingsError(f"The settings file {path} is not valid TOML: {error}. {remedy}") from error


_MESSAGES = {
    "model_type": "it must be a section of its own, headed by its name in square brackets",
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "it must be a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "it must be a number"),
    "string_type": "it must be a text in quotes",
    "path_type": "it must be a path in quotes",
    "dict_type": "it must be a section of its own, headed by its name in square brackets",
    "tuple_type": 'it must be a list, like ["one", "two"]',
}
"""Type of an error of pydantic -> the message in place of its own."""


def _sentence(error: dict[str, Any], where: str, variables: Mapping[tuple[str, str], str]) -> str:
    """One error of pydantic as a sentence; `variables` are those that settings were taken from."""
    section, *keys = (str(part) for part in error["loc"])
    header, key = _place(section, keys)
    variable = variables.get((section, key))
    place = f"{variable} in the environment" if variable else f"{where}: {f'{header} {key}'.rstrip()}"
    if error["type"] == "extra_forbidden":
        if not keys:
            return f"{place}: there is no such section. Known are: {', '.join((*SECTIONS, 'targets', 'sites'))}."
        return f"{place}: there is no such key. Known are: {', '.join(_known(section, keys).model_fields)}."
    message = _MESSAGES.get(str(error["type"]), str(error["msg"]).removeprefix("Value error, "))
    message = message[:1].lower() + message[1:] if not message.startswith("'") else message
    if error["type"] == "value_error" and isinstance(error.get("input"), dict):
        # An error about a section as a whole, whose values must not all be shown.
        return f"{where}: {f'{header[:-1]}.{key}]' if key else header}: {message}."
    hidden = "password" in key or key in _MAY_HOLD_SECRETS
    return f"{place} = {NOT_SHOWN if hidden else repr(error.get('input'))}: {message}."


def _place(section: str, keys: Sequence[str]) -> tuple[str, str]:
    """The header of a section and a key, as they are written in the settings file; the key may be empty."""
    if section not in ("sites", "targets") or not keys:
        return f"[{section}]", keys[0] if keys else ""
    header, rest = f'{section}."{keys[0]}"', keys[1:]
    if section == "sites" and rest[:1] == ["target"] and len(rest) > 1:
        header, rest = f"{header}.target", rest[1:]
    return f"[{header}]", rest[0] if rest else ""


def _known(section: str, keys: Sequence[str]) -> type[BaseModel]:
    if section == "targets" or (section == "sites" and len(keys) > 2):
        return TargetSettings
    if section == "sites":
        return SiteSettings
    known: Any = Settings.model_fields[section].annotation
    return cast(type[BaseModel], known)
