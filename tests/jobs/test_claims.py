"""Claims of jobs, on each database: exactly one worker has a job, and one job a host."""

import errno
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text, update
from sqlalchemy.exc import IntegrityError, OperationalError

from metaharvest.database.engine import writers
from metaharvest.database.worker_models import Job
from metaharvest.harvest.worker_session import SliceEnd
from metaharvest.jobs import claims, making, workers
from metaharvest.jobs.claims import Claim, HeldClaims, Used
from metaharvest.jobs.making import NewJob
from metaharvest.jobs.workers import WorkerProcess
from metaharvest.model.jobs import JobState, Step
from metaharvest.pipeline.file_store import unusable
from metaharvest.services import job_kinds
from metaharvest.services.job_kinds import JobContext, Kind
from metaharvest.services.worker_loop import Performed, give_back, live
from support.databases import on_one_database
from support.harvester import Harvester

KIND = "harvest_site"


def make(harvester: Harvester, *jobs: NewJob) -> int:
    with writers(harvester.engine).begin() as session:
        return making.make(session, jobs)


def claim(harvester: Harvester, worker: str = "one", limit: int = 1) -> list[Claim]:
    with writers(harvester.engine).begin() as session:
        return claims.claim(session, worker, [KIND], limit)


def job(number: int, *, host: str = "", priority: int = 0) -> NewJob:
    return NewJob(KIND, f"key {number}", subject=f"site {number}", host=host, priority=priority)


def lapse(harvester: Harvester) -> None:
    harvester.rows("UPDATE job SET lease_until = '2020-01-01 00:00:00'")


def test_the_job_with_the_highest_priority_is_claimed_first_and_the_oldest_of_equal_ones(harvester: Harvester) -> None:
    make(harvester, job(1), job(2, priority=5), job(3), job(4, priority=9))
    assert [each.subject for each in claim(harvester, limit=3)] == ["site 4", "site 2", "site 1"]


def test_a_host_has_one_worker_at_a_time(harvester: Harvester) -> None:
    make(harvester, job(1, host="a"), job(2, host="a"), job(3, host="b"), job(4, host="a"))
    first = claim(harvester)
    assert [each.subject for each in first] == ["site 1"]
    assert [each.subject for each in claim(harvester, "two", limit=4)] == ["site 3"]
    assert claim(harvester, "three") == []
    with writers(harvester.engine).begin() as session:
        assert claims.end(session, first[0], Used(), JobState.DONE)
    assert [each.subject for each in claim(harvester, "three")] == ["site 2"]


