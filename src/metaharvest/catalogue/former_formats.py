"""The former formats of documents: harvesters of a format learn that a record no longer has it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import bindparam, delete
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, CatalogueFormerFormat
from metaharvest.database.rows import insert_rows
from metaharvest.model.namespaces import OAI_DC

FORMER = Base.metadata.tables[CatalogueFormerFormat.__tablename__]
_FORGET = delete(FORMER).where(
    FORMER.c.catalogue_document_id == bindparam("this"), FORMER.c.document_type == bindparam("type")
)


def note_formats(session: Session, changed: Mapping[int, tuple[str, str]], at: datetime) -> None:
    """Note the former and the present type of documents, by number, whose types have changed.

    Every item is there in Dublin Core, whatever its formats are.
    """
    connection = session.connection()
    connection.execute(_FORGET, [{"this": number, "type": present} for number, (_, present) in changed.items()])
    left = {number: former for number, (former, _) in changed.items() if former not in ("", OAI_DC)}
    if left:
        rows = [{"catalogue_document_id": number, "document_type": former} for number, former in left.items()]
        insert_rows(connection, FORMER, rows, {"changed_at": at})
