"""The health checks of the database: is it current and writable, is anything under way, broken, overdue or stuck."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Engine, func, select, update
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.config.trust_store import BadAuthorities, read_authorities
from metaharvest.database import dialects
from metaharvest.database.clock import database_now
from metaharvest.database.engine import (
    SAYS_MORE,
    database_errors,
    open_database,
    readers,
    require_current,
    require_there,
    run_lock,
    shown_database,
    writers,
)
from metaharvest.database.models import IS_HARVEST, IS_REAL, HarvestOperation, HarvestRun, HarvestSiteRun
from metaharvest.errors import DatabaseError, LockHeld, SettingsError, TransformError
from metaharvest.fetch.local_files import is_file_url, refusal
from metaharvest.ledger.deletions import deletions_unconfirmed
from metaharvest.ledger.sweeps import full_lists
from metaharvest.mail.outbox import stuck_mail
from metaharvest.model import RunStatus, Site
from metaharvest.model.actions import todo
from metaharvest.monitoring import Check, ok, problem, warning
from metaharvest.monitoring.pipeline_checks import check_pipeline
from metaharvest.monitoring.settings_checks import check_secret
from metaharvest.monitoring.target_checks import check_targets
from metaharvest.monitoring.worker_checks import check_clock, check_workers
from metaharvest.queries.outbox import outbox_state
from metaharvest.sites.clock_checks import LONGEST_PAUSE, MOST_NAMED, is_too_far, long_pause, wrong_clock
from metaharvest.sites.due import due_since, is_due
from metaharvest.sites.overdue import Overdue, overdue_sites
from metaharvest.sites.registry import read_sites, split_sites
from metaharvest.sites.rows import BrokenSite
from metaharvest.targets.lookup import Targets
from metaharvest.text import counted, one_line, some_of
from metaharvest.transform.filters import read_filters
from metaharvest.transform.normalize import read_normalization

_SILENCE = timedelta(hours=2)
"""A run without a commit for this time may hang: it is longer than usual deadlines in the settings."""


def check_database(settings: Settings, now: datetime) -> Iterator[Check]:
    """All checks of the database and its content; one problem if it cannot be used at all."""
    with ExitStack() as stack:
        try:
            engine = open_database(settings)
            stack.callback(engine.dispose)
            require_there(engine, settings)
            require_current(engine)
            yield from _database(engine)
            with database_errors(engine), engine.connect() as connection:
                yield from _server(connection, settings.http.max_document_bytes)
            with database_errors(engine), readers(engine)() as session:
                if engine.dialect.name != "sqlite":
                    now = database_now(session)
                    yield from check_clock(datetime.now(UTC), now)
                yield from _runs(session, engine, now, has_workers=bool(settings.workers.broker))
                settings = settings.with_split_sites(split_sites(session))
                yield from check_targets(Targets(settings, engine), read_sites(session))
                today = now.astimezone(settings.harvester.zone).date()
                yield from _sites(session, today)
                yield from _clock(session, now, today)
                yield from _files_of_sites(session, settings)
                yield from _reports(session, now, settings.harvester.zone)
                yield from check_workers(session, settings)
                yield from check_pipeline(session, settings, now)
        except (SettingsError, DatabaseError) as error:
            yield problem("database", str(error).replace(SAYS_MORE, "."))


def _database(engine: Engine) -> Iterator[Check]:
    """Try a write, and roll it back; the caller has checked that the database is current.

    A server whose disk is full may accept such a write, as it has room in a page of the table.
    """
    with database_errors(engine), writers(engine)() as session:
        session.execute(update(HarvestOperation).values(explanation=HarvestOperation.explanation))
        session.rollback()
    is_file = engine.dialect.name == "sqlite"
    room = "" if is_file else " The free space on the disk of its server is not checked."
    yield ok("database", f"{shown_database(engine)} is there and up to date, and this user may write to it.{room}")
    if is_file:
        lock = Path(f"{engine.url.database}.lock")
        if not os.access(lock.parent, os.W_OK):
            yield problem("run lock", f"The folder {lock.parent} cannot be written, so no run can take its lock.")
        elif lock.exists() and not os.access(lock, os.R_OK | os.W_OK):
            yield problem("run lock", f"The file {lock} cannot be written, so no run can take its lock: delete it.")


def _server(connection: Connection, largest_document: int) -> Iterator[Check]:
    """The database server, and a problem if it cannot hold documents as large as the settings allow."""
    packet = dialects.largest_packet(connection)
    if packet is not None and packet < dialects.packet_for(largest_document):
        yield warning(
            "database server",
            f"max_allowed_packet is {packet:,} bytes there: documents of more than "
            f"{dialects.document_size_for(packet):,} bytes are refused, though max_document_bytes in [http] allows "
            f"{largest_document:,}. Set max_allowed_packet to {dialects.packet_for(largest_document)} in the server's "
            "configuration, or lower max_document_bytes.",
        )
    else:
        yield ok("database server", f"{dialects.server_version(connection)}.")


def _runs(session: Session, engine: Engine, now: datetime, *, has_workers: bool) -> Iterator[Check]:
    open_run, last = _newest_runs(session)
    # Without workers, the next run closes a run of workers.
    held = open_run is not None and (has_workers or not open_run.distributed) and _lock_is_held(engine)
    if open_run is not None and not held:
        # The run may have ended since it was read: a new transaction sees its end. Another run may have the lock then.
        with readers(engine)() as later:
            newest, last = _newest_runs(later)
        held = newest is not None and newest.run_id != open_run.run_id
        open_run = newest
    if open_run is not None:
        yield _open_run(open_run, held, now)
    else:
        yield ok("run lock", "No run is under way.")
    if last is not None:
        yield _last_run(last, is_rehearsal=_is_rehearsal(session, last.run_id))
    elif open_run is None:
        start = todo("workers.coordinate" if has_workers else "runs.start")
        yield warning("last run", f"There has been no run yet. {start} makes one; put it into cron.")


def _newest_runs(session: Session) -> tuple[HarvestRun | None, HarvestRun | None]:
    """The newest run under way, and the newest one that has ended."""
    newest = select(HarvestRun).order_by(HarvestRun.run_id.desc())
    running = HarvestRun.status == RunStatus.RUNNING.value
    return session.scalar(newest.where(running).limit(1)), session.scalar(newest.where(~running & IS_HARVEST).limit(1))


def _lock_is_held(engine: Engine) -> bool:
    try:
        with run_lock(engine):
            return False
    except LockHeld:
        return True


def _open_run(run: HarvestRun, held: bool, now: datetime) -> Check:
    who = f"Run {run.run_id}, begun {run.started_at:%Y-%m-%d %H:%M} UTC on {run.host} (process {run.pid}),"
    if not held:
        return problem("run lock", f"{who} never ended. The next run takes up what it left.")
    sign = f"its last sign of life was at {run.heartbeat_at:%Y-%m-%d %H:%M} UTC"
    if now - run.heartbeat_at > _SILENCE:
        return problem("run lock", f"{who} is under way, but {sign}: check whether it hangs.")
    return ok("run lock", f"{who} is under way; {sign}.")


def _is_rehearsal(session: Session, run_id: int) -> bool:
    of_run = select(func.count()).where(HarvestSiteRun.run_id == run_id)
    return bool(session.scalar(of_run)) and not session.scalar(of_run.where(IS_REAL))


def _last_run(run: HarvestRun, *, is_rehearsal: bool) -> Check:
    sentence = f"Run {run.run_id} of {run.harvest_date} ended as {run.status}."
    if is_rehearsal:
        return warning("last run", f"{sentence} It was a rehearsal: no site has a target, so nothing was uploaded.")
    if run.status == RunStatus.FAILED.value:
        return problem("last run", f"{sentence} {todo('runs.show', run_id=run.run_id)} says why.")
    if run.status == RunStatus.INTERRUPTED.value:
        return warning("last run", f"{sentence} The next run takes up what it left.")
    return ok("last run", sentence)


def _sites(session: Session, today: date) -> Iterator[Check]:
    sites = read_sites(session)
    good = [site for site in sites if isinstance(site, Site)]
    broken = [site for site in sites if isinstance(site, BrokenSite) and site.enabled]
    for site in broken:
        yield Check("sites", "PROBLEM", " ".join(finding.message for finding in site.findings), is_on_tonight=True)
    late = overdue_sites(session, today)
    if late:
        yield Check("sites", "PROBLEM", _late(late), is_on_tonight=True)
    enabled = [site for site in good if site.enabled]
    if not sites:
        yield warning("sites", f"No site is registered yet. {todo('sites.add_list')} registers one.")
    elif not broken and not late:
        due = sum(is_due(site, today) for site in enabled)
        yield ok("sites", f"{counted(len(sites), 'site')}, {len(enabled)} switched on, {due} due.")
    yield from _silent(session, enabled, today)
    for name, number in deletions_unconfirmed(session).items():
        yield warning(
            "sites",
            f"{name}: {counted(number, 'deletion waits', 'deletions wait')}. If they are too many to be made unasked, "
            f"and the keeper of the repository says that they are meant: {todo('sites.confirm', name=name)}",
        )
    yield from _full_lists(session, enabled)


def _full_lists(session: Session, sites: list[Site]) -> Iterator[Check]:
    """The last full lists of repositories; a warning if only such a list shows deletions."""
    found = full_lists(session, [site.site_id for site in sites if site.options.oai is not None])
    dates = [(site, found[site.site_id]) for site in sites if site.site_id in found]
    dates.sort(key=lambda pair: (pair[1].last, pair[0].name))
    if dates:
        named = [f"{site.name} ({one_line(full.last[:10] or 'never', 20)})" for site, full in dates]
        oldest_first = some_of(named, MOST_NAMED)
        yield ok("full lists", f"The last full list of each repository, the oldest first: {oldest_first}.")
    for site, full in dates:
        if full.is_the_only_way and site.options.oai and site.options.oai.full_every is None:
            yield warning(
                "full lists",
                f"{site.name}: its repository does not name all deleted records (deletedRecord: "
                f"{full.deleted_record}), and only a full list shows which are gone. The last one was on "
                f"{one_line(full.last[:10] or '-', 20)}. "
                f"{todo('sites.set_full_every', name=site.name, days=30)} asks for one every 30 days.",
            )


def _clock(session: Session, now: datetime, today: date) -> Iterator[Check]:
    """Dates left by a wrong clock or a mistyped date, and a pause that may come from a wrong clock."""
    wrong = list(wrong_clock(session, None, now, today))
    if wrong:
        yield problem("clock", " ".join(wrong))
    newest = session.scalars(select(HarvestRun).where(IS_HARVEST).order_by(HarvestRun.run_id.desc()).limit(1)).first()
    if newest is not None and newest.harvest_date == today:
        if pause := long_pause(session, newest.run_id, today):
            yield warning("clock", pause)
    elif newest is not None and today - newest.harvest_date > LONGEST_PAUSE:
        yield warning(
            "clock",
            f"It is {today} by the harvester's clock, and the newest run was on {newest.harvest_date}. "
            "If the clock is wrong, correct it before the next run.",
        )
    sites = [site for site in read_sites(session) if isinstance(site, Site) and site.enabled]
    far = [f"{site.name} ({due_since(site)})" for site in sites if is_too_far(site, today)]
    if far and not wrong:
        yield warning(
            "schedule",
            f"The next harvest is further away than the frequency would have it: {some_of(far, MOST_NAMED)}. "
            f"If that is not meant: {todo('sites.set_next', date=today.isoformat())}",
        )


def _files_of_sites(session: Session, settings: Settings) -> Iterator[Check]:
    """The files that sites name, or are harvested from; only unusable ones are reported."""
    sites = read_sites(session)
    for name in sorted(set(settings.sites) - {site.name for site in sites} - {*split_sites(session).values()}):
        yield warning("settings", f'[sites."{name}"]: no site of this name is registered.')
    for site in sites:
        folder = settings.file_folder(site.name)
        if folder is not None and not os.access(folder, os.R_OK | os.X_OK):
            yield problem("sites", f"{site.name}: the folder {folder} (file_folder) is not there, or may not be read.")
        elif folder is not None and settings.file and settings.file.resolve().is_relative_to(folder):
            yield warning("sites", f"{site.name}: the settings file is in the folder {folder} (file_folder) as well.")
        if isinstance(site, Site) and site.enabled:
            yield from _files_of(settings.applied_to(site))
            if site.ldap_password:
                check = check_secret(f"ldappwd of {site.name}", site.ldap_password, settings.folder)
                yield from () if check.state == "OK" else (check,)


def _files_of(site: Site) -> Iterator[Check]:
    if is_file_url(site.list_url) and (refused := refusal(site.list_url, site.file_folder)):
        yield problem("sites", f"{site.name}: {refused.with_remedy}")
    if site.options.ca_file is not None:
        try:
            read_authorities(site.options.ca_file)
        except BadAuthorities as error:
            file = site.options.ca_file
            yield problem("sites", f"{site.name}: the certificate authorities in {file} cannot be used: {error}.")
    for path, read in ((site.options.filters, read_filters), (site.options.normalize, read_normalization)):
        if path is not None:
            try:
                read(path)
            except TransformError as error:
                sentences = " ".join(error.sentences[:MOST_NAMED])
                yield problem("sites", f"{site.name}: {sentences}")


def _late(sites: list[Overdue]) -> str:
    more = f" And {len(sites) - MOST_NAMED:,} more." if len(sites) > MOST_NAMED else ""
    sentences = " ".join(site.sentence for site in sites[:MOST_NAMED])
    return f"Overdue: {sentences}{more} {todo('log.of_site')} says why."


def _silent(session: Session, sites: list[Site], today: date) -> Iterator[Check]:
    """The alarm for a harvester that is no longer started: sites are due, and there was no run for two days."""
    # Not the highest date: a run whose clock was far ahead would silence the alarm until then.
    last = session.scalar(select(HarvestRun.harvest_date).where(IS_HARVEST).order_by(HarvestRun.run_id.desc()).limit(1))
    waiting = [site for site in sites if is_due(site, today)]
    if last is not None and waiting and (today - last).days > 1:
        yield problem(
            "schedule",
            f"The last run was on {last}, and {counted(len(waiting), 'site waits', 'sites wait')}: "
            "check whether cron, the timer or the daemon still starts the harvester.",
        )


def _sent_again(since: datetime | None, zone: ZoneInfo) -> str:
    """The way to send refused reports again; `since`: the time of the oldest of them, in this time zone."""
    again = todo("reports.resend_refused")
    if since is not None:
        again = todo("reports.resend_since", date=f"{since.astimezone(zone):%Y-%m-%d}")
    return (
        f"{todo('reports.refused')} names them and says why. Once the cause is gone, {again} sends them again; "
        f"{todo('reports.drop')} gives one up."
    )


def _reports(session: Session, now: datetime, zone: ZoneInfo) -> Iterator[Check]:
    outbox, stuck = outbox_state(session, now), stuck_mail(session, now)
    if outbox.failed and outbox.failed_since:
        yield problem(
            "reports",
            f"{counted(outbox.failed, 'delivery', 'deliveries')} could not be made so far, the first since "
            f"{outbox.failed_since.astimezone(zone):%Y-%m-%d}: {todo('reports.undelivered')} says why, "
            f"{todo('reports.deliver')} tries again.",
        )
    if outbox.admins_refused:
        yield problem(
            "reports",
            f"{counted(outbox.admins_refused, 'administrator')} did not get a report: the mail server refused it. "
            + _sent_again(outbox.admins_since, zone),
        )
    elif outbox.refused:
        yield warning(
            "reports",
            f"{counted(outbox.refused, 'recipient')} refused a report in the last seven days. "
            + _sent_again(outbox.refused_since, zone),
        )
    if stuck is not None and not outbox.failed:
        waits = counted(stuck.deliveries, "delivery has", "deliveries have")
        yield problem(
            "reports",
            f"The outbox does not empty: {waits} waited since {stuck.since.astimezone(zone):%Y-%m-%d}. "
            f"{todo('reports.deliver')} tries to hand them over now.",
        )
    elif outbox.fresh:
        yield warning("reports", f"{counted(outbox.fresh, 'delivery waits', 'deliveries wait')} for the end of a run.")
    if not outbox.failed and not outbox.refused and not outbox.fresh:
        yield ok("reports", "None waits to be delivered.")
