"""Documents that an administrator has withdrawn: no harvest and no copy brings them into a target again.

Each is a row of document_withdrawal. The row stays until the withdrawal is taken back, even without its site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlalchemy import Engine, bindparam, select
from sqlalchemy.orm import Session

from metaharvest.database.engine import database_errors, readers
from metaharvest.database.models import Base, DocumentWithdrawal
from metaharvest.model import Finding, Holding, Level, ListedDocument, Withdrawal
from metaharvest.model.actions import todo
from metaharvest.targets.base import Standing
from metaharvest.text import counted, one_line

WITHDRAWN = "target.withdrawn"

_WITHDRAWALS = Base.metadata.tables[DocumentWithdrawal.__tablename__]
_COLUMNS = _WITHDRAWALS.c["document_id", "reason", "withdrawn_on", "erased"]
_ANY = select(_WITHDRAWALS.c.document_id).limit(1)
"""Mostly there is no withdrawal, and to name 100 documents takes several times as long."""

_MOST_CHECKED = 50
"""Withdrawn documents that a target is asked for in a check: a DataONE node takes some 60 ms for each."""

_THESE = select(*_COLUMNS).where(_WITHDRAWALS.c.document_id.in_(bindparam("documents", expanding=True)))


def withdrawals_of(session: Session, document_ids: Sequence[str]) -> Mapping[str, Withdrawal]:
    """The withdrawn ones among these documents, by document id."""
    connection = session.connection()
    if connection.execute(_ANY).first() is None:
        return {}
    rows = connection.execute(_THESE, {"documents": list(document_ids)})
    asked = set(document_ids)
    # Compared here too: MariaDB ignores spaces at the end.
    return {row[0]: Withdrawal(row[1], row[2], bool(row[3])) for row in rows if row[0] in asked}


def withdrawn(document: ListedDocument, withdrawal: Withdrawal) -> Finding:
    """The warning about a withdrawn document that its site still lists."""
    found = withdrawn_document(document.document_id, withdrawal)
    return Finding(found.rule, found.message, found.remedy, Level.WARNING, line=document.line, docid=document.docid)


def withdrawn_document(document_id: str, withdrawal: Withdrawal) -> Finding:
    """The error about a withdrawn document that was about to enter a target."""
    return Finding(
        WITHDRAWN,
        f"The administrator withdrew {document_id} on {withdrawal.day}. The reason: {withdrawal.reason}",
        "The repository does not take it again. Take it out of your list, or ask the administrator.",
    )


def still_held(holdings: Callable[[Sequence[str]], Mapping[str, Holding]], engine: Engine) -> Iterator[Standing]:
    """The warning about withdrawn documents that a target with these `holdings` has; none if it has none.

    It has them if it was away when they were withdrawn, or if it was not the target of a site, or comes from a backup.
    The newest withdrawals are checked.

    Raises TargetError.
    """
    newest = select(_WITHDRAWALS.c.document_id).order_by(_WITHDRAWALS.c.withdrawn_at.desc()).limit(_MOST_CHECKED)
    with database_errors(engine), readers(engine)() as session:
        withdrawn_ids = list(session.scalars(newest))
    held = list(holdings(withdrawn_ids)) if withdrawn_ids else []
    if held:
        named = f"{counted(len(held), 'withdrawn document')}, such as {one_line(held[0])}"
        yield Standing("warning", f"The target still has {named}: delete it there with {todo('documents.withdraw')}.")
