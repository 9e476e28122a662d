"""Several attempts at a list, or a part of it: what the last failure says."""

from __future__ import annotations

import asyncio

import pytest

from metaharvest.errors import FetchError
from metaharvest.model import Finding
from metaharvest.sources.attempts import in_attempts
from support.oai_harvest import HTTP, Patient


def test_the_failure_after_several_attempts_is_the_last_one_with_the_number_of_attempts() -> None:
    """Also that the server was not reached at all: then it is not asked for other records one by one."""
    asked = 0

    async def ask() -> None:
        nonlocal asked
        asked += 1
        finding = Finding("http.connection", f"Attempt {asked} failed.", "Wait.")
        raise FetchError(finding, transient=True, seconds=0.5, counted=True, status=503, page=b"<html>")

    with pytest.raises(FetchError) as caught:
        asyncio.run(in_attempts(ask, HTTP, Patient()))
    error = caught.value
    assert asked == 1 + HTTP.retries
    assert str(error).startswith(f"Attempt {asked} failed.")
    assert (error.transient, error.counted, error.status, error.page) == (True, True, 503, b"<html>")
    assert error.seconds == 0.5 * asked


def test_a_reason_to_stop_ends_the_attempts_after_the_pause() -> None:
    asked, pauses = 0, []

    async def ask() -> None:
        nonlocal asked
        asked += 1
        raise FetchError(Finding("http.status", "It answered 503.", "Wait."), transient=True)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    stop = Finding("harvest.stopped", "The run was stopped.", "No action is needed.")
    with pytest.raises(FetchError, match=r"\AIt answered 503\.\Z"):
        asyncio.run(in_attempts(ask, HTTP, Patient(stop, questions=0), pause=pause))
    assert (asked, pauses) == (1, [0.0])
