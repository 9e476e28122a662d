"""Finds `sql/`, `templates/` and `sample_sites/`: inside the installed package, or beside `src/` in a checkout."""

from __future__ import annotations

from pathlib import Path


def data_folder(name: str) -> Path:
    """The folder `sql`, `templates` or `sample_sites`, wherever this installation keeps it."""
    package = Path(__file__).resolve().parent
    for candidate in (package / "data" / name, package.parent.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"metaharvest is not installed whole: its folder {name} is missing; install it again")
