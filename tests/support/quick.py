"""What `make quick` runs: the unit tests, and one scenario of each kind, on SQLite alone."""

from __future__ import annotations

from pathlib import Path

import pytest

LEFT_OUT = (
    "Left out by `make quick`: other scenarios and commands, tests that are slow or need a database, PostgreSQL, "
    "MariaDB, DataONE, the demo, histories, fuzzing, soak tests, the wheel."
)

_STORIES = ("cli", "demo", "fuzz", "histories", "scenarios", "soak")
"""Folders of tests/ in which a test is quick only if it is marked so."""

_MARK = "pytest.mark.quick"
_SLOW_FIXTURES = {"database", "node", "servers"}


def is_module_without(path: Path) -> bool:
    """True if this is a module of scenarios that has no quick test, so that it need not even be imported."""
    is_story = path.suffix == ".py" and any(parent.name in _STORIES for parent in path.parents)
    return is_story and path.name.startswith("test_") and _MARK not in path.read_text(encoding="utf-8")


def is_quick(item: pytest.Function) -> bool:
    """True for a quick scenario on SQLite, and for a unit test: it needs no database and is not slow."""
    if item.get_closest_marker("quick"):
        return "postgresql" not in item.name and "mariadb" not in item.name
    is_story = any(parent.name in _STORIES for parent in item.path.parents)
    is_slow = item.get_closest_marker("slow") or item.get_closest_marker("long")
    return not is_story and not is_slow and _SLOW_FIXTURES.isdisjoint(item.fixturenames)
