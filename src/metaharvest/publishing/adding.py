"""Reads the documents that a person adds to a list: files of this machine, and URLs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from metaharvest.config.settings import Settings
from metaharvest.errors import FetchError, PublishingError
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.url import BadUrl, parse_url, shown
from metaharvest.harvest import adhoc_client
from metaharvest.model import Finding, ListedDocument, Network, Site, SiteOptions
from metaharvest.model.values import frozen
from metaharvest.publishing.documents import (
    HarvestListInstead,
    Identify,
    NotListable,
    SiteDocument,
    docid_in,
    fetched_document,
    parse_docid,
    site_document,
)
from metaharvest.publishing.folder import FileFinding
from metaharvest.publishing.list_file import ListFile
from metaharvest.publishing.naming import BaseUrl
from metaharvest.sources.base import TimeBudget
from metaharvest.sources.harvest_list.source import HarvestListSource
from metaharvest.sources.harvest_list.values import BadValue, check_url
from metaharvest.text import one_line, shown_url

_LIST_INSTEAD = Finding(
    "build.list-instead", "This is a harvest list, and no document.", "Name the documents that it lists."
)


@frozen
class Given:
    """Files and URLs that a person names; the web address of the files' folder, or of the one file; its docid.

    `networks` are allowed for URLs, beside the networks of the settings.
    """

    names: tuple[str, ...]
    base: BaseUrl | None = None
    url: str | None = None
    docid: str | None = None
    networks: tuple[Network, ...] = ()

    def __post_init__(self) -> None:
        """Raises PublishingError."""
        if (self.url or self.docid) and len(self.names) > 1:
            raise PublishingError("--url and --docid are about one document: name one, and the others after that.")
        if self.url and is_url(self.names[0]):
            raise PublishingError("--url says where a file is on the web; a document that is given by a URL is there.")
        for url in (self.url, *filter(is_url, self.names)):
            if url:
                _require_listable(url)

    @property
    def identify(self) -> Identify:
        """The function that identifies each document. Raises PublishingError."""
        if self.docid is None:
            return docid_in
        try:
            docid = parse_docid(self.docid.strip())
        except ValueError as error:
            message = f"--docid '{one_line(self.docid, 100)}' cannot be used: it is {error}"
            raise PublishingError(f"{message} Write it as in --docid alder.12.1.") from None
        return lambda _: docid


def _require_listable(url: str) -> None:
    try:
        if parse_url(check_url(url)).username is not None:
            raise PublishingError(f"{shown(url)} was given with a user name, and everybody can read a harvest list.")
    except BadValue as bad:
        raise PublishingError(f"{bad.mistake.message} {bad.mistake.remedy}") from None
    except BadUrl as error:
        raise PublishingError(f"{shown(url)} cannot be listed: {error}.") from None


def is_url(name: str) -> bool:
    """True if the name means a URL, and not a file."""
    return "://" in name


def read_given(given: Given, list_file: ListFile, settings: Settings) -> tuple[list[SiteDocument], list[FileFinding]]:
    """The documents, and findings about the others, which cannot be listed. Raises PublishingError."""
    documents: list[SiteDocument] = []
    findings: list[FileFinding] = []
    urls = [name for name in given.names if is_url(name)]
    site = Site(0, "", "", (), options=SiteOptions(allow_networks=given.networks))
    contents = adhoc_client.ask(settings, site, partial(_fetch, urls)) if urls else {}
    for name in dict.fromkeys(given.names):
        try:
            content = contents.get(name)
            if isinstance(content, FetchError):
                raise NotListable(*content.findings)
            if content is not None:
                documents.append(fetched_document(content, name, given.identify))
            else:
                path = Path(name)
                url = given.url or (given.base.url_of(path.name) if given.base else "")
                documents.append(_located(site_document(path, name, url, given.identify), list_file))
        except NotListable as error:
            findings += [FileFinding(shown_url(name), finding) for finding in error.findings]
        except HarvestListInstead:
            findings.append(FileFinding(shown_url(name), _LIST_INSTEAD))
    _require_different(documents)
    return documents, findings


def _located(document: SiteDocument, list_file: ListFile) -> SiteDocument:
    """The document with its URL: the given one, or else its URL in the list. Raises PublishingError."""
    if document.url:
        return document
    of_id = [entry.document for entry in list_file.entries if entry.document.document_id == document.document_id]
    if not of_id:
        raise PublishingError(
            f"Where is {one_line(document.file, 300)} on the web? Say so with --url, or with --base-url for its folder."
        )
    return replace(document, url=max(of_id, key=lambda each: each.revision).url)


def _require_different(documents: Sequence[SiteDocument]) -> None:
    files: dict[str, str] = {}
    for document in documents:
        other = files.setdefault(document.document_id, document.file)
        if other != document.file:
            both = f"{one_line(shown_url(other), 200)} and {one_line(shown_url(document.file), 200)}"
            raise PublishingError(f"{both} are the same document, {document.document_id}: add one of the two.")


async def _fetch(
    urls: Iterable[str], site: Site, fetcher: Fetcher, _budget: TimeBudget
) -> dict[str, bytes | FetchError]:
    """By URL, the bytes of the document, or the error if it could not be fetched."""
    source, found = HarvestListSource(site, fetcher), dict[str, bytes | FetchError]()
    for url in urls:
        try:
            found[url] = (await source.fetch(ListedDocument("", 0, "", url))).content
        except FetchError as error:
            found[url] = error
    return found
