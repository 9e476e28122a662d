"""`metaharvest worker`: one worker process."""

from __future__ import annotations

import queue
import signal

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.signals import handled


@click.command("worker")
@click.option("--name", default="", metavar="NAME", help="A unique name. Default: the machine, and the process number.")
@click.pass_obj
def command(invocation: Invocation, name: str) -> None:
    """Work on jobs until SIGTERM or Ctrl-C, beside workers on other machines.

    The first signal ends the work at its next checkpoint; another worker goes on with it. Start one worker for each
    core of a machine, under a supervisor. `metaharvest coordinate` makes the jobs.

    Example: metaharvest worker --name alder-1
    """
    ending = queue.SimpleQueue[None]()
    with handled(lambda _number, _frame: ending.put(None), signal.SIGTERM, signal.SIGINT):
        from metaharvest.workers.worker import work

        work(invocation.harvester, name, ending)
