"""Stages are run over the change feed: each change once, failures again later, nothing lost by a kill."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import insert
from sqlalchemy.orm import Session

from metaharvest.config.settings import load
from metaharvest.database.pipeline_models import PipelineStage
from metaharvest.errors import MetaharvestError, StoreUnavailable
from metaharvest.model.kinds import StepState
from metaharvest.pipeline import running
from metaharvest.pipeline.full_text.walk import closed, failure_of
from metaharvest.pipeline.lookup import with_followers, with_removal
from metaharvest.pipeline.running import StageTotals, run_stages
from metaharvest.pipeline.stage import Context, Document, Failure, Result, Stage
from metaharvest.pipeline.steps import LONGEST_PAUSE, next_try
from support.harvester import Harvester, publish
from support.http_server import HttpServer

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class Recorder:
    """A stage that notes its documents, and what the runner asked of it."""

    name: str
    wakes: tuple[str, ...] = ()
    batch: int = 2
    fails: Callable[[Document], Failure | None] = lambda document: None
    performed: list[str] = field(default_factory=list)
    stored: dict[int, str] = field(default_factory=dict)

    def perform(self, _context: Context, documents: Sequence[Document]) -> Iterable[Result]:
        for document in documents:
            self.performed.append(f"{document.document_id}.{document.revision}")
            failure = self.fails(document)
            yield Result(document, None if failure else document.document_id, failure)

    def store(self, _session: Session, results: Sequence[Result], _now: datetime) -> None:
        self.stored |= {each.document.number: str(each.value) for each in results}

    def remove(self, _session: Session, numbers: Collection[int]) -> None:
        for number in numbers:
            self.stored.pop(number, None)

    def stage(self, version: int = 1) -> Stage:
        return Stage(self.name, version, self.perform, self.store, self.remove, wakes=self.wakes, batch=self.batch)


class Pipeline:
    """Stages on an installation whose clock a test sets."""

    def __init__(self, harvester: Harvester, *recorders: Recorder) -> None:
        self.now = NOW
        self.recorders = recorders
        self.context = Context(harvester.engine, load(harvester.config), lambda: self.now)

    def run(self, version: int = 1, **changes: Any) -> list[dict[StepState, int]]:
        stages = [each.stage(version) for each in self.recorders]
        return [each.states for each in run_stages(replace(self.context, **changes), stages)]


def test_each_change_comes_once_to_each_stage(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1", "a.3.1"))
    harvester.run("2026-11-20")
    first, second = Recorder("first", ("second",)), Recorder("second", batch=10)
    pipeline = Pipeline(harvester, first, second)
    assert pipeline.run() == [{StepState.DONE: 3}, {StepState.DONE: 3}]
    assert sorted(first.performed) == sorted(second.performed) == ["a.1.1", "a.2.1", "a.3.1"]
    assert pipeline.run() == [{}, {}]
    publish(server, "a.1.1", "a.2.2", "a.3.1")
    harvester.run("2026-11-20", "--force")
    assert pipeline.run() == [{StepState.DONE: 1}, {StepState.DONE: 1}]
    assert second.performed[3:] == ["a.2.2"]
    pipeline.run(version=2)
    assert sorted(second.performed[4:]) == ["a.1.1", "a.2.2", "a.3.1"]


def test_a_document_that_is_gone_is_removed_from_each_stage(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    first, second = Recorder("first", ("second",)), Recorder("second")
    pipeline = Pipeline(harvester, first, second)
    pipeline.run()
    assert harvester("target", "withdraw", "a.1", "--reason", "A mistake").code == 0
    assert pipeline.run() == [{StepState.GONE: 1}, {StepState.GONE: 1}]
    assert list(second.stored.values()) == ["a.2"]
    harvester("sites", "edit", "alder", "--not-public")
    harvester.run("2026-11-20", "--force")
    pipeline.run()
    assert second.stored == {}


def test_a_stage_without_anything_to_do_for_a_new_document_does_not_repeat_the_next_stage(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    with_files = {"a.1"}

    def texts(_context: Context, documents: Sequence[Document]) -> Iterable[Result]:
        return [Result(each, "text" if each.document_id in with_files else None) for each in documents]

    index = Recorder("index")
    first = Recorder("first", ("index", "texts")).stage()
    stages = [first, index.stage(), Stage("texts", 1, texts, wakes=("index",)), index.stage()]
    pipeline = Pipeline(harvester)
    run_stages(pipeline.context, stages)
    assert sorted(index.performed) == ["a.1.1", "a.1.1", "a.2.1"]

    with_files.clear()
    harvester.rows("UPDATE pipeline_step SET state = 'waiting', woken = woken + 1 WHERE stage = 'texts'")
    run_stages(pipeline.context, stages)
    assert sorted(index.performed[3:]) == ["a.1.1", "a.2.1"], "a text that is gone leaves the index"


def test_a_failure_is_tried_again_when_its_time_has_come(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    failure = Failure("pipeline.unexpected", "It is away.", DAY)
    first = Recorder("first", ("second",), fails=lambda each: failure if each.document_id == "a.1" else None)
    second = Recorder("second")
    pipeline = Pipeline(harvester, first, second)
    assert pipeline.run() == [{StepState.FAILED: 1, StepState.DONE: 1}, {StepState.DONE: 2}]
    pipeline.now += DAY
    assert pipeline.run() == [{StepState.FAILED: 1}, {}]  # the same failure wakes nobody
    pipeline.now += DAY
    assert pipeline.run() == [{}, {}]  # the pause has doubled
    first.fails = lambda document: None
    pipeline.now += DAY
    assert pipeline.run() == [{StepState.DONE: 1}, {StepState.DONE: 1}]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_person_lets_failures_be_tried_again(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    pipeline = Pipeline(harvester, Recorder("cleaning", fails=lambda each: Failure("a.rule", "It is wrong.")))
    pipeline.run()
    assert "2 documents failed by a.rule." in harvester("pipeline").out
    assert harvester("pipeline", "retry", "cleaning", "--rule", "another").out == "There is no such failure.\n"
    assert harvester("pipeline", "retry", "cleaning", "--rule", "a.rule").out.startswith("2 documents wait again.")
    assert pipeline.run() == [{StepState.FAILED: 2}]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_document_that_breaks_a_stage_costs_nobody_else(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1", "a.3.1"))
    harvester.run("2026-11-20")

    def breaks(document: Document) -> Failure | None:
        if document.document_id == "a.2":
            raise KeyError("creator")
        return None

    pipeline = Pipeline(harvester, Recorder("first", batch=10, fails=breaks))
    assert pipeline.run() == [{StepState.DONE: 2, StepState.FAILED: 1}]
    [(rule, message)] = harvester.rows("SELECT rule, message FROM pipeline_step WHERE state = 'failed'")
    assert rule == "pipeline.unexpected"
    assert "KeyError: 'creator'" in message


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_stored_result_of_a_document_stays_after_an_unexpected_error(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    first = Recorder("first")
    pipeline = Pipeline(harvester, first)
    pipeline.run()

    def breaks(_document: Document) -> Failure | None:
        raise KeyError("creator")

    first.fails = breaks
    assert pipeline.run(version=2) == [{StepState.FAILED: 1}]
    assert list(first.stored.values()) == ["a.1"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_full_disk_is_no_failure_of_documents(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")

    def fills(_document: Document) -> Failure | None:
        raise OSError(errno.ENOSPC, "No space left on device", "/disk/a")

    first = Recorder("first", fails=fills)
    pipeline = Pipeline(harvester, first)
    with pytest.raises(MetaharvestError, match=r"No space left on device \(/disk/a\). Check that there is room"):
        pipeline.run()
    first.fails = lambda document: None
    assert pipeline.run() == [{StepState.DONE: 2}]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_document_that_changes_while_it_is_done_is_done_again(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    second = Recorder("second")
    inner: list[StageTotals] = []

    def changes(_document: Document) -> Failure | None:
        if not inner:
            publish(server, "a.1.2")
            harvester.run("2026-11-20", "--force")
            inner.extend(run_stages(pipeline.context, [Recorder("first", ("second",)).stage()]))
        return None

    first = Recorder("first", ("second",), fails=changes)
    pipeline = Pipeline(harvester, first, second)
    pipeline.run()
    assert second.performed[-1] == "a.1.2"
    assert harvester.rows("SELECT DISTINCT state FROM pipeline_step") == [("done",)]


def test_older_results_do_not_replace_those_of_another_process(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    inner: list[StageTotals] = []
    other = Recorder("first")

    def waits(_document: Document) -> Failure | None:
        if not inner:  # a worker without its lease: in the meantime, another one does the documents as they are now
            publish(server, "a.1.2")
            harvester.run("2026-11-20", "--force")
            assert harvester("target", "withdraw", "a.2", "--reason", "A mistake").code == 0
            inner.extend(run_stages(pipeline.context, [other.stage()]))
        return None

    first = Recorder("first", batch=10, fails=waits)
    pipeline = Pipeline(harvester, first)
    assert pipeline.run() == [{}]
    assert list(other.stored.values()) == ["a.1"]
    assert first.stored == {}


def test_a_value_that_the_database_refuses_costs_its_document_alone(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1", "a.3.1"))
    harvester.run("2026-11-20")
    first = Recorder("first", batch=10)

    def store(session: Session, results: Sequence[Result], now: datetime) -> None:
        first.store(session, results, now)
        if any(each.value == "a.2" for each in results):
            session.execute(insert(PipelineStage), [{"stage": "first", "version": 2}])

    stage = replace(first.stage(), store=store)
    context = Pipeline(harvester, first).context
    assert [each.states for each in run_stages(context, [stage])] == [{StepState.DONE: 2, StepState.FAILED: 1}]
    [(rule, message)] = harvester.rows("SELECT rule, message FROM pipeline_step WHERE state = 'failed'")
    assert rule == "pipeline.unexpected"
    assert "INSERT" not in message


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_older_program_beside_a_newer_one_wakes_nobody(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    pipeline = Pipeline(harvester, Recorder("first"))
    for version in (2, 1, 2):
        pipeline.run(version=version)
    assert pipeline.recorders[0].performed == ["a.1.1"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_without_full_texts_the_files_of_documents_that_are_gone_go_too(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    first, files, removed = Recorder("first", ("files",)), Recorder("files"), list[int]()
    pipeline = Pipeline(harvester, first, files)
    pipeline.run()
    assert harvester("target", "withdraw", "a.1", "--reason", "A mistake").code == 0
    off = replace(files.stage(), tidy=lambda context: removed.append(len(files.stored)))
    run_stages(pipeline.context, [with_removal(first.stage(), [off])])
    assert list(files.stored.values()) == ["a.2"]
    assert removed == [1]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_stage_that_a_stop_keeps_from_its_work_does_not_tidy(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1", "a.3.1"))
    harvester.run("2026-11-20")
    first, second, tidied = Recorder("first", ("second",)), Recorder("second"), list[str]()
    stages = [
        replace(first.stage(), tidy=lambda _: tidied.append("first")),
        replace(second.stage(), tidy=lambda _: tidied.append("second")),
    ]
    context = replace(Pipeline(harvester, first).context, stops=lambda: bool(first.stored))
    run_stages(context, stages)
    assert tidied == ["first"]
    assert second.performed == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_index_does_not_wait_for_all_files(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1", "a.3.1"))
    harvester.run("2026-11-20")
    minutes, performed = 0, list[str]()
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: minutes * 60))

    def note(name: str) -> Callable[[Document], None]:
        def noted(_document: Document) -> None:
            nonlocal minutes
            performed.append(name)
            minutes += 20 * (name == "full-text")

        return noted

    pipeline = Pipeline(
        harvester,
        *(
            Recorder(name, wakes, 1, note(name))
            for name, wakes in {
                "cleaning": ("full-text", "index"),
                "full-text": ("extraction",),
                "extraction": ("index",),
                "index": (),
            }.items()
        ),
    )
    counts = [states[StepState.DONE] for states in pipeline.run()]
    turns = [(name, len(list(some))) for name, some in groupby(performed)]
    assert turns == [
        *(("cleaning", 3), ("index", 3)),
        *(("full-text", 2), ("extraction", 2), ("index", 2)),
        *(("full-text", 1), ("extraction", 1), ("index", 1)),
    ]
    assert counts == [3, 3, 3, 6]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_error_of_a_stage_of_files_does_not_keep_records_from_the_index(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    harvester.run("2026-11-20")

    def is_away(_document: Document) -> None:
        raise StoreUnavailable("The store is away.")

    index = Recorder("index")
    pipeline = Pipeline(
        harvester, Recorder("cleaning", ("full-text", "index")), Recorder("full-text", fails=is_away), index
    )
    with pytest.raises(StoreUnavailable):
        pipeline.run()
    assert index.performed == ["a.1.1"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_stage_of_another_distribution_follows_a_stage(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    first, other = Recorder("first"), Recorder("other")
    pipeline = Pipeline(harvester, first)
    pipeline.run()
    stages = with_followers([first.stage(), replace(other.stage(), follows=("first",))])
    run_stages(pipeline.context, stages)
    assert other.performed == ["a.1.1"]
    publish(server, "a.1.2", "a.2.1")
    harvester.run("2026-11-20", "--force")
    run_stages(pipeline.context, stages)
    assert sorted(other.performed) == ["a.1.1", "a.1.2", "a.2.1"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_parts_of_a_stage_have_each_document_once(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, *(f"a.{number}.1" for number in range(1, 8))))
    harvester.run("2026-11-20")
    first = Recorder("first")
    pipeline = Pipeline(harvester, first)
    for part in range(3):
        pipeline.run(part=part, parts=3)
    assert sorted(first.performed) == [f"a.{number}.1" for number in range(1, 8)]


@pytest.mark.parametrize(
    ("attempts", "pause"), [(0, DAY), (1, 2 * DAY), (3, 8 * DAY), (7, LONGEST_PAUSE), (500, LONGEST_PAUSE)]
)
def test_the_pause_before_the_next_try_doubles(attempts: int, pause: timedelta) -> None:
    assert next_try(Failure("rule", "", DAY), attempts, NOW) == NOW + pause


def test_a_pause_of_many_years_is_cut() -> None:
    embargo = Failure("rule", "", timedelta(days=2_900_000))
    assert next_try(embargo, 12, NOW) == NOW + LONGEST_PAUSE


def test_the_end_of_an_embargo_is_not_put_off_by_the_tries_before() -> None:
    embargo = failure_of(closed("2026-11-25", NOW.date()))
    assert next_try(embargo, 4, NOW) == NOW + 5 * DAY


def test_a_failure_without_a_pause_is_not_tried_again() -> None:
    assert next_try(Failure("rule", ""), 0, NOW) is None


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_postgresql_takes_statistics_of_tables_that_have_grown(harvester: Harvester) -> None:
    rows = "SELECT number, 'first', 'done', 1, 0 FROM generate_series(1, 1000) AS each (number)"
    known = "SELECT reltuples FROM pg_class WHERE oid = 'pipeline_step'::regclass"
    with harvester.engine.begin() as connection:
        columns = "catalogue_document_id, stage, state, woken, attempts"
        connection.exec_driver_sql(f"INSERT INTO pipeline_step ({columns}) {rows}")
        connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
    Pipeline(harvester, Recorder("first")).run()
    assert harvester.rows(known) == [(1000,)]
    assert harvester.rows("SHOW jit") == [("off",)]
