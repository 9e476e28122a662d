"""Starts the check of templates as a fork: its interpreter alone takes a second of processor time for its imports."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from metaharvest.reports import template_check
from support.fork_server import ForkedPopen


def fork_template_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `doctor` in this process check templates in a fork, with the same limits."""
    forking = SimpleNamespace(run=_run, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(template_check, "subprocess", forking)


def _run(
    program: list[str], *, input: str, capture_output: bool, text: bool, timeout: float
) -> subprocess.CompletedProcess[str]:
    """The part of subprocess.run() that the check uses."""
    assert capture_output
    assert text
    pipe = subprocess.PIPE
    with ForkedPopen(program, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as running:
        try:
            out, err = running.communicate(input, timeout)
        except BaseException:
            running.kill()
            raise
        return subprocess.CompletedProcess(program, running.returncode, out, err)
