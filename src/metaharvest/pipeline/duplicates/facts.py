"""The facts of an output that the comparison with other outputs uses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from metaharvest.model.values import frozen
from metaharvest.pipeline.duplicates.titles import Title, folded, spelt, title_form, words_of
from metaharvest.pipeline.letters import EAST_ASIAN_LETTER, word_set

_MOST_TITLES = 4
_MOST_CREATORS = 50
_MOST_IDENTIFIERS = 10
_NAMES = 20_000
"""The number of names whose forms are kept."""

_PARTICLES = word_set(
    "van von vom zu zur der den de la le du da das do dos del della di ten ter bin ibn al el af av und and y e jr sr"
)
_SUFFIXES = word_set("jr sr ii iii iv phd md")
_UNIQUE = ("handle", "arxiv", "pmid", "pmcid", "urn")
"""Schemes of identifiers that name one output."""
_WEAK = ("url", "oai", "other")
"""Schemes of identifiers that several outputs may have: a page, or an identifier that is unique in one place."""
_SAME_AS = ("IsIdenticalTo",)
_VERSION_OF = (
    "IsVersionOf", "HasVersion", "IsNewVersionOf", "IsPreviousVersionOf", "IsVariantFormOf", "IsOriginalFormOf",
    "IsObsoletedBy", "Obsoletes", "IsTranslationOf", "HasTranslation",
)  # fmt: skip
_ARXIV_DOI = "10.48550/arxiv."
_PREPRINT_DOIS = (
    _ARXIV_DOI, "10.1101/", "10.31234/", "10.31235/", "10.31219/", "10.31223/", "10.20944/", "10.21203/", "10.2139/",
    "10.26434/", "10.22541/", "10.31222/", "10.32942/", "10.1590/scielopreprints",
)  # fmt: skip
"""Prefixes of servers of preprints: arXiv, bioRxiv and medRxiv, OSF's, Preprints.org, Research Square, SSRN, ..."""

_KINDS = {
    "data": ("c_ddb1", "c_cb28"),
    "code": ("c_5ce6", "c_c950", "c_393c"),
    "picture": ("c_c513", "c_ecc8", "c_12ce", "c_8a7e", "c_12cc", "c_12cd"),
    "sound": ("c_18cc", "c_18cd"),
    "thesis": ("c_46ec", "c_db06", "c_bdcc", "c_7a1f"),
    "preprint": ("c_816b",),
    "book": ("c_2f33",),
    "part": ("c_3248",),
    "review": ("c_efa0", "c_ba08"),
    "lecture": ("c_8544", "c_6670"),
    "text": (
        "c_6501", "c_2df8fbb1", "c_dcae04bc", "c_beb9", "c_7bab", "c_5794", "c_c94f", "c_f744", "c_93fc", "c_18ws",
        "c_18gh", "c_18op", "c_186u", "c_8042", "c_18cf", "c_b239", "c_545b", "c_0857",
    ),
}  # fmt: skip
"""Kinds of outputs -> codes of COAR: https://vocabularies.coar-repositories.org/resource_types/."""
_KIND_OF = {each: kind for kind, codes in _KINDS.items() for each in codes}
_KIND_WORDS = (
    ("preprint", "preprint"),
    ("dataset", "data"),
    ("software", "code"),
    ("thesis", "thesis"),
    ("dissertation", "thesis"),
    ("book review", "review"),
    ("book part", "part"),
    ("chapter", "part"),
    ("image", "picture"),
    ("video", "picture"),
    ("sound", "sound"),
)
"""Words in a type that has no code in COAR's vocabulary."""


@frozen
class Name:
    """A creator: the words of the surname, or of the whole name of an organisation; the first initial, if it is known.

    `others` are the words of given names: some sources put them first, others last.
    """

    shown: str
    words: frozenset[str]
    initial: str
    others: frozenset[str] = frozenset()


@frozen
class Facts:
    """The facts of an output. `number` is its document, `item` its item at a source repository, if it has one.

    `shown` is the main title as given.

    `kind` is data, code, picture, sound, thesis, preprint, book, part, review, lecture, text, or "": unknown.
    `unique` identifiers name one output, `weak` ones may have several. `same_as` and `version_of` are DOIs that the
    output names as itself, or as another version of itself.
    """

    number: int
    item: str
    titles: tuple[Title, ...]
    names: tuple[Name, ...]
    year: int | None
    kind: str
    dois: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    same_as: tuple[str, ...] = ()
    version_of: tuple[str, ...] = ()
    shown: str = ""

    @property
    def is_preprint(self) -> bool:
        """True for a preprint, by its type, its DOI, or an identifier of arXiv without any DOI of a publisher."""
        if self.kind == "preprint" or any(each.startswith(_PREPRINT_DOIS) for each in self.dois):
            return True
        return not self.dois and any(each.startswith("arxiv:") for each in self.unique)


