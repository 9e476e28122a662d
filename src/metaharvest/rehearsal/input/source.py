"""The arguments of a check as a source: it lists and fetches them as it does the documents of a registered site."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import BinaryIO

from metaharvest.config.files import open_file, read_file
from metaharvest.errors import FetchError
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.local_files import is_file_url, path_of
from metaharvest.model import FetchedDocument, Finding, Level, ListedDocument, ListVersion, OriginalColumns, Site
from metaharvest.model.actions import Remedy, Todo, todo
from metaharvest.publishing.documents import HarvestListInstead, NotListable, docid_in, read_document
from metaharvest.publishing.entries import was_listed
from metaharvest.publishing.list_file import Memory, remembered
from metaharvest.rehearsal.input.arguments import Given, GivenDocuments, GivenList, GivenUrl, LocalFile, copy_place
from metaharvest.rehearsal.input.listed_files import base_of_list
from metaharvest.sources.base import Listing
from metaharvest.sources.charset import apply_charset
from metaharvest.sources.harvest_list.source import fetch_document, read_list, redirect_words, scope_and_identifier
from metaharvest.sources.roots import as_listed, read_root
from metaharvest.text import one_line

_USUAL_NAME = "harvest-list.xml"


def _changed(document: ListedDocument, build: Todo) -> Finding:
    """A warning: the document is not the one that was listed under its docid. `build` raises its revision."""
    message = (
        f"{document.docid} was changed since it was listed, and its revision was not raised: a repository that has "
        "it does not fetch it again."
    )
    remedy = Remedy("Raise its revision, in the list and in the packageId: {} does both.", build)
    return Finding("list.changed-content", message, remedy, Level.WARNING, line=document.line)


def _is_accounted_for(fetched: FetchedDocument, memory: Memory | None) -> bool:
    """True if nothing changed, or if the packageId has a higher revision: another finding reports the latter."""
    if memory is None or memory.sha256 == fetched.sha256:
        return True
    try:
        eml = read_document(fetched.content)
        if was_listed(eml, memory):
            return True
        document_id, revision = docid_in(eml)
    except (NotListable, HarvestListInstead):
        return False
    return document_id == memory.document_id and revision > memory.revision


def build_of(given: GivenList | GivenUrl) -> Todo:
    """The action that builds this list again and writes raised revisions into the packageIds."""
    if isinstance(given, GivenUrl):
        front, _, name = given.url.rpartition("/")
        return _build(None, f"{front}/", "" if name == _USUAL_NAME else f"FOLDER/{name}")
    file = given.file
    if given.folder and given.base_url:
        inside = Path(given.folder, _USUAL_NAME).absolute() == file.path
        return _build(given.folder, given.base_url, "" if inside else file.shown)
    try:
        with file.path.open("rb") as opened:
            base = base_of_list(file.path, read_list(opened, files_allowed=True, base=file.base))
    except Exception:  # noqa: BLE001 - the list was read before; without it, the action has no values
        base = None
    folder = str(Path(file.shown).parent) if base else None
    return _build(folder, base.text if base else None, "" if base and file.path.name == _USUAL_NAME else file.shown)


def _build(folder: str | None, base: str | None, output: str) -> Todo:
    if output:
        return todo("lists.build_file", folder=folder, url=base, list=output)
    return todo("lists.build", folder=folder, url=base)


_LARGEST_LIST = 268_435_456
_WITHOUT_CONTENT = ("build.link", "build.unreadable")
"""Rules of findings about files that are not opened."""


class Copies:
    """The fetched content of a check, in files of a folder: findings show lines of it.

    If `reused`, fetched content is not fetched again.
    """

    def __init__(self, folder: Path, reused: bool = False) -> None:
        self.folder = folder
        self.reused = reused

    def file_of(self, url: str) -> Path | None:
        """The file with the content of `url`: its copy, or the local file that it names; None if there is none."""
        copy = self.place(url)
        if copy.exists():
            return copy
        return path_of(url) if is_file_url(url) else None

    def place(self, url: str) -> Path:
        """The place for the copy of the content of `url`."""
        return copy_place(self.folder, url)


class GivenSource:
    """A list or documents that were given to be checked, as a source; see Source.

    `is_site`: it is checked as a registered site, from which only a harvest list is harvested.
    """

    def __init__(self, given: Given, site: Site, fetcher: Fetcher, copies: Copies, *, is_site: bool = False) -> None:
        self._given = given
        self._is_site = is_site
        # A person who gives a file may read it, and the files in it. A site may read only files that the settings
        # allow.
        is_local = not isinstance(given, GivenUrl)
        self._site = replace(site, file_folder=Path("/")) if is_local and not site.file_folder else site
        self._fetcher = fetcher
        self._copies = copies
        self._memories: dict[str, Memory] = {}
        self._build: Todo | None = None
        # Documents of a long list are staged in a table, which drops these values.
        self._by_itself: dict[str, ListedDocument] = {}
        files = given.files if isinstance(given, GivenDocuments) else ()
        self._piped = {file.url: file for file in files if file.pipe}

    async def list_documents(self, known: ListVersion | None, seconds: float = inf) -> Listing:
        """The listed documents; see Source. A URL leads to a list or a document."""
        if isinstance(self._given, GivenDocuments):
            return Listing(iter(self._alone(self._given)))
        if isinstance(self._given, GivenList):
            await asyncio.to_thread(self._remember, self._given.file.path)
            listed = _read(_opened(self._given.file.path), base=self._given.file.base)
            files = self._given.files
            return Listing(replace(each, url=files[each.url].url) if each.url in files else each for each in listed)
        file, redirect = await self._fetched_list(self._given, seconds)
        root = await asyncio.to_thread(read_root, file)
        if root.is_list or not root.name or root.name.lower() == "html" or self._is_site:
            await asyncio.to_thread(self._remember, self._copies.place(self._given.url))
            return Listing(_read(file, files_allowed=self._site.file_folder is not None, redirect=redirect))
        file.close()
        document = replace(as_listed(root, self._given.url, self._given.shown), by_itself=True)
        self._by_itself = {document.url: document}
        return Listing(iter([document]))

    def original_columns(self, document_id: str) -> OriginalColumns:
        """Scope and identifier of a document id."""
        return scope_and_identifier(document_id)

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        """The document's bytes; see Source. Keeps a copy of them, unless they are in a file already."""
        fetched = await self._fetched(document, patience)
        if isinstance(self._given, GivenList):
            fetched = replace(fetched, document=replace(fetched.document, list_file=self._given.shown))
        if self._build is None or _is_accounted_for(fetched, self._memories.get(document.docid)):
            return fetched
        return replace(fetched, findings=(*fetched.findings, _changed(fetched.document, self._build)))

    def _remember(self, path: Path) -> None:
        if not isinstance(self._given, GivenDocuments):
            with suppress(OSError):
                if known := remembered(read_file(path, _LARGEST_LIST)):
                    self._memories, self._build = known, build_of(self._given)

    async def _fetched(self, document: ListedDocument, patience: float) -> FetchedDocument:
        document = self._by_itself.get(document.url, document)
        if document.refusal is not None and document.refusal.rule in _WITHOUT_CONTENT:
            raise FetchError(document.refusal)
        copy = None if is_file_url(document.url) else self._copies.place(document.url)
        if copy is not None and self._copies.reused and copy.exists():
            content = await asyncio.to_thread(copy.read_bytes)
            return FetchedDocument(document, content, hashlib.sha256(content).hexdigest(), 0.0)
        if piped := self._piped.get(document.url):
            return await self._fetch_piped(piped, document, patience)
        fetched = await fetch_document(document, self._site, self._fetcher, patience)
        if copy is not None:
            await asyncio.to_thread(_keep, copy, fetched.content)
        return fetched

    async def _fetch_piped(self, file: LocalFile, document: ListedDocument, patience: float) -> FetchedDocument:
        """The content of a pipe, as a document; nothing shows the name of its copy. Raises FetchError."""
        copy = file.path.as_uri()
        try:
            fetched = await fetch_document(replace(document, url=copy), self._site, self._fetcher, patience)
        except FetchError as error:
            findings = (replace(each, message=each.message.replace(copy, file.shown)) for each in error.findings)
            raise FetchError(*findings, transient=error.transient, seconds=error.seconds) from error
        return replace(fetched, document=document)

    def _alone(self, given: GivenDocuments) -> list[ListedDocument]:
        """Documents without a list. If several have the same packageId, each but the first has a number in its id."""
        listed: list[ListedDocument] = []
        first: dict[tuple[str, int], str] = {}
        for number, file in enumerate(given.files, 1):
            document = as_listed(file.root, file.url, file.shown)
            if file.document is not None:
                document = replace(document, document_id=file.document[0], revision=file.document[1])
            key = document.document_id, document.revision
            twin = first.setdefault(key, file.shown)
            if twin != file.shown:
                document = replace(document, document_id=f"{document.document_id} [{number}]")
            twin = twin if twin != file.shown else ""
            document = replace(document, by_itself=True, twin=twin, refusal=file.refusal)
            self._by_itself[document.url] = document
            listed.append(document)
        return listed

    async def _fetched_list(self, given: GivenUrl, seconds: float) -> tuple[BinaryIO, str]:
        """The copy of the content of a URL, open for reading, and words about a redirect. Raises FetchError."""
        place = self._copies.place(given.url)
        if self._copies.reused and place.exists():
            return place.open("rb"), ""
        file = place.open("w+b")
        try:
            response = await self._fetcher.fetch_to(
                given.url,
                file,
                reach=self._site.options.reach,
                file_folder=self._site.file_folder,
                seconds=seconds,
            )
            await apply_charset(file, response.media_type)
        except BaseException:
            file.close()
            with suppress(OSError):
                place.unlink()
            raise
        return file, redirect_words(given.url, response.url)


def _opened(path: Path) -> BinaryIO:
    try:
        return open_file(path)
    except OSError as error:
        message = f"The file {one_line(str(path))} cannot be read: {error.strerror}."
        raise FetchError(Finding("list.file", message, "Check the file's name and permissions.")) from error


def _read(
    file: BinaryIO, *, files_allowed: bool = True, base: str = "", redirect: str = ""
) -> Iterator[ListedDocument]:
    with file:
        yield from read_list(file, files_allowed=files_allowed, base=base, redirect=redirect)


def _keep(copy: Path, content: bytes) -> None:
    """Write a copy. If there is no room for it, findings show no lines, but are reported."""
    try:
        copy.write_bytes(content)
    except OSError:
        with suppress(OSError):
            copy.unlink()
