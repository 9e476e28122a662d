"""One site's part of a run: list its documents, bring each to its outcome, close with totals and a report."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator
from functools import partial

from metaharvest.errors import DatabaseError, FetchError, ListError, NotAsked, RunLost, TargetError
from metaharvest.fetch.backoff import Attempts, may_be_waited_for
from metaharvest.harvest.context import RunContext
from metaharvest.harvest.documents import Tally, harvest_documents, harvest_unchanged
from metaharvest.harvest.plan import retry_batches, staged_batches
from metaharvest.harvest.site_target import SiteTarget
from metaharvest.harvest.staging import Staging
from metaharvest.harvest.tasks import in_thread
from metaharvest.journal.unexpected import is_no_room
from metaharvest.model import ListedDocument, Site, SiteRun, SiteRunKind
from metaharvest.sites import ledger
from metaharvest.sources.base import Listing, Source

log = logging.getLogger(__name__)


async def harvest_site(site: Site, kind: SiteRunKind, source: Source, ctx: RunContext) -> bool:
    """One site's part of the run; False if its list could not be read.

    If there is no time left, the list is not read, or the rest of the documents is deferred.
    """
    site_run = await ctx.journal.open_site_run(site, kind, source.original_columns)
    try:
        with Staging() as staged:
            try:
                listing = await _listing(site_run, source, ctx)
                if listing.documents is not None:
                    await in_thread(partial(staged.fill, _in_time(listing.documents, ctx)))
            except FetchError as error:
                await ctx.journal.list_failed(site_run, "GetHarvestListError", error.findings)
                return False
            except ListError as error:
                await ctx.journal.list_failed(site_run, "ValidateHarvestListError", error.findings)
                return False
            _note_list(site_run, listing, staged.count, ctx)
            async with ctx.targets.of(site) as target:
                tally = await _harvest_listed(site_run, listing, staged, source, target, ctx)
            ctx.progress.documents_ended(site.name, staged.left_out)
        await ctx.journal.close_site_run(
            site_run, tally.listed + staged.left_out, tally.unchanged, staged.left_out, listing.version
        )
    except (DatabaseError, RunLost):
        raise
    except TargetError as error:
        await ctx.journal.target_refused(site_run, error.findings)
    except Exception as error:
        if not is_no_room(error):
            log.exception("The harvest of %s failed", site.name)
        await ctx.journal.site_failed(site_run, error)
    return True


async def _harvest_listed(
    site_run: SiteRun, listing: Listing, staged: Staging, source: Source, target: SiteTarget, ctx: RunContext
) -> Tally:
    if listing.documents is None:
        return await harvest_unchanged(site_run, source, target, ctx)
    batches = retry_batches if site_run.kind is SiteRunKind.RETRY else staged_batches
    return await harvest_documents(site_run, batches(site_run, staged, ctx), source, target, ctx)


async def _listing(site_run: SiteRun, source: Source, ctx: RunContext) -> Listing:
    """What the site lists; for a retry, what the ledger says to try again. Raises FetchError."""
    if site_run.kind is SiteRunKind.RETRY:
        return Listing(_to_retry(site_run, ctx))
    try:
        return await _list_in_attempts(site_run, source, ctx)
    except FetchError as error:
        if error.transient and (late := ctx.deadlines.late()):
            # It may have failed for no other reason than that.
            raise FetchError(late, transient=True, seconds=error.seconds) from error
        raise


async def _list_in_attempts(site_run: SiteRun, source: Source, ctx: RunContext) -> Listing:
    """The listing, after as many attempts as it takes and the settings allow; a signal or a deadline ends them.

    Raises FetchError of the last attempt that failed.
    """
    http, deadlines = ctx.settings.http, ctx.deadlines
    attempts = Attempts()
    failure: FetchError | None = None
    while True:
        try:
            return await source.list_documents(site_run.known_list, deadlines.left())
        except NotAsked as error:
            failure = failure or error
            wait = error.retry_after if may_be_waited_for(error, http) else None
        except FetchError as error:
            attempts = attempts.and_one(error)
            wait = attempts.wait(error, http, http.list_deadline)
            failure = FetchError(
                *attempts.findings(error, http),
                transient=error.transient,
                seconds=attempts.seconds,
                retry_after=error.retry_after,
            )
        if wait is None:
            raise failure
        await deadlines.sleep(wait)
        if deadlines.why():
            raise failure


def _to_retry(site_run: SiteRun, ctx: RunContext) -> Iterator[ListedDocument]:
    """The site's documents that are to be tried again."""
    with ctx.reading() as session:
        yield from ledger.to_retry(session, site_run.site.site_id, ctx.journal.today)


def _in_time(documents: Iterable[ListedDocument], ctx: RunContext) -> Iterator[ListedDocument]:
    """The documents of a list as long as there is time to read it. Raises ListError, and RunLost if the run is lost."""
    try:
        for number, document in enumerate(documents):
            if number % 1000 == 0:
                ctx.journal.require_writable()
                if late := ctx.deadlines.late():
                    raise ListError(late)
            yield document
    finally:
        # A list that is not read to its end would keep its file.
        if isinstance(documents, Generator):
            documents.close()


def _note_list(site_run: SiteRun, listing: Listing, staged: int, ctx: RunContext) -> None:
    unchanged = listing.documents is None
    listed = site_run.known_documents if unchanged else staged
    if site_run.kind is not SiteRunKind.RETRY:
        ctx.journal.list_read(site_run, listed, unchanged)
    ctx.progress.documents_listed(site_run.site.name, listed)
