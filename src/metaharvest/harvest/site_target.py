"""The target as the documents of one site go into it, and the health of each target in a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Literal, NoReturn, Self, TypeVar

from metaharvest.database.engine import Sessions
from metaharvest.errors import SettingsError, TargetError
from metaharvest.fetch.health import FAILURES_IN_A_ROW
from metaharvest.model import Action, Finding, Holding, Site
from metaharvest.model.actions import Remedy, todo
from metaharvest.targets.base import Target, TargetSession, TransactionalTarget, Upload
from metaharvest.targets.interruption import Interrupted, carried
from metaharvest.targets.lookup import Targets
from metaharvest.targets.owners import session_of
from metaharvest.targets.withdrawals import withdrawals_of

Answer = TypeVar("Answer")


class TargetHealth:
    """The number of times in a row that the target did not answer this run; `given_up`: its errors, once too many."""

    def __init__(self) -> None:
        self._failures = 0
        self.given_up: tuple[Finding, ...] = ()

    def failed(self, findings: tuple[Finding, ...]) -> None:
        """Note that the target did not answer."""
        self._failures += 1
        if self._failures >= FAILURES_IN_A_ROW:
            self.give_up(findings)

    def give_up(self, findings: tuple[Finding, ...]) -> None:
        """Note that the target did not answer a question about very many documents, or a login."""
        self.given_up = self.given_up or findings

    def answered(self) -> None:
        """Note that the target stored a document, refused one, or answered a question about one."""
        self._failures = 0


class SiteTargetHealth:
    """The health of a target for one site, which also gives it up when the site's own time is up."""

    def __init__(self, of_run: TargetHealth) -> None:
        self._of_run = of_run
        self._interrupted: tuple[Finding, ...] = ()

    @property
    def given_up(self) -> tuple[Finding, ...]:
        """The reasons why it is not asked any more; empty: it is asked."""
        return self._interrupted or self._of_run.given_up

    def failed(self, error: TargetError) -> None:
        """Note that it did not answer."""
        if isinstance(error, Interrupted):
            self._interrupted = error.findings
        else:
            self._of_run.failed(error.findings)

    def give_up(self, error: TargetError) -> None:
        """Note that it did not answer a login, or a question about very many documents."""
        if isinstance(error, Interrupted):
            self._interrupted = error.findings
        else:
            self._of_run.give_up(error.findings)

    def answered(self) -> None:
        """Note that it answered a question about a document."""
        self._of_run.answered()


