"""Rows of the ledger, as they are written."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDocument
from metaharvest.ledger.rows import Columns, write_ledger
from support.journal_rows import new_database


def test_rows_are_written_again_after_a_transaction_that_the_database_ended() -> None:
    new: list[Columns] = [
        {
            "site_schedule_id": 1,
            "document_id": f"a.{each}",
            "revision": 1,
            "document_url": "u",
            "document_type": "t",
            "attempts": 0,
        }
        for each in (1, 2)
    ]
    with Session(new_database()) as session:
        write_ledger(session, new, [])
        keys = session.scalars(select(HarvestDocument.harvest_document_id)).all()
        session.commit()
        changed: list[Columns] = [
            {"harvest_document_id": keys[0], "title": "Rain", "attempts": 0},
            {"harvest_document_id": keys[1], "attempts": 2},
        ]
        for end in (session.rollback, session.commit):
            write_ledger(session, [], changed)
            end()
        rows = session.execute(select(HarvestDocument.document_id, HarvestDocument.title, HarvestDocument.attempts))
        assert [tuple(row) for row in rows] == [("a.1", "Rain", 0), ("a.2", None, 2)]