def facts_of(number: int, item: str, output: str) -> Facts:
    """The facts of an output, from its JSON: see metaharvest.model.outputs.

    Only the needed values are read: to make the whole output takes five times as long.
    """
    content = json.loads(output)
    identifiers = list(_identifiers(content.get("identifiers") or ()))
    titles = content.get("titles") or ()
    relations = [(each["kind"], each["value"]) for each in content.get("relations") or () if each["scheme"] == "doi"]
    return Facts(
        number=number,
        item=item,
        titles=_titles(titles),
        names=tuple(_names(content.get("creators") or ())),
        year=content.get("year"),
        kind=_kind(content),
        dois=_first(value for scheme, value in identifiers if scheme == "doi"),
        unique=_first(f"{scheme}:{value}" for scheme, value in identifiers if scheme in _UNIQUE),
        weak=_first(f"{scheme}:{value}" for scheme, value in identifiers if scheme in _WEAK),
        same_as=_first(value for kind, value in relations if kind in _SAME_AS),
        version_of=_first(value for kind, value in relations if kind in _VERSION_OF),
        shown=titles[0]["text"] if titles else "",
    )


def item_of(origin: str | None, item_identifier: str) -> str:
    """The item of a source repository that a document is a format of; "" for a document of a harvest list."""
    return f"{origin} {item_identifier}" if origin else ""


def _first(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))[:_MOST_IDENTIFIERS]


def _identifiers(values: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for each in values:
        scheme, value = each["scheme"], each["value"].strip()
        if scheme == "arxiv":
            value = value.lower().removeprefix("arxiv:").partition("v")[0]
        if scheme == "other" and len(value) < 8:
            continue  # a local number says nothing elsewhere
        if value:
            yield scheme, value.lower() if scheme == "doi" else value
        if scheme == "doi" and value.lower().startswith(_ARXIV_DOI):
            yield "arxiv", value.lower().removeprefix(_ARXIV_DOI)


def _titles(values: Iterable[Mapping[str, Any]]) -> tuple[Title, ...]:
    texts = dict.fromkeys(each["text"] for each in values)
    forms = (title_form(text) for text in list(texts)[:_MOST_TITLES])
    return tuple(dict.fromkeys(form for form in forms if form.text))


def _kind(content: Mapping[str, Any]) -> str:
    for each in content.get("types") or ():
        if each.get("coar") in _KIND_OF:
            return _KIND_OF[each["coar"]]
    for each in content.get("types") or ():
        text = f"{each.get('label') or ''} {each.get('text') or ''}".casefold()
        for word, kind in _KIND_WORDS:
            if word in text:
                return kind
    return "data" if str(content.get("format") or "").startswith("eml") else ""


def _names(values: Iterable[Mapping[str, Any]]) -> Iterator[Name]:
    for _, each in zip(range(_MOST_CREATORS), values, strict=False):
        name = _name(each.get("name") or "", each.get("family"), each.get("given"), str(each.get("kind") or ""))
        if name.words:
            yield name


@lru_cache(maxsize=_NAMES)
def _name(name: str, family: str | None, given: str | None, kind: str) -> Name:
    if kind == "organisation":
        return Name(name, frozenset([" ".join(words_of(name))]) - {""}, "")
    if family is None:
        family, given = _parts(name)
    if EAST_ASIAN_LETTER.search(family):
        return Name(family, frozenset(["".join(words_of(family + (given or "")))]), "")
    words = frozenset(spelt(word) for word in words_of(family) if len(word) > 1 and word not in _PARTICLES)
    others = frozenset(spelt(word) for word in words_of(given or "") if len(word) > 1)
    return Name(family, words, folded(given or "").strip()[:1], others)


def _parts(name: str) -> tuple[str, str]:
    """The surname and the rest of a name that is not parsed."""
    family, comma, given = name.partition(",")
    if comma and given.casefold().strip(" .") not in _SUFFIXES:
        return family.strip(), given.strip()
    words = name.replace(",", " ").split()
    if len(words) > 2 and words[-1].casefold().strip(".") in _SUFFIXES:
        words.pop()
    if len(words) > 1 and len(words[-1].rstrip(".")) <= 2 and not EAST_ASIAN_LETTER.search(name):
        return words[0], words[-1]  # "Rivera J."
    return (words[-1], " ".join(words[:-1])) if words else ("", "")
