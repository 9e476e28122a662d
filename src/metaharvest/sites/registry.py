"""The registry of sites: reads and changes the rows of harvest_site_schedule, the schedule.

`rows.py` checks rows. A broken row is a `BrokenSite`, which fails alone: the other sites are harvested all the same.
`due.py` calculates when a site is due.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from functools import lru_cache

from sqlalchemy import Date, Row, TextClause, bindparam, delete, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestSiteSchedule
from metaharvest.errors import ScheduleError
from metaharvest.model import ListVersion, Site, Unit
from metaharvest.model.actions import todo
from metaharvest.sites import due
from metaharvest.sites.options import options_text
from metaharvest.sites.rows import BrokenSite, checked_row, is_day, row_values
from metaharvest.text import one_line, some_of

_SCHEDULE = Base.metadata.tables[HarvestSiteSchedule.__tablename__]
_DEFAULTS = {column.name: getattr(column.default, "arg", None) for column in _SCHEDULE.columns}
_UPDATE = update(_SCHEDULE).where(_SCHEDULE.c.site_schedule_id == bindparam("site_id"))


def read_sites(session: Session) -> list[Site | BrokenSite]:
    """All rows of the schedule, sorted by name."""
    return sorted(_sites(session), key=lambda site: (site.name.lower(), site.site_id))


def _sites(session: Session, where: str = "", values: Mapping[str, object] | None = None) -> list[Site | BrokenSite]:
    """Rows of the schedule as sites. Rows are checked once for each content: 1,000 of them take 0.1 seconds."""
    path = tuple(sys.path)
    return [_checked(path, *row) for row in _rows(session, where, values)]


@lru_cache(maxsize=20_000, typed=True)
def _checked(_path: tuple[str, ...], *values: object) -> Site | BrokenSite:
    """The search path is part of the key, as it decides which kinds of sources are installed."""
    return checked_row(dict(zip(_DEFAULTS, map(_decoded, values), strict=True)))


def read_sites_due_before(session: Session, day: date) -> list[Site | BrokenSite]:
    """The rows whose next date is before `day` or not set. Only these are checked: the schedule may be large."""
    return _sites(session, "WHERE datenextharvest < :day OR datenextharvest IS NULL", {"day": day})


def read_sites_harvested_after(session: Session, day: date) -> list[Site | BrokenSite]:
    """The rows whose last date is after `day`."""
    return _sites(session, "WHERE datelastharvest > :day", {"day": day})


def read_site(session: Session, site_id: int) -> Site | BrokenSite | None:
    """The row with this number as it is now; None if it has been removed."""
    return read_sites_of(session, [site_id]).get(site_id)


def read_sites_of(session: Session, site_ids: Collection[int]) -> dict[int, Site | BrokenSite]:
    """The rows with these numbers as they are now, by number; those that have been removed are left out."""
    return {site.site_id: site for site in _sites(session, "WHERE site_schedule_id IN :ids", {"ids": list(site_ids)})}


def find_site(session: Session, name: str) -> Site | BrokenSite:
    """The site of this name. Raises ScheduleError if there is none."""
    # The comparison of a database may ignore case and accents.
    for site in _sites(session, "WHERE name = :name", {"name": name}):
        if site.name == name:
            return site
    sites = read_sites(session)
    for site in sites:
        if site.name == name:
            return site
    known = some_of([site.name for site in sites]) or "none is registered yet"
    raise ScheduleError(f"There is no site named '{one_line(name)}'. Known sites: {known}.")


def new_site(values: Mapping[str, object]) -> Site:
    """The site that these column values describe, not registered yet.

    Raises ScheduleError with a sentence for each value that is wrong.
    """
    return _require(checked_row({**_DEFAULTS, **values, "site_schedule_id": 0}))


def add_site(session: Session, values: Mapping[str, object]) -> Site:
    """Register a site from column values. Raises ScheduleError with a sentence for each value that is wrong."""
    site = new_site(values)
    add_sites(session, [site])
    return _require(find_site(session, site.name))


def add_sites(session: Session, sites: Iterable[Site]) -> None:
    """Register any number of new sites (see new_site). Raises ScheduleError if a name is used already."""
    with _names_are_free():
        for site in sites:
            _require_free(session, site)
            session.add(HarvestSiteSchedule(**row_values(site)))
        session.flush()


def lock_sites(session: Session, names: Collection[str]) -> None:
    """Hold the rows of these sites until the end of the transaction; SQLite holds all rows anyway."""
    table = HarvestSiteSchedule
    query = select(table.site_schedule_id).where(table.name.in_(names)).order_by(table.site_schedule_id)
    session.execute(query.with_for_update()).all()


def edit_site(session: Session, name: str, changes: Mapping[str, object]) -> Site:
    """Change columns of a site, broken or not. Raises ScheduleError if the site would be broken afterwards.

    An invalid last date is removed with a new next date: no option sets it, and nothing depends on it then.
    """
    site_id = find_site(session, name).site_id
    [row] = raw_rows(session, "WHERE site_schedule_id = :id", {"id": site_id})
    if "datenextharvest" in changes and not is_day(row["datelastharvest"]):
        row["datelastharvest"] = None
    site = _require(checked_row({**row, **changes}))
    _require_free(session, site)
    values = row_values(site)
    if "datenextharvest" in changes or "unit" in changes:
        values["day_of_month"] = None
    if "documentlisturl" in changes or "options" in changes:
        values |= _version_columns(None)
    with _names_are_free():
        session.execute(_UPDATE.values(values), {"site_id": site_id})
    if site.name != row["name"]:
        for other in [each for each, first in split_sites(session).items() if first == row["name"]]:
            its = _require(find_site(session, other))
            options = options_text(replace(its.options, split_from=site.name))
            session.execute(_UPDATE.values(options=options), {"site_id": its.site_id})
    return _require(find_site(session, site.name))


def split_sites(session: Session) -> dict[str, str]:
    """The sites that were made of one with several sets, by name: the name of the first of them."""
    sites = _split_rows(session)
    return {each.name: each.options.split_from for each in sites if isinstance(each, Site) and each.options.split_from}


def has_broken_split(session: Session) -> bool:
    """True if the row of an enabled site that was made of one with several sets cannot be used."""
    return any(isinstance(each, BrokenSite) and each.enabled for each in _split_rows(session))


def _split_rows(session: Session) -> list[Site | BrokenSite]:
    return _sites(session, """WHERE options LIKE '%"split_from"%'""")


def set_dates(
    session: Session,
    harvests: Iterable[tuple[Site, ListVersion | None]],
    registered: Mapping[int, Site | BrokenSite],
    today: date,
) -> dict[int, date | None]:
    """Store that these sites were harvested today, and the versions of their lists; returns their next dates.

    The sites are as they were when their harvests began, `registered` are the sites as they are now. If a site was
    changed meanwhile, its present frequency counts, and a changed next date stays. With another URL or other options,
    its next list is read in any case.
    """
    next_dates: dict[int, date | None] = {}
    kept, moved = [], []
    for before, harvested in harvests:
        site = registered.get(before.site_id)
        if not isinstance(site, Site):
            continue
        next_dates[site.site_id] = site.next_harvest
        is_edited = (site.list_url, site.options) != (before.list_url, before.stored_options or before.options)
        version = _version_columns(None if is_edited else harvested)
        row = {"site_id": site.site_id, "datelastharvest": today, **version}
        if site.next_harvest != before.next_harvest:
            kept.append(row)
            continue
        next_date = next_dates[site.site_id] = due.next_harvest(site, today)
        day_of_month = (due.set_day(site) or today.day) if site.unit is Unit.MONTHS else None
        moved.append({**row, "datenextharvest": next_date, "day_of_month": day_of_month})
    for rows in (kept, moved):
        if rows:
            columns = [name for name in rows[0] if name != "site_id"]
            session.connection().execute(_UPDATE.values({name: bindparam(name) for name in columns}), rows)
    return next_dates


def set_next_harvest(session: Session, site_id: int, last: date | None, following: date) -> None:
    """Store the dates of the last and the next harvest of a site, broken or not."""
    values = {"datelastharvest": last, "datenextharvest": following, "day_of_month": None}
    session.execute(_UPDATE.values(values), {"site_id": site_id})


def _version_columns(version: ListVersion | None) -> dict[str, str | None]:
    """The columns with the version of its list that a site served; all None without one."""
    return {f"list_{name}": getattr(version, name, None) for name in ("etag", "last_modified", "sha256")}


def forget_lists(session: Session, site_ids: Collection[int]) -> None:
    """Delete the stored versions of these sites' lists, so that the next harvest reads the lists in any case."""
    session.connection().execute(_UPDATE.values(_version_columns(None)), [{"site_id": number} for number in site_ids])


