"""Related outputs: found by words that few outputs have, ordered by words, the meaning of titles, and people.

Two rankings are combined by the places in them: https://doi.org/10.1145/1571941.1572114. Words and meaning are measured
in benchmarks/related.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from metaharvest.pipeline.letters import word_set
from metaharvest.pipeline.search.contract import Record
from metaharvest.pipeline.search.terms import indexed

MOST_TERMS = 25
_CANDIDATES = 60
_LONGEST = 20_000
"""Characters of an abstract that count."""

_COMMON = 0.2
"""A term of more outputs than this share says nothing of any one, unless there are few outputs."""

_FEW = 50

_FUNCTION_WORDS = word_set(
    "the and for with from that this these those which are was were has have had not but its their them they than then "
    "into onto over under between during after before while both each other some all more most can may also such our "
    "der die das den dem des ein eine einer und von vom zur zum aus bei mit nach auf als wie ist sind wird werden "
    "nicht les des une est sont dans par pour sur avec entre ces leur leurs que qui aux los las del una con por "
    "para como entre sus dos das uma com dei della delle nel sono che voor van het een"
)
"""Words that outputs share by grammar alone. Where there are few outputs, their number does not show it."""

RELATED, UNRELATED = "related", "unrelated"
"""The answers of people."""

_FIRST_PLACES = 5
_WORDS, _MEANING = 1, 2
_SHOWN = 3
_MOST_SHARED = 5
_DECIDED = 1.0

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


def shared_terms(record: Record, terms: Collection[str]) -> Sequence[str]:
    """The terms, among these and in their order, that a record has, too; at most five."""
    its = _counted(record)
    return [each for each in terms if its[each]][:_MOST_SHARED]


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


def ranked(by_words: Sequence[int], by_meaning: Sequence[int], decided: Mapping[int, str]) -> dict[int, float]:
    """Related outputs with their scores, the best one first. Outputs that people call related come first."""
    scores: Counter[int] = Counter()
    for weight, ranking in ((_WORDS, by_words), (_MEANING, by_meaning)):
        for place, number in enumerate(ranking, start=1):
            scores[number] += weight / (_FIRST_PLACES + place)  # type: ignore[assignment]
    found = {number: float(score) for number, score in scores.items() if decided.get(number) != UNRELATED}
    found |= {number: _DECIDED for number, answer in decided.items() if answer == RELATED}
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def reason_of(shared: Collection[str], answer: str | None) -> str:
    """Why an output is related, in a sentence. `shared` are words of both, `answer` is the decision of a person."""
    if answer == RELATED:
        return "A person says that they are related."
    return f"Both have: {', '.join(list(shared)[:_SHOWN])}." if shared else "Their titles have a similar meaning."
