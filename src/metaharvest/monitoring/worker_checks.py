"""What the doctor says about workers: whether they are there, whether they come on, and whether the broker answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from metaharvest.config.secret_references import is_reference, resolve_secret
from metaharvest.config.settings import Settings
from metaharvest.database.clock import database_now
from metaharvest.errors import SettingsError
from metaharvest.model.actions import todo
from metaharvest.monitoring.check import Check, ok, problem, warning
from metaharvest.queries.jobs import job_numbers, number_failed_since, workers
from metaharvest.reports.phrasing import counted
from metaharvest.text import one_line

_SEEN_WITHIN = timedelta(minutes=2)
_FAILED_WITHIN = timedelta(days=1)
_LONGEST_WAIT = timedelta(hours=1)
_BROKER_SECONDS = 5


def check_workers(session: Session, settings: Settings) -> Iterator[Check]:
    """The workers, their jobs and their broker; nothing where the settings name no broker."""
    if not settings.workers.broker:
        return
    yield _broker(settings)
    now = database_now(session)
    numbers = job_numbers(session)
    there = [each for each in workers(session) if now - each.seen_at <= _SEEN_WITHIN]
    if there:
        yield ok(
            "workers", f"{counted(len(there), 'worker')} on {counted(len({each.host for each in there}), 'machine')}."
        )
    elif numbers.ready:
        yield problem(
            "workers",
            f"{counted(numbers.ready, 'job')} wait, and no worker is there. {todo('workers.start')} starts one.",
        )
    else:
        yield warning("workers", f"No worker is there. {todo('workers.start')} starts one.")
    if numbers.lapsed:
        yield warning(
            "jobs",
            f"{counted(numbers.lapsed, 'job')} had a worker that was not heard of for a minute. The next free worker "
            f"goes on with it. {todo('jobs.list')} lists the jobs.",
        )
    elif numbers.oldest_ready and now - numbers.oldest_ready > _LONGEST_WAIT:
        hours = (now - numbers.oldest_ready).total_seconds() / 3600
        yield warning("jobs", f"A job has waited for {hours:.0f} hours: more workers may be needed.")
    if failed := number_failed_since(session, now - _FAILED_WITHIN):
        yield warning(
            "failed jobs",
            f"{counted(failed, 'job')} failed in the last day, after several attempts: "
            f"{todo('jobs.list')} with --state failed lists them, {todo('jobs.show')} says why.",
        )


def _broker(settings: Settings) -> Check:
    try:
        address = settings.workers.broker
        if is_reference(address):
            address = resolve_secret(address, settings.folder)
        from kombu.connection import Connection
    except SettingsError as error:
        return problem("broker", str(error))
    except ModuleNotFoundError:
        return problem("broker", "Celery is not installed. Install it with `pip install 'metaharvest[workers]'`.")
    where = urlsplit(address).hostname
    try:
        connection = Connection(address, connect_timeout=_BROKER_SECONDS)  # type: ignore[no-untyped-call]
        with connection:
            connection.ensure_connection(max_retries=1, timeout=_BROKER_SECONDS)  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001 - each transport has its own errors
        return problem(
            "broker",
            f"The broker at {where} ([workers] broker) cannot be used: {one_line(str(error)) or type(error).__name__}. "
            "Workers go on, but find new jobs some seconds later.",
        )
    return ok("broker", f"The broker at {where} answers.")
