"""Harvest lists as a source of documents: fetches a site's list, reads it as a whole, and fetches its documents.

fetch/ enforces the network policy, parser.py checks the list, and harvest/ decides about each listed document.
Duplicates and several revisions of a document are no errors here.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import BinaryIO

from metaharvest.errors import FetchError, ListError, RequestEnded
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.health import server_of
from metaharvest.fetch.html_page import html_title
from metaharvest.fetch.local_files import is_file_url
from metaharvest.fetch.url import without_login
from metaharvest.model import FetchedDocument, Finding, ListedDocument, ListVersion, OriginalColumns, Site
from metaharvest.sources.base import Listing
from metaharvest.sources.charset import apply_charset
from metaharvest.sources.harvest_list.parser import ListParser
from metaharvest.sources.harvest_list.values import MAX_LONG
from metaharvest.text import one_line, shown_url, whole_number

NOT_MODIFIED = 304
_CHUNK = 65_536
_HEADER = 100
_BARE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")

_HEAD = 65_536


class HarvestListSource:
    """The documents of one site, named by the harvest list at its list URL."""

    def __init__(self, site: Site, fetcher: Fetcher) -> None:
        self._site = site
        self._fetcher = fetcher
        self._reported_servers: set[str] = set()

    async def list_documents(self, known: ListVersion | None, seconds: float = inf) -> Listing:
        """The listed documents; see Source. The server's validators, or the bytes, identify a known list."""
        if self._fetcher.robots.is_binding and (forbidden := await self._forbidden(self._site.list_url)):
            raise FetchError(*forbidden)
        spool = tempfile.TemporaryFile(prefix="metaharvest-")  # noqa: SIM115 - _read closes it
        try:
            response = await self._fetcher.fetch_to(
                self._site.list_url,
                spool,
                reach=self._site.options.reach,
                file_folder=self._site.file_folder,
                known=known,
                seconds=seconds,
            )
            await apply_charset(spool, response.media_type)
        except BaseException:
            spool.close()
            raise
        if known is not None and (response.status == NOT_MODIFIED or response.sha256 == known.sha256):
            spool.close()
            etag, last_modified = response.etag or known.etag, response.last_modified or known.last_modified
            return Listing(None, ListVersion(_header(etag), _header(last_modified), known.sha256))
        version = ListVersion(_header(response.etag), _header(response.last_modified), response.sha256)
        listed = _read(spool, self._site, redirect_words(self._site.list_url, response.url))
        return Listing(listed, version, await self._forbidden(self._site.list_url))

    async def _forbidden(self, url: str) -> tuple[Finding, ...]:
        """The finding if the server's robots.txt forbids `url`; once for each server. After a stop it is empty.

        Raises RequestEnded if robots.txt is binding.
        """
        host = server_of(url)
        if host in self._reported_servers:
            return ()
        try:
            finding = await self._fetcher.robots.forbids(url, self._site.options.reach)
        except RequestEnded:
            if self._fetcher.robots.is_binding:
                raise
            return ()
        if finding is None or host in self._reported_servers:
            return ()
        self._reported_servers.add(host)
        return (finding,)

    def original_columns(self, document_id: str) -> OriginalColumns:
        """Scope and identifier, which form the document id."""
        return scope_and_identifier(document_id)

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        """The document's bytes as received. Raises FetchError, also for an HTML page in the document's place."""
        fetched = await fetch_document(document, self._site, self._fetcher, patience)
        findings = await self._forbidden(document.url)
        return replace(fetched, findings=findings) if findings else fetched

    async def fetch_again(
        self, document: ListedDocument, known: ListVersion, patience: float = inf
    ) -> FetchedDocument | None:
        """The document if it has changed; see RefetchingSource. An HTML page in its place is a FetchError, too."""
        fetched = await fetch_document(document, self._site, self._fetcher, patience, known)
        return fetched if fetched.sha256 else None


