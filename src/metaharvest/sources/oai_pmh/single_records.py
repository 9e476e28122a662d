"""Records one by one, by GetRecord, a few at a time: for the method list-identifiers, and around a page that fails."""

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
"""Records in a row that cannot be had, after which it is looked whether the repository gives out others.

Seen at https://github.com/IQSS/dataverse/issues/8005.
"""

_PROBES = 10
_MOST_BARREN = 3
"""Pages in a row that were given up, after which no more are asked for."""

_OF_RECORD = frozenset({"idDoesNotExist", "cannotDisseminateFormat"})


class Stopped(Exception):
    """No more records are asked for; `error` says why."""

    def __init__(self, error: FetchError) -> None:
        super().__init__(str(error))
        self.error = error


class NotThere(FetchError):
    """The repository says that it does not have the record."""


class SingleRecords:
    """Asks one repository for records by themselves.

    A record that cannot be had fails alone. After many failures in a row some other records are tried: if the
    repository gives out one of them, it is asked for all; if not, the page is given up, and after a few such pages the
    list.
    """

    def __init__(self, repository: Repository, records: Records, http: HttpSettings, patience: Patience) -> None:
        self._repository = repository
        self._records = records
        self._http = http
        self._once = http.model_copy(update={"retries": 0})
        self._patience = patience
        self._failed = self._barren = 0
        self._looked_at = _MOST_IN_A_ROW
        self._had = ""

    async def all_of(self, headers: Sequence[ListedRecord]) -> list[ListedRecord]:
        """The records of these headers, in their order; those that are deleted are not asked for. Raises Stopped."""
        found: list[ListedRecord | None] = []
        for start in range(0, len(headers), _AT_ONCE):
            if self._failed >= self._looked_at and not await self._gives_out_any(headers[start:]):
                found += map(self._given_up, headers[start:])
                break
            # If one of them ends the list, the others are waited for first: what they use is closed then.
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
            return self._unhad(header, error.findings)
        self._failed, self._looked_at, self._had = 0, _MOST_IN_A_ROW, identifier
        return record

    async def _record(self, identifier: str) -> ListedRecord | None:
        """One record. Raises FetchError; and Stopped, if no more are to be asked for."""
        http = self._http if self._failed < _MOST_IN_A_ROW else self._once
        try:
            content, _ = await in_attempts(lambda: self._ask(identifier), http, self._patience)
            return await asyncio.to_thread(checked_record, content, identifier, self._records)
        except FetchError as error:
            if isinstance(error, NotAsked) or error.counted or self._patience.heed():
                raise Stopped(error) from error
            raise

    async def _gives_out_any(self, headers: Sequence[ListedRecord]) -> bool:
        """Whether the repository gives out one that was had before, or one of a few of these. Raises Stopped."""
        others = [_identifier(header.document) for header in headers if _is_asked_for(header)]
        some = others[:: max(1, len(others) // _PROBES)][-_PROBES:]
        failure: FetchError | None = None
        for identifier in [self._had, *some] if self._had else some:
            failure = await self._failure(identifier)
            if failure is None:
                break
        if failure is None:
            self._looked_at, self._barren = self._failed + _MOST_IN_A_ROW, 0
            return True
        self._barren += 1
        if self._barren >= _MOST_BARREN:
            raise Stopped(failure)
        return False

    async def _failure(self, identifier: str) -> FetchError | None:
        """Why this record cannot be had; None if it can, or is not there. Raises Stopped."""
        try:
            await self._record(identifier)
        except NotThere:
            return None
        except FetchError as error:
            return error
        return None

    async def _ask(self, identifier: str) -> tuple[bytes, float]:
        return await self._repository.record(self._records.arguments(identifier), self._patience.left())

    def _unhad(self, header: ListedRecord, why: Sequence[Finding]) -> ListedRecord:
        findings = (_about(_identifier(header.document), finding) for finding in why)
        return replace(self._records.unhad(header.document, *findings), is_away=True)

    def _given_up(self, header: ListedRecord) -> ListedRecord:
        if not _is_asked_for(header):
            return header
        identifier = _identifier(header.document)
        message = (
            f"The record {one_line(identifier, 200)} was not asked for, as the {self._failed:,} before it could not be "
            "had, nor some of those after it."
        )
        remedy = f"{IN_THE_LOG} The harvester tries again by itself."
        finding = Finding("oai.record-failed", message, remedy, docid=identifier)
        return replace(self._records.unhad(header.document, finding), is_away=True)


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
            records.not_in_format(identifier)
        return None
    if record is None:
        nothing = ProtocolError("an answer without a record")
        raise FetchError(refused(f"the record {one_line(identifier, 200)}", [nothing]))
    if (came := _identifier(record.document)) != identifier:
        message = f"The repository was asked for {one_line(identifier, 200)} and sent {one_line(came, 200)}."
        raise FetchError(
            Finding("oai.record-failed", message, "The repository's keeper has GetRecord give what is asked for.")
        )
    return record


def _is_asked_for(header: ListedRecord) -> bool:
    return not header.deleted and not any(finding.is_error for finding in header.findings)


def _identifier(document: ListedDocument) -> str:
    return document.origin.identifier if document.origin else document.document_id


def _about(identifier: str, why: Finding) -> Finding:
    message = f"The repository lists the record {one_line(identifier, 200)}, and it cannot be had: {why.message}"
    remedy = f"{IN_THE_LOG} All other records of the list were asked for."
    return Finding("oai.record-failed", message, remedy, docid=identifier)
