"""Works: show the outputs that are the same, list pairs that a person should look at, and decide about two outputs."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy.orm import Session

from metaharvest.accounts.audit import Decision
from metaharvest.database.pipeline_models import OutputDecision
from metaharvest.errors import RequestError
from metaharvest.model.values import frozen
from metaharvest.pipeline import steps
from metaharvest.pipeline.duplicates import tables
from metaharvest.pipeline.duplicates.tables import DUPLICATE, RELATED
from metaharvest.pipeline.stage import StageName
from metaharvest.queries import works as stored
from metaharvest.queries.works import LookPage, WorkRecord
from metaharvest.services.harvester import Harvester
from metaharvest.text import clean, whole_number

_LONGEST_NAME = 255
_NOBODY = "a person of the installation"


class WorkAnswer(StrEnum):
    """What a person may say of two outputs."""

    SAME = "same"
    DIFFERENT = "different"
    RELATED = "related"
    UNRELATED = "unrelated"

    @property
    def kind(self) -> str:
        """The kind of the decision: about duplicates, or about what is related."""
        return DUPLICATE if self in (WorkAnswer.SAME, WorkAnswer.DIFFERENT) else RELATED


@frozen
class WorkDecision:
    """The decision of a person about two documents, by document id.

    `answer` None takes earlier decisions back: both kinds (DUPLICATE and RELATED), or only one of this `kind`.
    """

    first: str
    second: str
    answer: WorkAnswer | None
    reason: str = ""
    kind: str | None = None


def to_look_at(harvester: Harvester, after: str, limit: int) -> LookPage:
    """The pairs that a person should look at. `after` is `next` of the page before. Raises RequestError."""
    place = _place(after)
    return harvester.read(stored.pairs_to_look_at, place, limit)


def decide(harvester: Harvester, wanted: WorkDecision) -> WorkRecord:
    """Decide about two outputs; returns the work of the first one. The decision holds whatever the rules say later.

    Raises MetaharvestError if a document is unknown, RequestError if both are one, or nothing was decided that could
    be taken back; DatabaseError.
    """
    with harvester.writing() as session:
        first, second = sorted(stored.number_of(session, each) for each in (wanted.first, wanted.second))
        if first == second:
            raise RequestError("Name two different documents.")
        before = _write(session, harvester, (first, second), wanted)
        changed = tables.arrange(session, [first, second])
        # A stage under way may have read the tables before: it does both outputs again.
        steps.wake_known(session, StageName.DUPLICATES, [first, second])
        steps.wake_known(session, StageName.INDEX, sorted(changed))
        was, is_now = ({"other": wanted.second, "answer": answer} for answer in (before, wanted.answer))
        reason = clean(wanted.reason)
        decision = Decision("works.decide", "document", wanted.first, before=was, after=is_now, reason=reason)
        harvester.audit(session, decision)
    return harvester.read(stored.work_of, wanted.first)


def _write(session: Session, harvester: Harvester, pair: tuple[int, int], wanted: WorkDecision) -> str | None:
    """Store a decision, or remove the decisions about both outputs; returns the answer before."""
    kind = wanted.answer.kind if wanted.answer else wanted.kind
    kinds = (kind,) if kind else (DUPLICATE, RELATED)
    rows = [row for kind in kinds if (row := session.get(OutputDecision, (*pair, kind)))]
    before = ", ".join(each.answer for each in rows) or None
    if wanted.answer is None:
        if not rows:
            raise RequestError(f"Nobody has decided about {wanted.first} and {wanted.second}: nothing was changed.")
        for each in rows:
            session.delete(each)
    else:
        row = rows[0] if rows else OutputDecision(catalogue_document_id=pair[0], other_id=pair[1], kind=kind)
        row.answer, row.reason = wanted.answer.value, clean(wanted.reason) or None
        row.decided_by, row.decided_at = (harvester.actor.name or _NOBODY)[:_LONGEST_NAME], harvester.now()
        session.add(row)
    session.flush()
    return before


def _place(after: str) -> tuple[int, int]:
    if not after:
        return 0, 0
    first, second = (whole_number(each) for each in after.partition("-")[::2])
    if first is None or second is None:
        raise RequestError("--after takes the place that the page before ends with.")
    return first, second
