"""One site's part of a run: list its documents, bring each to its outcome, close with totals and a report.

A harvest list is read to its end and staged before anything is harvested; a source repository's list goes page by page.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from functools import partial

from metaharvest.config.settings import Settings
from metaharvest.errors import (
    DatabaseError,
    FetchError,
    HarvestError,
    ListError,
    NotWritten,
    RequestEnded,
    RunLost,
    TargetError,
    TransformError,
)
from metaharvest.harvest.context import READING_TURN_SECONDS, RunContext, SiteHarvest
from metaharvest.harvest.documents import Tally
from metaharvest.harvest.lists.listed_documents import harvest_documents, harvest_unchanged
from metaharvest.harvest.lists.plan import retry_batches, staged_batches
from metaharvest.harvest.lists.spot_checks import look_again
from metaharvest.harvest.lists.staging import Staging
from metaharvest.harvest.oai.sweep import SweepIncomplete, begin_sweep, harvest_sweep
from metaharvest.harvest.tasks import held_for, in_thread
from metaharvest.journal.internal_errors import is_no_room
from metaharvest.journal.list_notes import ListNote
from metaharvest.journal.site_runs import Closing
from metaharvest.ledger import retries
from metaharvest.model import ListedDocument, Site, SiteRun, SiteRunKind
from metaharvest.sources.attempts import in_attempts
from metaharvest.sources.base import Listing, PagedListing, PagedSource, Source
from metaharvest.transform.filters import read_filters
from metaharvest.transform.normalize import read_normalization
from metaharvest.validation.processing_policy import ProcessingPolicy

log = logging.getLogger(__name__)

NOT_OFFERED = ("oai.no-set", "oai.no-format")
"""The rules of findings about a set, or a format, that a source repository does not have."""


async def harvest_site(site: Site, kind: SiteRunKind, source: Source | PagedSource, ctx: RunContext) -> bool:
    """Harvest the site's part of the run; returns False if its list could not be read.

    If there is no time left, the list is not read, or the rest of the documents is deferred.
    """
    site_run = await ctx.journal.open_site_run(site, kind, source.original_columns)
    site_run = replace(site_run, same_origin=ctx.same_origin)
    try:
        ctx = replace(ctx, policy=await in_thread(partial(_processing_policy, site, ctx.settings)))
        with Staging() as staged:
            try:
                listing = await _listing(site_run, source, ctx)
                if isinstance(listing, Listing) and listing.documents is not None:
                    is_retry = kind is SiteRunKind.RETRY  # it reads the ledger, which has no deadline
                    documents = listing.documents if is_retry else _in_time(listing.documents, ctx)
                    async with held_for(ctx.reading_turns, READING_TURN_SECONDS):
                        await in_thread(partial(staged.fill, documents))
            except FetchError as error:
                if ctx.deadlines.site_stop.is_set() or isinstance(error, RequestEnded):
                    await ctx.journal.site_stopped(site_run)
                    return True
                await ctx.journal.list_failed(site_run, _code(source, error, "GetHarvestListError"), error.findings)
                return False
            except ListError as error:
                if ctx.deadlines.site_stop.is_set():
                    await ctx.journal.site_stopped(site_run)
                    return True
                if any(finding.rule in NOT_OFFERED for finding in error.findings):
                    ctx.turn.has_no_list()
                await ctx.journal.list_failed(
                    site_run, _code(source, error, "ValidateHarvestListError"), error.findings
                )
                return False
            if isinstance(listing, Listing):
                _note_list(site_run, listing, staged.count, ctx)
            ctx.checker.prestart_workers(staged.count - site_run.known_documents)
            async with ctx.targets.of(site) as target:
                harvest = SiteHarvest(site_run, source, target, ctx)
                tally = await _harvest_listed(harvest, listing, staged)
                await look_again(harvest)
            ctx.progress.documents_ended(site.name, staged.left_out)
            ctx.progress.site_closes(site.name)
        duplicates = staged.left_out + tally.duplicates
        version = listing.version if isinstance(listing, Listing) else None
        listed = tally.listed + staged.left_out
        is_complete = isinstance(listing, Listing) or listing.is_complete
        closing = Closing(site_run, (), listed, tally.unchanged, duplicates, version, is_complete, phases=tally.phases)
        await ctx.journal.close_site_run(closing)
    except SweepIncomplete as error:
        tally = error.tally
        if ctx.deadlines.site_stop.is_set():
            await ctx.journal.site_stopped(site_run, tally.listed, tally.unchanged, tally.duplicates)
        else:
            await ctx.journal.broken_off(site_run, tally.listed, tally.unchanged, tally.duplicates, error.row)
    except (DatabaseError, RunLost):
        raise
    except TargetError as error:
        await ctx.journal.target_refused(site_run, error.findings)
    except TransformError as error:
        # The line is not in the list, but in a file that the message names together with the line.
        await ctx.journal.target_refused(site_run, [replace(finding, line=None) for finding in error.findings])
    except Exception as error:
        if not (is_no_room(error) or isinstance(error, NotWritten)):
            log.exception("The harvest of %s failed", site.name)
        await ctx.journal.site_failed(site_run, error)
    return True


def _processing_policy(site: Site, settings: Settings) -> ProcessingPolicy:
    """The processing policy of this site. Reads its files; raises TransformError if one of them is unusable."""
    options = settings.applied_to(site).options
    return ProcessingPolicy(
        options.package_id_mismatch or settings.validation.package_id_mismatch,
        options.validation,
        read_filters(options.filters) if options.filters else None,
        read_normalization(options.normalize) if options.normalize else None,
        settings.http.max_document_bytes,
    )


async def _harvest_listed(harvest: SiteHarvest, listing: Listing | PagedListing, staged: Staging) -> Tally:
    if isinstance(listing, PagedListing):
        return await harvest_sweep(harvest, listing)
    if listing.documents is None:
        return await harvest_unchanged(harvest)
    batches = retry_batches if harvest.site_run.kind is SiteRunKind.RETRY else staged_batches
    return await harvest_documents(harvest, batches(harvest, staged))


async def _listing(site_run: SiteRun, source: Source | PagedSource, ctx: RunContext) -> Listing | PagedListing:
    """The list of the site; for a retry, the ledger's documents to try again. Raises FetchError, and ListError."""
    if site_run.kind is SiteRunKind.RETRY:
        return Listing(_to_retry(site_run, ctx))
    if isinstance(source, PagedSource):
        return await begin_sweep(site_run, source, ctx)
    try:
        return await in_attempts(
            lambda: source.list_documents(site_run.known_list, ctx.deadlines.left()), ctx.settings.http, ctx.deadlines
        )
    except FetchError as error:
        if error.transient and (late := ctx.deadlines.deadline_reason()):
            # The deadline may be the only reason for the failure.
            raise FetchError(late, transient=True, seconds=error.seconds) from error
        raise


