"""Works: show the outputs that are the same, list pairs that a person should look at, and decide about two outputs."""

from __future__ import annotations

from enum import StrEnum

from metaharvest.accounts.audit import Decision
from metaharvest.database.pipeline_models import OutputDecision
from metaharvest.errors import RequestError
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


def to_look_at(harvester: Harvester, after: str, limit: int) -> LookPage:
    """The pairs that a person should look at. `after` is `next` of the page before. Raises RequestError."""
    place = _place(after)
    return harvester.read(stored.pairs_to_look_at, place, limit)


def decide(
    harvester: Harvester, first: str, second: str, answer: WorkAnswer | None, reason: str = "", kind: str | None = None
) -> WorkRecord:
    """Decide about two outputs; returns the work of the first one. The decision holds whatever the rules say later.

    `answer` None takes earlier decisions back: both kinds (DUPLICATE and RELATED), or only one of this `kind`.

    Raises MetaharvestError if a document is unknown, RequestError if both are one, or nothing was decided that could
    be taken back; DatabaseError.
    """
    kind, reason = answer.kind if answer else kind, clean(reason)
    with harvester.writing() as session:
        pair = sorted(stored.number_of(session, each) for each in (first, second))
        if pair[0] == pair[1]:
            raise RequestError("Name two different documents.")
        kinds = (kind,) if kind else (DUPLICATE, RELATED)
        rows = [row for each in kinds if (row := session.get(OutputDecision, (*pair, each)))]
        before = ", ".join(each.answer for each in rows) or None
        if answer is not None:
            row = rows[0] if rows else OutputDecision(catalogue_document_id=pair[0], other_id=pair[1], kind=kind)
            row.answer, row.reason = answer.value, reason or None
            row.decided_by, row.decided_at = (harvester.actor.name or _NOBODY)[:_LONGEST_NAME], harvester.now()
            session.add(row)
        elif not rows:
            raise RequestError(f"Nobody has decided about {first} and {second}: nothing was changed.")
        else:
            for each in rows:
                session.delete(each)
        session.flush()
        changed = tables.arrange(session, pair)
        # A stage under way may have read the tables before: it does both outputs again.
        steps.wake_known(session, StageName.DUPLICATES, pair)
        steps.wake_known(session, StageName.INDEX, sorted(changed))
        was, is_now = ({"other": second, "answer": each} for each in (before, answer))
        decision = Decision("works.decide", "document", first, before=was, after=is_now, reason=reason)
        harvester.audit(session, decision)
    return harvester.read(stored.work_of, first)


def _place(after: str) -> tuple[int, int]:
    if not after:
        return 0, 0
    first, second = (whole_number(each) for each in after.partition("-")[::2])
    if first is None or second is None:
        raise RequestError("--after takes the place that the page before ends with.")
    return first, second
