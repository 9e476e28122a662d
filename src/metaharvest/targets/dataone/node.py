"""The calls of the REST API of a member node; every failure is a TargetError."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import TypeVar
from urllib.parse import quote

from metaharvest.errors import TargetError
from metaharvest.model.values import frozen
from metaharvest.targets.dataone import refusals, system_metadata
from metaharvest.targets.dataone.system_metadata import ObjectInfo, SystemMetadata, root_of
from metaharvest.targets.http import ANSWER_BYTES, HttpAnswer, HttpClient
from metaharvest.targets.interruption import require_time
from metaharvest.text import one_line

Content = TypeVar("Content")

_PAGE = 1000
"""The number of objects in a request for a listing; a node may return fewer."""

_MOST_OBJECTS = 1_000_000
"""The most objects of a listing; the largest nodes list some hundred thousand metadata objects."""

_PAGES = 100
_OBJECTS_PER_PAGE = 20
"""A listing has at most `_PAGES` pages, and one more for each `_OBJECTS_PER_PAGE` objects."""

_MORE = 10_000
"""The number of objects that a node may add while its listing is read, beside a tenth of all."""

MOST_REVISIONS = 10_000
"""The most objects of one series."""


class Unreadable(TargetError):
    """The object exists, and we may not read it."""


@frozen
class Rights:
    """True if we may create objects, None if the node does not say; `refusal`: its words, if not."""

    may_create: bool | None
    refusal: str = ""


class Node:
    """The node at the url of `client`. Requests carry the bearer token, if there is one. Safe for threads."""

    def __init__(self, client: HttpClient, token: str) -> None:
        self._client = client
        self._headers = {"Accept": "text/xml", **({"Authorization": f"Bearer {token}"} if token else {})}
        self.url = client.url

    def capabilities(self) -> tuple[str, str]:
        """The node's identifier and name, and why nothing can be uploaded, as the end of a sentence, or empty."""
        answer = self._ask("GET", "/node")
        root = _read(answer, root_of)
        if root.tag.rpartition("}")[2] != "node":
            raise refusals.not_understood(answer, f"the root of what it says is {one_line(root.tag, 100)}")
        identifier, name = (one_line(root.findtext(each, ""), 100) for each in ("identifier", "name"))
        storage = [each for each in root.iter("service") if each.get("name") == "MNStorage"]
        trouble = "" if root.get("state", "up") == "up" else "says that it is down"
        if not any(each.get("version") == "v2" and each.get("available") in ("true", "1") for each in storage):
            trouble = trouble or "does not offer the storage API, version 2"
        return f"{identifier} ({name})", trouble

    def rights(self) -> Rights:
        """True if we may create objects: an empty request to create one changes nothing."""
        nothing = (("nothing", (None, "", "text/plain")),)
        answer = self._client.ask("POST", "/object", headers=self._headers, parts=nothing)
        error = refusals.error_in(answer)
        if answer.status in (401, 403):
            return Rights(False, str(error or f"{answer.status} {answer.reason}"))
        # GMN checks the identity before the content; Metacat checks the content first.
        knows = error is not None and error.name == "InvalidRequest" and "Missing part" in error.description
        return Rights(True if knows else None)

    def meta(self, identifier: str) -> SystemMetadata | None:
        """The system metadata of the object with this PID, or of the last object of the series with this id.

        None if there is neither. Raises Unreadable if we may not read them.
        """
        if not identifier:
            return None
        answer = self._ask("GET", f"/meta/{quoted(identifier)}")
        if refusals.is_not_found(answer):
            return None
        if answer.status in (401, 403):
            raise Unreadable(*refusals.refused_question(answer).findings)
        return _read(answer, system_metadata.parsed)

    def content(self, pid: str) -> bytes | None:
        """The bytes of an object; None if it is not there."""
        answer = self._ask("GET", f"/object/{quoted(pid)}", most_bytes=self._client.document_bytes)
        return None if refusals.is_not_found(answer) else _read(answer, bytes)

    def total(self, filters: Mapping[str, str] | None = None) -> int:
        """The number of objects that it lists under these filters."""
        return self._page(0, 0, filters or {})[0]

    def listing(self, filters: Mapping[str, str], most: int = _MOST_OBJECTS) -> Iterator[tuple[int, list[ObjectInfo]]]:
        """The node's objects, at most `most`, page by page, each page with the total number of objects.

        Raises TargetError, also if a page is empty before the end, and if the listing has no end.
        """
        start, first = 0, None
        for number in count(1):
            require_time()
            total, page = self._page(start, _PAGE, filters)
            first = total if first is None else first
            if total > most:
                raise refusals.endless_listing(self.url, f"it has {total:,} objects, and {most:,} are the most")
            if start > first + first // 10 + _MORE:
                raise refusals.endless_listing(self.url, f"it had {first:,} objects at first, and {total:,} by now")
            if number > _PAGES + total // _OBJECTS_PER_PAGE:
                raise refusals.endless_listing(self.url, f"{number:,} pages gave {start:,} of {total:,} objects")
            if not page and start < total:
                total = self.total(filters)
                if start < total:
                    raise refusals.short_listing(self.url, start, total)
            yield total, page
            start += len(page)
            if not page or start >= total:
                return

    def create(self, pid: str, sysmeta: bytes, content: bytes) -> HttpAnswer:
        """Add an object; returns any response. Raises Unanswered."""
        return self._send("POST", "/object", "pid", pid, sysmeta, content)

    def update(self, old_pid: str, pid: str, sysmeta: bytes, content: bytes) -> HttpAnswer:
        """Add an object that supersedes another; returns any response. Raises Unanswered."""
        return self._send("PUT", f"/object/{quoted(old_pid)}", "newPid", pid, sysmeta, content)

    def archive(self, pid: str) -> HttpAnswer:
        """Mark an object as archived; returns any response. Raises Unanswered."""
        return self._ask("PUT", f"/archive/{quoted(pid)}")

    def _page(self, start: int, number: int, filters: Mapping[str, str]) -> tuple[int, list[ObjectInfo]]:
        params = {**filters, "start": str(start), "count": str(number)}
        answer = self._ask("GET", "/object", params=params, most_bytes=system_metadata.PAGE_BYTES)
        error = refusals.error_in(answer)
        if start and error and error.name == "InvalidRequest":
            # There are fewer objects now: GMN refuses a page that begins after the last.
            return start, []
        return _read(answer, system_metadata.listed)

    def _send(self, method: str, path: str, field: str, pid: str, sysmeta: bytes, content: bytes) -> HttpAnswer:
        parts = (
            (field, (None, pid, "text/plain")),
            ("sysmeta", ("sysmeta.xml", sysmeta, "text/xml")),
            ("object", ("object", content, "application/octet-stream")),
        )
        return self._client.ask(method, path, headers=self._headers, parts=parts)

    def _ask(
        self, method: str, path: str, params: Mapping[str, str] | None = None, most_bytes: int = ANSWER_BYTES
    ) -> HttpAnswer:
        return self._client.ask(method, path, headers=self._headers, params=params, most_bytes=most_bytes)


def _read(answer: HttpAnswer, parsed: Callable[[bytes], Content]) -> Content:
    """The parsed content of a success. Raises TargetError, also for content that does not follow the API."""
    if not answer.ok:
        raise refusals.refused_question(answer)
    try:
        return parsed(answer.body)
    except ValueError as error:
        raise refusals.not_understood(answer, str(error)) from error


def quoted(identifier: str) -> str:
    """An identifier as one segment of a path."""
    # A segment of dots alone would change the path.
    return quote(identifier, safe="") if identifier.strip(".") else identifier.replace(".", "%2E")
