"""The house stays small: few rooms at the top."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "metaharvest"
ROOMS = 22


def test_the_package_has_few_rooms() -> None:
    found = [path.parent for path in PACKAGE.glob("*/__init__.py")] + list(PACKAGE.glob("*.py"))
    rooms = sorted(path.name for path in found if not path.name.startswith("__"))
    assert len(rooms) <= ROOMS, rooms
