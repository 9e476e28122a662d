"""Checks documents beside the event loop: small ones of small runs in a thread, all others in worker processes.

Python runs one thread of a process at a time, and checking is half of what a document costs: worker processes leave the
run's own process free to fetch and to write. The quick workers check most documents in milliseconds, several in one
call. A document that takes long, or ends its worker, is checked again alone by the thorough workers. These have a time
limit, so that such a document delays no other one.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from metaharvest.config.settings import ValidationSettings
from metaharvest.errors import HarvestError
from metaharvest.harvest.checks.worker_pool import (
    NoWorkers,
    OutOfMemory,
    Task,
    TookTooLong,
    TransformTookTooLong,
    WorkerLost,
    WorkerPool,
)
from metaharvest.harvest.limits import CheckLimits
from metaharvest.model import Finding, ListedDocument, Verdict
from metaharvest.model.values import frozen
from metaharvest.validation.processing_policy import ProcessingPolicy, too_costly

if TYPE_CHECKING:
    from metaharvest.validation.validator import Validator

log = logging.getLogger(__name__)

DOCUMENTS_A_CALL = 64
"""Documents in one call of a quick worker, if that many wait."""

BYTES_A_CALL = 2_000_000

MOST_QUICK_WORKERS = 4
"""More workers would be faster than the process that fetches and writes."""

THOROUGH_WORKERS = 2
"""Documents that may be checked thoroughly at a time. Each is of another site, so that one site cannot hold all places.
"""

_MB = 1_000_000

_ATTEMPTS = 2
"""The number of workers that may end under a document before the document is blamed."""


MOST_TOO_COSTLY = 3
"""Documents of a site whose filters or normalising may take too long, before its other documents are put off."""

_REPORTED_ONCE = "validation.no-schema"
"""The rule of a warning that is about a format, not about a document."""


class FiltersGivenUp(HarvestError):
    """The site's filters or its normalising take too long, or could not be ended: they are not tried again."""


class CheckerLost(HarvestError):
    """The process that checked a document ended early, more than once."""


@frozen
class _Job:
    """A document that waits for a quick worker; the verdict is None if the document must be checked thoroughly."""

    site_run_id: int
    task: Task
    verdict: asyncio.Future[Verdict | None]


