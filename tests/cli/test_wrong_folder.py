"""Commands outside of the installation's folder name the places of their search before they advise `init`."""

from pathlib import Path

import pytest

from support.cli import process


@pytest.mark.parametrize("command", [("runs",), ("run",), ("sites", "list"), ("log",)])
def test_without_a_settings_file_the_error_names_the_places_where_one_was_expected(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    said = process(tmp_path, *command, XDG_CONFIG_HOME=str(tmp_path / "config"))
    assert (said.returncode, said.stdout) == (69, "")
    output = " ".join(said.stderr.split())
    first, _, then = output.partition("`metaharvest --config FILE`")
    for file in (tmp_path / "metaharvest.toml", tmp_path / "config" / "metaharvest" / "metaharvest.toml"):
        assert str(file) in first
    assert str(tmp_path / "metaharvest.db") in first
    assert "init" not in first
    assert "`metaharvest init`" in then
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_says_it_too(tmp_path: Path) -> None:
    said = process(tmp_path, "doctor", XDG_CONFIG_HOME=str(tmp_path / "config"))
    assert said.returncode == 1
    assert said.stdout.count(f"There is no settings file (looked for {tmp_path / 'metaharvest.toml'} and ") == 2


def test_a_settings_file_whose_database_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "metaharvest.toml").write_text("")
    said = process(tmp_path, "runs")
    assert said.returncode == 69
    assert f"which the settings file {tmp_path / 'metaharvest.toml'} names" in said.stderr


def test_a_named_settings_file_that_is_not_there_is_reported_with_its_whole_path(tmp_path: Path) -> None:
    said = process(tmp_path, "--config", "typo.toml", "runs")
    assert said.returncode == 2
    assert f"The settings file {tmp_path / 'typo.toml'} is not there." in said.stderr
