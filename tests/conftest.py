"""Fixtures that many tests share."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from metaharvest.config import secret_references
from support import quick
from support.compiled_schemas import share_compiled_schemas
from support.databases import KINDS, Servers, TestDatabase, hide_servers, share_compiled_statements
from support.gmn import MemberNode
from support.harvester import Harvester
from support.http_server import HttpServer
from support.temporary_files import keep_files_in_memory

# Fewer garbage collections save 3 % of the processor time of the tests, and a sixth of the time to collect them.
gc.set_threshold(20_000, 10, 10)
keep_files_in_memory()
share_compiled_statements()
share_compiled_schemas()

# The same examples each time, however busy the machine is; `make fuzz` looks for others.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")

_SERVERS = {"node", "browser"}
"""Fixtures that take seconds in each process of the tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of `make quick`, and those of the soak tests: pytest reads options before it looks into tests/soak."""
    parser.addoption("--quick", action="store_true", help="run the unit tests and one scenario of each kind")
    group = parser.getgroup("soak", "tests that kill runs with SIGKILL (tests/soak)")
    group.addoption(
        "--soak-kills", type=int, default=4, metavar="N", help="kill so many runs in each test (default: 4)"
    )
    group.addoption("--soak-seed", type=int, metavar="N", help="repeat the moments of chance of an earlier test")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module of which `make quick` runs nothing."""
    return True if config.getoption("--quick") and quick.is_module_without(collection_path) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """End `make quick` with what it did not run."""
    if config.getoption("--quick"):
        terminalreporter.write_line(quick.LEFT_OUT)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests for `make quick`; have each process begin with its share of the long tests.

    Tests of member nodes are together in one process, and so are tests in the browser: each process starts its own.
    """
    if config.getoption("--quick"):
        items[:] = [item for item in items if isinstance(item, pytest.Function) and quick.is_quick(item)]
    items.sort(key=lambda item: not _starts_server(item))
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    long = [item for item in items if _is_long(item)]
    others = [item for item in items if not _is_long(item)]
    share = -(-len(others) // processes)
    items[:] = [
        item
        for number in range(processes)
        for item in (*long[number::processes], *others[number * share : (number + 1) * share])
    ]


def _starts_server(item: pytest.Item) -> bool:
    return not _SERVERS.isdisjoint(getattr(item, "fixturenames", ()))


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None and not _starts_server(item)


def pytest_collection_finish() -> None:
    """Leave modules and tests out of garbage collections, and the servers of the tests out of the environment.

    With several processes, this one does not collect, and passes its environment on to them.
    """
    hide_servers()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests() -> Iterator[None]:
    """The words that one test has for secrets are plain words in the next one."""
    yield
    secret_references._to_mask.clear()


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
