"""Works from pairs, without a database."""

from __future__ import annotations

from metaharvest.pipeline.duplicates.clusters import Links, works_of


def test_titles_join_the_first_output_of_a_work_and_no_other_member() -> None:
    assert works_of([1, 2, 3], Links(likely=[(1, 2), (2, 3)])) == {1: 1, 2: 1, 3: 3}


def test_identifiers_join_any_member() -> None:
    assert works_of([1, 2, 3], Links(sure=[(2, 3)], likely=[(1, 2)])) == {1: 1, 2: 1, 3: 1}


def test_versions_are_never_in_one_work() -> None:
    assert works_of([1, 2, 3], Links(likely=[(1, 2), (1, 3)], apart=[(2, 3)])) == {1: 1, 2: 1, 3: 3}


def test_what_a_person_calls_different_stays_apart_with_all_that_belongs_to_it() -> None:
    links = Links(sure=[(3, 4)], likely=[(1, 2), (1, 3)], apart=[(2, 4)])
    assert works_of([1, 2, 3, 4], links) == {1: 1, 2: 1, 3: 3, 4: 3}


def test_decisions_come_before_identifiers() -> None:
    links = Links(decided=[(1, 3)], sure=[(1, 2)], apart=[(2, 3)])
    assert works_of([1, 2, 3], links) == {1: 1, 2: 2, 3: 1}
