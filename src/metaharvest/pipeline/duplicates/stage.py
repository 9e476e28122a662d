"""The stage `duplicates`: from outputs to blocks, pairs and works, and to the vectors of their titles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from metaharvest.model.values import frozen
from metaharvest.pipeline import steps
from metaharvest.pipeline.duplicates import tables
from metaharvest.pipeline.duplicates import vectors as vectors_of
from metaharvest.pipeline.duplicates.facts import Facts
from metaharvest.pipeline.stage import Context, Document, Result, Stage, StageName

VERSION = 2
"""Of the rules in titles.py, facts.py, keys.py, comparison.py and clusters.py: raise it with each change of them."""

_WITH_VECTORS = 1000
"""Is added to the version where the extra `embeddings` is installed: then all documents get their vectors."""


@frozen
class Compared:
    """An output for `store`: its facts, and the vector of its title, if it has one."""

    facts: Facts
    vector: bytes | None


def perform(context: Context, documents: Sequence[Document]) -> Iterable[Result]:
    """The facts of the output of each document, and the vector of its title."""
    with context.reading() as session:
        facts = tables.read_facts(session, [each.number for each in documents])
    vectors = dict(zip(facts, vectors_of.encoded([each.shown for each in facts.values()]), strict=True))
    return [
        Result(each, Compared(facts[each.number], vectors[each.number]) if each.number in facts else None)
        for each in documents
    ]


def store(session: Session, results: Sequence[Result], _now: datetime) -> None:
    """Let the tables follow these outputs, and wake the index for outputs whose work has changed."""
    compared: dict[int, Compared | None] = {each.document.number: each.value for each in results}
    outputs = {number: each.facts for number, each in compared.items() if each is not None}
    gone = compared.keys() - outputs.keys()
    vectors_of.replace_vectors(session, {number: each.vector if each else None for number, each in compared.items()})
    _wake_index(session, tables.replace(session, outputs, gone))


def remove(session: Session, numbers: Collection[int]) -> None:
    """Remove these outputs. The decisions of people about them stay: a document may come back."""
    vectors_of.replace_vectors(session, dict.fromkeys(numbers))
    _wake_index(session, tables.replace(session, {}, numbers))


def _wake_index(session: Session, numbers: Collection[int]) -> None:
    steps.wake_known(session, StageName.INDEX, sorted(numbers))


STAGE = Stage(
    StageName.DUPLICATES,
    VERSION + (_WITH_VECTORS if vectors_of.is_installed() else 0),
    perform,
    store,
    remove,
    wakes=(StageName.INDEX,),
    batch=200,
    parts=1,
)
