"""The sites that are public: the registered sites that are not hidden, with their names, numbers and origins."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.catalogue import publication
from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.catalogue.selection import Hidden, is_gone, published
from metaharvest.database.models import HarvestSiteRun, HarvestSiteSchedule
from metaharvest.model import Site
from metaharvest.sites.registry import read_sites, read_sites_of

_NOT_PUBLIC = select(HarvestSiteSchedule.site_schedule_id).where(HarvestSiteSchedule.public.is_not(True))


@dataclass(frozen=True, slots=True)
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
