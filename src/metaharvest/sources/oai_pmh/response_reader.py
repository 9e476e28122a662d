"""Reads answers that have records; very long ones in a process of its own, with limits of memory and time.

The process is started with the first such answer of a list, and ends with the list. To start it takes half a second.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from itertools import chain, islice
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import recv_handle, send_handle
from typing import BinaryIO

from lxml import etree

from metaharvest.fetch.xml_bounds import XmlLimits
from metaharvest.model import Finding, Level
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh.bounds import record_limits
from metaharvest.sources.oai_pmh.old import as_in_2_0, item_of
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.repair import DamagedResponse, Unreadable
from metaharvest.sources.oai_pmh.responses import (
    NotOaiResponse,
    ParseDamage,
    Response,
    TooDamaged,
    refuse_many,
    root_in,
    size_of,
    spool,
    strictly,
)
from metaharvest.text import one_line
from metaharvest.validation.parse_lock import parsing

log = logging.getLogger(__name__)

SECONDS = 60.0
"""From one part of an answer to the next: usual ones take a tenth of a second."""

MEMORY = 1_073_741_824
"""Bytes that the process may use for data; an answer of 200 MB takes a tenth of it."""

_MOST_RECORDS = 200
_MOST_BYTES = 8_388_608
"""Of one part; it ends with the record with which it has as many."""

USUAL_BYTES = 8_388_608
"""Bytes of an answer that the run reads itself, in one or two seconds at most."""

_OUT_OF_MEMORY = 77
"""The exit code of a process that has reached its memory limit."""

_Message = list[ListedRecord] | tuple[Response, dict[str, tuple[int, str]]] | Exception
"""From the process: a part of the records; at last the answer and what is odd about its records, or why it is none."""


def listed(file: BinaryIO, answer: Response, records: Records) -> Iterator[ListedRecord]:
    """The records of the answer in `file`, which is open at its start, also repaired and lost ones.

    Raises NotOaiResponse.
    """
    before, taken = records.odd.counted(), Counter[str]()
    limits = record_limits(records.largest)
    answer.root = root_in(file, answer.verb)
    try:
        try:
            for record in strictly(file, answer, lambda element: _taken(element, answer, records), limits):
                if record is not None:
                    taken[record.document.document_id] += 1
                    yield record
        except ParseDamage as error:
            answer.begin_again(error)
        if answer.damage:  # the error is forgotten, as it would keep the tree
            records.odd.restart(before)
            for record in _cut(file, answer, records, limits):
                taken[record.document.document_id] -= 1
                if taken[record.document.document_id] < 0:
                    yield record
    except TooDamaged as error:
        answer.damage = str(error)
    records.odd.add({kind: (number, answer.example[kind]) for kind, number in answer.odd.items()})


def _taken(element: etree._Element, answer: Response, records: Records) -> ListedRecord | None:
    """The record in an element, which may be in another namespace than its answer; None if there is none."""
    namespace = str(element.tag).rpartition("}")[0].removeprefix("{")
    if namespace != answer.root.namespace:
        answer.note("namespace", namespace or "none")
        answer = replace(answer, root=replace(answer.root, namespace=namespace))
    known = as_in_2_0(element, answer.root) if answer.root.is_old else element
    if known is None:
        records.odd.note("no-format", element.findtext(f"*/{answer.root.name('identifier')}") or "")
        record = None
    else:
        record = records.header(known, answer) if answer.verb == "ListIdentifiers" else records.taken(known, answer)
    if record is None:
        answer.unusable.append(hash(str(element.xpath("string()"))))
        refuse_many(len(answer.unusable))
    return record


def _cut(file: BinaryIO, answer: Response, records: Records, limits: XmlLimits) -> Iterator[ListedRecord]:
    """The records of an answer that is not well-formed, or too crowded. Raises NotOaiResponse."""
    damaged = DamagedResponse(file, answer.root, answer.verb, item_of(answer.root, answer.verb), limits)
    answer.response_date = damaged.response_date
    number = 0
    for piece in damaged.records():
        if isinstance(piece, Unreadable):
            number += 1
            refuse_many(number)
            record = records.lost(piece, answer.response_date)
            if record is None:
                answer.unusable.append(None)
        else:
            record = _taken(piece.element, answer, records)
            if record is not None and piece.is_repaired:
                record = replace(record, findings=(*record.findings, _repaired(record)))
        if record is not None:
            yield record
    answer.add_envelope(damaged.envelope())


def record_in(content: bytes, records: Records) -> tuple[ListedRecord | None, Response]:
    """The record in an answer to GetRecord; None if there is none. Raises NotOaiResponse."""
    answer = Response("GetRecord")
    with spool() as file, closing(ResponseReader()) as reader:
        file.write(content)
        parts = reader.parts(file, answer, records)
        found = list(islice(chain.from_iterable(parts), 2))
    return (found[0] if found else None), answer


def parts_of(found: Iterator[ListedRecord]) -> Iterator[list[ListedRecord]]:
    """Records in parts, in which no other thread compiles a schema."""
    more = True
    while more:
        some: list[ListedRecord] = []
        size, more = 0, False
        with parsing():
            for record in found:
                some.append(record)
                size += len(record.content or b"")
                if more := len(some) == _MOST_RECORDS or size >= _MOST_BYTES:
                    break
        if some:
            yield some


class ResponseReader:
    """Reads one answer after the other. To be used in one thread, but for close()."""

    def __init__(self) -> None:
        self._started: tuple[SpawnProcess, Connection] | None = None

    def parts(self, file: BinaryIO, answer: Response, records: Records) -> Iterator[list[ListedRecord]]:
        """The records of the answer in `file`, part by part; see listed(). No part is empty.

        `answer`, and what `records` count, are complete at the end. Raises NotOaiResponse, also if a limit is reached.
        """
        if size_of(file) <= USUAL_BYTES:
            return parts_of(listed(file, answer, records))
        try:
            process, channel = self._process()
        except OSError as error:
            log.warning("The run's own process reads long answers, as no other can be started: %s", error)
            return parts_of(listed(file, answer, records))
        return self._parts_elsewhere(file, answer, records, process, channel)

    def _parts_elsewhere(
        self, file: BinaryIO, answer: Response, records: Records, process: SpawnProcess, channel: Connection
    ) -> Iterator[list[ListedRecord]]:
        """What the process reads. Raises NotOaiResponse; and OSError if there is no room for the file on the disk."""
        file.flush()
        number = file.fileno()  # what was in memory is put on the disk
        message: _Message | None = None
        try:
            channel.send((answer.verb, records))
            send_handle(channel, number, process.pid)
            while isinstance(message := _received(channel, answer.verb), list):
                yield message
        except (EOFError, ConnectionError) as error:
            process.join(SECONDS)
            is_memory = process.exitcode in (_OUT_OF_MEMORY, -signal.SIGABRT)
            raise NotOaiResponse(
                _too_costly(answer.verb, "the memory that it may take" if is_memory else "")
            ) from error
        finally:
            if message is None or isinstance(message, list):
                self.close()
        if isinstance(message, Exception):
            raise message
        read, odd = message
        answer.become(read)
        records.odd.add(odd)

    def close(self) -> None:
        """End the process, whatever it does."""
        started, self._started = self._started, None
        if started is not None:
            process, _ = started
            process.kill()
            process.join()

    def _process(self) -> tuple[SpawnProcess, Connection]:
        """The process, which is started if there is none, and the channel to it. Raises OSError."""
        if self._started is None:
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, MEMORY), daemon=True, name="metaharvest-oai")
            process.start()
            theirs.close()
            self._started = process, ours
        return self._started


def _received(channel: Connection, verb: str) -> _Message:
    """The next message. Raises EOFError and ConnectionError if the process has ended.

    Raises NotOaiResponse if the message takes too long.
    """
    if not channel.poll(SECONDS):
        raise NotOaiResponse(_too_costly(verb, f"{SECONDS:.0f} seconds"))
    message: _Message = channel.recv()
    return message


def _too_costly(verb: str, limit: str) -> Finding:
    cost = f"takes more than {limit}" if limit else "ended the process that reads it"
    message = f"To read the answer to {verb} {cost}."
    return Finding(
        "oai.too-large", message, "The repository's keeper should find out what in it is so large, or so damaged."
    )


def _serve(channel: Connection, memory: int) -> None:
    """What the process runs: it reads the answers that come through the channel, until that is closed.

    Signals that go to all processes of a terminal, or of a service, are for the run.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _, highest = resource.getrlimit(resource.RLIMIT_DATA)
    most = memory if highest == resource.RLIM_INFINITY else min(memory, highest)
    resource.setrlimit(resource.RLIMIT_DATA, (most, highest))
    with suppress(EOFError, ConnectionError):
        while True:
            verb, records = channel.recv()
            with os.fdopen(recv_handle(channel), "rb") as file:
                channel.send(_read(channel, file, Response(verb), records))


def _read(channel: Connection, file: BinaryIO, answer: Response, records: Records) -> _Message:
    """Send the records of this answer, part by part, and return the last message."""
    file.seek(0)
    records.odd.restart({})
    try:
        for part in parts_of(listed(file, answer, records)):
            channel.send(part)
    except NotOaiResponse as error:
        return error
    except MemoryError:
        os._exit(_OUT_OF_MEMORY)
    except ConnectionError:  # the run has ended
        raise
    except Exception as error:  # noqa: BLE001 - the run logs it, with its traceback
        unexpected = RuntimeError(str(error) or type(error).__name__)
        unexpected.add_note(traceback.format_exc())
        return unexpected
    return answer, records.odd.counted()


def _repaired(record: ListedRecord) -> Finding:
    identifier = record.document.origin.identifier if record.document.origin else record.document.document_id
    message = (
        f"The repository's record {one_line(identifier, 200)} has bytes that are no text, or characters that XML does "
        "not have; each was replaced by U+FFFD (\ufffd)."
    )
    remedy = "The repository's keeper enters the text again, as UTF-8: what stood there is lost."
    return Finding("oai.damaged-text", message, remedy, Level.WARNING, docid=identifier)
