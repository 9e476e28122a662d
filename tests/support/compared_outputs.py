"""Outputs of documents, for tests of duplicates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, insert
from sqlalchemy.orm import Session

from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import OutputRecord

NOW = datetime(2026, 11, 20, tzinfo=UTC)

Output = Mapping[str, Any]


def an_output(title: str, family: str = "Rivera", year: int | None = 2020, doi: str | None = None) -> Output:
    made: dict[str, Any] = {"titles": [{"text": title}], "creators": [{"name": f"{family}, A.", "family": family}]}
    if doi:
        made["identifiers"] = [{"scheme": "doi", "value": doi}]
    return {**made, "year": year} if year else made


def put(session: Session, outputs: Mapping[int, Output]) -> None:
    """The outputs of documents; documents whose numbers share the tens are formats of one item."""
    documents = Base.metadata.tables["catalogue_document"]
    same = {"document_type": "dc", "revision": 1, "sha256": "", "title": "", "deleted": False, "changed_at": NOW}
    for number, output in outputs.items():
        names = {"document_id": f"d.{number}", "item_identifier": f"item-{number // 10}", "change_seq": number}
        origin = "o" if number >= 10 else None
        session.execute(insert(documents).values(catalogue_document_id=number, origin=origin, **names, **same))
        change(session, number, output)


def change(session: Session, number: int, output: Output) -> None:
    session.execute(delete(OutputRecord).where(OutputRecord.catalogue_document_id == number))
    row = {"catalogue_document_id": number, "revision": 1, "version": 1, "content": json.dumps(output)}
    session.execute(insert(OutputRecord).values(row))
