"""The register of sites: reads, checks and changes harvest_site_schedule.

Other people's SQL may have left anything in that table, so its rows are read as they are and checked one by one: a
broken row is a `BrokenSite`, which fails alone, and never the reason why others are not harvested.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from sqlalchemy import Date, TextClause, bindparam, delete, select, text, update
from sqlalchemy.orm import Session

from metaharvest.config.paths import at_home
from metaharvest.config.secret_references import check_reference
from metaharvest.config.settings import check_email, check_network
from metaharvest.database.models import Base, HarvestSiteSchedule
from metaharvest.errors import ScheduleError
from metaharvest.fetch.local_files import is_file_url
from metaharvest.model import Finding, Level, ListVersion, Notify, Site, SiteOptions, Unit
from metaharvest.sites import due
from metaharvest.text import one_line

MAX_FREQUENCY = 99
_COLUMNS = (
    "site_schedule_id",
    "name",
    "documentlisturl",
    "contact_email",
    "updatefrequency",
    "unit",
    "datenextharvest",
    "datelastharvest",
    "day_of_month",
    "source_kind",
    "notify",
    "enabled",
    "options",
    "list_etag",
    "list_last_modified",
    "list_sha256",
    "ldapdn",
    "ldappwd",
)
_SCHEDULE = Base.metadata.tables[HarvestSiteSchedule.__tablename__]
_OURS = update(_SCHEDULE).where(_SCHEDULE.c.site_schedule_id == bindparam("site_id"))
_Choice = TypeVar("_Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class BrokenSite:
    """A row of the schedule that cannot be used, and why. `enabled` is false where somebody has switched it off.

    `contacts` are those of its addresses that can be written to.
    """

    site_id: int
    name: str
    list_url: str
    enabled: bool
    findings: tuple[Finding, ...]
    contacts: tuple[str, ...] = ()


def read_sites(session: Session) -> list[Site | BrokenSite]:
    """Every row of the schedule, in the order of the names."""
    return sorted(map(_checked, raw_rows(session)), key=lambda site: (site.name.lower(), site.site_id))


def read_sites_due_before(session: Session, day: date) -> list[Site | BrokenSite]:
    """The rows with a next date before `day`, and those with none; of a large network only these few are checked."""
    rows = raw_rows(session, "WHERE datenextharvest < :day OR datenextharvest IS NULL", {"day": day})
    return [_checked(row) for row in rows]


def read_site(session: Session, site_id: int) -> Site | BrokenSite | None:
    """The row of this number as it stands now; None where there is none any more."""
    return read_sites_of(session, [site_id]).get(site_id)


def read_sites_of(session: Session, site_ids: Collection[int]) -> dict[int, Site | BrokenSite]:
    """The rows of these numbers as they stand now; those that are gone are left out."""
    rows = raw_rows(session, "WHERE site_schedule_id IN :ids", {"ids": list(site_ids)})
    return {site.site_id: site for site in map(_checked, rows)}


def find_site(session: Session, name: str) -> Site | BrokenSite:
    """The site of this name. Raises ScheduleError where there is none."""
    sites = read_sites(session)
    for site in sites:
        if site.name == name:
            return site
    known = ", ".join(site.name for site in sites) or "none is registered yet"
    raise ScheduleError(f"There is no site named '{one_line(name)}'. Known sites: {known}.")


def add_site(session: Session, values: Mapping[str, object]) -> Site:
    """Register a site from column values. Raises ScheduleError, with a sentence a problem, where they are not right."""
    site = _require(_checked({**_DEFAULTS, **values, "site_schedule_id": 0}))
    _require_free(session, site)
    row = HarvestSiteSchedule(**_stored(site))
    session.add(row)
    session.flush()
    return _require(find_site(session, site.name))


def edit_site(session: Session, name: str, changes: Mapping[str, object]) -> Site:
    """Change columns of a site, broken or not. Raises ScheduleError where the site would not be right afterwards."""
    site_id = find_site(session, name).site_id
    [row] = raw_rows(session, "WHERE site_schedule_id = :id", {"id": site_id})
    site = _require(_checked({**row, **changes}))
    _require_free(session, site)
    values = _stored(site)
    if "datenextharvest" in changes or "unit" in changes:
        values["day_of_month"] = None
    if "documentlisturl" in changes or "options" in changes:
        values.update(list_etag=None, list_last_modified=None, list_sha256=None)
    session.execute(update(HarvestSiteSchedule).where(HarvestSiteSchedule.site_schedule_id == site_id).values(**values))
    return _require(find_site(session, site.name))


@dataclass(frozen=True, slots=True)
class Harvested:
    """A site as it was when its harvest began, and the version of its list that was harvested."""

    site: Site
    version: ListVersion | None


def set_dates(
    session: Session, harvests: Iterable[Harvested], registered: Mapping[int, Site | BrokenSite], today: date
) -> dict[int, date | None]:
    """Note that these sites were harvested today, and from which version of their lists; their next dates.

    `registered` are the sites as they stand now. Somebody may have changed one meanwhile: its frequency as it stands
    now counts, and a next date that is another than the one this harvest was due on stays.
    """
    next_dates: dict[int, date | None] = {}
    harvested, dated = [], []
    for harvest in harvests:
        site, version = registered.get(harvest.site.site_id), harvest.version
        if not isinstance(site, Site):
            continue
        row: dict[str, object] = {
            "site_id": site.site_id,
            "datelastharvest": today,
            "list_etag": version.etag if version else None,
            "list_last_modified": version.last_modified if version else None,
            "list_sha256": version.sha256 if version else None,
        }
        next_dates[site.site_id] = site.next_harvest
        if site.next_harvest != harvest.site.next_harvest:
            harvested.append(row)
            continue
        next_date = next_dates[site.site_id] = due.next_harvest(site, today)
        day_of_month = (due.set_day(site) or today.day) if site.unit is Unit.MONTHS else None
        dated.append({**row, "datenextharvest": next_date, "day_of_month": day_of_month})
    for rows in (harvested, dated):
        if rows:
            columns = [name for name in rows[0] if name != "site_id"]
            session.connection().execute(_OURS.values({name: bindparam(name) for name in columns}), rows)
    return next_dates


def forget_lists(session: Session, site_ids: Collection[int]) -> None:
    """Let these sites' lists be read again next time, whatever their servers say."""
    forgotten = {"list_etag": None, "list_last_modified": None, "list_sha256": None}
    session.connection().execute(_OURS.values(forgotten), [{"site_id": site_id} for site_id in site_ids])


