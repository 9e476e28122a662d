"""Answers to browsers and crawlers: landing pages, records as XML, sitemaps, ResourceSync."""

from __future__ import annotations

import gzip
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from time import monotonic

from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from metaharvest.catalogue import resources
from metaharvest.catalogue.change_feed import last_change
from metaharvest.catalogue.selection import CatalogueEntry
from metaharvest.errors import DatabaseError, IndexUnavailable, NoIndex, QueryError
from metaharvest.queries.public_sites import documents_by_site, public_log
from metaharvest.services.harvester import Harvester
from metaharvest.text import LARGEST_ID, counted, one_line, whole_number
from metaharvest.web.bodies import accepts_gzip
from metaharvest.web.pages import addresses, resource_sync, schema_org, search_page, signposting, sitemap
from metaharvest.web.pages.description import Description, describe, is_url
from metaharvest.web.pages.file_cache import KEPT_SECONDS, FileCache
from metaharvest.web.pages.landing import Landing, landing, published_content, published_entry
from metaharvest.web.provider.dublin_core import described_root
from metaharvest.web.provider.provider import Provider
from metaharvest.web.provider.view import hidden_of
from metaharvest.web.readers import Readers
from metaharvest.web.templates import environment
from metaharvest.web.turns import Busy, address_of

log = logging.getLogger(__name__)

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_SEARCH_HEADERS = {
    "Content-Security-Policy": HEADERS["Content-Security-Policy"].replace("form-action 'none'", "form-action 'self'")
}
_NO_INDEX = "The search has no index yet. The operator of this catalogue can make it."
UNEXPECTED_ERROR = "An unexpected error occurred. The operator of this catalogue finds it in the log."

_FOLDER = Path(__file__).parent / "templates"
_RETRY_SECONDS = 5
_RETRY_DATABASE_SECONDS = 60
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")
_ON_ONE_LINE = (
    ("Publisher", "publisher"),
    ("Contributors", "contributor"),
    ("Subjects", "subject"),
    ("Type", "type"),
    ("Language", "language"),
    ("Format of the data", "format"),
)
"""The elements of Dublin Core that a page shows on one line each, with their names for people."""

_LISTED = (
    ("Date", "date"),
    ("Coverage", "coverage"),
    ("Rights", "rights"),
    ("Identifiers", "identifier"),
    ("Source", "source"),
    ("Related", "relation"),
)
"""The elements of Dublin Core that a page shows value by value."""

_Answer = Callable[[Request], Response]


