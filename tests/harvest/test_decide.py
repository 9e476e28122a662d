"""Listed documents and what the target holds -> what is to be done."""

import pytest

from metaharvest.harvest.decide import decide
from metaharvest.model import Action, Holding, ListedDocument


def listed(*revisions: int) -> list[ListedDocument]:
    return [ListedDocument("a.1", n, "t", f"https://example.org/{i}", i) for i, n in enumerate(revisions, 1)]


@pytest.mark.parametrize(
    ("revisions", "held", "actions"),
    [
        ([1], None, [Action.INSERT]),
        ([1, 2, 3], None, [Action.INSERT, Action.UPDATE, Action.UPDATE]),
        ([2], 1, [Action.UPDATE]),
        ([2], 2, [Action.UNCHANGED]),
        ([1, 2], 2, [Action.UNCHANGED, Action.UNCHANGED]),
        ([1, 2, 3], 2, [Action.UNCHANGED, Action.UNCHANGED, Action.UPDATE]),
        ([1, 4], 2, [Action.UNCHANGED, Action.UPDATE]),
        ([1, 2], 3, [Action.STALE, Action.STALE]),
        ([1, 1], None, [Action.INSERT, Action.DUPLICATE]),
        ([1, 1, 2, 2, 2], 1, [Action.UNCHANGED, Action.DUPLICATE, Action.UPDATE, Action.DUPLICATE, Action.DUPLICATE]),
        ([0], None, [Action.INSERT]),
        ([0], 0, [Action.UNCHANGED]),
    ],
)
def test_every_combination_of_listed_and_held_revisions(
    revisions: list[int], held: int | None, actions: list[Action]
) -> None:
    holdings = {} if held is None else {"a.1": Holding("a.1", held)}
    intents = list(decide(listed(*revisions), holdings, 1, {1: "mine"}))
    assert [intent.action for intent in intents] == actions
    assert [intent.document.revision for intent in intents] == revisions


def test_what_another_registered_site_owns_is_refused_and_what_a_removed_one_owned_is_free() -> None:
    holdings = {"a.1": Holding("a.1", 1, site_id=7)}
    refused = list(decide(listed(1, 2), holdings, 1, {1: "mine", 7: "theirs"}))
    assert [intent.action for intent in refused] == [Action.REFUSE, Action.REFUSE]
    assert "'theirs'" in refused[0].findings[0].message
    free = list(decide(listed(1, 2), holdings, 1, {1: "mine"}))
    assert [intent.action for intent in free] == [Action.UNCHANGED, Action.UPDATE]
