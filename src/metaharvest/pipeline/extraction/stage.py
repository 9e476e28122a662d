"""The stage `extraction`: reads the files of outputs, and finds their text, language and references.

The text goes to the folder `texts`, as `ab/cd/SHA256` of its UTF-8. A file that is not to be kept is deleted when its
text was taken. From then on, the text is read in its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

from metaharvest.database.batches import batches
from metaharvest.errors import StoreUnavailable
from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.pipeline.extraction import references
from metaharvest.pipeline.extraction.catalogue_works import matches, with_dois
from metaharvest.pipeline.extraction.citation import Reference, parsed
from metaharvest.pipeline.extraction.crossref import Crossref
from metaharvest.pipeline.extraction.grobid import Grobid
from metaharvest.pipeline.extraction.matching import Match
from metaharvest.pipeline.extraction.reading import FileReader, Reading, Unreadable, of_text
from metaharvest.pipeline.extraction.rows import (
    Change,
    Extracted,
    Known,
    KnownFile,
    KnownText,
    read_known,
    remove,
    store,
    stores,
    tidy,
)
from metaharvest.pipeline.extraction.services import ServiceClient
from metaharvest.pipeline.file_store import DamagedFile
from metaharvest.pipeline.stage import Context, Document, Failure, Result, Stage, StageName
from metaharvest.pipeline.text_language import language_of

VERSION = 1
"""Of the rules: another one has all files read again."""

_AT_ONCE = 20
_AWAY = timedelta(hours=1)
_STORE_FAILS = timedelta(hours=1)
_CROSSREF_PACE = 0.2
_CROSSREF_SECONDS = 30.0
_GROBID_SECONDS = 120.0

_FILE_MISSING = "extraction.file-missing"
_MISSING = (
    "The file is not in the store, and no text of it is known. "
    f"{todo('pipeline.retry', stage='extraction')} lets the next run fetch it again."
)
_WAS_DAMAGED = "The file or its text was damaged, and is deleted. The next run fetches the file again."


def perform(context: Context, documents: Sequence[Document]) -> Iterator[Result]:
    """The text, the language and the references of the documents that have a file."""
    with ExitStack() as stack:
        work = _Work(context, stack)
        for batch in batches(documents, _AT_ONCE):
            with context.reading() as session:
                known = read_known(session, [each.number for each in batch])
            for document in batch:
                yield work.result(document, known[document.number])
                if context.stops():
                    return


class _Work:
    """The tools of a batch: the stores, the reader, and the services of the settings."""

    def __init__(self, context: Context, stack: ExitStack) -> None:
        settings = context.settings
        self._context = context
        self._stores = stores(context)
        self._reader = stack.enter_context(FileReader())
        self._crossref: Crossref | None = None
        self._grobid: Grobid | None = None
        if settings.pipeline.crossref:
            http = settings.network_policy()
            client = ServiceClient("Crossref", http, pace=_CROSSREF_PACE, seconds=_CROSSREF_SECONDS)
            self._crossref = Crossref(context, stack.enter_context(client))
        if settings.pipeline.grobid:
            client = ServiceClient("GROBID", settings.network_policy(), pace=0.0, seconds=_GROBID_SECONDS)
            self._grobid = Grobid(stack.enter_context(client), settings.pipeline.grobid)

    def result(self, document: Document, known: Known) -> Result:
        """The result of a document: of its best file that can be read."""
        failure: Failure | None = None
        is_damaged = False
        for file in known.files:
            try:
                read = self._read(file, known.text)
            except Unreadable as error:
                failure = failure or Failure(error.rule, str(error))
                is_damaged = is_damaged or isinstance(error, _Damaged)
            except OSError as error:
                message = f"The folder or store of files cannot be read: {error.strerror or error}."
                failure = Failure("extraction.store-away", message, _STORE_FAILS)
                return Result(document, Change(stays=True), failure)
            else:
                is_damaged = is_damaged or read.is_lost
                if read.reading is None:
                    return Result(document, Change(stays=True, is_damaged=is_damaged))
                extracted, away = self._extracted(document.number, known, read, read.reading)
                change = Change(extracted, dropped=() if away else known.dropped, is_damaged=is_damaged)
                return Result(document, change, Failure("extraction.service-away", away, _AWAY) if away else None)
        if failure is None:
            return Result(document)
        has_text = known.text is not None and known.text.file_sha256 in {each.sha256 for each in known.files}
        if failure.rule == _FILE_MISSING and has_text:
            # The file is fetched again, or the text is on a disk that comes back.
            return Result(document, Change(stays=True, is_damaged=is_damaged), failure)
        return Result(document, Change(dropped=known.dropped, is_damaged=is_damaged), failure)

    def _read(self, file: KnownFile, text: KnownText | None) -> _Read:
        """Read a file, or its text if the file is not in the store. Raises Unreadable, OSError."""
        try:
            content = self._stores.files.read(file.sha256)
        except FileNotFoundError as error:
            missing = _Damaged(_WAS_DAMAGED) if isinstance(error, DamagedFile) else _Missing(_MISSING)
        else:
            return _Read(file, self._reader.read(content, file.media_type), content)
        is_lost = isinstance(missing, _Damaged) and file.kept
        if text is None or text.file_sha256 != file.sha256 or not self._stores.texts.has(text.text_sha256):
            raise missing
        if text.version == VERSION:
            return _Read(file, None, is_lost=is_lost)
        try:
            return _Read(file, of_text(self._stores.texts.read(text.text_sha256).decode()), is_lost=is_lost)
        except DamagedFile:
            raise _Damaged(_WAS_DAMAGED) from None
        except FileNotFoundError:
            raise _Missing(_MISSING) from None

    def _extracted(self, number: int, known: Known, read: _Read, reading: Reading) -> tuple[Extracted, str]:
        """What a file of the document with this number has, and why a service is away."""
        content = reading.text.encode()
        digest = hashlib.sha256(content).hexdigest()
        try:
            self._stores.texts.put(digest, content)
        except OSError as error:
            raise StoreUnavailable(f"A text of the pipeline cannot be written: {error}.") from error
        declared = (known.output.language if known.output else None) or reading.language
        found, grobid_away = self._references(read, reading)
        matched, crossref_away = self._matched(found, number)
        extracted = Extracted(
            file_sha256=read.file.sha256,
            text_sha256=digest,
            version=VERSION,
            characters=len(reading.text),
            pages=reading.pages,
            language=language_of(reading.text, declared),
            references=found,
            matches=matched,
            answers=self._crossref.taken() if self._crossref else {},
        )
        return extracted, grobid_away or crossref_away

    def _references(self, read: _Read, reading: Reading) -> tuple[Sequence[Reference], str]:
        """The references, and why GROBID, which reads the references of a PDF, is away."""
        if reading.references is not None:
            return reading.references, ""
        found, away = None, ""
        if self._grobid is not None and read.content and read.file.media_type == "application/pdf":
            found, away = self._grobid.references_of(read.content), self._grobid.away
        return [parsed(raw) for raw in references.find(reading.lines)] if found is None else found, away

    def _matched(self, found: Sequence[Reference], own: int) -> tuple[list[Match | None], str]:
        """The matches of references in the catalogue, else at Crossref; and why Crossref is away.

        Crossref is not asked about references with a DOI. If the catalogue has a document with a DOI of Crossref, that
        document is the match.
        """
        with self._context.reading() as session:
            matched = matches(session, found, own)
        if self._crossref is None:
            return matched, ""
        places = [place for place, each in enumerate(found) if matched[place] is None and each.doi is None]
        looked_up, away = self._crossref.matches([found[place] for place in places])
        with self._context.reading() as session:
            own_works = with_dois(session, {match.work.doi for match in looked_up if match}, own)
        for place, match in zip(places, looked_up, strict=True):
            if match is not None:
                matched[place] = replace(match, work=own_works.get(match.work.doi, match.work))
        return matched, away


@frozen
class _Read:
    """A file that was read. `reading`: None if the same rules have read it. `content`: empty if its text was read.

    `is_lost`: the store must keep the file, and its copy is damaged.
    """

    file: KnownFile
    reading: Reading | None
    content: bytes = b""
    is_lost: bool = False


class _Missing(Unreadable):
    """The file is not in the store, and no text of it is known."""

    def __init__(self, message: str) -> None:
        super().__init__(_FILE_MISSING, message)


class _Damaged(_Missing):
    """The file or its text was damaged, and is deleted."""


STAGE = Stage(
    name=StageName.EXTRACTION,
    version=VERSION,
    perform=perform,
    store=store,
    remove=remove,
    tidy=tidy,
    wakes=(StageName.INDEX,),
    batch=50,
    parts=4,
)
