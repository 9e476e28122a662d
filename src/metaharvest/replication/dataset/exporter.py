"""Writes the catalogue, or its changes, into a folder, file by file. It may be killed at any moment, and goes on.

Each file is complete under its name, or not there. After each file, the manifest is replaced; it has a name of its own
until the last file is complete. The next file begins after the last change in the manifest. The change feed is read to
its end, so a document that changes meanwhile comes once more, later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from hashlib import file_digest
from itertools import chain
from pathlib import Path

from sqlalchemy.orm import Session

from metaharvest.catalogue.change_feed import ChangedDocument, changed_documents, last_change, number_of_changes
from metaharvest.catalogue.current import contents_of
from metaharvest.catalogue.selection import Hidden
from metaharvest.config.files import TEMPORARY, replace_file, sync_folder
from metaharvest.database.batches import batches_by_size
from metaharvest.errors import RequestError
from metaharvest.harvest.context import Progress
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.model.values import frozen
from metaharvest.replication.dataset.formats import FORMATS, FullText, Line
from metaharvest.replication.dataset.manifest import DatasetFile, Manifest, as_json, from_json
from metaharvest.replication.dataset.texts import SharedText, Texts

MANIFEST = "manifest.json"
_BEGUN = "manifest.partial.json"
_LOCK = "export.lock"
_TEMPORARY = (".part-*.new", TEMPORARY.format("*"), f".{_BEGUN}.*.new")
"""The names of incomplete files, which a killed export leaves; the last one is that of earlier versions."""

_FILE_BYTES = 1_000_000_000
"""The bytes of documents, before compression, after which a file is complete."""

_PAGE = 500
_BATCH_BYTES = 8_000_000
"""The bytes of documents that are in memory together, or one document."""

Sessions = Callable[[], AbstractContextManager[Session]]


@frozen
class DatasetRequest:
    """A dataset in a folder: its format, the number of the change after which it begins, and the lines of a file.

    `with_texts`: the full texts that may be given away are in it.
    """

    folder: Path
    format: str = "jsonl"
    since: int = 0
    documents_per_file: int = 100_000
    with_texts: bool = False


def export_dataset(
    request: DatasetRequest,
    sessions: Sessions,
    hidden: Hidden,
    now: Callable[[], datetime],
    progress: Progress,
    stop: StopSignal,
    texts: Texts | None = None,
) -> Manifest:
    """Write the dataset, or go on with it; returns its manifest, without a time if `stop` has ended it early.

    `texts` are there if the request wants them.

    Raises RequestError if the folder has something else, or `since` is too high; OSError.
    """
    with sessions() as session:
        last = last_change(session)
    if request.since > last:
        raise RequestError(f"--since {request.since}: the last change of the catalogue has the number {last}.")
    request.folder.mkdir(parents=True, exist_ok=True)
    with _locked(request.folder):
        manifest = _begun(request)
        reader = _Reader(sessions, hidden, request.documents_per_file, texts)
        name = request.folder.name or str(request.folder)
        progress.site_began(name)
        with sessions() as session:
            progress.documents_listed(name, number_of_changes(session, manifest.last_change_seq, hidden))
        while not stop.is_set():
            batches = _counted(reader.batches_after(manifest.last_change_seq), name, progress)
            first = next(batches, None)
            if first is None:
                manifest = replace(manifest, created_at=now())
                _save(request.folder, manifest)
                (request.folder / _BEGUN).replace(request.folder / MANIFEST)
                sync_folder(request.folder)
                break
            if file := _write(request, len(manifest.files) + 1, chain([first], batches), stop):
                manifest = manifest.with_file(file)
                _save(request.folder, manifest)
        progress.site_ended(name)
    return manifest


@frozen
class _Reader:
    """Reads the lines of one file after another, at most `most` of each."""

    sessions: Sessions
    hidden: Hidden
    most: int
    texts: Texts | None

    def batches_after(self, seq: int) -> Iterator[Sequence[Line]]:
        """The lines of the file that begins after this number of a change."""
        number = size = 0
        while number < self.most and size < _FILE_BYTES:
            with self.sessions() as session:
                page = changed_documents(session, seq, min(_PAGE, self.most - number), self.hidden)
                shared = self._shared(session, page)

            def size_of(document: ChangedDocument, shared: Mapping[str, SharedText] = shared) -> int:
                text = shared.get(document.document_id)
                return (document.size or 0) + (text.characters if text else 0)

            if not page:
                return
            for batch in batches_by_size(page, _BATCH_BYTES, size_of):
                yield self._lines(batch, shared)
                number, seq = number + len(batch), batch[-1].change_seq
                size += sum(map(size_of, batch))
                if size >= _FILE_BYTES:
                    return

    def _shared(self, session: Session, page: Sequence[ChangedDocument]) -> Mapping[str, SharedText]:
        """The texts of these documents that may be given away; none in a dataset without texts."""
        if self.texts is None:
            return {}
        revisions = {each.document_id: each.revision for each in page if not each.is_deleted}
        return self.texts.shared(session, revisions)

    def _lines(self, batch: Sequence[ChangedDocument], shared: Mapping[str, SharedText]) -> Sequence[Line]:
        wanted = [each.revision_id for each in batch if each.revision_id is not None]
        with self.sessions() as session:
            contents = contents_of(session, wanted)
        return [self._line(each, contents.get(each.revision_id or 0), shared.get(each.document_id)) for each in batch]

    def _line(self, document: ChangedDocument, content: bytes | None, shared: SharedText | None) -> Line:
        """A line. A document whose bytes are erased has no text."""
        if self.texts is None:
            return Line(document, content)
        text = None
        if content is not None and shared is not None:
            text = self.texts.read(document.document_id, shared)
        return Line(document, content, FullText(text, shared))


def _write(
    request: DatasetRequest, number: int, lines: Iterator[Sequence[Line]], stop: StopSignal
) -> DatasetFile | None:
    """Write a file; None if `stop` has ended it, and it is not there. Raises OSError."""
    wanted = FORMATS[request.format]
    path = request.folder / f"part-{number:05}{wanted.suffix}"
    temporary = path.with_name(f".{path.name}.new")
    documents = deleted = texts = first = last = 0
    try:
        with wanted.opened(temporary, request.with_texts) as write:
            for batch in lines:
                if stop.is_set():
                    break
                write(batch)
                gone = sum(each.document.is_deleted for each in batch)
                documents, deleted = documents + len(batch) - gone, deleted + gone
                texts += sum(1 for each in batch if each.full_text and each.full_text.text is not None)
                first, last = first or batch[0].document.change_seq, batch[-1].document.change_seq
        if stop.is_set():
            temporary.unlink()
            return None
        with temporary.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        temporary.replace(path)
        # Before the manifest names it.
        sync_folder(request.folder)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return DatasetFile(path.name, documents, deleted, first, last, path.stat().st_size, digest, texts)


def _counted(lines: Iterator[Sequence[Line]], name: str, progress: Progress) -> Iterator[Sequence[Line]]:
    for batch in lines:
        yield batch
        progress.documents_ended(name, len(batch))


def _begun(request: DatasetRequest) -> Manifest:
    """The manifest to go on with; a new one in an empty folder. Raises RequestError if the folder has another one."""
    folder = request.folder
    new = Manifest(request.format, request.since, request.documents_per_file, with_texts=request.with_texts)
    begun = folder / _BEGUN
    if (folder / MANIFEST).exists():
        raise RequestError(f"{folder} has a complete dataset. Give another folder.")
    for each in chain.from_iterable(map(folder.glob, _TEMPORARY)):
        each.unlink()
    if not begun.exists():
        if any(each.name != _LOCK for each in folder.iterdir()):
            raise RequestError(f"{folder} is not empty. Give a new folder.")
        _save(folder, new)
        return new
    try:
        found = from_json(begun.read_bytes())
    except ValueError as error:
        raise RequestError(f"{begun} is not a manifest of this version. Delete the folder, and begin again.") from error
    if not found.is_begun_like(new):
        options = f"--format {found.format} --since {found.since} --documents-per-file {found.documents_per_file}"
        options += " --full-text" if found.with_texts else ""
        raise RequestError(
            f"{folder} has a dataset that is not complete, begun with {options}. Give these options, or another folder."
        )
    for file in found.files:
        path = folder / file.file
        if not path.is_file() or path.stat().st_size != file.bytes:
            raise RequestError(f"{path} is not as it was written. Delete the folder, and begin again.")
    return found


def _save(folder: Path, manifest: Manifest) -> None:
    replace_file(folder / _BEGUN, as_json(manifest))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Raises RequestError if another process writes into the folder. The file is gone when the dataset is complete."""
    from filelock import FileLock, Timeout

    path = folder / _LOCK
    try:
        with FileLock(path, timeout=0):
            try:
                yield
            finally:
                if (folder / MANIFEST).exists():
                    path.unlink(missing_ok=True)
    except Timeout as error:
        raise RequestError(f"Another process writes a dataset into {folder}.") from error
