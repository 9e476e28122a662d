"""Registers the arguments of a check as sites of a rehearsal: each list, and all documents without a list.

A list whose URL is registered belongs to that site, with all its values. Other lists get sites that are deleted with
the rehearsal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from metaharvest.database.engine import readers, writers
from metaharvest.errors import CannotBeChecked
from metaharvest.fetch.client import Fetcher
from metaharvest.model import Notify, Site
from metaharvest.rehearsal.dry_run import Compared, Rehearsal
from metaharvest.rehearsal.input.arguments import Given, GivenDocuments, GivenList, GivenUrl
from metaharvest.rehearsal.input.source import Copies, GivenSource
from metaharvest.sites.registry import add_site, edit_site, find_site, read_sites
from metaharvest.sites.rows import BrokenSite, check_list_url
from metaharvest.sources.base import PagedSource, Source
from metaharvest.sources.lookup import SourceFor
from metaharvest.text import shown_url

_LONGEST_NAME = 80
_KIND = "harvest-list"

_UNREPORTED = {"notify": Notify.NEVER.value}
"""Findings are reported in other ways: a mail of a rehearsal has no reader."""


@dataclass(frozen=True, slots=True)
class GivenSite:
    """The list or documents that are harvested as the site `name`. `registered`: the real site, if there is one."""

    name: str
    given: Given
    registered: Site | BrokenSite | None = None


def registered_lists(scratch: Rehearsal) -> frozenset[str]:
    """The list URLs of the registered sites."""
    with readers(scratch.engine)() as session:
        return frozenset(site.list_url for site in read_sites(session))


def enter(
    scratch: Rehearsal, given: Iterable[Given], site_name: str | None, administrator: str, *, is_compared: bool
) -> list[GivenSite]:
    """The sites for these lists and documents, enabled in the schedule of the rehearsal.

    A list belongs to the site of this name; without one, to the site with this list URL; without one, to a new site.
    `is_compared`: a person wants a comparison of everything with the target. Raises CannotBeChecked, and ScheduleError
    for an unknown name.
    """
    given = list(given)
    if site_name is not None and (len(given) > 1 or isinstance(given[0], GivenDocuments)):
        raise CannotBeChecked("One harvest list can be rehearsed as a registered site: give its URL, or its file.")
    entered: list[GivenSite] = []
    with writers(scratch.engine).begin() as session:
        for each in given:
            site = _enter_one(session, each, site_name, administrator)
            entered.append(site)
            if site.registered is None and is_compared:
                scratch.compared[site.name] = Compared.AS_NOBODY
            elif isinstance(each, GivenDocuments):
                scratch.compared[site.name] = Compared.NOT
    return entered


def _enter_one(session: Session, given: Given, site_name: str | None, administrator: str) -> GivenSite:
    url = _list_url(given)
    sites = read_sites(session)
    of_this_url = (site.name for site in sites if isinstance(site, Site) and site.list_url == url)
    name = site_name or next(of_this_url, None)
    if name is not None:
        before = find_site(session, name)
        moved = {"documentlisturl": url} if isinstance(given, GivenUrl) else {}
        return GivenSite(edit_site(session, name, {"enabled": True, **_UNREPORTED, **moved}).name, given, before)
    new = {
        "name": _unused_name(given, {site.name for site in sites}),
        "documentlisturl": url,
        "contact_email": administrator or "contact@localhost.localdomain",
        **_UNREPORTED,
    }
    return GivenSite(add_site(session, new).name, given)


def _list_url(given: Given) -> str:
    """The URL of a list, or of the first document. Raises CannotBeChecked."""
    if isinstance(given, GivenList):
        return given.file.url
    if isinstance(given, GivenDocuments):
        return given.files[0].url
    try:
        return check_list_url(given.url)
    except ValueError as error:
        raise CannotBeChecked(f"{error}.".replace("the list URL", "The URL", 1)) from None


def _unused_name(given: Given, used: set[str]) -> str:
    if isinstance(given, GivenUrl):
        name = shown_url(given.url).partition("://")[2].partition("/")[0]
    else:
        name = Path(given.shown).name or given.shown
    name = (
        "".join(c for c in " ".join(name.split()) if c.isprintable() and c != "\ufffd")[:_LONGEST_NAME].strip()
        or "rehearsal"
    )
    number, unused = 1, name
    while unused in used:
        number += 1
        unused = f"{name} ({number})"
    return unused


def source_of(sites: Iterable[GivenSite], copies: Copies, own: SourceFor) -> SourceFor:
    """The source of each of these sites; for a registered site without a harvest list, its `own`."""
    by_name: Mapping[str, GivenSite] = {site.name: site for site in sites}

    def source(site: Site, fetcher: Fetcher) -> Source | PagedSource:
        given = by_name[site.name]
        if site.source_kind != _KIND and isinstance(given.given, GivenUrl):
            return own(site, fetcher)
        return GivenSource(given.given, site, fetcher, copies, is_site=given.registered is not None)

    return source