class Checker:
    """Checks the documents of one run. It is made, used and closed in one event loop.

    Costly filters and reported formats count for one site run: before the next one, a person may have corrected the
    files of the site.

    `meanwhile` is called in a thread while worker processes start: until then, there is little else to do.
    """

    def __init__(
        self, settings: ValidationSettings, limits: CheckLimits, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        self._limits = limits
        self._seconds = settings.time_limit
        self._memory = settings.memory_limit
        self._types = types = settings.other_document_types
        number = limits.quick_workers or min(MOST_QUICK_WORKERS, max(1, _cores() - 1))
        self._quick = WorkerPool(number, types, limits.quick_seconds, limits, meanwhile, self._memory * _MB)
        self._thorough = WorkerPool(THOROUGH_WORKERS, types, self._seconds, limits, memory_bytes=self._memory * _MB)
        self._thorough_free = asyncio.Semaphore(THOROUGH_WORKERS)
        self._site_runs: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._too_costly: Counter[int] = Counter()
        self._given_up: dict[int, Finding] = {}
        self._reported: set[tuple[int, Finding]] = set()
        self._expected = 0
        self._jobs: deque[_Job] = deque()
        self._single_jobs: deque[_Job] = deque()
        self._calls: set[asyncio.Task[None]] = set()

    @cached_property
    def _validator(self) -> Validator:
        """The validator of this process. Records that reading has checked need none: it takes 2 MB of memory."""
        from metaharvest.validation.validator import Validator

        return Validator(self._types)

    def expect(self, number: int) -> None:
        """Expect `number` more documents: if they are many, start worker processes for them."""
        self._expected += number
        if self._expected > self._limits.few:
            self._quick.start_soon()

    def prestart_workers(self, number: int) -> None:
        """Start the worker processes early: up to `number` documents will need a check."""
        if number > self._limits.few:
            self._quick.start_soon()

    def require_filters(self, site_run_id: int) -> None:
        """Raises FiltersGivenUp if the documents of this site run are not filtered or normalised any more."""
        if why := self._given_up.get(site_run_id):
            raise FiltersGivenUp(why)

    async def check(self, site_run_id: int, content: bytes, document: ListedDocument, how: ProcessingPolicy) -> Verdict:
        """The verdict on a document. Raises CheckerLost and FiltersGivenUp.

        A worker, which can be ended, runs the site's own files on the document. A finding about a format is reported
        only with the first document of a site run in that format.
        """
        verdict = await self._verdict(site_run_id, (content, document, how))
        if too_costly() in verdict.findings:
            self._too_costly[site_run_id] += 1
            if self._too_costly[site_run_id] >= MOST_TOO_COSTLY:
                self._given_up[site_run_id] = _GIVEN_UP
        if not any(finding.rule == _REPORTED_ONCE for finding in verdict.findings):
            return verdict
        new = [
            each
            for each in verdict.findings
            if each.rule != _REPORTED_ONCE or (site_run_id, each) not in self._reported
        ]
        self._reported.update((site_run_id, each) for each in new)
        return replace(verdict, findings=tuple(new))

    async def _verdict(self, site_run_id: int, task: Task) -> Verdict:
        content, _, how = task
        if len(content) <= self._limits.small and not self._quick.is_up and not how.transforms:
            return await self._check_here(task)
        self.require_filters(site_run_id)
        if len(content) < self._limits.large:
            job = _Job(site_run_id, task, asyncio.get_running_loop().create_future())
            self._jobs.append(job)
            self._call_workers()
            if (verdict := await job.verdict) is not None:
                return verdict
        async with self._site_runs[site_run_id], self._thorough_free:
            self.require_filters(site_run_id)
            return await self._check_thoroughly(site_run_id, task)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the workers, without waiting for their results."""
        self._jobs.clear()
        self._single_jobs.clear()
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        await asyncio.gather(self._quick.close(), self._thorough.close())

    async def _check_here(self, task: Task) -> Verdict:
        return await asyncio.to_thread(self._validator.check, *task)

    async def _check_thoroughly(self, site_run_id: int, task: Task) -> Verdict:
        """The verdict of a worker that has the document alone. Raises CheckerLost and FiltersGivenUp."""
        for _ in range(_ATTEMPTS):
            try:
                [verdict] = await self._thorough.check_all([task])
            except TookTooLong:
                return Verdict((_too_expensive(self._seconds),))
            except OutOfMemory:
                return Verdict((_too_large(self._memory),))
            except TransformTookTooLong:
                return Verdict((too_costly(),))
            except WorkerLost:
                log.warning("A process that checks documents ended, and is started again")
            except NoWorkers:
                if task[2].transforms:
                    # The run's own process could not stop the evaluation of an XPath from a site's file.
                    self._given_up[site_run_id] = _NO_PROCESS
                    raise FiltersGivenUp(_NO_PROCESS) from None
                return await self._check_here(task)
            else:
                return verdict
        raise CheckerLost(_LOST, transient=True)

    def _call_workers(self) -> None:
        """Give waiting documents to the quick workers: at once if a worker is idle, otherwise in full calls."""
        while self._has_jobs_for(len(self._calls)):
            if not (jobs := list(self._next_jobs())):
                continue
            call = asyncio.create_task(self._call(jobs))
            self._calls.add(call)
            call.add_done_callback(self._called)

    def _has_jobs_for(self, calls: int) -> bool:
        """True if another call is worthwhile beside these `calls`: one beyond the workers must be full."""
        waiting = len(self._jobs) + len(self._single_jobs)
        return waiting > 0 and calls < self._quick.number + (len(self._jobs) >= DOCUMENTS_A_CALL)

    def _next_jobs(self) -> Iterator[_Job]:
        if self._single_jobs:
            job = self._single_jobs.popleft()
            if job.site_run_id not in self._given_up:
                yield job
            elif not job.verdict.done():
                job.verdict.set_result(None)
            return
        size = 0
        for _ in range(min(DOCUMENTS_A_CALL, len(self._jobs))):
            size += len(self._jobs[0].task[0])
            yield self._jobs.popleft()
            if size > BYTES_A_CALL:
                return

    def _called(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self._call_workers()

    async def _call(self, jobs: Sequence[_Job]) -> None:
        """Have a quick worker check these. If anything goes wrong, each is checked alone: quickly, then thoroughly."""
        verdicts: Sequence[Verdict | None]
        try:
            verdicts = await self._quick.check_all([job.task for job in jobs])
        except Exception as error:  # noqa: BLE001 - reported when the document is checked alone
            log.debug("Documents are checked one by one: %r", error)
            if len(jobs) > 1:
                self._single_jobs.extend(jobs)
                return
            verdicts = [Verdict((too_costly(),)) if isinstance(error, TransformTookTooLong) else None]
        for job, verdict in zip(jobs, verdicts, strict=True):
            if not job.verdict.done():
                job.verdict.set_result(verdict)


def _cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _too_expensive(seconds: float) -> Finding:
    return Finding(
        "validation.too-expensive",
        f"The document could not be checked within {seconds:g} seconds, the most that it may take.",
        "Look for what makes it so costly: elements nested very deeply, many thousands of ids and references, or very "
        "long values. If the document is right as it is, ask the harvester's administrator to raise the limit "
        "([validation] time_limit).",
    )


def _too_large(megabytes: int) -> Finding:
    return Finding(
        "validation.too-expensive",
        f"The document could not be checked within {megabytes:,} MB of memory, the most that it may take.",
        "Divide the document, or look for what is repeated very often in it: elements, attributes, namespaces. If the "
        "document is right as it is, ask the harvester's administrator to raise the limit ([validation] memory_limit).",
    )


_GIVEN_UP = Finding(
    "filter.too-expensive",
    f"The filters of this site, or its normalising, took too long on {MOST_TOO_COSTLY} documents, so that no other one "
    "was tried.",
    "The harvester's administrator should simplify the XPath or the regular expression in the files of this site; the "
    "documents that were put off are tried again by the next run.",
)
_NO_PROCESS = Finding(
    "harvest.no-helper",
    "The system let the harvester start no process that could be ended if the filters of this site, or its "
    "normalising, took too long, so that its documents were put off.",
    "The administrator should check whether there is enough memory, and how many processes the harvester's user may "
    "have; the documents are tried again by the next run.",
)
_LOST = Finding(
    "harvest.helper-lost",
    "The harvester's own process that checked this document ended, or hung, before it was done.",
    "It is tried again by itself. If this is reported every night, the administrator should check that the machine "
    "has enough memory, and report the document to the developers of metaharvest.",
)
