"""docs/architecture.md: its picture is that of the imports, and what it names is there."""

from __future__ import annotations

import ast
import importlib.util
import re
from graphlib import CycleError
from pathlib import Path
from types import ModuleType

import pytest

import metaharvest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = Path(metaharvest.__file__).parent

PATH = re.compile(r"`([\w./-]+(?:\.(?:py|md|toml|sql|html|txt|ini|sh)|/))`")
FUNCTION = re.compile(r"`(?:\w+\.)*(\w+)\(\)`")


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_house", ROOT / "docs" / "draw_house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_the_house_is_that_of_its_imports(drawing: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")
    picture = drawing.picture(drawing.rooms_of("metaharvest"), PACKAGE)
    assert page == drawing.drawn_into(page, picture), "run `make docs`"


def test_an_arrow_that_others_imply_is_not_drawn_but_the_table_has_the_import(
    drawing: ModuleType, tmp_path: Path
) -> None:
    for name, purpose in {"top": "Orders.", "middle": "Works.", "ground": "Holds values."}.items():
        (tmp_path / f"{name}.py").write_text(f'"""{purpose}\n\nMore of it."""\n', encoding="utf-8")
    house = {"top": frozenset({"middle", "ground"}), "middle": frozenset({"ground"}), "ground": frozenset[str]()}
    picture = drawing.picture(house, tmp_path)
    arrows = [line.strip() for line in picture.splitlines() if "-->" in line]
    assert arrows == ["top --> middle", "middle --> ground"]
    assert "| 2 | `top` | Orders. | ground, middle |" in picture.splitlines()


def test_rooms_that_import_one_another_in_a_circle_are_not_drawn(drawing: ModuleType, tmp_path: Path) -> None:
    circle = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"b"})}
    with pytest.raises(CycleError):
        drawing.picture(circle, tmp_path)


def test_every_path_that_the_page_names_is_there() -> None:
    named = set(PATH.findall(PAGE.read_text(encoding="utf-8")))
    assert named
    assert {path for path in named if not _found(path)} == set()


def test_every_function_that_a_table_of_the_page_names_is_in_a_file_of_its_row() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    missing = []
    for row in rows:
        files = [file for path in PATH.findall(row) if (file := _found(path)) and file.suffix == ".py"]
        missing += [name for name in FUNCTION.findall(row) if not any(name in _defined(file) for file in files)]
    assert missing == []


@pytest.mark.slow
def test_every_function_that_the_page_names_is_in_the_package() -> None:
    named = set(FUNCTION.findall(PAGE.read_text(encoding="utf-8")))
    assert named
    assert named - set().union(*(_defined(file) for file in PACKAGE.rglob("*.py"))) == set()


def _found(path: str) -> Path | None:
    """A file or folder of the project, named from its top or from that of the package."""
    return next((there for top in (ROOT, PACKAGE) if (there := top / path).exists()), None)


def _defined(file: Path) -> set[str]:
    """The names of the functions and classes that a file defines."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, kinds)}
