"""Sites with several sets, which an upgrade splits: nothing is lost, nothing is fetched into the target again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config

from metaharvest.config.paths import data_folder
from support.databases import TestDatabase
from support.oai_network import ALL, TOTALS, Network, is_list, lists
from support.oai_server import OaiServer

TOLD = "It became 3 sites: 'repo' (set a), 'repo-b' (set b), 'repo-c' (set c). Each of them lists all of its records"


@pytest.fixture
def server() -> Iterator[OaiServer]:
    with OaiServer(records=25) as made:
        made.sets = {"a": "A", "b": "B", "c": "C"}
        for number in range(1, 26):
            made.records[f"oai:test:{number}"].sets = ("a" if number < 10 else "b" if number < 14 else "c",)
        yield made


@pytest.fixture
def network(tmp_path: Path, server: OaiServer, database: TestDatabase) -> Iterator[Network]:
    made = Network(tmp_path, server, database=database)
    yield made
    made.harvester.close()


def as_before(network: Network, *sets: str, site: str = "repo") -> None:
    """Let the database be as the version before has left it: the site has these sets, of which it has harvested all."""
    rows = network.harvester.rows
    [(site_id, text)] = rows("SELECT site_schedule_id, options FROM harvest_site_schedule WHERE name = ?", site)
    options = json.loads(text)
    options["oai"].pop("set", None)
    options["oai"]["sets"] = list(sets)
    rows("UPDATE harvest_site_schedule SET options = ? WHERE name = ?", json.dumps(options), site)
    for (kept,) in rows("SELECT checkpoint FROM site_checkpoint WHERE site_schedule_id = ?", site_id):
        checkpoint = json.loads(kept)
        checkpoint["asked"][-1][2] = list(sets)
        rows("UPDATE site_checkpoint SET checkpoint = ? WHERE site_schedule_id = ?", json.dumps(checkpoint), site_id)
    downgrade(network)


def downgrade(network: Network) -> None:
    """Let the tables be as before the first migration that splits sites."""
    config = Config()
    config.set_main_option("script_location", str(data_folder("sql") / "migrations"))
    with network.harvester.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0019")
    rows = network.harvester.rows
    rows("ALTER TABLE harvest_document DROP COLUMN state")
    for name in ("treatment", "rechecks", "moved", "full_wanted", "kind", "windows", "token", "received", "announced"):
        rows(f"ALTER TABLE site_checkpoint DROP COLUMN {name}")
    for table in ("catalogue_set", "catalogue_document", "catalogue_counter"):
        rows(f"DROP TABLE {table}")
    rows("UPDATE alembic_version SET version_num = '0014'")


def upgrade(network: Network) -> None:
    # `init` opens the database that the settings name.
    network.harvester.keeps_engine = False
    said = network.harvester("init")
    assert said.code == 0, said.err
    network.harvester.keeps_engine = True


def night(network: Network, *options: str) -> dict[str, dict[str, Any]]:
    """The next night, of all sites: the status of each, and those of its totals that are not 0."""
    network.night += 1
    sites = network.harvester.run(f"2030-01-{network.night:02}", *options)["sites"]
    for site in sites:
        outcomes = [site[name] for name in TOTALS.split()[1:]]
        assert site["listed"] == sum(outcomes), site
    return {
        site["site_name"]: {"status": site["status"], **{name: site[name] for name in TOTALS.split() if site[name]}}
        for site in sites
    }


def told(network: Network) -> list[tuple[str, int]]:
    """The sites whose log says that they were split, each with how often."""
    sql = (
        "SELECT s.site_name, count(*) FROM harvest_detail_log d JOIN harvest_log l USING (harvest_log_id) "
        "JOIN harvest_site_run s USING (site_run_id) WHERE d.rule = 'oai.split' GROUP BY s.site_name ORDER BY 1"
    )
    return network.harvester.rows(sql)


def sites_of(network: Network) -> dict[str, int]:
    """How many rows the ledger has of each site."""
    sql = (
        "SELECT name, count(*) FROM harvest_document JOIN harvest_site_schedule USING (site_schedule_id) "
        "GROUP BY name ORDER BY name"
    )
    return dict(network.harvester.rows(sql))


def missing_records(network: Network) -> list[str]:
    sql = "SELECT document_id FROM harvest_document WHERE missing_since IS NOT NULL ORDER BY document_id"
    return [row[0].rpartition(":")[2] for row in network.harvester.rows(sql)]


def test_a_site_with_several_sets_becomes_several_sites(network: Network) -> None:
    network.register(
        "--contact", "a@example.org", "--every", "2", "--unit", "weeks", "--notify", "on-change", "--max-loss", "5",
        "--add-to-group", "frogs", "--prefix", "oai_dc", "--from", "2020-01-01",
    )  # fmt: skip
    network.harvester("sites", "add", "repo-b", "--list-url", "https://example.org/l.xml", "--contact", "b@example.org")
    network.harvester("sites", "disable", "repo")
    as_before(network, "a", "b", "c:d", "c:d")
    rows = network.harvester.rows
    columns = (
        "site_schedule_id, documentlisturl, datenextharvest, updatefrequency, unit, contact_email, notify, enabled"
    )
    [before] = rows(f"SELECT {columns} FROM harvest_site_schedule WHERE name = 'repo'")
    upgrade(network)
    after = rows(f"SELECT {columns}, name, options FROM harvest_site_schedule WHERE source_kind = 'oai-pmh' ORDER BY 1")
    assert [row[-2] for row in after] == ["repo", "repo-b-2", "repo-c:d"]
    assert after[0][0] == before[0]
    assert {row[1:-2] for row in after} == {before[1:]}
    options = [json.loads(row[-1]) for row in after]
    assert [each["oai"].pop("set") for each in options] == ["a", "b", "c:d"]
    expected = {"origin": "test", "prefix": "oai_dc", "begin": "2020-01-01", "method": "list-records"}
    assert all(each["oai"] == expected for each in options)
    assert all((each["max_loss"], each["groups"], each["split_from"]) == (5, ["frogs"], "repo") for each in options)
    # Done again, nothing changes.
    downgrade(network)
    upgrade(network)
    assert (
        rows(f"SELECT {columns}, name, options FROM harvest_site_schedule WHERE source_kind = 'oai-pmh' ORDER BY 1")
        == after
    )


@pytest.mark.parametrize("sets", [("a",), ()])
def test_a_site_with_one_set_or_none_goes_on_where_it_was(network: Network, sets: tuple[str, ...]) -> None:
    server = network.server
    network.register(*(part for each in sets for part in ("--set", each)))
    network.harvest()
    as_before(network, *sets)
    before = network.harvester.rows("SELECT checkpoint, listing FROM site_checkpoint")
    upgrade(network)
    assert network.harvester.rows("SELECT checkpoint, listing FROM site_checkpoint") == before
    server.forget()
    server.put("oai:test:3", title="Toads", sets=("a",))
    assert network.harvest() == {"status": "succeeded", "listed": 1, "updated": 1}
    assert all("from" in each.arguments for each in lists(server)[:1])
    assert network.harvest() == {"status": "succeeded"}
    assert told(network) == []
    assert json.loads(network.harvester("sites", "show", "repo", "--json").out)["oai"]["sets"] == list(sets)


def test_the_first_harvests_after_the_split_change_nothing_and_sort_the_documents(network: Network) -> None:
    server = network.server
    network.register()
    network.harvest()
    as_before(network, "a", "b", "c")
    upgrade(network)
    before = network.held()
    assert night(network) == {
        "repo": {"status": "succeeded", "listed": 9, "unchanged": 9},
        "repo-b": {"status": "succeeded", "listed": 4, "unchanged": 4},
        "repo-c": {"status": "succeeded", "listed": 12, "unchanged": 12},
    }
    assert network.held() == before == ALL
    assert told(network) == [("repo", 1), ("repo-b", 1), ("repo-c", 1)]
    assert TOLD in " ".join(network.report().split())
    assert missing_records(network) == []
    server.put("oai:test:12", title="Toads", sets=("b",))
    server.delete("oai:test:20")
    assert night(network) == {
        "repo": {"status": "succeeded"},
        "repo-b": {"status": "succeeded", "listed": 1, "updated": 1},
        "repo-c": {"status": "succeeded", "listed": 1, "deleted": 1},
    }
    assert network.held() == {**{number: 1 for number in ALL if number != "20"}, "12": 2}
    assert told(network) == [("repo", 1), ("repo-b", 1), ("repo-c", 1)]
    assert not any(words in network.report() for words in ("Fixed", "It became", "several"))
    assert missing_records(network) == []
    assert sites_of(network) == {"repo": 9, "repo-b": 4, "repo-c": 12}


def test_what_was_failing_waiting_or_missing_is_so_still(network: Network) -> None:
    server = network.server
    server.records["oai:test:5"].xml = b"<record><header><identifier>oai:test:5</identifier></header></record>"
    network.register()
    network.harvest()
    del server.records["oai:test:2"], server.records["oai:test:11"]
    network.harvest("--full")
    assert missing_records(network) == ["11", "2"]
    for number in range(3, 26):
        if number not in (5, 11):
            server.delete(f"oai:test:{number}")
    network.harvest()
    waiting = "SELECT document_id FROM harvest_document WHERE to_delete = '1' ORDER BY document_id"
    assert len(before := network.harvester.rows(waiting)) == 21
    as_before(network, "a", "b", "c")
    upgrade(network)
    for _ in range(3):
        night(network)
        assert {row[0] for row in network.harvester.rows(waiting)} >= {row[0] for row in before}
        assert network.held() == {number: 1 for number in ALL if number != "5"}
    assert missing_records(network) == ["11", "2"]
    failing = json.loads(network.harvester("documents", "--failing", "--json").out)
    assert ("test/oai_dc/oai:test:5", "repo") in [(each["document_id"], each["site"]) for each in failing]
    said = network.harvester("sites", "confirm", "repo")
    assert said.out == "Confirmed: the next harvest of repo deletes 21 documents.\n"
    for _ in range(2):
        night(network)
        assert network.held() == {"1": 1, "2": 1, "11": 1}
    assert missing_records(network) == ["11", "2"]


def test_a_run_that_was_killed_before_the_upgrade_is_taken_up(network: Network) -> None:
    server = network.server
    network.register()
    network.kill(lambda asked: "!20!" in str(asked.arguments), "2030-01-01")
    as_before(network, "a", "b", "c")
    upgrade(network)
    for _ in range(2):
        found = night(network)
        assert {each["status"] for each in found.values()} == {"succeeded"}
    assert network.held() == ALL
    server.put("oai:test:12", title="Toads", sets=("b",))
    night(network)
    assert network.held() == {**ALL, "12": 2}
    assert sites_of(network) == {"repo": 9, "repo-b": 4, "repo-c": 12}


def test_nothing_is_missing_before_all_sites_have_listed_everything(network: Network) -> None:
    server = network.server
    network.register()
    network.harvest()
    del server.records["oai:test:2"], server.records["oai:test:11"], server.records["oai:test:20"]
    as_before(network, "a", "b", "c")
    upgrade(network)
    server.refuses = lambda asked: "!b!" in str(asked.arguments) or asked.arguments.get("set") == "b"
    for _ in range(2):
        found = night(network)
        assert found["repo-b"]["status"] in ("list-failed", "incomplete")
        assert missing_records(network) == []
    server.refuses = lambda asked: False
    for _ in range(2):
        found = night(network)
    assert missing_records(network) == ["11", "2", "20"]
    assert network.held() == ALL
    assert sites_of(network) == {"repo": 11, "repo-b": 3, "repo-c": 11}


def test_nothing_is_missing_while_records_of_a_site_cannot_be_listed_or_its_row_is_broken(network: Network) -> None:
    server, rows = network.server, network.harvester.rows
    network.register()
    network.harvest()
    as_before(network, "a", "b", "c")
    upgrade(network)
    rows("UPDATE harvest_site_schedule SET unit = 'fortnights' WHERE name = 'repo-b'")
    for _ in range(2):
        night(network)
        assert missing_records(network) == []
    rows("UPDATE harvest_site_schedule SET unit = 'days' WHERE name = 'repo-b'")
    server.tamper = lambda body, asked: body.partition(b"oai:test:11<")[0] if is_list(asked) else body
    for _ in range(2):
        assert night(network)["repo-b"]["status"] == "incomplete"
        assert missing_records(network) == []
    server.tamper = None
    for _ in range(2):
        night(network)
    assert missing_records(network) == []
    assert network.held() == ALL
    assert sites_of(network) == {"repo": 9, "repo-b": 4, "repo-c": 12}


def test_the_settings_of_the_site_hold_for_all_that_it_was_split_into(tmp_path: Path, server: OaiServer) -> None:
    network = Network(tmp_path, server, '\n[sites.repo.target]\nkind = "folder"\nfolder = "archive"\n')
    network.register()
    network.harvest()
    files = sorted(each.name for each in (tmp_path / "archive").rglob("*.xml"))
    assert len(files) == 25
    as_before(network, "a", "b", "c")
    upgrade(network)
    server.put("oai:test:26", sets=("c",))
    assert {name: each["status"] for name, each in night(network).items()} == dict.fromkeys(
        ("repo", "repo-b", "repo-c"), "succeeded"
    )
    assert len([*(tmp_path / "archive").rglob("*.xml")]) == 26
    assert network.harvester.held() == {}
    assert "no site of this name" not in network.harvester("doctor").out
    renamed = '\n[sites.new.target]\nkind = "folder"\nfolder = "archive"\n'
    network.harvester.config.write_text(network.harvester.config.read_text() + renamed)
    said = network.harvester("sites", "edit", "repo", "--name", "new")
    assert said.code == 0, said.err
    network.harvester.config.write_text(network.harvester.config.read_text().replace("[sites.repo", "[sites.gone"))
    server.put("oai:test:27", sets=("b",))
    assert night(network)["repo-b"] == {"status": "succeeded", "listed": 1, "inserted": 1}
    assert len([*(tmp_path / "archive").rglob("*.xml")]) == 27
    network.harvester.close()
