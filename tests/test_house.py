"""The house stays small, with few rooms at the top, and no text from outside takes long."""

from __future__ import annotations

from pathlib import Path

import pytest

from lint.foreign_text import found_below

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "metaharvest"
ROOMS = 29


def test_the_package_has_few_rooms() -> None:
    found = [path.parent for path in PACKAGE.glob("*/__init__.py")] + list(PACKAGE.glob("*.py"))
    rooms = sorted(path.name for path in found if not path.name.startswith("__"))
    assert len(rooms) <= ROOMS, rooms


@pytest.mark.slow
def test_nothing_takes_more_than_linear_time_over_text_from_outside() -> None:
    """What is exempt says why: `# bounded: WHY`; see lint/foreign_text.py."""
    found = [f"{path.relative_to(PACKAGE)}:{costly.line}: {costly.message}" for path, costly in found_below(PACKAGE)]
    assert not found, "\n".join(found)