def switch_site(session: Session, name: str, enabled: bool) -> None:
    """Enable or disable a site, broken or not."""
    site_id = find_site(session, name).site_id
    session.execute(
        update(HarvestSiteSchedule).where(HarvestSiteSchedule.site_schedule_id == site_id).values(enabled=enabled)
    )


def remove_site(session: Session, name: str) -> None:
    """Take a site off the schedule; its runs, log rows and documents stay."""
    site_id = find_site(session, name).site_id
    session.execute(delete(HarvestSiteSchedule).where(HarvestSiteSchedule.site_schedule_id == site_id))


def check_list_url(url: str) -> str:
    """`url` trimmed; ValueError with a sentence where it is not an absolute http or https URL.

    A file: URL passes: whether the site may have it is said by the settings, whenever it is harvested.
    """
    trimmed = url.strip()
    if is_file_url(trimmed) and one_line(trimmed, len(trimmed)) == trimmed:
        return trimmed
    try:
        parts = urlsplit(trimmed)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable or parts.scheme.lower() not in ("http", "https") or any(c.isspace() or ord(c) < 32 for c in trimmed):
        from metaharvest.fetch.url import shown

        raise ValueError(
            f"the list URL '{shown(trimmed)}' is not a web address; write it like https://example.org/list.xml"
        )
    return trimmed


def split_contacts(addresses: object) -> tuple[str, ...]:
    """The contact addresses in a text, split on `,` or `;`, trimmed and each checked. Raises ValueError."""
    parts = [part.strip() for part in str(addresses or "").replace(";", ",").split(",")]
    contacts = tuple(dict.fromkeys(check_email(part) for part in parts if part))
    if not contacts:
        raise ValueError("there is no contact; give at least one email address")
    return contacts


def options_text(options: SiteOptions) -> str | None:
    """Per-site options as they are stored: JSON, or None where there are none."""
    stored: dict[str, object] = {}
    if options.package_id_mismatch is not None:
        stored["package_id_mismatch"] = options.package_id_mismatch.value
    if options.allow_networks:
        stored["allow_networks"] = [str(network) for network in options.allow_networks]
    if options.ca_file is not None:
        stored["ca_file"] = str(options.ca_file)
    return json.dumps(stored) if stored else None


_DEFAULTS: dict[str, object] = {
    "updatefrequency": 1,
    "unit": Unit.DAYS.value,
    "datenextharvest": None,
    "datelastharvest": None,
    "day_of_month": None,
    "source_kind": "harvest-list",
    "notify": Notify.ALWAYS.value,
    "enabled": True,
    "options": None,
    "list_etag": None,
    "list_last_modified": None,
    "list_sha256": None,
    "ldapdn": None,
    "ldappwd": None,
}