def switch_site(session: Session, name: str, enabled: bool) -> None:
    """Enable or disable a site, broken or not."""
    session.execute(_UPDATE.values(enabled=enabled), {"site_id": find_site(session, name).site_id})


def hide_site(session: Session, name: str) -> None:
    """Publish the documents of a site, broken or not, no longer."""
    session.execute(_UPDATE.values(public=False), {"site_id": find_site(session, name).site_id})


def remove_site(session: Session, name: str) -> None:
    """Remove a site from the schedule; its runs, log rows and documents stay."""
    site_id = find_site(session, name).site_id
    session.execute(delete(HarvestSiteSchedule).where(HarvestSiteSchedule.site_schedule_id == site_id))


def _require_free(session: Session, site: Site) -> None:
    """Raises ScheduleError if another site has this name already."""
    others = select(HarvestSiteSchedule.site_schedule_id).where(
        HarvestSiteSchedule.name == site.name, HarvestSiteSchedule.site_schedule_id != site.site_id
    )
    if session.scalar(others) is not None:
        edit = todo("sites.edit", name=site.name)
        taken = f"There is a site named '{one_line(site.name)}' already"
        raise ScheduleError.about("name", f"{taken}; {edit} changes it.", f"{taken}. Choose another name.")


@contextmanager
def _names_are_free() -> Iterator[None]:
    """Raises ScheduleError if another person gives a site the same name at this moment: the database refuses it."""
    try:
        yield
    except IntegrityError as error:
        raise ScheduleError.about(
            "name", "Another person gave a site this name at the same moment. Look at the sites again."
        ) from error


