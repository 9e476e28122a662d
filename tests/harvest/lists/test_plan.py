"""What is tried again of records that another site of the origin has brought meanwhile."""

from __future__ import annotations

from metaharvest.harvest.lists.plan import Batch, above_those_of_others
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.model import Holding, ListedDocument, OutcomeKind, SameOrigin, Site, SiteRun, SiteRunKind

SITE_RUN = SiteRun(
    7, Site(1, "own", "u", ()), SiteRunKind.RETRY, lambda _: (None, None), same_origin=SameOrigin(frozenset({2}))
)


def batch(*, pending: str | None = None) -> Batch:
    entry = LedgerEntry(9, "r", 1, "u", "t", None, OutcomeKind.ACCESS_ERROR.value, None, 1, None, "failed", pending)
    return Batch([ListedDocument("r", 1, "t", "u")], {("r", 1): entry})


def test_it_gets_the_next_revision_so_that_it_is_asked_for_and_compared() -> None:
    raised = above_those_of_others(batch(), {"r": Holding("r", 3, None, 2)}, SITE_RUN)
    assert [each.revision for each in raised.documents] == [4]
    assert raised.known == {("r", 4): batch().known["r", 1]}


def test_what_is_pending_or_this_sites_own_stays_as_it_is() -> None:
    assert above_those_of_others(batch(pending="p"), {"r": Holding("r", 3, None, 2)}, SITE_RUN) == batch(pending="p")
    assert above_those_of_others(batch(), {"r": Holding("r", 3, None, 1)}, SITE_RUN) == batch()
    assert above_those_of_others(batch(), {}, SITE_RUN) == batch()
