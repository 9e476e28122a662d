"""Names of persons and organisations: parts, kind, ORCID iD and ROR identifier, from a text. Pure.

| form | read as |
|---|---|
| `Family, Given`, `van der Berg, Jan`, `Family, Given, Jr.` | a person |
| `Given Family`, `G. H. Family`, `Jan van der Berg`, `Family GH`, `FAMILY Given` | a person |
| `山田太郎`, `王小明`, `김철수` | a person, by the family names of the country |
| `Alder, A. and Birch, B.`, `Alder, A., Birch, B.`, `Alder A, Birch B`, `A. Alder, B. Birch` | several persons |
| `University of X`, `The X Team`, `X Collaboration` | an organisation |

Anything else, such as a single word, stays as it was given, of unknown kind. Names in capitals get small letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from metaharvest.model.outputs import Agent, AgentKind
from metaharvest.pipeline.cleaning.asian_names import (
    are_family_names,
    in_han_or_hangul,
    is_family_name,
    parts_of_asian_name,
    romanised,
)
from metaharvest.pipeline.cleaning.identifiers import orcid_in, ror_in
from metaharvest.pipeline.cleaning.organisations import has_words_of_office, is_organisation, may_be_organisation
from metaharvest.pipeline.letters import word_set

_LONGEST = 300
"""Characters of a name."""

_MOST_AGENTS = 1_000

PARTICLES = word_set("""
    van von der den de del della dei degli di da do dos das du des d la le lo los las el ter ten te tom tor op zu
    zum zur vom af av al ad as ibn bin ben bint abu 't 's van't vande vander vanden vonder st. saint ste. y e i
    thoe uit het 'd dello dalla dal auf
""")
_INNER = frozenset(("y", "e", "i"))
"""Particles between two family names: Ortega y Gasset."""

_CAPITAL_PARTICLES = word_set("""
    van von der den de del della di da do dos das du la le los las ter ten st. saint al el bin ibn vande vander
    vanden
