"""The documents of ResourceSync 1.1, for programs that keep a copy of all records. Pure.

The resources are the records in XML. See ANSI/NISO Z39.99-2017: https://www.openarchives.org/rs/1.1/resourcesync
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from metaharvest.catalogue.resources import ChangeRange, Changes, Resource
from metaharvest.web.pages.addresses import RESERVED, page_path, xml_path
from metaharvest.web.pages.sitemap import NAMESPACE, url_element

SOURCE_DESCRIPTION = ".well-known/resourcesync"
CAPABILITY_LIST = "resourcesync/capabilitylist.xml"
RESOURCE_LIST = "resourcesync/resourcelist.xml"
CHANGE_LIST = "resourcesync/changelist.xml"
PART_OF_RESOURCE_LIST = "resourcesync/resourcelist/{index}.xml"
PART_OF_CHANGE_LIST = "resourcesync/changelist/{index}.xml"

_NAMESPACE = "http://www.openarchives.org/rs/terms/"
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_URI = ("http://", "https://", "urn:", "eml://")
"""The beginnings of namespaces that are certainly URIs."""


def source_description(root_url: str) -> str:
    """The document that names the capability list of the installation."""
    head = [_link(f"{root_url}/", "describedby"), _metadata(capability="description")]
    entry = url_element("url", f"{root_url}/{CAPABILITY_LIST}", None, _metadata(capability="capabilitylist"))
    return _file("urlset", head, [entry])


def capability_list(root_url: str) -> str:
    """The document that names the resource list and the change list."""
    head = [_up(f"{root_url}/{SOURCE_DESCRIPTION}"), _metadata(capability="capabilitylist")]
    capabilities = {"resourcelist": RESOURCE_LIST, "changelist": CHANGE_LIST}
    entries = [
        url_element("url", f"{root_url}/{path}", None, _metadata(capability=name))
        for name, path in capabilities.items()
    ]
    return _file("urlset", head, entries)


def resource_list_index(ranges: Iterable[int], root_url: str, at: datetime) -> str:
    """The addresses of the parts of the resource list, which has all resources as they are at this time, or later."""
    head = [_up(f"{root_url}/{CAPABILITY_LIST}"), _metadata(capability="resourcelist", at=_stamp(at))]
    return _file(
        "sitemapindex",
        head,
        (url_element("sitemap", _part_url(root_url, PART_OF_RESOURCE_LIST, each)) for each in ranges),
    )


def resource_list(resources: Iterable[Resource], root_url: str, at: datetime, *, is_part: bool = False) -> str:
    """The resource list, or a part of it, which was read at this time, or later.

    No resource has a later date: a copy whose next changes begin at the newest date lacks none.
    """
    head = _head_of_list(root_url, RESOURCE_LIST, is_part, _metadata(capability="resourcelist", at=_stamp(at)))
    return _file("urlset", head, (_resource(each, root_url, min(each.changed_at, at)) for each in resources))


def change_list_index(ranges: Iterable[ChangeRange], root_url: str) -> str:
    """The addresses of the parts of the change list in the order of time, with the time that each of them covers."""
    of_all = _metadata(capability="changelist", **{"from": _stamp(_BEGINNING)})
    entries = (
        url_element("sitemap", _part_url(root_url, PART_OF_CHANGE_LIST, each.index), None, _metadata(**_period(each)))
        for each in ranges
    )
    return _file("sitemapindex", [_up(f"{root_url}/{CAPABILITY_LIST}"), of_all], entries)


def change_list(changes: Changes, root_url: str, *, is_part: bool = False) -> str:
    """The change list, or a part of it."""
    head = _head_of_list(root_url, CHANGE_LIST, is_part, _metadata(capability="changelist", **_period(changes)))
    return _file("urlset", head, (_change(each, root_url) for each in changes.resources))


def _head_of_list(root_url: str, path: str, is_part: bool, metadata: str) -> Sequence[str]:
    index = [_link(f"{root_url}/{path}", "index")] if is_part else []
    return [_up(f"{root_url}/{CAPABILITY_LIST}"), *index, metadata]


def _resource(resource: Resource, root_url: str, at: datetime) -> str:
    facts = _metadata(**_content(resource))
    return url_element("url", _url(resource, root_url), at, facts, *_links(resource, root_url))


def _change(resource: Resource, root_url: str) -> str:
    at = resource.changed_at
    if resource.deleted:
        return url_element("url", _url(resource, root_url), None, _metadata(change="deleted", datetime=_stamp(at)))
    kind = "created" if resource.is_new else "updated"
    facts = _metadata(change=kind, datetime=_stamp(at), **_content(resource))
    return url_element("url", _url(resource, root_url), at, facts, *_links(resource, root_url))


def _content(resource: Resource) -> dict[str, str]:
    length = {} if resource.size is None else {"length": str(resource.size)}
    return {"hash": f"sha-256:{resource.sha256}", **length, "type": "application/xml"}


def _links(resource: Resource, root_url: str) -> Iterator[str]:
    """The landing page that the record describes, and the format of the record."""
    yield _link(f"{root_url}/{page_path(resource.document_id)}", "describes")
    if resource.document_type.startswith(_URI):
        yield _link(quote(resource.document_type, safe=RESERVED), "profile")


def _period(of: ChangeRange | Changes) -> dict[str, str]:
    until = {} if of.until is None else {"until": _stamp(of.until)}
    return {"from": _stamp(of.since or _BEGINNING), **until}


def _url(resource: Resource, root_url: str) -> str:
    return f"{root_url}/{xml_path(resource.document_id)}"


def _part_url(root_url: str, path: str, index: int) -> str:
    # Clients read the parts in the alphabetical order of their addresses.
    return f"{root_url}/{path.format(index=f'{index:09}')}"


def _up(url: str) -> str:
    return _link(url, "up")


def _link(url: str, relation: str) -> str:
    return f"<rs:ln rel={quoteattr(relation)} href={quoteattr(url)}/>"


def _metadata(**values: str) -> str:
    return "<rs:md" + "".join(f" {name}={quoteattr(value)}" for name, value in values.items()) + "/>"


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _file(root: str, head: Sequence[str], entries: Iterable[str]) -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{NAMESPACE}" xmlns:rs="{_NAMESPACE}">\n'
        f"{''.join(head)}\n{''.join(entries)}</{root}>\n"
    )
