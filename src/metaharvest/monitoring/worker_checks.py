"""What the doctor says about workers: whether they are there, whether they come on, and whether the broker answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.clock import database_now
from metaharvest.errors import SettingsError
from metaharvest.model.actions import todo
from metaharvest.monitoring import Check, broker, ok, problem, warning
from metaharvest.queries.jobs import job_numbers, number_failed_since, workers
from metaharvest.text import counted

_CLOCKS_DIFFER = timedelta(minutes=1)
_FAILED_WITHIN = timedelta(days=1)
_LONGEST_WAIT = timedelta(hours=1)


def check_workers(session: Session, settings: Settings) -> Iterator[Check]:
    """The workers, their jobs and their broker; nothing where the settings name no broker."""
    if not settings.workers.broker:
        return
    yield _broker(settings)
    if session.get_bind().dialect.name == "sqlite":
        yield warning(
            "database of workers",
            "The database is SQLite. Workers on other machines cannot reach it. Use PostgreSQL or MariaDB "
            "(url in [database]).",
        )
    now = database_now(session)
    numbers = job_numbers(session)
    there = [each for each in workers(session) if not each.is_silent]
    if there:
        yield ok(
            "workers", f"{counted(len(there), 'worker')} on {counted(len({each.host for each in there}), 'machine')}."
        )
    elif numbers.ready:
        there_is_none = f"{counted(numbers.ready, 'job waits', 'jobs wait')}, and no worker is there."
        yield problem("workers", f"{there_is_none} {todo('workers.start')} starts one.")
    else:
        yield warning("workers", f"No worker is there. {todo('workers.start')} starts one.")
    if numbers.lapsed:
        yield warning(
            "jobs",
            f"{counted(numbers.lapsed, 'job')} had a worker that was not seen for a minute. The next free worker "
            f"goes on with it. {todo('jobs.list')} lists the jobs.",
        )
    elif numbers.oldest_ready and now - numbers.oldest_ready > _LONGEST_WAIT:
        hours = counted(round((now - numbers.oldest_ready) / timedelta(hours=1)), "hour")
        yield warning("jobs", f"A job has waited for {hours}: more workers may be needed.")
    if failed := number_failed_since(session, now - _FAILED_WITHIN):
        yield warning(
            "failed jobs",
            f"{counted(failed, 'job')} failed in the last day, after several attempts: "
            f"{todo('jobs.list')} with --state failed lists them, {todo('jobs.show')} says why.",
        )


def check_clock(machine: datetime, database: datetime) -> Iterator[Check]:
    """A warning if the clock of this machine differs from the clock of the database, which all machines go by."""
    ahead = machine - database
    if abs(ahead) > _CLOCKS_DIFFER:
        word = "ahead of" if ahead > timedelta() else "behind"
        yield warning(
            "clock of this machine",
            f"It is {counted(round(abs(ahead) / timedelta(minutes=1)), 'minute')} {word} the clock of the database, "
            "which all machines go by. Set one of them right, for example by NTP.",
        )


def _broker(settings: Settings) -> Check:
    try:
        address = broker.address_of(settings)
        import amqp  # noqa: F401 - an extra of this program
    except SettingsError as error:
        return problem("broker", f"{error} No worker starts.")
    except ModuleNotFoundError:
        return problem("broker", "Celery is not installed. Install it with `pip install 'metaharvest[workers]'`.")
    try:
        broker.try_broker(address)
    except Exception as error:  # noqa: BLE001 - each transport has its own errors
        effect = "Workers that start end at once" if broker.is_refusal(error) else "Workers find new jobs later"
        return problem("broker", f"{broker.trouble(address, error)}. {effect}.")
    return ok("broker", f"The broker at {broker.where(address)} answers.")
