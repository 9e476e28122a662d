"""The benchmark of rehearsals: `metaharvest check` of documents on this computer, as people do after a change."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.corpus import SiteFolder, write_documents, write_list
from benchmarks.installation import cost_of
from benchmarks.states import THIS
from benchmarks.table import Line

DOCUMENTS = 1000
TIMES = 3
ONE_IN = 20
"""One of this number of documents has an error, in measurements of errors."""


def check(scratch: Path, scale: float) -> Iterator[Line]:
    """A list, and the folder of its documents, with and without errors, and one document: the median of several.

    There are no settings and no database, as on the computer of a site contact.
    """
    number = max(1, round(DOCUMENTS * scale))
    good = _site(scratch / "good", number)
    yield _line(f"check, a list of {number:,} documents", good / "harvest-list.xml", 3.0)
    (good / "harvest-list.xml").unlink()
    yield _line(f"check, a folder of {number:,} documents", good, 3.0)
    yield _line("check, one document", good / "1.xml")
    bad = _site(scratch / "bad", number)
    for place in range(ONE_IN, number + 1, ONE_IN):
        file = bad / f"{place}.xml"
        file.write_bytes(file.read_bytes().replace(b"<contact>", b"<contat>").replace(b"</contact>", b"</contat>"))
    yield _line(f"check, one of {ONE_IN} documents with an error", bad / "harvest-list.xml", exit_code=1)


def _site(folder: Path, documents: int) -> Path:
    """A folder with documents, and a list that names them by relative URLs."""
    site = SiteFolder("bench", folder, ".", documents)
    write_documents(site)
    write_list(site)
    return folder


def _line(name: str, checked: Path, goal: float | None = None, exit_code: int = 0) -> Line:
    environment = {**(THIS.environment or os.environ), "XDG_CONFIG_HOME": str(checked.parent / "no-settings")}
    costs = [cost_of(THIS.command("check", str(checked)), environment, exit_code) for _ in range(TIMES)]
    wall = statistics.median(cost.wall for cost in costs)
    processor = statistics.median(cost.processor for cost in costs)
    memory = max(cost.memory for cost in costs)
    return Line(name, wall, goal=goal, note=f"processor {processor:.1f} s, {memory:.0f} MB")
