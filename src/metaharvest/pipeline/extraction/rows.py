"""The rows of the tables `output_text` and `output_reference`, and the files and texts that rows name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime

from sqlalchemy import and_, or_, select, update
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import OutputFile, OutputReference, OutputText, PipelineStep
from metaharvest.database.rows import insert_rows
from metaharvest.database.statements import delete_with, rows_with
from metaharvest.model.mappings import picked
from metaharvest.model.outputs import Output
from metaharvest.model.values import frozen
from metaharvest.pipeline import leftovers, steps
from metaharvest.pipeline.extraction import crossref
from metaharvest.pipeline.extraction.citation import Reference
from metaharvest.pipeline.extraction.matching import Match
from metaharvest.pipeline.file_store import FileStore, FolderStore, delete_settled, open_store
from metaharvest.pipeline.stage import Context, Result, StageName, StepState
from metaharvest.pipeline.stored_outputs import read_outputs
from metaharvest.pipeline.text_language import Language

READ_FILE = "read file"
"""Among the leftovers: a file that is not to be kept, and whose text was taken."""

TEXT = "text"

_TEXTS = Base.metadata.tables[OutputText.__tablename__]
_REFERENCES = Base.metadata.tables[OutputReference.__tablename__]


@frozen
class KnownFile:
    """A file of an output, as far as this stage needs it."""

    sha256: str
    media_type: str
    kept: bool


@frozen
class KnownText:
    """The text of a file that the tables have, of a version of the rules."""

    file_sha256: str
    text_sha256: str
    version: int


@frozen
class Known:
    """The rows of a document."""

    files: Sequence[KnownFile]
    output: Output | None
    text: KnownText | None

    @property
    def dropped(self) -> Collection[str]:
        """The files that are not to be kept."""
        return [each.sha256 for each in self.files if not each.kept]


@frozen
class Extracted:
    """The text and the references of a file, by a version of the rules. `answers` are new answers of Crossref."""

    file_sha256: str
    text_sha256: str
    version: int
    characters: int
    pages: int | None
    language: Language
    references: Sequence[Reference]
    matches: Sequence[Match | None]
    answers: Mapping[str, str] = field(default_factory=dict)


@frozen
class Change:
    """The change of the rows of a document: they become the rows of `extracted`; None: they go.

    `stays`: they stay as they are. The same rules wrote them, or neither the file nor its text can be read at the
    moment. `dropped` are files that are not to be kept. `is_damaged`: a file or its text was damaged and is deleted, so
    that the file must be fetched again.
    """

    extracted: Extracted | None = None
    stays: bool = False
    dropped: Collection[str] = ()
    is_damaged: bool = False


def read_known(session: Session, numbers: Sequence[int]) -> Mapping[int, Known]:
    """What the tables have of these documents, of which some have no file."""
    files: defaultdict[int, list[KnownFile]] = defaultdict(list)
    of_file = (OutputFile.catalogue_document_id, OutputFile.sha256, OutputFile.media_type, OutputFile.kept)
    query = select(*of_file).where(OutputFile.catalogue_document_id.in_(numbers))
    rows = session.execute(query.order_by(OutputFile.catalogue_document_id, OutputFile.rank))
    for number, sha256, media_type, kept in rows:
        files[number].append(KnownFile(sha256, media_type, kept))
    outputs = read_outputs(session, files)
    of_text = select(*_TEXTS.c["catalogue_document_id", "file_sha256", "text_sha256", "version"])
    found = session.execute(of_text.where(_TEXTS.c.catalogue_document_id.in_(files)))
    texts = {number: KnownText(*text) for number, *text in found}
    return {number: Known(files.get(number, ()), outputs.get(number), texts.get(number)) for number in numbers}


def store(session: Session, results: Sequence[Result], now: datetime) -> None:
    """Change the rows of these documents. A result without a value has no file: its rows go."""
    changes = {each.document.number: each.value or Change() for each in results}
    _delete(session, [number for number, change in changes.items() if not change.stays])
    found = {number: change.extracted for number, change in changes.items() if change.extracted is not None}
    if found:
        insert_rows(session.connection(), _TEXTS, [_text_row(number, each) for number, each in found.items()])
    rows = [row for number, each in found.items() for row in _reference_rows(number, each)]
    if rows:
        insert_rows(session.connection(), _REFERENCES, rows)
    leftovers.note(session, READ_FILE, {digest for change in changes.values() for digest in change.dropped})
    damaged = [number for number, change in changes.items() if change.is_damaged]
    steps.wake_known(session, StageName.FULL_TEXT, damaged)
    crossref.store(session, {key: answer for each in found.values() for key, answer in each.answers.items()}, now)


def _text_row(number: int, found: Extracted) -> dict[str, object]:
    keys = "file_sha256 text_sha256 version characters pages language=language.code language_score=language.score"
    return {"catalogue_document_id": number, **picked(found, keys)}


def _reference_rows(number: int, found: Extracted) -> Iterator[dict[str, object]]:
    for position, (reference, match) in enumerate(zip(found.references, found.matches, strict=True), start=1):
        yield {
            "catalogue_document_id": number,
            "position": position,
            "raw": reference.raw,
            "doi": reference.doi or (match.work.doi if match else None),
            "matched_id": match.work.number if match else None,
            "method": match.method if match else None,
            "score": match.score if match else None,
        }


def remove(session: Session, numbers: Collection[int]) -> None:
    """Delete what the tables have of documents that are gone; references to them have no match any more."""
    _delete(session, numbers)
    for some in batches(sorted(numbers)):
        session.execute(
            update(_REFERENCES)
            .where(_REFERENCES.c.matched_id.in_(some))
            .values(matched_id=None, method=None, score=None)
        )


def _delete(session: Session, numbers: Collection[int]) -> None:
    number = _TEXTS.c.catalogue_document_id
    texts = rows_with(session, select(_TEXTS.c.text_sha256), number, sorted(numbers))
    leftovers.note(session, TEXT, {row[0] for row in texts})
    delete_with(session, number, numbers)
    delete_with(session, _REFERENCES.c.catalogue_document_id, numbers)


# -- files and texts


@frozen
class Stores:
    """The store of files, and the store of texts."""

    files: FileStore
    texts: FileStore


def stores(context: Context) -> Stores:
    """The stores of an installation. Raises SettingsError."""
    files = open_store(context.folder, context.settings.pipeline.files, context.now)
    return Stores(files, FolderStore(context.folder / "texts"))


def tidy(context: Context) -> None:
    """Delete texts that no row names, files that are not to be kept, and old answers of services."""
    opened = stores(context)
    leftovers.settle(context, opened.texts, _texts_in_use)
    leftovers.delete_unused(context, TEXT, _texts_in_use, lambda digest: delete_settled(opened.texts, digest))
    leftovers.delete_unused(context, READ_FILE, _files_in_use, lambda digest: delete_settled(opened.files, digest))
    with context.writing() as session:
        crossref.delete_old(session, context.now())


def _texts_in_use(session: Session, digests: Sequence[str]) -> Collection[str]:
    return set(session.scalars(select(OutputText.text_sha256).where(OutputText.text_sha256.in_(digests))))


def _files_in_use(session: Session, digests: Sequence[str]) -> Collection[str]:
    """The files with a row that keeps them, or whose text extraction has not read yet."""
    is_step = and_(
        PipelineStep.catalogue_document_id == OutputFile.catalogue_document_id,
        PipelineStep.stage == StageName.EXTRACTION.value,
    )
    waits = or_(
        PipelineStep.state.is_(None), PipelineStep.state == StepState.WAITING.value, PipelineStep.retry_at.is_not(None)
    )
    query = select(OutputFile.sha256).outerjoin(PipelineStep, is_step)
    return set(session.scalars(query.where(OutputFile.sha256.in_(digests), or_(OutputFile.kept, waits))))