""")
"""Particles that are written with a capital, too, if a given name precedes."""

_SUFFIX = re.compile(r"(?:Jr|Sr|jr|sr|JR|SR|Jnr|Snr|Junior|Filho|Neto|Júnior)\.?|II|III|IV|VI{0,3}|2nd|3rd|4th")
_ROMAN = re.compile(r"II|III|IV|VI{0,3}")
_DEGREE = re.compile(
    r"(?:Ph\.?\s?D|M\.?\s?D|M\.?Sc|B\.?Sc|D\.?Phil|M\.?Phil|D\.?Sc|Dr\.?\s?rer\.?\s?nat|M\.?A|B\.?A|MBA|MPH|R\.?N|Esq|FRS|"
    r"LL\.?[MBD]|D\.?V\.?M|Ed\.?D|Eng|P\.?E|CPA|OBE|CBE|M\.?S|PharmD|DDS|SJ|S\.J|O\.P|OFM|FRCP|MRCP|MBBS|DBA|Psy\.?D)\.?",
)
_TITLE = re.compile(
    r"(?:(?:Dr|Prof|Professor|Mr|Mrs|Ms|Miss|Sir|Dame|Rev|Fr|Dipl\.?-?\s?Ing|Ing|PD|Priv\.?-?\s?Doz|Herr|Frau|Dott|Dottssa|"
    r"Dra|Dr\.?-?Ing|Mag|Hon|Capt|Col|Lt|Assoc|Asst|Doc|Lic|Sra?|Mme|Mlle|Drs|Ir|Univ|apl|em|emer|habil|rer|nat|med|phil|h\.?\s?c|mult)"
    r"(?:\.|(?=\s))\s{0,2}){1,6}"
)
_NOTE = re.compile(
    r"\s{0,2}[\[(](?:ed(?:itor|s|itors)?|hrsg|hg|author|aut|transl(?:ator)?|trad|comp(?:iler)?|org|coord|dir|ill|advisor|"
    r"supervisor|orcid|corresponding author|contributor|creator|publisher|photographer|orientador|eds|cur|"
    r"deceased|dec\.?|pi|co-?pi)\b[^\])]{0,60}[\])]",
    re.IGNORECASE,
)
_PARENTHESIS = re.compile(r"\s{0,2}(?:\([^()]{0,200}\)|\[[^\[\]]{0,200}\])")
_ADDRESS = re.compile(r"\s{0,2}<?\(?(?:mailto:)?[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}\)?>?")
_ORCID_TEXT = re.compile(
    r"[\s,;]{0,3}[(\[<]?\s{0,2}(?:orcid(?:\s?id)?\s?[:=]?\s{0,2})?(?:(?:https?://)?(?:www\.)?orcid\.org/)?"
    r"\d{4}[-‐–]\d{4}[-‐–]\d{4}[-‐–]\d{3}[\dXx]\s{0,2}[)\]>]?",
    re.IGNORECASE,
)
_ROR_TEXT = re.compile(r"[\s,;]{0,3}[(\[<]?\s?https?://ror\.org/\w{9}\s?[)\]>]?", re.IGNORECASE)
_ISNI = re.compile(
    r"[\s,;]{0,3}[(\[]?\s?(?:https?://(?:www\.)?isni\.org/(?:isni/)?|isni:?\s?)[\dXx ]{16,19}\s?[)\]]?", re.I
)
_LIFE = re.compile(
    r",?\s{0,2}[\[(]?(?:b\.\s?|born\s|d\.\s?|fl\.\s?|active\s|geb\.\s?|\*\s?|ca?\.\s?)?\d{4}\??\s?(?:[-–—]\s?(?:(?:ca?\.\s?)?\d{4}\??)?)?"
    r"[\])]?\.?$"
)
_MARKS = "0123456789*†‡§¶∗¹²³⁰⁴⁵⁶⁷⁸⁹#, "
_MORE_PERSONS = re.compile(r",?\s?(?:et al\.?|and others|u\. ?a\.|and colleagues|\[et al\.?\])$", re.IGNORECASE)
_ROLE_IN_FRONT = re.compile(r"(?:author|creator|editor|by|edited by|von|hrsg\. von)\s?:\s{0,2}", re.IGNORECASE)
_NOBODY = re.compile(
    r"(?:anon(?:ymous|imo|yme|ym)?\.?|unknown(?: author| creator)?|n/?a|none|null|"
    r"not (?:available|applicable|specified|provided)|"
    r"nil|\[?s\.? ?n\.?\]?|unbekannt|desconocido|desconhecido|inconnu|various(?: authors)?|others?|varios(?: autores)?|"
    r"author unknown|autor desconocido|"
    r"no author|multiple authors|tba|tbd|author|staff|admin|test|:unav|\(:[a-z]{3,4}\).{0,40}|-+|\?+|\.+)",
    re.IGNORECASE,
)
_LETTERS = r"(?:[^\W\d_]|[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0eff\u1000-\u109f\u1780-\u17ff])++"
"""Letters, with the signs that belong to them in scripts of Asia, which are no letters of their own for Python."""

_INITIALS = re.compile(r"(?:[^\W\d_]\.?[\s-]?){1,4}\.?|(?:[^\W\d_]h?\.[\s-]?){1,6}")
_DOTTED = re.compile(r"(?:[^\W\d_a-z]|[A-Z][hrltu])\.(?:[\s-]?(?:[^\W\d_a-z]|[A-Z][hrltu])\.){0,5}|[A-Z]\.-?[A-Z]")
_WORD = re.compile(rf"{_LETTERS}(?:[-'’ʼ.·ʻ`´]{_LETTERS}|(?!))*+\.?")
_BETWEEN = frozenset(("and", "&", "und", "et", "y", "e", "i", "og", "och", "en", "и", "та", "και", "with", "và"))
"""Words between two names."""

_DASH = re.compile(r"\s[-–—]\s")
"""What stands between a name and an affiliation."""

_LIST = re.compile(r"\s{0,2}(?:;|\|)\s{0,2}")

_AND = re.compile(r",?\s(?:[Aa][Nn][Dd]|&|und|et|y|e|og|och)\s")
"""What stands between two names with commas: Alder, A. and Birch, B."""

_COMMA_OR_AND = re.compile(rf"{_AND.pattern}|,\s{{0,2}}")

_SPANISH = word_set("""
    garcía garcia gonzález gonzalez rodríguez rodriguez fernández fernandez lópez lopez martínez martinez sánchez
    sanchez pérez perez gómez gomez martín jiménez jimenez ruiz hernández hernandez díaz diaz moreno muñoz munoz
    álvarez alvarez romero alonso gutiérrez gutierrez navarro torres domínguez dominguez vázquez vazquez ramos gil
    ramírez ramirez serrano blanco molina morales suárez suarez ortega delgado castro ortiz rubio marín sanz núñez
    nunez iglesias medina garrido cortés castillo santos lozano guerrero cano prieto méndez mendez cruz herrera
    peña flores cabrera campos vega fuentes carrasco reyes caballero nieto aguilar pascual santana herrero montero
    lorenzo hidalgo giménez ibáñez ferrer durán santiago benítez mora vicente vargas arias carmona crespo román
    soto sáez velasco moya rojas soler parra bravo gallego rojo chávez chavez guzmán mendoza salazar contreras
    estrada ríos acosta sepúlveda valenzuela muñiz bermúdez quintero cárdenas restrepo ospina zapata montoya
    jaramillo giraldo mejía londoño uribe espinoza espinosa cordero figueroa
