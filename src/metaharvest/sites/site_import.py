"""Registers the sites of a file: all of them, or none. The name identifies a site. A second import changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy.orm import Session

from metaharvest.errors import MetaharvestError, ScheduleError, TransformError
from metaharvest.model import Site, SiteOptions
from metaharvest.sites.duplicates import require_new_source
from metaharvest.sites.origins import origin_for, origins
from metaharvest.sites.registry import add_site, edit_site, new_site, read_sites
from metaharvest.sites.rows import OAI, BrokenSite, row_values
from metaharvest.sites.site_files import FileRow, as_mapping, problem_of, require_kind, stored_options

_MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class SiteChange:
    """The result for a site of the file: added, changed or unchanged, and each changed value before and after."""

    name: str
    verdict: str
    changes: Mapping[str, tuple[object, object]]


def import_sites(
    session: Session,
    rows: Sequence[FileRow],
    today: date,
    allowed: Callable[[Site], None],
    *,
    allow_duplicates: bool = False,
) -> list[SiteChange]:
    """Register the sites of these rows, and change registered ones. The caller commits, or does not.

    `allowed` raises ScheduleError for a site that the settings do not allow. Raises MetaharvestError with all faults;
    then the caller must roll back.
    """
    known = {site.name: site for site in read_sites(session)}
    names: dict[str, str] = {}
    done, problems = [], []
    for row in rows:
        problem = row.problem
        if not problem and not row.name:
            problem = "it has no name"
        if not problem and row.name in names:
            problem = f"the site '{row.name}' is in {names[row.name]} already"
        names.setdefault(row.name, row.place)
        if not problem:
            try:
                done.append(_imported(session, row, known.get(row.name), known.values(), today, allowed))
            except (ScheduleError, TransformError) as error:
                problem = problem_of(error)
        if problem:
            problems.append(f"{row.place}: {problem.rstrip('.')}.")
    if not problems and not allow_duplicates:
        problems = _duplicates(session, done, names)
    if problems:
        more = f"\n… and {len(problems) - _MOST_SHOWN:,} more." if len(problems) > _MOST_SHOWN else ""
        first = "\n".join(problems[:_MOST_SHOWN])
        raise MetaharvestError(f"{first}{more}\nNothing was imported: correct these rows, and import the file again.")
    return done


def _imported(
    session: Session,
    row: FileRow,
    before: Site | BrokenSite | None,
    known: Collection[Site | BrokenSite],
    today: date,
    allowed: Callable[[Site], None],
) -> SiteChange:
    options = stored_options(row, before.options if isinstance(before, Site) else SiteOptions())
    options = _with_origin(options, row, before, known)
    values: dict[str, Any] = {**row.values, "options": options}
    values = {name: _DEFAULTS[name] if value is None and name in _DEFAULTS else value for name, value in values.items()}
    if before is None:
        values = {"datenextharvest": today, **require_kind(values, options)}
        allowed(new_site(values))
        return SiteChange(add_site(session, values).name, "added", {})
    former = as_mapping(before, with_logins=True) if isinstance(before, Site) else {}
    if isinstance(before, Site):
        planned = new_site({**row_values(before), **values})
        if as_mapping(planned, with_logins=True) == former:
            return SiteChange(before.name, "unchanged", {})
    site = edit_site(session, row.name, values)
    if "day_of_month" in values and site.day_of_month != values["day_of_month"]:
        site = edit_site(session, row.name, {"day_of_month": values["day_of_month"]})
    allowed(site)
    after = as_mapping(site, with_logins=True)
    changes = {name: (former.get(name), value) for name, value in after.items() if former.get(name) != value}
    return SiteChange(site.name, "changed" if changes else "unchanged", changes)


def _with_origin(
    options: str | None, row: FileRow, before: Site | BrokenSite | None, known: Collection[Site | BrokenSite]
) -> str | None:
    """The options. A repository without an origin gets one, as in `sites add`."""
    stored = json.loads(options or "{}")
    if "oai" not in stored and row.values.get("source_kind") != OAI:
        return options
    asked = stored.setdefault("oai", {})
    url = str(row.values.get("documentlisturl") or (before.list_url if before else ""))
    if not asked.get("origin"):
        asked["origin"] = origin_for(url, origins(known))
    return json.dumps(stored)


_DEFAULTS = {"updatefrequency": 1, "unit": "days", "notify": "always", "source_kind": "harvest-list", "enabled": True}
"""The values for cells that the file leaves empty."""


def _duplicates(session: Session, done: Sequence[SiteChange], places: Mapping[str, str]) -> list[str]:
    """A sentence for each added site, or site with a new source, whose source another site has."""
    sites = read_sites(session)
    by_name = {site.name: site for site in sites}
    problems = []
    for change in done:
        site = by_name[change.name]
        if isinstance(site, Site) and (change.verdict == "added" or {"list_url", "oai"} & change.changes.keys()):
            try:
                require_new_source(site, sites)
            except ScheduleError as error:
                problems.append(f"{places[change.name]}: {problem_of(error)}")
    return problems
