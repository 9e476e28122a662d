"""Sitemaps: the addresses of all landing pages, for crawlers. https://www.sitemaps.org/protocol.html"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from xml.sax.saxutils import escape

from metaharvest.web.pages.addresses import page_path

MOST = 50_000
"""Addresses in one file."""

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def index(parts: Iterable[tuple[int, datetime]], root_url: str) -> str:
    """The file that names all others; a part is the number after which it begins, and its last change."""
    return _file("sitemapindex", "sitemap", ((f"{root_url}/sitemap/{after}.xml", at) for after, at in parts))


def part(documents: Iterable[tuple[str, datetime]], root_url: str) -> str:
    """The addresses of these documents, which are ids and times of the last changes."""
    return _file("urlset", "url", ((f"{root_url}/{page_path(each)}", at) for each, at in documents))


def url_element(element: str, url: str, at: datetime | None = None, *more: str) -> str:
    """An element with an address, the time of its last change, and other elements."""
    changed = f"<lastmod>{at:%Y-%m-%dT%H:%M:%SZ}</lastmod>" if at is not None else ""
    return f"<{element}><loc>{escape(url)}</loc>{changed}{''.join(more)}</{element}>\n"


def _file(root: str, element: str, entries: Iterable[tuple[str, datetime]]) -> str:
    inside = "".join(url_element(element, url, at) for url, at in entries)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{NAMESPACE}">\n{inside}</{root}>\n'
