"""The pipeline: how far it has come stage by stage, and the documents that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.change_feed import number_of_changes
from metaharvest.catalogue.stage_documents import FailureCount, failure_counts, stage_counts
from metaharvest.database.models import IS_HARVEST, CatalogueDocument, HarvestLog, HarvestRun, HarvestSiteSchedule
from metaharvest.database.operations import PIPELINE_ERROR
from metaharvest.database.pipeline_models import PipelineFeed, PipelineStep
from metaharvest.model import RunStatus
from metaharvest.model.kinds import StepState
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen
from metaharvest.queries.records import equalities

_RATE_OVER = timedelta(minutes=10)


@frozen(kw_only=True)
class StageRecord:
    """How far a stage has come: its documents by state.

    `per_minute` is the mean of the last ten minutes, from the end of the first batch in them to the end of the last
    one; None if there are not two batches. `seconds_left` is the time for the waiting documents at this rate.
    """

    stage: str
    waiting_documents: int
    done_documents: int
    skipped_documents: int
    failed_documents: int
    gone_documents: int
    per_minute: float | None
    seconds_left: float | None


@frozen(kw_only=True)
class PipelineRecord:
    """The stages in their order. `unseen_changes` are changed documents that no stage has seen yet.

    `oldest_unseen_change` is the time of the first of them; `last_ended` is the time when a stage last ended with a
    document.
    """

    unseen_changes: int
    oldest_unseen_change: datetime | None
    last_ended: datetime | None
    stages: Sequence[StageRecord]
    failures: Sequence[FailureCount]


@frozen(kw_only=True)
class FailedDocument:
    """A document that failed at a stage; `retry_at` is the time from which on it is tried again."""

    document_id: str
    title: str
    site: str | None
    stage: str
    rule: str
    message: str
    attempts: int
    retry_at: datetime | None


@frozen
class FailureFilter:
    """The selection of failures; None: any."""

    stage: str | None = None
    rule: str | None = None
    site: str | None = None


def pipeline_record(session: Session, stages: Sequence[str], now: datetime) -> PipelineRecord:
    """How far the pipeline has come, for these stages."""
    counts = stage_counts(session)
    seen = session.scalar(select(PipelineFeed.change_seq).where(PipelineFeed.name == "pipeline")) or 0
    change = CatalogueDocument.change_seq
    first_unseen = select(CatalogueDocument.changed_at).where(change > seen).order_by(change).limit(1)
    records = [_stage_record(session, stage, counts, now) for stage in stages]
    ended = (
        session.scalar(select(func.max(PipelineStep.ended_at)).where(PipelineStep.stage == each)) for each in stages
    )
    return PipelineRecord(
        unseen_changes=number_of_changes(session, seen),
        oldest_unseen_change=session.scalar(first_unseen),
        last_ended=max(filter(None, ended), default=None),
        stages=records,
        failures=failure_counts(session, stages),
    )


def failure_at_last_run(session: Session) -> str | None:
    """The sentence about a pipeline that did not come to its end after the last harvest; None if it did."""
    last = select(func.max(HarvestRun.run_id)).where(IS_HARVEST, HarvestRun.status != RunStatus.RUNNING.value)
    of_the_run = (HarvestLog.run_id == last.scalar_subquery()) & HarvestLog.site_run_id.is_(None)
    its = of_the_run & (HarvestLog.harvest_operation_code == PIPELINE_ERROR)
    return session.scalar(select(HarvestLog.message).where(its).order_by(HarvestLog.harvest_log_id.desc()).limit(1))


def failed_documents(
    session: Session, wanted: FailureFilter, stages: Sequence[str], limit: int, after: int | None = None
) -> list[FailedDocument]:
    """The documents that failed at these stages, by their numbers. The next page begins `after` the last document.

    A document that failed at several stages has several entries. They are never on two pages: a page may have more than
    `limit` entries.
    """
    found = [row for stage in stages for row in _failed(session, stage, wanted, limit, after)]
    found.sort(key=lambda row: (row[0].catalogue_document_id, row[0].stage))
    last = found[limit - 1][0].catalogue_document_id if len(found) >= limit else None
    return [
        record_of(
            FailedDocument,
            step,
            document_id=document_id,
            title=title,
            site=site_name,
            rule=step.rule or "",
            message=step.message or "",
        )
        for step, document_id, title, site_name in found
        if last is None or step.catalogue_document_id <= last
    ]


def _failed(
    session: Session, stage: str, wanted: FailureFilter, limit: int, after: int | None
) -> Sequence[Row[PipelineStep, str, str, str]]:
    """The next failures at a stage, in the order of an index."""
    its = [PipelineStep.stage == stage, PipelineStep.state == StepState.FAILED.value]
    its += equalities((PipelineStep.rule, wanted.rule or None), (HarvestSiteSchedule.name, wanted.site or None))
    its += [PipelineStep.catalogue_document_id > after] if after is not None else []
    site = HarvestSiteSchedule.site_schedule_id == CatalogueDocument.site_schedule_id
    query = (
        select(PipelineStep, CatalogueDocument.document_id, CatalogueDocument.title, HarvestSiteSchedule.name)
        .join(CatalogueDocument, CatalogueDocument.catalogue_document_id == PipelineStep.catalogue_document_id)
        .outerjoin(HarvestSiteSchedule, site)
        .where(*its)
        .order_by(PipelineStep.catalogue_document_id)
        .limit(limit)
    )
    return session.execute(query).all()


def number_of_document(session: Session, document_id: str) -> int | None:
    """The number of a document in the catalogue; None if it has none with this id."""
    its = CatalogueDocument.document_id == document_id
    return session.scalar(select(CatalogueDocument.catalogue_document_id).where(its))


def _stage_record(
    session: Session, stage: str, counts: Mapping[tuple[str, StepState], int], now: datetime
) -> StageRecord:
    since = now - _RATE_OVER
    recent = select(func.count(), func.min(PipelineStep.ended_at), func.max(PipelineStep.ended_at)).where(
        PipelineStep.stage == stage, PipelineStep.ended_at > since
    )
    number, first, last = session.execute(recent).one()
    waiting = counts.get((stage, StepState.WAITING), 0)
    per_minute = None
    if first is not None and last is not None and last > first:
        # The work for the first batch was before its end.
        of_first = select(func.count()).where(PipelineStep.stage == stage, PipelineStep.ended_at == first)
        per_minute = 60 * (number - (session.scalar(of_first) or 0)) / (last - first).total_seconds()
    return StageRecord(
        stage=stage,
        **{f"{state.value}_documents": counts.get((stage, state), 0) for state in StepState},
        per_minute=per_minute,
        seconds_left=60 * waiting / per_minute if per_minute and waiting else None,
    )
