"""Migrations, models and the DDL for people say the same on every database; the run lock goes with the process."""

import gc
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from threading import Barrier

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, delete, event, insert, inspect, make_url, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from metaharvest.config.paths import data_folder
from metaharvest.config.settings import DatabaseSettings, Settings
from metaharvest.database import ddl, dialects
from metaharvest.database.all_tables import Base
from metaharvest.database.engine import (
    SCHEMA_VERSION,
    database_errors,
    open_database,
    open_url,
    readers,
    require_current,
    run_lock,
    upgrade,
    writers,
)
from metaharvest.database.locks import server_wide_name
from metaharvest.database.models import DocumentRevision, HarvestRun, HarvestSiteSchedule
from metaharvest.database.operations import OPERATIONS
from metaharvest.database.rows import insert_numbered, insert_rows
from metaharvest.errors import DatabaseUnavailable, LockHeld, MetaharvestError, SchemaMismatch, SettingsError
from support.databases import KINDS, Servers, TestDatabase
from support.harvester import SETTINGS, Harvester, eml, publish, rows_of, settings_for
from support.http_server import Asking, HttpServer

SITE = {"documentlisturl": "https://example.org/list.xml"}


@pytest.fixture
def bare(database: TestDatabase, servers: Servers, tmp_path: Path) -> Iterator[Engine]:
    """A database without any table."""
    if database.kind == "sqlite":
        engine = open_url(make_url(f"sqlite:///{tmp_path / 'bare.db'}"))
        yield engine
        engine.dispose()
        return
    with servers.bare(database.kind) as engine:
        yield engine


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(data_folder("sql") / "migrations"))
    return config


def named(engine: Engine, name: str) -> int:
    with writers(engine).begin() as session:
        row = HarvestSiteSchedule(name=name, **SITE)
        session.add(row)
        session.flush()
        return row.site_schedule_id


# -- tables


def test_the_migrations_make_the_tables_of_the_models(harvester: Harvester) -> None:
    with harvester.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_the_newest_migration_is_the_one_the_program_asks_for() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == SCHEMA_VERSION


def test_a_database_of_the_first_version_is_upgraded_with_what_it_holds(bare: Engine) -> None:
    config = alembic_config()
    with bare.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(text("INSERT INTO harvest_site_schedule (name, documentlisturl) VALUES ('alder', 'x')"))
    with pytest.raises(SchemaMismatch, match="older than this program"):
        require_current(bare)
    upgrade(bare)
    require_current(bare)
    assert rows_of(bare, "SELECT name FROM harvest_site_schedule") == [("alder",)]
    with bare.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


class Killed(BaseException):
    """The program ends at this very moment."""


def upgrade_for_so_many_changes(engine: Engine, number: int, made: set[str]) -> bool:
    """Begin to create the tables, and break off after so many changes that are not among those `made` before.

    False if there were not so many.
    """
    left = [number]

    def count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().startswith(("CREATE", "ALTER", "DROP")) and statement not in made:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            made.add(statement)

    event.listen(engine, "before_cursor_execute", count)
    try:
        upgrade(engine)
    except Killed:
        return True
    finally:
        event.remove(engine, "before_cursor_execute", count)
        engine.dispose()
    return False


def test_tables_whose_making_was_broken_off_are_completed(bare: Engine, database: TestDatabase) -> None:
    # MariaDB keeps each change, so that every one of them is a place to go on from; the others keep none.
    step = 1 if database.kind == "mariadb" else 10
    made: set[str] = set()
    while upgrade_for_so_many_changes(bare, step, made):
        pass
    assert len(made) > 40
    require_current(bare)
    with bare.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_the_ddl_for_people_is_rendered_from_the_models_and_runs(bare: Engine) -> None:
    kind = {"mysql": "mariadb"}.get(bare.dialect.name, bare.dialect.name)
    written = (data_folder("sql") / "ddl" / f"{kind}.sql").read_text(encoding="utf-8")
    assert written == ddl.ddl(kind)
    with bare.begin() as connection:
        for statement in written.split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    assert rows_of(bare, "SELECT count(*) FROM harvest_operation") == [(len(OPERATIONS),)]


