"""The rows of a site that was split are forgotten, or missing."""

from __future__ import annotations

from datetime import date

from metaharvest.journal.splits import sorted_rows
from metaharvest.ledger.records import Unnamed

SINCE = date(2026, 11, 20)


def test_a_document_that_another_site_knows_is_forgotten_here() -> None:
    sorting = sorted_rows([Unnamed(1, "a", True, None), Unnamed(2, "b", True, SINCE)], {"a", "b"})
    assert (list(sorting.forgotten), list(sorting.missing)) == ([1, 2], [])


def test_a_copy_that_no_site_lists_is_missing_and_stays() -> None:
    rows = [Unnamed(1, "a", True, None), Unnamed(2, "b", True, SINCE)]
    sorting = sorted_rows(rows, {"c"})
    assert (list(sorting.forgotten), list(sorting.missing)) == ([], rows)


def test_a_record_without_a_copy_is_forgotten() -> None:
    assert list(sorted_rows([Unnamed(1, "a", False, None)], set()).forgotten) == [1]
