"""The source of a site: one of this program, or one that another distribution adds.

An entry point in the group `metaharvest.sources` is called with the site and the client that fetches. It returns a
Source or a PagedSource (see base.py). Its name is the site's `source_kind`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from metaharvest.config.kinds import SOURCES
from metaharvest.errors import ScheduleError
from metaharvest.model import Site

if TYPE_CHECKING:
    from metaharvest.fetch.client import Fetcher
    from metaharvest.sources.base import PagedSource, Source

SourceFor = Callable[["Site", "Fetcher"], "Source | PagedSource"]


def source_for(site: Site, fetcher: Fetcher) -> Source | PagedSource:
    """The source of the site's `source_kind`. Raises ScheduleError if there is none, or it cannot be loaded."""
    if site.source_kind == "harvest-list":
        from metaharvest.sources.harvest_list.source import HarvestListSource

        return HarvestListSource(site, fetcher)
    if site.source_kind == "oai-pmh":
        from metaharvest.sources.oai_pmh.source import OaiSource

        return OaiSource(site, fetcher)
    try:
        make = SOURCES.load(site.source_kind)
    except ValueError as error:
        raise ScheduleError(f"{site.name}: source_kind = '{site.source_kind}' cannot be used: {error}.") from error
    source: Source | PagedSource = make(site, fetcher)
    return source
