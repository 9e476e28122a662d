"""Migrations, models and the DDL for people say the same; the run lock goes with the process."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.dialects import mysql

from metaharvest.database import ddl
from metaharvest.database.engine import SCHEMA_VERSION, open_database, run_lock, upgrade
from metaharvest.database.models import OPERATIONS, Base
from metaharvest.errors import LockHeld, SettingsError
from metaharvest.resources import data_folder
from metaharvest.settings import DatabaseSettings, Settings
from support.harvester import Harvester


def test_the_migrations_make_the_tables_of_the_models(harvester: Harvester) -> None:
    with harvester.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_the_newest_migration_is_the_one_the_program_asks_for() -> None:
    config = Config()
    config.set_main_option("script_location", str(data_folder("sql") / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == SCHEMA_VERSION


def test_the_ddl_for_people_is_rendered_from_the_models_and_runs() -> None:
    written = (data_folder("sql") / "ddl" / "sqlite.sql").read_text(encoding="utf-8")
    assert written == ddl.ddl("sqlite")
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(written)
        assert connection.execute("SELECT count(*) FROM harvest_operation").fetchone() == (len(OPERATIONS),)
    connection.close()


def test_table_and_column_names_are_lower_case_and_unquoted_sql_works(harvester: Harvester) -> None:
    names = inspect(harvester.engine).get_table_names()
    assert all(name == name.lower() for name in names)
    harvester.rows(
        "INSERT INTO HARVEST_SITE_SCHEDULE (NAME, DOCUMENTLISTURL, CONTACT_EMAIL) "
        "VALUES ('by-hand', 'https://example.org/list.xml', 'a@example.org')"
    )
    said = harvester("sites", "list", "--json")
    assert '"by-hand"' in said.out


def test_upgrading_twice_changes_nothing(harvester: Harvester) -> None:
    before = harvester.rows("SELECT * FROM harvest_operation")
    upgrade(harvester.engine)
    assert harvester.rows("SELECT * FROM harvest_operation") == before
    assert {code for code, _, _ in before} == set(OPERATIONS)


def test_the_lock_goes_with_the_process_that_held_it(harvester: Harvester) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\n"
        "from metaharvest.database.engine import open_database, run_lock\nfrom metaharvest.settings import load\n"
        "with run_lock(open_database(load(Path(sys.argv[1]), {}))):\n"
        "    print('held', flush=True)\n    time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, str(harvester.config)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LockHeld), run_lock(harvester.engine):
        pass
    holder.kill()
    holder.communicate()
    with run_lock(harvester.engine):
        pass


@pytest.mark.parametrize("url", ["nonsense", "sqlite://", "sqlite:///:memory:", "nosuch://localhost/x"])
def test_a_database_url_that_cannot_be_used_is_told_in_a_sentence(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match=r"\[database\] url"):
        open_database(Settings(database=DatabaseSettings(url=url), folder=tmp_path))


def test_foreign_keys_hold_on_sqlite(harvester: Harvester) -> None:
    with harvester.engine.connect() as connection:
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"


def test_documents_of_any_size_and_messages_of_any_length_have_room_on_mariadb() -> None:
    table = Base.metadata.tables["document_revision"]
    assert str(table.c.content.type.compile(dialect=mysql.dialect())) == "LONGBLOB"
    assert "ascii_bin" in str(table.c.document_id.type.compile(dialect=mysql.dialect()))
