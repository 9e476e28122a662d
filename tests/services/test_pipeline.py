"""The jobs of the pipeline: one for each part of a stage that has work."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from sqlalchemy import delete

from metaharvest.database.pipeline_models import PipelineStep
from metaharvest.model.kinds import StepState
from metaharvest.services import pipeline
from metaharvest.services.harvester import Harvester as Opened
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.pipeline_steps import add_failure, add_step

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def opened(harvester: Harvester, server: HttpServer) -> Iterator[Opened]:
    """An installation with two documents, whose pipeline is for workers, and has no steps."""
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    _enable(harvester)
    with harvester.opened(clock=lambda: NOW) as made:
        pipeline.make_jobs(made)  # this reads the change feed
        with made.writing() as session:
            session.execute(delete(PipelineStep))
        yield made


def _enable(harvester: Harvester) -> None:
    text = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f"{text}[pipeline]\nenabled = true\n", encoding="utf-8")


def _subjects(harvester: Harvester) -> list[str]:
    return [subject for (subject,) in harvester.rows("SELECT subject FROM job WHERE subject LIKE 'full-text%'")]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_part_of_a_stage_without_work_has_no_job(harvester: Harvester, opened: Opened) -> None:
    with opened.writing() as session:
        add_step(session, "a.1", "full-text", StepState.WAITING)
        add_failure(session, "a.2", "full-text.no-link", "It has no link.", at=NOW + timedelta(days=1))
    [(number,)] = harvester.rows("SELECT catalogue_document_id FROM catalogue_document WHERE document_id = 'a.1'")
    assert pipeline.make_jobs(opened) == 1
    assert _subjects(harvester) == [f"full-text, part {number % 8 + 1} of 8"]
    assert pipeline.make_jobs(opened) == 0


@pytest.mark.slow
@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_workers_that_make_jobs_at_the_same_moment_do_not_fail(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    _enable(harvester)
    together = Barrier(4)

    def make(_number: int) -> int:
        with harvester.opened() as made:
            made.engine  # noqa: B018 - it connects before the others begin
            together.wait()
            return pipeline.make_jobs(made)

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(make, range(4))) == 1
    assert harvester.rows("SELECT subject FROM job") == [("cleaning",)]
