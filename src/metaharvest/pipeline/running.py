"""Runs the stages: reads the change feed, and has each stage do the documents that wait, until none is left."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from metaharvest.catalogue.stage_documents import Document, stage_documents
from metaharvest.database.dialects import is_about_statement, may_be_about_statement
from metaharvest.database.engine import database_errors, repeated
from metaharvest.database.statements import refresh_statistics
from metaharvest.errors import MetaharvestError
from metaharvest.model.kinds import OF_FILES, StepState
from metaharvest.pipeline import steps
from metaharvest.pipeline.file_store import folder_errors
from metaharvest.pipeline.stage import Context, Failure, Result, Stage
from metaharvest.pipeline.steps import Step
from metaharvest.text import one_line

_LOG = logging.getLogger(__name__)
_UNEXPECTED = "pipeline.unexpected"
_AFTER_A_SURPRISE = timedelta(days=1)
_GROWTH = 500
"""The number of documents after which statistics are taken; each further time waits for twice as many."""

_SLICE_SECONDS = 30 * 60
"""The time of a stage of files, after which the other stages have their turn."""

Report = Callable[["StageTotals"], None]
"""Is called after each batch of a stage."""


@dataclass(slots=True)
class StageTotals:
    """What a stage did in this run: the documents by the state that they got, and the time in seconds.

    A document that is processed again, because its file was found, counts again.
    """

    stage: str
    states: dict[StepState, int] = field(default_factory=dict)
    seconds: float = 0

    @property
    def documents(self) -> int:
        """The number of documents."""
        return sum(self.states.values())


def run_stages(
    context: Context, stages: Sequence[Stage], report: Report = lambda totals: None, names: Collection[str] = ()
) -> list[StageTotals]:
    """Read the change feed, and run the stages, or the named ones, in their order.

    The stages of files take long: the others run first without them, and again after each half hour of such a stage.
    Raises DatabaseUnavailable, and errors of a stage.
    """
    wake_changed(context, stages)
    wanted = [(each, StageTotals(each.name)) for each in stages if not names or each.name in names]
    if any(stage.name in OF_FILES for stage, _ in wanted):
        for stage, totals in wanted:
            if stage.name not in OF_FILES:
                run_stage(context, stage, report, totals)
    has_more = True
    while has_more:
        has_more = False
        for stage, totals in wanted:
            if stage.name in OF_FILES:
                end = time.monotonic() + _SLICE_SECONDS
                run_stage(context, stage, report, totals, end)
                has_more |= time.monotonic() > end and not context.stops()
            else:
                run_stage(context, stage, report, totals)
    return [totals for _, totals in wanted]


def wake_changed(context: Context, stages: Sequence[Stage]) -> None:
    """Wake the first stage for all documents that changed, and each stage that has a higher version."""
    more = True
    for stage in stages:
        with context.writing() as session:
            steps.note_version(session, stage)
    while stages and more and not context.stops():
        with context.writing() as session:
            more = steps.read_feed(session, stages[0], context.now())


def run_stage(
    context: Context,
    stage: Stage,
    report: Report = lambda totals: None,
    totals: StageTotals | None = None,
    end: float = math.inf,
) -> StageTotals:
    """Do the documents that wait at a stage, batch by batch, until none is left or the context stops.

    No batch begins after `end` (time.monotonic). Adds what was done to `totals`, and returns them. A stage that did not
    begin before the context stopped does not tidy.
    Raises MetaharvestError if the folder of the pipeline cannot be used: the documents wait on.
    """
    totals = totals or StageTotals(stage.name)
    began, due = time.monotonic() - totals.seconds, 0
    has_begun = False
    with folder_errors(context.folder):
        while not context.stops() and time.monotonic() <= end:
            has_begun = True
            if totals.documents >= due:
                with database_errors(context.engine):
                    refresh_statistics(context.engine)
                due = max(_GROWTH, 2 * totals.documents)
            ended = _run_batch(context, stage)
            if ended is None:
                break
            for state in ended:
                totals.states[state] = totals.states.get(state, 0) + 1
            totals.seconds = time.monotonic() - began
            report(totals)
        if has_begun:
            stage.tidy(context)
    return totals


def _run_batch(context: Context, stage: Stage) -> Sequence[StepState] | None:
    """Do the next documents of a stage; returns their states. None: there are none, or the context stops."""
    with context.reading() as session:
        taken = steps.take(session, stage, context.now(), context.part, context.parts)
        documents = stage_documents(session, [step.number for step in taken])
    if not taken:
        return None
    by_number = {step.number: step for step in taken}
    present = [each for each in documents.values() if not each.is_gone]
    gone = [step for step in taken if step.number not in documents or documents[step.number].is_gone]
    results = _results(context, stage, present) if present else []
    if not results and not gone:
        return None
    return _store_results(context, stage, [(by_number[each.document.number], each) for each in results], gone)


def _results(context: Context, stage: Stage, documents: Sequence[Document]) -> Sequence[Result]:
    """The results of a stage for documents. After a surprise, each is tried alone: one of them is the cause."""
    try:
        with folder_errors(context.folder):
            return list(stage.perform(context, documents))
    except MetaharvestError:
        raise
    except Exception as error:  # noqa: BLE001 - it costs its document alone, and is logged
        if len(documents) > 1:
            return [result for each in documents if not context.stops() for result in _results(context, stage, [each])]
        return [_surprised(stage, documents[0], error)]


def _surprised(stage: Stage, document: Document, error: Exception) -> Result:
    """The failure of a document by an error that no stage knows."""
    _LOG.exception("The stage %s failed for %s", stage.name, document.document_id)
    # The driver's own sentence: the sentence of SQLAlchemy has the whole statement.
    reason = getattr(error.__cause__, "orig", None) or error
    message = f"An unexpected error: {one_line(f'{type(reason).__name__}: {reason}')}. The program's log has more."
    return Result(document, failure=Failure(_UNEXPECTED, message, _AFTER_A_SURPRISE))


def _is_unexpected(result: Result) -> bool:
    return result.failure is not None and result.failure.rule == _UNEXPECTED


def _store_results(
    context: Context, stage: Stage, ended: Sequence[tuple[Step, Result]], gone: Collection[Step]
) -> Sequence[StepState]:
    """Write the results; returns the states. If the database refuses them, each is written alone: one is the cause."""
    try:
        return repeated(lambda: _store(context, stage, ended, gone))
    except Exception as error:
        if not ended or not _is_about_values(error):
            raise
        if len(ended) == 1 and not gone:
            [(step, result)] = ended
            return _store(context, stage, [(step, _surprised(stage, result.document, error))], ())
        states = list(_store(context, stage, (), gone)) if gone else []
        return states + [state for each in ended for state in _store_results(context, stage, [each], ())]


def _is_about_values(error: Exception) -> bool:
    """True if an error is about what is written, not about the database or the machine."""
    if isinstance(error, MetaharvestError):
        return is_about_statement(error) or may_be_about_statement(error)
    return not isinstance(error, OSError)


def _store(
    context: Context, stage: Stage, ended: Sequence[tuple[Step, Result]], gone: Collection[Step]
) -> Sequence[StepState]:
    """Write the results, note the steps, and wake the next stages, in one transaction; returns the states.

    After an unexpected error, the stored results of the document stay as they are.
    """
    now = context.now()
    if gone:
        with context.reading() as session:
            current = steps.still_ours(session, stage, gone)
        gone = [step for step in gone if step.number in current]
        stage.forget(context, [step.number for step in gone])
    with context.writing() as session:
        current = steps.still_ours(session, stage, [*gone, *(step for step, _ in ended)])
        gone = [step for step in gone if step.number in current]
        ended = [(step, result) for step, result in ended if step.number in current]
        if gone:
            stage.remove(session, [step.number for step in gone])
            steps.end_gone(session, stage, gone, now)
        if known := [result for _, result in ended if not _is_unexpected(result)]:
            stage.store(session, known, now)
        changed = steps.end(session, stage, ended, now)
        for name in stage.wakes:
            steps.wake(session, name, changed, steps.nothing_new(ended))
            steps.wake_known(session, name, [step.number for step in gone])
    return [result.state for _, result in ended] + [StepState.GONE] * len(gone)
