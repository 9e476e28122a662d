"""The texts in the modules of the package: each process of the tests parses a module once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lint.foreign_text import nodes_below


class ModuleText(NamedTuple):
    """A literal text of a module. A docstring is an expression of its own."""

    line: int
    text: str
    is_docstring: bool


@cache
def texts_of(path: Path) -> tuple[ModuleText, ...]:
    """All literal texts of this module."""
    nodes = nodes_below(ast.parse(path.read_text(encoding="utf-8")))
    documented = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return tuple(
        ModuleText(node.lineno, node.value, id(node) in documented)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
