"""New files with addresses, reports and settings are for their owner alone; existing files keep their mode."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from metaharvest.config.files import is_open_to_all
from support.cli import tell


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def modes(folder: Path, *names: str) -> list[int]:
    return [stat.S_IMODE((folder / name).stat().st_mode) for name in names]


def test_what_init_and_a_run_make_is_for_their_user_alone(tmp_path: Path) -> None:
    tell(tmp_path, "init")
    assert modes(tmp_path, "metaharvest.toml", "metaharvest.db") == [0o600, 0o600]
    settings = (tmp_path / "metaharvest.toml").read_text()
    (tmp_path / "metaharvest.toml").write_text(
        settings.replace("administrators = []", 'administrators = ["steward@example.org"]')
    )
    engine = create_engine(f"sqlite:///{tmp_path / 'metaharvest.db'}")
    with closing(engine.raw_connection()) as connection:
        connection.execute("BEGIN IMMEDIATE")
        there = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("metaharvest.db*")}
    engine.dispose()
    assert set(there.values()) == {0o600}
    tell(tmp_path, "run")
    assert modes(tmp_path, "metaharvest.db.lock", "mail") == [0o600, 0o700]
    assert modes(tmp_path, "mail/new", "mail/cur", "mail/tmp") == [0o700] * 3


def test_a_copy_of_the_database_is_too(tmp_path: Path) -> None:
    tell(tmp_path, "init")
    tell(tmp_path, "database", "copy", "--to", f"sqlite:///{tmp_path / 'copy.db'}")
    assert modes(tmp_path, "copy.db") == [0o600]


def test_what_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tell(tmp_path, "init")
    for name in ("metaharvest.toml", "metaharvest.db"):
        (tmp_path / name).chmod(0o664)
    (tmp_path / "metaharvest.db.lock").touch(0o664)
    (tmp_path / "metaharvest.db.lock").chmod(0o664)
    tell(tmp_path, "init")
    tell(tmp_path, "run")
    assert modes(tmp_path, "metaharvest.toml", "metaharvest.db", "metaharvest.db.lock") == [0o664] * 3


def test_doctor_warns_of_what_everybody_may_read(open_folder: Path) -> None:
    tell(open_folder, "init")
    assert "Everybody on this machine" not in tell(open_folder, "doctor").out
    (open_folder / "metaharvest.db").chmod(0o644)
    (open_folder / "mail" / "new").mkdir(parents=True)
    output = " ".join(tell(open_folder, "doctor").out.split())
    assert "Everybody on this machine may read" in output
    assert f"chmod 600 {open_folder}/metaharvest.db" in output
    assert f"chmod go-rwx {open_folder}/mail/new" in output


def test_doctor_warns_of_a_settings_file_that_everybody_may_read(open_folder: Path) -> None:
    tell(open_folder, "init")
    (open_folder / "metaharvest.toml").chmod(0o644)
    output = " ".join(tell(open_folder, "doctor").out.split())
    assert f"may read {open_folder}/metaharvest.toml" in output
    assert f"chmod 600 {open_folder}/metaharvest.toml" in output


def test_a_file_in_a_closed_folder_is_not_open(open_folder: Path) -> None:
    (open_folder / "closed").mkdir()
    file = open_folder / "closed" / "file"
    file.touch(0o644)
    assert is_open_to_all(file)
    (open_folder / "closed").chmod(0o700)
    assert not is_open_to_all(file)
    assert not is_open_to_all(open_folder / "nothing")
