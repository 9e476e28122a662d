"""What becomes of the deletions that a source repository reports: deleted, noted, put off or refused."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import pytest

from metaharvest.harvest.oai.deletions import Fate, Waiting, plan_deletions
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.model import Deletions, DocumentState, OutcomeKind, SiteOptions

DELETE = SiteOptions()
KEEP = SiteOptions(deletions=Deletions.KEEP)


def entry(number: int, *, is_to_be_confirmed: bool = False) -> LedgerEntry:
    outcome = (OutcomeKind.DEFERRED if is_to_be_confirmed else OutcomeKind.UNCHANGED).value
    state = DocumentState.TO_CONFIRM if is_to_be_confirmed else DocumentState.TO_DELETE
    again = date(2026, 11, 20) if is_to_be_confirmed else None
    return LedgerEntry(number, f"r{number}", 1, "u", "t", 1, outcome, None, 0, again, state, None)


def waiting(
    number: int,
    *,
    put_off: int = 0,
    listed: Mapping[str, str] | None = None,
    owners: Mapping[str, str] | None = None,
    copies: int = 100,
    confirmed: int = 0,
) -> Waiting:
    """This number of deletions wait; the first `put_off` of them need a confirmation."""
    entries = [entry(each, is_to_be_confirmed=each < put_off) for each in range(number)]
    return Waiting(entries, listed or {}, owners or {}, copies, confirmed)


def fates(of: Waiting, options: SiteOptions = DELETE) -> dict[str, Fate]:
    return {each.document_id: fate for each, fate in plan_deletions(of, options).fates}


def test_a_document_that_no_other_site_lists_is_deleted() -> None:
    assert fates(waiting(2)) == {"r0": Fate.DELETE, "r1": Fate.DELETE}


def test_a_document_that_another_site_of_the_origin_lists_is_only_noted() -> None:
    assert fates(waiting(2, listed={"r1": "b"})) == {"r0": Fate.DELETE, "r1": Fate.KEEP}


def test_a_document_of_a_site_of_another_origin_is_refused_whoever_lists_it() -> None:
    assert fates(waiting(2, owners={"r0": "c", "r1": "c"}, listed={"r1": "b"})) == {
        "r0": Fate.REFUSE,
        "r1": Fate.REFUSE,
    }


def test_a_site_that_only_notes_deletions_deletes_and_refuses_nothing_however_many_there_are() -> None:
    plan = plan_deletions(waiting(90, owners={"r0": "c"}), KEEP)
    assert {fate for _, fate in plan.fates} == {Fate.KEEP}
    assert plan.too_many == 0


@pytest.mark.parametrize(
    ("number", "copies", "max_loss", "are_too_many"),
    [
        (20, 20, None, False),
        (21, 20, None, True),
        (100, 1000, None, False),
        (101, 1000, None, True),
        (50, 100, 50, False),
        (51, 100, 50, True),
        (1, 1000, 0, True),
    ],
)
def test_too_many_deletions_are_put_off(number: int, copies: int, max_loss: int | None, are_too_many: bool) -> None:
    plan = plan_deletions(waiting(number, copies=copies), SiteOptions(max_loss=max_loss))
    assert {fate for _, fate in plan.fates} == {Fate.PUT_OFF if are_too_many else Fate.DELETE}
    assert plan.too_many == (number if are_too_many else 0)


def test_those_that_another_site_lists_or_owns_do_not_count_as_lost() -> None:
    listed, owners = {f"r{each}": "b" for each in range(10)}, {f"r{each}": "c" for each in range(10, 20)}
    plan = plan_deletions(waiting(40, copies=20, listed=listed, owners=owners), DELETE)
    assert [fate for _, fate in plan.fates] == [Fate.KEEP] * 10 + [Fate.REFUSE] * 10 + [Fate.DELETE] * 20
    plan = plan_deletions(waiting(41, copies=20, listed=listed, owners=owners), DELETE)
    assert [fate for _, fate in plan.fates] == [Fate.KEEP] * 10 + [Fate.REFUSE] * 10 + [Fate.PUT_OFF] * 21
    assert plan.too_many == 21


def test_a_confirmation_holds_for_what_was_put_off_then() -> None:
    plan = plan_deletions(waiting(30, put_off=30, copies=20, confirmed=30), DELETE)
    assert ({fate for _, fate in plan.fates}, plan.confirmed) == ({Fate.DELETE}, 30)


def test_a_confirmation_lapses_where_those_that_came_since_are_too_many() -> None:
    plan = plan_deletions(waiting(60, put_off=30, copies=20, confirmed=30), DELETE)
    assert ({fate for _, fate in plan.fates}, plan.confirmed, plan.too_many) == ({Fate.PUT_OFF}, 0, 60)


def test_a_confirmation_shrinks_with_what_waits_still() -> None:
    listed = {f"r{each}": "b" for each in range(5)}
    assert plan_deletions(waiting(25, put_off=20, confirmed=30, listed=listed), DELETE).confirmed == 15
