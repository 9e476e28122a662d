"""The `metaharvest` command, also as `python -m metaharvest`.

Every worker process imports its run's main module again: the command line, which it does not need, is imported only
when it is called.
"""

from __future__ import annotations

from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; see metaharvest.cli.main()."""
    from metaharvest import cli

    cli.main()


if __name__ == "__main__":
    main()