class Pages:
    """The pages of one installation, for several threads."""

    def __init__(self, harvester: Harvester, provider: Provider, readers: Readers) -> None:
        self._harvester = harvester
        self._provider = provider
        self._readers = readers
        self._public = provider.public
        self._root_url = self._public.base_url.removesuffix("/oai")
        self._files = FileCache(provider.turn)
        # The numbers of documents by site, and until when they are kept. They need no turn: /status must answer while
        # all turns are taken.
        self._numbers: tuple[float, Mapping[int, int]] = 0.0, {}
        self._templates = environment(_FOLDER)
        self._templates.filters["counted"] = counted
        self._templates.tests["url"] = is_url
        self._style = (_FOLDER / "pages.css").read_text(encoding="utf-8")

    def routes(self) -> Sequence[Route]:
        """The addresses of the pages."""
        return [
            Route("/documents/{document_id:path}", self._guarded(self._in_turn(self._document))),
            Route("/xml/{document_id:path}", self._guarded(self._in_turn(self._xml))),
            Route("/", self._guarded(self._start)),
            Route("/search", self._guarded(self._in_turn(self._search))),
            Route("/status", self._guarded(self._status)),
            Route("/sitemap.xml", self._guarded(self._sitemap_index)),
            Route("/sitemap/{after}.xml", self._guarded(self._sitemap)),
            Route(f"/{resource_sync.SOURCE_DESCRIPTION}", self._guarded(self._source_description)),
            Route(f"/{resource_sync.CAPABILITY_LIST}", self._guarded(self._capability_list)),
            Route(f"/{resource_sync.RESOURCE_LIST}", self._guarded(self._in_turn(self._resource_list))),
            Route(f"/{resource_sync.PART_OF_RESOURCE_LIST}", self._guarded(self._in_turn(self._part_of_resource_list))),
            Route(f"/{resource_sync.CHANGE_LIST}", self._guarded(self._in_turn(self._change_list))),
            Route(f"/{resource_sync.PART_OF_CHANGE_LIST}", self._guarded(self._in_turn(self._part_of_change_list))),
            Route("/robots.txt", self._guarded(self._robots)),
            Route("/pages.css", self._guarded(self._stylesheet)),
        ]

    def _guarded(self, answer: _Answer) -> _Answer:
        """An answer that becomes a sentence if there are many requests, or no database, or at an unexpected error."""

        def guarded(request: Request) -> Response:
            try:
                return answer(request)
            except Busy:
                text = "Many documents are being read at this moment. Please try again."
                return self._message(request, 503, text, {"Retry-After": str(_RETRY_SECONDS)})
            except DatabaseError as error:
                log.error("A page was not answered: %s", error)
                text = "The documents cannot be read at this moment. Please try again."
                return self._message(request, 503, text, {"Retry-After": str(_RETRY_DATABASE_SECONDS)})
            except Exception:
                log.exception("A page was not answered: an unexpected error")
                return self._message(request, 500, UNEXPECTED_ERROR)

        return guarded

    def _in_turn(self, answer: _Answer) -> _Answer:
        """An answer that reads a document: a bounded number of them is made at a time."""

        def in_turn(request: Request) -> Response:
            with self._provider.turn(address_of(request)):
                return answer(request)

        return in_turn

    def _document(self, request: Request) -> Response:
        document_id = request.path_params["document_id"]
        with self._harvester.reading() as session:
            hidden = hidden_of(session, self._public)
            entry = published_entry(session, document_id, hidden)
            found = None if entry is None or entry.deleted else landing(session, entry, hidden)
        if found is None:
            return self._missing(request, entry)
        title = found.entry.title or document_id
        description = describe(described_root(found.content), found.entry.document_type, title)
        links = signposting.page_links(found, description, self._root_url)
        return self._page(request, "document.html", 200, self._values(found, description), {"Link": links})

    def _values(self, found: Landing, description: Description) -> Mapping[str, object]:
        page_url = f"{self._root_url}/{addresses.page_path(found.entry.document_id)}"
        value = schema_org.json_ld(found, description, self._root_url, one_line(self._public.name))
        return {
            "landing": found,
            "title": description.title,
            "description": description,
            "details": [
                *((name, ["; ".join(texts)]) for name, element in _ON_ONE_LINE if (texts := description.of(element))),
                *((name, texts) for name, element in _LISTED if (texts := description.of(element))),
            ],
            "citation": description.citation(page_url),
            "json_ld": Markup(schema_org.written(value)),
            "page_path": addresses.page_path,
            "xml_path": addresses.xml_path,
        }

    def _xml(self, request: Request) -> Response:
        document_id, text = request.path_params["document_id"], request.query_params.get("revision")
        with self._harvester.reading() as session:
            hidden = hidden_of(session, self._public)
            entry = published_entry(session, document_id, hidden)
            content = None
            if entry is not None and not entry.deleted:
                revision = entry.revision if text is None else whole_number(text)
                if revision is not None:
                    content = published_content(session, entry, revision, hidden)
        if content is None:
            return self._missing(request, entry)
        file_name = _NOT_IN_NAMES.sub("_", document_id)[-100:]
        return Response(
            content,
            media_type="application/xml",
            headers={
                **HEADERS,
                "Content-Security-Policy": "default-src 'none'; sandbox",
                "Content-Disposition": f'attachment; filename="{file_name}.xml"',
                "Link": signposting.record_links(document_id, self._root_url),
            },
        )

    def _start(self, request: Request) -> Response:
        def counted() -> str:
            with self._harvester.reading() as session:
                return str(resources.number_of_resources(session, hidden_of(session, self._public)))

        number = int(gzip.decompress(self._files.get("number", counted)))
        return self._page(request, "start.html", 200, {"title": "Metadata documents", "number": number})

    def _status(self, request: Request) -> Response:
        until, numbers = self._numbers
        with self._harvester.reading() as session:
            if monotonic() >= until:
                numbers = documents_by_site(session)
                self._numbers = monotonic() + KEPT_SECONDS, numbers
            log_of_sites = public_log(session, hidden_of(session, self._public), numbers)
        return self._page(request, "status.html", 200, {"title": "Harvest log", "sites": log_of_sites})

    def _search(self, request: Request) -> Response:
        of = search_page.asked(request.query_params)
        title = f"Search: {one_line(of.text, 100)}" if of.text else "Search"
        status, headers, values = 200, dict(_SEARCH_HEADERS), search_page.form_values(of)
        try:
            values = search_page.answer_values(of, self._readers.searching.search(of.question))
        except QueryError as error:
            status, values = 400, {**values, "problem": str(error)}
        except NoIndex:
            status, values = 503, {**values, "problem": _NO_INDEX}
        except IndexUnavailable as error:
            log.error("A search was not answered: %s", error)
            status, values = 503, {**values, "problem": "The search does not work at this moment. Please try again."}
            headers["Retry-After"] = str(_RETRY_DATABASE_SECONDS)
        return self._page(request, "search.html", status, {"title": title, **values}, headers)

    def _sitemap_index(self, request: Request) -> Response:
        def made() -> str:
            with self._harvester.reading() as session:
                found = resources.parts(session, hidden_of(session, self._public), sitemap.MOST)
            return sitemap.index(found, self._root_url)

        return _xml_response(request, self._files.get("index", made))

    def _sitemap(self, request: Request) -> Response:
        after = whole_number(request.path_params["after"])
        if after is None:
            return self._missing(request, None)

        def made() -> str:
            with self._harvester.reading() as session:
                found = resources.documents_after(session, hidden_of(session, self._public), after, sitemap.MOST)
            return sitemap.part(found, self._root_url)

        return _xml_response(request, self._files.get(str(after), made))

    def _source_description(self, request: Request) -> Response:
        return _xml_response(request, resource_sync.source_description(self._root_url))

    def _capability_list(self, request: Request) -> Response:
        return _xml_response(request, resource_sync.capability_list(self._root_url))

    def _resource_list(self, request: Request) -> Response:
        """The whole list; or, if it is long, the index of its parts."""
        # The time before the list is read: changes that come meanwhile are later.
        at = self._time_of_lists()
        with self._harvester.reading() as session:
            hidden = hidden_of(session, self._public)
            ranges = resources.resource_ranges(session, hidden)
            found = resources.resources_in(session, max(ranges, default=0), hidden) if len(ranges) < 2 else None
        if found is None:
            return _xml_response(request, resource_sync.resource_list_index(ranges, self._root_url, at))
        return _xml_response(request, resource_sync.resource_list(found, self._root_url, at))

    def _part_of_resource_list(self, request: Request) -> Response:
        at = self._time_of_lists()
        with self._harvester.reading() as session:
            index = _index_of(request, session)
            if index is None:
                return self._missing(request, None)
            found = resources.resources_in(session, index, hidden_of(session, self._public))
        return _xml_response(request, resource_sync.resource_list(found, self._root_url, at, is_part=True))

    def _change_list(self, request: Request) -> Response:
        """The whole list; or, if it is long, the index of its parts."""
        at = self._time_of_lists()
        with self._harvester.reading() as session:
            hidden = hidden_of(session, self._public)
            ranges = resources.change_ranges(session, hidden, at)
            last = max((each.index for each in ranges), default=0)
            found = resources.changes_in(session, last, hidden, at) if len(ranges) < 2 else None
        if found is None:
            return _xml_response(request, resource_sync.change_list_index(ranges, self._root_url))
        return _xml_response(request, resource_sync.change_list(found, self._root_url))

    def _part_of_change_list(self, request: Request) -> Response:
        at = self._time_of_lists()
        with self._harvester.reading() as session:
            index = _index_of(request, session)
            if index is None:
                return self._missing(request, None)
            found = resources.changes_in(session, index, hidden_of(session, self._public), at)
        return _xml_response(request, resource_sync.change_list(found, self._root_url, is_part=True))

    def _time_of_lists(self) -> datetime:
        """The time until which every change is committed: see docs/provider.md."""
        return (self._harvester.now() - self._public.lag).replace(microsecond=0)

    def _robots(self, _request: Request) -> Response:
        text = f"User-agent: *\nAllow: /\nDisallow: /search\nDisallow: /api/\nSitemap: {self._root_url}/sitemap.xml\n"
        text += f"Sitemap: {self._root_url}/{resource_sync.RESOURCE_LIST}\n"
        return Response(text, media_type="text/plain", headers=HEADERS)

    def _stylesheet(self, _request: Request) -> Response:
        return Response(self._style, media_type="text/css", headers=HEADERS)

    def _missing(self, request: Request, entry: CatalogueEntry | None) -> Response:
        """The page for a document that was withdrawn, or that there never was."""
        if entry is None or not entry.deleted:
            return self._message(request, 404, "There is no document at this address.")
        values = {"title": "This document was withdrawn.", "entry": entry}
        return self._page(request, "withdrawn.html", 410, values)

    def _message(self, request: Request, status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
        return self._page(request, "message.html", status, {"title": text}, headers)

    def _page(
        self,
        request: Request,
        template: str,
        status: int,
        values: Mapping[str, object],
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        raw_path = request.scope.get("raw_path") or request.url.path.encode()
        up = addresses.up_from(raw_path)
        shared = {"name": one_line(self._public.name), "up": up, "has_search": self._readers.searching.is_there}
        content = self._templates.get_template(template).render(**shared, **values)
        return Response(content, status, {**HEADERS, **(headers or {})}, "text/html")


def _index_of(request: Request, session: Session) -> int | None:
    """The range that a request names; None if the catalogue has not come so far."""
    index = whole_number(request.path_params["index"], LARGEST_ID // resources.RANGE)
    return index if index is not None and index * resources.RANGE <= last_change(session) else None


def _xml_response(request: Request, content: str | bytes) -> Response:
    """An answer in XML: its text, or its text in gzip."""
    in_gzip = gzip.compress(content.encode(), 5) if isinstance(content, str) else content
    headers = {**HEADERS, "Vary": "Accept-Encoding"}
    if accepts_gzip(request):
        return Response(in_gzip, media_type="application/xml", headers={**headers, "Content-Encoding": "gzip"})
    return Response(gzip.decompress(in_gzip), media_type="application/xml", headers=headers)
