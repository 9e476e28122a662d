"""The schedule in the form for people: every row, broken ones too; no secret and no credentials.

A page of the list of a thousand sites (`site_page`) has a fixed number of queries: it reads no log, and no harvest by
itself. `registered_sites` has everything about single sites.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from enum import StrEnum
from functools import partial
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.config.secret_references import NOT_SHOWN, is_reference
from metaharvest.database.models import HarvestSiteRun
from metaharvest.database.statements import rows_with
from metaharvest.ledger.retries import numbers_failing
from metaharvest.ledger.sweeps import full_lists
from metaharvest.model import NOT_HARVESTED, Site
from metaharvest.model.mappings import picked, record_of
from metaharvest.model.values import frozen
from metaharvest.queries.trends import (
    HARVESTS,
    FailedSite,
    Harvest,
    failed_sites,
    last_real_harvests,
    newest_site_runs,
    trends,
)
from metaharvest.sites.due import is_due
from metaharvest.sites.overdue import overdue_sites
from metaharvest.sites.registry import find_site, raw_rows, read_sites, read_sites_of
from metaharvest.sites.rows import BrokenSite
from metaharvest.text import one_line, shown_url

_HARVESTS_OF_ONE = 10


@frozen
class RequestOptions:
    """The request options of a site's source repository; `sets` has at most one set. See OaiOptions."""

    origin: str
    prefix: str
    sets: tuple[str, ...]
    begin: str | None
    until: str | None
    method: str
    full_every: int | None
    post: bool


@frozen(kw_only=True)
class RegisteredSite:
    """A row of the schedule; a broken one as it is in the table.

    `state` is off, due, waiting, overdue since a day, or broken. `package_id_mismatch` is None if the site has no own
    value. Only a broken row has its `options`; `problems` are its mistakes. The values from `last_status` on are about
    its harvests: `failing` is the number of failing documents, `failed_since` the first day of its failure as a whole,
    `trend` has its last harvests, `last_full_list` is the date of a full list by the source repository's clock.
    """

    site: str
    site_id: int
    state: str
    source_kind: str
    list_url: str
    contacts: tuple[str, ...]
    frequency: str
    every: Any
    unit: str | None
    next_harvest: Any
    last_harvest: Any
    notify: str | None
    enabled: bool
    public: bool
    package_id_mismatch: str | None = None
    allow_networks: tuple[str, ...] = ()
    ca_file: str | None = None
    validation: str | None = None
    filters: str | None = None
    normalize: str | None = None
    deletions: str | None = None
    max_loss: int | None = None
    full_text: str | None = None
    groups: tuple[str, ...] = ()
    oai: RequestOptions | None = None
    ldapdn: str | None
    ldappwd: str | None
    options: str | None = None
    problems: tuple[str, ...] = ()
    last_status: str | None = None
    last_run_id: int | None = None
    last_site_run_id: int | None = None
    failing: int = 0
    failing_since: date | None = None
    failed_since: date | None = None
    failed_nights: int = 0
    failure_reason: str | None = None
    took_seconds: float | None = None
    trend: tuple[Harvest, ...] = ()
    last_full_list: str | None = None

    @property
    def is_broken(self) -> bool:
        """True if its row cannot be used."""
        return self.state.startswith("broken")


_REGISTERED = (
    "state source_kind list_url contacts frequency every unit next_harvest last_harvest notify enabled public "
    "package_id_mismatch allow_networks ca_file validation filters normalize deletions max_loss full_text groups "
    "ldapdn ldappwd"
)
"""The values of a site's registration."""

_OF_SITE = (
    "site=name site_id source_kind contacts every=frequency unit=unit.value next_harvest last_harvest "
    "notify=notify.value enabled public ldapdn=ldap_name ldappwd=ldap_password"
)
_OF_LAST_HARVEST = "last_status=status last_run_id=run_id last_site_run_id=site_run_id took_seconds"


def site_names(session: Session) -> dict[int, str]:
    """The registered sites' names by number."""
    return {site.site_id: site.name for site in read_sites(session)}


def last_names(session: Session) -> dict[int, str]:
    """The names of all sites by number; of a removed site the last one."""
    registered = site_names(session)
    removed = {site: number for site, number in newest_site_runs(session).items() if site not in registered}
    harvested = select(HarvestSiteRun.site_schedule_id, HarvestSiteRun.site_name)
    rows = rows_with(session, harvested, HarvestSiteRun.site_run_id, removed.values())
    return registered | {row[0]: row[1] for row in rows}


