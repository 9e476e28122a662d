"""Reads answers that have records; very long and damaged ones in a process of its own, with limits of memory and time.

To search 20 MB of tags that are no records takes a minute, in which Python lets no other site have its turn (measured).
The process is started with the first such answer of a list, and ends with the list. To start it takes half a second.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import fields, replace
from itertools import chain, islice
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import BinaryIO

from lxml import etree

from metaharvest.model import Finding, Level
from metaharvest.model.values import frozen
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh.mapped_file import spool
from metaharvest.sources.oai_pmh.protocol import as_in_2_0
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.repair import NOTICE, Repaired, in_notice, notice_before
from metaharvest.sources.oai_pmh.responses import (
    NotOaiResponse,
    ParseDamage,
    Response,
    TooDamaged,
    items,
    refuse_unusable,
    size_of,
)
from metaharvest.text import one_line
from metaharvest.validation.parse_lock import parsing

log = logging.getLogger(__name__)

SECONDS = 60.0
"""Seconds from one part of an answer to the next: usual parts take a tenth of a second."""

MEMORY = 1_073_741_824
"""Bytes that the process may use for data; an answer of 200 MB takes a tenth of it."""

MOST_RECORDS = 200
MOST_BYTES = 8_388_608
"""Of one part; it ends with the record with which it has as many."""

_FEW_BYTES = 65_536
"""Bytes of an answer that the run reads itself if it is damaged, in a third of a second at most."""

_USUAL_BYTES = 8_388_608
"""Bytes of an answer that the run reads itself if it is well-formed, in one or two seconds at most."""

_OUT_OF_MEMORY = 77
"""The exit code of a process that has reached its memory limit."""

_PROGRAM = """
import sys
number, memory, *sys.path = sys.argv[1:]
from metaharvest.sources.oai_pmh.response_reader import serve
serve(int(number), int(memory))
"""
"""The program of the process. multiprocessing would start another process of 12 MB beside it."""


@frozen
class _End:
    """The answer is read: what is known of it, and what was odd about its records."""

    answer: Response
    odd: dict[str, tuple[int, str]]


def listed(file: BinaryIO, answer: Response, records: Records, *, cuts: bool = True) -> Iterator[ListedRecord]:
    """The records of the answer in `file`, also repaired and lost ones. Raises NotOaiResponse.

    Without `cuts`, it raises ParseDamage if the answer is not well-formed, or too crowded.
    """
    usable = records.header if answer.verb == "ListIdentifiers" else records.taken

    def take(element: etree._Element, answer: Response) -> ListedRecord | None:
        known = as_in_2_0(element, answer.root) if answer.root.is_old else element
        if known is None:
            records.odd.note("no-format", element.findtext(f"*/{answer.root.name('identifier')}") or "")
        record = None if known is None else usable(known, answer)
        if record is None:
            answer.unusable.append(hash(str(element.xpath("string()"))))
            refuse_unusable(answer, len(answer.unusable))
        return record

    number = 0
    with suppress(TooDamaged):
        for item in items(file, answer, take, records.largest, cuts=cuts):
            if isinstance(item, ListedRecord):
                yield item
            elif isinstance(item, Repaired):
                yield replace(item.item, findings=(*item.item.findings, _repaired(item.item)))
            else:
                number += 1
                refuse_unusable(answer, number)
                if lost := records.lost(item, answer.response_date):
                    yield lost
                else:
                    answer.unusable.append(None)
    records.odd.add(answer.odd.counted())


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
                if more := len(some) == MOST_RECORDS or size >= MOST_BYTES:
                    break
        if some:
            yield some


class ResponseReader:
    """Reads one answer after the other. All methods but close() belong to one thread."""

    def __init__(self) -> None:
        self._started: tuple[subprocess.Popen[bytes], Connection] | None = None

    def parts(self, file: BinaryIO, answer: Response, records: Records) -> Iterator[list[ListedRecord]]:
        """The records of the answer in `file`, part by part; see listed(). No part is empty.

        `answer`, and the counts of `records`, are complete at the end. A text before the answer is made blank. Raises
        NotOaiResponse, also at a limit.
        """
        notice = _without_notice(file)
        yield from self._here_or_elsewhere(file, answer, records)
        if notice:
            answer.is_ill_formed, answer.damage = True, in_notice(notice)

    def _here_or_elsewhere(self, file: BinaryIO, answer: Response, records: Records) -> Iterator[list[ListedRecord]]:
        """The parts, read in this process if the answer is short, or well-formed and usual."""
        before, size, here = records.odd.counted(), size_of(file), 0
        try:
            if size <= _USUAL_BYTES:
                for part in parts_of(listed(file, answer, records, cuts=size <= _FEW_BYTES)):
                    here += len(part)
                    yield part
                return
        except ParseDamage:
            records.odd.restart(before)
        try:
            process, channel = self._process()
        except OSError as error:
            log.warning("The run's own process reads long answers, as no other can be started: %s", error)
            file.seek(0)
            parts = parts_of(listed(file, answer, records))
        else:
            parts = self._parts_elsewhere(file, answer, records, process, channel)
        for part in parts:
            if some := part[here:]:
                yield some
            here = max(0, here - len(part))

    def _parts_elsewhere(
        self, file: BinaryIO, answer: Response, records: Records, process: subprocess.Popen[bytes], channel: Connection
    ) -> Iterator[list[ListedRecord]]:
        """The parts that the process reads. Raises NotOaiResponse; and OSError if the disk has no room for the file."""
        file.flush()
        number = file.fileno()  # what was in memory is put on the disk
        what: list[ListedRecord] | _End | Finding | str | None = None
        try:
            channel.send((answer.verb, records))
            send_handle(channel, number, process.pid)
            while isinstance(what := _received(channel, answer.verb), list):
                yield what
        except (EOFError, ConnectionError) as error:
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS)
            is_memory = process.returncode in (_OUT_OF_MEMORY, -signal.SIGABRT)
            raise NotOaiResponse(
                _too_costly(answer.verb, "the memory that it may take" if is_memory else "")
            ) from error
        finally:
            if what is None or isinstance(what, list):
                self.close()
        if isinstance(what, Finding):
            raise NotOaiResponse(what)
        if isinstance(what, str):
            unexpected = RuntimeError(what.strip().splitlines()[-1])
            unexpected.add_note(what)
            raise unexpected
        for field in fields(Response):
            if field.name != "date":
                setattr(answer, field.name, getattr(what.answer, field.name))
        records.odd.add(what.odd)

    def close(self) -> None:
        """End the process at once."""
        started, self._started = self._started, None
        if started is not None:
            process, _ = started
            process.kill()
            process.wait()

    def _process(self) -> tuple[subprocess.Popen[bytes], Connection]:
        """The process, started if there is none, and the channel to it. Raises OSError."""
        if self._started is None:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                number = theirs.fileno()
                command = [sys.executable, "-P", "-c", _PROGRAM, str(number), str(MEMORY), *sys.path]
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[number])
                self._started = process, Connection(ours.detach())
        return self._started


def _without_notice(file: BinaryIO) -> bytes:
    """The text before the answer in `file`, which is at its start afterwards; there it is blank from now on.

    Empty if there is none.
    """
    file.seek(0)
    head = file.read(NOTICE)
    notice = head[: notice_before(head)]
    file.seek(0)
    if notice:
        file.write(b" " * len(notice))
        file.seek(0)
    return notice


def _received(channel: Connection, verb: str) -> list[ListedRecord] | _End | Finding | str:
    """The next message. Raises EOFError and ConnectionError if the process has ended; NotOaiResponse after SECONDS."""
    if not channel.poll(SECONDS):
        raise NotOaiResponse(_too_costly(verb, f"{SECONDS:.0f} seconds"))
    what: list[ListedRecord] | _End | Finding | str = channel.recv()
    return what


def _too_costly(verb: str, limit: str) -> Finding:
    cost = f"takes more than {limit}" if limit else "ended the process that reads it"
    message = f"To read the answer to {verb} {cost}."
    return Finding(
        "oai.too-large", message, "The repository's keeper should find out what in it is so large, or so damaged."
    )


def serve(number: int, memory: int) -> None:
    """Read the answers that come through the socket of this number, until it is closed. This runs in the process.

    The process ignores signals that go to all processes of a terminal or of a service: the run handles them.
    """
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    _, highest = resource.getrlimit(resource.RLIMIT_DATA)
    most = memory if highest == resource.RLIM_INFINITY else min(memory, highest)
    resource.setrlimit(resource.RLIMIT_DATA, (most, highest))
    with Connection(number) as channel, suppress(EOFError, ConnectionError):
        while True:
            verb, records = channel.recv()
            with os.fdopen(recv_handle(channel), "rb") as file:
                channel.send(_read(channel, file, Response(verb), records))


def _read(channel: Connection, file: BinaryIO, answer: Response, records: Records) -> _End | Finding | str:
    """Send the records of this answer, and return the last message: its end, why it is none, or an unexpected error."""
    file.seek(0)
    records.odd.restart({})
    try:
        for part in parts_of(listed(file, answer, records)):
            channel.send(part)
    except NotOaiResponse as error:
        return error.finding
    except MemoryError:
        os._exit(_OUT_OF_MEMORY)
    except ConnectionError:  # the run has ended
        raise
    except Exception as error:  # noqa: BLE001 - the run logs it, with its traceback
        return "".join(traceback.format_exception(error))
    return _End(answer, records.odd.counted())


def _repaired(record: ListedRecord) -> Finding:
    identifier = record.document.origin.identifier if record.document.origin else record.document.document_id
    message = (
        f"The repository's record {one_line(identifier, 200)} has bytes that are no text, or characters that XML does "
        "not have; each was replaced by U+FFFD (\ufffd)."
    )
    remedy = "The repository's keeper should enter the text again, as UTF-8: the original characters are lost."
    return Finding("oai.damaged-text", message, remedy, Level.WARNING, docid=identifier)
