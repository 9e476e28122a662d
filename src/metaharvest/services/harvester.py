"""One installation: its settings, clock, database, targets and sources; runs, dry runs and checks with them.

Other actions on an installation are functions in the other modules of services/, which take a `Harvester`. queries/
read the tables, with a session of `Harvester.reading()`. Heavy modules are imported at their first use: a command
starts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from datetime import UTC, date, datetime
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from metaharvest.errors import DatabaseError, MetaharvestError, ScheduleError, SettingsError
from metaharvest.model.requests import Actor
from metaharvest.model.values import frozen

if TYPE_CHECKING:
    from typing import Self

    from sqlalchemy import Engine
    from sqlalchemy.orm import Session

    from metaharvest.accounts.audit import Decision
    from metaharvest.config.settings import Settings
    from metaharvest.harvest.context import Progress
    from metaharvest.harvest.deadlines import StopSignal
    from metaharvest.harvest.limits import RunLimits as RunLimits
    from metaharvest.harvest.run import RunRequest, RunResult
    from metaharvest.harvest.setup import HarvestSetup
    from metaharvest.queries.runs import RunRecord
    from metaharvest.rehearsal.check import CheckOptions, GivenRun
    from metaharvest.rehearsal.dry_run import Rehearsal
    from metaharvest.sources.lookup import SourceFor
    from metaharvest.targets.base import Target
    from metaharvest.targets.lookup import Targets


_Found = TypeVar("_Found")
_Arguments = ParamSpec("_Arguments")

_ASKS_AGAIN_AFTER = 30.0
"""Seconds after which the settings of split sites are read again, if the database was away."""


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class Harvester:
    """One installation, as its settings describe it; to be closed, or used as a context manager.

    `engine`, `targets` and `source` come from the settings and the sites, unless others are given; `target` replaces
    all targets. A given engine is left open. The `clock` is the clock of the database, unless another is given.
    `limits` are for tests. `actor` is the person who decides, for the audit. `transactions` is the number of
    transactions that `writing` has committed, or tried to commit.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime] = utc_now,
        *,
        engine: Engine | None = None,
        target: Target | None = None,
        targets: Targets | None = None,
        source: SourceFor | None = None,
        limits: RunLimits | None = None,
        actor: Actor = Actor(),  # noqa: B008 - it is frozen
    ) -> None:
        self._settings = settings
        self.actor = actor
        self.now = self._clock_of_database() if clock is utc_now else clock
        self._given_engine = engine
        self._given_target = target
        self._given_targets = targets
        self._given_source = source
        self._limits = limits
        self.transactions = 0
        self._asks_again_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        """The settings, with the split sites; without them as long as the database cannot be used."""
        if "_with_split_sites" not in vars(self) and monotonic() < self._asks_again_at:
            return self._settings
        try:
            return self._with_split_sites
        except MetaharvestError:  # the first use of the database reports it
            self._asks_again_at = monotonic() + _ASKS_AGAIN_AFTER
            return self._settings

    @cached_property
    def _with_split_sites(self) -> Settings:
        """The settings; the values of a site apply also to the sites that were split from it. Raises DatabaseError."""
        if not self._settings.sites:
            return self._settings
        from metaharvest.sites.registry import split_sites

        return self._settings.with_split_sites(self.read(split_sites))

    def close(self) -> None:
        """Close the database, if it was opened here."""
        if self._given_engine is None and "engine" in vars(self):
            self.engine.dispose()

    def _clock_of_database(self) -> Callable[[], datetime]:
        """The clock that all machines share: their own clocks may differ."""
        from metaharvest.database.clock import DatabaseClock

        def engine() -> Engine | None:
            with suppress(SettingsError):  # the first use of the database raises it
                return vars(self).get("engine") or (None if self.database_error else self.engine)
            return None

        return DatabaseClock(engine)

    def today(self) -> date:
        """The date in the harvester's time zone."""
        return self.now().astimezone(self.settings.harvester.zone).date()

    @cached_property
    def engine(self) -> Engine:
        """The database, with the tables of this program. Raises SettingsError, DatabaseError."""
        from metaharvest.database.engine import open_database, require_current, require_there

        engine = self._given_engine or open_database(self._settings)
        try:
            require_there(engine, self._settings)
            require_current(engine)
        except DatabaseError:
            if engine is not self._given_engine:
                engine.dispose()
            raise
        return engine

    @cached_property
    def database_error(self) -> DatabaseError | None:
        """The reason why there is no usable database; None if there is one. Raises SettingsError."""
        try:
            self.engine  # noqa: B018 - opened, and kept
        except DatabaseError as error:
            return error
        return None

    @cached_property
    def targets(self) -> Targets:
        """The targets of the documents. Raises DatabaseError."""
        return self._new_targets()

    def _new_targets(self) -> Targets:
        """The targets, which read their tokens and passwords at their first use. Raises DatabaseError."""
        from metaharvest.targets.lookup import Targets

        return self._given_targets or Targets(self._with_split_sites, self.engine, self._given_target)

    @cached_property
    def limits(self) -> RunLimits:
        """The limits of a run."""
        from metaharvest.harvest.limits import RunLimits

        return self._limits or RunLimits()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session for reading. Raises DatabaseUnavailable, and the errors of `engine`."""
        from sqlalchemy.orm import Session

        from metaharvest.database.engine import database_errors

        # A sessionmaker would make a class, which stays in memory for thousands of requests.
        with database_errors(self.engine), Session(self.engine, expire_on_commit=False) as session:
            yield session

    def read(
        self,
        query: Callable[Concatenate[Session, _Arguments], _Found],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Found:
        """The answer to one query, in a session of its own. Raises as `reading` does."""
        with self.reading() as session:
            return query(session, *arguments, **named)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction, committed at the end. Raises DatabaseUnavailable, and the errors of `engine`."""
        from metaharvest.database.engine import database_errors, writers

        with database_errors(self.engine), writers(self.engine).begin() as session:
            yield session
            self.transactions += 1

    def write(
        self,
        change: Callable[Concatenate[Session, _Arguments], _Found],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Found:
        """The result of one change, in a transaction of its own. Raises as `writing` does."""
        with self.writing() as session:
            return change(session, *arguments, **named)

    @contextmanager
    def noting(self) -> Iterator[Session]:
        """A transaction for a note that the next request can make, too. On SQLite it fails at once while a run writes.

        Raises as `writing` does.
        """
        from metaharvest.database.engine import database_errors, writers_without_wait

        with database_errors(self.engine), writers_without_wait(self.engine).begin() as session:
            yield session

    # -- the person

    def acting(self, actor: Actor) -> Harvester:
        """The same installation for another person, with the same database, which this one closes."""
        acting = copy(self)
        acting.actor = actor
        acting._given_engine = self.engine
        return acting

    def audit(self, session: Session, *decisions: Decision) -> None:
        """Write decisions of the person into the audit, in the transaction of the change."""
        from metaharvest.accounts.audit import record

        for decision in decisions:
            record(session, decision, self.actor, self.now())

    # -- runs

    @property
    def setup(self) -> HarvestSetup:
        """The parts of a run, or of a session of a worker, with new targets: a login may have been renewed.

        Raises SettingsError, DatabaseError.
        """
        from metaharvest.harvest.setup import HarvestSetup
        from metaharvest.sources.lookup import source_for

        targets, source = self._new_targets(), self._given_source or source_for
        return HarvestSetup(self._with_split_sites, self.engine, targets, source, self.now, self.limits)

    def run(self, request: RunRequest, progress: Progress | None = None, stop: StopSignal | None = None) -> RunResult:
        """Harvest the sites that are due, or the requested ones; see `run_once` for the errors."""
        from metaharvest.harvest.context import Progress
        from metaharvest.harvest.run import run_once

        return run_once(self.setup, request, progress or Progress(), stop)

    def harvest_site(self, site_id: int, progress: Progress | None = None, stop: StopSignal | None = None) -> RunResult:
        """Run this site alone, due or not. Raises ScheduleError if there is none, or it is off."""
        from metaharvest.harvest.run import RunRequest
        from metaharvest.sites.registry import read_site

        site = self.read(read_site, site_id)
        if site is None:
            raise ScheduleError(f"There is no site with the number {site_id}.")
        return self.run(RunRequest(self.today(), (site.name,)), progress, stop)

    @contextmanager
    def dry_run(self, request: RunRequest, progress: Progress | None = None) -> Iterator[DryRun]:
        """A rehearsal of `run` on a throw-away journal: nothing is written anywhere, no mail is sent."""
        from metaharvest.rehearsal.dry_run import rehearsal

        with rehearsal(self.settings, self._given_target, self.engine, with_records=True) as scratch:
            yield self._on(scratch, self._given_source)._rehearsed(request, progress)

    @contextmanager
    def rehearse_site(
        self, name: str, progress: Progress | None = None, stop: StopSignal | None = None
    ) -> Iterator[DryRun]:
        """A dry run of this site alone, as if it were due and switched on. Raises ScheduleError."""
        from metaharvest.harvest.run import RunRequest
        from metaharvest.rehearsal.dry_run import rehearsal
        from metaharvest.sites.registry import find_site, read_sites, switch_site
        from metaharvest.sites.same_source import with_same_origin

        with self.reading() as session:
            site_ids = with_same_origin(find_site(session, name), read_sites(session))
        with rehearsal(self.settings, self._given_target, self.engine, with_records=True, site_ids=site_ids) as scratch:
            harvester = self._on(scratch, self._given_source)
            harvester.write(switch_site, name, True)
            yield harvester._rehearsed(RunRequest(self.today(), (name,)), progress, stop)

    @contextmanager
    def check(self, arguments: Sequence[str], how: CheckOptions, progress: Progress | None = None) -> Iterator[Checked]:
        """A rehearsal of the harvest of these lists, documents and folders; works without a database.

        Each of `arguments` is a URL, a file, a folder, or `-` for standard input. Raises CannotBeChecked for a missing
        one, ScheduleError and SettingsError for an unknown site or target.
        """
        from metaharvest.rehearsal import check

        asks = not check.asks_nobody(self.settings, how)
        error = self.database_error if asks else None
        if error and check.needs_database(self.settings, how):
            raise error
        engine, own = self.engine if asks and not error else None, self._given_source
        with check.prepared(self.settings, self._given_target, engine, own, arguments, how) as given:
            yield self.rehearse_check(given, self._limits or check.LIMITS, progress, how.stop)

    def rehearse_check(
        self, given: GivenRun, limits: RunLimits, progress: Progress | None = None, stop: StopSignal | None = None
    ) -> Checked:
        """The rehearsal of a prepared check."""
        from metaharvest.harvest.run import RunRequest

        harvester = self._on(given.scratch, given.source, limits)
        request = RunRequest(self.today(), tuple(site.name for site in given.sites))
        return Checked(harvester, harvester.run(request, progress, stop), given)

    def _rehearsed(self, request: RunRequest, progress: Progress | None, stop: StopSignal | None = None) -> DryRun:
        from metaharvest.queries.runs import run_record

        result = self.run(request, progress, stop)
        return DryRun(self, result, self.read(run_record, result.run_id))

    def _on(self, scratch: Rehearsal, source: SourceFor | None, limits: RunLimits | None = None) -> Harvester:
        return Harvester(
            scratch.settings,
            self.now,
            engine=scratch.engine,
            targets=scratch.targets,
            source=source,
            limits=limits or self._limits,
            actor=self.actor,
        )


@frozen
class DryRun:
    """A rehearsed run: its result, its record, and the harvester that reads its throw-away journal."""

    harvester: Harvester
    result: RunResult
    record: RunRecord


@frozen
class Checked:
    """A rehearsed run, and its arguments."""

    harvester: Harvester
    result: RunResult
    given: GivenRun