def known_names(session: Session) -> dict[int, str]:
    """As `last_names`; names of removed sites say so."""
    registered = site_names(session)
    return {
        number: name if number in registered else f"{name} (registered no longer)"
        for number, name in last_names(session).items()
    }


def registered_sites(session: Session, today: date) -> list[RegisteredSite]:
    """All rows of the schedule, in the order of the names. The number of queries does not grow with the sites."""
    return _registered(session, read_sites(session), None, today, HARVESTS)


def registered_sites_of(session: Session, site_ids: Sequence[int], today: date) -> list[RegisteredSite]:
    """The rows with these numbers, in this order, as `registered_sites` has them."""
    found = read_sites_of(session, site_ids)
    chosen = [found[number] for number in site_ids if number in found]
    return _registered(session, chosen, [site.site_id for site in chosen], today, HARVESTS)


@frozen
class SiteFilter:
    """The selection of sites; None or False: any.

    `state` is off, due, waiting, overdue or broken. `not_harvested_for`: switched on, and without a
    successful harvest for at least this number of days, or ever.
    """

    state: str | None = None
    kind: str | None = None
    group: str | None = None
    failing: bool = False
    not_harvested_for: int | None = None

    def takes(self, site: RegisteredSite, today: date) -> bool:
        """True if this site is wanted."""
        last, state = site.last_harvest, re.split("[ ,]", site.state)
        days = self.not_harvested_for
        is_late = site.enabled and (not isinstance(last, date) or (today - last).days >= (days or 0))
        return (
            (self.state is None or self.state in state)
            and self.kind in (None, site.source_kind)
            and (self.group is None or self.group in site.groups)
            and (not self.failing or site.failing > 0 or site.last_status in NOT_HARVESTED)
            and (days is None or is_late)
        )


def registered_site(session: Session, name: str, today: date) -> RegisteredSite:
    """The site of this name, with more of its last harvests. Raises ScheduleError if there is none."""
    found = find_site(session, name)
    [site] = _registered(session, [found], [found.site_id], today, _HARVESTS_OF_ONE)
    return site


def registration(session: Session, site: Site | BrokenSite, today: date) -> RegisteredSite:
    """The values of a site's registration alone, without its harvests; it does not count as overdue."""
    if isinstance(site, Site):
        return _usable(site, {}, today)
    return _broken(site, _rows_of(session, [site.site_id])[site.site_id])


def registered_values(site: RegisteredSite) -> Mapping[str, object]:
    """The values of a site's registration, by the names for people, with each option of its source repository."""
    values: dict[str, object] = {"name": site.site, **picked(site, _REGISTERED)}
    if site.is_broken:
        values["options"] = site.options
    values["last_full_list"] = site.last_full_list
    if site.oai is not None:
        asked = {"set" if name == "sets" else name: value for name, value in asdict(site.oai).items()}
        values |= {f"oai_{name}": value for name, value in (asked | {"set": next(iter(site.oai.sets), None)}).items()}
    return values


def _registered(
    session: Session, sites: Sequence[Site | BrokenSite], site_ids: Sequence[int] | None, today: date, number: int
) -> list[RegisteredSite]:
    """These sites, each with this number of harvests; `site_ids` is None for all sites, which is quicker."""
    overdue = {site.name: site.since for site in overdue_sites(session, today)}
    numbers = [site.site_id for site in sites]
    failing, full = numbers_failing(session, numbers), full_lists(session, site_ids)
    failed = failed_sites(session, today, numbers)
    newest = newest_site_runs(session, site_ids)
    of_site_runs = trends(session, list(newest.values()), number)
    trend_of = {site_id: of_site_runs[site_run_id] for site_id, site_run_id in newest.items()}
    rehearsed = [site_id for site_id, trend in trend_of.items() if trend and trend[-1].rehearsal]
    last_of = {site_id: trend[-1] for site_id, trend in trend_of.items() if trend and not trend[-1].rehearsal}
    last_of |= last_real_harvests(session, rehearsed)
    broken = _rows_of(session, [site.site_id for site in sites if isinstance(site, BrokenSite)])
    found = []
    for site in sites:
        last, whole, lists = last_of.get(site.site_id), failed.get(site.site_id), full.get(site.site_id)
        number_failing, since = failing.get(site.site_id, (0, None))
        found.append(
            replace(
                _broken(site, broken[site.site_id]) if isinstance(site, BrokenSite) else _usable(site, overdue, today),
                **(picked(last, _OF_LAST_HARVEST) if last else {}),
                failing=number_failing,
                failing_since=since,
                **(picked(whole, "failed_since failed_nights failure_reason") if whole else {}),
                trend=trend_of.get(site.site_id, ()),
                last_full_list=one_line(lists.last, 40) if lists and lists.last else None,
            )
        )
    return found


