"""The steps of documents: which document waits at which stage, and what became of it. Writes pipeline_step.

A stage takes steps that wait, works without a transaction, and ends them in the transaction of its results. A step that
was woken in the meantime stays waiting. So nothing is lost if a process ends at any moment, or if two processes take
the same step: the older results of a step that another process has ended are not stored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, ColumnElement, bindparam, select, update
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.catalogue.stage_documents import IS_GONE, changed_numbers
from metaharvest.database.batches import batches
from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import PipelineFeed, PipelineStage, PipelineStep
from metaharvest.database.rows import insert_rows
from metaharvest.model.kinds import StepState
from metaharvest.model.values import frozen
from metaharvest.pipeline.stage import Failure, Result, Stage

FEED = "pipeline"
"""The name of the pipeline among the readers of the change feed."""

LONGEST_PAUSE = timedelta(days=90)
_AT_ONCE = 2000
_LONGEST_MESSAGE = 2000

_STEPS = Base.metadata.tables[PipelineStep.__tablename__]
_OF = _STEPS.c
_END = (
    update(_STEPS)
    .where(
        _OF.catalogue_document_id == bindparam("this"),
        _OF.stage == bindparam("at_stage"),
        _OF.woken == bindparam("taken"),
    )
    .values({name: bindparam(f"new_{name}") for name in ("state", "rule", "message", "attempts", "retry_at")})
    .values(revision=bindparam("new_revision"), version=bindparam("new_version"), ended_at=bindparam("new_ended_at"))
)


@frozen
class Step:
    """A step that a stage took: the number of the document, and the step as it was."""

    number: int
    state: StepState
    woken: int
    rule: str | None
    attempts: int


def next_try(failure: Failure, attempts: int, now: datetime) -> datetime | None:
    """The time of the next try after `attempts` failures before this one. None: there is none."""
    if failure.retry_after is None:
        return None
    doubled = 1 if failure.is_exact else 2 ** min(attempts, 20)
    return now + min(min(failure.retry_after, LONGEST_PAUSE) * doubled, LONGEST_PAUSE)


def read_feed(session: Session, first: Stage, now: datetime) -> bool:
    """Wake the first stage for the next changes of the catalogue. False: there are no more."""
    feed = session.get(PipelineFeed, FEED, with_for_update=True)
    if feed is None:
        feed = PipelineFeed(name=FEED, change_seq=0, moved_at=now)
        session.add(feed)
    changes = changed_numbers(session, feed.change_seq, _AT_ONCE)
    if not changes:
        return False
    wake(session, first.name, [number for _, number in changes])
    feed.change_seq, feed.moved_at = changes[-1][0], now
    return len(changes) == _AT_ONCE


def note_version(session: Session, stage: Stage) -> None:
    """Wake all steps of a stage whose version is higher than the last time.

    A worker with an older program has a lower version, which wakes nothing. A stage that follows others and is new gets
    all documents for which one of these stages has ended.
    """
    known = session.get(PipelineStage, stage.name)
    if known is None:
        session.add(PipelineStage(stage=stage.name, version=stage.version))
        if stage.follows:
            before = select(_OF.catalogue_document_id).where(_OF.stage.in_(stage.follows), _OF.state.in_(_ENDED))
            wake(session, stage.name, list(session.scalars(before.distinct())))
    elif known.version < stage.version:
        known.version = stage.version
        session.execute(_woken(_OF.state.in_(_ENDED), _at(stage.name)))


_ENDED = (StepState.DONE.value, StepState.SKIPPED.value, StepState.FAILED.value)


def wake(session: Session, stage: str, numbers: Sequence[int], nothing_new: Collection[int] = ()) -> None:
    """Let these documents wait at a stage. A document in `nothing_new` waits only if it is new at the stage."""
    for some in batches(numbers):
        known = set(
            session.scalars(
                select(_OF.catalogue_document_id)
                .where(_at(stage), _OF.catalogue_document_id.in_(some))
                .order_by(_OF.catalogue_document_id)
                .with_for_update()
            )
        )
        if again := known.difference(nothing_new):
            session.execute(_woken(_at(stage), _OF.catalogue_document_id.in_(again)))
        new = [{"catalogue_document_id": each, "stage": stage} for each in some if each not in known]
        if new:
            same = {"state": StepState.WAITING.value, "woken": 1, "attempts": 0}
            insert_rows(session.connection(), _STEPS, new, same)


def wake_failed(session: Session, stage: str, rule: str | None = None) -> int:
    """Let the documents that failed at a stage, by this rule if one is named, wait again; returns their number."""
    its = [_at(stage), _in(StepState.FAILED), *([] if rule is None else [_OF.rule == rule])]
    return session.connection().execute(_woken(*its)).rowcount


def failed_numbers(session: Session, stage: str, rule: str) -> Sequence[int]:
    """The numbers of the documents that failed at a stage by this rule."""
    its = (_at(stage), _in(StepState.FAILED), _OF.rule == rule)
    return session.scalars(select(_OF.catalogue_document_id).where(*its)).all()


def take(session: Session, stage: Stage, now: datetime, part: int = 0, parts: int = 1) -> list[Step]:
    """The next steps of a stage: waiting ones, then failed ones whose time has come; at most the stage's batch."""
    its = [_at(stage.name), *([] if parts == 1 else [_OF.catalogue_document_id % parts == part])]
    found = _steps(session, [*its, _in(StepState.WAITING)], _OF.catalogue_document_id, stage.batch)
    if len(found) < stage.batch:
        due = [*its, _in(StepState.FAILED), _OF.retry_at <= now]
        found += _steps(session, due, _OF.retry_at, stage.batch - len(found))
    return found


