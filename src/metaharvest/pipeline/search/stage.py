"""The stage `index`: writes the entries of documents, removes entries of documents that are gone, makes a new index.

The index is outside of the database. It is written before the step is noted: a process that ends in between writes the
same entries again.
"""

from __future__ import annotations

import fcntl
import logging
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.stage_documents import stage_documents
from metaharvest.config.settings import Settings
from metaharvest.database.batches import batches
from metaharvest.database.engine import repeated
from metaharvest.database.pipeline_models import OutputFile, OutputRecord, OutputText, OutputWork, PipelineStep
from metaharvest.database.statements import rows_with
from metaharvest.errors import IndexUnavailable
from metaharvest.pipeline import feed, steps
from metaharvest.pipeline.file_store import DamagedFile, FolderStore, place_of
from metaharvest.pipeline.search.contract import INDEX_VERSION, Entry, IndexWriter
from metaharvest.pipeline.search.entries import LONGEST_TEXT, FullText, entry_of
from metaharvest.pipeline.search.index_places import IndexFolder, IndexPlace, IndexServer
from metaharvest.pipeline.search.removals import INDEX_FEED
from metaharvest.pipeline.stage import Context, Document, Failure, Result, Stage, StageName, StepState
from metaharvest.pipeline.steps import FEED
from metaharvest.pipeline.stored_outputs import read_outputs
from metaharvest.pipeline.text_language import UNKNOWN

_AT_ONCE = 100
"""Documents whose full texts are in memory at a time."""

_A_COMMIT = 5_000
"""Documents of a commit while a new index is made."""

_WAIT_SECONDS = 60
_AFTER_A_REFUSAL = timedelta(days=7)
_LOG = logging.getLogger(__name__)
_WORK, _TEXT = OutputWork.catalogue_document_id, OutputText.catalogue_document_id


def index_place(folder: Path, url: str) -> IndexPlace:
    """The place of the index: the server at this URL; without one, the folder `index` in the folder of the pipeline."""
    return IndexServer(url) if url else IndexFolder(folder / "index")


def place_by(settings: Settings) -> IndexPlace:
    """The place of the index by the settings. Raises SettingsError if the password of the server cannot be read."""
    return index_place(settings.path(settings.pipeline.folder), settings.search_server())


def perform(context: Context, documents: Sequence[Document]) -> Iterator[Result]:
    """Write the entries of these documents. Raises IndexUnavailable.

    If the index has another version, all documents wait: their entries go into a new index beside it, see `tidy`. If
    the index is lost, or a new one was begun, this is made first, with all documents. Without a result the context
    stopped before the index was complete.
    """
    place = place_by(context.settings)
    with _only_writer(context.folder / "index"):
        if (opened := _open(context, place)) is None:
            return
        found: set[int] = set()
        refused: dict[int, str] = {}
        with opened as writer:
            for some in batches(documents, _AT_ONCE):
                entries = _entries(context, some)
                refused |= writer.put(entries)
                found.update(each.number for each in entries if each.number not in refused)
            writer.remove([each.number for each in documents if each.number not in found])
            writer.commit()
    for document in documents:
        if document.number in refused:
            yield Result(document, failure=_refusal(document, refused[document.number]))
        else:
            yield Result(document, document.number if document.number in found else None)


def forget(context: Context, numbers: Collection[int]) -> None:
    """Remove the entries of documents that are gone. Raises IndexUnavailable."""
    place = place_by(context.settings)
    with _only_writer(context.folder / "index"):
        for opened in (place.current(), place.next()):
            if opened is not None:
                with opened as writer:
                    writer.remove(numbers)
                    writer.commit()


def begin_again(context: Context) -> bool:
    """Begin a new index, which the next run fills: files of the present one keep removed texts.

    Returns False if there is no present one. Raises IndexUnavailable.
    """
    place = place_by(context.settings)
    with _only_writer(context.folder / "index"):
        if place.version() is None:
            return False
        with place.begin() as writer:
            writer.commit()
    return True


def tidy(context: Context) -> None:
    """Put an index that was begun in the place of the present one, if no document waits. Raises IndexUnavailable.

    If it lacks documents, or is lost, they are written first. Then delete old indexes, and note the last change whose
    removals the index has.
    """
    place = place_by(context.settings)
    if place.version() != INDEX_VERSION or place.is_begun():
        _replace(context, place)
    if place.version() == INDEX_VERSION:
        place.delete_old()
        _note_removals(context)


def _replace(context: Context, place: IndexPlace) -> None:
    """Put the new index in the place of the present one, or of a lost one, if no document waits."""
    with _only_writer(context.folder / "index"):
        if _number(context, StepState.WAITING):
            return
        if (begun := place.next()) is None:
            if place.version() is None and _number(context, StepState.DONE):
                _fill_and_swap(context, place, place.begin())
            return
        with begun as writer:
            is_whole = writer.size() >= _number(context, StepState.DONE)
        if is_whole:
            place.swap()
        elif (begun := place.next()) is not None:
            _fill_and_swap(context, place, begun)


def _note_removals(context: Context) -> None:
    """Note the last change whose removals the index has, if no document that is gone waits."""
    with context.reading() as session:
        read = feed.position(session, FEED)
        if read == feed.position(session, INDEX_FEED) or steps.has_removals(
            session, context.settings.pipeline.stage_names()
        ):
            return
    with context.writing() as session:
        feed.confirm(session, INDEX_FEED, read, context.now())


