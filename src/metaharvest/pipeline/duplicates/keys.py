"""The blocks of an output: keys that outputs which may be duplicates have in common.

Blocks depend on the output alone. A block that more than MOST_IN_BLOCK outputs have is too general, and is not used.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import combinations

from metaharvest.pipeline.duplicates.facts import Facts
from metaharvest.pipeline.duplicates.titles import Title, spelt

MOST_IN_BLOCK = 30
"""The most outputs of a block that is used. Measured in benchmarks/duplicates.py."""

_WORDS = 4
_LEAST_WORD = 3
_NAMES = 2
_CJK_KEYS = 3


def blocks_of(facts: Facts) -> frozenset[str]:
    """The blocks of an output, each of 18 characters."""
    texts = ((kind, text.encode("utf-8", "surrogatepass")) for kind, text in _keys(facts))
    return frozenset(f"{kind}:{blake2b(text, digest_size=8).hexdigest()}" for kind, text in texts)


def _keys(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.item:
        yield "i", facts.item
    for doi in {*facts.dois, *facts.same_as, *facts.version_of}:
        yield "d", doi
    for identifier in (*facts.unique, *facts.weak):
        yield "n", identifier
    for title in facts.titles:
        if title.is_generic:
            continue
        if title.is_cjk:
            yield from _shingles(title)
        yield from _combinations(title.words, title.numbers)
        if title.main_words != title.words:
            numbers = title.numbers & set(title.main.split())
            yield from _combinations(title.main_words, numbers)
    yield from _authors(facts)


def _combinations(words: Sequence[str], numbers: frozenset[str]) -> Iterator[tuple[str, str]]:
    """All but one of the longest words, in each way: one of them may be wrong. Numbers tell parts of a series apart."""
    longest = _longest(words, _WORDS)
    signs = ",".join(sorted(numbers))
    if len(longest) <= 2:
        if longest:
            yield "t", f"{' '.join(longest)}|{signs}"
        return
    for some in combinations(longest, len(longest) - 1):
        yield "t", f"{' '.join(some)}|{signs}"


def _longest(words: Sequence[str], number: int) -> list[str]:
    """The longest words, in alphabetical order."""
    known = {spelt(word) for word in words if len(word) >= _LEAST_WORD and not word[0].isdigit()}
    return sorted(sorted(known, key=lambda word: (-len(word), word))[:number])


def _authors(facts: Facts) -> Iterator[tuple[str, str]]:
    """A surname, and two of the longest words of the title, or of the part before its subtitle.

    With one word only, such blocks grow with the number of outputs.
    """
    title = next((each for each in facts.titles if not each.is_generic), None)
    if title is None:
        return
    words = {*_couples(_longest(title.words, 3)), *_couples(_longest(title.main_words, 2))}
    for name in facts.names[:_NAMES]:
        surname = max(name.words, key=lambda word: (len(word), word))
        for couple in words:
            yield "a", f"{surname}|{' '.join(couple)}"


def _couples(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return combinations(words, min(len(words), 2)) if words else iter(())


def _shingles(title: Title) -> Iterator[tuple[str, str]]:
    """The three parts with the least digest, of three characters each, of a title that is written without blanks."""
    text = title.text.replace(" ", "")
    parts = {text[start : start + 3] for start in range(max(len(text) - 2, 1))}
    for part in sorted(parts, key=lambda each: (zlib.crc32(each.encode("utf-8", "surrogatepass")), each))[:_CJK_KEYS]:
        yield "c", part
