"""The tables of the pipeline. Each has the documents by `catalogue_document_id`, the number in the catalogue."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import BigInteger, String

from metaharvest.database.base import BYTES, DOUBLE, KEY, TABLE, TEXT, TEXTS, Base


class PipelineFeed(Base):
    """How far a reader of the change feed has come: the pipeline, or the hook of another program."""

    __table_args__ = TEXTS

    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    change_seq: Mapped[int] = mapped_column(BigInteger)
    moved_at: Mapped[datetime]


class PipelineStage(Base):
    """The version of a stage for which its documents were done, or wait to be done."""

    __table_args__ = TEXTS

    stage: Mapped[str] = mapped_column(String(32), primary_key=True)
    version: Mapped[int]


class PipelineStep(Base):
    """How far a document has come at a stage: see StepState. `revision` and `version` are from the last result.

    `woken` counts the wakes of the step: a step that was woken again while a stage worked on it stays waiting. `rule`
    and `message` describe a failure; the next try is at `retry_at` or later. `attempts` counts failures in a row.
    """

    __table_args__ = (
        Index("ix_pipeline_step_state", "stage", "state", "catalogue_document_id"),
        Index("ix_pipeline_step_retry", "stage", "retry_at"),
        Index("ix_pipeline_step_ended", "stage", "ended_at"),
        TEXTS,
    )

    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    stage: Mapped[str] = mapped_column(String(32), primary_key=True)
    state: Mapped[str] = mapped_column(String(16))
    woken: Mapped[int] = mapped_column(BigInteger)
    revision: Mapped[int | None] = mapped_column(BigInteger)
    version: Mapped[int | None]
    rule: Mapped[str | None] = mapped_column(String(64))
    message: Mapped[str | None] = mapped_column(TEXT)
    attempts: Mapped[int]
    retry_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class OutputRecord(Base):
    """The output that cleaning made of a document, as JSON: see metaharvest.model.outputs."""

    __tablename__ = "output"
    __table_args__ = TEXTS

    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    revision: Mapped[int] = mapped_column(BigInteger)
    version: Mapped[int]
    year: Mapped[int | None]
    doi: Mapped[str | None] = mapped_column(String(255), index=True)
    content: Mapped[str] = mapped_column(TEXT)


class OutputTitle(Base):
    """A key of a title of an output, by which references to it are found: see metaharvest.pipeline.title_keys."""

    __table_args__ = (Index("ix_output_title_document", "catalogue_document_id"), TEXTS)

    title_key: Mapped[str] = mapped_column(String(64), primary_key=True)
    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)


class OutputFile(Base):
    """A file of an output: where it was found, and what it is. `kept`: the folder has its bytes, by `sha256`.

    `url` is the address in the record, `final_url` the address of the file. `found_by` is the way to it. `rank` 0 is
    the best file of the output. `etag` and `last_modified` are for the next request.
    """

    __table_args__ = (Index("ix_output_file_document", "catalogue_document_id", "rank"), TABLE)

    output_file_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    catalogue_document_id: Mapped[int] = mapped_column(KEY)
    rank: Mapped[int]
    url: Mapped[str] = mapped_column(TEXT)
    final_url: Mapped[str] = mapped_column(TEXT)
    found_by: Mapped[str] = mapped_column(String(64))
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    media_type: Mapped[str] = mapped_column(String(100))
    size: Mapped[int] = mapped_column(BigInteger)
    kept: Mapped[bool]
    licence: Mapped[str | None] = mapped_column(TEXT)
    etag: Mapped[str | None] = mapped_column(TEXT)
    last_modified: Mapped[str | None] = mapped_column(String(100))
    fetched_at: Mapped[datetime]


class OutputText(Base):
    """The text of an output, from the file with the digest `file_sha256`; the folder has it by `text_sha256`."""

    __table_args__ = TEXTS

    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    version: Mapped[int]
    file_sha256: Mapped[str] = mapped_column(String(64), index=True)
    text_sha256: Mapped[str] = mapped_column(String(64), index=True)
    characters: Mapped[int]
    pages: Mapped[int | None]
    language: Mapped[str] = mapped_column(String(16))
    language_score: Mapped[float | None] = mapped_column(DOUBLE)


class OutputReference(Base):
    """A reference in the text of an output. `matched_id` is the document of the catalogue that it names.

    `method` says how that, or the DOI, is known: see metaharvest.pipeline.extraction.
    """

    __table_args__ = (Index("ix_output_reference_document", "catalogue_document_id", "position"), TABLE)

    output_reference_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    catalogue_document_id: Mapped[int] = mapped_column(KEY)
    position: Mapped[int]
    raw: Mapped[str] = mapped_column(TEXT)
    doi: Mapped[str | None] = mapped_column(String(255), index=True)
    matched_id: Mapped[int | None] = mapped_column(KEY, index=True)
    method: Mapped[str | None] = mapped_column(String(32))
    score: Mapped[float | None] = mapped_column(DOUBLE)


class LookupAnswer(Base):
    """The answer of a service to a request about a reference, by the digest of the request."""

    __table_args__ = TEXTS

    request_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    answer: Mapped[str] = mapped_column(TEXT)
    answered_at: Mapped[datetime]


class PipelineLeftover(Base):
    """A file of the pipeline that is deleted if no row names it: see metaharvest.pipeline.leftovers."""

    __table_args__ = TEXTS

    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)


class OutputBlock(Base):
    """A key that outputs which may be duplicates have in common."""

    __table_args__ = (Index("ix_output_block_document", "catalogue_document_id"), TEXTS)

    block: Mapped[str] = mapped_column(String(64), primary_key=True)
    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)


class OutputPair(Base):
    """The answer of the rules about two outputs: same, version or look; `reason` says why.

    The first number is the lower one. `method` is identifier or title.
    """

    __table_args__ = (
        Index("ix_output_pair_other", "other_id"),
        Index("ix_output_pair_answer", "answer", "catalogue_document_id", "other_id"),
        TEXTS,
    )

    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    other_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    answer: Mapped[str] = mapped_column(String(16))
    method: Mapped[str] = mapped_column(String(16))
    score: Mapped[float] = mapped_column(DOUBLE)
    reason: Mapped[str] = mapped_column(TEXT)


class OutputDecision(Base):
    """The answer of a person about two outputs; it holds whatever the rules say. `kind` is duplicate or related."""

    __table_args__ = (Index("ix_output_decision_other", "other_id"), TEXTS)

    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    other_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    answer: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str | None] = mapped_column(TEXT)
    decided_by: Mapped[str] = mapped_column(String(255))
    decided_at: Mapped[datetime]


class OutputWork(Base):
    """The work that an output belongs to: `work_id` is the number of its first output."""

    __table_args__ = TEXTS

    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    work_id: Mapped[int] = mapped_column(KEY, index=True)


class OutputVector(Base):
    """The embedding of an output by the model with this name: 32-bit floats."""

    __table_args__ = TEXTS

    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    model: Mapped[str] = mapped_column(String(64))
    vector: Mapped[bytes] = mapped_column(BYTES)


PIPELINE_TABLES = tuple(each.__tablename__ for each in Base.__subclasses__() if each.__module__ == __name__)
"""The names of the tables of the pipeline."""
