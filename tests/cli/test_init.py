"""`metaharvest init`, its settings file, and how commands end."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from alembic import command as alembic_command
from alembic.config import Config

from metaharvest.cli import queries, services
from metaharvest.config.paths import data_folder
from metaharvest.config.settings import SECTIONS, Settings, load
from metaharvest.database.engine import SCHEMA_VERSION, open_database
from metaharvest.errors import DatabaseUnavailable, SchemaMismatch, SettingsError
from support.cli import attempt, process, tell

TEMPLATE = data_folder("templates") / "metaharvest.toml"


def test_the_settings_file_loads_to_the_defaults() -> None:
    settings = load(TEMPLATE, environ={})
    assert settings == Settings(folder=settings.folder, file=settings.file)


def test_the_settings_file_has_every_key_there_is_with_its_default() -> None:
    text = TEMPLATE.read_text(encoding="utf-8")
    sections = dict(re.findall(r"^\[(\w+)\]\n(.*?)(?=^\[|\Z)", text, re.DOTALL | re.MULTILINE))
    assert set(sections) == set(SECTIONS)
    written = tomllib.loads(text)
    for section in SECTIONS:
        for key, field in type(getattr(Settings(), section)).model_fields.items():
            if field.default is None or (section == "target" and key != "kind"):
                assert re.search(rf"^# {key} = ", sections[section], re.MULTILINE), f"{section}.{key}"
            else:
                assert key in written[section], f"{section}.{key}"


def test_init_writes_the_settings_creates_the_database_and_says_what_is_next(tmp_path: Path) -> None:
    told = tell(tmp_path, "init")
    assert f"Wrote the settings file {tmp_path / 'metaharvest.toml'}" in told.out
    assert f"Created the database {tmp_path / 'metaharvest.db'}" in told.out
    assert "sites add" in told.out
    written = (tmp_path / "metaharvest.toml").read_text("utf-8")
    key = load(tmp_path / "metaharvest.toml", environ={}).web.token_key
    assert len(key) > 30
    assert written.replace(key, "") == TEMPLATE.read_text("utf-8")


@pytest.mark.parametrize(
    ("more", "last"),
    [
        ("", "run      harvests; put it into cron for every night."),
        (
            '[workers]\nbroker = "amqp://mq.example.org/"\n',
            "coordinate   lets workers harvest; put it into cron for every minute.",
        ),
    ],
)
def test_init_names_the_command_that_harvests(tmp_path: Path, more: str, last: str) -> None:
    (tmp_path / "metaharvest.toml").write_text(more)
    assert tell(tmp_path, "init").out.endswith(f"{last}\n")


def test_a_second_init_changes_nothing(tmp_path: Path) -> None:
    tell(tmp_path, "init")
    (tmp_path / "metaharvest.toml").write_text('[harvester]\nname = "Mine"\n')
    told = tell(tmp_path, "init")
    assert "already there" in told.out
    assert "Nothing to do" in told.out
    assert (tmp_path / "metaharvest.toml").read_text() == '[harvester]\nname = "Mine"\n'


def test_an_upgrade_does_not_tell_what_was_filled_in_long_ago(tmp_path: Path) -> None:
    file = tmp_path / "metaharvest.toml"
    file.write_text('[harvester]\nname = "Mine"\n')
    engine = open_database(load(file))
    config = Config()
    config.set_main_option("script_location", str(data_folder("sql") / "migrations"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        alembic_command.upgrade(config, "0001")
    engine.dispose()
    told = tell(tmp_path, "init")
    assert told.out.splitlines()[1:] == [
        f"Upgraded the database {tmp_path / 'metaharvest.db'} from 0001 to {SCHEMA_VERSION}."
    ]


def test_init_uses_the_settings_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "metaharvest.toml").write_text('[database]\nurl = "sqlite:///data/own.db"\n')
    tell(tmp_path, "init")
    assert (tmp_path / "data" / "own.db").is_file()


def test_init_without_a_named_file_writes_one_here(tmp_path: Path) -> None:
    done = process(tmp_path, "init", XDG_CONFIG_HOME=str(tmp_path / "none"))
    assert done.returncode == 0
    assert (tmp_path / "metaharvest.toml").is_file()
    assert (tmp_path / "metaharvest.db").is_file()


def test_init_refuses_a_database_of_a_newer_program(tmp_path: Path) -> None:
    tell(tmp_path, "init")
    with sqlite3.connect(tmp_path / "metaharvest.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    told = attempt(tmp_path, "init")
    assert isinstance(told.error, SchemaMismatch)
    assert "newer than this program" in str(told.error)


def test_init_says_where_the_settings_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "metaharvest.toml").symlink_to(tmp_path / "nowhere" / "at-all.toml")
    told = attempt(tmp_path, "init")
    assert isinstance(told.error, SettingsError)
    assert "cannot be written" in str(told.error)


def test_commands_without_a_database_name_init(tmp_path: Path) -> None:
    (tmp_path / "metaharvest.toml").write_text("")
    told = attempt(tmp_path, "sites", "list")
    assert isinstance(told.error, DatabaseUnavailable)
    assert "metaharvest init" in str(told.error)


@pytest.mark.parametrize(
    ("settings", "arguments", "code", "sentence"),
    [
        ("", ("sites", "list"), 69, "There is no database"),
        ("[harvester]\nworkers = 0\n", ("sites", "list"), 2, "[harvester] workers = 0"),
        ("", ("sites", "add", "x"), 2, "Give --list-url"),
        ("", ("sites", "remov"), 2, "No such command"),
    ],
)
def test_what_a_person_did_wrong_ends_in_a_sentence_and_an_exit_code(
    tmp_path: Path, settings: str, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    (tmp_path / "metaharvest.toml").write_text(settings)
    done = process(tmp_path, *arguments)
    assert done.returncode == code
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_module_that_imports_others_late_lacks_the_names_that_python_asks_for() -> None:
    from metaharvest.cli.services import runs  # Python asks for __path__ here.

    assert runs is services.runs
    assert not hasattr(services, "__path__")
    assert not hasattr(queries, "__path__")


def test_help_needs_neither_the_database_s_libraries_nor_the_settings_ones(tmp_path: Path) -> None:
    program = (
        "import sys, click.testing; from metaharvest.cli import cli\n"
        "names = ['init', 'sites', 'log', 'runs', 'reports', 'target', 'doctor', 'daemon', 'list', 'oai']\n"
        "for name in names: assert click.testing.CliRunner().invoke(cli, [name, '--help']).exit_code == 0, name\n"
        "print([name for name in ('sqlalchemy', 'rich', 'jinja2', 'pydantic', 'lxml') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
