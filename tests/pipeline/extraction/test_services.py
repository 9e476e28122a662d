"""Requests to the services of the settings."""

from __future__ import annotations

import email.utils
from datetime import UTC, datetime, timedelta

from metaharvest.config.settings import HttpSettings
from metaharvest.pipeline.extraction.services import ServiceClient
from support.http_server import HttpServer, answering, in_turn


def test_a_date_of_retry_after_is_by_the_clock_of_the_service() -> None:
    """The clock of this machine is three hours behind."""
    now = datetime.now(UTC) + timedelta(hours=3)
    soon = email.utils.format_datetime(now + timedelta(seconds=1), usegmt=True)
    with HttpServer() as service:
        service.clock = lambda: now
        busy = answering(b"busy", status=503, headers={"Retry-After": soon})
        url = service.route("/works", in_turn(busy, answering(b"found")))
        with ServiceClient("Crossref", HttpSettings(), pace=0, seconds=20) as client:
            assert client.get(url) == "found"
