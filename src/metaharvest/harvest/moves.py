"""Records that move from one site of a repository to another, as sets are what differs between the two.

What one site's set has lost and another one's has is not deleted in the target: the document goes with the record. Only
sites with the same origin, format and target can have documents in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from sqlalchemy.orm import Session

from metaharvest.harvest.context import RunContext
from metaharvest.harvest.site_target import SiteTarget
from metaharvest.harvest.tasks import in_thread
from metaharvest.journal import moves
from metaharvest.journal.log_rows import LogRow
from metaharvest.journal.moves import Move
from metaharvest.model import Site, SiteRun
from metaharvest.sites import records
from metaharvest.sites.registry import read_sites
from metaharvest.targets.transfers import Receiving

_AT_ONCE = 1000
"""Documents that are transferred at a time."""


class SameRepository:
    """The other sites of the repository of one that is harvested: records come from them, and go to them."""

    def __init__(self, site_run: SiteRun, target: SiteTarget, ctx: RunContext) -> None:
        self._site_run = site_run
        self._target = target
        self._ctx = ctx
        self._others: dict[int, Site] | None = None

    async def take_over(self, document_ids: Sequence[str]) -> bool:
        """Have those of these records, which this site lists, that another one had and lost; whether there are any.

        Their documents belong to this site from then on.
        """
        others = await self._sites() if document_ids else {}
        if not others:
            return False
        max_loss = {site_id: site.options.max_loss for site_id, site in others.items()}
        gone = await self._asked(lambda session: records.gone_from(session, max_loss, document_ids))
        taken: list[str] = []
        for some in _portions(list(gone)):
            if self._target.is_rehearsed:
                held = await in_thread(partial(self._target.holdings, some))
                found = [each for each, holding in held.items() if holding.site_id in gone[each]]
                self._target.suppose(found, self._site_run.site.site_id)
                taken += found
            else:
                await self._ctx.journal.write(self._site_run, partial(self._take_over, some, max_loss, taken))
        return bool(taken)

    def _take_over(
        self, document_ids: Sequence[str], max_loss: Mapping[int, int | None], taken: list[str], session: Session
    ) -> Iterable[LogRow]:
        found = moves.take_over(session, self._move_to(self._site_run.site), max_loss, document_ids)
        taken += [each.document_id for each in found]
        return moves.told(found)

    async def hand_over(self, document_ids: Sequence[str], owners: Mapping[str, str]) -> dict[str, str]:
        """The records that are deleted as this site is told, and that another one lists: the name of that site, by id.

        Their documents belong to that site from then on. `owners` are the other sites that some belong to already.
        """
        sites = {key: site for key, site in (await self._sites()).items() if site.enabled} if document_ids else {}
        if not sites:
            return {}
        listed = await self._asked(lambda session: records.listed_by(session, list(sites), document_ids))
        moved: dict[str, str] = {}
        for site_id, site in sites.items():
            here = [each for each, lists in listed.items() if site_id in lists and each not in moved]
            theirs = [each for each in here if owners.get(each) == site.name]
            free = [each for each in here if each not in owners]
            if self._target.is_rehearsed:
                theirs += free
            elif free:
                await self._ctx.journal.write(self._site_run, partial(self._hand_over, free, site, theirs))
            moved |= dict.fromkeys(theirs, site.name)
        return moved

    def _hand_over(
        self, document_ids: Sequence[str], site: Site, theirs: list[str], session: Session
    ) -> Iterable[LogRow]:
        theirs += moves.hand_over(session, self._move_to(site), self._site_run.site.site_id, document_ids)
        return ()

    async def _sites(self) -> dict[int, Site]:
        """The other sites that may have the same records in the same target, by number."""
        if self._others is None:
            self._others = await in_thread(self._of_repository)
        return self._others

    def _of_repository(self) -> dict[int, Site]:
        own, settings = self._site_run.site, self._ctx.settings
        if own.is_rehearsed:
            return {}
        with self._ctx.reading() as session:
            sites = [each for each in read_sites(session) if isinstance(each, Site) and _has_records_of(each, own)]
        target = settings.target_of(own.name)
        return {
            each.site_id: each
            for each in sites
            if each.site_id != own.site_id and settings.target_of(each.name) == target
        }

    async def _asked(self, question: Callable[[Session], dict[str, set[int]]]) -> dict[str, set[int]]:
        def ask() -> dict[str, set[int]]:
            with self._ctx.reading() as session:
                return question(session)

        return await in_thread(ask)

    def _move_to(self, site: Site) -> Move:
        to = Receiving(site.site_id, site.name, records.BY_ITSELF, self._ctx.journal.today, self._ctx.clock())
        return Move(self._target.target, to, self._ctx.site_names)


def _has_records_of(site: Site, other: Site) -> bool:
    """Whether the ids of the documents of both begin in the same way."""
    one, two = site.options.oai, other.options.oai
    return one is not None and two is not None and (one.origin, one.prefix) == (two.origin, two.prefix)


def _portions(document_ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (document_ids[first : first + _AT_ONCE] for first in range(0, len(document_ids), _AT_ONCE))
