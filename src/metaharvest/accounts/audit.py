"""The audit: who decided what, and when. An entry is written in the transaction of the change, and never changed.

This module alone writes the table audit_entry; queries/decisions.py reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY
from datetime import date, datetime
from typing import Any

from sqlalchemy.orm import Session

from metaharvest.database.models import AuditEntry
from metaharvest.model.requests import Actor
from metaharvest.model.values import frozen

_LONGEST_ACTOR = 320

Values = Mapping[str, Any]


@frozen
class Decision:
    """A decision: the id of an action, its subject (kind and name), the changed values before and after, the reason.

    The values hold no secrets.
    """

    action: str
    kind: str
    subject: str
    site_id: int | None = None
    _: KW_ONLY
    before: Values | None = None
    after: Values | None = None
    reason: str | None = None


def record(session: Session, decision: Decision, actor: Actor, now: datetime) -> None:
    """Write an entry; the caller commits it together with the change."""
    session.add(
        AuditEntry(
            at=now,
            actor=actor.name[:_LONGEST_ACTOR],
            via=actor.via,
            action=decision.action,
            subject_kind=decision.kind,
            subject=decision.subject,
            site_schedule_id=decision.site_id,
            before_values=_json(decision.before),
            after_values=_json(decision.after),
            reason=decision.reason or None,
        )
    )


def changed(before: Values, after: Values) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that differ, before and after; a missing value is None."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}


def _json(values: Values | None) -> str | None:
    return None if values is None else json.dumps(values, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, date):
        return value.isoformat()
    return sorted(map(str, value)) if isinstance(value, (set, frozenset)) else str(value)
