"""Distributions that add something by entry points, installed in a folder of their own."""

from __future__ import annotations

from pathlib import Path


def install(folder: Path, name: str, code: str, **entry_points: str) -> Path:
    """Install a distribution of one module: group (with _ for the dot) -> `kind = object`; what to put on sys.path."""
    place = folder / f"{name}-installed"
    information = place / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (place / f"{name}.py").write_text(code, encoding="utf-8")
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    groups = []
    for group, added in entry_points.items():
        kind, _, attribute = added.partition(" = ")
        groups.append(f"[{group.replace('_', '.')}]\n{kind} = {name}:{attribute}\n")
    (information / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
    return place
