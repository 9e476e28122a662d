"""The words of an output that find related ones. Pure but for the frequencies, which the index knows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from metaharvest.pipeline.search.contract import Record
from metaharvest.pipeline.search.terms import indexed

MOST_TERMS = 25
_CANDIDATES = 60
_LONGEST = 20_000
"""Characters of an abstract that count."""

_COMMON = 0.2
"""A term of more outputs than this share says nothing of any one, unless there are few outputs."""

_FEW = 50

_GRAMMAR = (
    "the and for with from that this these those which are was were has have had not but its their them they than then "
    "into onto over under between during after before while both each other some all more most can may also such our "
    "der die das den dem des ein eine einer und von vom zur zum aus bei mit nach auf als wie ist sind wird werden "
    "nicht les des une est sont dans par pour sur avec entre ces leur leurs que qui aux los las del una con por "
    "para como entre sus dos das uma com dei della delle nel sono che voor van het een"
)
_FUNCTION_WORDS = frozenset(_GRAMMAR.split())
"""Words that outputs share by grammar alone. Where there are few outputs, their number does not show it."""

Frequencies = Callable[[Collection[str]], Mapping[str, int]]
"""See SearchIndex.frequencies."""


def telling_terms(record: Record, frequencies: Frequencies) -> Mapping[str, float]:
    """The terms of a title, subjects and an abstract that few other outputs have, each with its weight."""
    counted = _counted(record)
    candidates = [term for term, _ in counted.most_common(_CANDIDATES)]
    known = frequencies(candidates)
    outputs = max(known.get("", 0), 1)
    most = outputs if outputs <= _FEW else outputs * _COMMON
    worth = {
        term: counted[term] * math.log(1 + outputs / known[term])
        for term in candidates
        if 2 <= known.get(term, 0) <= most  # one of them is the output itself
    }
    chosen = sorted(worth, key=lambda term: (-worth[term], term))[:MOST_TERMS]
    return {term: min(counted[term], 4) / 2 for term in chosen}


def shared_terms(record: Record, terms: Collection[str], most: int = 5) -> Sequence[str]:
    """The terms, among these and in their order, that a record has, too."""
    its = _counted(record)
    return [each for each in terms if its[each]][:most]


def _counted(record: Record) -> Counter[str]:
    """The terms of an output with their number: the title and the subjects count twice."""
    main = [record.get("title") or "", *record.get("subjects", ())]
    counted = Counter(indexed("\n".join(main)).split())
    for term in counted:
        counted[term] *= 2
    counted.update(indexed((record.get("abstract") or "")[:_LONGEST]).split())
    return Counter({term: number for term, number in counted.items() if _is_telling(term)})


def _is_telling(term: str) -> bool:
    """False for short words, words of grammar and numbers; a part of a run without blanks is short."""
    return not term.isdigit() and term not in _FUNCTION_WORDS and (len(term) > 2 or not term.isascii())
