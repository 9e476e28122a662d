"""Documents that an administrator has withdrawn: no harvest and no copy brings them into a target again.

Each is a row of document_withdrawal. The row stays until the withdrawal is taken back, even without its site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, DocumentWithdrawal
from metaharvest.model import Finding, Level, ListedDocument, Withdrawal

WITHDRAWN = "target.withdrawn"

_WITHDRAWALS = Base.metadata.tables[DocumentWithdrawal.__tablename__]
_COLUMNS = _WITHDRAWALS.c["document_id", "reason", "withdrawn_on", "erased"]
_ANY = select(_WITHDRAWALS.c.document_id).limit(1)
"""Mostly there is no withdrawal, and to name 100 documents takes several times as long."""

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
