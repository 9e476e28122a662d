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
