"""The sites that are public: the registered sites that are not hidden; and how each of them stands, without reasons."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from enum import StrEnum

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from metaharvest.catalogue import publication
from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.catalogue.selection import Hidden, is_gone, published
from metaharvest.database.models import (
    IS_FULL,
    IS_REAL,
    CatalogueDocument,
    HarvestRun,
    HarvestSiteRun,
    HarvestSiteSchedule,
)
from metaharvest.database.statements import rows_with
from metaharvest.model import HARVESTED, NOT_HARVESTED, Site
from metaharvest.model.values import frozen
from metaharvest.queries.trends import harvested_sites
from metaharvest.sites.registry import read_sites, read_sites_of

_NOT_PUBLIC = select(HarvestSiteSchedule.site_schedule_id).where(HarvestSiteSchedule.public.is_not(True))


@frozen
class PublicSite:
    """A registered site; `origin` and `set_spec` are from its source repository, if it has one."""

    name: str
    origin: str | None
    set_spec: str | None
    site_id: int
    enabled: bool


def public_sites(session: Session, hidden: Hidden) -> Sequence[PublicSite]:
    """The registered sites in the order of their names, without those that are hidden or whose origin is."""
    found = []
    for site in read_sites(session):
        oai = site.options.oai if isinstance(site, Site) else None
        origin = oai.origin if oai else None
        if site.site_id not in hidden.sites and origin not in hidden.origins:
            set_spec = oai.set_spec if oai else None
            found.append(PublicSite(site.name, origin, set_spec, site.site_id, site.enabled))
    return found


def numbers_of(session: Session, names: Collection[str]) -> Mapping[str, int]:
    """The numbers of the registered sites with these names, by name."""
    query = select(HarvestSiteSchedule.name, HarvestSiteSchedule.site_schedule_id)
    rows = session.execute(query.where(HarvestSiteSchedule.name.in_(names)))
    found = {row.name: row.site_schedule_id for row in rows}
    return {name: found[name] for name in names if name in found}


def former_numbers_of(session: Session, names: Collection[str]) -> frozenset[int]:
    """The numbers of the sites that had one of these names in a harvest, also of those that were removed."""
    query = select(HarvestSiteRun.site_schedule_id).where(HarvestSiteRun.site_name.in_(names)).distinct()
    return frozenset(session.scalars(query))


def hidden_numbers(session: Session, names: Collection[str]) -> frozenset[int]:
    """The numbers of the sites that have, or had in a harvest, one of these names."""
    return former_numbers_of(session, names).union(numbers_of(session, names).values())


def unknown_numbers(session: Session) -> frozenset[int]:
    """The numbers of sites in the catalogue that were removed without a harvest: nothing says which name they had."""
    numbers = set(session.scalars(select(DOCUMENTS.c.site_schedule_id).distinct())) - {None}
    for known in (HarvestSiteSchedule.site_schedule_id, HarvestSiteRun.site_schedule_id):
        numbers.difference_update(session.scalars(select(known).where(known.in_(numbers)).distinct()))
    return frozenset(numbers)


def hidden_of(session: Session, names: Collection[str], seen: Collection[int] = ()) -> Hidden:
    """The sites and origins that are not published: by their flags, and by the settings, which give `names`.

    `seen` are more numbers of sites.
    """
    numbers = {*session.scalars(_NOT_PUBLIC), *seen, *(hidden_numbers(session, names) if names else ())}
    return Hidden(tuple(sorted(numbers)), tuple(names), publication.has_withheld(session))


def hidden_by(session: Session, names: Collection[str]) -> Hidden:
    """The sites and origins that are kept out of what leaves this program; `names` come from the settings.

    With names in the settings, documents of removed sites that never had a harvest are left out, too: they may be older
    than the flag of sites, and nothing says which name these had.
    """
    return hidden_of(session, names, unknown_numbers(session) if names else ())


def published_among(session: Session, documents: Collection[int], hidden: Hidden) -> Collection[int]:
    """The published documents among these, by number, without deleted ones."""
    number = DOCUMENTS.c.catalogue_document_id
    query = select(number).where(number.in_(documents), *published(DOCUMENTS, hidden), ~is_gone(DOCUMENTS, hidden))
    return set(session.scalars(query))


def names_of(session: Session, numbers: Collection[int]) -> Mapping[int, str]:
    """The names of the registered sites with these numbers, by number."""
    return {number: site.name for number, site in read_sites_of(session, numbers).items()} if numbers else {}


class Standing(StrEnum):
    """How a site stands, in words."""

    WELL = "well"
    FAILING = "failing"
    NEW = "not harvested yet"
    OFF = "switched off"


@frozen
class PublicStatus:
    """How a site stands `since` the first of its harvests in a row that ended like the last one.

    `last_harvest` is the day of the last harvest that did not fail as a whole. `documents` is the number of its
    documents in the catalogue. `since` goes back as far as the log does.
    """

    site: str
    standing: Standing
    since: date | None
    last_harvest: date | None
    documents: int


def public_log(session: Session, hidden: Hidden, numbers: Mapping[int, int] | None = None) -> Sequence[PublicStatus]:
    """The sites in the order of their names, without those that are hidden or whose origin is.

    `numbers` are the numbers of documents from `documents_by_site`; None: they are counted.
    """
    ends = _ends(session)
    if numbers is None:
        numbers = documents_by_site(session)
    found = []
    for site in public_sites(session, hidden):
        end = ends.get(site.site_id)
        standing = Standing.NEW if end is None else Standing.WELL if end.is_good else Standing.FAILING
        found.append(
            PublicStatus(
                site.name,
                standing if site.enabled else Standing.OFF,
                end.since if end is not None and site.enabled else None,
                end.last_good if end is not None else None,
                numbers.get(site.site_id, 0),
            )
        )
    return found


def documents_by_site(session: Session) -> Mapping[int, int]:
    """By site, the number of its documents in the catalogue. This query takes most of the time of the page."""
    site = CatalogueDocument.site_schedule_id
    query = select(site, func.count()).where(CatalogueDocument.deleted.is_(False), site.is_not(None)).group_by(site)
    return {each[0]: each[1] for each in session.execute(query) if each[0] is not None}


@frozen
class _End:
    """The end of a site's log: its last harvests in a row that ended alike."""

    is_good: bool
    since: date
    last_good: date | None


