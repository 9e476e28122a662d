"""The one front door: what the command line, the demo and the tests call, and later the console, the API and workers.

It wires settings, clock, database, target and sources together and calls what does the work: the story of a run in
harvest/, the outbox in reports/, the schedule in sites/. What the tables say is read through queries/, with a session
of `Harvester.reading()`. Heavy modules are imported when they are first used: a command starts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING

from metaharvest.errors import DatabaseError, MetaharvestError, ScheduleError

if TYPE_CHECKING:
    from typing import Self

    from sqlalchemy import Engine
    from sqlalchemy.orm import Session

    from metaharvest.config.settings import Settings
    from metaharvest.database.copying import CopiedTable
    from metaharvest.harvest.checking import CheckOptions, GivenRun
    from metaharvest.harvest.context import Progress
    from metaharvest.harvest.copied import CopyRequest, CopyResult, Told
    from metaharvest.harvest.deadlines import StopSignal
    from metaharvest.harvest.dry_run import Rehearsal
    from metaharvest.harvest.limits import RunLimits
    from metaharvest.harvest.run import RunRequest, RunResult
    from metaharvest.harvest.transferring import Transfer, TransferRequest
    from metaharvest.harvest.withdrawing import WithdrawalRequest, Withdrawn
    from metaharvest.journal.erasure import Forgotten
    from metaharvest.journal.imported_log import ImportedLog
    from metaharvest.model import Site
    from metaharvest.reports import Deliveries, Dropped, Report, Repositories, Resent, ResentRefused
    from metaharvest.sites.metacat_import import ImportedRow
    from metaharvest.sites.metacat_tables import MetacatTables
    from metaharvest.sites.site_import import SiteChange
    from metaharvest.sources.lookup import SourceFor
    from metaharvest.sources.oai_pmh.inspection import Inspection
    from metaharvest.targets.base import Target
    from metaharvest.targets.folder.rebuild import Rebuilt
    from metaharvest.targets.lookup import Targets


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class Harvester:
    """One installation, as its settings describe it; to be closed, or used as a context manager.

    `engine`, `targets` and `source` are those that the settings and the sites name, unless others are given; `target`
    stands in for all targets. An engine that is given is left open. `limits` are for tests.
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
    ) -> None:
        self._settings = settings
        self.now = clock
        self._given_engine = engine
        self._given_target = target
        self._given_targets = targets
        self._given_source = source
        self._limits = limits

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @cached_property
    def settings(self) -> Settings:
        """The settings; what they say of a site holds for those that were split from it, too."""
        if not self._settings.sites:
            return self._settings
        from metaharvest.sites.registry import split_sites

        try:
            with self.reading() as session:
                return self._settings.with_split_sites(split_sites(session))
        except MetaharvestError:  # whoever needs the database is told
            return self._settings

    def close(self) -> None:
        """Close the database, if it was opened here."""
        if self._given_engine is None and "engine" in vars(self):
            self.engine.dispose()

    def today(self) -> date:
        """The date in the harvester's time zone."""
        return self.now().astimezone(self.settings.harvester.zone).date()

    @cached_property
    def engine(self) -> Engine:
        """The database, whose tables are those of this program. Raises SettingsError, DatabaseError."""
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
        """Why there is no database that can be used; None if there is one. Raises SettingsError."""
        try:
            self.engine  # noqa: B018 - opened, and kept
        except DatabaseError as error:
            return error
        return None

    @cached_property
    def targets(self) -> Targets:
        """Where documents go. Raises DatabaseError."""
        from metaharvest.targets.lookup import Targets

        return self._given_targets or Targets(self.settings, self.engine, self._given_target)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session to read with. Raises DatabaseUnavailable, and what `engine` raises."""
        from metaharvest.database.engine import database_errors, readers

        with database_errors(self.engine), readers(self.engine)() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction, committed at the end. Raises DatabaseUnavailable, and what `engine` raises."""
        from metaharvest.database.engine import database_errors, writers

        with database_errors(self.engine), writers(self.engine).begin() as session:
            yield session

    # -- runs

    def run(self, request: RunRequest, progress: Progress | None = None, stop: StopSignal | None = None) -> RunResult:
        """Harvest the sites that are due, or those that are asked for; what it raises is said by `run_once`."""
        from metaharvest.harvest.context import Progress
        from metaharvest.harvest.run import run_once
        from metaharvest.sources.lookup import source_for

        source, told = self._given_source or source_for, progress or Progress()
        return run_once(self.settings, self.engine, self.targets, request, self.now, told, source, stop, self._limits)

    def harvest_site(self, site_id: int, progress: Progress | None = None, stop: StopSignal | None = None) -> RunResult:
        """A run of this site alone, whether it is due or not. Raises ScheduleError if there is none, or it is off."""
        from metaharvest.harvest.run import RunRequest
        from metaharvest.sites.registry import read_site

        with self.reading() as session:
            site = read_site(session, site_id)
        if site is None:
            raise ScheduleError(f"There is no site with the number {site_id}.")
        return self.run(RunRequest(self.today(), (site.name,)), progress, stop)

    @contextmanager
    def dry_run(self, request: RunRequest, progress: Progress | None = None) -> Iterator[DryRun]:
        """What `run` would do, on a throw-away journal: nothing is written anywhere, no mail is sent."""
        from metaharvest.harvest.dry_run import rehearsal

        with rehearsal(self.settings, self._given_target, self.engine, with_records=True) as scratch:
            harvester = self._on(scratch, self._given_source)
            yield DryRun(harvester, harvester.run(request, progress))

    @contextmanager
    def check(self, arguments: Sequence[str], how: CheckOptions, progress: Progress | None = None) -> Iterator[Checked]:
        """What a harvest of these lists, documents and folders would come to; does without a database.

        Each of `arguments` is a URL, a file, a folder, or `-` for standard input. Raises CannotBeChecked for what is
        not there, ScheduleError and SettingsError for a site and a target that are not known.
        """
        from metaharvest.harvest import checking
        from metaharvest.harvest.run import RunRequest

        asks = not checking.asks_nobody(self.settings, how)
        error = self.database_error if asks else None
        if error and checking.needs_database(self.settings, how):
            raise error
        engine, own = self.engine if asks and not error else None, self._given_source
        with checking.prepared(self.settings, self._given_target, engine, own, arguments, how) as given:
            harvester = self._on(given.scratch, given.source, self._limits or checking.LIMITS)
            request = RunRequest(self.today(), tuple(site.name for site in given.sites))
            yield Checked(harvester, harvester.run(request, progress, how.stop), given)

    def _on(self, scratch: Rehearsal, source: SourceFor | None, limits: RunLimits | None = None) -> Harvester:
        """This harvester, but on a throw-away journal."""
        return Harvester(
            scratch.settings,
            self.now,
            engine=scratch.engine,
            targets=scratch.targets,
            source=source,
            limits=limits or self._limits,
        )

    def inspect(self, site: Site, more_sets: Sequence[str] = ()) -> Inspection:
        """Ask the OAI-PMH repository of this site what it is, and whether it has these sets as well.

        Raises SettingsError, FetchError and ListError.
        """
        from metaharvest.harvest import inspecting
        from metaharvest.sources.oai_pmh.inspection import inspect

        return inspecting.ask(self.settings, self.settings.applied_to(site), partial(inspect, more_sets=more_sets))

    def write_metrics(self, exit_code: int) -> None:
        """Write [monitoring] metrics_file, if it is set, after an attempt of a run. Raises OSError.

        Where the database cannot be read, the file says so, and how the attempt ended.
        """
        if self.settings.monitoring.metrics_file is None:
            return
        from metaharvest.monitoring.metrics import Attempt, metrics, write_metrics

        attempt = Attempt(self.now(), exit_code)
        try:
            with self.reading() as session:
                values = metrics(session, attempt, self.today())
        except MetaharvestError:
            values = metrics(None, attempt, self.today())
        write_metrics(values, self.settings.written_path(self.settings.monitoring.metrics_file))

    # -- reports

    def site_report(self, site_run_id: int) -> Report:
        """The report of a site run to the site's contacts, as it would be written now."""
        from metaharvest import reports

        whose = self.settings, self._repositories(), self.now(), self._is_rehearsal
        with self.reading() as session:
            return reports.site_report(session, site_run_id, *whose)

    def admin_report(self, run_id: int) -> Report:
        """The report of a run to the administrators, as it would be written now; it goes into its log file, if set."""
        from metaharvest import reports

        whose = self.settings, self._repositories(), self.now(), self._is_rehearsal
        with self.reading() as session:
            return reports.admin_report(session, run_id, *whose)

    def _repositories(self) -> Repositories:
        from metaharvest.journal.repositories import named_repositories

        return named_repositories(self.targets)

    @property
    def _is_rehearsal(self) -> bool:
        from metaharvest.harvest.dry_run import RehearsalTarget

        return isinstance(self.targets.default, RehearsalTarget)

    def went_nowhere(self, site_names: Collection[str]) -> str:
        """A sentence about those of these sites whose documents no repository gets; empty if there is none."""
        return self._repositories().went_nowhere(site_names)

    def resend(self, report_id: int, to: Sequence[str] = ()) -> Resent:
        """Put a report into the outbox again; see `reports.resend`. Raises MetaharvestError if there is none."""
        from metaharvest import reports

        with self.writing() as session:
            return reports.resend(session, report_id, self.settings, to)

    def resend_refused(self, since: date | None) -> ResentRefused:
        """Put all refused deliveries into the outbox again, of reports written on this day or later."""
        from metaharvest import reports

        moment = None if since is None else datetime.combine(since, time(), self.settings.harvester.zone)
        with self.writing() as session:
            return reports.resend_refused(session, self.settings, moment)

    def drop_report(self, report_id: int, by: str = "") -> Dropped:
        """Have nobody else get this report; how many deliveries were given up. Raises MetaharvestError."""
        from metaharvest import reports

        with self.writing() as session:
            return reports.drop(session, report_id, f"It was dropped{by and f' by {by}'} on {self.today()}.")

    def deliver(self) -> Deliveries:
        """Hand over what waits in the outbox, under the run lock, as a run would send the same. Raises LockHeld."""
        from metaharvest import reports
        from metaharvest.database.engine import database_errors, run_lock, writers

        with run_lock(self.engine), database_errors(self.engine):
            return reports.deliver(writers(self.engine), self.settings, self.now())

    # -- the schedule

    def import_metacat(
        self, tables: MetacatTables, *, log: bool = False, dry_run: bool = False, start: str = "metaharvest"
    ) -> MetacatImport:
        """Take over the schedule of a Metacat Harvester, and with `log` what it logged; nothing in a dry run.

        `start` is how a command line begins that does something with the same settings. Raises MetaharvestError if the
        tables cannot be read.
        """
        from metaharvest.journal.imported_log import LogImport, import_log
        from metaharvest.sites import metacat_import, metacat_tables
        from metaharvest.sites.allowed import require_allowed
        from metaharvest.sites.registry import read_sites

        def allowed(site: Site) -> None:
            require_allowed(self.settings, site, ("documentlisturl",))

        today, schedule = self.today(), list(tables.rows(metacat_tables.SCHEDULE))
        with self.reading() if dry_run else self.writing() as session:
            sites = read_sites(session)
            rows = metacat_import.decide(schedule, sites, today, allowed, start)
            numbers = {site.name: site.site_id for site in sites}
            # In a dry run new sites have no number: which it would be does not matter.
            numbers |= (
                {row.site: 0 for row in rows if row.values} if dry_run else metacat_import.register(session, rows)
            )
            if not log:
                return MetacatImport(tuple(rows), None)
            site_ids = {row.schedule_id: numbers[row.site] for row in rows if row.site}
            since = today - timedelta(days=self.settings.harvester.log_period_days)
            wanted = LogImport(site_ids, since, today, self.now(), self.settings.harvester.zone)
            logged, details = tables.rows(metacat_tables.LOG), tables.rows(metacat_tables.DETAIL_LOG)
            return MetacatImport(tuple(rows), import_log(session, logged, details, wanted, dry_run=dry_run))

    def import_sites(
        self, content: bytes, *, dry_run: bool = False, allow_duplicates: bool = False
    ) -> list[SiteChange]:
        """Register the sites of a file: all of them, or none; nothing in a dry run. Raises MetaharvestError."""
        from metaharvest.sites.allowed import require_allowed
        from metaharvest.sites.site_files import read_sites_file
        from metaharvest.sites.site_import import import_sites

        def allowed(site: Site) -> None:
            require_allowed(self.settings, site, ("documentlisturl", "options"))

        rows = read_sites_file(content)
        with self.writing() as session:
            done = import_sites(session, rows, self.today(), allowed, allow_duplicates=allow_duplicates)
            if dry_run:
                session.rollback()
        return done

    # -- the database

    def repair_dates(self) -> dict[str, int]:
        """Move dates that a wrong clock left in the future to today, under the run lock; how many rows of each kind.

        Raises LockHeld.
        """
        from metaharvest.database.engine import run_lock
        from metaharvest.journal.repaired_dates import repair_dates

        with run_lock(self.engine), self.writing() as session:
            return repair_dates(session, self.now(), self.today())

    def copy_database(
        self, url: str, password: str = "", told: Callable[[CopiedTable], None] = lambda table: None
    ) -> list[CopiedTable]:
        """Copy everything into another, empty database, whose password is a secret reference; what was copied.

        A copy that was broken off goes on. Raises what `database.copying.copy_database` says, SettingsError.
        """
        from metaharvest.database.copying import copy_database
        from metaharvest.database.engine import open_database

        target = open_database(self.settings.with_database(url, password))
        try:
            return copy_database(self.engine, target, told)
        finally:
            target.dispose()

    # -- documents

    def copy_documents(
        self,
        request: CopyRequest,
        told: Told = lambda revision: None,
        progress: Progress | None = None,
        stop: StopSignal | None = None,
    ) -> CopyResult:
        """Copy documents from one target into another, under the run lock; what it raises is said by the function.

        `told` hears of each revision that is not in the target as the source has it.
        """
        from metaharvest.harvest.context import Progress
        from metaharvest.harvest.copying import copy_documents
        from metaharvest.harvest.deadlines import StopSignal

        to_tell, to_heed = progress or Progress(), stop or StopSignal()
        return copy_documents(self.engine, self.targets, request, self.now, to_tell, told, to_heed)

    def transfer_documents(self, wanted: TransferRequest) -> list[Transfer]:
        """Let documents belong to another site from now on, and log it; what it raises is said by the function."""
        from metaharvest.harvest.transferring import transfer

        return transfer(self.engine, self.targets, wanted, self.today(), self.now())

    def withdraw_document(self, request: WithdrawalRequest, *, undo: bool = False) -> Withdrawn:
        """Withdraw a document, or take that back, under the run lock; what it raises is said by the functions."""
        from metaharvest.harvest import withdrawing

        do = withdrawing.take_back if undo else withdrawing.withdraw
        return do(self.engine, self.targets, request, self.today(), self.now())

    def forget_address(self, address: str, start: str = "metaharvest") -> tuple[Forgotten, list[str]]:
        """Take an address out of all that is kept, under the run lock; what was changed, and where it may still be.

        Raises ScheduleError, LockHeld. `start` is how a command line begins.
        """
        from metaharvest.database.engine import run_lock
        from metaharvest.database.scrubbing import scrub
        from metaharvest.journal.erasure import forget_address

        with run_lock(self.engine):
            with self.writing() as session:
                done = forget_address(session, address, start)
            stays = scrub(self.engine)
        return done, [*_elsewhere(self.settings, address), *([stays] if stays else [])]

    def rebuild_index(self, target_name: str = "target", site_name: str | None = None) -> Rebuilt:
        """Build the index of a folder again from its files: that of this target, or of the target of this site.

        Raises SettingsError if there is no such target, ScheduleError if there is no such site, MetaharvestError if it
        is no folder, TargetError.
        """
        from metaharvest.sites.registry import find_site
        from metaharvest.targets.folder.target import FolderTarget

        if site_name is not None:
            with self.reading() as session:
                find_site(session, site_name)
        target = self.targets.named(target_name) if site_name is None else self.targets.of(site_name)
        if not isinstance(target, FolderTarget):
            raise MetaharvestError(f"The target is {target.describe()}: only a folder has an index.")
        return target.rebuild()


