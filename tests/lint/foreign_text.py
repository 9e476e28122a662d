"""Finds code that takes more than linear time over text from outside: `python -m lint.foreign_text [FILES]`, in tests/.

It looks for regular expressions that are costly (see expressions.py), and for `in` with a list, inside of a loop. A
line with a comment `# bounded: WHY` in it, or above it, is exempt: its text is short, or its list has few members.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lint.expressions import loses_its_place, why_costly

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "metaharvest"

_FUNCTIONS = ("compile", "search", "match", "fullmatch", "sub", "subn", "findall", "finditer", "split")
_LOST = "before Python 3.11.5 a possessive group needs `|(?!)` as its last alternative, to keep its place if it fails"
_ANCHORED = ("match", "fullmatch")
_EXEMPT = re.compile(r"# bounded: \w")
_LISTS = ("list", "List", "Sequence")
_LOOPS = (ast.For, ast.While, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Costly:
    """A costly place in a line."""

    line: int
    message: str


def found_in(source: str) -> list[Costly]:
    """The costly places in this module."""
    tree = ast.parse(source)
    lines = source.splitlines()
    found = [*_expressions(tree), *_memberships(tree)]
    return sorted((each for each in found if not _is_exempt(lines, each.line)), key=lambda each: each.line)


def _is_exempt(lines: list[str], line: int) -> bool:
    return any(_EXEMPT.search(text) for text in lines[max(line - 2, 0) : line])


def nodes_below(top: ast.AST) -> list[ast.AST]:
    """This node and all nodes below it, in the order of ast.walk(), which takes three times as long."""
    found = [top]
    for node in found:
        for value in vars(node).values():
            if isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                found.append(value)
    return found


# -- regular expressions


def _expressions(tree: ast.Module) -> Iterator[Costly]:
    constants = dict(_constants(tree))
    used = _used_methods(tree)
    names = {
        id(node.value): target.id
        for node in nodes_below(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in nodes_below(tree):
        if not (isinstance(node, ast.Call) and _function_of_re(node.func) and node.args):
            continue
        pattern = _text(node.args[0], constants)
        if pattern is None:
            continue
        function = _function_of_re(node.func)
        methods = used.get(names.get(id(node), ""), {"search"}) if function == "compile" else {function}
        searched = not methods <= set(_ANCHORED)
        whole = methods == {"fullmatch"}
        flags = _flags(node)
        why = why_costly(pattern, flags, searched=searched, whole=whole or "fullmatch" in methods)
        if why:
            yield Costly(node.lineno, f"{pattern!r} ({', '.join(sorted(methods))}): {why}")
        if loses_its_place(pattern, flags):
            yield Costly(node.lineno, f"{pattern!r}: {_LOST}")


def _function_of_re(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        return function.attr if function.attr in _FUNCTIONS else ""
    return ""


def _used_methods(tree: ast.Module) -> dict[str, set[str]]:
    """The uses of each compiled expression, by its name. An expression that is passed on may be searched for."""
    used: dict[str, set[str]] = {}
    methods = {id(node.value): node.attr for node in nodes_below(tree) if isinstance(node, ast.Attribute)}
    for node in nodes_below(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            method = methods.get(id(node), "search")
            used.setdefault(node.id, set()).add(method if method in _FUNCTIONS else "search")
    return used


def _constants(tree: ast.Module) -> Iterator[tuple[str, str | bytes]]:
    known: dict[str, str | bytes] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = _text(node.value, known)
            if text is not None:
                known[node.targets[0].id] = text
                yield node.targets[0].id, text


def _text(node: ast.expr, constants: Mapping[str, str | bytes]) -> str | bytes | None:
    """The text of an expression that is made of constants; None if it cannot be known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "encode":
        return _text(node.func.value, constants)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left, constants), _text(node.right, constants)
        if isinstance(left, str) and isinstance(right, str):
            return left + right
        return left + right if isinstance(left, bytes) and isinstance(right, bytes) else None
    if isinstance(node, ast.JoinedStr):
        parts = [_text(each.value if isinstance(each, ast.FormattedValue) else each, constants) for each in node.values]
        return "".join(each if isinstance(each, str) else "x" for each in parts)
    return None


def _flags(node: ast.Call) -> int:
    arguments = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
    nodes = [each for argument in arguments for each in nodes_below(argument)]
    names = [each.attr for each in nodes if isinstance(each, ast.Attribute)]
    flags = [getattr(re, name) for name in names if isinstance(getattr(re, name, None), re.RegexFlag)]
    return int(sum({flag.value for flag in flags}))


# -- memberships


def _memberships(tree: ast.Module) -> Iterator[Costly]:
    for function in nodes_below(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            lists = _lists_in(function)
            for loop in nodes_below(function):
                if isinstance(loop, _LOOPS) and not _is_over_constants(loop):
                    yield from _list_memberships(loop, lists)


def _is_over_constants(loop: ast.AST) -> bool:
    """True if a loop goes over a constant of the module, so that no text decides the number of its rounds."""
    iterated = [loop.iter] if isinstance(loop, ast.For) else [each.iter for each in getattr(loop, "generators", [])]
    names = [[node.id for node in nodes_below(each) if isinstance(node, ast.Name)] for each in iterated]
    return bool(names) and all(any(name.isupper() for name in each) for each in names)


def _lists_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of lists in this function, by annotations and assignments."""
    arguments = [*function.args.args, *function.args.kwonlyargs, *function.args.posonlyargs]
    found = {each.arg for each in arguments if each.annotation is not None and _is_list_type(each.annotation)}
    for node in nodes_below(function):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_list_type(node.annotation):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_list(node.value):
            found.add(node.targets[0].id)
    return found


def _is_list_type(annotation: ast.expr) -> bool:
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(base, ast.Name) and base.id in _LISTS


def _is_list(value: ast.expr) -> bool:
    is_call = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("list", "sorted")
    return is_call or isinstance(value, ast.List | ast.ListComp)


def _list_memberships(loop: ast.AST, lists: set[str]) -> Iterator[Costly]:
    for node in nodes_below(loop):
        if not isinstance(node, ast.Compare):
            continue
        for operator, right in zip(node.ops, node.comparators, strict=True):
            is_known = (isinstance(right, ast.Name) and right.id in lists) or isinstance(right, ast.ListComp)
            is_foreign = not isinstance(node.left, ast.Constant)
            if isinstance(operator, ast.In | ast.NotIn) and is_known and is_foreign:
                yield Costly(node.lineno, f"`{ast.unparse(node)}` in a loop: a list is read each time; use a set")


def found_below(folder: Path) -> Iterator[tuple[Path, Costly]]:
    """The costly places in the modules below this folder."""
    for path in sorted(folder.rglob("*.py")):
        for each in dict.fromkeys(found_in(path.read_text(encoding="utf-8"))):
            yield path, each


def main() -> None:
    """Print the costly places. The exit code is 1 if there are any."""
    given = [Path(argument) for argument in sys.argv[1:]] or [PACKAGE]
    found = [each for path in given for each in found_below(path)]
    for path, costly in found:
        print(f"{path}:{costly.line}: {costly.message}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
