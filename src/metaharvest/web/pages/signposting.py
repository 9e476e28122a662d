"""FAIR Signposting, level 1: typed links in the header `Link`, which programs read. Pure.

See https://signposting.org/FAIR/ for the relations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from metaharvest.web.pages.addresses import RESERVED, page_path, xml_path
from metaharvest.web.pages.description import Description
from metaharvest.web.pages.landing import Landing
from metaharvest.web.pages.resource_sync import CAPABILITY_LIST
from metaharvest.web.pages.schema_org import type_of

_MOST_CHARACTERS = 3500
"""Servers in front accept some 4,096 characters of headers: links that do not fit are left out."""


def page_links(landing: Landing, description: Description, root_url: str) -> str:
    """The header of a landing page: cite-as, type, describedby, resourcesync, license, author, item."""
    return _joined(list(_page_links(landing, description, root_url)))


def record_links(document_id: str, root_url: str) -> str:
    """The header of a record in XML: it describes the resource of its landing page."""
    page = f"{root_url}/{page_path(document_id)}"
    return _joined([_link(page, "describes", 'type="text/html"'), _copies(root_url)])


def _page_links(landing: Landing, description: Description, root_url: str) -> Iterator[str]:
    entry = landing.entry
    yield _link(description.persistent_url or f"{root_url}/{page_path(entry.document_id)}", "cite-as")
    yield _link("https://schema.org/AboutPage", "type")
    yield _link(f"https://schema.org/{type_of(description)}", "type")
    for each in (entry, *landing.formats):
        profile = quote(each.document_type, safe=RESERVED)
        attributes = ['type="application/xml"', *([f'profile="{profile}"'] if profile else [])]
        yield _link(f"{root_url}/{xml_path(each.document_id)}", "describedby", *attributes)
    yield _copies(root_url)
    if description.licence:
        yield _link(description.licence, "license")
    for url in description.authors:
        yield _link(url, "author")
    for url in description.files:
        yield _link(url, "item")


def _copies(root_url: str) -> str:
    """The link to ResourceSync, for programs that keep a copy."""
    return _link(f"{root_url}/{CAPABILITY_LIST}", "resourcesync")


def _link(url: str, relation: str, *attributes: str) -> str:
    return "; ".join((f"<{quote(url, safe=RESERVED)}>", f'rel="{relation}"', *attributes))


def _joined(links: Sequence[str]) -> str:
    kept, size = list[str](), 0
    for link in links:
        size += len(link) + 2
        if size > _MOST_CHARACTERS:
            break
        kept.append(link)
    return ", ".join(kept)
