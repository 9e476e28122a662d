"""`metaharvest database copy`: everything, into another database of whatever kind, also after it was killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, make_url, select, text

from metaharvest.database.all_tables import Base
from metaharvest.database.engine import open_url, run_lock, upgrade
from metaharvest.database.pipeline_models import PIPELINE_TABLES
from support.databases import KINDS, Servers
from support.harvester import PASSWORD, Harvester, eml, publish, rows_of
from support.http_server import HttpServer
from support.made_once import made_once

TITLE = "Zoë's 猫 catalogue, \U0001f40b, 100 %"

MAY_BE_EMPTY = {
    "api_call", "api_key", "catalogue_former_format", "catalogue_withheld", "console_link", "console_session",
    "console_user", "daemon_state", "harvest_request", "host_lease", "job", "job_event", "site_progress",
    "site_registration", "worker", *PIPELINE_TABLES,
}  # fmt: skip
"""Tables that have rows only while a run is under way, or where people use the console, the API or the pipeline."""


def contents(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, as this program reads it."""
    with engine.connect() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
            for table in Base.metadata.sorted_tables
        }


def tables_of(engine: Engine) -> set[str]:
    from sqlalchemy import inspect

    return set(inspect(engine).get_table_names())


def harvested(folder: Path, server: HttpServer) -> Harvester:
    """An installation whose tables all have rows, and whose highest site was removed again."""
    made = Harvester(folder)
    server.serve("/a.1.1.xml", eml("a.1.1", TITLE))
    server.serve("/big.xml", eml("b.1.1", "x" * 3_000_000))
    url = publish(
        server, "a.2.1", path="/a.xml", also=[("a.1.1", server.url("/a.1.1.xml")), ("a.9.1", server.url("/no"))]
    )
    made.add_site("álder", url, ldapdn="uid=x,o=y", options='{"package_id_mismatch": "error"}')
    made.add_site("birch", publish(server, path="/b.xml", also=[("b.1.1", server.url("/big.xml"))]))
    made.run("2026-11-20")
    assert made("target", "transfer", "a.1", "birch").code == 0
    made.rows("INSERT INTO document_owner VALUES ('z.1', 1)")
    made.rows("INSERT INTO site_checkpoint (site_schedule_id, checkpoint) VALUES (1, '{}')")
    made.rows(
        "INSERT INTO document_origin VALUES (1, 'a.1', 1, 'https://a.example.org/oai', 'oai:a:1', 'oai_dc', "
        "'2026-11-20', '2026-11-20T00:00:00Z', 'http://a.example.org/ns', '0', FALSE, '[]', '[]', NULL)"
    )
    made.rows("INSERT INTO catalogue_set VALUES (1, 1, 'rivers:alder')")
    made.rows("INSERT INTO document_tombstone VALUES ('z.2', 1, 1, '2026-11-20', '2026-11-20 00:00:00.000000')")
    made.rows(
        "INSERT INTO document_withdrawal VALUES ('z.3', 'asked for', 'a', '2026-11-20', '2026-11-20 00:00:00.000000', "
        "'steward', FALSE)"
    )
    made.rows("INSERT INTO folder_marker VALUES ('0', '/srv/documents', '1')")
    made.rows("UPDATE harvest_operation SET explanation = 'Another one' WHERE harvest_operation_code = 'LogPurged'")
    assert made("users", "add", "anna@example.org", "--role", "steward").code == 0
    assert made("keys", "add", "portal", "--role", "viewer").code == 0
    made.rows(
        "INSERT INTO console_session VALUES (1, '0', 'anna@example.org', '2026-11-20 00:00:00.000000', "
        "'2026-11-20 00:00:00.000000', '2026-11-27 00:00:00.000000', 'A browser')"
    )
    made.rows(
        "INSERT INTO site_registration (kind, state, name, source_kind, url, address, mailbox, frequency, unit, host, "
        "asked_at) VALUES ('site', 'asked', 'elm', 'harvest-list', 'https://elm.example.org/list.xml', 'a@e.org', "
        "'a@e.org', 1, 'days', 'elm.example.org', '2026-11-20 00:00:00.000000')"
    )
    made.add_site("cedar", "https://cedar.example.org/list.xml")
    assert made("sites", "remove", "cedar", "--yes").code == 0
    made.rows("INSERT INTO catalogue_withheld VALUES (1, FALSE)")
    for document_type in ("eml://ecoinformatics.org/eml-2.1.1", "oai_dc"):
        sql = "INSERT INTO catalogue_former_format VALUES (1, ?, '2026-11-20 00:00:00.000000')"
        made.rows(sql, document_type)
    return made


