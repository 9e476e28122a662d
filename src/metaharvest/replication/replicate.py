"""Copies documents with all their revisions from one target into another, under the run lock.

The copier reads a batch of documents from the source, asks the target which of them it holds, and sends the rest.
Several documents are sent in parallel; the revisions of a document follow one another in ascending order. The only
memory of a copy is the content of the target: a copy that broke off begins again, and finds there its earlier work.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, aclosing
from dataclasses import field, replace
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import attrgetter

from sqlalchemy import Engine

from metaharvest.database.batches import batches
from metaharvest.database.engine import database_errors, readers, run_lock, writers
from metaharvest.database.locks import HeldLock
from metaharvest.errors import RunLost, SettingsError, TargetError
from metaharvest.harvest.context import Progress
from metaharvest.harvest.deadlines import STOPPED, StopSignal
from metaharvest.harvest.site_target import RunTargets, SiteTarget, TargetHealth
from metaharvest.harvest.tasks import in_thread, side_by_side
from metaharvest.journal.internal_errors import internal_error
from metaharvest.journal.journal import Clock
from metaharvest.journal.outcomes import store_each
from metaharvest.ledger.rows import titles_of
from metaharvest.model import FetchedDocument, Finding, Holding, ListedDocument, RecordOrigin, Site
from metaharvest.model.actions import Remedy, todo
from metaharvest.model.values import frozen
from metaharvest.replication.result import (
    CopyOutcome,
    CopyRequest,
    CopyResult,
    CopyTally,
    ReportNotCopied,
    belongs_to,
    different,
    no_target,
    superseded,
)
from metaharvest.sites.registry import find_site, read_sites
from metaharvest.sites.rows import BrokenSite
from metaharvest.sources.oai_pmh.records import RecordNames
from metaharvest.targets import owners
from metaharvest.targets.base import HeldRevision, Target, TransactionalTarget, Upload
from metaharvest.targets.interruption import interrupted_by
from metaharvest.targets.lookup import Targets
from metaharvest.targets.nothing import NoTarget
from metaharvest.targets.withdrawals import withdrawn_document
from metaharvest.text import one_line
from metaharvest.transform.embedding import why_not_embeddable

log = logging.getLogger(__name__)

_AT_ONCE = 500
"""Documents that are planned together. Sessions with the target stay open for them."""

GROUP = 250
GROUP_BYTES = 16_000_000
"""Revisions, and bytes of them, that go into the embedded target in one transaction."""

READ_AHEAD = 8
"""Revisions that are read from the source before they can be stored."""


def copy_documents(
    engine: Engine,
    targets: Targets,
    request: CopyRequest,
    clock: Clock,
    progress: Progress,
    report: ReportNotCopied,
    stop: StopSignal,
) -> CopyResult:
    """Copy the requested documents; call `report` for each revision that the target does not have as the source has it.

    Raises SettingsError, ScheduleError, LockHeld, DatabaseError; and RunLost if the run lock is lost. Once `stop` is
    set, nothing new begins: revisions under way are finished.
    """
    with database_errors(engine), readers(engine)() as session:
        sites = {site.site_id: site for site in read_sites(session)}
        only = None if request.site_name is None else find_site(session, request.site_name).site_id
    source, target = (_named(targets, name, request.site_name) for name in (request.source, request.target))
    if source is target:
        raise SettingsError(f"'{request.source}' and '{request.target}' are the same target: name two.")
    if isinstance(target, NoTarget):
        raise SettingsError(f"The target '{request.target}' keeps nothing: documents cannot be copied into it.")
    with ExitStack() as stack:
        lock = None if request.is_dry_run else stack.enter_context(run_lock(engine))
        used = stack.enter_context(RunTargets(targets, readers(engine)))
        tally = CopyTally(request, progress, report, stop)
        copying = _Copying(
            engine,
            lock,
            CopySource(source, engine, only, tally),
            target,
            request.target == "target",
            used,
            sites,
            clock,
            tally,
            asyncio.Semaphore(2 * target.uploads_at_once),
        )
        with interrupted_by(lambda: STOPPED if stop.is_set() else None):
            return asyncio.run(copying.run())


def _named(targets: Targets, name: str, site_name: str | None) -> Target:
    """The target of this name. If one site's documents are copied, `target` means the target of this site."""
    return targets.of(site_name) if name == "target" and site_name is not None else targets.named(name)


