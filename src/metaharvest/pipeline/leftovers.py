"""Files without a row: the transaction that deletes the last row of a file notes it; `tidy` deletes it afterwards.

So no file stays, even if the process is killed in between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import PipelineLeftover
from metaharvest.database.rows import insert_rows
from metaharvest.database.statements import rows_with
from metaharvest.pipeline.file_store import UNCONFIRMED_FOR, FileStore
from metaharvest.pipeline.stage import Context

_TABLE = Base.metadata.tables[PipelineLeftover.__tablename__]

Used = Callable[[Session, Sequence[str]], Collection[str]]
"""The digests, among some, that rows name."""

Remove = Callable[[str], bool]
"""Deletes the file with a digest; False if it stays for now: the transaction of a new row may be under way."""


def note(session: Session, kind: str, digests: Collection[str]) -> None:
    """Note files of a kind whose rows were deleted."""
    query = select(_TABLE.c.sha256).where(_TABLE.c.kind == kind)
    known = {row[0] for row in rows_with(session, query, _TABLE.c.sha256, sorted(digests))}
    if new := [{"kind": kind, "sha256": each} for each in sorted(digests) if each not in known]:
        insert_rows(session.connection(), _TABLE, new)


def settle(context: Context, store: FileStore, used: Used) -> None:
    """Confirm the files that rows name. Delete the files that no row names, and whose writer is taken for dead."""
    ages = dict(store.unconfirmed())
    with context.reading() as session:
        known = {each for some in batches(sorted(ages)) for each in used(session, some)}
    for sha256, age in ages.items():
        is_abandoned = sha256 not in known and age >= UNCONFIRMED_FOR
        if is_abandoned:
            store.delete(sha256)
        if is_abandoned or sha256 in known:
            store.confirm(sha256)


def delete_unused(context: Context, kind: str, used: Used, remove: Remove) -> None:
    """Delete the noted files of a kind that no row names. A file that cannot be deleted stays noted."""
    with context.reading() as session:
        noted = list(session.scalars(select(_TABLE.c.sha256).where(_TABLE.c.kind == kind)))
    for some in batches(noted):
        with context.reading() as session:
            still_used = used(session, some)
        done = [each for each in some if each in still_used or remove(each)]
        if done:
            with context.writing() as session:
                session.execute(delete(_TABLE).where(_TABLE.c.kind == kind, _TABLE.c.sha256.in_(done)))
