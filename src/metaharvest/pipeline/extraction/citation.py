"""Reads one reference as people write it: its DOI, year, title and surnames. Doubtful parts stay unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from metaharvest.model.values import frozen
from metaharvest.pipeline.cleaning.identifiers import as_doi, find_dois

_LONGEST = 2_000
"""Characters of a reference that are read."""


@frozen
class Reference:
    """A reference. `raw` is its text on one line, without its number in the list. A DOI is bare, in lower case."""

    raw: str
    doi: str | None = None
    title: str | None = None
    year: int | None = None
    surnames: tuple[str, ...] = ()


_YEAR = re.compile(r"(?<![\d.,/:_–-])(?<!pp )(1[5-9]\d\d|20\d\d)(?![\d_]|[–-]\d|/\d|\.\d)")
_IN_BRACKETS = re.compile(r"[(\[（](?:c|c\. ?|ca\. ?)?(1[5-9]\d\d|20\d\d)[a-z]?(?:[,;/–-][^()\[\]（）]{0,30})?[)\]）]")
_ADDRESS = re.compile(r"(?:https?://|www\.|doi:|\b10\.\d{4,9}/)\S+", re.IGNORECASE)
_VISIT = re.compile(
    r"\b(?:accessed|retrieved|last visited|viewed|abgerufen|zugriff|aufgerufen|consulté|consultado|visitado|acesso em|"
    r"consultato|geraadpleegd|hämtad|обращения|閲覧|访问日期)\b",
    re.IGNORECASE,
)
_LATEST = 2_100
_QUOTES = {"“": "”", "„": "“”", "«": "»", '"': '"', "‘": "’", "「": "」", "《": "》", "『": "』"}
_END_OF_TITLE = re.compile(
    r"\s//|\s/\s|\[[A-Z](?:/[A-Z]{2})?\]|[.?!,]\s(?:In|Dans|En|Em|В|w)(?::|\s[A-ZÀ-ÝА-Я])|\s<|\s(?=https?://)"
)
_STOP = re.compile(r"[.?!。．](?=\s|$)|[。．]")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(.-])(?:[^\W\d_]|vs|cf|st|dr|no|nr|vol|var|subsp|ssp|spp|sp|al|eds?|hrsg|etc|approx|ca|ff)$",
    re.IGNORECASE,
)
_UPPER = r"[^\W\d_a-zà-öø-ÿа-яё]"
_INITIALS = rf"(?:{_UPPER}{{1,3}}(?:\.[\s-]?{_UPPER}(?!\s[^\W\d_])){{0,4}}\.?|{_UPPER}[^\W\d_]{{0,2}}\.)(?![^\W\d_])"
_PARTICLES = (
    r"(?:(?:de|da|do|dos|del|della|di|la|le|van|von|der|den|ter|ten|zu|zur|af|el|al|bin|ibn)[\s'’-]|d'|d’|(?!)){0,3}+"
)
_SURNAME = (
    rf"{_PARTICLES}(?:(?:Van|Von|De|Da|Di|La|Le|Del|Der|Den|Mac|St\.?)\s){{0,2}}"
    rf"{_UPPER}['’]?[^\W\d_]{{1,30}}(?:[-'’–]{_UPPER}?[^\W\d_]{{1,30}}){{0,2}}"
)
_FAMILY_FIRST = re.compile(
    rf"({_SURNAME}(?:\s{_SURNAME})?),?\s{_INITIALS}(?:\s{_INITIALS}(?=[.,;:&)]|\s\(|$)){{0,2}}(?:,?\s(?:Jr|Sr|I{{2,3}}|IV)\b\.?)?"
)
_GIVEN_FIRST = re.compile(rf"{_INITIALS}(?:[\s-]?{_INITIALS}){{0,3}}\s?({_SURNAME}(?:\s{_SURNAME})?)")
_OTHERS = re.compile(r"(?:et al|and others|u\. ?a|[Ee]ds?|Hrsg|等)\b\.?|\((?:[Ee]ds?|Hrsg)\.?\)")
_BETWEEN = re.compile(
    r"\s?(?:[,;&:]|\b(?:and|und|et|y|e|i|og|och|en)\b)?\s?(?:(?:&|\b(?:and|und|et|y|e|i|og|och|en)\b)\s)?"
)
_FULL_NAME = re.compile(rf"({_SURNAME}),\s{_UPPER}[^\W\d_]{{1,30}}")
_MOST_NAMES = 200
_FEWEST = 6


@frozen
class _Names:
    """The names at the beginning of a reference, and where they end."""

    surnames: tuple[str, ...]
    end: int


def _names(text: str) -> _Names:
    """Read names one after the other. None of the expressions goes back behind a name."""
    surnames: list[str] = []
    place = end = 0
    for _ in range(_MOST_NAMES):
        name = _FAMILY_FIRST.match(text, place) or _GIVEN_FIRST.match(text, place) or _OTHERS.match(text, place)
        if name is None:
            break
        surnames += [each for each in name.groups() if each]
        end = name.end()
        between = _BETWEEN.match(text, end)
        place = between.end() if between else end
        if ":" in text[end:place] or place == end:
            break
    return _Names(tuple(dict.fromkeys(surnames)), end)


def marked(fields: Mapping[str, Any]) -> Reference:
    """A reference whose parts are marked in a file: `raw`, `doi`, `title`, `year`, `surnames`, as far as known."""
    read = parsed(fields["raw"])
    return Reference(
        read.raw,
        as_doi(fields["doi"] or "") or read.doi,
        fields["title"] or read.title,
        fields["year"] or read.year,
        tuple(fields["surnames"]) or read.surnames,
    )


def parsed(raw: str) -> Reference:
    """The reference with the parts that its text shows."""
    text = raw[:_LONGEST]
    dois = find_dois(text)
    year = year_of(text)
    head, title = _title(text)
    return Reference(raw, dois[0] if dois else None, title, year, _surnames(head))


def years_in(raw: str) -> frozenset[int]:
    """All years in the text, without page numbers, addresses and dates of visits."""
    return frozenset(int(each) for each in _YEAR.findall(_plain(raw[:_LONGEST])) if int(each) < _LATEST)


def year_of(raw: str) -> int | None:
    """The year of publication: in brackets, behind the names, else the last one."""
    text = _plain(raw[:_LONGEST])
    bracketed = _IN_BRACKETS.search(text)
    if bracketed:
        return int(bracketed[1])
    found = list(_YEAR.finditer(text))
    if not found:
        return None
    names = _names(text)
    if names.end and found[0].start() - names.end in range(-1, 5):
        return int(found[0][1])
    before_issue = next((each for each in found if text[each.end() : each.end() + 1] == ";"), found[-1])
    return int(before_issue[1])


def _plain(text: str) -> str:
    """The text without addresses, and up to the date of a visit."""
    text = _ADDRESS.sub(" ", text)
    visit = _VISIT.search(text)
    return text[: visit.start()] if visit else text


def _title(raw: str) -> tuple[str, str | None]:
    """The part of a reference before its title, and the title."""
    text = _ADDRESS.sub(" ", raw)
    if quoted := _quoted(text):
        return text[: quoted[0]], quoted[1]
    behind_year = _IN_BRACKETS.search(text) or _year_behind_names(text)
    if behind_year:
        title = _sentence(text[behind_year.end() :])
        if title:
            return text[: behind_year.start()], title
    start = _names(text).end or _first_stop(text)
    return text[:start], _sentence(text[start:])


def _quoted(text: str) -> tuple[int, str] | None:
    """The first text in quotation marks that is long enough for a title, and its place."""
    for place, character in enumerate(text):
        if character not in _QUOTES:
            continue
        ends = [end for mark in _QUOTES[character] if (end := text.find(mark, place + 1)) > 0]
        if ends and min(ends) - place > (4 if character in "《「『" else 12):
            return place, _tidy(text[place + 1 : min(ends)])
    return None


def _year_behind_names(text: str) -> re.Match[str] | None:
    names, year = _names(text), _YEAR.search(text)
    is_behind = year is not None and bool(names.end) and year.start() - names.end in range(-1, 5)
    return year if year and is_behind and text[year.end() : year.end() + 2].strip(" abc") else None


def _first_stop(text: str) -> int:
    """The end of the names, where they have another form: the first end of a sentence, or a colon."""
    stop = _stop(text, 0)
    colon = text.find(": ", 0, stop)
    return colon + 1 if colon > 0 else min(stop, len(text))


def _sentence(text: str) -> str | None:
    """The first sentence, without what follows a title in some styles; None if it is too short."""
    text = text.lstrip(" abcdefg" if text[1:2] in (")", ".", ",") else " ").lstrip(" .,:;)]–—-")
    end = _stop(text, 0)
    title = text[:end]
    if mark := _END_OF_TITLE.search(title):
        title = title[: mark.start()]
    title = _tidy(title)
    few = 4 if any("\u3040" <= c <= "\uffff" for c in title) else _FEWEST
    return title if sum(c.isalpha() for c in title) >= few else None


def _stop(text: str, start: int) -> int:
    """The place of the first end of a sentence that is no abbreviation."""
    for found in _STOP.finditer(text, start):
        if found[0] == "." and _ABBREVIATION.search(text[max(0, found.start() - 12) : found.start()]):
            continue
        return found.start() + (found[0] in "?!")
    return len(text)


def _tidy(title: str) -> str:
    return " ".join(title.split()).strip(" .,;:")


def _surnames(head: str) -> tuple[str, ...]:
    head = head[:2_000]
    if found := _names(head).surnames:
        return found
    first = _FULL_NAME.match(head)
    return (first[1],) if first else ()
