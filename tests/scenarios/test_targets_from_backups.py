"""Source repositories whose documents the target has lost: it comes from a backup, or is another one than before."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.oai_network import ALL, Network, lists
from support.oai_server import OaiServer

FOLDER = '[target]\nkind = "folder"\nfolder = "documents"\n'
OLD = datetime(2026, 10, 1, tzinfo=UTC)
WARNING = "SELECT error_message FROM harvest_detail_log WHERE rule = 'target.lost'"


@pytest.fixture
def server() -> Iterator[OaiServer]:
    with OaiServer(records=25) as made:
        yield made


@pytest.fixture
def network(tmp_path: Path, server: OaiServer) -> Iterator[Network]:
    made = Network(tmp_path, server, FOLDER)
    yield made
    made.harvester.close()


def test_documents_that_a_folder_from_a_backup_lacks_come_back(network: Network, tmp_path: Path) -> None:
    folder, backup = tmp_path / "documents", tmp_path / "backup"
    network.register()
    network.harvest()
    shutil.copytree(folder, backup)
    network.server.put("oai:test:3", OLD, title="Toads")
    assert network.harvest("--full")["updated"] == 1
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    network.harvester("run", "--dry-run", "--site", "repo")
    assert network.harvest()["status"] == "succeeded"
    assert network.held() == ALL
    [(message,)] = network.harvester.rows(WARNING)
    assert "The target does not have test/oai_dc/oai:test:3, although" in message
    assert "repo: the central repository has lost documents, nothing new" in network.subject("site")
    assert "1 well; the central repository has lost documents of 1 site; nothing new" in network.subject("admin")
    assert network.harvest() == {"status": "succeeded", "listed": 25, "updated": 1, "unchanged": 24}
    assert network.held() == {**ALL, "3": 3}
    network.server.answered.clear()
    network.harvest()
    assert "from" in lists(network.server)[0].arguments
    assert len(network.harvester.rows(WARNING)) == 1


def test_a_lost_document_that_is_no_longer_listed_is_asked_for_once(network: Network, tmp_path: Path) -> None:
    network.register("--until", "2026-12-31")  # what such a list does not name is not missing
    network.harvest()
    [file] = (tmp_path / "documents").glob("test/**/25.xml")
    file.unlink()
    network.harvester("target", "rebuild")
    del network.server.records["oai:test:25"]
    for _ in range(3):
        network.harvest()
    network.server.answered.clear()
    network.harvest()
    assert "from" in lists(network.server)[0].arguments
    assert len(network.harvester.rows(WARNING)) == 1


def test_another_target_gets_the_records_that_the_former_one_had(tmp_path: Path, server: OaiServer) -> None:
    network = Network(tmp_path, server)
    network.register()
    network.harvest()
    with (tmp_path / "metaharvest.toml").open("a") as settings:
        settings.write(FOLDER)
    network.harvest()
    assert network.harvest()["inserted"] == 25
    assert network.held() == dict.fromkeys(ALL, 2)
    network.harvester.close()


def test_a_new_index_of_a_folder_that_lacks_records_has_all_of_them_asked_for(network: Network, tmp_path: Path) -> None:
    network.register()
    network.harvest()
    assert "Missing" not in network.harvester("target", "rebuild").out
    [file] = (tmp_path / "documents").glob("test/**/3.xml")
    file.unlink()
    said = network.harvester("target", "rebuild").out
    assert "Missing: 1 document of repo. Its next harvest asks the repository for all records." in said
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 1, "unchanged": 24}
    assert network.held() == {**ALL, "3": 2}
