"""The pipeline: run it in this process, make its jobs for workers, show how far it has come, try failures again."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from metaharvest.accounts.audit import Decision
from metaharvest.config.kinds import STAGES
from metaharvest.database.engine import pipeline_lock, repeated
from metaharvest.database.operations import PIPELINE_ERROR
from metaharvest.errors import LockHeld, MetaharvestError, RequestError, SettingsError
from metaharvest.jobs import making
from metaharvest.jobs.making import NewJob
from metaharvest.journal.log_rows import NO_SITE, LogRow, Stamp, write_log
from metaharvest.model.actions import todo
from metaharvest.model.jobs import JobKind, Priority
from metaharvest.model.kinds import StageName
from metaharvest.monitoring.pipeline_checks import missing_libraries
from metaharvest.pipeline import steps
from metaharvest.pipeline.file_store import folder_errors
from metaharvest.pipeline.lookup import stages
from metaharvest.pipeline.running import Report, StageTotals, run_stage, run_stages, wake_changed
from metaharvest.pipeline.search.stage import begin_again
from metaharvest.pipeline.stage import Context
from metaharvest.queries import pipeline as stored
from metaharvest.queries.pipeline import FailedDocument, FailureFilter, PipelineRecord
from metaharvest.services.harvester import Harvester
from metaharvest.text import one_line

__all__ = ["FailureFilter", "StageTotals"]

_LOG = logging.getLogger(__name__)
_WITHOUT_FILE = ("extraction.file-missing", "extraction.store-away")
"""A store that was away may come back without its files."""


def require_libraries() -> None:
    """Raises SettingsError with a sentence if the libraries of the pipeline are not installed."""
    if missing := missing_libraries():
        raise SettingsError(
            f"The pipeline needs {', '.join(missing)}. Install it with `pip install 'metaharvest[pipeline]'`."
        )


def run(
    harvester: Harvester,
    names: Sequence[str] = (),
    *,
    stops: Callable[[], bool] = lambda: False,
    report: Report = lambda totals: None,
) -> list[StageTotals]:
    """Run the stages, or the named ones, for all documents that wait. Raises LockHeld, SettingsError, RequestError."""
    require_libraries()
    if harvester.settings.workers.broker and harvester.settings.pipeline.enabled:
        raise RequestError(
            f"Workers run the pipeline of this installation: {todo('workers.coordinate')} makes their jobs, and "
            f"{todo('pipeline.show')} shows how far they have come."
        )
    require_stages(names)
    with pipeline_lock(harvester.engine):
        context = Context(harvester.engine, harvester.settings, harvester.now, stops)
        return run_stages(context, stages(harvester.settings), report, set(names))


def run_after_harvest(
    harvester: Harvester, run_id: int, stops: Callable[[], bool], note: Callable[[str], None]
) -> None:
    """Run the pipeline at the end of a run whose settings ask for it. With workers it has jobs of its own.

    A failure does not change the run. The log of the run gets it, and the next administrator's report has it, as the
    report of this run is sent.
    """
    settings = harvester.settings.pipeline
    end = time.monotonic() + settings.seconds if settings.seconds else None
    try:
        run(harvester, stops=lambda: stops() or (end is not None and time.monotonic() > end))
    except LockHeld as error:
        note(f"The pipeline was not run: {error}")
    except MetaharvestError as error:
        _not_ended(harvester, run_id, str(error), note)
    except Exception as error:  # noqa: BLE001 - the reports and the exit code of the run are what matters
        _LOG.exception("The pipeline failed at the end of a run")
        reason = one_line(f"{type(error).__name__}: {error}")
        _not_ended(harvester, run_id, f"an unexpected error, {reason}. The program's log has more.", note)


def _not_ended(harvester: Harvester, run_id: int, reason: str, note: Callable[[str], None]) -> None:
    """Write into the log of the run, and for the person who started it, why the pipeline did not come to its end."""
    said = f"The pipeline did not come to its end after run {run_id}: {one_line(reason, 1000)}"
    note(f"{said} The run itself is not affected.")
    remedy = f"Correct the cause. The next run goes on by itself; {todo('pipeline.run')} does so now."
    try:
        with harvester.writing() as session:
            row = LogRow(PIPELINE_ERROR, f"{said} {remedy}"), NO_SITE
            write_log(session, [row], Stamp(run_id, harvester.today(), harvester.now()))
    except MetaharvestError as error:
        note(f"The log of the run does not have it: {error}")


def require_stages(names: Sequence[str]) -> None:
    """Raises RequestError if there is no such stage."""
    for name in names:
        if name not in STAGES:
            raise RequestError(f"There is no stage {name}: the stages are {', '.join(STAGES.names())}.")


def shown(harvester: Harvester) -> PipelineRecord:
    """How far the pipeline has come."""
    return harvester.read(stored.pipeline_record, harvester.settings.pipeline.stage_names(), harvester.now())


def failed(harvester: Harvester, wanted: FailureFilter, limit: int, after: str | None = None) -> list[FailedDocument]:
    """The documents that failed, in the order of the catalogue; the next page begins `after` the last one of this one.

    Raises RequestError if there is no such stage, or no document `after`.
    """
    require_stages([wanted.stage] if wanted.stage else [])
    with harvester.reading() as session:
        number = None if after is None else stored.number_of_document(session, after)
        if after is not None and number is None:
            raise RequestError(f"The catalogue has no document {one_line(after, 100)}: the next page needs one.")
        stages = [wanted.stage] if wanted.stage else harvester.settings.pipeline.stage_names()
        return stored.failed_documents(session, wanted, stages, limit, number)


def retry(harvester: Harvester, stage: str, rule: str | None = None) -> int:
    """Let the documents that failed at a stage, by this rule if one is named, be tried in the next run; their number.

    Files that extraction misses are fetched again. Raises RequestError if there is no such stage.
    """
    require_stages([stage])
    with harvester.writing() as session:
        for each in _WITHOUT_FILE:
            if stage == StageName.EXTRACTION and rule in (None, each):
                steps.wake(session, StageName.FULL_TEXT, steps.failed_numbers(session, stage, each))
        number = steps.wake_failed(session, stage, rule)
        if number:
            subject = stage if rule is None else f"{stage}, {rule}"
            harvester.audit(session, Decision("pipeline.retry", "stage", subject, after={"documents": number}))
    return number


def forget(harvester: Harvester, document_id: str) -> str:
    """Remove what the pipeline has of a document whose content was erased, also where nobody runs the pipeline.

    The stages have the document before them again: a process that works on it at this moment removes its own results.
    Returns a sentence about what stays; "" if nothing does.
    """
    with harvester.reading() as session:
        number = stored.number_of_document(session, document_id)
        if number is None or not steps.is_known(session, number):
            return ""
    context = Context(harvester.engine, harvester.settings, harvester.now)
    try:
        require_libraries()
        every = stages(harvester.settings)
        with folder_errors(context.folder):
            for stage in every:
                stage.forget(context, [number])
            is_in_files = begin_again(context)
            with harvester.writing() as session:
                for stage in every:
                    stage.remove(session, [number])
                    steps.wake_known(session, stage.name, [number])
            for stage in every:
                # The next run makes the index again: that may take hours.
                if stage.name != StageName.INDEX:
                    stage.tidy(context)
    except MetaharvestError as error:
        return f"The pipeline may still have its text: {error} {todo('pipeline.run')} removes it."
    if is_in_files:
        return f"Files of the search index keep its text until {todo('pipeline.run')} has made the index again."
    return ""


# -- jobs of workers


def make_jobs(harvester: Harvester) -> int:
    """Make jobs for the parts of stages that have work, if the pipeline is enabled; returns the number of new ones.

    A part without work has no job: the end of a job makes jobs, and would make it again and again.
    """
    return repeated(lambda: _make_jobs(harvester)) if harvester.settings.pipeline.enabled else 0


def _make_jobs(harvester: Harvester) -> int:
    context = Context(harvester.engine, harvester.settings, harvester.now)
    every = stages(harvester.settings)
    wake_changed(context, every)
    with harvester.writing() as session:
        jobs = [
            _job(stage.name, part, stage.parts)
            for stage in every
            for part in steps.parts_with_work(session, stage, harvester.now())
        ]
        return making.make(session, jobs)


def _job(stage: str, part: int, parts: int) -> NewJob:
    subject = stage if parts == 1 else f"{stage}, part {part + 1} of {parts}"
    work = json.dumps({"stage": stage, "part": part, "parts": parts})
    return NewJob(JobKind.PIPELINE.value, f"pipeline/{stage}/{part}", subject, work, priority=Priority.PIPELINE)


def perform_job(harvester: Harvester, work: str, stops: Callable[[], bool]) -> bool:
    """Do a job of the pipeline until nothing waits (True), or the slice ends (False)."""
    require_libraries()
    wanted = json.loads(work)
    context = Context(harvester.engine, harvester.settings, harvester.now, stops)
    stage = next((each for each in stages(harvester.settings) if each.name == wanted["stage"]), None)
    if stage is not None:
        run_stage(replace(context, part=wanted["part"], parts=wanted["parts"]), stage)
    if stops():
        return False
    make_jobs(harvester)
    return True
