"""Two outputs -> an answer, a score, and the reason for people.

Identifiers decide first, titles with years and creators after them. Two outputs with different DOIs are never the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from functools import cache
from itertools import pairwise
from types import ModuleType

from metaharvest.model.values import frozen
from metaharvest.pipeline.duplicates.facts import Facts, Name
from metaharvest.pipeline.duplicates.titles import Title, spelt

LEAST_SCORE = 85
"""Titles below this score of 100 do not agree: measured on the labelled pairs of DBLP-ACM."""

_EQUAL_SCORE = 97
_UNLIKE_SCORE = 60
_SHORT_WORD = 4
_LONG_WORD = 8
_SAME_NAME = 85
_LONG_TITLE = 5
_SHORT_TITLE = 3
_SUBTITLE_SCORE = 90.0
_YEARS_OF_VERSIONS = 5


class Answer(StrEnum):
    """The relation of two outputs. `look`: a person should decide."""

    SAME = "same"
    VERSION = "version"
    LOOK = "look"
    DIFFERENT = "different"


class Method(StrEnum):
    """How an answer is known: by an identifier, or by the titles."""

    TITLE = "title"
    IDENTIFIER = "identifier"


@frozen
class Comparison:
    """The answer about two outputs. `score` is the agreement of the titles, 0 to 100; `reason` is a sentence or two."""

    answer: Answer
    score: float
    reason: str
    method: Method = Method.TITLE


class _Match(IntEnum):
    """How far two titles agree. SUBTITLE: one of them lacks the subtitle. LONGER: one of them has more words."""

    NONE = 0
    SUBTITLE = 1
    LONGER = 2
    CLOSE = 3
    EQUAL = 4


@frozen
class _Titles:
    match: _Match
    score: float
    words: int
    """The number of meaningful words of the shorter one."""
    first: Title | None = None
    second: Title | None = None

    @property
    def versions_differ(self) -> bool:
        return bool(self.first and self.second and self.first.versions != self.second.versions)

    @property
    def is_periodical(self) -> bool:
        return bool(self.first and self.first.is_periodical)


class _Creators(IntEnum):
    """ALL: most of the shorter list. BOTH: most of either list."""

    DISJOINT = 0
    UNKNOWN = 1
    SOME = 2
    ALL = 3
    BOTH = 4


class _Years(IntEnum):
    FAR = 0
    UNKNOWN = 1
    NEAR = 2
    EQUAL = 3


@frozen
class _Evidence:
    titles: _Titles
    creators: _Creators
    shared: str
    """The name of a creator of both."""
    years: _Years
    distance: int

    @property
    def is_of_one_work(self) -> bool:
        return self.titles.match >= _Match.SUBTITLE and self.creators >= _Creators.SOME


def compare(first: Facts, second: Facts) -> Comparison:
    """Compare two outputs. Their order has no influence."""
    if second.number < first.number:
        first, second = second, first
    titles = _best(first.titles, second.titles)
    if titles.match or _identifiers(first) & _identifiers(second):
        evidence = _evidence(first, second, titles)
        if answer := _by_identifiers(first, second, evidence) or _by_titles(first, second, evidence):
            return answer
    return Comparison(Answer.DIFFERENT, titles.score, "The titles do not agree.")


def _identifiers(facts: Facts) -> frozenset[str]:
    """The identifiers by which two outputs are the same, or versions of each other, whatever their titles say."""
    item = (f"item {facts.item}",) if facts.item else ()
    return frozenset((*item, *facts.dois, *facts.unique, *facts.same_as, *facts.version_of))


# -- identifiers


def _by_identifiers(first: Facts, second: Facts, evidence: _Evidence) -> Comparison | None:
    titles = evidence.titles
    if first.item and first.item == second.item:
        return _sure(Answer.SAME, titles, "Both are formats of the same item of the same source repository.")
    if (
        doi := _common(first.dois, second.dois)
        or _common(first.same_as, second.dois)
        or _common(first.dois, second.same_as)
    ):
        return _with_same(f"Both have the DOI {doi}", first, second, evidence)
    if _common(first.version_of, second.dois) or _common(first.dois, second.version_of):
        return _sure(Answer.VERSION, titles, "One of them names the other as another version of itself.")
    if doi := _common(first.version_of, second.version_of):
        return _sure(Answer.VERSION, titles, f"Both name {doi} as another version of themselves.")
    conflict = bool(first.dois and second.dois)
    if identifier := _common(first.unique, second.unique):
        if conflict or first.is_preprint != second.is_preprint:
            return _sure(Answer.VERSION, titles, f"Both have {_shown(identifier)}, and they are different versions.")
        return _with_same(f"Both have {_shown(identifier)}", first, second, evidence)
    is_one = titles.match >= _Match.CLOSE and not titles.versions_differ and _kinds_agree(first.kind, second.kind)
    if is_one and not conflict and (identifier := _common(first.weak, second.weak)):
        return _sure(Answer.SAME, titles, f"Both have {_shown(identifier)}, and the titles agree.")
    return None


def _with_same(said: str, first: Facts, second: Facts, evidence: _Evidence) -> Comparison:
    """The same, unless all else speaks against it: such an identifier often names the journal, or is a mistake.

    An article may list the DOI of its dataset beside its own.
    """
    titles = evidence.titles
    if max(len(first.dois), len(second.dois)) > 1 and not _kinds_agree(first.kind, second.kind):
        because = "they are of different kinds, and one of them has several DOIs"
        return Comparison(Answer.LOOK, titles.score, f"{said}, but {because}.")
    if titles.first is None or titles.match or titles.score >= _UNLIKE_SCORE:
        return _sure(Answer.SAME, titles, f"{said}.")
    if evidence.creators >= _Creators.SOME and evidence.years >= _Years.UNKNOWN:
        return _sure(Answer.SAME, titles, f"{said}, and both name {evidence.shared}.")
    if evidence.creators is _Creators.UNKNOWN and evidence.years is not _Years.FAR:
        return _sure(Answer.SAME, titles, f"{said}.")
    return Comparison(Answer.LOOK, titles.score, f"{said}, but titles and creators do not agree.")


def _sure(answer: Answer, titles: _Titles, reason: str) -> Comparison:
    return Comparison(answer, titles.score if titles.first else 100.0, reason, Method.IDENTIFIER)


def _common(first: Iterable[str], second: Iterable[str]) -> str:
    """The first value of both; "" if there is none."""
    others = frozenset(second)
    return next((each for each in first if each in others), "")


def _shown(identifier: str) -> str:
    scheme, _, value = identifier.partition(":")
    return f"the address {value}" if scheme == "url" else f"the identifier {value}"


# -- titles, creators, years


def _by_titles(first: Facts, second: Facts, evidence: _Evidence) -> Comparison | None:
    titles = evidence.titles
    if not titles.match:
        return None
    if not _kinds_agree(first.kind, second.kind):
        return _said(Answer.DIFFERENT, evidence, "they are of different kinds")
    answer, because = _judged(first, evidence)
    if titles.versions_differ and titles.match >= _Match.CLOSE and evidence.creators >= _Creators.SOME:
        return _said(Answer.VERSION, evidence, "their marks of a version differ")
    if first.dois and second.dois:
        if answer is Answer.SAME or (evidence.is_of_one_work and evidence.distance <= _YEARS_OF_VERSIONS):
            return _said(Answer.VERSION, evidence, "each has a DOI of its own")
        return _said(Answer.DIFFERENT, evidence, "each has a DOI of its own")
    if answer is Answer.SAME and first.is_preprint != second.is_preprint:
        return _said(Answer.VERSION, evidence, "one of them is a preprint")
    if answer is Answer.SAME and (first.kind == "thesis") != (second.kind == "thesis") and first.kind and second.kind:
        return _said(Answer.LOOK, evidence, "only one of them is a thesis")
    return _said(answer, evidence, because)


def _judged(first: Facts, evidence: _Evidence) -> tuple[Answer, str]:
    """The answer by titles, creators and years, and what it depends on, if that needs words."""
    titles, creators, years = evidence.titles, evidence.creators, evidence.years
    if titles.is_periodical and evidence.distance:
        return Answer.DIFFERENT, "they are of different years"
    if titles.match >= _Match.CLOSE and creators >= _Creators.SOME and titles.words <= _SHORT_TITLE:
        # Columns of a journal have such titles, and one creator of each.
        is_same = years is _Years.EQUAL and creators is _Creators.BOTH
        return (Answer.SAME if is_same else Answer.DIFFERENT if years is _Years.FAR else Answer.LOOK), ""
    if titles.match is _Match.EQUAL:
        return _judged_equal(first, evidence)
    if creators <= _Creators.UNKNOWN:
        is_likely = creators is _Creators.UNKNOWN and years is _Years.EQUAL and titles.words >= _LONG_TITLE
        return (Answer.LOOK, "no creator of both is known") if is_likely else (Answer.DIFFERENT, "")
    if years is _Years.FAR:
        return Answer.DIFFERENT, "the years are far apart"
    is_series = first.kind == "data" or titles.is_periodical
    if titles.match is _Match.CLOSE:
        is_near = years is _Years.NEAR and creators is _Creators.BOTH and not is_series
        return (Answer.SAME if years is _Years.EQUAL or is_near else Answer.LOOK), ""
    lacks = "a subtitle" if titles.match is _Match.SUBTITLE else "a part"
    is_same = years is _Years.EQUAL and creators >= _Creators.ALL and titles.words >= _SHORT_TITLE and not is_series
    return (Answer.SAME if is_same else Answer.LOOK), f"one title lacks {lacks} of the other"


def _judged_equal(first: Facts, evidence: _Evidence) -> tuple[Answer, str]:
    titles, creators, years = evidence.titles, evidence.creators, evidence.years
    if creators >= _Creators.SOME:
        is_near = years is _Years.NEAR and creators is _Creators.BOTH and first.kind != "data"
        return (Answer.SAME if years in (_Years.EQUAL, _Years.UNKNOWN) or is_near else Answer.LOOK), ""
    if creators is _Creators.UNKNOWN:
        if years is _Years.EQUAL and titles.words >= _LONG_TITLE:
            return Answer.SAME, ""
        is_likely = years >= _Years.UNKNOWN and titles.words >= _SHORT_TITLE
        return (Answer.LOOK if is_likely else Answer.DIFFERENT), "no creator of both is known"
    is_likely = titles.words > _LONG_TITLE and years >= _Years.NEAR
    return (Answer.LOOK if is_likely else Answer.DIFFERENT), "no creator is the same"


def _said(answer: Answer, evidence: _Evidence, because: str) -> Comparison:
    """The comparison with its reason in words."""
    parts = [f"The titles agree at {evidence.titles.score:.0f} of 100"]
    years = {
        _Years.EQUAL: "the years are the same",
        _Years.NEAR: "the years are one apart",
        _Years.FAR: f"the years are {evidence.distance} apart",
        _Years.UNKNOWN: "the year of one is not known",
    }
    parts.append(years[evidence.years])
    if evidence.shared:
        parts.append(f"both name {evidence.shared}")
    if because:
        parts.append(f"but {because}" if answer is not Answer.SAME else because)
    return Comparison(answer, evidence.titles.score, f"{', '.join(parts)}.")


_TEXTS = frozenset(["text", "preprint", "thesis", "book"])


def _kinds_agree(first: str, second: str) -> bool:
    return not first or not second or first == second or (first in _TEXTS and second in _TEXTS)


def _evidence(first: Facts, second: Facts, titles: _Titles) -> _Evidence:
    creators, shared = _creators(first.names, second.names)
    distance = abs(first.year - second.year) if first.year is not None and second.year is not None else 0
    years = _Years.EQUAL if not distance else _Years.NEAR if distance == 1 else _Years.FAR
    if first.year is None or second.year is None:
        years = _Years.UNKNOWN
    return _Evidence(titles, creators, shared, years, distance)


def _best(first: Sequence[Title], second: Sequence[Title]) -> _Titles:
    """The two titles that agree best: an output may have translated titles."""
    found = [_compared(one, other) for one in first for other in second]
    return max(found, key=lambda each: (each.match, each.score), default=_Titles(_Match.NONE, 0.0, 0))


def _compared(first: Title, second: Title) -> _Titles:
    """How far two titles agree."""
    score = 100.0 if first.text == second.text else _score(first.text, second.text)
    words = min(len(first.words), len(second.words))
    match = _Match.NONE
    if not (first.is_generic or second.is_generic or first.derived != second.derived):
        match, score = _match(first, second, score)
    return _Titles(match, score, words, first, second)


def _score(first: str, second: str) -> float:
    """The agreement of two texts, 0 to 100; 0 for all below _UNLIKE_SCORE."""
    fuzz = _rapidfuzz().fuzz
    score: float = fuzz.ratio(first, second, score_cutoff=_UNLIKE_SCORE)
    if score >= LEAST_SCORE or 2 * min(len(first), len(second)) < (len(first) + len(second)) * LEAST_SCORE / 100:
        return score
    in_any_order: float = fuzz.token_sort_ratio(first, second, score_cutoff=LEAST_SCORE)
    return max(score, in_any_order)


def _match(first: Title, second: Title, score: float) -> tuple[_Match, float]:
    if first.text == second.text:
        return _Match.EQUAL, score
    if _differ(first.letters, second.letters) or _differ(first.numbers, second.numbers):
        return _Match.NONE, score
    has_subtitle = _lacks_subtitle(first, second) or _lacks_subtitle(second, first)
    if score < LEAST_SCORE:
        return (_Match.SUBTITLE, max(score, _SUBTITLE_SCORE)) if has_subtitle else (_Match.NONE, score)
    if first.is_cjk or second.is_cjk:
        return _match_cjk(first, second), score
    more, others = _unlike(first, second)
    if more and others:
        return _Match.NONE, score
    if has_subtitle:
        return _Match.SUBTITLE, score
    if more or others or first.numbers != second.numbers or first.letters != second.letters:
        return _Match.LONGER, score
    return (_Match.EQUAL if score >= _EQUAL_SCORE else _Match.CLOSE), score


def _match_cjk(first: Title, second: Title) -> _Match:
    """Each character is a word, or a part of one: another character is another title."""
    changes = {
        each.tag
        for each in _rapidfuzz().distance.Levenshtein.opcodes(first.text.replace(" ", ""), second.text.replace(" ", ""))
    }
    if "replace" in changes or {"insert", "delete"} <= changes:
        return _Match.NONE
    return _Match.EQUAL if changes <= {"equal"} else _Match.LONGER


def _differ(first: frozenset[str], second: frozenset[str]) -> bool:
    """True if each has something that the other lacks."""
    return bool(first - second) and bool(second - first)


def _lacks_subtitle(short: Title, long: Title) -> bool:
    return short.text == long.main and short.text != long.text and len(short.words) > 1


def _unlike(first: Title, second: Title) -> tuple[list[str], list[str]]:
    """The words of each title that the other one lacks, also with another spelling, or divided otherwise."""
    one, other = _without(first.words, second.words), _without(second.words, first.words)
    if not one or not other:
        return one, other
    _drop_compounds(one, second.text.split(), other)
    _drop_compounds(other, first.text.split(), one)
    for word in list(one):
        same = next((each for each in other if _is_misspelt(word, each)), None)
        if same is not None:
            one.remove(word)
            other.remove(same)
    return one, other


def _drop_compounds(words: list[str], others: Sequence[str], unlike: list[str]) -> None:
    """Remove each word that the other title writes as two words."""
    pairs = {f"{one}{two}": (one, two) for one, two in pairwise(others)}
    for word in [each for each in words if each in pairs]:
        words.remove(word)
        for part in pairs[word]:
            if part in unlike:  # bounded: a title has 1,000 characters
                unlike.remove(part)


_OPPOSITES = (
    ("intra", "inter"), ("hyper", "hypo"), ("endo", "exo"), ("macro", "micro"), ("homo", "hetero"), ("pre", "post"),
    ("pro", "eu"), ("over", "under"), ("max", "min"), ("in", "ex"),
)  # fmt: skip


def _is_misspelt(word: str, other: str) -> bool:
    """True for one word in two spellings; a mistake in a short word is more likely another word."""
    if spelt(word) == spelt(other):
        return True
    short, long = sorted((word, other), key=len)
    if len(short) <= _SHORT_WORD:
        return long == f"{short}s"
    if (
        word[0] != other[0]
        or long.endswith(short)
        or any(
            (word.startswith(one) and other.startswith(two)) or (word.startswith(two) and other.startswith(one))
            for one, two in _OPPOSITES
        )
    ):
        return False
    most = 1 if len(short) < _LONG_WORD else 2
    return len(long) - len(short) <= most and _rapidfuzz().distance.OSA.distance(word, other, score_cutoff=most) <= most


def _without(words: Sequence[str], others: Sequence[str]) -> list[str]:
    known = frozenset(others)
    return [word for word in words if word not in known]


def _creators(first: Sequence[Name], second: Sequence[Name]) -> tuple[_Creators, str]:
    """How many creators are the same, and the name of one of them."""
    if not first or not second:
        return _Creators.UNKNOWN, ""
    short, long = (first, second) if len(first) <= len(second) else (second, first)
    same = [each for each in short if any(_is_same(each, other) for other in long)]
    if not same:
        is_doubtful = any(_surnames_agree(one, other) for one in first for other in second)
        return (_Creators.UNKNOWN if is_doubtful else _Creators.DISJOINT), ""
    # A list of creators may end with "et al."
    if 2 * len(same) > len(long):
        return _Creators.BOTH, same[0].shown
    return (_Creators.ALL if 2 * len(same) > len(short) else _Creators.SOME), same[0].shown


def _is_same(first: Name, second: Name) -> bool:
    if not (first.words.isdisjoint(second.others) or second.words.isdisjoint(first.others)):
        return True  # one has the surname first, the other last
    initials = {first.initial, second.initial} - {""}
    return len(initials) <= 1 and _surnames_agree(first, second)


def _surnames_agree(first: Name, second: Name) -> bool:
    if not first.words.isdisjoint(second.words):
        return True
    ratio = _rapidfuzz().fuzz.ratio
    return any(
        len(one) > 4 and len(other) > 4 and ratio(one, other) >= _SAME_NAME
        for one in first.words
        for other in second.words
    )


@cache
def _rapidfuzz() -> ModuleType:
    """The library, at its first use: other commands start without it."""
    import rapidfuzz

    return rapidfuzz
