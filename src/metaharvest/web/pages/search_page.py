"""The search page: a form, the outputs that were found, facets as links. It needs no JavaScript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from metaharvest.model.values import frozen
from metaharvest.services.search import FACETS, Answer, Question, Sort
from metaharvest.text import without_marks
from metaharvest.web.pages.addresses import page_path

_HEADINGS = {
    "site": "Site", "year": "Year", "type": "Type", "language": "Language", "licence": "Licence",
    "full_text": "Full text",
}  # fmt: skip
_MOST_CREATORS = 6
_BEGINNING = 300
"""Characters of an abstract without any of the words."""


@frozen
class Asked:
    """What a person asked on the page: the words, the value of each facet, the order, the place of a page."""

    text: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    sort: Sort = Sort.RELEVANCE
    cursor: str = ""

    @property
    def question(self) -> Question:
        """The question to the index."""
        values = {name: (value,) for name, value in self.values.items() if name != "year"}
        return Question(self.text, values, self.values.get("year", ""), self.sort, cursor=self.cursor or None)

    @property
    def href(self) -> str:
        """The address of this search."""
        order = {"sort": self.sort.value} if self.sort is not Sort.RELEVANCE else {}
        place = {"cursor": self.cursor} if self.cursor else {}
        return f"search?{urlencode({'q': self.text, **self.values, **order, **place})}"


def asked(parameters: Mapping[str, str]) -> Asked:
    """What these parameters of a request ask. Unknown ones are left out."""
    values = {name: value for name in FACETS if (value := parameters.get(name, "").strip())}
    sort = Sort.YEAR if parameters.get("sort") == Sort.YEAR else Sort.RELEVANCE
    return Asked(parameters.get("q", "").strip(), values, sort, parameters.get("cursor", ""))


def form_values(of: Asked) -> Mapping[str, Any]:
    """The values of the template for the form alone."""
    return {"asked": of, "chosen": _chosen(of), "answer": None, "problem": ""}


def answer_values(of: Asked, answer: Answer) -> Mapping[str, Any]:
    """The values of the template for the form and an answer."""
    return {
        **form_values(of),
        "answer": answer,
        "outputs": [_shown(each) for each in answer.outputs],
        "facets": _facets(of, answer),
        "orders": [(each.value, replace(of, sort=each, cursor="").href, each is of.sort) for each in Sort],
        "next": replace(of, cursor=answer.next_cursor).href if answer.next_cursor else "",
    }


def _chosen(of: Asked) -> Sequence[tuple[str, str, str]]:
    """The heading and the value of each facet that was chosen, and the search without it."""
    return [
        (_HEADINGS[name], value, replace(of, values=_without(of.values, name), cursor="").href)
        for name, value in of.values.items()
    ]


def _without(values: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {each: value for each, value in values.items() if each != name}


def _facets(of: Asked, answer: Answer) -> Sequence[tuple[str, Sequence[tuple[str, int, str]]]]:
    """The facets that were not chosen: each value with its number, and the search with it."""
    found = []
    for name in FACETS:
        if name not in of.values and (counts := answer.facets.get(name)):
            links = [
                (value, number, replace(of, values={**of.values, name: value}, cursor="").href)
                for value, number in counts.items()
            ]
            found.append((_HEADINGS[name], links))
    return found


def _shown(output: Mapping[str, Any]) -> Mapping[str, Any]:
    """An output as the template shows it."""
    creators, highlights = output["creators"], output["highlights"]
    shown = "; ".join(creators[:_MOST_CREATORS]) + (" et al." if len(creators) > _MOST_CREATORS else "")
    title, abstract = without_marks(output["title"] or ""), without_marks(output["abstract"] or "")
    beginning = abstract if len(abstract) <= _BEGINNING else f"{abstract[:_BEGINNING].rpartition(' ')[0]} …"
    return {
        "href": page_path(output["document_id"]),
        "title": Markup(highlights["title"]) if "title" in highlights else title or output["document_id"],
        "creators": shown,
        "facts": [str(output[name]) for name in ("year", "type", "site", "licence") if output[name]],
        "abstract": Markup(highlights["abstract"]) if "abstract" in highlights else beginning,
        "text": Markup(highlights["text"]) if "text" in highlights else "",
    }