def _ends(session: Session) -> Mapping[int, _End]:
    """By site, the end of its log: since the first harvest after the last one that ended in the other way."""
    good, bad = _newest(session)
    registered = set(session.scalars(select(HarvestSiteSchedule.site_schedule_id)))
    harvested = registered & (good.keys() | bad.keys())
    last = {site: max(good.get(site, 0), bad.get(site, 0)) for site in harvested}
    before = {site: min(good.get(site, 0), bad.get(site, 0)) for site in last}
    first = _first_after(session, [number for number in before.values() if number])
    first |= _first(session, [site for site, number in before.items() if not number])
    days = _days(session, [*first.values(), *good.values()])
    return {
        site: _End(number == good.get(site), days[first[site]], days[good[site]] if site in good else None)
        for site, number in last.items()
    }


_BEFORE = aliased(HarvestSiteRun)
_IS_ENDED_HARVEST = (IS_REAL, IS_FULL, HarvestSiteRun.status.in_([*HARVESTED, *NOT_HARVESTED]))


def _newest(session: Session) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """By site, its newest harvest that ended well, and its newest one that failed as a whole.

    Each status of a site is one look into an index. A list of statuses would lead SQLite past the index.
    """
    row, sites, statuses = HarvestSiteRun, harvested_sites(session), (*HARVESTED, *NOT_HARVESTED)
    its_own = select(row.site_run_id).where(row.site_schedule_id == sites.c.value, IS_REAL, IS_FULL)
    newest = its_own.order_by(row.site_run_id.desc()).limit(1).correlate(sites)
    of_each = (newest.where(row.status == status).scalar_subquery() for status in statuses)
    good: dict[int, int] = {}
    bad: dict[int, int] = {}
    for site, *numbers in session.execute(select(sites.c.value, *of_each)):
        for status, number in zip(statuses, numbers, strict=True):
            if number is not None:
                ended_so = good if status in HARVESTED else bad
                ended_so[site] = max(number, ended_so.get(site, 0))
    return good, bad


def _first_after(session: Session, site_run_ids: Sequence[int]) -> dict[int, int]:
    """By site, the first harvest after the one among these site runs."""
    row, before = HarvestSiteRun, _BEFORE
    following = select(row.site_run_id).where(
        row.site_schedule_id == before.site_schedule_id, row.site_run_id > before.site_run_id, *_IS_ENDED_HARVEST
    )
    first = following.order_by(row.site_run_id).limit(1).correlate(before).scalar_subquery()
    rows = rows_with(session, select(before.site_schedule_id, first), before.site_run_id, site_run_ids)
    return {site: number for site, number in rows if number is not None}


def _first(session: Session, site_ids: Sequence[int]) -> dict[int, int]:
    """By site, the first harvest of all."""
    row, site = HarvestSiteRun, HarvestSiteSchedule.site_schedule_id
    own = select(row.site_run_id).where(row.site_schedule_id == site, *_IS_ENDED_HARVEST)
    first = own.order_by(row.site_run_id).limit(1).correlate(HarvestSiteSchedule).scalar_subquery()
    rows = rows_with(session, select(site, first), site, site_ids)
    return {each: number for each, number in rows if number is not None}


def _days(session: Session, site_run_ids: Sequence[int]) -> Mapping[int, date]:
    """The days of these site runs, by their numbers."""
    query = select(HarvestSiteRun.site_run_id, HarvestRun.harvest_date)
    query = query.join(HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id)
    rows = rows_with(session, query, HarvestSiteRun.site_run_id, site_run_ids)
    return {row[0]: row[1] for row in rows}