def raw_rows(session: Session, where: str = "", values: Mapping[str, object] | None = None) -> list[dict[str, object]]:
    """Rows of the schedule, unchecked, by column: this does not fail, even if other people have stored bad values."""
    rows = _rows(session, where, values)
    return [dict(zip(_DEFAULTS, map(_decoded, row), strict=True)) for row in rows]


def _rows(session: Session, where: str, values: Mapping[str, object] | None) -> Sequence[Row[*tuple[object, ...]]]:
    """The values of these rows in the order of the columns.

    On SQLite text is read as bytes, since it may be in any encoding; on PostgreSQL dates are read as text, since they
    may be infinite, or in a year that Python's dates do not have.
    """
    return session.execute(_raw_select(session.get_bind().dialect.name, where), values or {}).all()


@lru_cache(maxsize=16)
def _raw_select(dialect: str, where: str) -> TextClause:
    def as_read(name: str) -> str:
        if dialect == "sqlite":
            return f"CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END AS {name}"
        is_date = dialect == "postgresql" and isinstance(_SCHEDULE.c[name].type, Date)
        return f"CAST({name} AS TEXT) AS {name}" if is_date else name

    columns = ", ".join(map(as_read, _DEFAULTS))
    statement = text(f"SELECT {columns} FROM harvest_site_schedule {where}")
    if ":ids" in where:
        return statement.bindparams(bindparam("ids", expanding=True))
    return statement.bindparams(bindparam("day", type_=Date())) if ":day" in where else statement


def _decoded(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _require(site: Site | BrokenSite) -> Site:
    if isinstance(site, BrokenSite):
        raise ScheduleError("\n".join(finding.message for finding in site.findings), site.wrong)
    return site


def sites_of_contact(session: Session, address: str) -> dict[int, str]:
    """The names of the sites that have this address, in lower case, as a contact; by their numbers."""
    escaped = address.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    # A database may not know the lower case of letters outside of ASCII: for these any characters will do.
    pattern = "".join(each if each.isascii() else "%" for each in escaped)
    rows = raw_rows(session, "WHERE lower(contact_email) LIKE :pattern ESCAPE '!'", {"pattern": f"%{pattern}%"})
    sites = [checked_row(row) for row in rows]
    return {site.site_id: site.name for site in sites if address in map(str.lower, site.contacts)}
