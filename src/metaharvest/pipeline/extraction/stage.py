"""The stage `extraction`: reads the files of outputs, and writes the tables `output_text` and `output_reference`.

The text goes to the folder `texts`, as `ab/cd/SHA256` of its UTF-8. A file that is not to be kept is deleted when its
text was taken. From then on, the text is read in its place.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import OutputFile, OutputReference, OutputText
from metaharvest.database.rows import insert_rows
from metaharvest.errors import StoreUnavailable
from metaharvest.model.actions import todo
from metaharvest.model.mappings import picked
from metaharvest.model.outputs import Output
from metaharvest.pipeline import leftovers, steps
from metaharvest.pipeline.extraction import files, grobid, lookups, references
from metaharvest.pipeline.extraction.catalogue_works import matches, with_dois
from metaharvest.pipeline.extraction.citation import Reference, parsed
from metaharvest.pipeline.extraction.lookups import Lookups
from metaharvest.pipeline.extraction.matching import Match
from metaharvest.pipeline.extraction.reading import FileReader, Reading, Unreadable, of_text
from metaharvest.pipeline.extraction.services import ServiceAway, ServiceClient
from metaharvest.pipeline.full_text.store import DamagedFile
from metaharvest.pipeline.stage import Context, Document, Failure, Result, Stage, StageName
from metaharvest.pipeline.stored_outputs import read_outputs
from metaharvest.pipeline.text_language import Language, language_of

VERSION = 1
"""Of the rules: another one has all files read again."""

_AT_ONCE = 20
_AWAY = timedelta(hours=1)
_STORE_FAILS = timedelta(hours=1)
_CROSSREF_PACE = 0.2
_CROSSREF_SECONDS = 30.0
_GROBID_SECONDS = 120.0

_TEXTS = Base.metadata.tables[OutputText.__tablename__]
_REFERENCES = Base.metadata.tables[OutputReference.__tablename__]


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of an output, as far as this stage needs it."""

    sha256: str
    media_type: str
    kept: bool


@dataclass(frozen=True, slots=True)
class KnownText:
    """The text of a file that the tables have, of a version of the rules."""

    file_sha256: str
    text_sha256: str
    version: int


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a file of an output has. `dropped` are files that are not to be kept, `answers` new answers of Crossref.

    `is_damaged`: see Unchanged.
    """

    file_sha256: str
    text_sha256: str
    characters: int
    pages: int | None
    language: Language
    references: Sequence[Reference]
    matches: Sequence[Match | None]
    dropped: Collection[str] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    is_damaged: bool = False


@dataclass(frozen=True, slots=True)
class Unread:
    """No file of an output can be read. `dropped` are its files that are not to be kept; see Unchanged."""

    dropped: Collection[str]
    is_damaged: bool = False


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The stored rows stay: these rules wrote them, or neither the file nor its text can be read at the moment.

    `is_damaged`: a file or its text was damaged and is deleted, so that the file must be fetched again.
    """

    dropped: Collection[str] = ()
    is_damaged: bool = False


class _Damaged(Unreadable):
    """The file or its text was damaged, and is deleted."""


@dataclass(slots=True)
class _Known:
    """The rows of the tables for a batch of documents."""

    files: Mapping[int, Sequence[KnownFile]]
    outputs: Mapping[int, Output]
    texts: Mapping[int, KnownText]


def perform(context: Context, documents: Sequence[Document]) -> Iterator[Result]:
    """The text, the language and the references of the documents that have a file."""
    with ExitStack() as stack:
        work = _Work(context, stack)
        for batch in batches(documents, _AT_ONCE):
            known = _known(context, [each.number for each in batch])
            for document in batch:
                yield work.result(document, known)
                if context.stops():
                    return