def test_table_and_column_names_are_lower_case_and_unquoted_sql_works(harvester: Harvester) -> None:
    names = inspect(harvester.engine).get_table_names()
    assert all(name == name.lower() for name in names)
    # MariaDB on Linux takes names of tables by their case, whatever they are called.
    by_case = harvester.engine.dialect.name in ("mysql", "mariadb")
    table = "harvest_site_schedule" if by_case else "HARVEST_SITE_SCHEDULE"
    harvester.rows(
        f"INSERT INTO {table} (NAME, DOCUMENTLISTURL, CONTACT_EMAIL, UNIT, OPTIONS, NOTIFY) "
        "VALUES ('by-hand', 'https://example.org/list.xml', 'a@example.org', 'weeks', NULL, 'never')"
    )
    columns = "STATUS, OUTCOME, SIZE, LEVEL, RULE, SCOPE, IDENTIFIER, EXCERPT, LINE_NUMBER"
    assert harvester.rows(f"SELECT {columns} FROM harvest_log JOIN harvest_detail_log USING (harvest_log_id)") == []
    assert '"by-hand"' in harvester("sites", "list", "--json").out


def test_upgrading_twice_changes_nothing(harvester: Harvester) -> None:
    before = harvester.rows("SELECT * FROM harvest_operation ORDER BY harvest_operation_code")
    upgrade(harvester.engine)
    assert harvester.rows("SELECT * FROM harvest_operation ORDER BY harvest_operation_code") == before
    assert {code for code, _, _ in before} == set(OPERATIONS)


def test_two_programs_that_create_the_tables_at_once_both_find_them(bare: Engine) -> None:
    failures: list[MetaharvestError] = []

    def create() -> None:
        engine = open_url(bare.url)
        try:
            upgrade(engine)
        except MetaharvestError as error:
            failures.append(error)
        engine.dispose()

    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    require_current(bare)


# -- what is stored


def test_names_that_differ_in_case_or_accent_are_different_sites(harvester: Harvester) -> None:
    assert len({named(harvester.engine, name) for name in ("alder", "Alder", "älder")}) == 3
    with pytest.raises(IntegrityError):
        named(harvester.engine, "alder")
    assert harvester.rows("SELECT name FROM harvest_site_schedule WHERE name = ?", "Alder") == [("Alder",)]


def test_numbers_are_never_used_again(harvester: Harvester) -> None:
    first = named(harvester.engine, "alder")
    harvester.rows("DELETE FROM harvest_site_schedule")
    assert named(harvester.engine, "alder") > first


def test_text_holds_every_character_and_bytes_stay_as_they_are(harvester: Harvester) -> None:
    content = bytes(range(256)) * 1000
    address = "https://example.org/\N{GRINNING FACE}/ꙮ?a=%s&b=:x"
    with writers(harvester.engine).begin() as session:
        session.execute(insert(DocumentRevision), [revision("A.1", 1, content, address), revision("a.1", 1, b"", "x")])
    with readers(harvester.engine)() as session:
        row = session.scalars(select(DocumentRevision).where(DocumentRevision.document_id == "A.1")).one()
        assert (row.content, row.source_url, row.inserted_at.microsecond) == (content, address, 123456)
        assert row.inserted_at.tzinfo is not None


def test_document_ids_sort_byte_by_byte(harvester: Harvester) -> None:
    ids = ["B.1", "a-b.1", "a.10", "a.9", "a_b.1", "b.1", "~.1", "!.1"]
    with writers(harvester.engine).begin() as session:
        session.execute(insert(DocumentRevision), [revision(each, 1, b"", "x") for each in ids])
    found = harvester.rows("SELECT document_id FROM document_revision ORDER BY document_id")
    assert [name for (name,) in found] == sorted(ids)


def test_a_look_up_with_a_name_that_no_document_can_have_finds_nothing(harvester: Harvester) -> None:
    harvester.add_site("alder", "https://example.org/list.xml")
    harvester.run("2026-11-20")
    said = harvester("log", "--document", "vögel.1")
    assert (said.code, said.err) == (0, "")
    assert harvester("target", "show", "vögel.1").code != 0


