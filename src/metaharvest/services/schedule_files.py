"""The schedule as a file: exported, imported, taken over from a Metacat Harvester."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from metaharvest.accounts.audit import Decision
from metaharvest.errors import MetaharvestError, ScheduleError, TransformError
from metaharvest.model import Site, SiteOptions
from metaharvest.model.kinds import StageName
from metaharvest.model.values import frozen
from metaharvest.pipeline import steps
from metaharvest.services import public_flags
from metaharvest.services.harvester import Harvester
from metaharvest.services.sites import about, edition, loses_login, values_of, with_login
from metaharvest.sites.admin_policy import require_allowed
from metaharvest.sites.registrations.store import end_pauses
from metaharvest.sites.registry import add_site, edit_site, new_site, read_sites
from metaharvest.sites.rows import OAI, BrokenSite, row_values
from metaharvest.sites.same_source import origin_for, origins, require_new_source, source_key
from metaharvest.sites.site_files import (
    MOST_BYTES,
    FileRow,
    as_mapping,
    csv_text,
    has_login,
    json_text,
    problem_of,
    read_sites_file,
    require_kind,
    stored_options,
)
from metaharvest.takeover import metacat_import, metacat_tables
from metaharvest.takeover.imported_log import ImportedLog, LogImport, import_log
from metaharvest.takeover.metacat_import import ImportedRow
from metaharvest.takeover.metacat_tables import CsvTables, MetacatTables, database_tables

__all__ = ["MOST_BYTES", "CsvTables", "ImportedLog", "ImportedRow", "database_tables"]

_MOST_SHOWN = 50
_JUDGED = ("documentlisturl", "options")
"""The columns with values that the settings may not allow."""


@frozen
class ExportedSites:
    """The schedule as a file. `without_login`: sites whose login is left out of the URL; `broken`: sites left out."""

    content: bytes
    sites: int
    without_login: tuple[str, ...]
    broken: tuple[str, ...]


def export_file(harvester: Harvester, *, as_csv: bool = False, with_logins: bool = False) -> ExportedSites:
    """All sites as a file, JSON or CSV, which `import_file` reads."""
    rows = harvester.read(read_sites)
    sites = [site for site in rows if isinstance(site, Site)]
    mappings = [as_mapping(site, with_logins=with_logins) for site in sites]
    # A mark at the beginning makes spreadsheets read UTF-8.
    text = f"\ufeff{csv_text(mappings)}" if as_csv else json_text(mappings)
    without = tuple(site.name for site in sites if has_login(site) and not with_logins)
    return ExportedSites(
        text.encode("utf-8"), len(sites), without, tuple(each.name for each in rows if not isinstance(each, Site))
    )


@frozen
class SiteChange:
    """The result for a site of the file: added, changed or unchanged, and each changed value before and after."""

    name: str
    verdict: str
    changes: Mapping[str, tuple[object, object]]

    @property
    def lost_login(self) -> bool:
        """True if its URL had a user name or a password, and the new one has none."""
        before, after = self.changes.get("list_url", ("", ""))
        return loses_login(str(before), str(after))


@frozen
class ImportedSites:
    """The result for each site of a file; `with_new_date`: the sites whose next harvest comes from the file."""

    changes: tuple[SiteChange, ...]
    with_new_date: tuple[Site, ...]


def import_file(
    harvester: Harvester, content: bytes, *, dry_run: bool = False, allow_duplicates: bool = False
) -> ImportedSites:
    """Register the sites of a file, and change registered ones: all of them, or none; nothing in a dry run.

    The name identifies a site. A second import changes nothing. Raises MetaharvestError with all faults.
    """
    rows = read_sites_file(content)
    with harvester.writing() as session:
        before = {site.name: site for site in read_sites(session)}
        done = _import_rows(harvester, session, rows, allow_duplicates)
        new = {each.name for each in done if each.verdict == "added" or "next_harvest" in each.changes}
        harvester.audit(session, *_decisions(session, done, before))
        dated = tuple(site for site in read_sites(session) if isinstance(site, Site) and site.name in new)
        if dry_run:
            session.rollback()
    if not dry_run and any("public" in each.changes for each in done):
        public_flags.align(harvester)
    return ImportedSites(tuple(done), dated)


def _decisions(session: Session, done: Sequence[SiteChange], before: Mapping[str, Site | BrokenSite]) -> list[Decision]:
    after = {site.name: site for site in read_sites(session) if isinstance(site, Site)}
    names = [each.name for each in done if each.verdict != "unchanged" and each.name in after]
    return [
        edition(before[name], after[name], "sites.import")
        if name in before
        else about(after[name], "sites.import", after=values_of(after[name]))
        for name in names
    ]


def _import_rows(
    harvester: Harvester, session: Session, rows: Sequence[FileRow], allow_duplicates: bool
) -> list[SiteChange]:
    known = {site.name: site for site in read_sites(session)}
    names: dict[str, str] = {}
    done, problems = [], []
    for row in rows:
        problem = row.problem or ("" if row.name else "it has no name")
        if not problem and row.name in names:
            problem = f"the site '{row.name}' is in {names[row.name]} already"
        names.setdefault(row.name, row.place)
        if not problem:
            try:
                done.append(_imported(harvester, session, row, known))
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
    harvester: Harvester, session: Session, row: FileRow, known: Mapping[str, Site | BrokenSite]
) -> SiteChange:
    before = known.get(row.name)
    options = stored_options(row, before.options if before else SiteOptions())
    options = _with_origin(options, row, before, known.values())
    values: dict[str, Any] = {**row.values, "options": options}
    values = {name: _DEFAULTS[name] if value is None and name in _DEFAULTS else value for name, value in values.items()}
    if before is None:
        values = {"datenextharvest": harvester.today(), **require_kind(values, options)}
        require_allowed(harvester.settings, new_site(values), _JUDGED)
        return SiteChange(add_site(session, values).name, "added", {})
    if isinstance(url := values.get("documentlisturl"), str):
        values["documentlisturl"] = with_login(before, url)
    former = as_mapping(before, with_logins=True) if isinstance(before, Site) else {}
    if isinstance(before, Site):
        planned = new_site({**row_values(before), **values})
        if as_mapping(planned, with_logins=True) == former:
            return SiteChange(before.name, "unchanged", {})
    site = edit_site(session, row.name, values)
    if "day_of_month" in values and site.day_of_month != values["day_of_month"]:
        site = edit_site(session, row.name, {"day_of_month": values["day_of_month"]})
    require_allowed(harvester.settings, site, _JUDGED)
    after = as_mapping(site, with_logins=True)
    changes = {name: (former.get(name), value) for name, value in after.items() if former.get(name) != value}
    if site.enabled != before.enabled:
        end_pauses(session, site.site_id)
    if "full_text" in changes:
        steps.wake_site(session, StageName.FULL_TEXT, site.site_id)
    return SiteChange(site.name, "changed" if changes else "unchanged", changes)


def _with_origin(
    options: str | None, row: FileRow, before: Site | BrokenSite | None, known: Collection[Site | BrokenSite]
) -> str | None:
    """The options. A source repository without an origin gets one, as in `sites add`."""
    stored = json.loads(options or "{}")
    if "oai" not in stored and row.values.get("source_kind") != OAI:
        return options
    asked = stored.setdefault("oai", {})
    url = str(row.values.get("documentlisturl") or (before.list_url if before else ""))
    if not asked.get("origin"):
        asked["origin"] = origin_for(url, origins(known))
    return json.dumps(stored)


_DEFAULTS = {
    "updatefrequency": 1,
    "unit": "days",
    "notify": "always",
    "source_kind": "harvest-list",
    "enabled": True,
    "public": True,
}
"""The values for cells that the file leaves empty."""


def _duplicates(session: Session, done: Sequence[SiteChange], places: Mapping[str, str]) -> list[str]:
    """A sentence for each added site, or site with a new source, whose source another site has already."""
    sites = read_sites(session)
    by_name = {site.name: site for site in sites}
    by_source: dict[Hashable, list[Site | BrokenSite]] = {}
    for site in sites:
        by_source.setdefault(source_key(site), []).append(site)
    problems = []
    for change in done:
        site = by_name[change.name]
        if isinstance(site, Site) and (change.verdict == "added" or {"list_url", "oai"} & change.changes.keys()):
            try:
                require_new_source(site, by_source[source_key(site)])
            except ScheduleError as error:
                problems.append(f"{places[change.name]}: {problem_of(error)}")
    return problems


@frozen
class MetacatImport:
    """The result for the schedule of a Metacat Harvester, row by row, and for its log, if that was requested."""

    rows: tuple[ImportedRow, ...]
    log: ImportedLog | None
    totals: Mapping[str, int]


def import_metacat(
    harvester: Harvester,
    tables: MetacatTables,
    *,
    log: bool = False,
    dry_run: bool = False,
    start: str = "metaharvest",
) -> MetacatImport:
    """Import the schedule of a Metacat Harvester, and with `log` its log; nothing in a dry run.

    `start` is the beginning of a command line with the same settings. Raises MetaharvestError if the
    tables cannot be read.
    """

    def allowed(site: Site) -> None:
        require_allowed(harvester.settings, site, ("documentlisturl",))

    today, schedule = harvester.today(), list(tables.rows(metacat_tables.SCHEDULE))
    with harvester.reading() if dry_run else harvester.writing() as session:
        sites = read_sites(session)
        rows = metacat_import.decide(schedule, sites, today, allowed, start)
        totals = metacat_import.totals(rows)
        numbers = {site.name: site.site_id for site in sites}
        # In a dry run new sites have no number; any number will do.
        numbers |= {row.site: 0 for row in rows if row.values} if dry_run else metacat_import.add_rows(session, rows)
        if not dry_run:
            known = {each.name for each in sites}
            new = [site for site in read_sites(session) if site.name not in known]
            imported = [about(site, "sites.import_log", after=values_of(site)) for site in new]
            harvester.audit(session, *imported)
        if not log:
            return MetacatImport(tuple(rows), None, totals)
        settings = harvester.settings.harvester
        site_ids = {row.schedule_id: numbers[row.site] for row in rows if row.site}
        wanted = LogImport(
            site_ids, today - timedelta(days=settings.log_period_days), today, harvester.now(), settings.zone
        )
        logged, details = tables.rows(metacat_tables.LOG), tables.rows(metacat_tables.DETAIL_LOG)
        return MetacatImport(tuple(rows), import_log(session, logged, details, wanted, dry_run=dry_run), totals)
