"""The query language: from the words that a person writes to a query. Pure.

    beech "leaf area"  author:Rivera  year:2010..2020  -oak  (soil OR water)

All words have to be found, unless OR stands between them; a minus or NOT in front leaves documents out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from metaharvest.errors import QueryError
from metaharvest.pipeline.search.terms import searched
from metaharvest.text import one_line

LONGEST_QUERY = 2000
_MOST_WORDS = 60
_DEEPEST = 20

FIELDS: Mapping[str, str] = {
    "title": "title", "author": "author", "creator": "author", "abstract": "abstract", "subject": "subject",
    "keyword": "subject", "fulltext": "text", "text": "text", "site": "site_words", "type": "type_words",
    "language": "language_words", "licence": "licence_words", "license": "licence_words", "doi": "identifier",
    "id": "identifier",
}  # fmt: skip
"""The fields of the query language, with the fields of the index."""

_YEARS = ("year", "date")
_SHOWN_FIELDS = "title, author, abstract, subject, fulltext, site, type, language, licence, doi, id, year"
_SCHEMES = ("http", "https", "urn", "oai", "hdl", "handle", "info", "arxiv", "pmid", "pmcid", "isbn", "issn", "orcid")
"""Words of this kind begin an identifier, which a person pastes; they are no fields."""

_DOI = r'(?:https?://(?:dx\.)?doi\.org/|doi:)?10\.\d{4,9}/(?:\([^\s()]*\)|[^\s()"“”„])++'
"""A DOI: brackets in it are a part of it."""

_TOKEN = re.compile(
    rf'\s+|(?P<mark>[()])|(?P<minus>-)(?=[^\s\-)])|(?P<phrase>["“”„])|(?P<word>{_DOI}|[^\s()"“”„]+)|.',
    re.DOTALL | re.IGNORECASE,
)
_FIELD = re.compile(r"([A-Za-z_]+):(.*)", re.DOTALL)
_WILDCARD = re.compile(r"\w\w\*")
_QUOTES = '"“”„'
_YEAR = re.compile(r"(?:(\d{4})|(\d{4})?(?:\.\.|–|-)(\d{4})?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Words:
    """Terms one after another, in a field of the index, or in any field. `text` is how they were written."""

    terms: tuple[str, ...]
    text: str
    field: str | None = None


@dataclass(frozen=True, slots=True)
class Years:
    """The years from `first` to `last`; None: no limit."""

    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class All:
    """Documents that all parts find; without a part, all documents."""

    parts: tuple[Query, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Documents that one of the parts finds."""

    parts: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """Documents that the part does not find."""

    part: Query


Query = Words | Years | All | AnyOf | Without
EVERYTHING = All()


def read_query(text: str) -> Query:
    """The query that a person wrote. Raises QueryError with a sentence."""
    if len(text) > LONGEST_QUERY:
        raise QueryError(f"The query has {len(text):,} characters; it may have {LONGEST_QUERY:,}.")
    return _Reader(text).query()


def words_of(query: Query) -> Iterator[Words]:
    """The words that find documents, without the words that leave documents out."""
    match query:
        case Words():
            yield query
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from words_of(part)
        case _:
            return


def read_years(text: str) -> Years:
    """A year, or the years from one to another: `2019`, `2010..2020`, `2010..`. Raises QueryError."""
    found = _YEAR.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        _refuse(f"{one_line(text, 40)} is not a year. Write year:2019, year:2010.. or year:2010..2020")
    exact, first, last = (int(each) if each else None for each in found.groups())
    if first is not None and last is not None and first > last:
        _refuse(f"The year {first} comes after {last}: write year:{last}..{first}")
    return Years(exact or first, exact or last)


def _refuse(reason: str) -> NoReturn:
    raise QueryError(f"The query cannot be read. {reason}.")


