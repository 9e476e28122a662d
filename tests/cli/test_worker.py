"""`metaharvest worker` where something is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.databases import on_one_database
from support.harvester import Harvester


@on_one_database
def test_what_is_missing_is_a_sentence(harvester: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback: neither without a broker nor without the library, whichever of them is missing first."""
    monkeypatch.setitem(sys.modules, "celery", None)
    said = harvester("worker")
    assert (said.code, said.err.split(". ")[0]) == (2, "broker of [workers] is not set")
    monkeypatch.setenv("METAHARVEST_WORKERS__BROKER", "env:BROKER")
    monkeypatch.setenv("BROKER", "amqp://127.0.0.1:1/")
    said = harvester("worker")
    assert (said.code, said.out) == (2, "")
    assert said.err.strip().endswith("Install it with `pip install 'metaharvest[workers]'`.")


SIGNAL_AS_THE_WORK_BEGINS = """\
import os, signal, threading

class Thread(threading.Thread):
    def start(self):
        super().start()
        if self.name == "work":
            os.kill(os.getpid(), signal.SIGTERM)

threading.Thread = Thread
"""


@on_one_database
@pytest.mark.slow
def test_a_signal_as_the_work_begins_ends_the_worker(
    harvester: Harvester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python would wait for the thread of the work if nothing ended it."""
    (tmp_path / "sitecustomize.py").write_text(SIGNAL_AS_THE_WORK_BEGINS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("METAHARVEST_WORKERS__BROKER", "amqp://guest@127.0.0.1:1/")
    with harvester.start("worker") as worker:
        try:
            said = worker.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            worker.kill()
            raise
    assert (worker.returncode, "Traceback" in said[1]) == (0, False), said
    assert harvester.rows("SELECT name FROM worker") == []


@on_one_database
@pytest.mark.parametrize("address", ["ampq://kim:secret-word@x/", "amqp://kim:secret-word@x:abc/", ""])
def test_a_wrong_address_behind_a_reference_is_a_sentence(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("METAHARVEST_WORKERS__BROKER", "env:BROKER")
    monkeypatch.setenv("BROKER", address)
    wrong = (
        "The address of the broker in env:BROKER ([workers] broker) is wrong: it must be an address like amqp://HOST/"
    )
    for command in ("worker", "coordinate"):
        said = harvester(command)
        assert (said.code, said.out) == (2, "")
        assert said.err.startswith(wrong)
        assert "secret-word" not in said.err
    found = harvester("doctor").out
    assert wrong in found
    assert "No worker starts." in found


@on_one_database
def test_an_open_job_has_no_state_of_an_end(harvester: Harvester) -> None:
    said = harvester("jobs", "--open", "--state", "done")
    assert (said.code, "leave out --open or --state" in said.err) == (2, True)
    assert harvester("jobs", "--open", "--state", "ready").code == 0
