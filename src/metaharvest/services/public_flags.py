"""Publication: the documents of sites that are not public are withheld, and published again with their sites."""

from __future__ import annotations

from metaharvest.catalogue import withholding
from metaharvest.catalogue.selection import Position
from metaharvest.model import Site
from metaharvest.services.harvester import Harvester
from metaharvest.sites.registry import find_site, hide_site, read_sites_of
from metaharvest.sites.rows import BrokenSite

_AT_ONCE = 500
"""Documents of one transaction: others wait for it."""


def align(harvester: Harvester) -> None:
    """Withhold or publish documents as their sites are now.

    It goes on with an alignment that was interrupted, and follows flags that were changed with SQL.
    """
    with harvester.reading() as session:
        sites = read_sites_of(session, withholding.sites_to_align(session)).values()
    for site in sites:
        after: Position | None = None
        is_first = True
        while is_first or after is not None:
            after = harvester.write(
                withholding.align, site.site_id, after, _AT_ONCE, retract=not _is_named(harvester, site)
            )
            is_first = False


def keep_hidden(harvester: Harvester, name: str) -> None:
    """Make a site that the settings hide not public, before it loses its name. Raises ScheduleError."""
    with harvester.writing() as session:
        if _is_named(harvester, find_site(session, name)):
            hide_site(session, name)
    align(harvester)


def _is_named(harvester: Harvester, site: Site | BrokenSite) -> bool:
    """True if the settings hide the site: its documents were left out, and are not reported as deleted."""
    origin = site.options.oai.origin if isinstance(site, Site) and site.options.oai else None
    return not {site.name, origin}.isdisjoint(harvester.settings.web.hidden)