def still_ours(session: Session, stage: Stage, taken: Collection[Step]) -> set[int]:
    """The numbers of the steps whose results still count; their rows are locked.

    A process that was away for long, as a worker that lost its lease, may have a step that was woken since then and
    that another process has ended: its results are older than the stored ones.
    """
    by_number = {step.number: step for step in taken}
    found: set[int] = set()
    for some in batches(sorted(by_number)):
        query = select(*_STEPS.c["catalogue_document_id", "woken", "state"])
        its = _at(stage.name), _OF.catalogue_document_id.in_(some)
        rows = session.execute(query.where(*its).order_by(_OF.catalogue_document_id).with_for_update())
        found.update(
            number
            for number, woken, state in rows
            if woken == by_number[number].woken or state == StepState.WAITING.value
        )
    return found


def end(session: Session, stage: Stage, ended: Collection[tuple[Step, Result]], now: datetime) -> Sequence[int]:
    """Note the results of steps; returns the numbers of the documents with a result that differs from the last one."""
    if ended:
        session.connection().execute(_END, [_ended_row(stage, step, result, now) for step, result in ended])
    return [step.number for step, result in ended if not _failed_again(step, result)]


def nothing_new(ended: Collection[tuple[Step, Result]]) -> set[int]:
    """The numbers of the documents for which a stage had nothing to do when they came to it for the first time."""
    return {step.number for step, result in ended if step.woken == 1 and result.state is StepState.SKIPPED}


def end_gone(session: Session, stage: Stage, steps: Collection[Step], now: datetime) -> None:
    """Note that the documents of these steps are gone."""
    row = {"new_state": StepState.GONE.value, "new_attempts": 0, "new_version": stage.version, "new_ended_at": now}
    empty = dict.fromkeys(("new_rule", "new_message", "new_retry_at", "new_revision"))
    rows = [{"this": each.number, "at_stage": stage.name, "taken": each.woken, **empty, **row} for each in steps]
    if rows:
        session.connection().execute(_END, rows)


def wake_known(session: Session, stage: str, numbers: Collection[int]) -> None:
    """Let these documents wait at a stage, if they have come to it before and are not gone there."""
    for some in batches(list(numbers)):
        session.execute(_woken(_at(stage), _OF.catalogue_document_id.in_(some), ~_in(StepState.GONE)))


def wake_site(session: Session, stage: str, site_id: int) -> None:
    """Let the documents of a site wait at a stage, if they have come to it before and are not gone there."""
    of_site = select(DOCUMENTS.c.catalogue_document_id).where(DOCUMENTS.c.site_schedule_id == site_id)
    session.execute(_woken(_at(stage), _OF.catalogue_document_id.in_(of_site), ~_in(StepState.GONE)))


def _failed_again(step: Step, result: Result) -> bool:
    """True if the step has failed by the same rule as the last time."""
    return result.failure is not None and step.state is StepState.FAILED and result.failure.rule == step.rule


def _ended_row(stage: Stage, step: Step, result: Result, now: datetime) -> dict[str, Any]:
    failure = result.failure
    return {
        "this": step.number,
        "at_stage": stage.name,
        "taken": step.woken,
        "new_state": result.state.value,
        "new_rule": None if failure is None else failure.rule,
        "new_message": None if failure is None else failure.message[:_LONGEST_MESSAGE],
        "new_attempts": 0 if failure is None else step.attempts + 1,
        "new_retry_at": None if failure is None else next_try(failure, step.attempts, now),
        "new_revision": result.document.revision,
        "new_version": stage.version,
        "new_ended_at": now,
    }


def _woken(*its: ColumnElement[bool]) -> Any:
    """The statement that wakes steps. The rule of the last failure stays, the count of failures begins again."""
    values = {"state": StepState.WAITING.value, "woken": _OF.woken + 1, "attempts": 0, "retry_at": None}
    return update(_STEPS).where(*its).values(**values)


def _steps(session: Session, its: Sequence[ColumnElement[bool]], order: Column[Any], limit: int) -> list[Step]:
    query = select(*_STEPS.c["catalogue_document_id", "state", "woken", "rule", "attempts"]).where(*its)
    rows = session.connection().execute(query.order_by(order).limit(limit))
    return [Step(row[0], StepState(row[1]), *row[2:]) for row in rows]


def parts_with_work(session: Session, stage: Stage, now: datetime) -> list[int]:
    """The parts of a stage with a document that waits, or whose next try is due."""
    one = replace(stage, batch=1)
    return [part for part in range(stage.parts) if take(session, one, now, part, stage.parts)]


def has_removals(session: Session, stages: Collection[str]) -> bool:
    """True if a document that is gone still waits at one of these stages."""
    waiting = _OF.stage.in_(stages), _in(StepState.WAITING)
    query = select(_OF.stage).join(DOCUMENTS, DOCUMENTS.c.catalogue_document_id == _OF.catalogue_document_id)
    return session.scalar(query.where(*waiting, IS_GONE).limit(1)) is not None


def is_known(session: Session, number: int) -> bool:
    """True if a stage has a step of the document that is not gone."""
    its = _OF.catalogue_document_id == number, ~_in(StepState.GONE)
    return session.scalar(select(_OF.stage).where(*its).limit(1)) is not None


def _at(stage: str) -> ColumnElement[bool]:
    return _OF.stage == stage


def _in(state: StepState) -> ColumnElement[bool]:
    return _OF.state == state.value
