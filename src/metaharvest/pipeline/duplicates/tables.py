"""The tables of duplicates: output_block, output_pair and output_work follow the outputs and the decisions.

All of it is a function of the outputs and of the decisions of people. A change computes again what it touches:

1. the blocks of the changed outputs;
2. their pairs with all outputs that have a block in common with them, and the pairs in blocks that became too general,
   or no longer are;
3. the works of all outputs that these pairs connect.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from sqlalchemy import ScalarSelect, bindparam, delete, select, update
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import OutputBlock, OutputDecision, OutputPair, OutputRecord, OutputWork
from metaharvest.database.rows import insert_rows
from metaharvest.database.statements import delete_with, rows_with
from metaharvest.pipeline.duplicates import keys
from metaharvest.pipeline.duplicates.clusters import Links, Pair, works_of
from metaharvest.pipeline.duplicates.comparison import Answer, Comparison, Method, compare
from metaharvest.pipeline.duplicates.facts import Facts, facts_of, item_of

DUPLICATE, RELATED = "duplicate", "related"
"""The kinds of decisions: about two outputs that may be the same, or that may be related."""

_BLOCKS = Base.metadata.tables[OutputBlock.__tablename__]
_PAIRS = Base.metadata.tables[OutputPair.__tablename__]
_WORKS = Base.metadata.tables[OutputWork.__tablename__]
_OUTPUTS = Base.metadata.tables[OutputRecord.__tablename__]
_DECISIONS = Base.metadata.tables[OutputDecision.__tablename__]
_DELETE_PAIR = delete(_PAIRS).where(
    _PAIRS.c.catalogue_document_id == bindparam("first"), _PAIRS.c.other_id == bindparam("second")
)
_MOVE = update(_WORKS).where(_WORKS.c.catalogue_document_id == bindparam("number")).values(work_id=bindparam("work"))
_BLOCK, _MEMBER = _BLOCKS.c.block, _BLOCKS.c.catalogue_document_id


def read_facts(session: Session, numbers: Collection[int]) -> dict[int, Facts]:
    """The facts of these outputs; an output without facts is missing."""
    found: dict[int, Facts] = {}
    query = select(
        *_OUTPUTS.c["catalogue_document_id", "content"], *DOCUMENTS.c["origin", "item_identifier"]
    ).join_from(_OUTPUTS, DOCUMENTS, DOCUMENTS.c.catalogue_document_id == _OUTPUTS.c.catalogue_document_id)
    for number, content, origin, item in rows_with(session, query, _OUTPUTS.c.catalogue_document_id, numbers):
        found[number] = facts_of(number, item_of(origin, item), content)
    return found


def replace(session: Session, outputs: Mapping[int, Facts], gone: Collection[int] = ()) -> set[int]:
    """Let the tables follow these outputs, and outputs that are gone. Returns the outputs whose work has changed.

    The numbers of `outputs` and `gone` are all that may have changed since the last time.
    """
    change = _replace_blocks(session, outputs, gone)
    full = _full_blocks(session, change)
    pairs = _Pairs(session, outputs, gone)
    pairs.find_candidates(full)
    pairs.leave_blocks(full.now_full)
    pairs.enter_blocks(full.now_used)
    touched = pairs.write()
    numbers = outputs.keys() | set(gone)
    delete_with(session, _WORKS.c.catalogue_document_id, gone)
    without = numbers - set(gone) - _works(session, numbers).keys()
    decided = {each for pair, answer in _decisions(session, numbers).items() if answer == Answer.SAME for each in pair}
    return arrange(session, (touched | without | (decided if gone or without else set())) - set(gone), outputs)


def arrange(session: Session, numbers: Collection[int], new: Collection[int] = ()) -> set[int]:
    """Compute the works of these outputs, and of all that pairs and decisions connect with them.

    `new` outputs may have no work yet. Returns the outputs whose work has changed, new ones too.
    """
    links = _links(session, numbers)
    known = _works(session, links.members)
    members = [each for each in links.members if each in known or each in new]
    works = works_of(members, links.within(members))
    changed = {number: work for number, work in works.items() if known.get(number) != work}
    added = [{"catalogue_document_id": each, "work_id": work} for each, work in changed.items() if each not in known]
    if added:
        insert_rows(session.connection(), _WORKS, added)
    if moved := [{"number": each, "work": work} for each, work in changed.items() if each in known]:
        session.connection().execute(_MOVE, moved)
    return set(changed)


# -- blocks


@dataclass(slots=True)
class _BlockChange:
    """The blocks of the outputs that changed, and in which of them there are more or fewer outputs now."""

    blocks: Mapping[int, frozenset[str]]
    added: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)


def _replace_blocks(session: Session, outputs: Mapping[int, Facts], gone: Collection[int]) -> _BlockChange:
    wanted = {number: keys.blocks_of(facts) for number, facts in outputs.items()}
    stored: defaultdict[int, set[str]] = defaultdict(set)
    query = select(_MEMBER, _BLOCK)
    for number, block in rows_with(session, query, _MEMBER, outputs.keys() | set(gone)):
        stored[number].add(block)
    change = _BlockChange(wanted)
    rows: list[dict[str, Any]] = []
    for number in sorted(outputs.keys() | set(gone)):
        mine = wanted.get(number, frozenset())
        if superfluous := stored[number] - mine:
            session.execute(delete(_BLOCKS).where(_BLOCKS.c.catalogue_document_id == number, _BLOCK.in_(superfluous)))
            change.removed.update(superfluous)
        missing = mine - stored[number]
        rows += [{"block": block, "catalogue_document_id": number} for block in missing]
        change.added.update(missing)
    if rows:
        insert_rows(session.connection(), _BLOCKS, sorted(rows, key=lambda each: str(each["block"])))
    return change


@dataclass(slots=True)
class _FullBlocks:
    """The blocks of changed outputs that are used, with their outputs; the blocks that are full now, or no longer."""

    used: Mapping[str, set[int]]
    now_full: Mapping[str, set[int]]
    now_used: Mapping[str, set[int]]


def _full_blocks(session: Session, change: _BlockChange) -> _FullBlocks:
    most = keys.MOST_IN_BLOCK
    more = most + max(change.added.values(), default=0)
    sizes = _sizes_above(session, change.blocks, most, more)
    sizes |= {block: _count(session, block, most) for block in change.removed if block not in sizes}
    before = {block: size - change.added[block] + change.removed[block] for block, size in sizes.items()}
    now_full = [block for block, size in sizes.items() if before[block] <= most < size <= more]
    now_used = [block for block, size in sizes.items() if size <= most < before[block]]
    used = {block for blocks in change.blocks.values() for block in blocks if sizes.get(block, 0) <= most}
    members = _members(session, [*used, *now_full, *now_used])
    return _FullBlocks(
        {block: members[block] for block in used},
        {block: members[block] for block in now_full},
        {block: members[block] for block in now_used},
    )


def _sizes_above(session: Session, numbers: Collection[int], most: int, more: int) -> dict[str, int]:
    """The sizes of the blocks of these outputs that are above `most`: `more` + 1 for any above `more`.

    A block may have 100,000 outputs: only the first ones are counted.
    """
    each = _BLOCKS.alias()

    def beyond(number: int) -> ScalarSelect[int]:
        rows = select(each.c.catalogue_document_id).where(each.c.block == _BLOCK)
        return rows.order_by(each.c.catalogue_document_id).offset(number).limit(1).scalar_subquery()

    query = select(_BLOCK, beyond(most), beyond(more)).distinct()
    found = rows_with(session, query, _MEMBER, numbers)
    big = [(block, beyond_more) for block, beyond_most, beyond_more in found if beyond_most is not None]
    return {
        block: more + 1 if beyond_more is not None else _count(session, block, more) for block, beyond_more in set(big)
    }


def _count(session: Session, block: str, most: int) -> int:
    """The number of outputs in a block, at most `most` + 1."""
    return len(session.scalars(select(_MEMBER).where(_BLOCKS.c.block == block).limit(most + 1)).all())


def _members(session: Session, blocks: Collection[str]) -> Mapping[str, set[int]]:
    found: defaultdict[str, set[int]] = defaultdict(set)
    for block, number in rows_with(session, select(_BLOCK, _MEMBER), _BLOCK, blocks):
        found[block].add(number)
    return found


# -- pairs


class _Pairs:
    """The pairs that a change touches: stored pairs, and wanted pairs."""

    def __init__(self, session: Session, outputs: Mapping[int, Facts], gone: Collection[int]) -> None:
        self._session = session
        self._facts = dict(outputs)
        self._changed = outputs.keys() | set(gone)
        self._stored = _stored_pairs(session, self._changed)
        self._wanted: dict[Pair, Comparison] = {}

    def find_candidates(self, full: _FullBlocks) -> None:
        """Compare the changed outputs with all that have a block in common with them."""
        candidates: set[Pair] = set()
        for members in full.used.values():
            for number in members & self._facts.keys():
                candidates.update((min(number, other), max(number, other)) for other in members if other != number)
        self._compare(candidates)

    def leave_blocks(self, blocks: Mapping[str, set[int]]) -> None:
        """Forget the pairs whose common blocks have all become too general."""
        pairs = _stored_pairs(self._session, {each for members in blocks.values() for each in members})
        doubtful = [
            pair
            for pair in pairs
            if self._changed.isdisjoint(pair) and any(members >= set(pair) for members in blocks.values())
        ]
        numbers = {each for pair in doubtful for each in pair}
        own: defaultdict[int, set[str]] = defaultdict(set)
        for number, block in rows_with(self._session, select(_MEMBER, _BLOCK), _MEMBER, numbers):
            own[number].add(block)
        full = _sizes_above(self._session, numbers, keys.MOST_IN_BLOCK, keys.MOST_IN_BLOCK)
        for first, second in doubtful:
            if not (own[first] & own[second]) - full.keys():
                self._stored[first, second] = pairs[first, second]

    def enter_blocks(self, blocks: Mapping[str, set[int]]) -> None:
        """Compare all outputs in a block that was too general before."""
        pairs = {pair for members in blocks.values() for pair in combinations(sorted(members), 2)}
        stored = _stored_pairs(self._session, {each for pair in pairs for each in pair})
        self._stored |= {pair: row for pair, row in stored.items() if pair in pairs}
        self._compare(pair for pair in pairs if pair not in self._wanted)

    def write(self) -> set[int]:
        """Store the wanted pairs, and no others. Returns the outputs in pairs that are not as they were."""
        wanted = {pair: _pair_row(pair, found) for pair, found in self._wanted.items()}
        superfluous = [pair for pair, row in self._stored.items() if wanted.get(pair) != row]
        missing = [row for pair, row in wanted.items() if self._stored.get(pair) != row]
        if superfluous:
            self._session.connection().execute(
                _DELETE_PAIR, [{"first": first, "second": second} for first, second in superfluous]
            )
        if missing:
            insert_rows(self._session.connection(), _PAIRS, missing)
        return {each for pair in superfluous for each in pair} | {
            row[name] for row in missing for name in ("catalogue_document_id", "other_id")
        }

    def _compare(self, pairs: Iterable[Pair]) -> None:
        found = list(pairs)
        others = {each for pair in found for each in pair} - self._facts.keys()
        facts = {**self._facts, **read_facts(self._session, others)}
        for first, second in found:
            if first in facts and second in facts:
                comparison = compare(facts[first], facts[second])
                if comparison.answer is not Answer.DIFFERENT:
                    self._wanted[first, second] = comparison


def _pair_row(pair: Pair, found: Comparison) -> dict[str, Any]:
    return {
        "catalogue_document_id": pair[0],
        "other_id": pair[1],
        "answer": found.answer.value,
        "method": found.method.value,
        "score": round(found.score, 1),
        "reason": found.reason,
    }


def _stored_pairs(session: Session, numbers: Collection[int]) -> dict[Pair, dict[str, Any]]:
    found: dict[Pair, dict[str, Any]] = {}
    for column in (_PAIRS.c.catalogue_document_id, _PAIRS.c.other_id):
        for row in rows_with(session, select(_PAIRS), column, numbers):
            found[row[0], row[1]] = dict(row._mapping)
    return found


# -- works


@dataclass(slots=True)
class _Connected:
    """Outputs that pairs and decisions connect, and the pairs and decisions."""

    members: set[int]
    pairs: Mapping[Pair, dict[str, Any]]
    decisions: Mapping[Pair, str]

    def within(self, members: Collection[int]) -> Links:
        """The links between these outputs. A decision holds whatever the pair says."""
        known = frozenset(members)
        inside = {pair: row for pair, row in self.pairs.items() if known >= set(pair)}
        decided = {pair: answer for pair, answer in self.decisions.items() if known >= set(pair)}
        rules = {pair: row for pair, row in inside.items() if pair not in decided}
        same = {pair: row for pair, row in rules.items() if row["answer"] == Answer.SAME}
        return Links(
            decided=[pair for pair, answer in decided.items() if answer == Answer.SAME],
            sure=[pair for pair, row in same.items() if row["method"] == Method.IDENTIFIER],
            likely=[pair for pair, row in same.items() if row["method"] == Method.TITLE],
            apart=[pair for pair, answer in decided.items() if answer == Answer.DIFFERENT]
            + [pair for pair, row in rules.items() if row["answer"] == Answer.VERSION],
        )


def _links(session: Session, numbers: Collection[int]) -> _Connected:
    """All that pairs and decisions connect with these outputs, over any number of steps."""
    members: set[int] = set()
    pairs: dict[Pair, dict[str, Any]] = {}
    decisions: dict[Pair, str] = {}
    new = set(numbers)
    while new:
        members |= new
        near = _stored_pairs(session, new)
        decided = _decisions(session, new)
        pairs |= near
        decisions |= decided
        same = [pair for pair, row in near.items() if row["answer"] == Answer.SAME]
        same += [pair for pair, answer in decided.items() if answer == Answer.SAME]
        new = {each for pair in same for each in pair} - members
    return _Connected(members, pairs, decisions)


def _decisions(session: Session, numbers: Collection[int]) -> dict[Pair, str]:
    """The decisions of people about duplicates of these outputs."""
    found: dict[Pair, str] = {}
    query = select(*_DECISIONS.c["catalogue_document_id", "other_id", "answer"]).where(_DECISIONS.c.kind == DUPLICATE)
    for column in (_DECISIONS.c.catalogue_document_id, _DECISIONS.c.other_id):
        found |= {(first, second): answer for first, second, answer in rows_with(session, query, column, numbers)}
    return found


def _works(session: Session, numbers: Collection[int]) -> dict[int, int]:
    query = select(_WORKS.c.catalogue_document_id, _WORKS.c.work_id)
    return dict(tuple(row) for row in rows_with(session, query, _WORKS.c.catalogue_document_id, numbers))
