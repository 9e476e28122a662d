"""The list of sites for people who look after many: filters, an order, pages. It reads no log and no harvest by itself.

A page of a thousand sites has a fixed number of queries; `sites.py` has everything about single sites.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import partial

from sqlalchemy.orm import Session

from metaharvest.ledger.retries import numbers_failing
from metaharvest.model import Site
from metaharvest.queries.sites import state_of
from metaharvest.queries.trends import FailedSite, failed_sites
from metaharvest.sites.overdue import overdue_sites
from metaharvest.sites.registry import read_sites
from metaharvest.sites.rows import BrokenSite
from metaharvest.text import shown_url


class SiteOrder(StrEnum):
    """The order of the list: by name; the longest without success first; the most failing first; the next first."""

    NAME = "name"
    LAST_SUCCESS = "last-success"
    FAILING = "failing"
    NEXT = "next"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    """The place of a site in this order."""
    return (*_FIRST[order](site), site.site.lower(), site.site_id)


def _place_in(text: str | None, like: _Key) -> _Key | None:
    """The key of the last site of a page; None if the text is no key of the same form as `like`."""
    try:
        found = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    return tuple(found) if isinstance(found, list) and [*map(type, found)] == [*map(type, like)] else None
