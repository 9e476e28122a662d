"""Sites of one source: a list, or one set and format of a repository, is harvested once.

Two URLs count as the same if servers see no difference: the case of the host, the default port, a `/` behind a base
URL, the order of a query, needless escapes. `http` and `https` differ.

Sites of one source repository share its origin, which is its name in document ids.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from metaharvest.errors import SameSource
from metaharvest.fetch.url import BadUrl, host_without_dot, parse_url, repository_key, without_login
from metaharvest.model import Site
from metaharvest.model.actions import todo
from metaharvest.sites.rows import BrokenSite
from metaharvest.text import one_line


def url_key(url: str, *, is_repository: bool = False) -> Hashable:
    """A key that is equal for all URLs of one source. A login is a part of it: other users may get another list."""
    try:
        address = parse_url(url)
        parts = urlsplit(address.url)
    except (BadUrl, ValueError):
        return unquote(url.strip())
    path = unquote(parts.path) or "/"
    query = tuple(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    host = address.host.rstrip(".")
    return address.scheme, host, address.port, address.username, path.rstrip("/") if is_repository else path, query


def source_key(site: Site | BrokenSite) -> Hashable:
    """A key that is equal for sites with the same source. Of a broken row, only the URL counts."""
    oai = site.options.oai if isinstance(site, Site) else None
    if oai is None:
        return url_key(site.list_url)
    asked = (oai.origin, oai.prefix, oai.set_spec, oai.begin, oai.until)
    return url_key(site.list_url, is_repository=True), asked


def same_source(site: Site, sites: Iterable[Site | BrokenSite]) -> Site | BrokenSite | None:
    """Another one of these sites with the same source; None if there is none."""
    key = source_key(site)
    return next((each for each in sites if each.site_id != site.site_id and source_key(each) == key), None)


def require_new_source(site: Site, sites: Iterable[Site | BrokenSite]) -> None:
    """Raises SameSource if another one of these sites has the same source."""
    same = same_source(site, sites)
    if same is None:
        return
    name, own = one_line(same.name), one_line(site.name)
    what = "this list" if site.options.oai is None else "this repository for the same format and set"
    off = "" if same.enabled else ", which is switched off"
    raise SameSource.about(
        "list_url",
        f"The site '{name}'{off} harvests {what} already, so '{own}' would get `target.other-site` every night. "
        f"{todo('sites.edit', name=same.name)} changes that site. If the two go into different targets, "
        "--allow-duplicate registers both.",
        f"The site '{name}'{off} harvests {what} already.",
    )


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
