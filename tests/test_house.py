"""The house stays small: few rooms at the top, and no module too long to be read at once."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "metaharvest"
LINES = 400
ROOMS = 22
TABLES = {"rules.py"}
"""Modules that are a table, and may be longer."""


def test_no_module_is_too_long() -> None:
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: lines for name, lines in lengths.items() if lines > LINES and name not in TABLES} == {}


def test_the_package_has_few_rooms() -> None:
    found = [path.parent for path in PACKAGE.glob("*/__init__.py")] + list(PACKAGE.glob("*.py"))
    rooms = sorted(path.name for path in found if not path.name.startswith("__"))
    assert len(rooms) <= ROOMS, rooms
