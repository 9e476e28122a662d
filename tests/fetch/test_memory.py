"""What documents that arrive and wait may take of the memory, over all sites."""

from __future__ import annotations

from metaharvest.fetch.limits import MemoryBudget


def test_one_site_holds_up_nobody_but_itself_however_much_it_has() -> None:
    budget = MemoryBudget(100)
    budget.take(300, 1)
    assert not budget.has_room(1)
    assert budget.has_room(2)


def test_several_sites_leave_no_more_uncounted_than_one_of_them_or_half_of_the_room() -> None:
    budget = MemoryBudget(100)
    budget.take(150, 1)
    budget.take(150, 2)
    assert not budget.has_room(3)
    budget.give_back(100, 2)
    assert budget.has_room(3)
    for site in (3, 4, 5, 6):
        budget.take(45, site)
    budget.give_back(150, 1)
    assert not budget.has_room(7)
    budget.give_back(45, 6)
    budget.give_back(45, 5)
    assert budget.has_room(7)
