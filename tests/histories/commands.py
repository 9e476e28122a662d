"""Commands in a process that can be killed: forked from one that has imported the program already."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.process import BaseProcess
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "metaharvest.cli.run",
        "metaharvest.services.harvester",
        "metaharvest.harvest.run",
        "metaharvest.sources.oai_pmh.source",
        "metaharvest.targets.embedded",
        "metaharvest.reports.compose",
    ]
)


def start(output: Path, *arguments: str) -> BaseProcess:
    """Start a command; what it prints goes into the file."""
    process = _FORKS.Process(target=_perform, args=(str(output), arguments))
    process.start()
    return process


def _perform(output: str, arguments: tuple[str, ...]) -> None:
    from metaharvest.cli import main

    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    main(list(arguments))
