"""Origins: the names of source repositories in document ids, and the sites of one origin."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlsplit

from metaharvest.fetch.url import host_without_dot, repository_key, without_login
from metaharvest.model import Site
from metaharvest.sites.rows import BrokenSite


def origin_of(base_url: str) -> str:
    """The default origin of a source repository: its base URL without the scheme.

    Document ids are public, and a query may have a key in it: the origin has a digest of the query.
    """
    try:
        parts = urlsplit(without_login(base_url.strip()))
    except ValueError:  # the check of the site reports it
        return "repository"
    query = f"-{hashlib.sha256(parts.query.encode()).hexdigest()[:8]}" if parts.query else ""
    address = f"{host_without_dot(parts.netloc.rpartition('@')[2])}{parts.path}".lower()
    return f"{re.sub('[^a-z0-9._~]+', '-', address).strip('-')[:190] or 'repository'}{query}"


def origins(sites: Iterable[Site | BrokenSite]) -> dict[str, str]:
    """The origins of these sites, by the key of their source repositories."""
    found: dict[str, str] = {}
    for site in sites:
        if isinstance(site, Site) and site.options.oai is not None:
            found.setdefault(repository_key(site.list_url), site.options.oai.origin)
    return found


def origin_for(base_url: str, given: Mapping[str, str]) -> str:
    """The origin of a source repository: the `given` one (see origins), or an unused one.

    If another source repository has the default origin, a digest distinguishes them: `/x/oai` and `/x-oai` have the
    same one.
    """
    key = repository_key(base_url)
    if key in given:
        return given[key]
    origin = origin_of(base_url)
    return origin if origin not in given.values() else f"{origin[:190]}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def sites_of_one_origin(
    sites: Iterable[Site | BrokenSite], target_of: Callable[[str], object]
) -> dict[int, frozenset[int]]:
    """The ids of the sites that share origin, format and target, by the id of each of them. Pure.

    A site that shares them with no other one is left out. `target_of` returns the target of a site, by its name.
    """
    groups: dict[tuple[str, str], list[tuple[object, set[int]]]] = {}
    for site in sites:
        if isinstance(site, Site) and (oai := site.options.oai) is not None:
            targets, target = groups.setdefault((oai.origin, oai.prefix), []), target_of(site.name)
            same = next((members for other, members in targets if other == target), None)
            if same is None:
                targets.append((target, {site.site_id}))
            else:
                same.add(site.site_id)
    found: dict[int, frozenset[int]] = {}
    for members in (members for targets in groups.values() for _, members in targets if len(members) > 1):
        found |= dict.fromkeys(members, frozenset(members))
    return found


def with_same_origin(site: Site | BrokenSite, sites: Iterable[Site | BrokenSite]) -> frozenset[int]:
    """The ids of this site, and of the `sites` with the same origin. Pure."""
    oai = site.options.oai if isinstance(site, Site) else None
    others = (each for each in sites if isinstance(each, Site) and each.options.oai is not None)
    same = (each.site_id for each in others if oai and each.options.oai and each.options.oai.origin == oai.origin)
    return frozenset((site.site_id, *same))