def test_many_workers_at_once_claim_each_job_exactly_once(harvester: Harvester) -> None:
    make(harvester, *(job(number, host=f"host {number % 20}") for number in range(60)))
    done: list[str] = []

    def work(name: str) -> None:
        misses = 0
        while misses < 20:
            try:
                found = claim(harvester, name)
            except (IntegrityError, OperationalError):
                misses += 1
                continue
            misses = 0 if found else misses + 1
            for each in found:
                with writers(harvester.engine).begin() as session:
                    if claims.end(session, each, Used(), JobState.DONE):
                        done.append(each.subject)

    threads = [threading.Thread(target=work, args=(f"worker {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(done) == Counter(f"site {number}" for number in range(60))


def test_a_worker_that_lost_its_lease_can_neither_renew_nor_end(harvester: Harvester) -> None:
    make(harvester, job(1, host="a"))
    [old] = claim(harvester)
    lapse(harvester)
    [new] = claim(harvester, "two")
    assert (new.job_id, new.fence, new.attempts) == (old.job_id, old.fence + 1, 2)
    with writers(harvester.engine).begin() as session:
        assert claims.renew(session, [old, new]) == [old]
        assert not claims.end(session, old, Used(), JobState.DONE)
        assert not claims.end_slice(session, old, Used())
        assert claims.renew(session, [new]) == []
    assert harvester.rows("SELECT state, worker FROM job") == [("taken", "two")]


@on_one_database
def test_a_worker_never_claims_a_job_that_it_still_holds(harvester: Harvester) -> None:
    """Its slice may still write: it would do so with the new fencing number."""
    make(harvester, job(1), job(2))
    [mine] = claim(harvester)
    lapse(harvester)
    with writers(harvester.engine).begin() as session:
        assert [each.subject for each in claims.claim(session, "one", [KIND], 2, {mine.job_id})] == ["site 2"]
        session.execute(update(Job).values(attempts=claims.SUSPECT_AFTER))
        assert claims.claim_suspect(session, "one", [KIND], {mine.job_id}) == []
        assert claims.renew(session, [mine]) == []


@on_one_database
def test_a_slice_that_ends_begins_the_attempts_anew_and_adds_what_it_used(harvester: Harvester) -> None:
    make(harvester, job(1))
    for seconds, memory in ((2, 10), (3, 5)):
        [mine] = claim(harvester)
        with writers(harvester.engine).begin() as session:
            assert claims.end_slice(session, mine, Used(seconds, 1, memory))
    columns = "SELECT state, attempts, slices, seconds, cpu_seconds, memory_bytes, host_key FROM job"
    assert harvester.rows(columns) == [("ready", 0, 2, 5, 2, 10, None)]


@on_one_database
def test_a_failure_is_forgotten_after_a_slice_that_ends_by_itself(harvester: Harvester) -> None:
    make(harvester, job(1))
    [mine] = claim(harvester)
    with writers(harvester.engine).begin() as session:
        assert claims.fail_slice(session, mine, Used(), "The disk is full.")
    assert harvester.rows("SELECT sentence FROM job") == [("The disk is full.",)]
    [mine] = claim(harvester)
    with writers(harvester.engine).begin() as session:
        assert claims.end_slice(session, mine, Used())
    assert harvester.rows("SELECT sentence FROM job") == [(None,)]


@on_one_database
def test_a_job_that_failed_waits_before_it_is_tried_again(harvester: Harvester) -> None:
    make(harvester, job(1))
    [mine] = claim(harvester)
    with writers(harvester.engine).begin() as session:
        assert claims.fail_slice(session, mine, Used(), "The database was away.", timedelta(hours=1))
    assert claim(harvester) == []
    assert harvester.rows("SELECT state, attempts, sentence FROM job") == [("ready", 1, "The database was away.")]


@on_one_database
def test_an_open_job_is_made_once_and_gets_the_higher_priority(harvester: Harvester) -> None:
    assert make(harvester, job(1, priority=5)) == 1
    assert make(harvester, job(1, priority=9), job(2)) == 1
    assert make(harvester, job(1, priority=1)) == 0
    assert harvester.rows("SELECT subject, priority FROM job ORDER BY job_id") == [("site 1", 9), ("site 2", 0)]


def test_work_for_a_job_that_a_worker_claims_at_this_moment_gets_its_next_job(harvester: Harvester) -> None:
    due = replace(job(1), next_key="key 1, next")
    assert [make(harvester, due), make(harvester, due)] == [1, 0]
    with ThreadPoolExecutor(1) as threads:
        with writers(harvester.engine).begin() as session:
            assert claims.claim(session, "one", [KIND])
            made = threads.submit(make, harvester, due)
            time.sleep(0.2)
        assert made.result() == 1
    assert make(harvester, due) == 0
    assert harvester.rows("SELECT open_key FROM job ORDER BY job_id") == [("key 1",), ("key 1, next",)]


@on_one_database
def test_a_job_with_which_two_workers_died_is_claimed_alone(harvester: Harvester) -> None:
    make(harvester, job(1), job(2))
    for _ in range(2):
        assert len(claim(harvester, limit=2)) == 2
        lapse(harvester)
    assert claim(harvester, limit=2) == []
    with writers(harvester.engine).begin() as session:
        [suspect] = claims.claim_suspect(session, "one", [KIND])
    assert (suspect.subject, suspect.attempts) == ("site 1", 3)
    with writers(harvester.engine).begin() as session:
        assert claims.end_slice(session, suspect, Used())
    assert [each.subject for each in claim(harvester, limit=2)] == ["site 1"]


@on_one_database
def test_an_attempt_that_the_job_did_not_spoil_does_not_count(harvester: Harvester) -> None:
    make(harvester, job(1))
    [mine] = claim(harvester)
    with writers(harvester.engine).begin() as session:
        assert claims.fail_slice(session, mine, Used(), "The database was away.", is_blameless=True)
    assert harvester.rows("SELECT state, attempts FROM job") == [("ready", 0)]


@on_one_database
def test_a_job_whose_end_waited_for_the_database_keeps_its_error_and_its_attempt(harvester: Harvester) -> None:
    make(harvester, job(1))
    [mine] = claim(harvester)
    with writers(harvester.engine).begin() as session:
        give_back(session, mine, Performed(is_done=False, error="The site is broken."))
    assert harvester.rows("SELECT state, attempts, sentence FROM job") == [("ready", 1, "The site is broken.")]
    assert claim(harvester) == []


@on_one_database
def test_a_job_that_finds_the_disk_full_is_tried_again_after_a_minute(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def perform(context: JobContext, collected: object) -> bool:
        raise unusable(Path("files"), OSError(errno.ENOSPC, "No space left on device"))

    monkeypatch.setitem(job_kinds._BUILT_IN, KIND, Kind(lambda context: None, perform))
    make(harvester, job(1))
    [mine] = claim(harvester)
    with harvester.opened() as opened:
        live(JobContext(opened, mine, SliceEnd(60)), HeldClaims(), lambda: True)
    [(attempts, sentence, seconds)] = harvester.rows(
        "SELECT attempts, job.sentence, 86400 * (julianday(not_before) - julianday(at)) "
        "FROM job JOIN job_event USING (job_id) WHERE step = 'ended'"
    )
    assert (attempts, round(seconds)) == (1, 60)
    assert sentence.endswith("Nothing is lost: the next run goes on.")


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_old_jobs_are_purged_while_a_worker_writes_for_its_job(harvester: Harvester) -> None:
    make(harvester, job(1), job(2))
    [old] = claim(harvester)
    with writers(harvester.engine).begin() as session:
        claims.end(session, old, Used(), JobState.DONE)
    harvester.rows("UPDATE job SET ended_at = '2020-01-01 00:00:00' WHERE state = 'done'")
    [mine] = claim(harvester)
    with writers(harvester.engine).begin() as session:
        workers.note_steps(session, [(mine, Step.STARTED, "")], datetime.now(UTC))
    with writers(harvester.engine).begin() as writing, writers(harvester.engine).begin() as session:
        assert claims.renew(writing, [mine]) == []
        session.execute(text("SET SESSION innodb_lock_wait_timeout = 1"))
        making.purge(session, date(2021, 1, 1))
    assert harvester.rows("SELECT job_id, state FROM job") == [(mine.job_id, "taken")]


@on_one_database
def test_the_steps_of_a_job_that_a_person_cancels_say_so(harvester: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    def perform(context: JobContext, collected: object) -> bool:
        assert harvester("jobs", "cancel", "1").code == 0
        return False

    monkeypatch.setitem(job_kinds._BUILT_IN, KIND, Kind(lambda context: None, perform))
    make(harvester, job(1))
    [mine] = claim(harvester)
    with harvester.opened() as opened:
        live(JobContext(opened, mine, SliceEnd(60)), HeldClaims(), lambda: True)
    assert harvester.rows("SELECT state FROM job") == [("cancelled",)]
    assert harvester.rows("SELECT sentence FROM job_event WHERE step = 'assessed'") == [("cancelled",)]


@on_one_database
def test_the_last_worker_to_look_gets_as_many_jobs_as_the_first(harvester: Harvester) -> None:
    make(harvester, *(job(number) for number in range(64)))
    for name in ("one", "two", "three", "four"):
        with writers(harvester.engine).begin() as session:
            workers.note(session, WorkerProcess(name, "alder", 1, "1.0"), [])
    for name in ("one", "two", "three", "four"):
        with writers(harvester.engine).begin() as session:
            assert len(claims.claim(session, name, [KIND], workers.share(session, held=0))) == 16
    make(harvester, *(job(number) for number in range(64, 72)))
    with writers(harvester.engine).begin() as session:
        assert workers.share(session, held=16) == 2
        assert workers.share(session, held=20) == 1
