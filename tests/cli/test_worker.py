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
