"""Works: pairs of outputs that a person should look at, the work of a document, related outputs, and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from metaharvest.errors import IndexUnavailable, NoIndex, RequestError, UnknownDocument
from metaharvest.queries.works import newest_decisions, work_of
from metaharvest.services import works
from metaharvest.services.search import OutputSearch
from metaharvest.services.works import WorkAnswer
from metaharvest.web.console.defence import path_of
from metaharvest.web.console.visit import Visit

_PATH = "/console/works"
_ON_A_PAGE = 20
_NEWEST = 20
_MOST_PAIRS = 100
_UNDO = "undo"
_CHOICES = (
    (WorkAnswer.SAME.value, "they are the same output"),
    (WorkAnswer.DIFFERENT.value, "they are different outputs"),
    (WorkAnswer.RELATED.value, "they are related"),
    (WorkAnswer.UNRELATED.value, "they are not related"),
)
_SENTENCES = {
    WorkAnswer.SAME: "{} and {} are the same output.",
    WorkAnswer.DIFFERENT: "{} and {} are different outputs.",
    WorkAnswer.RELATED: "{} and {} are related.",
    WorkAnswer.UNRELATED: "{} and {} are not related.",
}


def show_pairs(visit: Visit) -> Response:
    """The pairs that wait for an answer, and the newest answers."""
    after = visit.query.get("after", "")
    page = works.to_look_at(visit.harvester, after, _ON_A_PAGE)
    return visit.render(
        "works.html",
        pairs=page.pairs,
        decided=[] if after else visit.harvester.read(newest_decisions, _NEWEST),
        may_decide=_may_decide(visit),
        first=visit.link(_PATH) if after else "",
        next=visit.link(_PATH, after=page.next) if page.next else "",
    )


def show(visit: Visit) -> Response:
    """The work of a document, its pairs, and its related outputs."""
    document_id = visit.path["document"]
    work = visit.harvester.read(work_of, document_id)
    related, why_not = _related(visit, document_id)
    its = next((each for each in work.outputs if each.document_id == document_id), None)
    return visit.render(
        "work.html",
        document_id=document_id,
        title=(its and its.title) or document_id,
        work=work,
        pairs=work.pairs[:_MOST_PAIRS],
        number_left_out=len(work.pairs[_MOST_PAIRS:]),
        related=related,
        why_not=why_not,
        choices=_CHOICES,
        may_decide=_may_decide(visit),
    )


def decide(visit: Visit) -> Response:
    """Decide about this document and another one, or take a decision back."""
    form, first = visit.form, visit.path["document"]
    other, said = form.text("other"), form.text("answer")
    if not other:
        raise RequestError("Name the other document.")
    if said != _UNDO and said not in list(WorkAnswer):
        raise RequestError("Choose one of the answers.")
    answer = None if said == _UNDO else WorkAnswer(said)
    kind = form.text("kind") or None
    works.decide(visit.harvester, first, other, answer, form.text("reason"), kind)
    if answer is None:
        notice = f"The decision about {first} and {other} is taken back: the rules decide again."
    else:
        notice = f"Your decision holds: {_SENTENCES[answer].format(first, other)}"
    return visit.go_back(form.text("back") or path_of(_PATH, first), notice)


def _related(visit: Visit, document_id: str) -> tuple[Sequence[Mapping[str, Any]], str]:
    """The related outputs; if they cannot be found, the reason."""
    try:
        return OutputSearch(visit.harvester).recommend(document_id), ""
    except UnknownDocument:
        return [], "The next run of the pipeline brings the document into the search index."
    except (NoIndex, IndexUnavailable) as error:
        return [], str(error)


def _may_decide(visit: Visit) -> bool:
    return visit.may_open(_PATH, "document", method="POST")
