"""What repositories are called in the document ids of their records: each has a name that no other one has."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from metaharvest.fetch.url import without_login
from metaharvest.model import Site
from metaharvest.sites.rows import BrokenSite


def origin_of(base_url: str) -> str:
    """The name in document ids that a repository gets if nobody gives it one: its base URL without the scheme.

    Document ids are public, and a query may have a key in it: of that, there is a digest.
    """
    try:
        parts = urlsplit(without_login(base_url.strip()))
    except ValueError:  # it is told as no web address where the site is checked
        return "repository"
    query = f"-{hashlib.sha256(parts.query.encode()).hexdigest()[:8]}" if parts.query else ""
    address = f"{parts.netloc.rpartition('@')[2]}{parts.path}".lower()
    return f"{re.sub('[^a-z0-9._~]+', '-', address).strip('-')[:190] or 'repository'}{query}"


def origin_for(base_url: str, sites: Iterable[Site | BrokenSite]) -> str:
    """The name for a repository: that which another site has given it, or one that none of these sites gives another.

    It is its base URL without the scheme; with a digest of that, where another repository has this name: `/x/oai` and
    `/x-oai` are written alike.
    """
    key, taken = repository_key(base_url), set()
    for site in sites:
        if isinstance(site, Site) and site.options.oai is not None:
            if repository_key(site.list_url) == key:
                return site.options.oai.origin
            taken.add(site.options.oai.origin)
    origin = origin_of(base_url)
    return origin if origin not in taken else f"{origin[:190]}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def repository_key(base_url: str) -> str:
    """What two base URLs of one repository have in common: however the host is written, with TLS or without."""
    return without_login(base_url).partition("://")[2].rstrip("/")