def _elsewhere(settings: Settings, address: str) -> Iterator[str]:
    """Where an address is, or may be, that no command of this program changes: a sentence each."""
    own = settings.harvester.administrators
    if address.casefold() in (each.casefold() for each in own):
        yield f"Still in the settings: take {address} out of administrators in [harvester], or it gets the next report."
    if address.casefold() in settings.mail.sender.casefold():
        yield "Still in the settings: sender in [mail]."
    if settings.mail.backend == "maildir":
        yield f"Not changed: the mail folder {settings.path(settings.mail.folder)}."
    yield (
        "Not changed: mails that were sent, backups, log files of the administrator's report, and documents, which may "
        "name people: `target withdraw DOCUMENT --erase` removes one."
    )


@dataclass(frozen=True, slots=True)
class MetacatImport:
    """What became of the schedule of a Metacat Harvester, row by row, and of its log, if that was asked for."""

    rows: tuple[ImportedRow, ...]
    log: ImportedLog | None


@dataclass(frozen=True, slots=True)
class DryRun:
    """A run that was only rehearsed: its result, and the harvester that reads its throw-away journal."""

    harvester: Harvester
    result: RunResult


@dataclass(frozen=True, slots=True)
class Checked:
    """What was checked: a rehearsed run, and what was given for it."""

    harvester: Harvester
    result: RunResult
    given: GivenRun
