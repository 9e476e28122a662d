"""The benchmark of start-up: what a command takes before it does anything."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.installation import NIGHT, Installation, cost_of
from benchmarks.states import THIS
from benchmarks.table import Line

TIMES = 9


def start_up(scratch: Path, _scale: float) -> Iterator[Line]:
    """`metaharvest --help`, and a run in which nothing is due: the median of several."""
    python = statistics.median(cost_of([sys.executable, "-c", "pass"]).wall for _ in range(TIMES))
    yield Line("python -c pass", python)
    helped = statistics.median(cost_of(THIS.command("--help"), THIS.environment).wall for _ in range(TIMES))
    yield Line("metaharvest --help", helped, beside="python", yardstick=python, goal=0.3)
    installation = Installation(scratch / "nothing-due")
    try:
        idle = statistics.median(installation.run(NIGHT).wall for _ in range(TIMES))
    finally:
        installation.close()
    yield Line("run, nothing due", idle, beside="python", yardstick=python, goal=0.6)
