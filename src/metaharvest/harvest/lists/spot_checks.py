"""Spot checks: does the site of a document that the list names as unchanged still serve the same bytes?

They are a sample, and cost next to nothing: one question to the ledger for the whole run, and for most sites on most
nights nothing more. Documents are fetched one after the other, each only if it has changed. A document that cannot be
fetched is skipped without a word; if its server does not answer, the spot checks end.
"""

from __future__ import annotations

from metaharvest.errors import FetchError, TargetError
from metaharvest.harvest.context import SiteHarvest
from metaharvest.harvest.site_target import SiteTarget
from metaharvest.journal.list_notes import Seen, SpotCheck
from metaharvest.ledger.spot_check_rows import DueCheck, due_looks
from metaharvest.model import FetchedDocument, ListVersion, SiteRunKind
from metaharvest.sources.base import RefetchingSource

_PATIENCE = 10.0
"""Seconds for which a spot check waits for a free connection."""


async def look_again(harvest: SiteHarvest) -> None:
    """Check the documents whose spot check is due, after all listed documents have their outcomes.

    If documents are normalised, the site serves other bytes than the target has: nothing can be compared.
    """
    site_run, source, target, ctx = harvest.site_run, harvest.source, harvest.target, harvest.ctx
    if site_run.site.site_id not in ctx.to_look_at or site_run.kind is SiteRunKind.RETRY:
        return
    if ctx.policy.normalization is not None or not isinstance(source, RefetchingSource):
        return
    looks: list[SpotCheck] = []
    number = ctx.settings.harvester.look_again
    for due in await harvest.read(lambda session: due_looks(session, site_run.site.site_id, ctx.journal.today, number)):
        # Not stop_reason(): a spot check that does not happen is no reason to report that the run was cut short.
        is_stopped = ctx.deadlines.stop.is_set() or ctx.deadlines.site_stop.is_set()
        if is_stopped or ctx.deadlines.left() <= 0 or target.health.given_up:
            break
        try:
            looks.append(await _look(due, source, target))
        except (FetchError, TargetError) as error:
            looks.append(SpotCheck(due, Seen.NOTHING, due.version))
            if error.transient:
                break
    if looks:
        await ctx.journal.write_spot_checks(site_run, looks)


async def _look(due: DueCheck, source: RefetchingSource, target: SiteTarget) -> SpotCheck:
    """The result of the check of one document. Raises FetchError, and TargetError if the target does not answer."""
    fetched = await source.fetch_again(due.document, due.version, _PATIENCE)
    if fetched is None:
        return SpotCheck(due, Seen.SAME, due.version)
    if not await _is_held(due, fetched, target):
        # The server's present version is not kept: the next check compares with the target's bytes again.
        return SpotCheck(due, Seen.OTHER, due.version)
    return SpotCheck(due, Seen.SAME, ListVersion(fetched.etag, fetched.last_modified, fetched.sha256))


async def _is_held(due: DueCheck, fetched: FetchedDocument, target: SiteTarget) -> bool:
    """True if these bytes are the bytes that were sent to the target, or the bytes that it has."""
    if fetched.sha256 == due.version.sha256:
        return True
    return await target.holds(due.document.document_id, due.document.revision, fetched.sha256)
