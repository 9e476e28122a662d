"""The code of a worker process: it checks the documents that it is sent, one after the other.

Starting and ending workers, and the time limit for one document, are up to the code that owns the pool. What is
imported here is imported in every worker, so it is kept small: xmlschema only comes when a document has failed.
"""

from __future__ import annotations

import os
import resource
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from metaharvest.model import ListedDocument, Verdict
from metaharvest.validation.processing_policy import ProcessingPolicy
from metaharvest.validation.validator import Validator

TOO_COSTLY = signal.SIGPROF
"""The signal of the time limit: nothing else ends the evaluation of an XPath."""

OUT_OF_MEMORY = 77
"""The exit code of a process that has reached its memory limit, after which it cannot go on."""

_SHORT_SECONDS = 0.005
"""A check that takes no longer has not filled half of the memory limit. To read the peak takes a twentieth of a check.
"""

_validator: Validator | None = None
"""The process's one validator. A pool gives its functions nothing but their arguments, so `start` leaves it here."""

_longest = 0.0
_transform_seconds = 0.0
_memory_bytes = 0


def start(
    other_document_types: tuple[str, ...], longest: float = 0.0, transform_seconds: float = 3.0, memory_bytes: int = 0
) -> None:
    """The pool's initializer. `other_document_types`: as for Validator.

    `longest`: seconds after which the process ends itself if a call is not done; 0: none. The pool ends it earlier,
    unless the process of the run is gone. `transform_seconds`: the processor time for a site's filters and normalising
    of one document. `memory_bytes`: the memory of the process (RLIMIT_DATA); 0: no limit. Beyond either, the process
    ends itself.

    SIGINT and SIGHUP go to all processes of a terminal; only the main process acts on them. The pool ends a worker with
    SIGTERM: with its default action that works at any moment, also in the middle of C code.
    """
    global _validator, _longest, _transform_seconds, _memory_bytes
    _longest, _transform_seconds, _memory_bytes = longest, transform_seconds, memory_bytes
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in (signal.SIGTERM, TOO_COSTLY):
        signal.signal(number, signal.SIG_DFL)
    _validator = Validator(other_document_types, at_once=1, limit=_limited)
    if memory_bytes:
        _, highest = resource.getrlimit(resource.RLIMIT_DATA)
        most = memory_bytes if highest == resource.RLIM_INFINITY else min(memory_bytes, highest)
        resource.setrlimit(resource.RLIMIT_DATA, (most, highest))


@contextmanager
def _limited() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, _transform_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def check_all(batch: list[tuple[bytes, ListedDocument, ProcessingPolicy]]) -> list[Verdict | str]:
    """The verdict on each document of `batch`: the arguments of Validator.check.

    An unexpected error becomes a text with its type, message and traceback, for that document alone.
    """
    if _validator is None:
        raise RuntimeError("start() was not called in this process.")
    signal.setitimer(signal.ITIMER_REAL, _longest)
    try:
        return [_verdict_or_error(_validator, *each) for each in batch]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _verdict_or_error(
    validator: Validator, content: bytes, document: ListedDocument, how: ProcessingPolicy
) -> Verdict | str:
    began = time.monotonic()
    try:
        verdict = validator.check(content, document, how)
        if not verdict.acceptable and _is_near_limit():
            # Some calls of libxml2 give no certain sign of it: they report an unknown error.
            os._exit(OUT_OF_MEMORY)
        return verdict
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except Exception as error:  # noqa: BLE001 - the other documents of the batch are checked all the same
        if _is_near_limit():
            os._exit(OUT_OF_MEMORY)
        return "".join(traceback.format_exception(error))
    finally:
        if time.monotonic() - began > _SHORT_SECONDS and _is_near_limit():
            with suppress(OSError):  # let Linux count the highest use of memory from now on
                Path("/proc/self/clear_refs").write_text("5")


def _is_near_limit() -> bool:
    """True if the process has used more than half of its memory limit. Without /proc: False."""
    if not _memory_bytes or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 <= _memory_bytes / 2:
        return False
    # The number of getrusage() may be from the process that started this one, or from an earlier document.
    try:
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return False
    return int(peak.split()[1]) * 1024 > _memory_bytes / 2