""")
"""Frequent family names of Spanish: if one stands in the middle, two family names end the name."""


class Parts(NamedTuple):
    """The parts of a name: its kind, and the family and given name of a person."""

    kind: AgentKind
    family: str | None = None
    given: str | None = None


_UNKNOWN = Parts(AgentKind.UNKNOWN)
_ORGANISATION = Parts(AgentKind.ORGANISATION)


def agents(text: str, source: str, *, identifiers: Sequence[str] = ()) -> Iterator[Agent]:
    """The agents that a text names: one, or several with semicolons, commas or *and* between them."""
    parts = _LIST.split(text) if (";" in text or "|" in text) and "&#" not in text else [text]
    if not any(identifiers):  # The identifiers of one person are lost if there are two.
        parts = [each for part in parts[:_MOST_AGENTS] for each in _joined_persons(part)]
    names = [part for part in parts[:_MOST_AGENTS] if any(map(str.isalpha, part)) and not _is_identifier(part)]
    if len(names) < 2 or not all(_may_stand_in_list(each) for each in names):
        yield from agent(text, source, identifiers=identifiers)
        return
    for each in names:
        yield from agent(each, source)


def _joined_persons(text: str) -> Sequence[str]:
    """The persons of `Alder, A. and Birch, B.`, `Alder A, Birch B` or `A. Alder, B. Birch`; else the text itself.

    Each has initials, or a family name, a comma and a given name: `Alder, A. and Sons` stays whole. Without initials,
    `Alder, Birch and Cedar, Oregon` may be one firm. The words of an office name one agent: `Energy, Mines, and
    Resources, Yukon`.
    """
    names = [each.strip() for each in _COMMA_OR_AND.split(text.strip(" ,"))]
    if len(names) > 1 and (all(map(_has_initials_behind, names)) or all(map(_has_initials_in_front, names))):
        found: Sequence[str] = names
    elif len(names) > 3 and len(names) % 2 == 0:
        found = _pairs_with_commas(text)
    else:
        return [text]
    return found if found and not has_words_of_office(text) else [text]


def _pairs_with_commas(text: str) -> Sequence[str]:
    """The persons of `Alder, A., Birch, B. & Cedar, C.`; none if there is a doubt."""
    found: list[str] = []
    for piece in _AND.split(text):
        words = [each.strip() for each in piece.strip(" ,").split(",")]
        found += [f"{family}, {given}" for family, given in zip(words[::2], words[1::2], strict=False)]
        if len(words) % 2:
            return ()
    persons = [parts_of(_without_notes(each)) for each in found]
    if not all(each.kind is AgentKind.PERSON and each.given for each in persons):
        return ()
    signs = _AND.findall(text)
    is_clear = len(signs) > 1 or any(each.startswith(",") for each in signs) or all(map(_has_initial, found))
    return found if is_clear else ()


def _has_initials_behind(name: str) -> bool:
    """True for `Alder AB` and `Alder A.B.`; not for `Alder Jr.`."""
    words = _without_notes(name).split() if " " in name else ()
    if len(words) < 2 or _SUFFIX.fullmatch(words[-1]):
        return False
    has_dots = _is_dotted(words[-1]) and not _is_dotted(words[0])
    return (has_dots or _is_vancouver(words)) and parts_of(" ".join(words)).kind is AgentKind.PERSON


def _has_initials_in_front(name: str) -> bool:
    """True for `A. B. Alder`; not for the degree `M. A.`, the order `S. J.` or the place `St. Louis`."""
    first, blank, rest = _without_notes(name).partition(" ")
    if not blank or rest.endswith(".") or first == "St." or not first[:1].isupper():
        return False
    return _is_dotted(first) and parts_of(_without_notes(name)).kind is AgentKind.PERSON


def _has_initial(name: str) -> bool:
    """True for `Alder, A.` and `Alder, Ann B`; the name has a comma."""
    words = name.partition(",")[2].split()
    return any(_DOTTED.fullmatch(each) or (len(each) < 4 and each.isupper()) for each in words)


def _is_identifier(text: str) -> bool:
    """True for a part such as an ORCID iD, behind the name of its person."""
    return not _ORCID_TEXT.sub("", text).strip(" ()[]") or text.strip().startswith(("http://", "https://"))


def _may_stand_in_list(text: str) -> bool:
    kind = parts_of(_without_notes(text)).kind
    return kind is AgentKind.PERSON or (kind is AgentKind.ORGANISATION and "," not in text)


def agent(
    name: str,
    source: str,
    *,
    said: Parts = _UNKNOWN,
    identifiers: Sequence[str] = (),
    role: str | None = None,
) -> Iterator[Agent]:
    """The agent with this name; none if it has no letters.

    `said` has the kind and the parts that the document names: they hold. `identifiers` are in any spelling. The name
    stays as given, without an ORCID iD, an address or a note such as `(editor)` in it.
    """
    raw = " ".join(name[: 4 * _LONGEST].split())
    family, given = (" ".join((each or "")[:_LONGEST].split()) for each in (said.family, said.given))
    shown = _without_notes(raw)[:_LONGEST] or ", ".join(filter(None, (family, given)))
    if not any(map(str.isalpha, shown)):
        return
    parts = _parts_as_said(shown, said.kind, family, given)
    texts = (*identifiers, raw)
    orcid = next(filter(None, map(orcid_in, texts)), None) if parts.kind is not AgentKind.ORGANISATION else None
    ror = next(filter(None, map(_ror, texts)), None) if parts.kind is not AgentKind.PERSON else None
    if parts.kind is AgentKind.UNKNOWN and (orcid or ror):
        parts = Parts(AgentKind.PERSON if orcid else AgentKind.ORGANISATION)
    yield Agent(shown, source, parts.kind, parts.family, parts.given, orcid, ror, role)


def _ror(text: str) -> str | None:
    return ror_in(text) if "ror" in text.lower() or len(text) == 9 else None


def _parts_as_said(name: str, kind: AgentKind, family: str, given: str) -> Parts:
    if kind is AgentKind.ORGANISATION:
        return _ORGANISATION
    if family and given:
        return Parts(AgentKind.PERSON, *_with_small_letters(family, given))
    found = parts_of(family or name)
    # Documents have organisations in the places of persons, but not with a given name.
    if kind is AgentKind.PERSON and found.kind is AgentKind.UNKNOWN:
        return Parts(kind, family or None, given or None)
    return found


@lru_cache(20_000)
def parts_of(name: str) -> Parts:
    """The kind and the parts of a name, without notes; unknown if there is a doubt."""
    name = _without_period(" ".join(name.split()).strip(" ,;:"))
    if not name or len(name) > _LONGEST or _NOBODY.fullmatch(name):
        return _UNKNOWN
    if in_han_or_hangul(name):
        return _asian(name)
    plain = _LIFE.sub("", _PARENTHESIS.sub("", name)).strip(" ,;:")
    if "," in plain and (dash := _DASH.search(plain)) and "," in plain[: dash.start()]:
        plain = plain[: dash.start()]
    if is_organisation(plain if " " in plain else name):
        return _ORGANISATION
    name = plain
    if "," in name:
        return _family_first(name)
    return _given_first(name)


def _without_period(name: str) -> str:
    """The name without the period of a sentence: behind a whole word, not behind an initial or an abbreviation."""
    last = name[name.rfind(" ") + 1 :]
    is_word = len(last) > 4 and last.endswith(".") and last.count(".") == 1 and last[1:-1].islower()
    return name[:-1] if is_word and not _DEGREE.fullmatch(last) and "," in name else name


def _asian(name: str) -> Parts:
    if is_organisation(name):
        return _ORGANISATION
    found = parts_of_asian_name(name)
    return _UNKNOWN if found is None else Parts(AgentKind.PERSON, *found)


def _family_first(name: str) -> Parts:
    """`Family, Given`, with suffixes and degrees in any place behind a comma."""
    family, *rest = (part.strip() for part in name.split(","))
    suffixes = [part for part in rest if _is_suffix(part)]
    others = [part for part in rest if part and not _is_suffix(part) and not _is_title(part)]
    family = _TITLE.sub("", family, count=1) if _TITLE.match(family) else family
    if rest in (["V"], ["VI"]):
        # Ivanov, V: initials, since a number of an heir follows a given name.
        others, suffixes = rest, []
    if not others:
        # John Smith, Jr. or John Smith, PhD
        return _given_first(f"{family} {' '.join(suffixes)}".strip()) if rest and " " in family else _UNKNOWN
    if len(others) > 1:
        return _UNKNOWN
    given = _TITLE.sub("", others[0], count=1) if _TITLE.match(others[0]) else others[0]
    given, inner = _without_suffix(given)
    family, end = _without_suffix(family)
    suffixes = [*suffixes, *filter(None, (inner, end))]
    given, particles = _particles_behind(given)
    if not _is_family(family) or not _is_given(given):
        return _UNKNOWN
    family = " ".join(filter(None, (particles, family)))
    family, given = _with_small_letters(family, given)
    return Parts(AgentKind.PERSON, family, " ".join(filter(None, (given, *map(_suffix, suffixes)))))


def _is_suffix(part: str) -> bool:
    """True for Jr. and III; JR may be initials."""
    return _SUFFIX.fullmatch(part) is not None and (not part.isupper() or _ROMAN.fullmatch(part) is not None)


def _is_title(part: str) -> bool:
    """True for PhD and Prof. Dr.; Mag and Hon may be given names."""
    return _DEGREE.fullmatch(part) is not None or _TITLE.fullmatch(part) is not None or part in ("Dr", "Prof")


def _without_suffix(text: str) -> tuple[str, str]:
    words = text.split()
    if len(words) > 1 and _SUFFIX.fullmatch(words[-1]) and words[-1] not in ("V", "VI", "JR", "SR", "Filho", "Neto"):
        return " ".join(words[:-1]), words[-1]
    return text, ""


def _suffix(text: str) -> str:
    return text if text.isupper() or text.endswith(".") or text[0].isdigit() or len(text) > 3 else f"{text}."


def _particles_behind(given: str) -> tuple[str, str]:
    """`Berg, Jan van der`: the particles behind the given name belong to the family."""
    words = given.split()
    end = len(words)
    while end > 1 and words[end - 1] in PARTICLES - _INNER:
        end -= 1
    return " ".join(words[:end]), " ".join(words[end:])


def _is_family(text: str) -> bool:
    words = text.split()
    return 0 < len(words) <= 6 and all(_WORD.fullmatch(each) or each.lower() in PARTICLES for each in words)


def _is_given(text: str) -> bool:
    words = text.split()
    if not 0 < len(words) <= 6 or any(each.lower() in _BETWEEN for each in words[1:]):
        return False
    return all(_WORD.fullmatch(each) or _INITIALS.fullmatch(each) for each in words)


def _given_first(name: str) -> Parts:
    """`Given Family`, `G. Family`, `Family G`, `FAMILY Given`."""
    if _TITLE.match(name):
        name = _TITLE.sub("", name, count=1)
    words = name.split()
    while len(words) > 2 and _DEGREE.fullmatch(words[-1]) and not _are_closed_initials(words[-1]):
        words.pop()
    suffix = ""
    if len(words) > 2 and _SUFFIX.fullmatch(words[-1]) and words[-1] not in ("V", "VI", "Filho", "Neto"):
        suffix = _suffix(words.pop())
    if not 2 <= len(words) <= 7 or not _is_family(" ".join(words).replace(".", ". ").replace("-", " ")[:200]):
        return _UNKNOWN
    if may_be_organisation(words) or any(each.lower() in _BETWEEN - _INNER for each in words[1:]):
        return _UNKNOWN
    if are_family_names(words):
        return Parts(AgentKind.PERSON)
    family, given = _divided(words)
    if not family or not given:
        return _UNKNOWN
    family, given = _with_small_letters(family, given)
    return Parts(AgentKind.PERSON, family, " ".join(filter(None, (given, suffix))))


def _divided(words: Sequence[str]) -> tuple[str, str]:
    """The family and the given name of a name without a comma; "" if there is a doubt."""
    first, last = words[0], words[-1]
    if first in PARTICLES and first.islower():
        return _particle_in_front(words)
    if _is_vancouver(words):
        return " ".join(words[:-1]), last
    if _is_dotted(last) and not _is_dotted(first):
        place = next(place for place, word in enumerate(words) if place and _is_dotted(word))
        return " ".join(words[:place]), " ".join(words[place:])
    if found := _by_capitals(words) or romanised(words):
        return found
    place = _start_of_family(words)
    return " ".join(words[place:]), " ".join(words[:place])


def _particle_in_front(words: Sequence[str]) -> tuple[str, str]:
    """`van der Berg J`, `de Vries J.A.`; without initials, it is a family name alone."""
    last = words[-1]
    if len(words) > 2 and (_are_closed_initials(last) or _is_dotted(last)):
        return " ".join(words[:-1]), last
    return "", ""


def _is_vancouver(words: Sequence[str]) -> bool:
    """`Smith JA`, `van der Berg J`: the initials are last, without dots, and nothing else has capitals alone."""
    last, before = words[-1], words[:-1]
    if not _are_closed_initials(last) or len(last) > 3:
        return False
    if len(before) == 1 and before[0].isupper() and len(before[0]) > 1 and not _is_dotted(before[0]):
        return len(last) < len(before[0]) and not is_family_name(last)
    return not any(_is_dotted(each) or (each.isupper() and len(each) > 1) or len(each) == 1 for each in before) and (
        len(before) == 1 or len(before) == 2 or before[0].lower() in PARTICLES
    )


def _are_closed_initials(word: str) -> bool:
    """True for initials without dots, such as JA or J-A."""
    return len(word) <= 4 and word.isupper() and word.replace("-", "").isalpha()


def _is_dotted(word: str) -> bool:
    return _DOTTED.fullmatch(word) is not None


def _by_capitals(words: Sequence[str]) -> tuple[str, str] | None:
    """`SMITH John`, `John SMITH`, `Jan VAN DEN BERG`: the words in capitals are the family name."""
    if len(words) == 2 and words[0].isupper() and is_family_name(words[0]) and words[1][1:].islower():
        return words[0], words[1]
    capitals = [
        (len(word) > 2 and word.isupper() and not _is_dotted(word)) or (word.isupper() and word.lower() in PARTICLES)
        for word in words
    ]
    if all(capitals) or not any(each and len(word) > 2 for each, word in zip(capitals, words, strict=True)):
        return None
    start, end = capitals.index(True), len(words) - capitals[::-1].index(True)
    while start and words[start - 1] in PARTICLES:
        start -= 1
    small = [word for word, each in zip(words[start:end], capitals[start:end], strict=True) if not each]
    if (start and end < len(words)) or not PARTICLES.issuperset(small):
        return None
    return " ".join(words[start:end]), " ".join((*words[:start], *words[end:]))


def _start_of_family(words: Sequence[str]) -> int:
    """The place of the first word of the family name: the last word, its particles, the first of two Spanish names."""
    place = len(words) - 1
    if place > 1 and words[place - 1] in _INNER:
        # Ortega y Gasset, Gaudí i Cornet
        return place - 2 if place > 2 else place
    if words[-1].lower().strip(".") in ("filho", "neto", "júnior", "junior", "sobrinho") and place > 1:
        place -= 1
    while place > 1 and (words[place - 1] in PARTICLES or words[place - 1].lower() in _CAPITAL_PARTICLES):
        place -= 1
    if place > 1 and place == len(words) - 1 and words[place - 1].lower() in _SPANISH and not _is_dotted(words[0]):
        place -= 1
        while place > 1 and words[place - 1] in PARTICLES:
            place -= 1
    if place < len(words) - 1 and words[place] in ("de", "del"):
        # Álvar Núñez Cabeza de Vaca. If the first word is a family name in -ez, there is no given name.
        place = next((each for each in range(place - 1, 0, -1) if words[each].lower() in _SPANISH), place)
        first = words[0].lower()
        place = 0 if first in _SPANISH and first.endswith("ez") else place
    return place


def _with_small_letters(family: str, given: str) -> tuple[str, str]:
    """The parts with small letters, where all are capitals; initials stay."""
    letters = [each for each in family if each.isalpha()]
    if len(letters) < 2 or not family.isupper():
        return family, given
    if len(letters) == 2 and not given.isupper():
        return family.capitalize(), given
    words = [_small(word, place) for place, word in enumerate(family.split())]
    if given.isupper() and not all(_is_dotted(each) or _are_closed_initials(each) for each in given.split()):
        given = " ".join(word if _is_dotted(word) or len(word) < 3 else _small(word, 0) for word in given.split())
    elif given.isupper() and " " not in given and "." not in given and _is_word(given):
        given = _small(given, 0)
    return " ".join(words), given


def _is_word(text: str) -> bool:
    """True for three or four capitals that can be spoken, such as ANNA, and are more probably a name than initials."""
    vowels = [each in "AEIOUYÀÁÂÃÄÅÈÉÊËÌÍÎÏÒÓÔÕÖØÙÚÛÜ" for each in text]
    return len(text) > 2 and any(vowels) and not all(vowels) and (len(text) > 3 or vowels[1] or vowels[0])


def _small(word: str, place: int) -> str:
    if word.lower() in PARTICLES and (place == 0 or len(word) <= 3) and word.lower() not in ("st.", "saint", "ben"):
        return word.lower()
    parts = re.split(r"([-'’])", word.lower())
    text = "".join(part.capitalize() for part in parts)
    return f"Mc{text[2:].capitalize()}" if text.startswith("Mc") and len(text) > 4 else text


def _without_notes(text: str) -> str:
    """The name without what stands in it besides: identifiers, addresses, roles, marks of footnotes, et al."""
    if not any(each in text for each in _SIGNS):
        text = _MORE_PERSONS.sub("", text)
        return text.strip(" ,;")
    for pattern in (_ORCID_TEXT, _ROR_TEXT, _ISNI, _ADDRESS, _NOTE):
        text = pattern.sub("", text)
    text = _MORE_PERSONS.sub("", text)
    if _ROLE_IN_FRONT.match(text):
        text = _ROLE_IN_FRONT.sub("", text, count=1)
    if "," not in text or not text[-1:].isdigit() or not _LIFE.search(text):
        text = text.rstrip(_MARKS)
    return text.strip(" ,;<>")


_SIGNS = "0123456789@([<:*†‡§¶∗¹²³#"