def _require_free(session: Session, site: Site) -> None:
    """Raises ScheduleError where another site has this name already."""
    others = select(HarvestSiteSchedule.site_schedule_id).where(
        HarvestSiteSchedule.name == site.name, HarvestSiteSchedule.site_schedule_id != site.site_id
    )
    if session.scalar(others) is not None:
        raise ScheduleError(
            f"There is a site named '{one_line(site.name)}' already; `metaharvest sites edit` changes it."
        )


def raw_rows(session: Session, where: str = "", values: Mapping[str, object] | None = None) -> list[dict[str, object]]:
    """Rows of the schedule as they are, unchecked. SQLite lets text be in any encoding: there it is read as bytes."""
    rows = session.execute(_raw_select(session.get_bind().dialect.name == "sqlite", where), values or {})
    return [{name: _text(value) for name, value in zip(_COLUMNS, row, strict=True)} for row in rows]


@lru_cache(maxsize=16)
def _raw_select(is_sqlite: bool, where: str) -> TextClause:
    columns = ", ".join(f"CAST({name} AS BLOB) AS {name}" if is_sqlite else name for name in _COLUMNS)
    statement = text(f"SELECT {columns} FROM harvest_site_schedule {where}")
    if ":ids" in where:
        return statement.bindparams(bindparam("ids", expanding=True))
    return statement.bindparams(bindparam("day", type_=Date())) if ":day" in where else statement


