"""The rows of the table `output_file`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import OutputFile, OutputText
from metaharvest.database.statements import delete_with, rows_with
from metaharvest.model.values import frozen
from metaharvest.pipeline import leftovers

KIND = "file"
"""The kind of these files among the leftovers."""


@frozen
class StoredFile:
    """The file of an output as its row has it: see OutputFile."""

    url: str
    final_url: str
    found_by: str
    sha256: str
    media_type: str
    size: int
    kept: bool
    licence: str | None
    etag: str | None
    last_modified: str | None


_FILES = Base.metadata.tables[OutputFile.__tablename__]
_COLUMNS = [getattr(OutputFile, each.name) for each in fields(StoredFile)]


def files_of(session: Session, numbers: Collection[int]) -> Mapping[int, StoredFile]:
    """The best file of each of these documents that has one."""
    query = select(OutputFile.catalogue_document_id, *_COLUMNS).where(
        OutputFile.catalogue_document_id.in_(numbers), OutputFile.rank == 0
    )
    return {number: StoredFile(*values) for number, *values in session.execute(query)}


def read_texts(session: Session, digests: Collection[str]) -> Sequence[tuple[str, str]]:
    """The digests of these files that have a text, each with the digest of the text."""
    query = select(OutputText.file_sha256, OutputText.text_sha256).where(OutputText.file_sha256.in_(digests))
    return [(file, text) for file, text in session.execute(query)]


def used(session: Session, digests: Sequence[str]) -> Collection[str]:
    """The files, among these, that a row names."""
    return {row[0] for row in rows_with(session, select(_FILES.c.sha256), _FILES.c.sha256, digests)}


def replace_files(session: Session, files: Mapping[int, StoredFile | None], now: datetime) -> None:
    """Make these the files of the documents with these numbers; None: the document has none any more."""
    remove_files(session, files, {number: each.sha256 for number, each in files.items() if each is not None})
    known = {row.catalogue_document_id: row for row in _rows(session, files)}
    for number, file in files.items():
        if file is None:
            continue
        row = known.get(number)
        if row is None:
            session.add(OutputFile(catalogue_document_id=number, rank=0, fetched_at=now, **asdict(file)))
            continue
        row.fetched_at = now
        for name, value in asdict(file).items():
            setattr(row, name, value)
    session.flush()


def remove_files(session: Session, numbers: Iterable[int], except_for: Mapping[int, str] | None = None) -> None:
    """Delete the files of these documents, except for these digests; the bytes are deleted afterwards, by `tidy`."""
    stays = except_for or {}
    old = [row for row in _rows(session, numbers) if stays.get(row.catalogue_document_id) != row.sha256]
    delete_with(session, _FILES.c.output_file_id, [row.output_file_id for row in old])
    leftovers.note(session, KIND, {row.sha256 for row in old})


def _rows(session: Session, numbers: Iterable[int]) -> list[OutputFile]:
    return [row[0] for row in rows_with(session, select(OutputFile), OutputFile.catalogue_document_id, numbers)]
