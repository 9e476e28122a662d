"""Fetches records individually, by GetRecord: for the method list-identifiers, and if a window cannot be listed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, NotAsked
from metaharvest.model import Finding, ListedDocument
from metaharvest.sources.attempts import in_attempts
from metaharvest.sources.base import ListedRecord, Patience
from metaharvest.sources.oai_pmh.answer_reader import record_in
from metaharvest.sources.oai_pmh.answers import IN_THE_LOG, NoAnswer, cut_off
from metaharvest.sources.oai_pmh.describe import refused
from metaharvest.sources.oai_pmh.protocol import ProtocolError
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.repository import Repository
from metaharvest.text import one_line

_AT_ONCE = 3
_MOST_IN_A_ROW = 20
"""Failed records in a row, after which some others are tried.

Seen at https://github.com/IQSS/dataverse/issues/8005.
"""

_PROBES = 10
_MOST_BARREN = 3
"""Pages in a row whose records all failed, after which the list is given up."""

_OF_RECORD = frozenset({"idDoesNotExist", "cannotDisseminateFormat"})


class Stopped(Exception):
    """No more records are requested; `error` says why."""

    def __init__(self, error: FetchError) -> None:
        super().__init__(str(error))
        self.error = error


class NotThere(FetchError):
    """The repository says that it does not have the record."""


class SingleRecords:
    """Fetches records of one source repository individually.

    A record that fails costs no other record. After many failures in a row, some other records of the page are tried.
    If one of them comes, all are requested. Otherwise the page is given up; after a few such pages, the list.
    """

    def __init__(self, repository: Repository, records: Records, http: HttpSettings, patience: Patience) -> None:
        self._repository = repository
        self._records = records
        self._http = http
        self._once = http.model_copy(update={"retries": 0})
        self._patience = patience
        self._failed = self._barren = 0
        self._check_at = _MOST_IN_A_ROW
        self._last_success = ""

    async def all_of(self, headers: Sequence[ListedRecord]) -> list[ListedRecord]:
        """The records of these headers, in their order. Deleted records are not requested. Raises Stopped."""
        found: list[ListedRecord | None] = []
        for start in range(0, len(headers), _AT_ONCE):
            if self._failed >= self._check_at and not await self._gives_out_any(headers[start:]):
                found += map(self._skipped_record, headers[start:])
                break
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
        identifier = _identifier(header.document)
        try:
            record = await self._record(identifier)
        except FetchError as error:
            self._failed += not isinstance(error, NotThere)
            return self._failed_record(header, error.findings)
        self._failed, self._check_at, self._last_success = 0, _MOST_IN_A_ROW, identifier
        return record

    async def _record(self, identifier: str) -> ListedRecord | None:
        """One record. Raises FetchError; and Stopped, if no more records are to be requested."""
        http = self._http if self._failed < _MOST_IN_A_ROW else self._once
        try:
            content, _ = await in_attempts(lambda: self._ask(identifier), http, self._patience)
            return await asyncio.to_thread(checked_record, content, identifier, self._records)
        except FetchError as error:
            if isinstance(error, NotAsked) or error.counted or self._patience.heed():
                raise Stopped(error) from error
            raise

    async def _gives_out_any(self, headers: Sequence[ListedRecord]) -> bool:
        """True if the last record that came, or one of a few of these records, can be fetched. Raises Stopped."""
        others = [_identifier(header.document) for header in headers if _is_asked_for(header)]
        some = others[:: max(1, len(others) // _PROBES)][-_PROBES:]
        failure: FetchError | None = None
        for identifier in [self._last_success, *some] if self._last_success else some:
            failure = await self._why_not(identifier)
            if failure is None:
                break
        if failure is None:
            self._check_at, self._barren = self._failed + _MOST_IN_A_ROW, 0
            return True
        self._barren += 1
        if self._barren >= _MOST_BARREN:
            raise Stopped(failure)
        return False

    async def _why_not(self, identifier: str) -> FetchError | None:
        """Why this record cannot be fetched; None if it can, or does not exist. Raises Stopped."""
        try:
            await self._record(identifier)
        except NotThere:
            return None
        except FetchError as error:
            return error
        return None

    async def _ask(self, identifier: str) -> tuple[bytes, float]:
        return await self._repository.record(self._records.names.arguments(identifier), self._patience.left())

    def _failed_record(self, header: ListedRecord, why: Sequence[Finding]) -> ListedRecord:
        findings = (_about(_identifier(header.document), finding) for finding in why)
        return replace(ListedRecord(header.document, None, findings=tuple(findings)), is_away=True)

    def _skipped_record(self, header: ListedRecord) -> ListedRecord:
        if not _is_asked_for(header):
            return header
        identifier = _identifier(header.document)
        message = (
            f"The record {one_line(identifier, 200)} was not requested: the {self._failed:,} records before it failed, "
            "and some of the records after it."
        )
        remedy = f"{IN_THE_LOG} The harvester tries again by itself."
        finding = Finding("oai.record-failed", message, remedy, docid=identifier)
        return replace(ListedRecord(header.document, None, findings=(finding,)), is_away=True)


def checked_record(content: bytes, identifier: str, records: Records) -> ListedRecord | None:
    """The record in an answer to GetRecord, if it is the one; None: it is not in this format. Raises FetchError."""
    try:
        record, answer = record_in(content, records)
    except NoAnswer as error:
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
            Finding(
                "oai.record-failed", message, "The repository's keeper has GetRecord answer with the requested record."
            )
        )
    return record


def _is_asked_for(header: ListedRecord) -> bool:
    return not header.deleted and not any(finding.is_error for finding in header.findings)


def _identifier(document: ListedDocument) -> str:
    return document.origin.identifier if document.origin else document.document_id


def _about(identifier: str, why: Finding) -> Finding:
    message = f"The repository lists the record {one_line(identifier, 200)}, and it cannot be fetched: {why.message}"
    remedy = f"{IN_THE_LOG} All other records of the list were requested."
    return Finding("oai.record-failed", message, remedy, docid=identifier)
