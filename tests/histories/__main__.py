"""`python -m histories [--number 500] [--seed 1] [--steps]`: lives many histories, and prints those that went wrong."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from histories.history import History, lived
from support.databases import share_compiled_statements


def main() -> int:
    """Live the histories; 1 if something was wrong in one of them."""
    parser = argparse.ArgumentParser(prog="python -m histories", description="Lives random histories, and checks them.")
    parser.add_argument("--number", type=int, default=1, metavar="N", help="so many histories; one by default")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the seed of the first; 1 by default")
    parser.add_argument("--steps", action="store_true", help="print the steps also of those that went well")
    arguments = parser.parse_args()
    share_compiled_statements()
    began, failed = time.monotonic(), 0
    for seed in range(arguments.seed, arguments.seed + arguments.number):
        history = _lived(seed)
        failed += bool(history.problems)
        if history.problems or arguments.steps:
            print(f"{history}\n", flush=True)
    print(f"{arguments.number} histories, {failed} went wrong, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


def _lived(seed: int) -> History:
    with tempfile.TemporaryDirectory(prefix=f"metaharvest-history-{seed}-") as folder:
        try:
            return lived(seed, Path(folder))
        except Exception:  # noqa: BLE001 - the next seeds are lived all the same
            return History(seed, problems=[traceback.format_exc()])


if __name__ == "__main__":
    sys.exit(main())
