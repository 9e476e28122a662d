"""The query language: from the words that a person writes to a query. Pure.

    beech "leaf area"  author:Rivera  year:2010..2020  -oak  (soil OR water)

All words have to be found, unless OR stands between them; a minus or NOT in front leaves documents out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

from metaharvest.errors import QueryError
from metaharvest.model.values import frozen
from metaharvest.pipeline.cleaning.identifiers import identified
from metaharvest.pipeline.cleaning.languages import language_of
from metaharvest.pipeline.cleaning.licences import spdx_of
from metaharvest.pipeline.search.terms import searched
from metaharvest.text import one_line

LONGEST_QUERY = 2000
_MOST_WORDS = 60
_DEEPEST = 20

FIELDS: Mapping[str, str] = {
    "title": "title", "author": "author", "creator": "author", "orcid": "author", "abstract": "abstract",
    "subject": "subject", "keyword": "subject", "fulltext": "text", "text": "text", "site": "site_words",
    "type": "type_words", "language": "language_words", "licence": "licence_words", "license": "licence_words",
    "doi": "identifier", "id": "identifier",
}  # fmt: skip
"""The fields of the query language, with the fields of the index."""

_CODES: Mapping[str, Callable[[str], str | None]] = {"language_words": language_of, "licence_words": spdx_of}
"""The fields whose values have a code in the index, however a person writes them."""

_YEARS = ("year", "date")
_NAMES = (*FIELDS, *_YEARS)
_SHOWN_FIELDS = "title, author, abstract, subject, fulltext, site, type, language, licence, doi, id, year"
_SCHEMES = (
    "http", "https", "ftp", "mailto", "urn", "oai", "hdl", "handle", "info", "arxiv", "pmid", "pmcid", "isbn", "issn",
)  # fmt: skip
"""Words of this kind begin an identifier, which a person pastes; they are no fields."""

_DOI = r'(?:https?://(?:dx\.)?doi\.org/|doi:)?10\.\d{4,9}/(?:\([^\s()]*\)|[^\s()"“”„]|(?!))++'
"""A DOI: brackets in it are a part of it."""

_TOKEN = re.compile(
    rf'\s+|(?P<mark>[()])|(?P<minus>-)(?=[^\s\-)])|(?P<phrase>["“”„])|\|\|?|(?P<word>{_DOI}|[^\s()"“”„|]+)|.',
    re.DOTALL | re.IGNORECASE,
)
_LABEL = re.compile(
    r"(ORCID|ISBN|ISSN|PMID|PMCID|arXiv)(?:\s+iD|-1[03])?(?:\s*:\s*|\s+)"
    r"((?:\d[\d.-]{5}|PMC\d{4}|[a-z-]{2,20}(?:\.[A-Z]{2})?/\d{7})[^\s()\"“”„|]*)",
    re.IGNORECASE,
)
"""An identifier behind the name of its kind. A year, as in `ORCID 2021`, is no identifier."""

_TWO_YEARS = re.compile(r"\d{4}-\d{4}[.,;]?", re.ASCII)

_FIELD = re.compile(r"([A-Za-z_]+):(.*)", re.DOTALL)
_COLON = re.compile(r"\s+:\s*(?=\S)")
"""A colon after blanks."""

_WRONG_COLON = re.compile(r"([A-Za-z_]+)(?:=|[<>]=?)(.+)", re.DOTALL)
_WILDCARD = re.compile(r"\w\w\*$|[^\W\d_]{2}\*\w|\*[^\W\d_]{2}|^[^\W\d_/]+\?[^\W\d_/]+$")
_WEIGHT = re.compile(r"\w{3}[\^~][\d.]{0,9}$|[^\W\d_]{3}~\w{0,9}$")
"""The marks of other search engines for the weight of a word, and for similar words. `km^2` is a unit."""

_PHRASE_WEIGHT = re.compile(r"[~^]\d")
_ANY = ("OR", "|", "||")
_YEARS_AHEAD = re.compile(r"\s*(\d{4})\s*(?:\.\.|–|-|to\b)\s*(\d{4})(?!\w)", re.ASCII | re.IGNORECASE)
_RANGE = re.compile(r"(?:\s+(?=[\[{]\s*(?:\d{4}\b|\*)|[\[{][^\[\]{}]*\sTO\s))?([\[{][^\[\]{}]*[\]}][^\s()]*)", re.ASCII)
"""A range of Lucene, with its weight. Behind blanks, it begins with a year or *, or has TO: `Date: [sic]` is text."""

_YEARS_OF_RANGE = re.compile(r"\[\s*(\d{4}|\*)\s*(?:\.\.|–|-|to\b)\s*(\d{4}|\*)\s*\]", re.ASCII | re.IGNORECASE)
"""The years of Lucene: `[2010 TO 2020]`, `[2010 TO *]`."""


_YEAR_AHEAD = re.compile(r"\s*\d{4}(?!\w)|\s*[\"“”„][\d.–-]{4,10}[\"“”„]|\s*\.\.\d{4}|\s*\(|\s*$", re.ASCII)
_BARE_YEARS = re.compile(r"\d{4}\.\.(?:\d{4})?|\.\.\d{4}", re.ASCII)
_NOT_INDEXED = re.compile(r"mailto:|(?:https?://)?(?:www\.)?orcid\.org/(?=\d{4}-)", re.ASCII | re.IGNORECASE)
_IN_ADDRESS = re.compile(
    r"(?:https?|info|hdl|handle|arxiv|pmid|pmcid|isbn|issn|urn):|(?:dx|www)\.doi\.org/|\d[\d-]{7,15}[\dXx]$",
    re.IGNORECASE,
)
"""The beginning of an identifier that documents may have in another form."""
_QUOTES = '"“”„'
_YEAR = re.compile(r"(?:(\d{4})|(\d{4})?(?:\.\.|–|-)(\d{4})?)", re.ASCII)


@frozen
class Words:
    """Terms one after another, in a field of the index, or in any field. `text` is how they were written."""

    terms: tuple[str, ...]
    text: str
    field: str | None = None


@frozen
class Years:
    """The years from `first` to `last`; None: no limit."""

    first: int | None
    last: int | None


@frozen
class All:
    """Documents that all parts find; without a part, all documents."""

    parts: tuple[Query, ...] = ()


@frozen
class AnyOf:
    """Documents that one of the parts finds."""

    parts: tuple[Query, ...]


@frozen
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


def _years_of_range(text: str) -> Years:
    """The years of a range of Lucene. Raises QueryError."""
    found = _YEARS_OF_RANGE.fullmatch(text)
    years = "..".join(found.groups()).replace("*", "") if found else ""
    return read_years(years if years != ".." and years else text)


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
            _refuse(f"A bracket is closed at character {self._at + 1} that was never opened: leave it out, or open one")
        if found == EVERYTHING and self._text.strip() not in ("", "*"):
            _refuse("It has no word to search for: write at least one word, name or number")
        if years := next((each.text for each in words_of(found) if _BARE_YEARS.fullmatch(each.text)), None):
            _refuse(f"The years have no field: write year:{years}")
        return found

    def _any_of(self) -> Query:
        parts = [self._all()]
        while self._takes_or():
            if parts[-1] == EVERYTHING:
                _refuse("Nothing stands before OR: write a word on each side of it")
            parts.append(self._all())
            if parts[-1] == EVERYTHING:
                _refuse("Nothing stands after OR: write a word on each side of it")
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
        if token is None or token[0] == ")" or token[0] in _ANY:
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
        if token is None or token[0] not in _ANY:
            return False
        self._at = token.end()
        return True

    def _without(self, sign: str) -> Query:
        self._enter()
        part = self._part()
        self._depth -= 1
        if part is None:
            _refuse(f"Nothing stands after {sign}: write the word that outputs must not have")
        return EVERYTHING if part == EVERYTHING else Without(part)

    def _in_brackets(self, start: int) -> Query:
        self._enter()
        found = self._any_of()
        self._depth -= 1
        if self._at >= len(self._text):
            _refuse(f"The bracket that opens at character {start + 1} is not closed: close it, or leave it out")
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
            _refuse(f"The quotation mark at character {start + 1} has no second one: write it, or leave this one out")
        phrase, self._at = self._text[self._at : end], end + 1
        if _PHRASE_WEIGHT.match(self._text, self._at):
            _refuse(f"A phrase has no {self._text[self._at]} behind it: end it with its quotation mark")
        return phrase

    def _word(self, word: str) -> Query:
        """A word, or a field with its value."""
        label = _LABEL.match(self._text, self._at - len(word))
        if label and (label[1].lower() == "issn" or not _TWO_YEARS.fullmatch(label[2])):
            self._at, word = label.end(), f"{label[1]}:{label[2].rstrip(',;')}"
        _refuse_foreign_marks(word)
        if word.lower() in _NAMES and (colon := _COLON.match(self._text, self._at)):
            self._at, word = colon.end(), f"{word}:"
        found = _FIELD.fullmatch(word)
        if found is None or found[1].lower() in _SCHEMES:
            return self._words(word, None)
        name, value = found[1].lower(), found[2]
        start = self._at - len(value)
        if name in _YEARS and (years := _YEARS_AHEAD.match(self._text, start)):
            self._at = years.end()
            return read_years("..".join(years.groups()))
        if name in _YEARS and (found := _RANGE.match(self._text, start)):
            self._at = found.end()
            return _years_of_range(found[1])
        if not value:
            return self._value_after(name, word)
        if name in _YEARS:
            return read_years(value)
        if name not in FIELDS:
            _refuse(
                f"There is no field {one_line(name, 40)}. The fields are {_SHOWN_FIELDS}. If you search for the words "
                f'with the colon, put them in quotation marks: "{one_line(word, 60)}"'
            )
        if value.startswith("-"):
            _refuse(f"The minus belongs before the field: write -{name}:{one_line(value[1:], 60) or 'oak'}")
        return self._words(value, FIELDS[name], word)

    def _value_after(self, name: str, word: str) -> Query:
        """The value of a field: brackets, a phrase, or a word. Blanks may stand before it."""
        if name not in FIELDS and not (name in _YEARS and _YEAR_AHEAD.match(self._text, self._at)):
            # The colon of a title that a person pasted.
            return self._words(word, None)
        token = self._peek()
        if token is None or token[0] == ")" or token[0] in (*_ANY, "AND", "NOT"):
            example = "year:2019" if name in _YEARS else "title:beech"
            _refuse(f"The field {name} has no value: write it after the colon, as in {example}")
        self._at = token.end()
        if token[0] == "(":
            return _in_field(self._in_brackets(token.start()), name)
        value = self._phrase(token.start()) if token["phrase"] else token[0]
        if name in _YEARS:
            return read_years(value)
        if not token["phrase"]:
            _refuse_foreign_marks(value)
        return self._words(value, FIELDS[name], f"{word}{value}")

    def _words(self, text: str, field: str | None, shown: str = "") -> Query:
        """The words of a text, which stand one after another."""
        text = _NOT_INDEXED.sub("", text)
        phrases = searched(text)
        self._number += sum(map(len, phrases))
        if self._number > _MOST_WORDS:
            raise QueryError(f"The query has more than {_MOST_WORDS} words: leave some out.")
        if not phrases and field is not None:
            _refuse(f"{one_line(shown, 60)} has no letter and no digit to search for")
        found = _together([Words(tuple(phrase), text, field) for phrase in phrases])
        if field is not None and field in _CODES:
            return _with_code(found, text, field)
        plain = _plain_identifier(text) if field in (None, "identifier") else None
        if plain is None:
            return found
        # A full text may have the identifier as the person wrote it. The metadata have its plain form.
        return AnyOf((found, *(Words(tuple(phrase), plain, "identifier") for phrase in searched(plain))))


def _refuse_foreign_marks(word: str) -> None:
    """Raises QueryError for the marks of other search engines, which would find nothing here."""
    shown = one_line(word, 60)
    if _WILDCARD.search(word):
        _refuse(f"There are no wildcards in {shown}: write the whole word, or several with OR between them")
    if _WEIGHT.search(word):
        _refuse(f"There are no weights and no similar words in {shown}: write the word without ^ and ~")
    if word.startswith("!") and word[1:2].isalpha():
        _refuse(f'Write NOT {shown[1:]} to leave outputs out. If you search for {shown}, write "{shown}"')
    if (found := _WRONG_COLON.fullmatch(word)) and found[1].lower() in _NAMES:
        shape = "year:2019, year:2010.. or year:..2020" if found[1].lower() in _YEARS else f"{found[1]}:{found[2]}"
        _refuse(f"A field has a colon: write {one_line(shape, 80)}")


def _plain_identifier(text: str) -> str | None:
    """An identifier in the form that the index has; None if the text is none, or has this form."""
    if _IN_ADDRESS.match(text) is None:
        return None
    scheme, plain = identified(text)
    known = (text.lower(), text.lower().removeprefix("https://doi.org/"))
    return None if scheme in ("other", "url", "urn") or plain.lower() in known else plain


def _with_code(query: Query, text: str, field: str) -> Query:
    """The query for a language or a licence as it was written, or for its code, which the index has."""
    code = _CODES[field](text)
    if code is None or code == text:
        return query
    return AnyOf((query, *(Words(tuple(phrase), code, field) for phrase in searched(code))))


def _together(parts: Sequence[Query]) -> Query:
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _in_field(query: Query, name: str) -> Query:
    """The query with the field of this name for its words that have none. Raises QueryError if they are no years."""
    match query:
        case Words(terms, text, None) if name in _YEARS:
            return read_years(text)
        case Words(terms, text, None):
            found = Words(terms, text, FIELDS[name])
            return _with_code(found, text, FIELDS[name]) if FIELDS[name] in _CODES else found
        case All(parts):
            return All(tuple(_in_field(part, name) for part in parts))
        case AnyOf(parts):
            return AnyOf(tuple(_in_field(part, name) for part in parts))
        case Without(part):
            return Without(_in_field(part, name))
        case _:
            return query
