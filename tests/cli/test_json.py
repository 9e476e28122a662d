"""`--json` and `--csv`: what the documentation says of every command's output, also where the command fails."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

from metaharvest.cli import cli
from metaharvest.config.paths import data_folder
from metaharvest.config.settings import load
from metaharvest.database.engine import database_url, open_url, run_lock
from metaharvest.demo.samples import SampleNetwork
from metaharvest.reports.tables import DOCUMENT_COLUMNS, LOG_COLUMNS
from metaharvest.services.tables import CHANGES_COLUMNS as DIFF_COLUMNS
from metaharvest.services.tables import LISTED_COLUMNS
from support import schemas
from support.cli import in_database, tell
from support.databases import KINDS, Servers
from support.harvester import Harvester, settings_for
from support.metacat_tables import DETAIL_LOG, LOG, SCHEDULE, write_csv
from support.oai_server import OaiServer

LIST = data_folder("sample_sites") / "alder-creek" / "harvest-list.xml"

OAI = "https://repository.invalid/oai"
"""In a command: the base URL of a repository."""

CASES: dict[str, list[tuple[str, ...]]] = {
    "check": [("check", str(LIST))],
    "database-copy": [("database", "copy", "--to", "sqlite:///copy.db")],
    "contacts-forget": [("contacts", "forget", "nobody@example.org", "--yes")],
    "diff": [("diff", "1", "2"), ("diff", "1", "2", "--site", "basalt-flats")],
    "doctor": [("doctor",)],
    "documents": [("documents",), ("documents", "--failing"), ("documents", "--rule", "eml.id-duplicate")],
    "documents-show": [("documents", "show", "ren-basalt.17"), ("documents", "show", "ren-alder.1")],
    "filter-test": [("filter", "test", "filters.xml", "list.xml", "eml/discharge.xml")],
    "figures": [("figures", "--from", "2000-01-01"), ("figures", "--per", "site"), ("figures", "--per", "week")],
    "year": [("year", "--from", "2000-01-01"), ("year", "--from", "1999-01-01", "--to", "1999-12-31")],
    "problems": [("problems",), ("problems", "--site", "alder-creek")],
    "keys-list": [("keys", "list")],
    "users-list": [("users", "list")],
    "normalize-test": [("normalize", "test", "normalize.xml", "list.xml", "eml/discharge.xml", "HARVEST_LOG.csv")],
    "list-add": [("list", "add", "new.xml", "eml/discharge.xml", "--base-url", "https://www.example.org/")],
    "list-build": [("list", "build", "eml", "--base-url", "https://www.example.org/", "--dry-run")],
    "list-bump": [("list", "bump", "list.xml", "ren-alder.1")],
    "list-diff": [("list", "diff", "before.xml", "list.xml"), ("list", "diff", "eml/discharge.xml", "list.xml")],
    "list-remove": [("list", "remove", "list.xml", "ren-alder.1")],
    "list-validate": [("list", "validate", "list.xml"), ("list", "validate", "eml/discharge.xml")],
    "log": [("log",), ("log", "--run", "1", "--level", "debug"), ("log", "--document", "ren-alder.1")],
    "oai-formats": [("oai", "formats", OAI)],
    "oai-friends": [("oai", "friends", OAI)],
    "oai-same": [("oai", "same", OAI, "oai:test:2", OAI, "oai:test:2")],
    "oai-get": [("oai", "get", OAI, "oai:test:2")],
    "oai-identify": [("oai", "identify", OAI)],
    "oai-list": [("oai", "list", OAI)],
    "oai-sets": [("oai", "sets", OAI)],
    "oai-validate": [("oai", "validate", OAI), ("oai", "validate", OAI, "--prefix", "nonsense")],
    "reports": [("reports",)],
    "run": [("run", "--site", "alder-creek", "--dry-run"), ("run", "--site", "alder-creek")],
    "runs": [("runs",)],
    "decisions": [("decisions",), ("decisions", "--limit", "1")],
    "registrations-list": [("registrations", "list")],
    "registrations-show": [("registrations", "show", "1")],
    "requests": [("requests",)],
    "runs-now": [("runs", "now")],
    "runs-show": [("runs", "show", "1"), ("runs", "show", "2")],
    "search": [("search", "discharge"), ("search", "--year", "1990..", "--sort", "year")],
    "sites-export": [("sites", "export")],
    "sites-harvest": [("sites", "harvest", "alder-creek"), ("sites", "harvest", "alder-creek", "--failing")],
    "sites-skip": [("sites", "skip", "alder-creek")],
    "sites-import": [("sites", "import", "sites.json"), ("sites", "import", "sites.json", "--dry-run")],
    "sites-import-metacat": [("sites", "import-metacat", "--csv", "schedule.csv", "--log")],
    "sites-list": [("sites", "list")],
    "sites-show": [("sites", "show", "alder-creek"), ("sites", "show", "broken")],
    "target-check": [("target", "check")],
    "target-copy": [("target", "copy", "embedded", "shelf"), ("target", "copy", "embedded", "shelf", "--dry-run")],
    "target-list": [("target", "list")],
    "target-show": [("target", "show", "ren-alder.1")],
    "target-withdraw": [
        ("target", "withdraw", "ren-alder.2", "--reason", "a test"),
        ("target", "withdraw", "ren-alder.2", "--reason", "a test", "--erase", "--yes"),
        ("target", "withdraw", "ren-alder.2", "--undo"),
    ],
    "target-transfer": [("target", "transfer", "--scope", "ren-alder", "--dry-run", "alder-creek")],
    "changes": [("changes",), ("changes", "--name", "portal", "--limit", "2"), ("changes", "--run", "cat > /dev/null")],
    "works-look": [("works", "look")],
    "works-show": [("works", "show", "ren-alder.5")],
    "works-decide": [("works", "decide", "ren-alder.5", "ren-alder.1", "--different")],
    "pipeline": [("pipeline",)],
    "pipeline-run": [("pipeline", "run", "--stage", "cleaning")],
    "pipeline-failures": [("pipeline", "failures"), ("pipeline", "failures", "--stage", "cleaning")],
    # Last: while workers have a run, no other command may begin one.
    "coordinate": [("coordinate",), ("coordinate",)],
    "jobs": [("jobs",), ("jobs", "--state", "done")],
    "jobs-show": [("jobs", "show", "1")],
    "workers": [("workers",)],
}
"""By schema: commands whose output is to be as it says."""

DEPENDS_ON_THE_OBJECT = {"status", "level", "message", "kind", "state", "change", "sites", "documents", "old", "new"}
"""Names that stand for something else in each object that has them; docs/json.md says so."""

IN_TABLES = {
    "log_message": "message",
    "operation_level": "level",
    "logged_at_utc": "logged_at",
    "site_run": "site_run_id",
}
"""Names of columns -> what the same is called in JSON, as docs/json.md says."""


def harvested_twice(folder: Path, database: str) -> None:
    """Two sample sites harvested on two nights, a transferred document, a broken site."""
    shelf = '[targets.shelf]\nkind = "folder"\nfolder = "shelf"\n'
    # Nobody listens there: workers find jobs without messages.
    broker = '[workers]\nbroker = "amqp://guest@127.0.0.1:9/"\n'
    (folder / "metaharvest.toml").write_text(settings_for(database) + shelf + broker)
    shutil.copytree(LIST.parent, folder / "eml")
    (folder / "filters.xml").write_text('<filters match="any"><filter xpath="//dataset"/></filters>')
    mapping = '<mapping xpath="//dataset/title"><newElement name="title"><newValue>x</newValue></newElement></mapping>'
    (folder / "normalize.xml").write_text(f"<normalize>{mapping}</normalize>")
    for name in ("list.xml", "before.xml"):
        shutil.copy(LIST, folder / name)
    schedule = [(3, "http://alder.example.org/list.xml", None, None, None, 1, "Days", "a@example.org", None)]
    log = [(1, "2026-11-20", 1, "No", "harvester.GetDocError", 3), (2, "2026-11-20", 0, "?", "harvester.No", None)]
    write_csv(folder / "schedule.csv", SCHEDULE, [*schedule, (4, "ftp://x", *[None] * 7)])
    write_csv(folder / "HARVEST_LOG.csv", LOG, log)
    write_csv(
        folder / "HARVEST_DETAIL_LOG.csv", DETAIL_LOG, [(1, 1, "knb", 1, 1, "http://a.example.org", "No.", "eml")]
    )
    tell(folder, "init")
    with SampleNetwork() as network:
        for name in ("alder-creek", "basalt-flats"):
            options = ["--contact", f"{name}@example.org", "--allow-network", "127.0.0.0/8"]
            tell(folder, "sites", "add", name, "--list-url", network.list_url(name), *options)
        tell(folder, "run")
        network.night = 3
        tell(folder, "target", "transfer", "ren-alder.1", "basalt-flats")
        tell(folder, "run", "--force")
    tell(folder, "pipeline", "run")
    tell(folder, "sites", "add", "broken", "--list-url", "https://b.example.org/l.xml", "--contact", "b@example.org")
    in_database(folder, "UPDATE harvest_site_schedule SET unit = 'fortnights' WHERE name = 'broken'")
    in_database(
        folder,
        "INSERT INTO site_registration (kind, state, name, source_kind, url, address, mailbox, frequency, unit, host, "
        "asked_at) VALUES ('site', 'waiting-for-proofs', 'frogs', 'harvest-list', 'https://f.example.org/l.xml', "
        "'f@example.org', 'f@example.org', 1, 'days', 'f.example.org', '2026-11-20 03:00:00')",
    )
    in_database(
        folder,
        "INSERT INTO worker (name, host, pid, version, began_at, seen_at, job_id) "
        "VALUES ('fir-1', 'fir', 12, '1.0', '2026-11-20 03:00:00', '2026-11-20 03:00:00', 1)",
    )
    in_database(
        folder,
        "INSERT INTO job_event (job_id, fence, step, worker, at) "
        "VALUES (1, 1, 'started', 'fir-1', '2026-11-20 03:00:00')",
    )
    tell(folder, "sites", "export", "-o", str(folder / "sites.json"))


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


WITH_JSON = ["-".join(path) for path, command in commands(cli) if any("--json" in each.opts for each in command.params)]


# -- the schemas


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_command_prints_is_as_its_schema_says_and_nothing_more(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with servers.another(kind) as database, OaiServer(3) as repository:
        harvested_twice(tmp_path, database)
        repository.friends.append("https://friend.example.org/oai")
        repository.sets["frogs"] = "Frogs"
        repository.delete("oai:test:1")
        repository.put("oai:test:4", metadata="")
        for name, cases in CASES.items():
            for arguments in cases:
                asked = [repository.base_url if each == OAI else each for each in arguments]
                if OAI in arguments:
                    asked += ["--allow-network", "127.0.0.0/8"]
                assert schemas.problems(name, tell(tmp_path, *asked, "--json").json) == [], arguments


def test_every_command_with_json_has_a_schema_and_is_tried() -> None:
    assert sorted(WITH_JSON) == sorted(CASES)
    assert set(CASES) <= {name for name, _ in schemas.published()}


def test_the_schemas_are_schemas() -> None:
    for name, schema in schemas.published():
        Draft202012Validator.check_schema(schema)
        assert schema["$id"] == f"{name}.json"


def test_no_schema_has_a_key_twice() -> None:
    def keys_of(pairs: list[tuple[str, Any]]) -> list[str]:
        names = [name for name, _ in pairs]
        assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
        return names

    for file in sorted(schemas.FOLDER.glob("*.json")):
        json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=keys_of)


def properties(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every property that a schema names, at any depth, with what it says of it."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        for part in schema.values():
            yield from properties(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from properties(part)


def test_a_name_stands_for_one_thing_in_all_commands() -> None:
    for file, schema in schemas.published():
        for name, said in properties(schema):
            of_its_own = name in DEPENDS_ON_THE_OBJECT or said.get("type") in ("array", "object") or "anyOf" in said
            of_an_object = "$ref" in said and not said["$ref"].startswith("names.json")
            if (file, name) == ("sites-import-metacat", "site_schedule_id"):
                continue  # That of Metacat's table.
            assert of_its_own or of_an_object or said == {"$ref": f"names.json#/$defs/{name}"}, (file, name)


@pytest.mark.parametrize("columns", [DIFF_COLUMNS, DOCUMENT_COLUMNS, LISTED_COLUMNS, LOG_COLUMNS])
def test_columns_of_tables_have_the_names_of_json(columns: tuple[str, ...]) -> None:
    names = dict(schemas.published())["names"]["$defs"]
    meant = [IN_TABLES.get(column, column) for column in columns]
    assert [name for name in meant if name not in names and name not in DEPENDS_ON_THE_OBJECT] == []
    assert not any(names.get(name, {}).get("deprecated") for name in meant)


def test_a_schema_finds_what_is_wrong() -> None:
    good = {"error": {"kind": "usage", "message": "x", "exit_code": 2}}
    assert schemas.problems("error", good) == []
    for wrong in (
        {"error": {**good["error"], "exit_code": "2"}},
        {"error": {**good["error"], "hint": "y"}},
        {"error": {"kind": "usage", "message": "x"}},
        {**good, "more": 1},
    ):
        assert schemas.problems("error", wrong) != []
    row = {"run_id": 1, "harvest_date": "2026-11-20", "status": "succeeded"}
    for wrong_date in ("20 November", "2026-13-01"):
        found = {"before": row, "after": {**row, "harvest_date": wrong_date}, "totals": {}, "sites": []}
        assert any("harvest_date" in problem for problem in schemas.problems("diff", found))


# -- where a command fails


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Harvester]:
    made = Harvester(tmp_path)
    made.keeps_engine = False
    yield made
    made.close()


@pytest.mark.parametrize(
    "name", [name for name in CASES if name != "doctor" and not name.startswith(("list-", "filter-", "normalize-"))]
)
def test_a_command_that_fails_prints_an_object_with_the_sentence_and_the_exit_code(
    installed: Harvester, name: str
) -> None:
    installed.config.write_text("[harvester]\nworkers = 'many'\n[nonsense]\n")
    arguments = CASES[name][0]
    plain, said = installed(*arguments), installed(*arguments, "--json")
    assert plain.out == ""
    assert (said.code, said.err) == (plain.code, plain.err) == (2, said.err)
    told = json.loads(said.out)
    assert schemas.problems("error", told) == []
    assert told["error"] == {"kind": "settings", "message": said.err.rstrip("\n"), "exit_code": 2}


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (("runs", "show", "one"), "usage", 2),
        (("runs", "--nonsense"), "usage", 2),
        (("list", "validate", "not-there.xml"), "usage", 2),
        (("no-such-command",), "usage", 2),
        (("runs", "show", "99"), "request", 2),
        (("documents", "show", "a.1"), "request", 2),
        (("log", "--rule", "eml.id-duplicat"), "request", 2),
        (("diff", "2", "1"), "request", 2),
        (("sites", "show", "nobody"), "schedule", 2),
        (("target", "show", "a.1"), "request", 2),
        (("target", "transfer", "--from-file", "not-there.txt", "alder"), "usage", 2),
    ],
)
def test_a_failure_says_of_which_kind_it_is(
    installed: Harvester, arguments: tuple[str, ...], kind: str, code: int
) -> None:
    said = installed(*arguments, "--json")
    told = json.loads(said.out)
    assert schemas.problems("error", told) == []
    assert (told["error"]["kind"], told["error"]["exit_code"], said.code) == (kind, code, code)
    assert told["error"]["message"] in said.err


def test_a_refused_request_is_no_error_of_usage_if_the_command_line_is_right(installed: Harvester) -> None:
    installed("users", "add", "op@example.org", "--role", "operator")
    said = installed("contacts", "forget", "op@example.org", "--yes", "--json")
    error = json.loads(said.out)["error"]
    assert (error["kind"], said.code, said.err) == ("request", 2, f"{error['message']}\n")
    said = installed("contacts", "forget", "op", "--yes", "--json")
    assert json.loads(said.out)["error"]["kind"] == "usage"
    assert "Usage: " in said.err


def test_a_lock_and_a_database_that_is_away_are_told_apart(installed: Harvester) -> None:
    engine = open_url(database_url(load(installed.config)))
    with run_lock(engine):
        said = installed("run", "--json")
    engine.dispose()
    assert (said.code, json.loads(said.out)["error"]["kind"]) == (75, "locked")
    (installed.folder / "metaharvest.db").unlink()
    said = installed("sites", "list", "--json")
    assert (said.code, json.loads(said.out)["error"]["kind"]) == (69, "database")


def test_short_lists_need_no_temporary_file(installed: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", None)
    for arguments in (("problems",), ("figures",), ("figures", "--per", "site")):
        said = installed(*arguments, "--json")
        assert (said.code, type(json.loads(said.out))) == (0, list), said.err


def test_a_list_is_printed_whole_or_not_at_all(installed: Harvester) -> None:
    installed.add_site("alder", "https://alder.example.org/list.xml")
    values = "(1, 'a.' || value, 1, 'u', 't', 'invalid', CASE value WHEN 1500 THEN 'soon' ELSE '2026-11-20' END)"
    columns = "site_schedule_id, document_id, revision, document_url, document_type, outcome, failing_since"
    numbers = "WITH RECURSIVE n(value) AS (SELECT 1000 UNION ALL SELECT value + 1 FROM n WHERE value < 1999)"
    installed.rows(f"{numbers} INSERT INTO harvest_document ({columns}) SELECT {values[1:-1]} FROM n")
    assert len(json.loads(installed("documents", "--json", "--limit", "500").out)) == 500
    said = installed("documents", "--json")
    assert (said.code, json.loads(said.out)["error"]["kind"]) == (1, "unexpected")
