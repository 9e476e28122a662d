"""The tables are a function of the outputs and of the decisions: order, batches and former outputs have no say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import OutputBlock, OutputDecision, OutputPair, OutputWork
from metaharvest.pipeline.duplicates import keys, tables
from support.compared_outputs import NOW, Output, an_output, change, put
from support.databases import open_sqlite_file

_TABLES = (OutputBlock, OutputPair, OutputWork)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = open_sqlite_file(tmp_path_factory.mktemp("tables") / "a.db")
    yield made
    made.dispose()


@contextmanager
def thrown_away(engine: Engine) -> Iterator[Session]:
    """A session whose changes are gone afterwards."""
    with Session(engine) as session:
        yield session
        session.rollback()


def do(session: Session, numbers: Sequence[int], gone: Sequence[int] = ()) -> set[int]:
    """What the stage does with these documents."""
    return tables.replace(session, tables.read_facts(session, numbers), gone)


def decide(session: Session, first: int, second: int, answer: str) -> None:
    row = OutputDecision(
        catalogue_document_id=first, other_id=second, kind="duplicate", answer=answer, decided_by="ann", decided_at=NOW
    )
    session.add(row)
    session.flush()


def stored(session: Session) -> dict[str, list[tuple[Any, ...]]]:
    names = [Base.metadata.tables[each.__tablename__] for each in _TABLES]
    return {each.name: sorted(tuple(row) for row in session.connection().execute(select(each))) for each in names}


def works(session: Session) -> dict[int, int]:
    rows = session.connection().execute(select(OutputWork.catalogue_document_id, OutputWork.work_id))
    return {row[0]: row[1] for row in rows}


# -- any order, any batches

_TITLES = (
    "Phenology of beech in the Solling",
    "Phenology of beech in the Soling",
    "Phenology of beeches in the Solling",
    "Phenology of beech in the Solling: a subtitle",
    "Phenology of beech in the Solling, version 2",
    "Phenology of beech in the Solling 1999",
    "Water of the Solling",
    "Editorial",
)
_OUTPUTS = st.builds(
    an_output,
    st.sampled_from(_TITLES),
    st.sampled_from(("Rivera", "Okafor")),
    st.sampled_from((2020, 2021, None)),
    st.sampled_from((None, None, None, "10.5555/a", "10.5555/b")),
)
_NUMBERS = (1, 2, 3, 4, 5, 6, 10, 11, 20)
_STEPS = st.lists(
    st.tuples(st.lists(st.sampled_from(_NUMBERS), min_size=1, max_size=4, unique=True), st.sampled_from("+++-")),
    max_size=8,
)
_DECISIONS = st.dictionaries(
    st.tuples(st.sampled_from(_NUMBERS), st.sampled_from(_NUMBERS)).filter(lambda pair: pair[0] < pair[1]),
    st.sampled_from(("same", "different")),
    max_size=3,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.fixed_dictionaries(dict.fromkeys(_NUMBERS, _OUTPUTS)),
    _STEPS,
    st.permutations(_NUMBERS),
    _DECISIONS,
    st.integers(1, 4),
)
def test_order_and_batches_have_no_say(
    engine: Engine,
    outputs: dict[int, Output],
    before: list[tuple[list[int], str]],
    order: Sequence[int],
    decisions: Mapping[tuple[int, int], str],
    size: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch, thrown_away(engine) as session:
        patch.setattr(keys, "MOST_IN_BLOCK", 3)
        put(session, outputs)
        for pair, answer in decisions.items():
            decide(session, *pair, answer)
        do(session, sorted(_NUMBERS))
        wanted = stored(session)
        do(session, [], _NUMBERS)
        assert stored(session) == {"output_block": [], "output_pair": [], "output_work": []}
        for numbers, kind in before:
            do(session, numbers if kind == "+" else [], numbers if kind == "-" else [])
        for start in range(0, len(order), size):
            do(session, order[start : start + size])
        assert stored(session) == wanted


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.fixed_dictionaries(dict.fromkeys(_NUMBERS, _OUTPUTS)),
    st.lists(st.tuples(st.sampled_from(_NUMBERS), _OUTPUTS), max_size=5),
    _DECISIONS,
)
def test_former_outputs_and_later_decisions_leave_nothing_behind(
    engine: Engine,
    outputs: dict[int, Output],
    changes: list[tuple[int, Output]],
    decisions: Mapping[tuple[int, int], str],
) -> None:
    with pytest.MonkeyPatch.context() as patch, thrown_away(engine) as session:
        patch.setattr(keys, "MOST_IN_BLOCK", 4)
        put(session, outputs)
        do(session, _NUMBERS)
        for number, output in changes:
            change(session, number, output)
            do(session, [number])
        for pair, answer in decisions.items():
            decide(session, *pair, answer)
            tables.arrange(session, pair)
        reached = stored(session)
        do(session, [], _NUMBERS)
        do(session, _NUMBERS)
        assert stored(session) == reached


def test_doing_it_again_changes_nothing(engine: Engine) -> None:
    with thrown_away(engine) as session:
        put(session, {1: an_output(_TITLES[0]), 2: an_output(_TITLES[1])})
        assert do(session, [1, 2]) == {1, 2}
        assert do(session, [1, 2]) == set()
        assert works(session) == {1: 1, 2: 1}


# -- decisions of people


def test_a_decision_splits_a_work_and_holds_after_the_rules_ran_again(engine: Engine) -> None:
    with thrown_away(engine) as session:
        put(session, {each: an_output(_TITLES[0]) for each in (1, 2, 3)})
        do(session, [1, 2, 3])
        assert works(session) == {1: 1, 2: 1, 3: 1}
        decide(session, 1, 3, "different")
        assert tables.arrange(session, [1, 3]) == {3}
        do(session, [], [2])
        do(session, [1, 2, 3])
        assert works(session) == {1: 1, 2: 1, 3: 3}


def test_a_decision_joins_outputs_that_the_rules_keep_apart(engine: Engine) -> None:
    with thrown_away(engine) as session:
        put(
            session,
            {1: an_output("Water of the Solling"), 2: an_output("Moss on walls"), 3: an_output("Moss on walls")},
        )
        do(session, [1, 2, 3])
        decide(session, 1, 3, "same")
        tables.arrange(session, [1, 3])
        assert works(session) == {1: 1, 2: 1, 3: 1}


def test_a_decision_outlives_a_document_that_is_gone_for_a_while(engine: Engine) -> None:
    with thrown_away(engine) as session:
        put(session, {1: an_output("Water of the Solling"), 2: an_output("Moss on walls")})
        do(session, [1, 2])
        decide(session, 1, 2, "same")
        tables.arrange(session, [1, 2])
        do(session, [], [1])
        assert works(session) == {2: 2}
        do(session, [1])
        assert works(session) == {1: 1, 2: 1}


def test_all_formats_of_an_item_go_with_it(engine: Engine) -> None:
    with thrown_away(engine) as session:
        put(session, {1: an_output(_TITLES[0]), 10: an_output(_TITLES[0]), 11: an_output("Something else")})
        do(session, [1, 10, 11])
        assert works(session) == {1: 1, 10: 1, 11: 1}
        decide(session, 1, 10, "different")
        tables.arrange(session, [1, 10])
        assert works(session) == {1: 1, 10: 10, 11: 10}


def test_an_article_that_lists_the_doi_of_its_dataset_does_not_join_them(engine: Engine) -> None:
    article, data = ({"types": [{"coar": code}]} for code in ("c_6501", "c_ddb1"))
    dois = [{"scheme": "doi", "value": each} for each in ("10.5555/a", "10.5555/b")]
    with thrown_away(engine) as session:
        put(
            session,
            {
                1: {**an_output("Water of the Solling", doi="10.5555/a"), **article},
                2: {**an_output("Water of the Solling", doi="10.5555/b"), **data},
                3: {**an_output("Water of the Solling"), **article, "identifiers": dois},
            },
        )
        do(session, [1, 2, 3])
        assert works(session) == {1: 1, 2: 2, 3: 1}
        row = select(OutputPair.answer, OutputPair.reason).where(OutputPair.catalogue_document_id == 2)
        assert session.execute(row).all() == [
            (
                "look",
                "Both have the DOI 10.5555/b, but they are of different kinds, and one of them has several DOIs.",
            )
        ]


# -- blocks


def test_a_block_that_too_many_outputs_have_is_not_used(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MOST_IN_BLOCK", 2)
    with thrown_away(engine) as session:
        put(session, {each: an_output(_TITLES[0]) for each in (1, 2, 3)})
        do(session, [1, 2])
        assert works(session) == {1: 1, 2: 1}
        do(session, [3])
        assert works(session) == {1: 1, 2: 2, 3: 3}
        do(session, [], [3])
        assert works(session) == {1: 1, 2: 1}
