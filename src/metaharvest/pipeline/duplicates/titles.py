"""Titles: the parts that matter in a comparison, without differences of spelling, case and punctuation."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from metaharvest.model.values import frozen
from metaharvest.pipeline.letters import EAST_ASIAN_LETTER, word_set

_LONGEST = 1000
"""The characters of a title that are read."""
_FORMS = 10_000
"""The number of titles whose forms are kept: an output is compared with outputs near it."""

_TAG = re.compile(r"<[^<>]{0,200}>")  # bounded: 200 characters
_FORMULA = re.compile(r"[_^](?=[\d{])|[${}]")
_MARKUP = re.compile(r"\\[a-zA-Z]{1,30}|[\\^_]")  # bounded: 30 characters
_APOSTROPHE = re.compile("['’ʼ`´‘\u00ad]")
_WORD = re.compile(r"[^\W_]+")
_SUBTITLE = re.compile(r"[:：?？!]\s|：|\s[-–—]{1,2}\s|;\s|\.\s(?=[A-ZÄÖÜÉ])|—")


_LETTERS = str.maketrans(
    {"æ": "ae", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "œ": "oe", "ı": "i", "&": " and ", "×": " x "}
)
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "κ": "kappa", "λ": "lambda", "μ": "mu",
    "π": "pi", "σ": "sigma", "τ": "tau", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
}  # fmt: skip
STOP_WORDS = word_set(
    "a an the of on in at by for from to and or with without as is are its into via et le la les l de des du en un une "
    "der die das den dem des ein eine einer und von vom zu zur zum im am auf bei mit el los las y del al con por para "
    "il lo gli e di da nel nella o os do dos na no em um uma het een van voor och av i och"
)
_NUMBERED = word_set(
    "part parts pt volume vol chapter section no nr number series phase paper issue teil band heft kapitel partie "
    "tome numero chapitre parte tomo capitulo episode lecture year book deel del"
)
_DESIGNATORS = _NUMBERED | word_set(
    "site plot type group appendix annex vitamin hepatitis class table figure transect station supplement plan "
    "protocol treatment lake basin zone block model schedule stand watershed subplot experiment"
)
_COUNTED = "one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTED.split(), start=1)}
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_ORDINAL = {word: str(number) for number, word in enumerate(_ORDINALS.split(), start=1)}
_ORDINAL_NUMBER = re.compile(r"0*(\d{1,6})(?:st|nd|rd|th)")
_ROMANS = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx"
_ROMAN = {word: str(number) for number, word in enumerate(_ROMANS.split(), start=1)}
_VERSION = re.compile(r"\b(?:v|ver|version|rev|revision|release)\s?(\d{1,6}(?: \d{1,4}){0,2})\b")
_EDITION = re.compile(
    r"\b(\d{1,3}(?:st|nd|rd|th)?|first|second|third|fourth|fifth|sixth|revised|updated|new|preliminary|final|draft|"
    r"accepted|submitted|published) (edition|ed|version|manuscript|release)\b"
)
_DERIVED = (
    ("data", "data from|data for|data of|dataset for|dataset from|data set for|data set from|replication data for|"
             "replication data|data underlying|data supporting|underlying data for|raw data for|raw data from"),
    ("supplement", "supplementary material for|supplementary materials for|supplementary material|supplementary data|"
                   "supplementary information|supporting information|supplement to|appendix to|additional file"),
    ("code", "code for|code from|software for|scripts for|source code for|r code for"),
    ("correction", "erratum to|erratum for|erratum|correction to|correction|corrigendum to|corrigendum|"
                   "author correction|publisher correction|addendum to|addendum|retraction note to|retraction of|"
                   "retraction|retracted article|retracted|expression of concern"),
    ("reply", "reply to|response to|comment on|comments on|a comment on|commentary on|author reply|rejoinder|"
              "discussion of|reply"),
    ("review", "review of|book review|rezension|compte rendu|resena|recensione"),
    ("talk", "slides for|slides|poster|presentation"),
)  # fmt: skip
_NOTE = re.compile(
    r"[(\[](?:extended abstract|abstract|panel|panel session|panel abstract|poster|poster abstract|demo|demonstration|"
    r"tutorial|invited talk|invited paper|keynote|experience paper|short paper|full paper|review article|in press|"
    r"author s version)[)\]]",
    re.IGNORECASE,
)
"""The kinds of outputs that titles name in brackets."""
_STARTS = tuple(
    sorted(
        ((start, kind) for kind, starts in _DERIVED for start in starts.split("|")),
        key=lambda each: -len(each[0]),
    )
)
GENERIC = frozenset(
    each.strip()
    for each in """
    abstract|abstracts|acknowledgements|acknowledgments|announcement|announcements|annual report|appendix|
    apresentacao|articles|author index|avant propos|back matter|backmatter|berichte|bibliography|
    book review|book review column|book reviews|books received|buchbesprechung|buchbesprechungen|calendar|
    career forum|chairs message|comment|commentary|compte rendu|comptes rendus|conclusion|conclusions|
    conference calendar|contents|contributors|copyright|correction|corrections|correspondence|corrigendum|
    cover|data|dataset|dedication|discussion|editor s note|editorial|editorial board|editorial note|
    editors introduction|editors message|editors note|editors notes|einfuhrung|einleitung|errata|erratum|
    events|executive summary|expediente|figure|figures|foreword|foreword by the editors|from the editor|
    from the editors|front matter|frontmatter|glossary|guest editorial|guest editors foreword|
    guest editors introduction|impressum|in memoriam|in this issue|index|indice|inhalt|inhaltsverzeichnis|
    inleiding|instructions for authors|introducao|introduccion|introduction|introduction to the issue|
    introduction to the special issue|
    introductory remarks|introduzione|issue information|keynote|letter|letter from the editor|
    letter to the editor|letters to the editor|list of contributors|list of reviewers|masthead|
    message from the chair|message from the editor|message from the president|methods|minutes|miscellanea|
    mitteilungen|n a|nachrichten|nachruf|news|news and notes|newsletter|no title|nota editorial|note|
    notes|notice|notices|obituaries|obituary|ohne titel|opinion|overview|panel discussion|poster abstracts|
    preface|premessa|presentacion|presidents message|proceedings|program|programme|prologo|publications|
    publications received|recensioni|redactioneel|references|reply|report|reports|research centers|resena|
    resenas|response|results|review|reviews|rezension|rezensionen|sans titre|short communications|
    sin titulo|special issue|subject index|sumario|sumario executivo|summary|supplement|
    supplementary material|supporting information|surveys|table|table of contents|tables|test|thesis|titel|
    titelseite|title|title page|trade press news|treasurers message|unknown|untitled|upcoming events|
    vorwort|woord vooraf|zusammenfassung
    """.replace("\n", " ").split("|")
)
"""Titles that many outputs have. They say nothing of what an output is about."""

_PERIODICAL = word_set(
    "annual yearbook newsletter bulletin proceedings monthly weekly quarterly jahresbericht jahrbuch annuel annuaire "
    "anual anuario"
)
"""Words in the title of what comes out each year, or each month, under one title."""


@frozen
class Title:
    """A title in parts. `text` is its words in order, in lower case, without accents, and without marks of versions.

    `words` are the words that mean something; `main_words` the words before the subtitle, or all. `numbers`
    and `letters` tell parts of a series apart. `versions` are its marks of a version, such as `v2`. `derived` is the
    kind of an output that is about another one, `data` in "Data from: ...". Its words are then the words of the other.
    """

    text: str
    words: tuple[str, ...]
    main: str
    main_words: tuple[str, ...]
    numbers: frozenset[str]
    letters: frozenset[str]
    versions: frozenset[str]
    derived: str
    is_generic: bool
    is_periodical: bool
    is_cjk: bool


def folded(text: str) -> str:
    """`text` in lower case without accents, markup and apostrophes; a mark of Greek letters is their name."""
    plain = html.unescape(text[:_LONGEST]) if "&" in text else text[:_LONGEST]
    plain = _MARKUP.sub(" ", _FORMULA.sub("", _TAG.sub(" ", plain))) if not plain.isalnum() else plain
    plain = _APOSTROPHE.sub("", plain).casefold().translate(_LETTERS)
    if plain.isascii():
        return plain
    decomposed = unicodedata.normalize("NFKD", plain)
    bare = "".join(each for each in decomposed if not unicodedata.combining(each))
    composed = unicodedata.normalize("NFC", bare)
    return _with_greek(composed)


def words_of(text: str) -> list[str]:
    """The words of a text, folded."""
    return _WORD.findall(folded(text))


def spelt(word: str) -> str:
    """One form for ö and oe, å and aa."""
    return word.replace("ae", "a").replace("oe", "o").replace("ue", "u").replace("aa", "a")


@lru_cache(maxsize=_FORMS)
def title_form(title: str) -> Title:
    """The parts of a title."""
    raw = _NOTE.sub(" ", title[:_LONGEST])
    text = " ".join(words_of(raw))
    if raw.rstrip().endswith(("...", "…")):
        text = text.rpartition(" ")[0]  # the last word is cut
    derived, text = _derived(text)
    text, versions = _without_versions(text)
    main = _main(raw, text, derived)
    if text[len(main) :].strip() in GENERIC:
        text = main  # "...: dataset"
    words = text.split()
    return Title(
        text=text,
        words=_meaning(words),
        main=main,
        main_words=_meaning(main.split()),
        numbers=frozenset(_numbers(words)),
        letters=_letters(words),
        versions=versions,
        derived=derived,
        is_generic=_is_generic(text),
        is_periodical=not _PERIODICAL.isdisjoint(words),
        is_cjk=EAST_ASIAN_LETTER.search(text) is not None,
    )


def _is_generic(text: str) -> bool:
    without = " ".join(word for word in text.split() if not word.isdigit() and word not in _NUMBERED)
    return text in GENERIC or without in GENERIC or not without


def _with_greek(text: str) -> str:
    """Greek letters that stand alone, or begin a word of another script, become their names."""
    if not any(each in _GREEK for each in text):
        return text
    return _WORD.sub(lambda found: found[0] if _is_greek(found[0]) else _named(found[0]), text)


def _is_greek(word: str) -> bool:
    return len(word) > 1 and all("\u0370" <= each <= "\u03ff" for each in word)


def _named(word: str) -> str:
    return "".join(_GREEK.get(each, each) for each in word)


def _derived(text: str) -> tuple[str, str]:
    """The kind of a derived output, and the title without the words that say so; "" and the title of any other one."""
    for start, kind in _STARTS:
        if text.startswith(start) and text[len(start) : len(start) + 1] == " ":
            return kind, text[len(start) + 1 :]
    return "", text


def _without_versions(text: str) -> tuple[str, frozenset[str]]:
    """The title without its marks of versions, and the marks."""
    marks = [f"v{found[1].replace(' ', '.')}" for found in _VERSION.finditer(text)]
    rest = _VERSION.sub(" ", text)
    marks += [found[1] for found in _EDITION.finditer(rest)]
    rest = _EDITION.sub(" ", rest)
    words = rest.split()
    for mark in ("preprint", "postprint"):
        if words[-1:] == [mark] or words[:1] == [mark]:
            marks.append(mark)
            words.remove(mark)
    return (" ".join(words), frozenset(marks)) if marks and words else (text, frozenset())


def _numbers(words: Sequence[str]) -> Iterator[str]:
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        is_last = place == len(words) - 1
        if any(each.isdigit() for each in word):
            ordinal = _ORDINAL_NUMBER.fullmatch(word)
            yield ordinal[1] if ordinal else word.lstrip("0") or "0"
        elif word in _ORDINAL:
            yield _ORDINAL[word]
        elif word in _ROMAN and (len(word) > 1 or before in _DESIGNATORS or (is_last and place > 1)):
            yield _ROMAN[word]
        elif word in _NUMBER_WORDS and before in _NUMBERED:
            yield _NUMBER_WORDS[word]


def _letters(words: Sequence[str]) -> frozenset[str]:
    """The single letters that name a part: "plot A"."""
    return frozenset(
        word
        for place, word in enumerate(words)
        if len(word) == 1
        and word.isalpha()
        and word not in _ROMAN
        and place
        and (words[place - 1] in _DESIGNATORS or place == len(words) - 1)
    )


def _main(raw: str, text: str, derived: str) -> str:
    """The words before the subtitle; all of them if there is none."""
    if derived:
        return text
    found = _SUBTITLE.search(raw)
    main = " ".join(words_of(raw[: found.start()])) if found else ""
    return main if main and text.startswith(main) else text


def _meaning(words: Sequence[str]) -> tuple[str, ...]:
    """The words without stop words, ordinal numbers and single letters."""
    return tuple(
        word
        for word in words
        if word not in STOP_WORDS and word not in _ORDINAL and (len(word) > 1 or EAST_ASIAN_LETTER.match(word))
        if not _ORDINAL_NUMBER.fullmatch(word)
    )
