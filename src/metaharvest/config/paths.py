"""Finds the program's own folders (`sql/`, `templates/`, `sample_sites/`) and where a path leads.

The program's own folders are inside the installed package, or next to `src/` in a checkout.
"""

from __future__ import annotations

import os
from pathlib import Path


def data_folder(name: str) -> Path:
    """The folder `sql`, `templates`, `sample_sites` or `docs` of this installation. Raises FileNotFoundError."""
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "data" / name, package.parent.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"metaharvest is not installed whole: its folder {name} is missing; install it again")


def nearest_there(path: Path) -> Path:
    """`path`, or the nearest existing folder above it."""
    while not os.access(path, os.F_OK) and path != path.parent:
        path = path.parent
    return path


def at_home(path: Path) -> Path:
    """`path` with a leading `~` or `~user` replaced; ValueError with a sentence if there is no such home folder."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("it begins with ~, but there is no such home folder; write the path out in full") from None
