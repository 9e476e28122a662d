"""The house stays small, with few rooms at the top; no text from outside takes long, or becomes a command."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lint.foreign_text import found_below, nodes_below
from metaharvest.model.actions import ACTIONS, todo
from support.module_texts import texts_of

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "metaharvest"
ROOMS = 34


def test_the_package_has_few_rooms() -> None:
    found = [path.parent for path in PACKAGE.glob("*/__init__.py")] + list(PACKAGE.glob("*.py"))
    rooms = sorted(path.name for path in found if not path.name.startswith("__"))
    assert len(rooms) <= ROOMS, rooms


@pytest.mark.slow
def test_nothing_takes_more_than_linear_time_over_text_from_outside() -> None:
    """What is exempt says why: `# bounded: WHY`; see lint/foreign_text.py."""
    found = [f"{path.relative_to(PACKAGE)}:{costly.line}: {costly.message}" for path, costly in found_below(PACKAGE)]
    assert not found, "\n".join(found)


def test_commands_come_from_the_table_of_actions() -> None:
    """Outside of the command line, a text has a command from model/actions.py alone, so that programs find it again."""
    others = (path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "cli")
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in others
        for line, text in _texts(path)
        if "`metaharvest " in text and path.name != "actions.py"
    ]
    assert not found, "\n".join(found)


def test_every_action_of_the_table_is_named_in_the_code() -> None:
    others = (path for path in PACKAGE.rglob("*.py") if path.name != "actions.py")
    named = {text for path in others for _, text in _texts(path)}
    assert ACTIONS.keys() - named == set()


def test_every_action_that_the_code_names_is_in_the_table_with_its_values() -> None:
    for path in PACKAGE.rglob("*.py"):
        for call in _calls(path, "todo"):
            if isinstance(call.args[0], ast.Constant):
                todo(str(call.args[0].value), **{str(value.arg): "" for value in call.keywords})


def test_the_text_of_a_remedy_is_written_in_the_program() -> None:
    """A text that is put together can have a command from outside in it; so can a value in backticks."""
    found = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}"
        for path in PACKAGE.rglob("*.py")
        for call in _calls(path, "Remedy")
        if not isinstance(call.args[0], ast.Constant) or "`{" in str(call.args[0].value)
    ]
    # The stored remedies of a rehearsal.
    assert [place.partition(":")[0] for place in found] == ["rehearsal/results.py"]


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module but its docstrings, each with its line."""
    return ((each.line, each.text) for each in texts_of(path) if not each.is_docstring)


def _calls(path: Path, name: str) -> Iterator[ast.Call]:
    """The calls of this function in a module. Only a module with such a call is parsed, as parsing takes long."""
    source = path.read_text(encoding="utf-8")
    for node in nodes_below(ast.parse(source)) if f"{name}(" in source else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node