def rebuild(context: Context) -> bool:
    """Make a new index beside the current one, and put it in its place. False: the context stopped before the end.

    The next call, or the stage, goes on with it. Raises IndexUnavailable.
    """
    place = place_by(context.settings)
    with _only_writer(context.folder / "index"):
        return _fill_and_swap(context, place, place.next() or place.begin())


def _open(context: Context, place: IndexPlace) -> AbstractContextManager[IndexWriter] | None:
    """The writer of the index that documents go into. None: the context stopped before the index was complete."""
    begun, version = place.next(), place.version()
    if version not in (None, INDEX_VERSION):
        return begun or place.begin()
    if begun is None and version is None and not _number(context, StepState.DONE):
        # All documents wait: the first index begins without entries.
        with place.begin() as writer:
            writer.commit()
        place.swap()
    elif (begun is not None or version is None) and not _fill_and_swap(context, place, begun or place.begin()):
        return None
    return place.current()


def _number(context: Context, state: StepState) -> int:
    """The number of documents that have this state at the stage."""
    its = PipelineStep.stage == StageName.INDEX, PipelineStep.state == state
    with context.reading() as session:
        return session.scalar(select(func.count()).select_from(PipelineStep).where(*its)) or 0


def _refusal(document: Document, reason: str) -> Failure:
    message = f"The search index does not accept the entry of {document.document_id}: {reason}."
    return Failure("pipeline.entry-refused", message, _AFTER_A_REFUSAL)


def _fill_and_swap(context: Context, place: IndexPlace, begun: AbstractContextManager[IndexWriter]) -> bool:
    """Write all documents into the new index, from where it ended, and swap. False: the context stopped before.

    Beside an index of another version, the new one may lack any of them.
    """
    goes_on = place.version() in (None, INDEX_VERSION)
    with begun as writer:
        after, uncommitted = writer.last_number() if goes_on else 0, 0
        while True:
            with context.reading() as session:
                numbers = _outputs_after(session, after)
                documents = [each for each in stage_documents(session, numbers).values() if not each.is_gone]
            entries = _entries(context, documents)
            for number, reason in writer.put(entries).items():
                _LOG.warning("The search index does not accept the entry of the document %s: %s", number, reason)
            uncommitted += len(entries)
            is_stopped = context.stops()
            if not numbers or is_stopped or uncommitted >= _A_COMMIT:
                writer.commit()
                uncommitted = 0
            if is_stopped:
                return False
            if not numbers:
                break
            after = numbers[-1]
    place.swap()
    return True


def _outputs_after(session: Session, number: int) -> Sequence[int]:
    key = OutputRecord.catalogue_document_id
    return session.scalars(select(key).where(key > number).order_by(key).limit(_AT_ONCE)).all()


def _entries(context: Context, documents: Sequence[Document]) -> Sequence[Entry]:
    """The entries of the documents that have an output. A text that is missing counts as none.

    A text that is damaged is extracted again. A missing one may be on a disk that comes back.
    """
    numbers = [each.number for each in documents]
    with context.reading() as session:
        outputs = read_outputs(session, numbers)
        works = {row[0]: row[1] for row in rows_with(session, select(_WORK, OutputWork.work_id), _WORK, numbers)}
        texts_of = select(_TEXT, OutputText.text_sha256, OutputText.language)
        rows = list(rows_with(session, texts_of, _TEXT, numbers))
    store, texts, damaged = FolderStore(context.folder / "texts"), {}, []
    for number, digest, language in rows:
        try:
            text = store.read(digest).decode()[:LONGEST_TEXT]
        except DamagedFile:
            damaged.append(number)
        except OSError:
            continue
        else:
            texts[number] = FullText(digest, text, None if language == UNKNOWN else language)
    if damaged:
        repeated(lambda: _extract_again(context, damaged))
    return [
        entry_of(each, outputs[each.number], works.get(each.number, each.number), texts.get(each.number))
        for each in documents
        if each.number in outputs
    ]


def _extract_again(context: Context, numbers: Collection[int]) -> None:
    """Let the next run extract the texts of these documents, and fetch their files first if they are not kept."""
    kept = select(OutputFile.catalogue_document_id).where(
        OutputFile.catalogue_document_id.in_(numbers), OutputFile.kept
    )
    with context.writing() as session:
        at_hand = set(session.scalars(kept))
        steps.wake_known(session, StageName.FULL_TEXT, sorted(set(numbers) - at_hand))
        steps.wake_known(session, StageName.EXTRACTION, sorted(at_hand))


def read_text(folder: Path, digest: str, most: int) -> str | None:
    """The first characters of the text with this digest in the folder of the pipeline; None if it is missing."""
    path = folder / "texts" / place_of(digest)
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(most)
    except OSError:
        return None


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of the index, also of one on a server. Raises IndexUnavailable if it cannot be had."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("ab")
    except OSError as error:
        raise IndexUnavailable(f"The folder of the search index cannot be written: {error}.") from error
    with lock as file:
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > until:
                    raise IndexUnavailable(
                        "Another process writes the search index at this moment. Please try again later."
                    ) from error
                time.sleep(0.1)
        yield


STAGE = Stage(
    name=StageName.INDEX,
    version=INDEX_VERSION,
    perform=perform,
    forget=forget,
    tidy=tidy,
    batch=1_000,
)