async def fetch_document(
    document: ListedDocument, site: Site, fetcher: Fetcher, patience: float = inf, known: ListVersion | None = None
) -> FetchedDocument:
    """The document's bytes, fetched for this site; no bytes, and no digest, if it is still the version `known`.

    Raises FetchError, also for an HTML page in the document's place, or if a binding robots.txt forbids it.
    """
    reach = site.options.reach
    if fetcher.robots.is_binding and (forbidden := await fetcher.robots.forbids(document.url, reach)):
        raise FetchError(forbidden)
    try:
        response, content = await fetcher.fetch(
            document.url,
            reach=reach,
            file_folder=site.file_folder,
            patience=patience,
            site_id=site.site_id,
            known=known,
        )
    except FetchError as error:
        leads_nowhere = error.status in (400, 404) or any(each.rule == "file.missing" for each in error.findings)
        if leads_nowhere and (hint := _url_advice(document.url)):
            error.findings = tuple(replace(each, remedy=hint) for each in error.findings)
        raise
    title = html_title(content[:_HEAD])
    if title is not None:
        finding = _html_instead(title, document.url, redirect_words(document.url, response.url))
        raise FetchError(finding, seconds=response.seconds)
    etag, last_modified = _header(response.etag), _header(response.last_modified)
    return FetchedDocument(document, content, response.sha256, response.seconds, etag=etag, last_modified=last_modified)


def _url_advice(url: str) -> str:
    """The remedy for a URL with the name of a file that is not written as URLs are; empty if it is."""
    name = url.partition("://")[2]
    if "\\" in name:
        return "Write / in place of \\ in the URL."
    if _BARE_PERCENT.search(name):
        return "If the name of the file has a %, write it as %25 in the URL."
    if "#" in name:
        return "A # ends the name of the file in a URL. If the name has it, write it as %23."
    return ""


def scope_and_identifier(document_id: str) -> OriginalColumns:
    """The two parts of a document id, `scope.identifier`; None for an id of another form."""
    scope, _, identifier = document_id.rpartition(".")
    number = whole_number(identifier, MAX_LONG)
    return (scope, number) if scope and number is not None else (None, None)


def _header(value: str | None) -> str | None:
    """A header to keep for the next request: printable, and not longer than usual."""
    return value if value and len(value) <= _HEADER and value.isascii() and value.isprintable() else None


def redirect_words(url: str, final: str) -> str:
    """The words about a redirect from `url` to `final`, the address of an answer; empty without a redirect."""
    is_same = final in (without_login(url), shown_url(url))
    return "" if is_same else f" (redirected to {one_line(shown_url(final), 200)})"


def _read(file: BinaryIO, site: Site, redirect: str) -> Iterator[ListedDocument]:
    with file:
        yield from read_list(file, files_allowed=site.file_folder is not None, redirect=redirect)


def read_list(
    file: BinaryIO, *, files_allowed: bool = False, base: str = "", redirect: str = ""
) -> Iterator[ListedDocument]:
    """The documents of the harvest list in `file` (open for reading, seekable), in its order, in bounded memory.

    `files_allowed`: it may name documents by file: URLs; with `base` also relative to that URL. `redirect`: see
    redirect_words(). Raises ListError with every problem (at most 100, then their number) at the end: only a complete
    iteration shows that the list is valid.
    """
    file.seek(0)
    _refuse_what_is_no_list(file.read(_HEAD), redirect)
    file.seek(0)
    parser = ListParser(file, files_allowed, base)
    reading = True
    while reading and (chunk := file.read(_CHUNK)):
        reading = parser.feed(chunk)
        yield from parser.documents()
    if reading:
        parser.feed(b"", last=True)
        yield from parser.documents()
    parser.raise_for_problems()


def _refuse_what_is_no_list(head: bytes, redirect: str) -> None:
    if len(head) < _HEAD and not head.strip(b"\0 \t\r\n\xef\xbb\xbf\xff\xfe"):
        remedy = "Check whether the program that writes the list works, or whether the upload was complete."
        raise ListError(Finding("list.empty", "The list is empty: it contains no text at all.", remedy))
    title = html_title(head)
    if title is not None:
        message = f"This is an HTML page{_titled(title)}{redirect}, not a harvest list."
        remedy = (
            "Check the list URL that is registered for your site, and open it in a browser where you are not logged "
            "in: it must give the XML itself."
        )
        raise ListError(Finding("list.html-page", message, remedy, line=1))


def _html_instead(title: str, url: str, redirect: str) -> Finding:
    page = "the XML document itself, not a page about it, a login page or an error page"
    if is_file_url(url):
        came, remedy = "The file is", f"Give {page}."
    else:
        came, remedy = "The server sent", f"Open the URL in a browser where you are not logged in: it must give {page}."
    message = f"{came} an HTML page{_titled(title)}{redirect} where the document was expected."
    return Finding("http.html-page", message, remedy)


def _titled(title: str) -> str:
    return f" titled '{one_line(title, 200)}'" if title else ""
