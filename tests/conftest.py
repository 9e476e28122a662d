"""Fixtures that many tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.databases import KINDS, Servers, TestDatabase
from support.gmn import MemberNode
from support.harvester import Harvester
from support.http_server import HttpServer


def pytest_addoption(parser: pytest.Parser) -> None:
    """The soak tests' options; they stand here, for pytest reads them before it looks into tests/soak."""
    group = parser.getgroup("soak", "tests that kill runs with SIGKILL (tests/soak)")
    group.addoption(
        "--soak-kills", type=int, default=4, metavar="N", help="kill so many runs in each test (default: 4)"
    )
    group.addoption("--soak-seed", type=int, metavar="N", help="repeat the moments of chance of an earlier test")


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The database servers of this test session."""
    made = Servers()
    yield made
    made.drop()


@pytest.fixture
def node(servers: Servers) -> MemberNode:
    """A DataONE member node without objects."""
    return servers.member_node()


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, servers: Servers) -> TestDatabase:
    """An empty database with all tables: SQLite, PostgreSQL, MariaDB in turn."""
    return servers.test_database(request.param)


@pytest.fixture
def harvester(tmp_path: Path, database: TestDatabase) -> Iterator[Harvester]:
    """An installation of its own: settings, an empty database, a Maildir."""
    installed = Harvester(tmp_path, database=database)
    yield installed
    installed.close()


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """A web server on 127.0.0.1."""
    with HttpServer() as running:
        yield running