class _Work:
    """The tools of a batch: the stores, the reader, and the services of the settings."""

    def __init__(self, context: Context, stack: ExitStack) -> None:
        settings = context.settings
        self._context = context
        self._stores = files.stores(context)
        self._reader = stack.enter_context(FileReader())
        self._crossref = self._grobid = None
        self._grobid_away = ""
        if settings.pipeline.crossref:
            client = ServiceClient("Crossref", settings.http, pace=_CROSSREF_PACE, seconds=_CROSSREF_SECONDS)
            self._crossref = Lookups(context, stack.enter_context(client))
        if settings.pipeline.grobid:
            client = ServiceClient("GROBID", settings.http, pace=0.0, seconds=_GROBID_SECONDS)
            self._grobid = stack.enter_context(client)

    def result(self, document: Document, known: _Known) -> Result:
        """The result of a document: of its best file that can be read."""
        stored = known.files.get(document.number, ())
        failure: Failure | None = None
        is_damaged = False
        for file in stored:
            try:
                content, reading, is_lost = self._read(file, known.texts.get(document.number))
            except Unreadable as error:
                failure = failure or Failure(error.rule, str(error))
                is_damaged = is_damaged or isinstance(error, _Damaged)
            except OSError as error:
                message = f"The folder or store of files cannot be read: {error.strerror or error}."
                return Result(document, Unchanged(), Failure("extraction.store-away", message, _STORE_FAILS))
            else:
                is_damaged = is_damaged or is_lost
                if reading is None:
                    return Result(document, Unchanged(is_damaged=is_damaged))
                return self._extracted(document, file, content, reading, known, is_damaged)
        text = known.texts.get(document.number)
        if failure and failure.rule == _FILE_MISSING and text and text.file_sha256 in {each.sha256 for each in stored}:
            # The file is fetched again, or the text is on a disk that comes back.
            return Result(document, Unchanged(is_damaged=is_damaged), failure)
        return Result(document, Unread(_dropped(stored), is_damaged) if failure else None, failure)

    def _read(self, file: KnownFile, known: KnownText | None) -> tuple[bytes, Reading | None, bool]:
        """The bytes of a file, what they have, and True if a file to keep was damaged. Raises Unreadable, OSError.

        The text stands for a file that is not in the store; no reading: the same rules have read it.
        """
        try:
            content = self._stores.files.read(file.sha256)
        except FileNotFoundError as error:
            is_damaged = isinstance(error, DamagedFile)
            return b"", self._known_text(file, known, is_damaged), is_damaged and file.kept
        return content, self._reader.read(content, file.media_type), False

    def _known_text(self, file: KnownFile, known: KnownText | None, is_damaged: bool) -> Reading | None:
        """The text of a file that is not in the store; None: the same rules have read it. Raises Unreadable.

        `is_damaged`: the file was there, and damaged.
        """
        if known is None or known.file_sha256 != file.sha256 or not self._stores.texts.has(known.text_sha256):
            raise _Damaged(_FILE_MISSING, _WAS_DAMAGED) if is_damaged else Unreadable(_FILE_MISSING, _MISSING)
        if known.version == VERSION:
            return None
        try:
            return of_text(self._stores.texts.read(known.text_sha256).decode())
        except DamagedFile:
            raise _Damaged(_FILE_MISSING, _WAS_DAMAGED) from None
        except FileNotFoundError:
            raise Unreadable(_FILE_MISSING, _MISSING) from None

    def _extracted(
        self,
        document: Document,
        file: KnownFile,
        content: bytes,
        reading: Reading,
        known: _Known,
        is_damaged: bool,
    ) -> Result:
        output = known.outputs.get(document.number)
        text = reading.text.encode()
        digest = hashlib.sha256(text).hexdigest()
        try:
            self._stores.texts.put(digest, text)
        except OSError as error:
            raise StoreUnavailable(f"A text of the pipeline cannot be written: {error}.") from error
        declared = (output.language if output else None) or reading.language
        found, away = self._references(reading, content if file.media_type == "application/pdf" else b"")
        with self._context.reading() as session:
            matched = matches(session, found, document.number)
        matched, crossref_away = self._looked_up(found, matched, document.number)
        value = Extracted(
            file.sha256,
            digest,
            len(reading.text),
            reading.pages,
            language_of(reading.text, declared),
            found,
            matched,
            [] if away or crossref_away else _dropped(known.files[document.number]),
            self._crossref.taken() if self._crossref else {},
            is_damaged,
        )
        message = away or crossref_away
        return Result(document, value, Failure("extraction.service-away", message, _AWAY) if message else None)

    def _references(self, reading: Reading, pdf: bytes) -> tuple[Sequence[Reference], str]:
        """The references, and why GROBID, which reads the references of a PDF, could not be asked."""
        if reading.references is not None:
            return reading.references, ""
        if self._grobid is not None and pdf:
            if not self._grobid_away:
                try:
                    known = grobid.references_of(self._grobid, self._context.settings.pipeline.grobid, pdf)
                    return known if known is not None else _own_references(reading), ""
                except ServiceAway as away:
                    self._grobid_away = str(away)
            return _own_references(reading), self._grobid_away
        return _own_references(reading), ""

    def _looked_up(
        self, found: Sequence[Reference], matched: list[Match | None], own: int
    ) -> tuple[list[Match | None], str]:
        """The matches, with matches of Crossref for references without a match and a DOI; and why Crossref is away."""
        if self._crossref is None:
            return matched, ""
        open_places = [place for place, each in enumerate(found) if matched[place] is None and each.doi is None]
        for place, match in zip(
            open_places, self._crossref.matches([found[each] for each in open_places]), strict=True
        ):
            matched[place] = match
        dois = {match.work.doi for match in matched if match and match.method == "crossref"}
        with self._context.reading() as session:
            own_works = with_dois(session, dois, own)
        return [
            Match(own_works[match.work.doi], match.method, match.score)
            if match and match.method == "crossref" and match.work.doi in own_works
            else match
            for match in matched
        ], self._crossref.away


