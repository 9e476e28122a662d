"""Draws the house: the rooms of the package and which imports which, as Mermaid and as a table, from the imports.

`python docs/draw_house.py FILE` writes the picture into FILE, between the two markers; without FILE it is printed. A
room is a module or package at the top of metaharvest. All imports count, those inside functions and those for types
alone too. Which imports are allowed is said by the contract in pyproject.toml, and checked by `make check`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

import metaharvest

BEGIN = "<!-- The house, drawn by docs/draw_house.py: run `make docs` rather than edit it. -->"
END = "<!-- The end of the picture. -->"

Rooms = Mapping[str, frozenset[str]]
"""Each room, and the rooms that it imports."""


def rooms_of(package: str) -> Rooms:
    """The rooms of an installed package. The package itself, which has its version, is none, nor is `__main__`."""
    graph = grimp.build_graph(package, cache_dir=None)
    modules = graph.modules - {package, f"{package}.__main__"}
    rooms = {_room(module): frozenset[str]() for module in modules}
    for module in modules:
        imported = graph.find_modules_directly_imported_by(module) & modules
        rooms[_room(module)] |= {_room(each) for each in imported} - {_room(module)}
    return rooms


def picture(rooms: Rooms, folder: Path) -> str:
    """The picture in Markdown: an arrow for each import that no other arrows imply, and a table of all imports.

    `folder` is the folder of the package. Raises graphlib.CycleError if rooms import one another in a circle.
    """
    levels: dict[str, int] = {}
    below: dict[str, frozenset[str]] = {}
    for room in TopologicalSorter(rooms).static_order():
        levels[room] = 1 + max((levels[each] for each in rooms[room]), default=-1)
        below[room] = rooms[room].union(*(below[each] for each in rooms[room]))
    from_the_top = sorted(rooms, key=lambda room: (-levels[room], room))
    arrows = [
        f"    {room} --> {imported}"
        for room in from_the_top
        for imported in sorted(rooms[room])
        if not any(imported in below[other] for other in rooms[room])
    ]
    rows = [
        f"| {levels[room]} | `{room}` | {_purpose(folder / room)} | {', '.join(sorted(rooms[room]))} |"
        for room in from_the_top
    ]
    mermaid = ["```mermaid", "flowchart TD", *arrows, "```"]
    table = ["| level | room | what it is for | imports |", "|--:|---|---|---|", *rows]
    return "\n".join([*mermaid, "", *table])


def drawn_into(text: str, drawing: str) -> str:
    """`text` with the drawing between the markers. Raises ValueError if there are no markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the text lacks the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{drawing}\n\n{END}{after}"


def _room(module: str) -> str:
    return module.split(".")[1]


def _purpose(room: Path) -> str:
    """The first paragraph of the docstring of a room, on one line."""
    source = room.with_suffix(".py") if room.with_suffix(".py").exists() else room / "__init__.py"
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.partition("\n\n")[0].split()).replace("|", "\\|")


def main() -> None:
    """See the top."""
    drawing = picture(rooms_of("metaharvest"), Path(metaharvest.__file__).parent)
    if len(sys.argv) == 1:
        print(drawing)
        return
    file = Path(sys.argv[1])
    file.write_text(drawn_into(file.read_text(encoding="utf-8"), drawing), encoding="utf-8")


if __name__ == "__main__":
    main()