def _text(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _require(site: Site | BrokenSite) -> Site:
    if isinstance(site, BrokenSite):
        raise ScheduleError("\n".join(finding.message for finding in site.findings))
    return site


def _stored(site: Site) -> dict[str, Any]:
    return {
        "name": site.name,
        "documentlisturl": site.list_url,
        "contact_email": ", ".join(site.contacts),
        "updatefrequency": site.frequency,
        "unit": site.unit.value,
        "datenextharvest": site.next_harvest,
        "datelastharvest": site.last_harvest,
        "day_of_month": site.day_of_month,
        "source_kind": site.source_kind,
        "notify": site.notify.value,
        "enabled": site.enabled,
        "options": options_text(site.options),
        "ldapdn": site.ldap_name,
        "ldappwd": site.ldap_password,
    }


class _Row:
    """One row of the schedule under examination: each check gives the value, or notes what is wrong with it."""

    def __init__(self, values: dict[str, object]) -> None:
        self.values = values
        self.problems: list[tuple[str, str]] = []

    def wrong(self, column: str, sentence: str) -> None:
        self.problems.append((column, sentence))

    def encoding(self, *columns: str) -> None:
        for column in columns:
            if "\ufffd" in str(self.values[column]):
                self.wrong(column, f"{column} is {_quoted(self.values[column])}; write it as UTF-8 text")

    def number(self, column: str, low: int, high: int) -> int:
        value = self.values[column]
        try:
            number = int(str(value).strip())
        except ValueError:
            number = low - 1
        if not low <= number <= high or isinstance(value, float):
            self.wrong(column, f"{column} is {_quoted(value)}; it must be a whole number from {low} to {high}")
            return low
        return number

    def choice(self, column: str, choices: type[_Choice], default: _Choice) -> _Choice:
        value = self.values[column]
        try:
            return choices(str(value).strip().lower())
        except ValueError:
            allowed = ", ".join(choices)
            self.wrong(column, f"{column} is {_quoted(value)}; it must be one of {allowed}")
            return default

    def day(self, column: str) -> date | None:
        value = self.values[column]
        if value is None or value == "":
            return None
        if isinstance(value, datetime):
            return value.date()
        if isinstance(value, date):
            return value
        try:
            return datetime.fromisoformat(str(value).strip()).date()
        except ValueError:
            self.wrong(column, f"{column} is {_quoted(value)}; it must be a date like 2026-11-20")
            return None

    def text(self, column: str, limit: int) -> str | None:
        value = str(self.values[column] or "").strip()
        if one_line(value, limit) != value:
            self.wrong(column, f"{column} is {_quoted(value)}; it must be at most {limit} printable characters")
        return value or None

    def reference(self, column: str, limit: int) -> str | None:
        """A reference to a secret. What is none may be the secret itself: it is not shown."""
        value = str(self.values[column] or "").strip()
        try:
            check_reference(value)
            if one_line(value, limit) != value:
                raise ValueError(f"it must have at most {limit} printable characters")
        except ValueError as error:
            mended = f"`metaharvest sites edit NAME --{column} REFERENCE` (or `none`) mends it"
            self.wrong(column, f"{column} (not shown) cannot be used, since {error}; {mended}")
        return value or None

    def flag(self, column: str) -> bool:
        value = str(self.values[column]).strip().lower()
        if value in ("1", "true", "t", "yes"):
            return True
        if value not in ("0", "false", "f", "no"):
            self.wrong(column, f"{column} is {_quoted(self.values[column])}; it must be 1 or 0")
        return False


def _checked(values: dict[str, object]) -> Site | BrokenSite:
    """The row as a Site, or as a BrokenSite with a finding for everything that is wrong with it."""
    row = _Row(values)
    site_id = int(str(values["site_schedule_id"]))
    name = str(values["name"] or "")
    row.encoding("name", "documentlisturl", "contact_email")
    if not name or len(name) > 100 or one_line(name) != name:
        row.wrong("name", f"the name is {_quoted(values['name'])}; it must have 1 to 100 printable characters")
    url = str(values["documentlisturl"] or "")
    contacts: tuple[str, ...] = ()
    try:
        url = check_list_url(url)
    except ValueError as error:
        row.wrong("documentlisturl", str(error))
    try:
        contacts = split_contacts(values["contact_email"])
    except ValueError as error:
        row.wrong("contact_email", str(error))
    if values["source_kind"] != "harvest-list":
        row.wrong("source_kind", f"source_kind is {_quoted(values['source_kind'])}; it must be harvest-list")
    site = Site(
        site_id=site_id,
        name=one_line(name, 100) or f"site {site_id}",
        list_url=url,
        contacts=contacts,
        frequency=row.number("updatefrequency", 1, MAX_FREQUENCY),
        unit=row.choice("unit", Unit, Unit.DAYS),
        next_harvest=row.day("datenextharvest"),
        last_harvest=row.day("datelastharvest"),
        day_of_month=row.number("day_of_month", 1, 31) if values["day_of_month"] is not None else None,
        notify=row.choice("notify", Notify, Notify.ALWAYS),
        enabled=row.flag("enabled"),
        options=_options(row),
        list_version=_list_version(values),
        ldap_name=row.text("ldapdn", 255),
        ldap_password=row.reference("ldappwd", 255),
    )
    if not row.problems:
        return site
    findings = tuple(_broken(site.name, sentence) for _, sentence in row.problems)
    enabled = site.enabled or "enabled" in dict(row.problems)
    return BrokenSite(site_id, site.name, url, enabled, findings, _usable(values["contact_email"]))


def _usable(addresses: object) -> tuple[str, ...]:
    """Those of the addresses in a text that are addresses."""
    found: dict[str, None] = {}
    for part in str(addresses or "").replace(";", ",").split(","):
        try:
            found[check_email(part)] = None
        except ValueError:
            continue
    return tuple(found)


def _list_version(values: Mapping[str, object]) -> ListVersion | None:
    etag, last_modified, sha256 = (
        str(value) if value is not None else None
        for value in (values["list_etag"], values["list_last_modified"], values["list_sha256"])
    )
    return ListVersion(etag, last_modified, sha256) if sha256 else None


def _options(row: _Row) -> SiteOptions:
    raw = row.values["options"]
    if raw is None or raw == "":
        return SiteOptions()
    try:
        options = json.loads(str(raw))
        unknown = set(options) - {"package_id_mismatch", "allow_networks", "ca_file"}
        if unknown:
            raise ValueError(f"there is no option {', '.join(sorted(map(str, unknown)))}")
        mismatch = options.get("package_id_mismatch")
        ca_file = Path(options["ca_file"]) if options.get("ca_file") else None
        if ca_file is not None:
            _check_ca_file(ca_file)
        return SiteOptions(
            Level(mismatch) if mismatch is not None else None,
            tuple(check_network(network) for network in options.get("allow_networks", [])),
            ca_file,
        )
    except RecursionError:
        row.wrong("options", f"the options {_quoted(raw)} cannot be used: they are nested too deeply")
    except (ValueError, TypeError, AttributeError) as error:
        row.wrong("options", f"the options {_quoted(raw)} cannot be used: {one_line(str(error))}")
    return SiteOptions()


def _check_ca_file(path: Path) -> None:
    """Raises ValueError where it cannot be a path; whether there is a file is said when it is read."""
    try:
        at_home(path)
        if b"\0" in os.fsencode(path):
            raise ValueError("a path has no NUL characters")
    except ValueError as error:
        raise ValueError(f"ca_file is not a path: {error}") from None


def _broken(name: str, sentence: str) -> Finding:
    return Finding(
        "site.row",
        f"{name}: {sentence}.",
        f"Put it right with `metaharvest sites edit '{name}'`, or switch it off with `metaharvest sites disable`.",
    )


def _quoted(value: object) -> str:
    return "empty" if value is None or value == "" else f"'{one_line(str(value), 80)}'"
