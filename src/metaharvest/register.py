"""The register of sites: reads, checks and changes harvest_site_schedule.

Other people's SQL may have left anything in that table, so its rows are read as they are and checked one by one: a
broken row is a `BrokenSite`, which fails alone, and never the reason why others are not harvested.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import urlsplit

from sqlalchemy import delete, select, text, update
from sqlalchemy.orm import Session

from metaharvest import due
from metaharvest.database.models import HarvestSiteSchedule
from metaharvest.errors import ScheduleError
from metaharvest.records import Finding, Level, ListVersion, Network, Notify, Site, SiteOptions, Unit
from metaharvest.settings import check_email, check_network
from metaharvest.text import one_line, shown_url

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
)
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


def read_site(session: Session, site_id: int) -> Site | BrokenSite | None:
    """The row of this number as it stands now; None where there is none any more."""
    return next(map(_checked, raw_rows(session, "WHERE site_schedule_id = :id", {"id": site_id})), None)


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


def set_dates(session: Session, harvested: Site, today: date, version: ListVersion | None) -> date | None:
    """Note that the site was harvested today, and from which version of its list; its next date.

    Somebody may have changed the site meanwhile: its frequency as it stands now counts, and a next date that is another
    than the one this harvest was due on stays.
    """
    site = read_site(session, harvested.site_id)
    if not isinstance(site, Site):
        return None
    columns: dict[str, object] = {
        "datelastharvest": today,
        "list_etag": version.etag if version else None,
        "list_last_modified": version.last_modified if version else None,
        "list_sha256": version.sha256 if version else None,
    }
    next_date = site.next_harvest
    if site.next_harvest == harvested.next_harvest:
        next_date = due.next_harvest(site, today)
        columns["datenextharvest"] = next_date
        columns["day_of_month"] = (due.set_day(site) or today.day) if site.unit is Unit.MONTHS else None
    ours = HarvestSiteSchedule.site_schedule_id == site.site_id
    session.execute(update(HarvestSiteSchedule).where(ours).values(**columns))
    return next_date


def forget_list(session: Session, site_id: int) -> None:
    """Let the site's list be read again next time, whatever its server says."""
    ours = HarvestSiteSchedule.site_schedule_id == site_id
    session.execute(
        update(HarvestSiteSchedule).where(ours).values(list_etag=None, list_last_modified=None, list_sha256=None)
    )


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
    """`url` trimmed; ValueError with a sentence where it is not an absolute http or https URL."""
    trimmed = url.strip()
    try:
        parts = urlsplit(trimmed)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable or parts.scheme.lower() not in ("http", "https") or any(c.isspace() or ord(c) < 32 for c in trimmed):
        raise ValueError(
            f"the list URL '{shown_url(trimmed)}' is not a web address; write it like https://example.org/list.xml"
        )
    return trimmed


def split_contacts(addresses: object) -> tuple[str, ...]:
    """The contact addresses in a text, split on `,` or `;`, trimmed and each checked. Raises ValueError."""
    parts = [part.strip() for part in str(addresses or "").replace(";", ",").split(",")]
    contacts = tuple(dict.fromkeys(check_email(part) for part in parts if part))
    if not contacts:
        raise ValueError("there is no contact; give at least one email address")
    return contacts


def options_text(package_id_mismatch: Level | None, allow_networks: Sequence[Network]) -> str | None:
    """Per-site options as they are stored: JSON, or None where there are none."""
    options: dict[str, object] = {}
    if package_id_mismatch is not None:
        options["package_id_mismatch"] = package_id_mismatch.value
    if allow_networks:
        options["allow_networks"] = [str(network) for network in allow_networks]
    return json.dumps(options) if options else None


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
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    columns = ", ".join(f"CAST({name} AS BLOB) AS {name}" if is_sqlite else name for name in _COLUMNS)
    rows = session.execute(text(f"SELECT {columns} FROM harvest_site_schedule {where}"), values or {}).mappings()
    return [{name: _text(value) for name, value in row.items()} for row in rows]


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
        "options": options_text(site.options.package_id_mismatch, site.options.allow_networks),
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
        unknown = set(options) - {"package_id_mismatch", "allow_networks"}
        if unknown:
            raise ValueError(f"there is no option {', '.join(sorted(map(str, unknown)))}")
        mismatch = options.get("package_id_mismatch")
        return SiteOptions(
            Level(mismatch) if mismatch is not None else None,
            tuple(check_network(network) for network in options.get("allow_networks", [])),
        )
    except (ValueError, TypeError, AttributeError) as error:
        row.wrong("options", f"the options {_quoted(raw)} cannot be used: {one_line(str(error))}")
        return SiteOptions()


def _broken(name: str, sentence: str) -> Finding:
    return Finding(
        "site.row",
        f"{name}: {sentence}.",
        f"Put it right with `metaharvest sites edit '{name}'`, or switch it off with `metaharvest sites disable`.",
    )


def _quoted(value: object) -> str:
    return "empty" if value is None or value == "" else f"'{one_line(str(value), 80)}'"