class Target:
    """A database that is to receive the copy: its kind, and how the command names it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.engine = open_url(make_url(url or f"sqlite:///{folder / 'copy.db'}"))
        parts = make_url(url) if url else None
        self.options = ["--to", "sqlite:///copy.db"]
        if parts is not None:
            self.options = ["--to", parts._replace(password=None).render_as_string()]
            if parts.password is not None:
                os.environ[PASSWORD] = str(parts.password)
                self.options += ["--password", f"env:{PASSWORD}"]


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Target]:
    with servers.another(request.param) as url:
        made = Target(url, tmp_path)
        yield made
        made.engine.dispose()


@pytest.fixture(scope="module")
def harvested_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `harvested` fills; its sites no longer answer."""

    def make(folder: Path) -> None:
        with HttpServer() as server:
            harvested(folder, server).close()

    return made_once(tmp_path_factory, "harvested-to-copy", make)


@pytest.fixture
def source(tmp_path: Path, harvested_folder: Path) -> Iterator[Harvester]:
    shutil.copytree(harvested_folder, tmp_path, dirs_exist_ok=True)
    made = Harvester(tmp_path)
    yield made
    made.close()


@pytest.fixture
def served_source(tmp_path: Path, server: HttpServer) -> Iterator[Harvester]:
    """A source whose sites can be harvested again."""
    made = harvested(tmp_path, server)
    yield made
    made.close()


def test_everything_goes_over_and_back_again(served_source: Harvester, target: Target) -> None:
    source = served_source
    said = source("database", "copy", *target.options, "--json")
    assert said.code == 0, said.err
    before, copied = contents(source.engine), contents(target.engine)
    assert copied == before
    assert {name for name, rows in before.items() if not rows} <= MAY_BE_EMPTY
    told = {row["table"]: (row["rows"], row["copied"]) for row in json.loads(said.out)["tables"]}
    assert told == {name: (len(rows), len(rows)) for name, rows in before.items()}
    assert "metaharvest_copy" not in tables_of(target.engine)

    # The copy is one to work with: numbers go on where the old database had come to.
    url = target.engine.url.render_as_string(hide_password=False)
    settings = source.config.read_text() + f'[database]\nurl = "{make_url(url)._replace(password=None)}"\n'
    password = f'password = "env:{PASSWORD}"\n' if "--password" in target.options else ""
    (source.folder / "moved.toml").write_text(settings + password)
    moved = Harvester.__new__(Harvester)
    moved.folder, moved.config, moved.limits, moved.keeps_engine = (
        source.folder,
        source.folder / "moved.toml",
        None,
        False,
    )
    moved.engine = target.engine
    assert (
        moved("sites", "add", "dove", "--list-url", "https://d.example.org/l.xml", "--contact", "d@example.org").code
        == 0
    )
    assert rows_of(target.engine, "SELECT site_schedule_id FROM harvest_site_schedule WHERE name = 'dove'") == [(4,)]
    run = moved.run("2026-11-21", "--site", "álder")
    assert run["run_id"] == 2
    assert [site["unchanged"] for site in run["sites"]] == [1]
    said = moved("database", "copy", "--to", "sqlite:///back.db")
    assert said.code == 0, said.err
    back = open_url(make_url(f"sqlite:///{source.folder / 'back.db'}"))
    assert contents(back) == contents(target.engine)
    assert rows_of(back, "SELECT seq FROM sqlite_sequence WHERE name = 'harvest_site_schedule'") == [(4,)]
    back.dispose()


def padded(source: Harvester, number: int) -> None:
    """Many rows of log, so that copying takes a while."""
    columns = "harvest_date, logged_at, status, message, harvest_operation_code, run_id"
    numbers = f"WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < {number})"
    values = "'2026-11-20', '2026-11-20 03:00:00.000001', 0, 'row ' || v || hex(zeroblob(200)), 'GetDocSuccess', 1"
    source.rows(f"{numbers} INSERT INTO harvest_log ({columns}) SELECT {values} FROM n")


def logged(engine: Engine) -> int:
    if "harvest_log" not in tables_of(engine):
        return 0
    return int(rows_of(engine, "SELECT count(*) FROM harvest_log")[0][0])


KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from metaharvest.cli import main

commits = []

@event.listens_for(Engine, "before_cursor_execute")
def kill(connection, cursor, statement, *rest):
    rows_of_log = "harvest_log" in statement and not statement.startswith("SELECT")
    if rows_of_log and len(commits) > 1:
        os.kill(os.getpid(), signal.SIGKILL)
    connection.info["rows of log"] = rows_of_log

@event.listens_for(Engine, "commit")
def count(connection):
    if connection.info.get("rows of log"):
        commits.append(connection)

