"""Written files replace only files; a missing folder is never made, as its name may be a typing error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.cli import attempt, initialize, process, tell
from support.harvester import said


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory with an installation."""
    monkeypatch.chdir(tmp_path)
    initialize(tmp_path)
    return tmp_path


def test_a_metrics_file_that_is_a_link_or_a_device_is_left_alone(folder: Path) -> None:
    kept = folder / "kept"
    kept.write_text("as before")
    (folder / "link.prom").symlink_to(kept)
    os.mkfifo(folder / "pipe.prom")
    (folder / "device.prom").symlink_to("/dev/null")
    for name, why in (("link", "it is a link"), ("pipe", "it is not a file"), ("device", "it is a link")):
        (folder / "metaharvest.toml").write_text(f'[monitoring]\nmetrics_file = "{name}.prom"\n')
        answer = tell(folder, "run")
        assert why in answer.err, answer.err
    assert kept.read_text() == "as before"
    assert (folder / "link.prom").is_symlink()
    assert (folder / "pipe.prom").is_fifo()
    assert Path("/dev/null").is_char_device()
    (folder / "metaharvest.toml").write_text('[monitoring]\nmetrics_file = "it.prom"\n')
    tell(folder, "run")
    assert "metaharvest_last_run" in (folder / "it.prom").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        '[monitoring]\nmetrics_file = "nowhere/below/it.prom"\n',
        '[mail]\nfolder = "nowhere/mail"\n',
        '[reports]\nadmin = "log-file"\nlog_folder = "nowhere/reports"\n',
        '[target]\nkind = "folder"\nfolder = "nowhere/documents"\n',
        '[database]\nurl = "sqlite:///nowhere/below/it.db"\n',
    ],
)
def test_no_folder_is_made_that_a_typing_error_names(folder: Path, settings: str) -> None:
    (folder / "metaharvest.toml").write_text(settings)
    for command in (["init"], ["run"], ["doctor"]):
        attempt(folder, *command)
        assert not (folder / "nowhere").exists(), command
    if "log_folder" in settings or "mail" in settings:
        assert f"the folder {folder}/nowhere is not there" in tell(folder, "doctor").out


@pytest.mark.slow
def test_a_database_is_copied_into_a_folder_that_is_there(folder: Path) -> None:
    answer = said("database", "copy", "--to", f"sqlite:///{folder}/nowhere/x.db")
    assert answer.code != 0
    assert f"cannot be made: the folder {folder}/nowhere is not there" in answer.err
    assert not (folder / "nowhere").exists()
    assert said("database", "copy", "--to", f"sqlite:///{folder}/x.db").code == 0


def test_a_settings_file_is_not_written_into_a_folder_below_one_that_is_missing(folder: Path) -> None:
    done = process(folder, "--config", "nowhere/below/metaharvest.toml", "init")
    assert (done.returncode, "the folder" in done.stderr) == (2, True)
    assert not (folder / "nowhere").exists()


def test_filters_and_normalising_that_are_pipes_are_reported(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    done = process(folder, "filter", "test", "pipe", "pipe")
    assert done.returncode != 0
    assert "it is not a file, but a folder, a device or a pipe" in done.stdout + done.stderr


def test_a_pipe_into_which_nobody_writes_is_not_waited_for_long(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metaharvest.rehearsal.input.arguments.PIPE_SECONDS", 0.2)
    os.mkfifo(folder / "pipe.xml")
    answer = said("check", "pipe.xml")
    assert (answer.code, "nothing came through it" in answer.err) == (2, True)
