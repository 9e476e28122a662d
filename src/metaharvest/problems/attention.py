"""The findings that need a correction or a decision, and the rules that have a meaning for the program."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import distinct, func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestLog, SiteProblem
from metaharvest.model import ATTENTION_OUTCOMES, Level

SHRANK, VANISHED, CHANGED_CONTENT = "list.shrank", "list.vanished", "list.changed-content"
EMPTY, FEWER = "oai.empty", "oai.fewer"
MISSING = "records.missing"
"""Rules of warnings that documents may be lost, or differ from their list. Of records that a complete list does not
name, only another one shows that they are back.
"""

LOST = "target.lost"
"""The rule of warnings that the target does not have the last documents of a site."""

MOVED = "records.moved"
"""The rule of warnings that a record has moved from one site of its source repository to another, with its document."""

MANY_DELETIONS = "records.many-deletions"
"""The rule of documents that wait for the confirmation of their deletion."""

SPLIT = "oai.split"
"""The rule of the note in the first report of a site that an upgrade has made of one with several sets."""

REPOSITORY_CHANGED = "oai.repository-changed"
"""The rule of warnings that a source repository describes itself differently than the last time."""

OTHER_SITE = "target.other-site"
"""The rule of documents that belong to another site than the one that lists them."""


IS_ATTENTION = or_(
    HarvestDetailLog.level == Level.ERROR.value,
    HarvestDetailLog.rule.in_([SHRANK, EMPTY, FEWER]),
    func.coalesce(HarvestLog.outcome, "").in_([kind.value for kind in ATTENTION_OUTCOMES]),
    HarvestLog.harvest_operation_code.in_(("DocDeferred", "DocDuplicate")),
)
"""True if a detail row (joined to its log row) is about a fault that keeps documents, or the list, out.

The reason why documents were put off, and the number of further duplicates, are on log rows without an outcome. A list
that lost much has most likely lost it by mistake.
"""


def claimed_documents(session: Session) -> Mapping[int, tuple[int, str]]:
    """By site, the number of its documents that belong to another site, and the first of them."""
    problem = SiteProblem
    query = (
        select(problem.site_schedule_id, func.count(distinct(problem.document_id)), func.min(problem.document_id))
        .where(problem.state == "open", problem.rule == OTHER_SITE, problem.document_id.is_not(None))
        .group_by(problem.site_schedule_id)
        .order_by(problem.site_schedule_id)
    )
    return {row[0]: (int(row[1]), str(row[2])) for row in session.execute(query)}
