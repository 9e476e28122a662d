"""Search: questions of people and programs to the index, and answers as JSON documents."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cache
from typing import Any

from sqlalchemy.orm import Session

from metaharvest.catalogue.selection import Hidden
from metaharvest.catalogue.stage_documents import gone_among
from metaharvest.errors import QueryError, UnknownDocument
from metaharvest.model.outputs import Access
from metaharvest.model.values import frozen
from metaharvest.pipeline.cleaning.languages import language_of
from metaharvest.pipeline.cleaning.licences import spdx_of
from metaharvest.pipeline.duplicates.vectors import nearest
from metaharvest.pipeline.search.contract import FACETS, Filters, Hiding, Hit, Place, Record, Search, Sort
from metaharvest.pipeline.search.highlights import LOOKED_AT, marker
from metaharvest.pipeline.search.query_language import Query, read_query, read_years, words_of
from metaharvest.pipeline.search.related import RELATED, ranked, reason_of, shared_terms, telling_terms
from metaharvest.pipeline.search.removals import Removals
from metaharvest.pipeline.search.stage import place_by, read_text
from metaharvest.pipeline.search.stage import rebuild as make_again
from metaharvest.pipeline.stage import Context
from metaharvest.queries.public_sites import published_among
from metaharvest.queries.works import decided_numbers, document_ids
from metaharvest.services.harvester import Harvester
from metaharvest.text import one_line, without_marks

__all__ = ["FACETS", "Sort"]

MOST_OUTPUTS = 100
DEEPEST = 10_000
"""The outputs that can be read in the order of relevance."""

_FACET_VALUES = 12
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d", re.ASCII)
_LONGEST_CURSOR = 500


@frozen
class Question:
    """What a person asks: the words, values of facets, a year or years such as `2010..2020`, and a page.

    `cursor` is the cursor of the page before.
    """

    text: str = ""
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    year: str = ""
    sort: Sort = Sort.RELEVANCE
    limit: int = 20
    cursor: str | None = None


_LOG = logging.getLogger(__name__)
_GENERAL_ADVICE = (
    "Nothing was found. All words have to be found, each in the same form. Check their spelling, leave some out, or "
    "write OR in capital letters between words of which one is enough."
)
_FIELD_ADVICE = (
    "A field name before a colon limits the search to that field, as in title:beech. It holds for one word: put "
    'several words in quotation marks, as in type:"journal article". If a title has a colon, put it in quotation marks.'
)
_YEAR_ADVICE = "To find outputs of the year {0}, write year:{0}."
_FILTER_ADVICE = "The search has filters: {}. Leave one out to find more."


@frozen
class Answer:
    """The answer: the number of all outputs that were found, a page of them, and the values of the facets."""

    total: int
    outputs: Sequence[Mapping[str, Any]]
    facets: Mapping[str, Mapping[str, int]]
    next_cursor: str | None
    advice: str | None = None
    """What to do if nothing was found."""


class OutputSearch:
    """The search of one installation, for several threads. `hidden` gives the sites and origins that are not published.

    Without it, answers have all outputs, without deleted and withheld documents.
    """

    def __init__(self, harvester: Harvester, hidden: Callable[[Session], Hidden] | None = None) -> None:
        self._harvester = harvester
        self._hidden = hidden
        settings = harvester.settings
        self._folder = settings.path(settings.pipeline.folder)
        self._place = place_by(settings)
        self._removals = Removals()

    @property
    def is_there(self) -> bool:
        """True if there is an index. A server is not asked; a folder that cannot be read counts as none."""
        try:
            return bool(self._harvester.settings.pipeline.search) or self._place.version() is not None
        except OSError as error:
            _log_once(f"The folder of the search index cannot be read: {error}")
            return False

    def search(self, question: Question) -> Answer:
        """Answer a question. Raises QueryError, NoIndex, IndexUnavailable, DatabaseError."""
        query = read_query(question.text)
        mark = _fingerprint(question)
        after = _place_of(question.cursor, mark) if question.cursor else None
        limit, seen = min(question.limit, MOST_OUTPUTS), after.seen if after is not None else 0
        wanted = Search(query, _filters(question), question.sort, limit + 1, after, True, self._hiding())
        if wanted.order is Sort.RELEVANCE:
            if seen + limit > DEEPEST:
                raise QueryError(
                    f"Only the first {DEEPEST:,} outputs can be read by relevance. Narrow the search, or sort by year."
                )
            wanted = replace(wanted, limit=min(wanted.limit, DEEPEST - seen))
        found = self._place.reader().search(wanted)
        hits, today = found.hits[:limit], self._today()
        outputs = [self._found(each, query, today) for each in self._published(hits)]
        # One hit more than a page shows the end. The total does not: it falls if outputs of earlier pages go.
        is_last = len(found.hits) < wanted.limit
        facets = {name: dict(list(found.facets[name].items())[:_FACET_VALUES]) for name in FACETS}
        facets["year"] = dict(sorted(facets["year"].items(), reverse=True))
        advice = None if found.total else _advice(question, query)
        return Answer(found.total, outputs, facets, None if is_last else _cursor(hits[-1].place, mark), advice)

    def output(self, document_id: str) -> Mapping[str, Any]:
        """All that the index has of an output. Raises UnknownDocument, NoIndex, IndexUnavailable, DatabaseError."""
        return _shown(self._record(document_id), self._today())

    def work(self, number: int) -> Mapping[str, Any]:
        """A work, with its outputs. Raises UnknownDocument, NoIndex, IndexUnavailable, DatabaseError."""
        search = Search(filters=Filters(work=number), limit=MOST_OUTPUTS, hiding=self._hiding())
        today = self._today()
        outputs = [_summary(each.record, today) for each in self._published(self._place.reader().search(search).hits)]
        if not outputs:
            raise UnknownDocument("There is no work with this number.")
        return {"work": number, "outputs": outputs}

    def recommend(self, document_id: str, limit: int = 10) -> Sequence[Mapping[str, Any]]:
        """Related outputs of other works, each with a reason, and the words that both have. Raises as `output` does.

        Decisions of people about related outputs hold.
        """
        record, today = self._record(document_id), self._today()
        number, most = record["number"], 3 * limit + 5
        terms = telling_terms(record, self._place.reader().frequencies)
        hits = {each.number: each.record for each in self._place.reader().more_like_this(terms, most, self._hiding())}
        with self._harvester.reading() as session:
            decided = decided_numbers(session, number, RELATED)
            near = nearest(session, number, most)
        found: dict[int, Mapping[str, Any]] = {}
        scores = ranked([each for each in hits if each != number], near, decided)
        for each, other in self._records(list(scores), hits):
            if len(found) == limit:
                break
            if other["work"] != record["work"]:
                shared = shared_terms(other, terms)
                reason = reason_of(shared, decided.get(each))
                about = {"score": scores[each], "shares": shared, "reason": reason}
                found.setdefault(other["work"], {**_summary(other, today), **about})
        return list(found.values())

    def _records(self, numbers: Sequence[int], known: Mapping[int, Record]) -> Iterator[tuple[int, Record]]:
        with self._harvester.reading() as session:
            ids = document_ids(session, [each for each in numbers if each not in known])
            published = self._among(session, list(known))
        for each in numbers:
            if each in published:
                yield each, known[each]
            elif each in ids:
                with suppress(UnknownDocument):
                    yield each, self._record(ids[each])

    def _record(self, document_id: str) -> Record:
        search = Search(filters=Filters(document_id=document_id), limit=1, hiding=self._hiding())
        for each in self._published(self._place.reader().search(search).hits):
            return each.record
        raise UnknownDocument(f"The index has no output with the id {one_line(document_id, 100)}.")

    def _hiding(self) -> Hiding:
        with self._harvester.reading() as session:
            hidden = None if self._hidden is None else self._hidden(session)
            numbers = self._removals.numbers(session, hidden)
        return Hiding(numbers=numbers) if hidden is None else Hiding(hidden.sites, hidden.origins, numbers)

    def _published(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """The hits that are published at this moment: an entry may come into the index while its document goes."""
        if not hits:
            return hits
        published = self._harvester.read(self._among, [each.number for each in hits])
        return [each for each in hits if each.number in published]

    def _among(self, session: Session, numbers: Sequence[int]) -> Collection[int]:
        """The documents among these that answers may have."""
        if self._hidden is None:
            return set(numbers) - gone_among(session, numbers)
        return published_among(session, numbers, self._hidden(session))

    def _today(self) -> str:
        return self._harvester.now().date().isoformat()

    def _found(self, hit: Hit, query: Query, today: str) -> Mapping[str, Any]:
        """An output that was found, with the places of its words."""
        record, highlights = hit.record, {}
        if marked := marker(query, "title").whole(without_marks(record["title"] or "")):
            highlights["title"] = marked
        if marked := marker(query, "abstract").snippet(without_marks(record["abstract"] or "")):
            highlights["abstract"] = marked
        text = record["full_text"] and read_text(self._folder, record["full_text"]["sha256"], LOOKED_AT)
        if text and (marked := marker(query, "text").snippet(without_marks(text))):
            highlights["text"] = marked
        return {**_summary(record, today), "score": hit.score, "highlights": highlights}


@cache
def _log_once(sentence: str) -> None:
    _LOG.warning("%s", sentence)


def rebuild(harvester: Harvester, stops: Callable[[], bool] = lambda: False) -> int | None:
    """Make the index again beside the present one; returns its number of outputs. None: `stops` stopped it.

    Raises MetaharvestError if a library is missing, IndexUnavailable, DatabaseError.
    """
    context = Context(harvester.engine, harvester.settings, harvester.now, stops)
    if not make_again(context):
        return None
    return place_by(harvester.settings).reader().size()


def _advice(question: Question, query: Query) -> str | None:
    """The advice for a question without a result; None if it has no words and no filters."""
    has_field = any(each.field not in (None, "identifier") for each in words_of(query))
    values = [f"{name} {value}" for name, some in question.values.items() for value in some]
    values += [f"year {question.year}"] if question.year else []
    year = next((each.text for each in words_of(query) if each.field is None and _YEAR.fullmatch(each.text)), None)
    sentences = [
        _GENERAL_ADVICE if question.text.strip() not in ("", "*") else "",
        _FIELD_ADVICE if has_field else "",
        _YEAR_ADVICE.format(year) if year else "",
        _FILTER_ADVICE.format(one_line(", ".join(values), 200)) if values else "",
    ]
    return " ".join(filter(None, sentences)) or None


def _filters(question: Question) -> Filters:
    values = {name: list(values) for name, values in question.values.items() if name in FACETS and values}
    for name, code_of in (("language", language_of), ("licence", spdx_of)):
        values.get(name, []).extend(code for each in question.values.get(name, ()) if (code := code_of(each)))
    years = read_years(question.year) if question.year else None
    return Filters(values, years.first if years else None, years.last if years else None)


def _summary(record: Record, today: str) -> dict[str, Any]:
    names = ("document_id", "work", "title", "abstract", "year", "site", "type", "language", "access", "doi")
    return {
        **{name: record[name] for name in names},
        "access": _access(record, today),
        "creators": [each["name"] for each in record["creators"]],
        "licence": record["licence"] and record["licence"]["spdx"],
        "has_full_text": record["full_text"] is not None,
    }


def _access(record: Record, today: str) -> Access | None:
    """The access on this ISO date: an embargo may have ended since the output came into the index."""
    return Access(record["access"]).as_of(today, record["embargo_until"]) if record["access"] else None


def _shown(record: Record, today: str) -> Mapping[str, Any]:
    """An output alone, without numbers of the database."""
    left_out = ("number", "site_id", "change_seq", "full_text", "format", "licence")
    full_text, licence = record["full_text"], record["licence"]
    return {
        **{name: value for name, value in record.items() if name not in left_out},
        "document_type": record["format"],
        "access": _access(record, today),
        "licence": licence and licence["spdx"],
        **({"rights": licence} if licence else {}),
        "has_full_text": full_text is not None,
        "characters": full_text["characters"] if full_text else None,
    }


# -- cursors: a place in the answers to one question


def _fingerprint(question: Question) -> str:
    """The same for all pages of a question."""
    parts = (question.text, sorted((name, list(each)) for name, each in question.values.items()), question.year)
    text = json.dumps([*parts, question.sort])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _cursor(place: Place, mark: str) -> str:
    text = json.dumps([mark, place.value, place.number, place.seen], separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _place_of(cursor: str, mark: str) -> Place:
    """The place in a cursor. Raises QueryError for a cursor of another question, and for any other text."""
    try:
        if len(cursor) > _LONGEST_CURSOR:
            raise ValueError
        found = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        its_mark, value, number, seen = found
        are_whole = type(number) is int and type(seen) is int and 0 <= number < 2**53 and 0 <= seen < 2**53
        if its_mark != mark or not (are_whole and type(value) in (int, float) and 0 <= value < 2**53):
            raise ValueError
    except (ValueError, TypeError, RecursionError) as error:
        raise QueryError("The cursor belongs to another search. Leave it out to begin with the first page.") from error
    return Place(value, number, seen)
