"""`metaharvest worker` where something is missing."""

from __future__ import annotations

import sys

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
