"""The audit: the decisions of people, the newest first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import AuditEntry
from metaharvest.errors import MetaharvestError
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen
from metaharvest.queries.records import equalities
from metaharvest.queries.runs import site_number
from metaharvest.text import one_line


@frozen(kw_only=True)
class DecisionRecord:
    """A decision: who, by which way, what, and the changed values before and after.

    `action` is an id of model/actions.py, or a plain one of the same form.
    """

    decision_id: int
    at: datetime
    actor: str
    via: str
    action: str
    kind: str
    subject: str
    site_id: int | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    reason: str | None

    @property
    def changes(self) -> tuple[tuple[str, Any, Any], ...]:
        """Each value that is set, before and after."""
        before, after = self.before or {}, self.after or {}
        found = ((name, before.get(name), after.get(name)) for name in {**before, **after})
        return tuple(each for each in found if any(value not in (None, "", [], {}) for value in each[1:]))


@frozen
class DecisionFilter:
    """The selection of decisions; None: any. `since`: at this moment or later; `until`: before this moment."""

    site_id: int | None = None
    actor: str | None = None
    action: str | None = None
    since: datetime | None = None
    subject: str | None = None
    until: datetime | None = None


def decisions(
    session: Session, wanted: DecisionFilter, limit: int | None = None, after: int | None = None
) -> Iterator[DecisionRecord]:
    """The decisions, the newest first; the next page begins `after` the last decision of this one."""
    conditions = equalities(
        (AuditEntry.site_schedule_id, wanted.site_id),
        (AuditEntry.actor, wanted.actor),
        (AuditEntry.action, wanted.action),
        (AuditEntry.subject, wanted.subject),
    )
    if after is not None:
        conditions.append(AuditEntry.audit_entry_id < after)
    if wanted.since is not None:
        conditions.append(AuditEntry.at >= wanted.since)
    if wanted.until is not None:
        conditions.append(AuditEntry.at < wanted.until)
    rows = select(AuditEntry).where(*conditions).order_by(AuditEntry.audit_entry_id.desc()).limit(limit)
    for row in session.scalars(rows.execution_options(yield_per=500)):
        yield record_of(
            DecisionRecord,
            row,
            decision_id=row.audit_entry_id,
            kind=row.subject_kind,
            site_id=row.site_schedule_id,
            before=_values(row.before_values),
            after=_values(row.after_values),
        )


def number_of_site(session: Session, name: str) -> int:
    """The site of this name, registered or removed. Raises MetaharvestError if there was never such a site."""
    its = (AuditEntry.subject == name, AuditEntry.site_schedule_id.is_not(None))
    named = select(AuditEntry.site_schedule_id).where(*its)
    try:
        return site_number(session, name)
    except MetaharvestError:
        number = session.scalar(named.order_by(AuditEntry.audit_entry_id.desc()).limit(1))
        if number is None:
            raise
        return number


def _values(text: str | None) -> Mapping[str, Any] | None:
    return None if text is None else json.loads(text)


def value_in_words(value: object, longest: int = 500, empty: str = "none") -> str:
    """A value of the audit, or of a site, in one line of at most `longest` characters."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (tuple, list)):
        value = ", ".join(map(str, value))
    if isinstance(value, Mapping):
        value = json.dumps(value, ensure_ascii=False)
    return one_line(str(value), longest) if value not in (None, "") else empty
