"""`python -m benchmarks [NAME ...] [--scale 0.1]`: measures, prints a table of each and one in Markdown of all."""

from __future__ import annotations

import argparse
import compileall
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import metaharvest
from benchmarks import nights, startup
from benchmarks.servers import MissingTool
from benchmarks.table import Line, markdown, show

BENCHMARKS: dict[str, Callable[[Path, float], Iterator[Line]]] = {
    "full-night": nights.full_night,
    "quiet-night": nights.quiet_night,
    "slow-sites": nights.slow_sites,
    "growth": nights.growth,
    "databases": nights.other_databases,
    "start-up": startup.start_up,
}


def main() -> int:
    """Run the benchmarks that are asked for; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures metaharvest.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all, if none is named")
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="0.1: a tenth of it, without goals",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the Markdown table there as well")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]}; there are: {', '.join(BENCHMARKS)}")
    # As pip does for what it installs: a checkout may be one where Python keeps no compiled modules.
    compileall.compile_dir(Path(metaharvest.__file__).parent, quiet=1)
    lines: list[Line] = []
    try:
        for name in arguments.names or BENCHMARKS:
            with tempfile.TemporaryDirectory(prefix=f"metaharvest-{name}-") as scratch:
                lines += _measured(name, Path(scratch), arguments.scale)
    except MissingTool as error:
        print(error, file=sys.stderr)
        return 1
    table = f"{_machine()}, scale {arguments.scale:g}\n\n{markdown(lines)}\n"
    print(table)
    if arguments.markdown:
        arguments.markdown.write_text(table, encoding="utf-8")
    return 0


def _measured(name: str, scratch: Path, scale: float) -> list[Line]:
    lines = list(BENCHMARKS[name](scratch, scale))
    if scale != 1:
        lines = [replace(line, goal=None) for line in lines]
    show(f"{name}, scale {scale:g}", lines)
    return lines


def _machine() -> str:
    """The day, the processor, Python and the system, in a line."""
    information = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in information if line.startswith("model name")]
    processor = f"{len(models)} x {models[0]}" if models else platform.processor()
    return f"{datetime.now(UTC):%Y-%m-%d}, {processor}, {platform.system()}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
