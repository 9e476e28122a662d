"""Finds folders: the package's own (`sql/`, `templates/`, `sample_sites/`), and what `~` stands for in a path.

The package's own are inside the installed package, or beside `src/` in a checkout.
"""

from __future__ import annotations

from pathlib import Path


def data_folder(name: str) -> Path:
    """The folder `sql`, `templates` or `sample_sites`, wherever this installation keeps it."""
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "data" / name, package.parent.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"metaharvest is not installed whole: its folder {name} is missing; install it again")


def at_home(path: Path) -> Path:
    """`path` with the folder that a leading `~` or `~user` stands for; ValueError, a sentence, where there is none."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("it begins with ~, but there is no such home folder; write the path out in full") from None