class SiteTarget:
    """A target during the harvest of one site. Made by `RunTargets.of`."""

    def __init__(self, session: TargetSession, used: _UsedTarget, health: SiteTargetHealth, sessions: Sessions) -> None:
        self._sessions = sessions
        self.target = used.target
        self.health = health
        self.sending = used.sending
        self._session = session
        self._threads = used.threads

    @property
    def in_journal(self) -> TransactionalTarget | None:
        """The target, if it is written in the journal's own transactions."""
        return self._session if self._session.writes_in_journal else None

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The target's holdings of these documents; empty if it does not answer. To be called in a thread."""
        held = self._known(self._session.holdings, document_ids)
        if document_ids and (gone := self._withdrawn(document_ids)):
            held = {**held, **gone}
        return held

    def _withdrawn(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The withdrawn documents among these, which no site brings in."""
        with self._sessions() as session:
            found = withdrawals_of(session, document_ids)
        return {each: Holding(each, 0, withdrawn=withdrawal) for each, withdrawal in found.items()}

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """The highest revision that the target had of each deleted document among these; like `holdings`."""
        return self._known(self._session.used_up, document_ids)

    def _known(
        self, question: Callable[[Sequence[str]], Mapping[str, Answer]], document_ids: Sequence[str]
    ) -> Mapping[str, Answer]:
        if self.health.given_up or not document_ids:
            return {}
        try:
            return question(document_ids)
        except TargetError as error:
            self.health.give_up(error)
            return {}

    async def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """True if the target holds exactly these bytes under this docid. Raises TargetError."""
        return await self._asked(partial(self._session.holds, document_id, revision, sha256))

    async def has(self, document_id: str, revision: int) -> bool:
        """True if the target holds anything under this docid. Raises TargetError."""
        content = await self._asked(partial(self.target.content, document_id, revision))
        return content is not None

    async def delete(self, document_id: str) -> bool:
        """Report a deletion to a target that is not written in the journal's transactions. Raises TargetError."""
        session = self._session
        assert not session.writes_in_journal
        return await self._asked(partial(session.delete, document_id))

    async def upload(self, upload: Upload) -> Action:
        """Send a document to a target that is not written in the journal's transactions. Raises TargetError."""
        session = self._session
        assert not session.writes_in_journal
        return await self._asked(partial(session.upload, upload))

    async def _asked(self, question: Callable[[], Answer]) -> Answer:
        """The answer of the target. If it refuses one document, it has answered."""
        try:
            answer = await self._in_thread(question)
        except TargetError as error:
            if error.transient:
                self.health.failed(error)
            else:
                self.health.answered()
            raise
        self.health.answered()
        return answer

    async def _in_thread(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, carried(call))


class RunTargets:
    """The targets that a run uses, each with its health, which all its sites share. A context manager."""

    def __init__(self, targets: Targets, sessions: Sessions) -> None:
        self._targets = targets
        self._sessions = sessions
        self._used: list[_UsedTarget] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for used in self._used:
            used.threads.shutdown()

    @property
    def given_up(self) -> list[tuple[Target, tuple[Finding, ...]]]:
        """The targets that failed to answer too often, and their errors."""
        return [(used.target, used.health.given_up) for used in self._used if used.health.given_up]

    @asynccontextmanager
    async def of(self, site: Site) -> AsyncIterator[SiteTarget]:
        """The target for the documents of this site, logged in. Raises TargetError if the login is refused.

        If it does not answer, it is given up, and later requests to it are deferred.
        """
        try:
            target = self._targets.of(site.name)
        except SettingsError as error:
            remedy = Remedy(
                "The administrator should correct the settings; {} checks them.", todo("installation.check")
            )
            raise TargetError(*(Finding("target.settings", problem, remedy) for problem in error.problems)) from error
        async with self.opened(target, site) as opened:
            yield opened

    @asynccontextmanager
    async def opened(self, target: Target, site: Site | None) -> AsyncIterator[SiteTarget]:
        """The same with this target, whatever target the settings give the site; without a site, with its own login."""
        used, loop, stack = self._use(target), asyncio.get_running_loop(), ExitStack()
        health = SiteTargetHealth(used.health)
        session: TargetSession = _AwaySession()
        if not used.health.given_up:
            opening = partial(stack.enter_context, session_of(used.target, site, self._sessions))
            try:
                session = await loop.run_in_executor(used.threads, carried(opening))
            except TargetError as error:
                if not error.transient:
                    raise
                health.give_up(error)
        try:
            yield SiteTarget(session, used, health, self._sessions)
        finally:
            # The sent documents have arrived, even if the target does not note the end of the session.
            with suppress(TargetError):
                await loop.run_in_executor(used.threads, stack.close)

    def _use(self, target: Target) -> _UsedTarget:
        for used in self._used:
            if used.target is target:
                return used
        used = _UsedTarget(target)
        self._used.append(used)
        return used


class _UsedTarget:
    """A target with its health, its threads, and the semaphore that uploads share."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.health = TargetHealth()
        self.sending = asyncio.Semaphore(target.uploads_at_once)
        # Logins and look-ups run beside the uploads.
        self.threads = ThreadPoolExecutor(target.uploads_at_once + 4, thread_name_prefix="target")


class _AwaySession:
    """A target that did not answer at the start of its session; it is given up, and no request goes to it."""

    writes_in_journal: Literal[False] = False

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        return self._away()

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        return self._away()

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        return self._away()

    def upload(self, upload: Upload) -> Action:
        return self._away()

    def delete(self, document_id: str) -> bool:
        return self._away()

    def _away(self) -> NoReturn:
        raise TargetError(Finding("target.away", "The repository does not answer.", "Nothing is lost."), transient=True)