def test_nothing_is_cut_off_in_silence_on_a_server(harvester: Harvester) -> None:
    if harvester.engine.dialect.name == "sqlite":
        pytest.skip("SQLite does not limit the length of text")
    with pytest.raises(DBAPIError):
        named(harvester.engine, "x" * 101)


def test_rows_by_the_hundred_are_stored_as_one_alone_is(harvester: Harvester) -> None:
    at = datetime(2026, 11, 20, 3, tzinfo=timezone(timedelta(hours=-7)))
    documents = [revision(f"ä.{number}", number, bytes([0, 255, number]), "ü") for number in range(3)]
    entry = {"site_schedule_id": 1, "document_id": "a.1", "document_url": "u", "document_type": "t", "attempts": 1}
    entries = [{**entry, "revision": n, "next_attempt": day} for n, day in enumerate((None, date(2026, 11, 21), None))]
    tables = Base.metadata.tables
    for table, rows in ((tables["document_revision"], documents), (tables["harvest_document"], entries)):
        stored = []
        for by_the_hundred in (False, True):
            same = {"inserted_at": at} if rows is documents else {"failing_since": date(2026, 11, 20)}
            with writers(harvester.engine).begin() as session:
                session.execute(delete(table))
                if by_the_hundred:
                    insert_rows(session.connection(), table, rows, same)
                else:
                    for row in rows:
                        session.execute(insert(table), {**row, **same})
            columns = ", ".join(column.name for column in table.columns if not column.primary_key)
            stored.append(harvester.rows(f"SELECT {columns} FROM {table.name} ORDER BY revision"))
        assert len(stored[0]) == 3
        assert stored[0] == stored[1]


def test_two_writers_at_the_same_time_get_numbers_of_their_own(harvester: Harvester) -> None:
    table, at = Base.metadata.tables["report_outbox"], datetime(2026, 11, 20, tzinfo=UTC)
    run_id, groups, names = new_run(harvester.engine), 8, ("a", "b")
    begin = Barrier(len(names))

    def write(name: str) -> list[tuple[int, str]]:
        written: list[tuple[int, str]] = []
        begin.wait()
        for group in range(groups):
            rows = [outbox_row(f"{name} {group} {number}", run_id, b"x" * 20_000 * number) for number in range(15)]
            with writers(harvester.engine).begin() as session:
                numbers = insert_numbered(session.connection(), table, rows, {"created_at": at})
                written += [(number, str(row["idempotency_key"])) for number, row in zip(numbers, rows, strict=True)]
        return written

    with ThreadPoolExecutor(len(names)) as pool:
        written = [pair for pairs in pool.map(write, names) for pair in pairs]
    stored = harvester.rows("SELECT report_id, idempotency_key FROM report_outbox ORDER BY report_id")
    assert len(stored) == len(names) * groups * 15
    assert stored == sorted(written)


def test_a_number_of_a_deleted_row_is_not_given_again(harvester: Harvester) -> None:
    table, run_id = Base.metadata.tables["report_outbox"], new_run(harvester.engine)
    same = {"created_at": datetime(2026, 11, 20, tzinfo=UTC)}
    with writers(harvester.engine).begin() as session:
        first = insert_numbered(session.connection(), table, [outbox_row(each, run_id) for each in "abc"], same)
    harvester.rows("DELETE FROM report_outbox")
    with writers(harvester.engine).begin() as session:
        later = insert_numbered(session.connection(), table, [outbox_row(each, run_id) for each in "de"], same)
    assert (first, later) == ([1, 2, 3], [4, 5])


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_numbers_of_servers_that_count_in_steps_are_known(harvester: Harvester) -> None:
    run_id = new_run(harvester.engine)
    with writers(harvester.engine).begin() as session:
        session.execute(text("SET SESSION auto_increment_increment = 3, auto_increment_offset = 2"))
        rows = [outbox_row(each, run_id) for each in "abc"]
        same = {"created_at": datetime(2026, 11, 20, tzinfo=UTC)}
        numbers = insert_numbered(session.connection(), Base.metadata.tables["report_outbox"], rows, same)
        session.execute(text("SET SESSION auto_increment_increment = 1, auto_increment_offset = 1"))
    stored = harvester.rows("SELECT report_id, idempotency_key FROM report_outbox ORDER BY report_id")
    assert stored == list(zip(numbers, "abc", strict=True))


