"""The order of related outputs: by common words, by the meaning of their titles, and by the decisions of people.

Two rankings are combined by the places in them: https://doi.org/10.1145/1571941.1572114. Words and meaning are measured
in benchmarks/related.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

RELATED, UNRELATED = "related", "unrelated"
"""The answers of people."""

_FIRST_PLACES = 5
_WORDS, _MEANING = 1, 2
_SHOWN = 3
_DECIDED = 1.0


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
