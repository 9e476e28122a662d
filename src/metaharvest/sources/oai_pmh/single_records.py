"""Fetches records individually, by GetRecord: for the method list-identifiers, and if a window cannot be listed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, NotAsked
from metaharvest.model import Finding, ListedDocument
from metaharvest.sources.attempts import in_attempts
from metaharvest.sources.base import ListedRecord, TimeBudget
from metaharvest.sources.oai_pmh.describe import refused
from metaharvest.sources.oai_pmh.oddities import IN_THE_LOG
from metaharvest.sources.oai_pmh.protocol import ProtocolError
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.repository import Repository
from metaharvest.sources.oai_pmh.response_reader import record_in
from metaharvest.sources.oai_pmh.responses import NotOaiResponse, cut_off
from metaharvest.text import one_line

_AT_ONCE = 3
_MOST_IN_A_ROW = 20
"""Failed records in a row, after which the rest of the page is probed.

Seen at https://github.com/IQSS/dataverse/issues/8005.
"""

_PROBES = 10
_MOST_SKIPPED = 3
"""Pages in a row that are skipped, after which the list is given up."""

_OF_RECORD = frozenset({"idDoesNotExist", "cannotDisseminateFormat"})


class Stopped(Exception):
    """No more records are requested; `error` says why."""

    def __init__(self, error: FetchError) -> None:
        super().__init__(str(error))
        self.error = error


class NotThere(FetchError):
    """The source repository says that it does not have the record."""


class SingleRecords:
    """Fetches records of one source repository individually. A record that fails costs no other record.

    After 20 failed records in a row, nothing is retried, and each page begins with probes: the last record that came
    and ten others of the page. If all of them fail, the rest of the page is skipped; three skipped pages in a row end
    the list.
    """

    def __init__(self, repository: Repository, records: Records, http: HttpSettings, patience: TimeBudget) -> None:
        self._repository = repository
        self._records = records
        self._http = http
        self._once = http.model_copy(update={"retries": 0})
        self._patience = patience
        self._failed = self._skipped = 0
        self._last: tuple[ListedRecord, ...] = ()

    async def all_of(self, headers: Sequence[ListedRecord]) -> list[ListedRecord]:
        """The records of these headers, in their order. Deleted records are not requested. Raises Stopped."""
        found: list[ListedRecord | None] = []
        is_probed = False
        for start in range(0, len(headers), _AT_ONCE):
            if self._failed >= _MOST_IN_A_ROW and not is_probed:
                if not await self._has_any(headers[start:]):
                    found += map(self._skip, headers[start:])
                    break
                is_probed = True
            # All of them end before an exception is raised: it closes the connections that they use.
            asked = (self._one(header) for header in headers[start : start + _AT_ONCE])
            for one in await asyncio.gather(*asked, return_exceptions=True):
                if isinstance(one, BaseException):
                    raise one
                found.append(one)
        return [record for record in found if record is not None]

    async def _one(self, header: ListedRecord) -> ListedRecord | None:
        """The record of one header; None if it does not exist in this format (1.x)."""
        if not _is_asked_for(header):
            return header
        try:
            record = await self._record(header)
        except FetchError as error:
            self._failed += not isinstance(error, NotThere)
            name = one_line(_identifier(header.document), 200)
            messages = (
                f"The repository lists the record {name}, and it cannot be fetched: {each.message}"
                for each in error.findings
            )
            return _away(header, *messages)
        self._failed, self._last = 0, (header,)
        return record

    async def _record(self, header: ListedRecord) -> ListedRecord | None:
        """The record of one header. Raises FetchError; and Stopped, if no more records may be requested."""
        identifier = _identifier(header.document)
        arguments = self._records.names.arguments(identifier)
        try:
            content, _ = await in_attempts(
                lambda: self._repository.record(arguments, self._patience.left()),
                self._http if self._failed < _MOST_IN_A_ROW else self._once,
                self._patience,
            )
            return await asyncio.to_thread(checked_record, content, identifier, self._records)
        except FetchError as error:
            if isinstance(error, NotAsked) or error.counted or self._patience.stop_reason():
                raise Stopped(error) from error
            raise

    async def _has_any(self, headers: Sequence[ListedRecord]) -> bool:
        """True if the last record that came, or one of ten of these, can be fetched. Raises Stopped."""
        wanted = [header for header in headers if _is_asked_for(header)]
        failure: FetchError | None = None
        for header in (*self._last, *wanted[:: max(1, len(wanted) // _PROBES)][-_PROBES:]):
            try:
                await self._record(header)
            except NotThere:  # the source repository answers as it should
                pass
            except FetchError as error:
                failure = error
                continue
            self._skipped = 0
            return True
        if failure is None:
            return True
        self._skipped += 1
        if self._skipped >= _MOST_SKIPPED:
            raise Stopped(failure)
        return False

    def _skip(self, header: ListedRecord) -> ListedRecord:
        if not _is_asked_for(header):
            return header
        message = (
            f"The record {one_line(_identifier(header.document), 200)} was not requested: the {self._failed:,} records "
            "before it failed, and some of the records after it."
        )
        return _away(header, message)


def checked_record(content: bytes, identifier: str, records: Records) -> ListedRecord | None:
    """The record in an answer to GetRecord, if it is the one; None: it is not in this format. Raises FetchError."""
    try:
        record, answer = record_in(content, records)
    except NotOaiResponse as error:
        raise FetchError(error.finding) from error
    if answer.errors:
        kind = NotThere if {error.code for error in answer.errors} <= _OF_RECORD else FetchError
        raise kind(refused(f"the record {one_line(identifier, 200)}", answer.errors))
    if record is None and not answer.is_whole:
        raise FetchError(cut_off(answer))
    if record is None and answer.root.is_old:
        if not answer.unusable:
            records.odd.note("no-format", identifier)
        return None
    if record is None:
        nothing = ProtocolError("an answer without a record")
        raise FetchError(refused(f"the record {one_line(identifier, 200)}", [nothing]))
    if (came := _identifier(record.document)) != identifier:
        message = f"The repository was asked for {one_line(identifier, 200)} and sent {one_line(came, 200)}."
        raise FetchError(
            Finding("oai.record-failed", message, "The repository should answer GetRecord with the requested record.")
        )
    return record


def _is_asked_for(header: ListedRecord) -> bool:
    return not header.deleted and not any(finding.is_error for finding in header.findings)


def _identifier(document: ListedDocument) -> str:
    return document.origin.identifier if document.origin else document.document_id


def _away(header: ListedRecord, *messages: str) -> ListedRecord:
    """A record that did not come in this harvest."""
    identifier, remedy = _identifier(header.document), f"{IN_THE_LOG} The harvester tries again by itself."
    findings = tuple(Finding("oai.record-failed", message, remedy, docid=identifier) for message in messages)
    return ListedRecord(header.document, None, findings=findings, is_away=True)
