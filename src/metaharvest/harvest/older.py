"""Records that a list has as they were before what the ledger knows of them.

A list may have such a record once more, as it is now, on a later page: then the older one is a duplicate. If it has
not, as in a repository that was restored from a backup, the record is asked for by itself when the list ends. Where the
list breaks off before, the document stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from itertools import islice

from metaharvest.errors import BrokenOff, FetchError, NotUsable
from metaharvest.harvest.records import PagePlan
from metaharvest.harvest.tasks import one_ahead
from metaharvest.model import ListedDocument
from metaharvest.sources.base import ListedRecord, Page, PagedSource, Patience

_AT_ONCE = 3


class Older:
    """Those of one list that have not come as they are now, by document id.

    `is_asking`: the records of the page under way were asked for by themselves.
    """

    def __init__(self) -> None:
        self._documents: dict[str, ListedDocument] = {}
        self.is_asking = False

    def note(self, page: Page, plan: PagePlan) -> None:
        """Note what is older on a page, and count what was, and has come anew with it.

        That has two records in the list. If it is as the ledger knows it, it is a duplicate in the plan already.
        """
        named = {record.document.document_id for record in page.records}
        again = {document_id for document_id in named if self._documents.pop(document_id, None)}
        plan.listed += len(again)
        others = (*(each for each, _ in plan.to_delete), *(outcome.document for outcome, _ in plan.ended))
        changed = again & {*plan.in_hand, *plan.older, *(each.document_id for each in others)}
        plan.duplicate += len(changed)
        plan.unchanged += len(again) - len(changed)
        self._documents |= plan.older

    async def among(
        self, pages: AsyncIterator[Page], source: PagedSource, patience: Patience
    ) -> AsyncGenerator[Page, None]:
        """The pages of a list, and before the last one the records that did not come anew. Raises BrokenOff."""
        async with aclosing(one_ahead(pages)) as listed:
            async for page in listed:
                self.is_asking = page.is_last
                while self.is_asking and self._documents:
                    if why := patience.heed():
                        raise BrokenOff(why)
                    some = [self._documents.pop(document_id) for document_id in list(islice(self._documents, _AT_ONCE))]
                    yield Page(await asyncio.gather(*(_asked_for(document, source) for document in some)))
                self.is_asking = False
                yield page


async def _asked_for(document: ListedDocument, source: PagedSource) -> ListedRecord:
    try:
        found = await source.fetch(document)
    except FetchError as error:
        return ListedRecord(document, None, findings=error.findings, is_away=not isinstance(error, NotUsable))
    return ListedRecord(found.document, found.content)