@frozen
class CopiedDocument:
    """A document as the source has it: its revisions in ascending order, and the site that owns it, if known."""

    document_id: str
    revisions: Sequence[HeldRevision]
    owner: int | None


@frozen
class CopySource:
    """The target that documents are copied from. `only`: the documents of this site alone."""

    target: Target
    engine: Engine
    only: int | None
    tally: CopyTally
    health: TargetHealth = field(default_factory=TargetHealth)

    def batches(self) -> Iterator[Sequence[CopiedDocument]]:
        """The documents. Raises TargetError; to be called in a thread."""
        documents = (list(revisions) for _, revisions in groupby(self.target.held(), key=attrgetter("document_id")))
        for several in batches(documents, _AT_ONCE):
            with database_errors(self.engine), readers(self.engine)() as session:
                known = owners.owners_of(session, [each[0].document_id for each in several])
            found = [_document(revisions, known) for revisions in several]
            if wanted := [each for each in found if self.only in (None, each.owner)]:
                yield wanted

    async def fetch(self, revision: HeldRevision) -> FetchedDocument | CopyOutcome:
        """The revision with its bytes. If they cannot be fetched, report that, and return the outcome."""
        try:
            content = await in_thread(partial(self.target.content, revision.document_id, revision.revision))
        except TargetError as error:
            if error.transient:
                self.health.failed(error.findings)
            if self.health.given_up:
                self.tally.cut(self.target, self.health.given_up)
            return self.tally.end(
                revision, CopyOutcome.LEFT if error.transient else CopyOutcome.UNREADABLE, error.findings[0]
            )
        self.health.answered()
        digest = "" if content is None else sha256(content).hexdigest()
        if content is None or (revision.sha256 or digest) != digest:
            return self.tally.end(revision, CopyOutcome.UNREADABLE, _unreadable(revision, digest))
        listed = ListedDocument(revision.document_id, revision.revision, revision.document_type, revision.source_url)
        return FetchedDocument(listed, content, digest, 0.0)


def _document(revisions: Sequence[HeldRevision], known: Mapping[str, int]) -> CopiedDocument:
    """The document; the owner of its highest revision owns it."""
    ascending = sorted(revisions, key=attrgetter("revision"))
    document_id, owner = ascending[-1].document_id, ascending[-1].site_id
    return CopiedDocument(document_id, ascending, known.get(document_id) if owner is None else owner)


def _unreadable(revision: HeldRevision, digest: str) -> Finding:
    docid = revision.docid
    if not digest:
        message = f"The source lists {docid}, but has no such document."
    else:
        message = f"The source has {docid} with SHA-256 {revision.sha256}, but gave bytes with {digest}."
    remedy = "Look into the repository that it is copied from: its document may be damaged."
    return Finding("copy.unreadable", message, remedy)


@frozen
class _Part:
    """The documents of a batch that belong to one site, or to none, and the target as they go into it.

    The target `held` these revisions before. `taken` names the owners of documents that belong to another site there.
    """

    owner: int | None
    documents: Sequence[CopiedDocument]
    session: SiteTarget
    held: Mapping[str, Holding]
    taken: Mapping[str, str]