def new_run(engine: Engine) -> int:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    run = HarvestRun(harvest_date=now.date(), started_at=now, heartbeat_at=now, status="running", host="h", pid=1)
    with writers(engine).begin() as session:
        session.add(run)
    return run.run_id


def outbox_row(key: str, run_id: int, content: bytes = b"") -> dict[str, object]:
    return {
        "idempotency_key": key,
        "kind": "site",
        "run_id": run_id,
        "message_id": key,
        "subject": key,
        "content": content,
    }


def revision(document_id: str, number: int, content: bytes, url: str) -> dict[str, object]:
    return {
        "document_id": document_id,
        "revision": number,
        "document_type": "t",
        "content": content,
        "size": len(content),
        "sha256": "0" * 64,
        "source_url": url,
        "site_schedule_id": 1,
        "inserted_at": datetime(2026, 11, 20, 3, 0, 0, 123456, tzinfo=UTC),
    }


# -- the run lock


HOLDER = (
    "import sys, time\nfrom pathlib import Path\n"
    "from metaharvest.database.engine import open_database, run_lock\nfrom metaharvest.config.settings import load\n"
    "with run_lock(open_database(load(Path(sys.argv[1]), {}))):\n"
    "    print('held', flush=True)\n    time.sleep(60)\n"
)


def test_the_lock_goes_with_the_process_that_held_it(harvester: Harvester) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(harvester.config)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LockHeld), run_lock(harvester.engine):
        pass
    holder.kill()
    holder.communicate()
    with run_lock(harvester.engine) as lock:
        assert lock.still_held()
    assert not lock.still_held()
    with run_lock(harvester.engine):
        pass


def kill_lock_connection(harvester: Harvester) -> None:
    """What a restart of the server or a firewall does to the connection that holds the lock."""
    if harvester.engine.dialect.name == "postgresql":
        here = "(SELECT oid FROM pg_database WHERE datname = current_database())"
        locks = f"pg_locks WHERE locktype = 'advisory' AND database = {here}"
        harvester.rows(f"SELECT pg_terminate_backend(pid) FROM {locks}")
        return
    with harvester.engine.connect() as connection:
        name = {"name": server_wide_name(connection, "run")}
        holder = connection.scalar(text("SELECT IS_USED_LOCK(:name)"), name)
        connection.execute(text(f"KILL {holder}"))


@pytest.mark.parametrize("database", KINDS[1:], indirect=True)
def test_whoever_loses_the_lock_s_connection_is_told(harvester: Harvester) -> None:
    with run_lock(harvester.engine) as lock:
        assert lock.still_held()
        kill_lock_connection(harvester)
        with run_lock(harvester.engine) as other:
            for _ in range(2):
                with pytest.raises(DBAPIError):
                    lock.still_held()
            assert other.still_held()


def test_two_databases_on_one_server_have_a_lock_each(harvester: Harvester, bare: Engine) -> None:
    upgrade(bare)
    with run_lock(harvester.engine), run_lock(bare) as lock:
        assert lock.still_held()


# -- what goes wrong


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "sqlite://",
        "sqlite:///:memory:",
        "nosuch://localhost/x",
        "postgresql+psycopg://h@db.example.org:5432metaharvest",
        "postgresql+psycopg://h@[::1:5432/x",
        "mysql+pymysql://h@localhost/x?charset=utf-8",
        "mysql+pymysql://h@localhost/x?connect_timeout=soon",
        "sqlite://localhost/x.db",
    ],
)
def test_a_database_url_that_cannot_be_used_is_told_in_a_sentence(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match=r"\[database\] url"):
        open_database(Settings(database=DatabaseSettings(url=url), folder=tmp_path))


def test_an_old_sqlite_is_refused_with_the_version_that_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 32, 3))
    with pytest.raises(SettingsError, match=r"needs SQLite 3\.33 or later"):
        open_url(make_url(f"sqlite:///{tmp_path}/old.db"))


