"""Finds sites that have the same source: one list, or one set and format of a repository, is harvested once.

Two URLs count as the same if servers see no difference: the case of the host, the default port, a `/` behind a base
URL, the order of a query, needless escapes. `http` and `https` differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from urllib.parse import parse_qsl, unquote, urlsplit

from metaharvest.errors import SameSource
from metaharvest.fetch.url import BadUrl, parse_url
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
