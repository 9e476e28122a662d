"""Deleted records of a repository that the target never had are not counted as deleted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.databases import TestDatabase, on_one_database
from support.oai_network import Network
from support.oai_server import OaiServer


@pytest.fixture
def network(tmp_path: Path, database: TestDatabase) -> Iterator[Network]:
    with OaiServer(6) as server:
        installed = Network(tmp_path, server, database=database)
        yield installed
        installed.harvester.close()


@on_one_database
@pytest.mark.parametrize("deletions", ["tell", "note"])
def test_what_was_never_held_is_unchanged_and_what_was_held_is_deleted(network: Network, deletions: str) -> None:
    for number in (1, 2):
        network.server.delete(f"oai:test:{number}")
    network.register("--contact", "repo@example.org", "--deletions", deletions)
    assert network.harvest() == {"status": "succeeded", "listed": 6, "inserted": 4, "unchanged": 2}
    assert "delet" not in network.subject("site")
    network.server.delete("oai:test:3")
    again = network.harvest("--full")
    assert again == {"status": "succeeded", "listed": 6, "unchanged": 5, "deleted": 1}
    network.server.put("oai:test:1", deleted=False)
    assert network.harvest()["inserted"] == 1