@pytest.mark.parametrize(
    ("url", "extra"),
    [
        ("postgresql+asyncpg://me@localhost/x", "postgresql"),
        ("mysql+mysqldb://me@localhost/x", "mysql"),
        ("mariadb+mariadbconnector://me@localhost/x", "mysql"),
    ],
)
def test_a_missing_driver_is_told_with_the_extra_that_installs_it(tmp_path: Path, url: str, extra: str) -> None:
    (tmp_path / "password").write_text("hunter2")
    (tmp_path / "password").chmod(0o600)
    with pytest.raises(SettingsError) as told:
        open_database(Settings(database=DatabaseSettings(url=url, password="file:password"), folder=tmp_path))
    assert f"metaharvest[{extra}]" in str(told.value)
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("foo=1", "PyMySQL has no option 'foo'. Correct its name, or leave it out."),
        ("charset=latin1&charset=utf8", "the option charset is there twice. Leave one of them out."),
        ("charset=klingon", "PyMySQL has no charset 'klingon'. Leave it out: utf8mb4 is used."),
        ("ssl_ca=/etc/no/such.pem", "the file /etc/no/such.pem, which ssl_ca names, is not there."),
    ],
)
def test_a_wrong_option_in_the_url_of_a_mariadb_is_a_sentence(options: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as refused:
        open_url(make_url(f"mysql+pymysql://me@127.0.0.1/x?{options}"))
    assert str(refused.value) == f"[database] url: {sentence}"


@pytest.mark.parametrize("database", KINDS[1:], indirect=True)
def test_a_server_that_is_away_or_refuses_is_told_in_a_sentence_without_the_password(database: TestDatabase) -> None:
    url = make_url(database.url)
    for wrong in (url.set(port=1), url.set(database="no_such_database"), url.set(username="nobody_here")):
        engine = open_url(wrong.set(password="hunter2"))
        with pytest.raises(DatabaseUnavailable) as told:
            require_current(engine)
        engine.dispose()
        sentence = str(told.value)
        assert "cannot be used: " in sentence
        assert "hunter2" not in sentence
        assert "(1" not in sentence
        assert "\n" not in sentence


@pytest.mark.parametrize("database", KINDS[1:], indirect=True)
def test_a_server_that_goes_in_the_middle_is_told_in_a_sentence(harvester: Harvester) -> None:
    me = "pg_backend_pid()" if harvester.engine.dialect.name == "postgresql" else "connection_id()"

    def write() -> None:
        with database_errors(harvester.engine), writers(harvester.engine).begin() as session:
            backend = session.scalar(text(f"SELECT {me}"))
            harvester.rows(f"SELECT pg_terminate_backend({backend})" if "pg" in me else f"KILL {backend}")
            session.add(HarvestSiteSchedule(name="alder", **SITE))

    with pytest.raises(DatabaseUnavailable, match="cannot be used"):
        write()
    assert harvester.rows("SELECT count(*) FROM harvest_site_schedule") == [(0,)]


def close_every_connection(harvester: Harvester) -> None:
    """What a restart of the server does to those who are connected."""
    if harvester.engine.dialect.name == "postgresql":
        others = "datname = current_database() AND pid <> pg_backend_pid()"
        harvester.rows(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        return
    processes = "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
    for (number,) in harvester.rows(processes):
        with suppress(DBAPIError):
            harvester.rows(f"KILL {number}")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a cursor cut off
@pytest.mark.parametrize("database", KINDS[1:], indirect=True)
def test_a_restart_of_the_server_in_the_middle_of_a_run_loses_and_doubles_nothing(
    harvester: Harvester, server: HttpServer
) -> None:
    publish(server, "a.1.1", "a.2.1")

    def restart(asking: Asking) -> None:
        close_every_connection(harvester)
        asking.answer(eml("a.1.1"))

    server.route("/a.1.1.xml", restart)
    harvester.add_site("site", server.url("/list.xml"))
    said = harvester("run", "--date", "2026-11-20")
    assert said.code in (1, 69)
    assert "Traceback" not in said.err
    server.serve("/a.1.1.xml", eml("a.1.1"))
    harvester.run("2026-11-20")
    assert harvester.held() == {docid: eml(docid) for docid in ("a.1.1", "a.2.1")}
    sites = harvester.rows("SELECT status, inserted FROM harvest_site_run")
    assert sites == [("succeeded", 2)]
    outcomes = harvester.rows("SELECT document_id, outcome FROM harvest_log WHERE outcome IS NOT NULL ORDER BY 1")
    assert outcomes == [("a.1", "inserted"), ("a.2", "inserted")]
    gc.collect()


def test_foreign_keys_hold(harvester: Harvester) -> None:
    with pytest.raises(DBAPIError):
        harvester.rows("INSERT INTO report_delivery (report_id, recipient) VALUES (4711, 'a@example.org')")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_sqlite_writes_ahead(harvester: Harvester) -> None:
    assert harvester.rows("PRAGMA journal_mode") == [("wal",)]


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_a_document_that_mariadb_does_not_take_is_refused_alone_and_the_doctor_says_why(
    harvester: Harvester, server: HttpServer
) -> None:
    with harvester.engine.connect() as connection:
        packet = dialects.largest_packet(connection)
    assert packet is not None
    publish(server, "a.1.1", "a.2.1")
    comment = b"<!--" + b" " * 1_000_000 + b"-->\n"
    server.serve("/a.1.1.xml", eml("a.1.1") + comment * (packet // 2_000_000 + 1))
    harvester.add_site("site", server.url("/list.xml"))
    run = harvester.run("2026-11-20")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "upload-error", "a.2.1": "inserted"}
    [(message,)] = harvester.rows("SELECT error_message FROM harvest_detail_log WHERE rule = 'target.not-stored'")
    assert "max_allowed_packet" in message
    checks = json.loads(harvester("doctor", "--json").out)["checks"]
    [told] = [check for check in checks if check["check"] == "database server"]
    assert told["state"] == "WARNING"
    assert "max_allowed_packet" in told["message"]


def test_the_doctor_says_which_server_it_is(harvester: Harvester) -> None:
    text = harvester.config.read_text()
    harvester.config.write_text(text.replace("[http]\n", "[http]\nmax_document_bytes = 1000000\n"))
    checks = json.loads(harvester("doctor", "--json").out)["checks"]
    [told] = [check for check in checks if check["check"] == "database server"]
    assert told["state"] == "OK"
    assert told["message"].split()[0] in ("SQLite", "PostgreSQL", "MariaDB", "MySQL")


def test_the_doctor_says_that_it_does_not_look_at_the_disk_of_a_server(
    harvester: Harvester, database: TestDatabase
) -> None:
    checks = json.loads(harvester("doctor", "--json").out)["checks"]
    [told] = [check["message"] for check in checks if check["check"] == "database"]
    assert "is there and up to date, and this user may write to it." in told
    assert told.endswith("disk of its server is not checked.") == (database.kind != "sqlite")


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_postgresql_database_in_another_encoding_is_refused(database: TestDatabase, servers: Servers) -> None:
    options = "ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    with servers.bare(database.kind, options) as engine, pytest.raises(DatabaseUnavailable, match="must be UTF8"):
        upgrade(engine)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_every_command_on_a_database_in_sql_ascii_says_that_it_must_be_utf8(
    tmp_path: Path, database: TestDatabase, servers: Servers
) -> None:
    options = "ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    with servers.bare(database.kind, options) as engine:
        harvester = Harvester(tmp_path)
        harvester.keeps_engine = False
        harvester.config.write_text(SETTINGS + settings_for(engine.url.render_as_string(hide_password=False)))
        add = "sites add a --list-url https://example.org/list.xml --contact a@example.org"
        commands = ["init", "sites list", add, "run", "run --dry-run", "log", "runs", "reports", "target list"]
        for command_line in commands:
            said = harvester(*command_line.split())
            assert said.code == 69
            assert "is in the encoding SQL_ASCII; it must be UTF8. Create it again" in said.err
            assert len(said.err.splitlines()) == 1
        said = harvester("doctor")
        assert said.code == 1
        assert "SQL_ASCII; it must be UTF8" in said.out
        assert "Traceback" not in said.err
        harvester.close()


@pytest.mark.parametrize(
    ("said", "is_full"),
    [
        (((1021, "Disk full (/tmp/#sql); waiting for someone to free some space"), {}), True),
        (((1114, "The table 'document_revision' is full"), {}), True),
        (((3, "Error writing file '/tmp/x' (Errcode: 28 \"No space left on device\")"), {}), True),
        (((1026, "Error writing file 't' (Errcode: 28)"), {}), True),
        (((1030, "Got error 28 from storage engine"), {}), True),
        (((1030, "Got error 122 from storage engine"), {}), False),
        (((1205, "Lock wait timeout exceeded"), {}), False),
        (((), {"sqlstate": "53100"}), True),
        (((), {"sqlstate": "53200"}), False),
        (((), {"sqlite_errorcode": 13}), True),
        (((), {"sqlite_errorcode": 5}), False),
    ],
)
def test_a_full_disk_is_known_by_the_code_of_each_database(
    said: tuple[tuple[object, ...], dict[str, object]], is_full: bool
) -> None:
    arguments, fields = said
    original = Exception(*arguments)
    vars(original).update(fields)
    assert dialects.is_full(DBAPIError("INSERT", {}, original)) == is_full


@pytest.mark.parametrize(
    ("said", "is_refused"),
    [
        (((1142, "INSERT command denied to user"), {}), True),
        (((1644, "refused"), {}), True),
        (((1366, "Incorrect string value"), {}), True),
        (((1213, "Deadlock found when trying to get lock"), {}), False),
        (((1053, "Server shutdown in progress"), {}), False),
        (((1045, "Access denied for user"), {}), False),
        (((1290, "The server is running with the --read-only option"), {}), False),
        (((1969, "Query execution was interrupted (max_statement_time exceeded)"), {}), False),
        (((2013, "Lost connection to server during query"), {}), False),
        (((0, ""), {}), False),
        ((("permission denied for table harvest_log",), {"sqlstate": "42501"}), True),
        ((("refused",), {"sqlstate": "P0001"}), True),
        ((("canceling statement due to statement timeout",), {"sqlstate": "57014"}), False),
        ((("the database system is starting up",), {"sqlstate": "57P03"}), False),
        ((("terminating connection due to administrator command",), {"sqlstate": "57P01"}), False),
        ((("cannot execute INSERT in a read-only transaction",), {"sqlstate": "25006"}), False),
        ((("sorry, too many clients already",), {"sqlstate": "53300"}), False),
        ((("server closed the connection unexpectedly",), {"sqlstate": None}), False),
        (((), {"sqlite_errorcode": 5}), False),
        (((), {"sqlite_errorcode": 8}), False),
        (((), {"sqlite_errorcode": 13}), False),
        (((), {"sqlite_errorcode": 1811}), True),
    ],
)
def test_a_database_that_refuses_is_known_from_one_that_is_away(
    said: tuple[tuple[object, ...], dict[str, object]], is_refused: bool
) -> None:
    arguments, fields = said
    original = Exception(*arguments)
    vars(original).update(fields)
    assert dialects.is_refused(DBAPIError("INSERT", {}, original)) == is_refused
    assert not dialects.is_refused(DBAPIError("INSERT", {}, original, connection_invalidated=True))


@pytest.mark.parametrize(
    ("code", "is_about_files"),
    [
        (sqlite3.SQLITE_READONLY_DIRECTORY, True),
        (sqlite3.SQLITE_CANTOPEN, True),
        (sqlite3.SQLITE_NOTADB, False),
        (None, False),
    ],
)
def test_files_that_sqlite_cannot_make(code: int | None, is_about_files: bool) -> None:
    original = sqlite3.OperationalError("words")
    if code is not None:
        original.sqlite_errorcode = code
    assert dialects.cannot_make_files(DBAPIError("SELECT", {}, original)) == is_about_files


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_statement_starts_no_processes_on_postgresql(harvester: Harvester) -> None:
    assert harvester.rows("SHOW max_parallel_workers_per_gather") == [("0",)]
