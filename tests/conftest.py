"""Fixtures that many tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.harvester import Harvester
from support.http_server import HttpServer


@pytest.fixture
def harvester(tmp_path: Path) -> Iterator[Harvester]:
    """An installation of its own: settings, an empty database, a Maildir."""
    installed = Harvester(tmp_path)
    yield installed
    installed.close()


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """A web server on 127.0.0.1."""
    with HttpServer() as running:
        yield running