main(sys.argv[1:])
"""
"""A program that is killed when it has copied two pages of the log."""


def killed_copy(source: Harvester, target: Target) -> int:
    """How many rows of the log were copied before the kill."""
    command = [sys.executable, "-c", KILLED, "--config", str(source.config), "database", "copy", *target.options]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    return logged(target.engine)


def test_a_copy_that_is_killed_goes_on_where_it_stopped(source: Harvester, target: Target) -> None:
    padded(source, 5_000)
    there = killed_copy(source, target)
    assert 0 < there < 5_000
    assert "metaharvest_copy" in tables_of(target.engine)
    # People may change the schedule meanwhile; nothing else is to be copied anew for it.
    assert source("sites", "edit", "birch", "--next", "2050-01-01").code == 0
    said = source("database", "copy", *target.options, "--json")
    assert said.code == 0, said.err
    [log] = [row for row in json.loads(said.out)["tables"] if row["table"] == "harvest_log"]
    assert log["copied_before"] == there
    assert contents(target.engine) == contents(source.engine)


@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
def test_a_copy_that_was_begun_of_something_else_by_now_begins_anew(source: Harvester, target: Target) -> None:
    with ExitStack() as stack:
        lock = stack.enter_context(run_lock(source.engine))
        assert lock.still_held()
        assert source("database", "copy", *target.options).code == 75
    padded(source, 5_000)
    assert 0 < killed_copy(source, target) < 5_000
    source.rows("DELETE FROM harvest_detail_log")
    source.rows("DELETE FROM harvest_log WHERE harvest_log_id <= 100")
    said = source("database", "copy", *target.options, "--json")
    assert {row["copied_before"] for row in json.loads(said.out)["tables"]} == {0}
    assert contents(target.engine) == contents(source.engine)


@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE harvest_run SET harvest_date = '2026-11-19'",
        "UPDATE harvest_run SET started_at = '2026-11-19 00:00:00.000000'",
        "UPDATE document_withdrawal SET erased = TRUE",
    ],
)
def test_a_change_of_a_date_or_a_mark_after_a_kill_is_copied(source: Harvester, target: Target, change: str) -> None:
    padded(source, 5_000)
    assert 0 < killed_copy(source, target) < 5_000
    source.rows(change)
    assert source("database", "copy", *target.options).code == 0
    assert contents(target.engine) == contents(source.engine)


def test_a_database_with_something_in_it_is_refused(source: Harvester, target: Target) -> None:
    url = target.engine.url
    with target.engine.begin() as connection:
        connection.execute(text("CREATE TABLE staff (name VARCHAR(20))"))
    said = source("database", "copy", *target.options)
    assert (said.code, "has tables of something else: staff" in said.err) == (2, True)
    assert tables_of(target.engine) == {"staff"}
    with target.engine.begin() as connection:
        connection.execute(text("DROP TABLE staff"))
    # What `init` has made is as good as empty; what is in use is not.
    upgrade(target.engine)
    rows_of(target.engine, "INSERT INTO document_owner VALUES ('theirs.1', 1)")
    said = source("database", "copy", *target.options)
    assert (said.code, "is in use: its table document_owner has rows" in said.err) == (2, True)
    assert rows_of(target.engine, "SELECT document_id FROM document_owner") == [("theirs.1",)]
    rows_of(target.engine, "DELETE FROM document_owner")
    assert source("database", "copy", *target.options).code == 0, url


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--to", "sqlite:///metaharvest.db"), "is the database itself"),
        (("--to", "postgresql+psycopg://u:secret-word@h/x"), "a password is never written here"),
        (("--to", "nonsense"), "--to = 'nonsense' is not a database URL"),
        (("--to", "postgresql+psycopg://h:5432x"), "--to = 'postgresql+psycopg://h:5432x' is not a database URL"),
        (("--to", "sqlite:///x.db", "--password", "secret-word"), "--password: a secret is never written here"),
        (("--to", "postgresql+psycopg://u@127.0.0.1:1/x"), "cannot be used"),
        (("--to", "oracle://u@h/x"), "--to = 'oracle://h/x': this is not a kind of database"),
    ],
)
def test_what_cannot_be_copied_to_is_told(source: Harvester, options: tuple[str, ...], sentence: str) -> None:
    said = source("database", "copy", *options)
    assert said.code in (1, 2, 69)
    assert sentence in said.err
    assert "secret-word" not in said.err
    assert "Traceback" not in said.err


def test_a_row_that_the_new_database_does_not_take_is_named(source: Harvester, target: Target) -> None:
    source.rows("UPDATE harvest_site_schedule SET datenextharvest = 'soon' WHERE name = 'birch'")
    said = source("database", "copy", *target.options)
    assert said.code == 2
    assert "A row of harvest_site_schedule has a value that" in said.err
    assert "`metaharvest sites list` shows it" in said.err
    assert source("sites", "edit", "birch", "--next", "2050-01-01").code == 0
    assert source("database", "copy", *target.options).code == 0
    assert contents(target.engine) == contents(source.engine)