def _usable(site: Site, overdue: Mapping[str, date], today: date) -> RegisteredSite:
    options, oai, state = site.options, site.options.oai, state_of(site, site.name in overdue, today)
    return RegisteredSite(
        **picked(site, _OF_SITE),
        **picked(options, "package_id_mismatch validation deletions max_loss full_text groups"),
        state=f"overdue since {overdue[site.name]}" if state == "overdue" else state,
        list_url=shown_url(site.list_url),
        frequency=f"{site.frequency} {site.unit}",
        allow_networks=tuple(map(str, options.allow_networks)),
        ca_file=str(options.ca_file) if options.ca_file else None,
        filters=str(options.filters) if options.filters else None,
        normalize=str(options.normalize) if options.normalize else None,
        oai=record_of(RequestOptions, oai, sets=(oai.set_spec,) if oai.set_spec else ()) if oai else None,
    )


def state_of(site: Site, is_overdue: bool, today: date) -> str:
    """The state of a site that can be used, in one word: off, overdue, due or waiting."""
    if not site.enabled:
        return "off"
    if is_overdue:
        return "overdue"
    return "due" if is_due(site, today) else "waiting"


def _rows_of(session: Session, site_ids: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """These rows of the schedule as they are in the table."""
    if not site_ids:
        return {}
    rows = {int(str(row["site_schedule_id"])): row for row in raw_rows(session)}
    return {site_id: rows[site_id] for site_id in site_ids}


def _broken(site: BrokenSite, row: Mapping[str, Any]) -> RegisteredSite:
    return RegisteredSite(
        site=site.name,
        site_id=site.site_id,
        state="broken" if site.enabled else "broken, off",
        source_kind=row["source_kind"],
        list_url=shown_url(site.list_url),
        contacts=(row["contact_email"],) if row["contact_email"] else (),
        frequency=f"{row['updatefrequency']} {row['unit']}",
        every=row["updatefrequency"],
        unit=row["unit"],
        next_harvest=row["datenextharvest"],
        last_harvest=row["datelastharvest"],
        notify=row["notify"],
        enabled=site.enabled,
        public=row["public"] in (True, 1),
        ldapdn=row["ldapdn"],
        ldappwd=row["ldappwd"] if is_reference(row["ldappwd"]) else NOT_SHOWN,
        options=row["options"],
        problems=tuple(finding.message for finding in site.findings),
    )


class SiteOrder(StrEnum):
    """The order of the list: by name; the longest without success first; the most failing first; the next first."""

    NAME = "name"
    LAST_SUCCESS = "last-success"
    FAILING = "failing"
    NEXT = "next"


@frozen
class SiteSelection:
    """The selection of sites; None or False: any.

    `state` is off, due, waiting, overdue or broken. `failing`: with failing documents, or failed as a whole. `text` is
    a part of the name, of the URL or of a contact's address, in any case.
    """

    state: str | None = None
    kind: str | None = None
    group: str | None = None
    overdue: bool = False
    failing: bool = False
    text: str = ""
    order: SiteOrder = SiteOrder.NAME


@frozen
class ListedSite:
    """A row of the schedule in the list. `state` is one word: off, due, waiting, overdue or broken.

    `last_success` is the day of its last harvest that did not fail as a whole; `failed` says why the last one did;
    `problems` are the mistakes of a broken row.
    """

    site: str
    site_id: int
    state: str
    source_kind: str
    list_url: str
    contacts: tuple[str, ...]
    groups: tuple[str, ...]
    enabled: bool
    last_success: date | None
    next_harvest: date | None
    overdue_since: date | None
    failing: int
    failing_since: date | None
    failed: FailedSite | None
    problems: tuple[str, ...]


@frozen
class SitePage:
    """A page of the list. `number` is the number of all sites of the selection; `next` is the cursor of the next page.

    `kinds` and `groups` are the values for filters, over all sites.
    """

    sites: tuple[ListedSite, ...]
    number: int
    next: str | None
    kinds: tuple[str, ...]
    groups: tuple[str, ...]


def site_page(
    session: Session, wanted: SiteSelection, today: date, *, limit: int = 100, after: str | None = None
) -> SitePage:
    """The sites of the selection in its order, behind the place `after`, the `next` of the page before.

    The place stays if the last site of that page is removed or gets another name. Any other text gives the first page.
    """
    every = listed_sites(session, today)
    chosen, key = _chosen(every, wanted), partial(_key, order=wanted.order)
    place = _place_in(after, key(chosen[0])) if chosen else None
    start = bisect_right(chosen, place, key=key) if place else 0
    shown = chosen[start : start + limit]
    return SitePage(
        tuple(shown),
        len(chosen),
        json.dumps(key(shown[-1])) if shown and start + limit < len(chosen) else None,
        tuple(sorted({site.source_kind for site in every if site.source_kind})),
        tuple(sorted({group for site in every for group in site.groups})),
    )


def chosen_sites(session: Session, wanted: SiteSelection, today: date) -> Sequence[ListedSite]:
    """All sites of the selection, in its order."""
    return _chosen(listed_sites(session, today), wanted)


def _chosen(sites: Sequence[ListedSite], wanted: SiteSelection) -> list[ListedSite]:
    return sorted(filter(_is_meant(wanted), sites), key=partial(_key, order=wanted.order))


def listed_sites(session: Session, today: date) -> Sequence[ListedSite]:
    """All rows of the schedule, by name."""
    sites = read_sites(session)
    numbers = [site.site_id for site in sites]
    late = {site.name: site.since for site in overdue_sites(session, today)}
    failing, failed = numbers_failing(session, numbers), failed_sites(session, today, numbers)
    return [
        _listed(site, late.get(site.name), failing.get(site.site_id, (0, None)), failed.get(site.site_id), today)
        for site in sites
    ]


def _listed(
    site: Site | BrokenSite,
    late: date | None,
    failing: tuple[int, date | None],
    failed: FailedSite | None,
    today: date,
) -> ListedSite:
    usable = site if isinstance(site, Site) else None
    state = state_of(usable, late is not None, today) if usable else "broken"
    return ListedSite(
        site=site.name,
        site_id=site.site_id,
        state=state,
        source_kind=usable.source_kind if usable else "",
        list_url=shown_url(site.list_url),
        contacts=site.contacts,
        groups=usable.options.groups if usable else (),
        enabled=site.enabled,
        last_success=usable.last_harvest if usable else None,
        next_harvest=usable.next_harvest if usable else None,
        overdue_since=late,
        failing=failing[0],
        failing_since=failing[1],
        failed=failed,
        problems=() if isinstance(site, Site) else tuple(finding.message for finding in site.findings),
    )


def _is_meant(wanted: SiteSelection) -> Callable[[ListedSite], bool]:
    part = wanted.text.strip().lower()

    def is_meant(site: ListedSite) -> bool:
        texts = (site.site, site.list_url, *site.contacts)
        return (
            wanted.state in (None, site.state)
            and wanted.kind in (None, site.source_kind)
            and (wanted.group is None or wanted.group in site.groups)
            and (not wanted.overdue or site.overdue_since is not None)
            and (not wanted.failing or site.failing > 0 or site.failed is not None)
            and (not part or any(part in text.lower() for text in texts))
        )

    return is_meant


_Key = tuple[int | str, ...]


_FIRST: Mapping[SiteOrder, Callable[[ListedSite], _Key]] = {
    SiteOrder.NAME: lambda site: (),
    SiteOrder.LAST_SUCCESS: lambda site: ((site.last_success or date.min).toordinal(),),
    SiteOrder.FAILING: lambda site: (int(site.failed is None), -site.failing),
    SiteOrder.NEXT: lambda site: ((site.next_harvest or date.min).toordinal(),),
}
"""The numbers that decide in each order; sites with the same numbers are in the order of their names."""


def _key(site: ListedSite, order: SiteOrder) -> _Key:
    return (*_FIRST[order](site), site.site.lower(), site.site_id)


def _place_in(text: str | None, like: _Key) -> _Key | None:
    """The key of the last site of a page; None if the text is no key of the same form as `like`."""
    try:
        found = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    return tuple(found) if isinstance(found, list) and [*map(type, found)] == [*map(type, like)] else None
