"""The stage `full-text`: finds the file of each output, keeps its bytes, and writes the table `output_file`.

Documents are searched side by side, as many at a time as the client has places. A file that is known is asked for by
its ETag or date first. If a site keeps no files, the bytes stay in the folder until extraction has taken their text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.host_leases import HostLeases
from metaharvest.fetch.url import BadUrl, parse_url
from metaharvest.model import FullText, ListVersion, Reach, Site
from metaharvest.model.outputs import Output
from metaharvest.model.values import frozen
from metaharvest.pipeline import leftovers, steps
from metaharvest.pipeline.file_store import (
    UNCONFIRMED_FOR,
    FileStore,
    FolderStore,
    delete_settled,
    open_store,
    unusable,
)
from metaharvest.pipeline.full_text import rows
from metaharvest.pipeline.full_text.candidates import Candidate, host_of
from metaharvest.pipeline.full_text.crawling import Crawler, Servers, Unmodified, fetcher_for
from metaharvest.pipeline.full_text.kinds import TEXTS, bare_type, kind_of, stored_type
from metaharvest.pipeline.full_text.links import candidates, is_closed, is_without_text
from metaharvest.pipeline.full_text.rows import StoredFile
from metaharvest.pipeline.full_text.walk import Found, Reason, Refusal, Walk, closed, failure_of, keeps_files
from metaharvest.pipeline.stage import Context, Document, Result, Stage, StageName
from metaharvest.pipeline.stored_outputs import read_outputs
from metaharvest.sites.registry import read_sites_of

VERSION = 1
AT_ONCE = 16
"""Documents that are searched at a time; a host has as many connections as the settings allow."""

_LOOK_SECONDS = 0.2
"""The time between two looks whether the context stops."""

_SECONDS_TO_END = 1.0
"""The time that searches under way have when the context stops."""


@frozen
class Search:
    """The search for the file of a document: its output, the rules of its site, and its file of the last time.

    `is_kept`: the file is kept after its text was taken. `is_lost`: the bytes of the last time are needed, and not in
    the store. `has_text_only`: they are lost, and their text is known.
    """

    document: Document
    output: Output
    own_hosts: tuple[str, ...]
    reach: Reach
    is_kept: bool
    known: StoredFile | None = None
    is_lost: bool = False
    has_text_only: bool = False


@frozen
class FileStays:
    """The value of a document without a new file, whose file of the last time stays."""


def perform(context: Context, documents: Sequence[Document]) -> Iterator[Result]:
    """The files of the documents. Documents that were not begun when the context stops are left out."""
    if not context.settings.pipeline.full_text:
        yield from map(Result, documents)
        return
    files = open_store(context.folder, context.settings.pipeline.files, context.now)
    searches, others = _searches(context, documents, files)
    yield from map(Result, others)
    if searches:
        yield from asyncio.run(_crawl(context, searches, files))


def store(session: Session, results: Sequence[Result], now: datetime) -> None:
    """Replace the files of these documents. A file stays while its server does not answer, or answers 404.

    The stage `extraction` learns of each file that goes, also if the document fails by the same rule as before.
    """
    files = {each.document.number: each.value for each in results if not isinstance(each.value, FileStays)}
    gone = rows.files_of(session, [number for number, file in files.items() if file is None])
    steps.wake_known(session, StageName.EXTRACTION, gone)
    rows.replace_files(session, files, now)


def tidy(context: Context) -> None:
    """Delete the bytes that no row names any more, also if a process was killed before it wrote the row."""
    files = open_store(context.folder, context.settings.pipeline.files, context.now)
    leftovers.settle(context, files, rows.used)
    leftovers.delete_unused(context, rows.KIND, rows.used, lambda each: delete_settled(files, each, UNCONFIRMED_FOR))


def _searches(
    context: Context, documents: Sequence[Document], files: FileStore
) -> tuple[Sequence[Search], Sequence[Document]]:
    """The searches for these documents, and the documents without one: without an output, or their site wants none."""
    numbers = [each.number for each in documents]
    with context.reading() as session:
        outputs = read_outputs(session, numbers)
        sites = read_sites_of(session, {each.site_id for each in documents if each.site_id is not None})
        stored = rows.files_of(session, numbers)
        absent = {number for number, each in stored.items() if not files.has(each.sha256)}
        read = _with_text(session, stored, absent, FolderStore(context.folder / "texts"))
    lost = {number for number in absent if stored[number].kept or number not in read}
    searches, others = [], []
    for document in documents:
        output = outputs.get(document.number)
        site = sites.get(document.site_id or 0)
        rule = _rule(context.settings, site if isinstance(site, Site) else None)
        if output is None or rule is FullText.NONE:
            others.append(document)
            continue
        hosts, reach = _place(context.settings, site if isinstance(site, Site) else None)
        is_kept = rule is FullText.KEEP
        number = document.number
        known = stored.get(number) if number not in lost else None
        searches.append(
            Search(document, output, hosts, reach, is_kept, known, number in lost, number in lost and number in read)
        )
    return searches, others


def _with_text(
    session: Session, stored: Mapping[int, StoredFile], absent: Collection[int], texts: FileStore
) -> Collection[int]:
    """The documents, among these, whose text is there."""
    found = rows.read_texts(session, {stored[number].sha256 for number in absent})
    read = {file for file, text in found if texts.has(text)}
    return {number for number in absent if stored[number].sha256 in read}


def _rule(settings: Settings, site: Site | None) -> FullText:
    own = site.options.full_text if site else None
    return own or (FullText.KEEP if settings.pipeline.keep_files else FullText.TEXT)


def _place(settings: Settings, site: Site | None) -> tuple[tuple[str, ...], Reach]:
    """The hosts of a site, and its permissions.

    Records and landing pages choose the addresses, and people can search what is there. The networks are therefore only
    reached at the site's own server: other servers in them may be databases or pages that are nobody else's business.
    """
    if site is None:
        return (), Reach()
    options = settings.applied_to(site).options
    try:
        server = parse_url(site.list_url).server
    except BadUrl:  # a file
        return (), Reach(ca_file=options.ca_file)
    return (host_of(site.list_url),), replace(options.reach, server=server)


async def _crawl(context: Context, searches: Sequence[Search], files: FileStore) -> list[Result]:
    """The results of these searches, side by side; one that was not complete when the context stopped has none."""
    leases = HostLeases(context.engine) if context.settings.workers.broker else None
    today = context.now().date()
    places = asyncio.Semaphore(AT_ONCE)
    servers: Servers = context.memory.setdefault(StageName.FULL_TEXT, Servers(context.settings))
    async with fetcher_for(context.settings, servers, leases) as fetcher:
        fetcher.robots.know(servers.robots)

        async def searched(search: Search) -> Result | None:
            async with places:
                if context.stops():
                    return None
                crawler = Crawler(fetcher, servers, context.stops)
                try:
                    return await _search(search, crawler, files, today)
                finally:
                    crawler.drop()

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(searched(each)) for each in searches]
                await _until_done(tasks, context.stops)
        except ExceptionGroup as group_of_errors:
            raise group_of_errors.exceptions[0] from None
        finally:
            servers.robots = fetcher.robots.known()
    ended = [task for task in tasks if not task.cancelled()]
    return [found for task in ended if (found := task.result()) is not None]


async def _until_done(tasks: Collection[asyncio.Task[Result | None]], stops: Callable[[], bool]) -> None:
    """Wait for tasks. When the context stops, they have a few seconds: a slow server may take minutes for a file."""
    waiting = set(tasks)
    while waiting and not stops():
        _, waiting = await asyncio.wait(waiting, timeout=_LOOK_SECONDS)
    if waiting:
        _, waiting = await asyncio.wait(waiting, timeout=_SECONDS_TO_END)
    for task in waiting:
        task.cancel()


async def _search(search: Search, crawler: Crawler, files: FileStore, today: date) -> Result | None:
    """The file of a document, or the reason without one; None: the context stopped."""
    output = search.output
    if is_closed(output, today.isoformat()):
        return _without(search, closed(output.embargo_until, today))
    starts = candidates(output, search.own_hosts)
    if not starts and is_without_text(output):
        return Result(search.document)
    if again := await _again(search, starts, crawler, files):
        return Result(search.document, again)
    walk = Walk(starts, output.title)
    while candidate := walk.following():
        if crawler.stops():
            return None
        answer = await crawler.get(candidate.url, search.reach)
        if not isinstance(answer, Unmodified):
            await asyncio.to_thread(walk.take, candidate, answer)
    if walk.found is None:
        return _without(search, walk.refusal)
    return Result(search.document, await _keep(search, walk.found, files))


def _without(search: Search, refusal: Refusal) -> Result:
    """No file. A dataset, software or an image needs no text: nobody has to correct its links to data.

    A lost file of them is a failure while its server does not answer, so that it is fetched later.
    """
    keeps = keeps_files(refusal, has_text_only=search.has_text_only)
    is_away = refusal.reason is Reason.UNREACHABLE
    if is_without_text(search.output) and not (search.is_lost and is_away):
        stays = keeps and (search.known is not None or search.has_text_only)
        return Result(search.document, FileStays() if stays else None)
    return Result(search.document, FileStays() if keeps else None, failure_of(refusal))


async def _again(search: Search, starts: Sequence[Candidate], crawler: Crawler, files: FileStore) -> StoredFile | None:
    """The file of the last time, if the record still begins with its address and it can be had there.

    A stored licence may be of a former version of the record. If the record names none, the whole way shows if a page
    does.
    """
    known = search.known
    if known is None or not starts or known.url != starts[0].start or (search.is_kept and not known.kept):
        return None
    licence = starts[0].licence
    if known.licence and not licence:
        return None
    version = ListVersion(known.etag, known.last_modified, known.sha256)
    answer = await crawler.get(known.final_url, search.reach, version)
    if isinstance(answer, Unmodified):
        return replace(known, kept=search.is_kept, licence=licence)
    if isinstance(answer, Refusal):
        return None
    kind = kind_of(answer.content, answer.media_type)
    if TEXTS.get(kind) != bare_type(known.media_type):
        return None
    same = Candidate(known.final_url, known.found_by, start=known.url)
    return await _keep(search, Found(same, answer, stored_type(kind, answer.media_type), licence), files)


async def _keep(search: Search, found: Found, files: FileStore) -> StoredFile:
    """Write the bytes, and return the row. Raises MetaharvestError."""
    candidate, answer = found.candidate, found.answer
    try:
        await asyncio.to_thread(files.put, answer.sha256, answer.content)
    except OSError as error:
        raise unusable(files.place, error) from error
    return StoredFile(
        url=candidate.start,
        final_url=answer.url,
        found_by=candidate.found_by,
        sha256=answer.sha256,
        media_type=found.media_type,
        size=len(answer.content),
        kept=search.is_kept,
        licence=found.licence,
        etag=answer.etag,
        last_modified=answer.last_modified[:100] if answer.last_modified else None,
    )


STAGE = Stage(
    StageName.FULL_TEXT,
    VERSION,
    perform,
    store,
    rows.remove_files,
    tidy=tidy,
    wakes=(StageName.EXTRACTION,),
    batch=48,
    parts=8,
)
