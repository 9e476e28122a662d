"""Changes of current documents: each one gets the next number of the change feed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, update
from sqlalchemy.orm import Session

from metaharvest.catalogue.change_feed import take_numbers
from metaharvest.catalogue.current import DOCUMENTS

THIS_DOCUMENT = update(DOCUMENTS).where(DOCUMENTS.c.catalogue_document_id == bindparam("this"))


def move(session: Session, numbers: Sequence[int], **values: Any) -> None:
    """Set these values of the documents with these numbers, and note the change."""
    taken = take_numbers(session, len(numbers))
    same = {"changed_at": taken.at, **values}
    rows = [{"this": number, "change_seq": seq, **same} for seq, number in enumerate(numbers, taken.first)]
    session.connection().execute(THIS_DOCUMENT, rows)
