"""The files that this stage reads, and the texts that it writes: where they are, and when they are deleted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.engine import database_errors, writers
from metaharvest.database.pipeline_models import OutputFile, OutputText, PipelineStep
from metaharvest.pipeline import leftovers
from metaharvest.pipeline.extraction import lookups
from metaharvest.pipeline.full_text.store import FileStore, FolderStore, delete_settled, open_store, settle
from metaharvest.pipeline.stage import Context, StageName, StepState

READ_FILE = "read file"
"""Among the leftovers: a file that is not to be kept, and whose text was taken."""

TEXT = "text"


@dataclass(frozen=True, slots=True)
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
    settle(opened.texts, partial(leftovers.read_used, context, _texts_in_use))
    _delete_unused(context, TEXT, opened.texts, _texts_in_use)
    _delete_unused(context, READ_FILE, opened.files, _files_in_use)
    with database_errors(context.engine), writers(context.engine).begin() as session:
        lookups.delete_old(session, context.now())


def _delete_unused(context: Context, kind: str, store: FileStore, used: leftovers.Used) -> None:
    """Delete the noted files of a kind that are not in use, and that nobody is writing."""
    leftovers.delete_unused(context, kind, used, lambda digest: delete_settled(store, digest))


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
