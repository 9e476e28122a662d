"""`python -m benchmarks [NAME ...] [--scale 0.1] [--against COMMIT]`: measures, prints tables.

The table of each benchmark is printed when it is complete, and all tables in Markdown at the end.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import (
    against,
    checking,
    cleaning,
    duplicates,
    extraction,
    folder,
    full_text,
    nights,
    pipeline,
    provider,
    related,
    repositories,
    searching,
    startup,
    targets,
    workers,
)
from benchmarks.databases import NoServer
from benchmarks.pairs import COMPARED_HEADINGS, Comparison, Pairs
from benchmarks.servers import MissingTool
from benchmarks.states import THIS, NoState, checked_out
from benchmarks.table import HEADINGS, Line, markdown, show

Results = Iterator[Comparison | Line]
BENCHMARKS: dict[str, Callable[[Path, float], Iterator[Line]]] = {
    "full-night": nights.full_night,
    "quiet-night": nights.quiet_night,
    "slow-sites": nights.slow_sites,
    "growth": nights.growth,
    "databases": nights.other_databases,
    "targets": targets.targets,
    "folder": folder.folder,
    "repositories": repositories.repositories,
    "provider": provider.provider,
    "workers": workers.workers,
    "start-up": startup.start_up,
    "check": checking.check,
    "duplicates": duplicates.duplicates,
    "related": related.related,
    "cleaning": cleaning.cleaning,
    "extraction": extraction.extraction,
    "full-text-links": full_text.full_text_links,
    "search": searching.search,
    "pipeline": pipeline.pipeline,
}
COMPARISONS: dict[str, Callable[[Path, float, Pairs], Iterator[Comparison] | Results]] = {
    "full-night": against.full_night,
    "quiet-night": against.quiet_night,
    "slow-sites": against.slow_sites,
    "repositories": against.repositories,
    "start-up": against.start_up,
}


def main() -> int:
    """Run the benchmarks that are asked for; the exit code."""
    parser = _parser()
    arguments = parser.parse_args()
    known = COMPARISONS if arguments.against else BENCHMARKS
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"there is no such benchmark as {unknown[0]} here; there are: {', '.join(known)}")
    names = arguments.names or list(known)
    # A checkout may be one where Python keeps no compiled modules.
    THIS.compile()
    try:
        if arguments.against:
            with checked_out(arguments.against) as before:
                table = _compared(names, arguments.scale, Pairs(before, THIS, arguments.pairs))
        else:
            table = _measured(names, arguments.scale)
    except (MissingTool, NoServer, NoState) as error:
        print(error, file=sys.stderr)
        return 1
    print(table)
    if arguments.markdown:
        arguments.markdown.write_text(table, encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures metaharvest.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all, if none is named")
    parser.add_argument("--scale", type=float, default=1.0, help="0.1: a tenth of it, without goals")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the Markdown table there as well")
    parser.add_argument(
        "--against",
        metavar="COMMIT",
        help=f"compare this state of the program with that of a commit, in turn: {', '.join(COMPARISONS)}",
    )
    parser.add_argument("--pairs", type=_at_least_one, default=5, metavar="N", help="how often in turn; 5 by default")
    return parser


def _at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def _measured(names: Sequence[str], scale: float) -> str:
    """Measure this state, show a table a benchmark; all of it in Markdown."""
    lines: list[Line] = []
    for name in names:
        with _scratch(name) as scratch:
            found = _with_goals(BENCHMARKS[name](Path(scratch), scale), scale)
        show(f"{name}, scale {scale:g}", HEADINGS, [line.cells() for line in found])
        lines += found
    return f"{_machine()}, scale {scale:g}\n\n{markdown(HEADINGS, [line.cells() for line in lines])}\n"


def _compared(names: Sequence[str], scale: float, pairs: Pairs) -> str:
    """Measure two states in turn, show the tables of each benchmark; all of it in Markdown."""
    title = f"scale {scale:g}, {pairs.before.name} before, {pairs.after.name} after, pairs: {pairs.number}"
    comparisons: list[Comparison] = []
    lines: list[Line] = []
    for name in names:
        with _scratch(name) as scratch:
            results = list(COMPARISONS[name](Path(scratch), scale, pairs))
        compared = [result for result in results if isinstance(result, Comparison)]
        found = _with_goals((result for result in results if isinstance(result, Line)), scale)
        show(f"{name}, {title}", COMPARED_HEADINGS, [comparison.cells() for comparison in compared])
        if found:
            show(f"{name}, medians", HEADINGS, [line.cells() for line in found])
        comparisons += compared
        lines += found
    table = f"{_machine()}, {title}\n\n{markdown(COMPARED_HEADINGS, [each.cells() for each in comparisons])}\n"
    return f"{table}\n{markdown(HEADINGS, [line.cells() for line in lines])}\n" if lines else table


def _scratch(name: str) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=f"metaharvest-{name}-")


def _with_goals(lines: Iterator[Line], scale: float) -> list[Line]:
    """The lines; of less than the whole, without the goals."""
    return [line if scale == 1 else replace(line, goal=None) for line in lines]


def _machine() -> str:
    """The day, the processor, Python and the system, in a line."""
    information = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in information if line.startswith("model name")]
    processor = f"{len(models)} x {models[0]}" if models else platform.processor()
    return f"{datetime.now(UTC):%Y-%m-%d}, {processor}, {platform.system()}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
