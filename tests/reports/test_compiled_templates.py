"""Compiled templates are kept for the next process, and are never older than their templates."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader

from metaharvest.reports.render import CompiledTemplates


@pytest.fixture(autouse=True)
def python_may_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / "body.txt").write_text("{{ 1 + 1 }} documents", encoding="utf-8")
    return folder


def rendered(templates: Path, kept: Path) -> str:
    """What a new process renders."""
    environment = Environment(loader=FileSystemLoader(templates), bytecode_cache=CompiledTemplates(kept))
    return environment.get_template("body.txt").render()


def test_a_template_is_compiled_once(templates: Path, tmp_path: Path) -> None:
    rendered(templates, tmp_path)
    [kept] = tmp_path.glob("template-*")
    file_number = kept.stat().st_ino
    assert rendered(templates, tmp_path) == "2 documents"
    assert [each.stat().st_ino for each in tmp_path.glob("template-*")] == [file_number]


def test_a_changed_template_is_compiled_again(templates: Path, tmp_path: Path) -> None:
    rendered(templates, tmp_path)
    (templates / "body.txt").write_text("{{ 1 + 2 }} documents", encoding="utf-8")
    assert rendered(templates, tmp_path) == "3 documents"


def test_another_version_compiles_again(templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered(templates, tmp_path)
    [kept] = tmp_path.glob("template-*")
    before = kept.read_bytes()
    monkeypatch.setattr("metaharvest.reports.render.__version__", "99.0")
    assert rendered(templates, tmp_path) == "2 documents"
    assert kept.read_bytes() != before


@pytest.mark.parametrize("size", [0, 15, 30, 60, 200])
def test_a_damaged_file_is_compiled_again(templates: Path, tmp_path: Path, size: int) -> None:
    rendered(templates, tmp_path)
    [kept] = tmp_path.glob("template-*")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:size] + bytes(len(whole) - size))
    assert rendered(templates, tmp_path) == "2 documents"
    assert kept.read_bytes() == whole


def test_another_version_of_jinja_compiles_again(
    templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered(templates, tmp_path)
    [kept] = tmp_path.glob("template-*")
    before = kept.read_bytes()
    monkeypatch.setattr("jinja2.compiler.__file__", __file__)
    assert rendered(templates, tmp_path) == "2 documents"
    assert kept.read_bytes() != before


def test_a_template_that_cannot_be_kept_is_rendered(templates: Path, tmp_path: Path) -> None:
    assert rendered(templates, tmp_path / "missing") == "2 documents"


def test_nothing_is_kept_where_python_keeps_nothing(
    templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    assert rendered(templates, tmp_path) == "2 documents"
    assert not [*tmp_path.glob("template-*")]
