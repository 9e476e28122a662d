"""Checking in a worker process: the same verdicts, errors kept apart, signals, and what the process imports."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from metaharvest.model import Level, ListedDocument, ValidationLevel, Verdict
from metaharvest.transform.filters import read_filters
from metaharvest.validation import worker
from metaharvest.validation.processing_policy import ProcessingPolicy
from support.eml_documents import VALIDATOR, eml, listed

pytestmark = pytest.mark.slow

FGDC = b"<metadata><idinfo/></metadata>"
BATCH = [
    (eml("2.2.0"), listed("2.2.0"), ProcessingPolicy()),
    (eml("2.1.1", "<foo/>"), listed("2.1.1"), ProcessingPolicy()),
    (eml("2.2.0", package_id="alder.1.2"), listed("2.2.0"), ProcessingPolicy(Level.ERROR)),
    (eml("2.0.1", f"<!--{'x' * 100_000}-->"), listed("2.0.1"), ProcessingPolicy()),
    (FGDC, listed("2.2.0", document_type="FGDC-STD-001-1998"), ProcessingPolicy()),
    (FGDC, listed("2.2.0", document_type="INCITS-453-2009"), ProcessingPolicy()),
]
NOTHING: Any = None


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    """One worker process, started as a pool starts it."""
    with pool() as started:
        yield started


def pool(longest: float = 0.0) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, context, initializer=worker.start, initargs=(("FGDC-STD-001-1998",), longest))


def slow() -> tuple[bytes, ListedDocument, ProcessingPolicy]:
    """A document whose check takes long, in the parser's C code."""
    content = "<additionalMetadata><metadata><x>" + "<a/>" * 900_000 + "</x></metadata></additionalMetadata>"
    return eml("2.2.0", after=content), listed("2.2.0"), ProcessingPolicy()


def test_the_verdicts_of_a_batch_come_in_its_order_and_are_those_of_the_validator(process: ProcessPoolExecutor) -> None:
    verdicts = process.submit(worker.check_all, BATCH).result()

    assert verdicts == [VALIDATOR.check(*each) for each in BATCH]
    accepted = [isinstance(verdict, Verdict) and verdict.acceptable for verdict in verdicts]
    assert accepted == [True, False, False, True, True, False]


def test_an_unexpected_error_is_a_text_for_its_document_alone(process: ProcessPoolExecutor) -> None:
    before, error, after = process.submit(worker.check_all, [BATCH[0], (NOTHING, *BATCH[0][1:]), BATCH[1]]).result()

    assert [before, after] == [VALIDATOR.check(*each) for each in BATCH[:2]]
    assert isinstance(error, str)
    assert error.startswith("Traceback (most recent call last):")
    assert "TypeError: object of type 'NoneType' has no len()" in error


def test_interrupts_and_hang_ups_are_ignored(process: ProcessPoolExecutor) -> None:
    pid = process.submit(os.getpid).result()
    for number in (signal.SIGINT, signal.SIGHUP):
        os.kill(pid, number)

    assert process.submit(worker.check_all, BATCH[:1]).result() == [VALIDATOR.check(*BATCH[0])]
    assert process.submit(os.getpid).result() == pid


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_sigterm_ends_a_process_in_the_middle_of_a_check_even_if_its_parent_ignores_it() -> None:
    usual = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pool() as ended:
            pid = ended.submit(os.getpid).result()
            idle = processor_seconds(pid)
            under_way = ended.submit(worker.check_all, [slow()] * 1_000)
            while processor_seconds(pid) < idle + 0.2:
                time.sleep(0.02)
            os.kill(pid, signal.SIGTERM)
            with pytest.raises(BrokenProcessPool):
                under_way.result(timeout=60)
    finally:
        signal.signal(signal.SIGTERM, usual)


def test_a_process_that_nobody_ends_ends_itself_when_a_call_takes_too_long() -> None:
    """As where the process of the run was killed, and with it whoever looks at the time limit."""
    with pool(longest=0.5) as alone:
        # What waits between two calls does not count.
        for _ in range(2):
            assert alone.submit(worker.check_all, BATCH[:1]).result() == [VALIDATOR.check(*BATCH[0])]
            time.sleep(0.6)
        with pytest.raises(BrokenProcessPool):
            alone.submit(worker.check_all, [slow()] * 5).result(timeout=60)


PROGRAM = """
import sys
from metaharvest.validation import worker
from metaharvest.validation.processing_policy import ProcessingPolicy
heavy = {"xmlschema", "sqlalchemy", "pycurl", "pydantic", "asyncio", "multiprocessing"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
from support.eml_documents import eml, listed
from metaharvest.validation.processing_policy import ProcessingPolicy
worker.start(())
[verdict] = worker.check_all([(eml("2.2.0"), listed("2.2.0"), ProcessingPolicy())])
assert verdict.acceptable and not heavy & set(sys.modules)
[verdict] = worker.check_all([(eml("2.2.0", "<foo/>"), listed("2.2.0"), ProcessingPolicy())])
assert not verdict.acceptable and "xmlschema" in sys.modules
"""


def test_a_worker_imports_little_and_xmlschema_only_when_a_document_has_failed() -> None:
    folder = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_process_ends_itself_by_its_own_signal_when_the_files_of_a_site_take_too_long(tmp_path: Path) -> None:
    nested = "//x[count(//x[count(//x[count(//x[contains(., string(position()))]) > 1]) > 1]) > 5]"
    file = tmp_path / "filters.xml"
    file.write_text(f"<filters match='any'><filter xpath='{nested.replace('>', '&gt;')}'/></filters>")
    how = ProcessingPolicy(level=ValidationLevel.STRICT, filters=read_filters(file))
    hostile = f"<r>{'<x>a</x>' * 2000}</r>".encode()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=check_in_process, args=(hostile, how))
    process.start()
    process.join(60)
    assert process.exitcode == -worker.TOO_COSTLY
    # Time that other checks take does not count.
    process = context.Process(target=check_in_process, args=(b"<r/>", how, 0.8))
    process.start()
    process.join(60)
    assert process.exitcode == 0


def check_in_process(content: bytes, how: ProcessingPolicy, busy: float = 0.0) -> None:
    worker.start((), transform_seconds=0.5)
    worker.check_all([(content, listed("2.2.0"), how)])
    until = time.process_time() + busy
    while time.process_time() < until:
        pass
    worker.check_all([(content, listed("2.2.0"), how)])
