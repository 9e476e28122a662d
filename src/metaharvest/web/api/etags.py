"""The ETags of sites: each names the registered values, whatever the harvests of the site were."""

from __future__ import annotations

import hashlib
import json

from metaharvest.services import sites
from metaharvest.services.harvester import Harvester
from metaharvest.services.sites import AnySite, values_of


def etag_of_site(harvester: Harvester, name: str) -> str:
    """The ETag of the site of this name. Raises ScheduleError."""
    return etag_of(sites.find(harvester, name))


def etag_of(site: AnySite) -> str:
    """The ETag of these values."""
    values = {**values_of(site), "next_harvest": None, "last_harvest": None}
    text = json.dumps([site.site_id, site.name, values], sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]}"'