def _to_retry(site_run: SiteRun, ctx: RunContext) -> Iterator[ListedDocument]:
    """The site's documents to try again."""
    with ctx.reading() as session:
        yield from retries.to_retry(session, site_run.site.site_id, ctx.journal.today)


def _in_time(documents: Iterable[ListedDocument], ctx: RunContext) -> Iterator[ListedDocument]:
    """The documents of a list as long as there is time. Raises FetchError, and RunLost if the run is lost."""
    try:
        for number, document in enumerate(documents):
            if number % 1000 == 0:
                ctx.journal.require_writable()
                if late := ctx.deadlines.deadline_reason():
                    raise FetchError(late, transient=True)
            yield document
    finally:
        # Otherwise a list that is not read to its end would keep its file open.
        if isinstance(documents, Generator):
            documents.close()


def _note_list(site_run: SiteRun, listing: Listing, staged: int, ctx: RunContext) -> None:
    unchanged = listing.documents is None
    listed = site_run.known_documents if unchanged else staged
    if site_run.kind is not SiteRunKind.RETRY:
        ctx.journal.list_read(ListNote(site_run, unchanged, listed, listing.findings))
    ctx.progress.documents_listed(site_run.site.name, listed)


def _code(source: Source | PagedSource, error: HarvestError, of_harvest_list: str) -> str:
    if not isinstance(source, PagedSource):
        return of_harvest_list
    return "ListRecordsError" if error.of_list else "IdentifyError"