class _Reader:
    """Reads one query from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\0", " ")
        self._at = 0
        self._depth = 0
        self._number = 0

    def query(self) -> Query:
        found = self._any_of()
        if self._at < len(self._text):
            _refuse(f"A bracket is closed at character {self._at + 1} that was never opened")
        if found == EVERYTHING and self._text.strip() not in ("", "*"):
            _refuse("It has no word to search for")
        return found

    def _any_of(self) -> Query:
        parts = [self._all()]
        while self._takes_or():
            if parts[-1] == EVERYTHING:
                _refuse("Nothing stands before OR")
            parts.append(self._all())
            if parts[-1] == EVERYTHING:
                _refuse("Nothing stands after OR")
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _all(self) -> Query:
        parts: list[Query] = []
        while (part := self._part()) is not None:
            if part != EVERYTHING:
                parts.append(part)
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _part(self) -> Query | None:
        """The next part; EVERYTHING for characters without a meaning; None at the end, at OR and at a bracket."""
        token = self._peek()
        if token is None or token[0] == ")" or token[0] == "OR":
            return None
        self._at = token.end()
        if token["minus"] or token[0] == "NOT":
            return self._without(token[0])
        if token[0] == "(":
            return self._in_brackets(token.start())
        if token["phrase"]:
            return self._words(self._phrase(token.start()), None)
        if token["word"]:
            return EVERYTHING if token[0] == "AND" else self._word(token["word"])
        return EVERYTHING

    def _peek(self) -> re.Match[str] | None:
        """The next token after blanks."""
        while (token := _TOKEN.match(self._text, self._at)) is not None and token[0].isspace():
            self._at = token.end()
        return token

    def _takes_or(self) -> bool:
        token = self._peek()
        if token is None or token[0] != "OR":
            return False
        self._at = token.end()
        return True

    def _without(self, sign: str) -> Query:
        self._enter()
        part = self._part()
        self._depth -= 1
        if part is None:
            _refuse(f"Nothing stands after {sign}")
        return EVERYTHING if part == EVERYTHING else Without(part)

    def _in_brackets(self, start: int) -> Query:
        self._enter()
        found = self._any_of()
        self._depth -= 1
        if self._at >= len(self._text):
            _refuse(f"The bracket that opens at character {start + 1} is not closed")
        self._at += 1
        return found

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise QueryError(f"The query has more than {_DEEPEST} levels of brackets.")

    def _phrase(self, start: int) -> str:
        """The text up to the closing quotation mark."""
        end = next((at for at in range(self._at, len(self._text)) if self._text[at] in _QUOTES), None)
        if end is None:
            _refuse(f"The quotation mark at character {start + 1} has no second one")
        phrase, self._at = self._text[self._at : end], end + 1
        return phrase

    def _word(self, word: str) -> Query:
        """A word, or a field with its value."""
        if word.count("*") == 1 and _WILDCARD.fullmatch(word[-3:]):
            _refuse(
                f"There are no wildcards in {one_line(word, 60)}: write the whole word, or several with OR between them"
            )
        found = _FIELD.fullmatch(word)
        if found is None or found[1].lower() in _SCHEMES:
            return self._words(word, None)
        name, value, start = found[1].lower(), found[2], self._at
        if not value:
            following = self._text[start : start + 1]
            if following == "(" and (name in FIELDS or name in _YEARS):
                self._at = start + 1
                return _in_field(self._in_brackets(start), name)
            if not following or following not in _QUOTES:
                # The colon of a title that a person pasted.
                return self._words(word, None)
            self._at = start + 1
            value = self._phrase(start)
        if name in _YEARS:
            return read_years(value)
        if name not in FIELDS:
            _refuse(
                f"There is no field {one_line(name, 40)}. The fields are {_SHOWN_FIELDS}. If you search for the words "
                f'with the colon, put them in quotation marks: "{one_line(word, 60)}"'
            )
        return self._words(value, FIELDS[name], f"{found[1]}:{value}")

    def _words(self, text: str, field: str | None, shown: str = "") -> Query:
        """The words of a text, which stand one after another."""
        phrases = searched(text)
        self._number += sum(map(len, phrases))
        if self._number > _MOST_WORDS:
            raise QueryError(f"The query has more than {_MOST_WORDS} words: leave some out.")
        if not phrases and field is not None:
            _refuse(f"{one_line(shown, 60)} has no letter and no digit to search for")
        return _together([Words(tuple(phrase), text, field) for phrase in phrases])


def _together(parts: Sequence[Query]) -> Query:
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _in_field(query: Query, name: str) -> Query:
    """The query with the field of this name for its words that have none. Raises QueryError if they are no years."""
    match query:
        case Words(terms, text, None):
            return read_years(text) if name in _YEARS else Words(terms, text, FIELDS[name])
        case All(parts):
            return All(tuple(_in_field(part, name) for part in parts))
        case AnyOf(parts):
            return AnyOf(tuple(_in_field(part, name) for part in parts))
        case Without(part):
            return Without(_in_field(part, name))
        case _:
            return query