@frozen
class _Copying:
    """One copy into `target`. `of_sites`: the settings decide where the documents of a site go.

    Without a `lock` it is a rehearsal. `under_way` bounds the documents that are read and sent.
    """

    engine: Engine
    lock: HeldLock | None
    source: CopySource
    target: Target
    of_sites: bool
    used: RunTargets
    sites: Mapping[int, Site | BrokenSite]
    clock: Clock
    tally: CopyTally
    under_way: asyncio.Semaphore

    async def run(self) -> CopyResult:
        """Copy everything."""
        batches, all_read = self.source.batches(), True
        while not self.tally.is_cut_short():
            try:
                batch = await in_thread(partial(next, batches, None))
            except TargetError as error:
                self.tally.cut(self.source.target, error.findings, for_good=not error.transient)
                break
            if batch is None:
                break
            if self.tally.is_over():
                all_read = False
                break
            await self._copy(batch)
        return self.tally.result(self.source.target, self.target, all_read=all_read)

    async def _copy(self, batch: Sequence[CopiedDocument]) -> None:
        of_sites: dict[int | None, list[CopiedDocument]] = defaultdict(list)
        for document in batch:
            self.tally.document()
            of_sites[document.owner].append(document)
        async with AsyncExitStack() as sessions, side_by_side() as tasks:
            for owner, documents in of_sites.items():
                part = await self._part(owner, documents, sessions)
                if part is not None and part.session.in_journal:
                    await self._store(part, part.session.in_journal)
                elif part is not None:
                    for document in documents:
                        tasks.create_task(self._send(part, document))

    # -- the content of the target, and the owners

    async def _part(
        self, owner: int | None, documents: Sequence[CopiedDocument], sessions: AsyncExitStack
    ) -> _Part | None:
        """The documents with the target, logged in for them. If they cannot go there, report why, and return None."""
        if self.tally.is_cut_short():
            self._end_all(documents, CopyOutcome.LEFT)
            return None
        try:
            session = await sessions.enter_async_context(self._session(owner))
        except TargetError as error:
            self._end_all(documents, CopyOutcome.REFUSED, error.findings[0])
            return None
        held = await in_thread(partial(session.holdings, [document.document_id for document in documents]))
        if session.health.given_up:
            self.tally.cut(session.target, session.health.given_up)
            self._end_all(documents, CopyOutcome.LEFT)
            return None
        taken = await in_thread(partial(self._take, owner, documents, session, held))
        return _Part(owner, documents, session, held, taken)

    def _session(self, owner: int | None) -> AbstractAsyncContextManager[SiteTarget]:
        """The target for the documents of a site. Raises TargetError if they cannot go anywhere."""
        site = None if owner is None else self.sites.get(owner)
        if isinstance(site, BrokenSite):
            edit = todo("sites.edit", name=site.name)
            remedy = Remedy("Correct it with {}, then copy its documents.", edit)
            raise TargetError(Finding("site.row", f"The registration of {site.name} cannot be used.", remedy))
        if site is None or not self.of_sites:
            return self.used.opened(self.target, site)
        return self.used.of(site)

    def _take(
        self, owner: int | None, documents: Sequence[CopiedDocument], session: SiteTarget, held: Mapping[str, Holding]
    ) -> Mapping[str, str]:
        """Give the documents to this site in the target too, before they are sent: so no other site may send them.

        Documents of another registered site stay with it. Returns the names of these sites.
        """
        if owner is None:
            return {}
        document_ids = [document.document_id for document in documents]
        belong = {document_id: holding.site_id for document_id, holding in held.items()}
        if session.in_journal:
            return self._others(owner, belong)
        with database_errors(self.engine), writers(self.engine).begin() as database:
            belong |= owners.owners_of(database, document_ids)
            taken = self._others(owner, belong)
            if self.lock is not None:
                owners.set_owner(database, [each for each in document_ids if each not in taken], owner)
        return taken

    def _others(self, owner: int, belong: Mapping[str, int | None]) -> Mapping[str, str]:
        others = ((document_id, self.sites.get(site or 0)) for document_id, site in belong.items() if site != owner)
        return {document_id: site.name for document_id, site in others if site is not None}

    async def _is_settled(self, part: _Part, revision: HeldRevision) -> bool:
        """True if there is nothing to send; the outcome is reported then."""
        held, target = part.held.get(revision.document_id), part.session.target
        if self.tally.is_cut_short():
            self.tally.end(revision, CopyOutcome.LEFT)
        elif held is not None and held.withdrawn is not None:
            self.tally.end(revision, CopyOutcome.REFUSED, withdrawn_document(revision.document_id, held.withdrawn))
        elif held is not None and revision.revision <= held.revision:
            await self._compare(part, revision, held)
        elif other := part.taken.get(revision.document_id):
            self.tally.end(revision, CopyOutcome.REFUSED, belongs_to(revision, other))
        elif isinstance(target, NoTarget):
            self.tally.end(revision, CopyOutcome.REFUSED, no_target(self.sites[part.owner or 0].name))
        elif not self.tally.begin_one():
            self.tally.end(revision, CopyOutcome.LEFT)
        elif self.lock is None:
            self.tally.end(revision, CopyOutcome.COPIED, size=revision.size or 0)
        else:
            return False
        return True

    async def _compare(self, part: _Part, revision: HeldRevision, held: Holding) -> None:
        """Note the outcome of a revision that is too late to be sent: the target may have the same bytes."""
        digest = revision.sha256
        if not digest:
            fetched = await self.source.fetch(revision)
            if isinstance(fetched, CopyOutcome):
                return
            digest = fetched.sha256
        try:
            if held.sha256 and held.revision == revision.revision:
                is_same = held.sha256 == digest
            else:
                is_same = await part.session.holds(revision.document_id, revision.revision, digest)
            is_there = is_same or await part.session.has(revision.document_id, revision.revision)
        except TargetError as error:
            self._failed(part, revision, error)
            return
        if is_same:
            self.tally.end(revision, CopyOutcome.THERE)
        elif is_there:
            self.tally.end(revision, CopyOutcome.DIFFERENT, different(revision))
        else:
            self.tally.end(revision, CopyOutcome.REFUSED, superseded(revision, held))

    # -- into a target outside of the database

    async def _send(self, part: _Part, document: CopiedDocument) -> None:
        """Send the revisions of one document. If one is left, the higher ones are left too: they depend on it."""
        async with self.under_way:
            is_left = False
            for revision in document.revisions:
                if is_left:
                    self.tally.end(revision, CopyOutcome.LEFT)
                elif not await self._is_settled(part, revision):
                    is_left = await self._send_one(part, revision) is CopyOutcome.LEFT

    async def _send_one(self, part: _Part, revision: HeldRevision) -> CopyOutcome:
        fetched = await self.source.fetch(revision)
        if isinstance(fetched, CopyOutcome):
            return fetched
        upload = self._upload(part, fetched)
        async with part.session.sending:
            if self.tally.is_cut_short():
                return self.tally.end(revision, CopyOutcome.LEFT)
            await in_thread(self._require_lock)
            try:
                await part.session.upload(upload)
            except TargetError as error:
                return await self._refused(part, revision, fetched, error)
            except Exception as error:
                log.exception("%s could not be copied", revision.docid)
                finding = internal_error(error, "The harvester itself failed on this document")
                return self.tally.end(revision, CopyOutcome.LEFT, finding)
        return self.tally.end(revision, CopyOutcome.COPIED, size=len(fetched.content))

    async def _refused(
        self, part: _Part, revision: HeldRevision, fetched: FetchedDocument, error: TargetError
    ) -> CopyOutcome:
        """The outcome of a revision that was not accepted: an earlier copy, which broke off, may have brought it."""
        if not error.transient:
            try:
                if await part.session.holds(revision.document_id, revision.revision, fetched.sha256):
                    return self.tally.end(revision, CopyOutcome.THERE)
            except TargetError as unanswered:
                return self._failed(part, revision, unanswered)
        return self._failed(part, revision, error)

    def _failed(self, part: _Part, revision: HeldRevision, error: TargetError) -> CopyOutcome:
        """The outcome if the target refused it, or did not answer: then the same command looks for it."""
        if part.session.health.given_up:
            self.tally.cut(part.session.target, part.session.health.given_up)
        return self.tally.end(revision, CopyOutcome.LEFT if error.transient else CopyOutcome.REFUSED, error.findings[0])

    def _upload(self, part: _Part, fetched: FetchedDocument) -> Upload:
        held = part.held.get(fetched.document.document_id)
        return Upload(fetched, part.owner or (held.site_id if held else None) or 0, self.clock())

    # -- into the embedded target

    async def _store(self, part: _Part, target: TransactionalTarget) -> None:
        """Store the documents of a part, several in a transaction."""
        revisions = [each for document in part.documents for each in document.revisions]
        titles = await in_thread(partial(self._titles, part))
        origins = await in_thread(partial(self._origins, part))
        wanted = [revision for revision in revisions if not await self._is_settled(part, revision)]
        left = set[str]()
        group: list[tuple[HeldRevision, Upload]] = []
        async with aclosing(self._read_ahead(wanted)) as reading:
            async for revision, fetched in reading:
                if fetched is CopyOutcome.LEFT:
                    left.add(revision.document_id)
                elif isinstance(fetched, CopyOutcome):
                    continue
                elif revision.document_id in left:
                    self.tally.end(revision, CopyOutcome.LEFT)
                else:
                    title = revision.title or titles.get((revision.document_id, revision.revision), "")
                    upload = self._upload(part, _with_origin(fetched, origins.get(revision.document_id)))
                    group.append((revision, replace(upload, title=title)))
                if len(group) >= GROUP or sum(len(each.fetched.content) for _, each in group) >= GROUP_BYTES:
                    await self._commit(group, target)
                    group = []
        await self._commit(group, target)

    def _titles(self, part: _Part) -> Mapping[tuple[str, int], str]:
        """The titles of the documents of a part, as the ledger of their site has them."""
        if part.owner is None:
            return {}
        with database_errors(self.engine), readers(self.engine)() as session:
            return titles_of(session, part.owner, [each.document_id for each in part.documents])

    def _origins(self, part: _Part) -> Mapping[str, RecordOrigin]:
        """The origins of the records of a part, by document id, without dates and sets: a full list has these."""
        site = self.sites.get(part.owner or 0)
        if not isinstance(site, Site) or site.options.oai is None:
            return {}
        names = RecordNames(site.list_url, site.options.oai)
        named = {each.document_id: names.origin_of(each.document_id) for each in part.documents}
        return {document_id: origin for document_id, origin in named.items() if origin is not None}

    async def _read_ahead(
        self, revisions: Iterable[HeldRevision]
    ) -> AsyncGenerator[tuple[HeldRevision, FetchedDocument | CopyOutcome], None]:
        """Each revision with its bytes, in order; the next ones are read in the meantime."""
        window: deque[tuple[HeldRevision, asyncio.Task[FetchedDocument | CopyOutcome]]] = deque()
        try:
            for revision in revisions:
                window.append((revision, asyncio.create_task(self._fetch_in_time(revision))))
                if len(window) > READ_AHEAD:
                    first, reading = window.popleft()
                    yield first, await reading
            while window:
                first, reading = window.popleft()
                yield first, await reading
        finally:
            for _, reading in window:
                reading.cancel()

    async def _fetch_in_time(self, revision: HeldRevision) -> FetchedDocument | CopyOutcome:
        if self.tally.is_cut_short():
            return self.tally.end(revision, CopyOutcome.LEFT)
        return await self.source.fetch(revision)

    async def _commit(self, group: Sequence[tuple[HeldRevision, Upload]], target: TransactionalTarget) -> None:
        if not group:
            return
        uploads = [upload for _, upload in group]

        def commit() -> Sequence[Sequence[Finding]]:
            checked = list(map(_checked, uploads))
            with database_errors(self.engine), writers(self.engine).begin() as session:
                refused = store_each(session, checked, target)
                self._require_lock()
                return refused

        for (revision, upload), refused in zip(group, await in_thread(commit), strict=True):
            if refused:
                self.tally.end(revision, CopyOutcome.REFUSED, refused[0])
            else:
                self.tally.end(revision, CopyOutcome.COPIED, size=len(upload.fetched.content))

    def _require_lock(self) -> None:
        """Raises RunLost if another harvest may have begun, and DatabaseUnavailable."""
        with database_errors(self.engine):
            is_lost = self.lock is not None and not self.lock.still_held()
        if is_lost:
            raise RunLost("The copy has lost the run lock, and ended. What was copied stays; the same command goes on.")

    def _end_all(self, documents: Sequence[CopiedDocument], ended: CopyOutcome, finding: Finding | None = None) -> None:
        for document in documents:
            for revision in document.revisions:
                self.tally.end(revision, ended, finding)


def _with_origin(fetched: FetchedDocument, origin: RecordOrigin | None) -> FetchedDocument:
    if origin is None:
        return fetched
    document = fetched.document
    return replace(fetched, document=replace(document, origin=replace(origin, namespace=document.document_type)))


def _checked(upload: Upload) -> Upload:
    """The copy of a document with the result of the check: no harvest has checked it."""
    why = why_not_embeddable(upload.fetched.content)
    if not why:
        return upload
    document = upload.fetched.document
    log.warning(
        "%s, revision %d, has no record in its own format at the provider: %s.",
        one_line(document.document_id),
        document.revision,
        one_line(why),
    )
    return replace(upload, is_embeddable=False)