def _own_references(reading: Reading) -> Sequence[Reference]:
    return [parsed(raw) for raw in references.find(reading.lines)]


def _dropped(stored: Sequence[KnownFile]) -> Collection[str]:
    return [each.sha256 for each in stored if not each.kept]


_FILE_MISSING = "extraction.file-missing"
_MISSING = (
    "The file is not in the store, and no text of it is known. "
    f"{todo('pipeline.retry', stage='extraction')} lets the next run fetch it again."
)
_WAS_DAMAGED = "The file or its text was damaged, and is deleted. The next run fetches the file again."


def _known(context: Context, numbers: Sequence[int]) -> _Known:
    stored: defaultdict[int, list[KnownFile]] = defaultdict(list)
    with context.reading() as session:
        of_file = (OutputFile.catalogue_document_id, OutputFile.sha256, OutputFile.media_type, OutputFile.kept)
        query = select(*of_file).where(OutputFile.catalogue_document_id.in_(numbers))
        rows = session.execute(query.order_by(OutputFile.catalogue_document_id, OutputFile.rank))
        for number, sha256, media_type, kept in rows:
            stored[number].append(KnownFile(sha256, media_type, kept))
        outputs = read_outputs(session, stored)
        columns = (_TEXTS.c.catalogue_document_id, _TEXTS.c.file_sha256, _TEXTS.c.text_sha256, _TEXTS.c.version)
        texts = session.execute(select(*columns).where(_TEXTS.c.catalogue_document_id.in_(stored)))
        return _Known(stored, outputs, {number: KnownText(*text) for number, *text in texts})


def store(session: Session, results: Sequence[Result], now: datetime) -> None:
    """Replace what the tables have of these documents."""
    values = [(each.document.number, each.value) for each in results if isinstance(each.value, Extracted)]
    _delete(session, [each.document.number for each in results if not isinstance(each.value, Unchanged)])
    if values:
        insert_rows(session.connection(), _TEXTS, [_text_row(number, value) for number, value in values])
    rows = [row for number, value in values for row in _reference_rows(number, value)]
    if rows:
        insert_rows(session.connection(), _REFERENCES, rows)
    dropped = {digest for each in results if each.value is not None for digest in each.value.dropped}
    leftovers.note(session, files.READ_FILE, dropped)
    damaged = [each.document.number for each in results if each.value is not None and each.value.is_damaged]
    steps.wake_known(session, StageName.FULL_TEXT, damaged)
    lookups.store(session, {key: answer for _, value in values for key, answer in value.answers.items()}, now)


def _text_row(number: int, value: Extracted) -> dict[str, object]:
    keys = "file_sha256 text_sha256 characters pages language=language.code language_score=language.score"
    return {"catalogue_document_id": number, "version": VERSION, **picked(value, keys)}


def _reference_rows(number: int, value: Extracted) -> Iterator[dict[str, object]]:
    for position, (reference, match) in enumerate(zip(value.references, value.matches, strict=True), start=1):
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
    for some in batches(sorted(numbers)):
        digests = session.scalars(select(_TEXTS.c.text_sha256).where(_TEXTS.c.catalogue_document_id.in_(some)))
        leftovers.note(session, files.TEXT, set(digests))
        session.execute(delete(_TEXTS).where(_TEXTS.c.catalogue_document_id.in_(some)))
        session.execute(delete(_REFERENCES).where(_REFERENCES.c.catalogue_document_id.in_(some)))


STAGE = Stage(
    name=StageName.EXTRACTION,
    version=VERSION,
    perform=perform,
    store=store,
    remove=remove,
    tidy=files.tidy,
    wakes=(StageName.INDEX,),
    batch=50,
    parts=4,
)
